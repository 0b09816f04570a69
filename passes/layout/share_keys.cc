// Share keys: where an attention is left, keys and values that it repeats for heads that share them are not repeated. The
// queries of such heads are rows of one product instead, [B, G, n S, D] x [B, G, D, T], which moves no element. Measured: 11.6 ms
// of repeats in a decode step of 203 ms are gone (docs/sources/device-figures.md).
#include <algorithm>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "fmt/format.h"
#include "fmt/ranges.h"
#include "ir/infer/movement_of.h"
#include "passes/core/node_inserter.h"
#include "passes/core/reshape_target.h"
#include "passes/core/workspace.h"
#include "passes/layout/passes.h"

namespace ascend_fuse {
namespace {

// From the result of an attention back to both its products. A mask may be a long program: it ends there.
constexpr size_t kMostNodes = 64;
constexpr int kProducts = 2;

// What a product reads repeated: `once` [B, G, T, D], as [B, G n, T, D] or with its last two dims swapped.
struct Repeat {
  const Value* once = nullptr;
  int64_t heads = 0;  // G n
  int64_t groups = 0;
  bool swapped = false;
};

class KeySharing {
 public:
  explicit KeySharing(Workspace& workspace) : workspace_(workspace), facts_(workspace.facts()), dims_(workspace.facts().dims()) {}

  void Run() {
    std::vector<Site*> left;
    for (Site& site : workspace_.sites) {
      if (site.record.kind == "attention" && site.record.state == "left" && site.value != nullptr) left.push_back(&site);
    }
    // In the order of the graph: what is computed for the first serves the others.
    std::stable_sort(left.begin(), left.end(), [](const Site* a, const Site* b) { return a->order < b->order; });
    for (Site* site : left) {
      std::vector<std::string_view> shared;
      const std::vector<const Node*> products = ProductsOf(site->value);
      for (auto product = products.rbegin(); product != products.rend(); ++product) {
        const std::optional<Repeat> repeat = RepeatOf(**product);
        if (!repeat.has_value() || !workspace_.MayReplace()) continue;
        Share(*product, *repeat);
        workspace_.CountReplacement();
        shared.insert(shared.begin(), *product == products.front() ? "values" : "keys");
      }
      if (shared.empty()) continue;
      ++workspace_.result.keys_shared;
      site->record.because += fmt::format("; {} are not repeated: queries of heads that share them are rows of one product",
                                          fmt::join(shared, " and "));
    }
  }

 private:
  // The products of an attention that computes `value`, the last one first.
  static std::vector<const Node*> ProductsOf(const Value* value) {
    std::vector<const Node*> products;
    std::vector<const Value*> open = {value};
    for (size_t i = 0; i < open.size() && i < kMostNodes && products.size() < kProducts; ++i) {
      const Node* node = open[i]->producer;
      if (node == nullptr || node->dead || node->domain != NameId::kEmpty) continue;
      const bool product = IsOp(*node, "MatMul");
      if (product) products.push_back(node);
      for (size_t input = 0; input < node->inputs().size() && (input == 0 || !product); ++input) {
        if (node->input(input) != nullptr) open.push_back(node->input(input));
      }
    }
    return products;
  }

  std::optional<Repeat> RepeatOf(const Node& product) const {
    Repeat repeat;
    const Value* value = product.input(1);
    if (value->producer != nullptr && KindOf(facts_, *value->producer) == MovementKind::kPermutes) {
      repeat.swapped = true;
      if (PermutedAxes(facts_, value) != PermutationOfAxes{0, 1, 3, 2} || !ReadOnce(*value)) return std::nullopt;
      value = value->producer->input(0);
    }
    const Value* const repeated = value;
    // A Reshape of an Expand of an Unsqueeze.
    for (const MovementKind kind : {MovementKind::kKeepsOrder, MovementKind::kCopies, MovementKind::kKeepsOrder}) {
      const bool moves = value->producer != nullptr && KindOf(facts_, *value->producer) == kind;
      if (!moves || (kind == MovementKind::kCopies && !IsBroadcast(facts_, value)) || !ReadOnce(*value)) return std::nullopt;
      value = value->producer->input(0);
    }
    repeat.once = value;
    return IsRepeat(product, *repeated, &repeat) ? std::optional(repeat) : std::nullopt;
  }

  // Whether the Expand repeats along a new axis after the groups, and the Reshape joins the two; by their shapes.
  bool IsRepeat(const Node& product, const Value& repeated, Repeat* repeat) const {
    const Fact& query = facts_.Of(product.input(0));
    const Fact& once = facts_.Of(repeat->once);
    const Fact& all = facts_.Of(&repeated);
    const Fact& apart = facts_.Of(repeated.producer->input(0));
    const Fact& one = facts_.Of(repeated.producer->input(0)->producer->input(0));
    if (query.rank() != 4 || once.rank() != 4 || all.rank() != 4 || apart.rank() != 5 || one.rank() != 5) return false;
    if (!once.shape[1].is_number() || !all.shape[1].is_number()) return false;
    repeat->groups = once.shape[1].number();
    repeat->heads = all.shape[1].number();
    const bool many = repeat->groups > 0 && repeat->heads > repeat->groups && repeat->heads % repeat->groups == 0;
    if (!many || !query.shape[1].is(repeat->heads) || !dims_.Equal(query.shape[0], once.shape[0])) return false;
    const Dim n = Dim::Of(repeat->heads / repeat->groups);
    const Dim batch = once.shape[0], groups = once.shape[1], tokens = once.shape[2], width = once.shape[3];
    return dims_.Equal(one.shape, std::vector<Dim>{batch, groups, Dim::Of(1), tokens, width}) &&
           dims_.Equal(apart.shape, std::vector<Dim>{batch, groups, n, tokens, width}) &&
           dims_.Equal(all.shape, std::vector<Dim>{batch, all.shape[1], tokens, width});
  }

  void Share(const Node* product, const Repeat& repeat) {
    NodeInserter inserter(workspace_, product->graph, ValueName(*product->output()));
    const Value* rows = inserter.Op("Reshape", {product->input(0), Dims(product->input(0), repeat.groups, &inserter)});
    const Value* once = repeat.once;
    if (repeat.swapped) once = inserter.Op("Transpose", {once}, {Attribute::Ints("perm", {0, 1, 3, 2})});
    const Value* of_rows = inserter.Op("MatMul", {rows, once});
    NewNode apart;
    apart.op_type = "Reshape";
    apart.inputs = {of_rows, Dims(of_rows, repeat.heads, &inserter)};
    apart.name = fmt::format("{}_heads", ValueName(*product->output()));
    workspace_.Refresh(workspace_.rewriter().ReplaceValue(product->output(), apart));
  }

  // The dims of x as so many heads. What is computed of them is computed once for all products.
  const Value* Dims(const Value* x, int64_t heads, NodeInserter* inserter) {
    const std::vector<Term> dims = {Term::Integer(0), Term::Integer(heads), Term::Integer(-1), Term::Integer(0)};
    return inserter->BuildOnce(ReshapeTarget(workspace_.facts(), x, Term::List(dims)), &dims_of_heads_);
  }

  Workspace& workspace_;
  const Facts& facts_;
  const DimTable& dims_;
  NodeInserter::Known dims_of_heads_;
};

}  // namespace

absl::Status ShareKeys(Workspace& workspace) {
  if (!workspace.ChangesNothing()) KeySharing(workspace).Run();
  return absl::OkStatus();
}

}  // namespace ascend_fuse
