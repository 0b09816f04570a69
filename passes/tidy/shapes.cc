// Shapes: the target of a Reshape, an Expand or a Slice that is computed, written with 0, -1, 1 and numbers where the facts prove
// it equal. Then nothing of its arithmetic is needed.
#include <algorithm>
#include <cstdint>
#include <vector>

#include "ir/infer/carried.h"
#include "ir/movement/axis.h"
#include "passes/tidy/kinds.h"

namespace ascend_fuse {
namespace {

bool IsNodeResult(const Value* value) {
  return value != nullptr && value->producer != nullptr && !IsOp(*value->producer, "Constant");
}

// Whether a loop around the node hands on a value with other dims than it got. In its body nothing but the nodes tells such a
// dim: no runtime checks the names that are declared there.
bool IsWhereDimsChange(const TidyContext& context, const Node& node) {
  for (const Node* loop = node.graph->owner(); loop != nullptr; loop = loop->graph->owner()) {
    for (const infer::CarriedValue& carried : infer::CarriedValues(*loop)) {
      const Fact& before = context.facts().Of(carried.initial);
      const Fact& after = context.facts().Of(carried.result);
      if (!context.dims().Equal(before.shape, after.shape)) return true;
    }
  }
  return false;
}

// The elements of a computed input; nullptr where there is none of that kind, and where they may be all that tells a dim.
const absl::Span<const Dim>* ComputedElements(const TidyContext& context, const Node& node, size_t index) {
  const Value* const value = node.input(index);
  if (!IsNodeResult(value) || IsWhereDimsChange(context, node)) return nullptr;
  const Fact& fact = context.facts().Of(value);
  return fact.elements != nullptr && !fact.elements->integers.empty() ? &fact.elements->integers : nullptr;
}

// [batch, seq, 4, 64] of x [batch, seq, 256] is [0, 0, 4, 64]. One dim may be -1 where it is, or where no other one can be 0.
std::optional<Tidied> WriteReshape(const TidyContext& context, const Node& node) {
  const auto* const to = ComputedElements(context, node, 1);
  const Fact& x = context.facts().Of(node.input(0));
  if (to == nullptr || !x.has_rank) return std::nullopt;
  if (auto with_ones = WithOnes(context, Term::Of(node.input(0)), x, context.facts().Of(node.output())); with_ones.has_value()) {
    return Tidied::Of(*std::move(with_ones));
  }
  const bool allows_zero = IntAttribute(node, "allowzero").value_or(0) != 0;
  std::vector<int64_t> target;
  bool positive = true;
  size_t open = 0;
  bool was_open = false;
  for (size_t i = 0; i < to->size(); ++i) {
    const Dim dim = context.dims().Resolve((*to)[i]);
    const bool same = dim.known() && i < x.shape.size() && context.dims().Equal(dim, x.shape[i]);
    if (allows_zero && dim.is(0)) return std::nullopt;
    if (dim.is_number()) {
      was_open = was_open || dim.is(-1);
      open += dim.is(-1) ? 1 : 0;
      target.push_back(dim.number());
    } else {
      open += same ? 0 : 1;
      target.push_back(same ? 0 : -1);
    }
    const Dim length = target.back() == 0 ? (i < x.shape.size() ? x.shape[i] : Dim()) : dim;
    positive = positive && (target.back() == -1 || context.dims().AtLeast(length, Dim::Of(1)));
  }
  if (open > 1 || (open == 1 && !was_open && !positive)) return std::nullopt;
  if (allows_zero) return Tidied::Of(build::Reshape(Term::Of(node.input(0)), target));  // without: its zeros are dims of x
  return Tidied::Reads(1, build::Numbers(target));
}

// A dim that x has stays where the target has 1.
std::optional<Tidied> WriteExpand(const TidyContext& context, const Node& node) {
  const auto* const to = ComputedElements(context, node, 1);
  const Fact& x = context.facts().Of(node.input(0));
  if (to == nullptr || !x.has_rank) return std::nullopt;
  std::vector<int64_t> target;
  for (size_t i = 0; i < to->size(); ++i) {
    const Dim dim = context.dims().Resolve((*to)[i]);
    const size_t behind = to->size() - i;
    const bool same = dim.known() && behind <= x.shape.size() && context.dims().Equal(dim, x.shape[x.shape.size() - behind]);
    if (!dim.is_number() && !same) return std::nullopt;
    target.push_back(dim.is_number() ? dim.number() : 1);
  }
  return Tidied::Reads(1, build::Numbers(target));
}

// An end that is the length of the axis is the end.
std::optional<Tidied> WriteSlice(const TidyContext& context, const Node& node) {
  constexpr size_t kEnds = 2, kAxes = 3, kSteps = 4;
  const auto* const ends = ComputedElements(context, node, kEnds);
  const Fact& x = context.facts().Of(node.input(0));
  if (ends == nullptr || !x.has_rank) return std::nullopt;
  const auto axes = IntsParameter(context.facts(), node, "axes", kAxes);
  const auto steps = IntsParameter(context.facts(), node, "steps", kSteps);
  if ((node.input(kAxes) != nullptr && !axes.has_value()) || (node.input(kSteps) != nullptr && !steps.has_value()))
    return std::nullopt;
  std::vector<int64_t> numbers;
  for (size_t i = 0; i < ends->size(); ++i) {
    const int64_t written = axes.has_value() && i < axes->size() ? (*axes)[i] : static_cast<int64_t>(i);
    const int64_t axis = NormalizeAxis(written, x.rank());
    const Dim end = context.dims().Resolve((*ends)[i]);
    if (axis < 0 || (steps.has_value() && (i >= steps->size() || (*steps)[i] < 1))) return std::nullopt;
    const Dim length = x.shape[static_cast<size_t>(axis)];
    if (!end.known() || (!end.is_number() && !context.dims().AtLeast(end, length))) return std::nullopt;
    numbers.push_back(end.is_number() ? end.number() : kEndless);
  }
  if (context.facts().Of(node.input(kEnds)).type != DataType::kInt64) return std::nullopt;
  return Tidied::Reads(kEnds, build::Numbers(numbers));
}

}  // namespace

std::optional<Tidied> AskShapes(TidyContext& context, const Node& node) {
  if (IsOp(node, "Reshape")) return WriteReshape(context, node);
  return IsOp(node, "Expand") ? WriteExpand(context, node) : WriteSlice(context, node);
}

}  // namespace ascend_fuse
