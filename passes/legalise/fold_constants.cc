// Fold constants: what the numbers of --fix decide (shape arithmetic, positions, small masks) is computed now. The elements
// are those that inference found; what it does not evaluate, or only as symbols, stays as it is.
#include <cstring>
#include <optional>
#include <string>
#include <vector>

#include "ir/onnx/encode.h"
#include "passes/core/workspace.h"
#include "passes/legalise/passes.h"

namespace ascend_fuse {
namespace {

// All constants together. One has at most Facts::kMaxElements elements, 8 KiB: enough for shapes and positions; a larger table
// is cheaper to compute on the chip than to load.
constexpr size_t kMostBytes = size_t{16} << 20;

// The elements of a value that are all known; nullopt where some is not, or for a type that is not written.
std::optional<std::string> BytesOf(const Fact& fact, const DimTable& dims) {
  if (fact.elements == nullptr || !fact.has_rank) return std::nullopt;
  std::string bytes;
  if (IsFloat(fact.type)) {
    for (const double element : fact.elements->floats) {
      const std::string encoded = EncodeNumber(fact.type, element);
      if (encoded.empty()) return std::nullopt;
      bytes += encoded;
    }
    return bytes;
  }
  const int bits = BitWidth(fact.type);
  if (bits < 8 || bits > 64 || (!IsInteger(fact.type) && fact.type != DataType::kBool)) return std::nullopt;
  for (const Dim element : fact.elements->integers) {
    const Dim known = dims.Resolve(element);
    if (!known.is_number()) return std::nullopt;
    const int64_t number = known.number();
    bytes.append(reinterpret_cast<const char*>(&number), static_cast<size_t>(bits / 8));  // little-endian
  }
  return bytes;
}

class Folder {
 public:
  explicit Folder(Workspace& workspace) : workspace_(workspace) {}

  void Run() {
    const int64_t before = workspace_.CountNodes();
    for (const auto& graph : workspace_.model().graphs()) {
      const std::vector<const Node*> nodes(graph->nodes().begin(), graph->nodes().end());
      for (const Node* node : nodes) {
        if (node->dead || node->op_type == constant_) continue;
        for (const Value* value : node->outputs()) {
          if (value != nullptr && value->producer == node) Fold(value);
        }
      }
    }
    workspace_.result.folded = before - workspace_.CountNodes();
  }

 private:
  // Readers that become constants themselves need no constant.
  bool GoesAway(const Node& node) {
    if (node.output_count != 1 || node.output() == nullptr || node.output()->is_graph_output) return false;
    return BytesOf(workspace_.facts().Of(node.output()), workspace_.facts().dims()).has_value();
  }

  void Fold(const Value* value) {
    const Fact fact = workspace_.facts().Of(value);
    const std::optional<std::string> bytes = BytesOf(fact, workspace_.facts().dims());
    if (!bytes.has_value() || bytes->empty()) return;
    std::vector<int64_t> dims;
    for (const Dim dim : fact.shape) {
      const Dim known = workspace_.facts().dims().Resolve(dim);
      if (!known.is_number()) return;
      dims.push_back(known.number());
    }
    std::vector<Use> uses;  // first all, then the changes
    for (const Use& use : LiveUses(*value)) {
      if (!GoesAway(*use.user)) uses.push_back(use);
    }
    if (uses.empty() || made_ + bytes->size() > kMostBytes) return;
    made_ += bytes->size();
    const Value* constant = workspace_.rewriter().Constant(value->graph, fact.type, dims, *bytes, std::string(ValueName(*value)));
    InferConstant(constant, &workspace_.facts());
    for (const Use& use : uses) workspace_.rewriter().SetInput(use.user, use.index, constant);
  }

  Workspace& workspace_;
  const NameId constant_ = workspace_.model().names().Intern("Constant");
  size_t made_ = 0;
};

}  // namespace

absl::Status FoldConstants(Workspace& workspace) {
  if (!workspace.options().fix.empty()) Folder(workspace).Run();
  return absl::OkStatus();
}

}  // namespace ascend_fuse
