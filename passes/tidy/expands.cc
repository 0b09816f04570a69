// Expands: an operator that broadcasts its operands needs none of them repeated, or given axes of 1 in front, beforehand. Where
// its result has the same shape without, it reads what the Expand or the view reads.
#include <algorithm>
#include <cstddef>
#include <optional>
#include <vector>

#include "ir/movement/movement.h"
#include "ir/schema.h"
#include "passes/tidy/kinds.h"
#include "patterns/operators/declarations.h"

namespace ascend_fuse {
namespace {

// The shape of all operands broadcast together, with `instead` in place of operand `index`; empty where it cannot be told.
std::vector<Dim> BroadcastWith(const TidyContext& context, const Node& node, size_t index, const Value& instead) {
  std::vector<absl::Span<const Dim>> shapes;
  size_t rank = 0;
  for (size_t i = 0; i < node.input_count; ++i) {
    const Value* const operand = i == index ? &instead : node.input(i);
    if (operand == nullptr || !context.facts().Of(operand).has_rank) return {};
    shapes.push_back(context.facts().Of(operand).shape);
    rank = std::max(rank, shapes.back().size());
  }
  std::vector<Dim> result;
  for (size_t axis = 0; axis < rank; ++axis) {
    Dim dim = Dim::Of(1);
    for (const auto& shape : shapes) {
      if (axis + shape.size() < rank) continue;
      const Dim own = context.dims().Resolve(shape[axis + shape.size() - rank]);
      if (own.is(1)) continue;
      if (!own.known() || (!dim.is(1) && !context.dims().Equal(dim, own))) return {};
      dim = own;
    }
    result.push_back(dim);
  }
  return result;
}

// What an Expand reads, or what a node reads that only puts axes of 1 in front; nullptr where `operand` is neither.
const Value* Narrower(const TidyContext& context, const Node& node, size_t operand) {
  if (const Node* const expand = Before(node, operand, "Expand"); expand != nullptr) return expand->input(0);
  const Movement* const view = context.facts().MovementOf(node.input(operand));
  if (view == nullptr || view->kind != MovementKind::kKeepsOrder) return nullptr;
  const Value* const narrow = view->node->input(view->only()->operand);
  const Fact& from = context.facts().Of(narrow);
  const Fact& to = context.facts().Of(node.input(operand));
  if (!from.has_rank || !to.has_rank || to.rank() <= from.rank()) return nullptr;
  const size_t added = to.shape.size() - from.shape.size();
  const bool ones = std::all_of(to.shape.begin(), to.shape.begin() + static_cast<std::ptrdiff_t>(added),
                                [&](Dim dim) { return context.dims().Resolve(dim).is(1); });
  return ones && context.dims().Equal(absl::MakeConstSpan(to.shape).subspan(added), from.shape) ? narrow : nullptr;
}

// Whether GE may join the node, a sum, with a norm that reads it, which it does where both summands have one shape.
bool IsSumBeforeNorm(const Node& node) {
  if (!IsOp(node, "Add")) return false;
  for (const Use& use : LiveUses(*node.output())) {
    const DeclaredOperator* const declared = FindDeclaredOperator(Domain(*use.user), OpType(*use.user));
    if (declared != nullptr && !declared->joined_with_sum.empty()) return true;
  }
  return false;
}

// Whether the node broadcasts its operands. The slope of a PRelu is repeated like the other operand, and not the other way round.
bool Broadcasts(const Node& node) { return node.domain == NameId::kEmpty && IsElementwise(node) && !IsOp(node, "PRelu"); }

// Whether `node` gives the same where it reads `narrower` in place of operand `index`.
bool MayRead(const TidyContext& context, const Node& node, size_t index, const Value& narrower) {
  if (!Broadcasts(node) || IsSumBeforeNorm(node)) return false;
  const Fact& result = context.facts().Of(node.output());
  if (!result.has_rank) return false;
  const std::vector<Dim> without = BroadcastWith(context, node, index, narrower);
  return !without.empty() && context.dims().Equal(without, result.shape);
}

// Whether nobody needs `view`, which only puts axes of 1 in front of `narrower`: where a norm takes the mean of the view, for
// example, and subtracts it from what the view reads, the two are one norm to nobody.
bool IsNeededByNone(const TidyContext& context, const Value& view, const Value& narrower) {
  constexpr int kMostReaders = 16;  // each of which asks
  if (view.is_graph_output) return false;
  int readers = 0;
  for (const Use& use : LiveUses(view)) {
    if (++readers > kMostReaders || !Broadcasts(*use.user)) return false;
  }
  for (const Use& use : LiveUses(view)) {
    const auto inputs = use.user->inputs();
    const auto reads = std::count_if(inputs.begin(), inputs.end(), [&](const Use& other) { return other.value == &view; });
    if (reads > 1 || !MayRead(context, *use.user, use.index, narrower)) return false;
  }
  return true;
}

}  // namespace

std::optional<Tidied> AskExpands(TidyContext& context, const Node& node) {
  constexpr int64_t kBroadcasts = 7;  // before opset 7 nothing is repeated
  if (node.input_count < 2 || context.workspace.model().OpsetVersion() < kBroadcasts) return std::nullopt;
  for (size_t i = 0; i < node.input_count; ++i) {
    const Value* const narrower = Narrower(context, node, i);
    if (narrower == nullptr) continue;
    const bool expands = Before(node, i, "Expand") != nullptr;
    if (expands ? MayRead(context, node, i, *narrower) : IsNeededByNone(context, *node.input(i), *narrower)) {
      return Tidied::Reads(i, Term::Of(narrower));
    }
  }
  return std::nullopt;
}

}  // namespace ascend_fuse
