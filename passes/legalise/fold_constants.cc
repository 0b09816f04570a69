// Fold constants: what the numbers of --fix decide (shape arithmetic, positions, small masks) is computed now. The elements
// are those that inference found; what it does not evaluate, or only as symbols, stays as it is.
#include <optional>
#include <string>
#include <vector>

#include "passes/core/known_constant.h"
#include "passes/core/without_promises.h"
#include "passes/legalise/passes.h"

namespace ascend_fuse {
namespace {

// All constants together. One has at most Facts::kMaxElements elements, 8 KiB: enough for shapes and positions; a larger table
// is cheaper to compute on the chip than to load.
constexpr size_t kMostBytes = size_t{16} << 20;

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
    return KnownBytes(workspace_.facts().Of(node.output()), workspace_.facts().dims()).has_value();
  }

  void Fold(const Value* value) {
    const std::optional<std::string> bytes = KnownBytes(workspace_.facts().Of(value), workspace_.facts().dims());
    if (!bytes.has_value() || bytes->empty()) return;
    std::vector<Use> uses;  // first all, then the changes
    for (const Use& use : LiveUses(*value)) {
      if (!GoesAway(*use.user)) uses.push_back(use);
    }
    if (uses.empty() || made_ + bytes->size() > kMostBytes) return;
    const Value* const constant = KnownConstant(workspace_, *value, *bytes);
    if (constant == nullptr) return;
    made_ += bytes->size();
    for (const Use& use : uses) workspace_.rewriter().SetInput(use.user, use.index, constant);
  }

  Workspace& workspace_;
  const NameId constant_ = workspace_.model().names().Intern("Constant");
  size_t made_ = 0;
};

}  // namespace

absl::Status FoldConstants(Workspace& workspace) {
  if (workspace.options().fix.empty()) return absl::OkStatus();
  return WithoutPromises(workspace, [&workspace] {
    Folder(workspace).Run();
    return absl::OkStatus();
  });
}

}  // namespace ascend_fuse
