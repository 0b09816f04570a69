// Joins: a Concat within a Concat is one, what a Slice or a Gather takes of a Concat within one of its parts is taken of that
// part, and a Slice of a Slice is one.
#include <algorithm>
#include <cstdint>
#include <functional>
#include <numeric>
#include <optional>
#include <vector>

#include "ir/constant_tensor.h"
#include "ir/movement/axis.h"
#include "passes/tidy/kinds.h"

namespace ascend_fuse {
namespace {

// The axis of a Concat from the front; -1 where its rank is not known.
int64_t AxisOf(const TidyContext& context, const Node& concat) {
  return NormalizeAxis(IntAttribute(concat, "axis").value_or(1), context.facts().Of(concat.output()).rank());
}

std::optional<Tidied> WithinConcat(TidyContext& context, const Node& node) {
  const int64_t axis = AxisOf(context, node);
  if (axis < 0) return std::nullopt;
  std::vector<Term> parts;
  bool found = false;
  for (size_t i = 0; i < node.input_count; ++i) {
    const Node* const part = Before(node, i, "Concat");
    const bool inner = part != nullptr && ReadOnce(*part->output()) && AxisOf(context, *part) == axis;
    found = found || inner;
    if (!inner) {
      parts.push_back(Term::Of(node.input(i)));
      continue;
    }
    for (const Use& use : part->inputs()) parts.push_back(Term::Of(use.value));
  }
  if (!found) return std::nullopt;
  return Tidied::Of(build::Concat(std::move(parts), axis));
}

// The constant factor of a Mul, and what it is multiplied with.
struct Scaled {
  const Value* factor = nullptr;
  const Value* x = nullptr;
  size_t side = 0;  // of the factor
};

std::optional<Scaled> ScaledBy(const Node& mul) {
  for (const size_t side : {size_t{1}, size_t{0}}) {
    const Value* const factor = mul.input(side);
    if (factor != nullptr && ConstantTensor(*factor).has_value()) return Scaled{factor, mul.input(1 - side), side};
  }
  return std::nullopt;
}

// Products of one tensor, which has one element along the axis, with constants: a product with the constants joined.
std::optional<Tidied> ConcatOfProducts(TidyContext& context, const Node& node) {
  constexpr int64_t kMostElements = 128;  // of the joined constant
  const int64_t axis = AxisOf(context, node);
  const int rank = context.facts().Of(node.output()).rank();
  std::vector<Term> factors;
  std::optional<Scaled> first;
  std::vector<int64_t> others;  // dims of the first factor
  int64_t elements = 0;
  for (size_t i = 0; axis >= 0 && i < node.input_count; ++i) {
    const Node* const mul = Before(node, i, "Mul");
    const auto scaled = mul != nullptr && !mul->output()->is_graph_output ? ScaledBy(*mul) : std::nullopt;
    if (!scaled.has_value() || (first.has_value() && (first->x != scaled->x || first->side != scaled->side))) return std::nullopt;
    for (const Use& use : LiveUses(*mul->output())) {
      if (use.user != &node) return std::nullopt;
    }
    const Tensor factor = *ConstantTensor(*scaled->factor);
    std::vector<int64_t> dims(factor.dims.begin(), factor.dims.end());
    const int64_t own = axis - rank + static_cast<int64_t>(dims.size());
    if (own < 0 || context.facts().Of(scaled->factor).elements == nullptr) return std::nullopt;
    const Fact& part = context.facts().Of(mul->output());
    if (part.rank() != rank) return std::nullopt;  // a file may join what cannot be joined
    if (!context.dims().Resolve(part.shape[static_cast<size_t>(axis)]).is(dims[static_cast<size_t>(own)])) return std::nullopt;
    elements += std::accumulate(dims.begin(), dims.end(), int64_t{1}, std::multiplies<>());
    dims[static_cast<size_t>(own)] = 1;
    if (first.has_value() && dims != others) return std::nullopt;
    first = scaled;
    others = dims;
    factors.push_back(Term::Of(scaled->factor));
  }
  const Fact& x = context.facts().Of(first.has_value() ? first->x : nullptr);
  if (factors.size() < 2 || elements > kMostElements || !x.has_rank) return std::nullopt;
  const int64_t along = axis - rank + x.rank();
  if (along >= 0 && !context.dims().Resolve(x.shape[static_cast<size_t>(along)]).is(1)) return std::nullopt;
  const Term joined = build::Concat(std::move(factors), axis - rank + static_cast<int64_t>(others.size()));
  const Term whole = Term::Of(first->x);
  return Tidied::Of(build::Op("Mul", first->side == 1 ? std::vector<Term>{whole, joined} : std::vector<Term>{joined, whole}));
}

// The places [first, last) of one axis, from the front.
struct Range {
  int64_t axis = 0;
  int64_t first = 0;
  int64_t last = 0;  // kToTheEnd: the end
};
constexpr int64_t kToTheEnd = -1;

// What a Slice of one axis in steps of 1 takes; numbers from the front only.
std::optional<Range> RangeOf(const TidyContext& context, const Node& slice) {
  constexpr size_t kStarts = 1, kEnds = 2, kAxes = 3, kSteps = 4;
  const Fact& x = context.facts().Of(slice.input(0));
  const auto starts = IntsParameter(context.facts(), slice, "starts", kStarts);
  const auto ends = IntsParameter(context.facts(), slice, "ends", kEnds);
  const auto axes = IntsParameter(context.facts(), slice, "axes", kAxes);
  if (!x.has_rank || !starts.has_value() || !ends.has_value() || starts->size() != 1 || ends->size() != 1) return std::nullopt;
  if (slice.input(kAxes) != nullptr && (!axes.has_value() || axes->size() != 1)) return std::nullopt;
  if (slice.input(kSteps) != nullptr) {
    const auto steps = IntsParameter(context.facts(), slice, "steps", kSteps);
    if (!steps.has_value() || *steps != std::vector<int64_t>{1}) return std::nullopt;
  }
  Range range;
  range.axis = NormalizeAxis(axes.has_value() && !axes->empty() ? axes->front() : 0, x.rank());
  range.first = starts->front();
  if (range.axis < 0 || range.first < 0 || ends->front() < 0) return std::nullopt;
  const Dim length = context.dims().Resolve(x.shape[static_cast<size_t>(range.axis)]);
  range.last = ends->front() >= kEndless ? kToTheEnd : ends->front();
  if (length.is_number()) range.last = std::min(ends->front(), length.number());
  return range;
}

// The part of a Concat in which the places [first, last) lie, which are counted from its beginning from there on.
std::optional<Term> PartWith(const TidyContext& context, const Node& concat, int64_t* first, int64_t* last) {
  const int64_t axis = AxisOf(context, concat);
  const int rank = context.facts().Of(concat.output()).rank();
  int64_t begin = 0;
  for (const Use& use : concat.inputs()) {
    const Fact& part = context.facts().Of(use.value);
    const Dim length = axis >= 0 && part.rank() == rank ? context.dims().Resolve(part.shape[static_cast<size_t>(axis)]) : Dim();
    if (!length.is_number()) return std::nullopt;
    const int64_t end = begin + length.number();
    if (*first >= begin && *last <= end && *first < *last) {
      *first -= begin;
      *last -= begin;
      return Term::Of(use.value);
    }
    begin = end;
  }
  return std::nullopt;
}

std::optional<Tidied> SliceOfConcat(TidyContext& context, const Node& node) {
  const Node* const concat = Before(node, 0, "Concat");
  auto range = concat != nullptr ? RangeOf(context, node) : std::nullopt;
  if (!range.has_value() || range->last < 0 || AxisOf(context, *concat) != range->axis) return std::nullopt;
  const auto part = PartWith(context, *concat, &range->first, &range->last);
  if (!part.has_value()) return std::nullopt;
  return Tidied::Of(build::Slice(*part, range->first, range->last, range->axis));
}

// Gather (Concat (...), i) of one index.
std::optional<Tidied> GatherOfConcat(TidyContext& context, const Node& node) {
  const Node* const concat = Before(node, 0, "Concat");
  const Fact& index = context.facts().Of(node.input(1));
  if (concat == nullptr || index.elements == nullptr || index.elements->integers.size() != 1 || index.rank() > 1)
    return std::nullopt;
  const int64_t axis = AxisOf(context, *concat);
  const Dim place = index.elements->integers[0];
  if (axis < 0 || NormalizeAxis(IntAttribute(node, "axis").value_or(0), context.facts().Of(concat->output()).rank()) != axis ||
      !place.is_number() || place.number() < 0) {
    return std::nullopt;
  }
  int64_t first = place.number(), last = first + 1;
  const auto part = PartWith(context, *concat, &first, &last);
  if (!part.has_value()) return std::nullopt;
  return Tidied::Of(build::Gather(*part, IndexOf(context, node, first, index.rank()), axis));
}

// Slice of Slice: along one axis the second counts from where the first begins; along two axes both say what they take.
std::optional<Tidied> SliceOfSlice(TidyContext& context, const Node& node) {
  const Node* const before = Before(node, 0, "Slice");
  if (before == nullptr || !ReadOnce(*before->output())) return std::nullopt;
  const auto first = RangeOf(context, *before);
  const auto second = RangeOf(context, node);
  if (!first.has_value() || !second.has_value() || first->axis != second->axis) return std::nullopt;
  const int64_t begin = first->first + second->first;
  int64_t end = second->last == kToTheEnd ? first->last : first->first + second->last;
  if (first->last != kToTheEnd && end != kToTheEnd) end = std::min(end, first->last);
  if (end == kToTheEnd) end = kEndless;
  return Tidied::Of(build::Slice(Term::Of(before->input(0)), begin, end, first->axis));
}

// Range (0, n) + s is Range (s, n + s), whose end is a sum of numbers, which there often is already.
std::optional<Tidied> SumOfRange(TidyContext& context, const Node& node) {
  const auto is_number = [&](const Value* value) {
    const Fact& fact = context.facts().Of(value);
    return value != nullptr && fact.rank() == 0 && fact.type == DataType::kInt64 && fact.elements != nullptr;
  };
  for (const size_t side : {size_t{0}, size_t{1}}) {
    const Node* const range = Before(node, side, "Range");
    if (range == nullptr || !ReadOnce(*range->output()) || !is_number(node.input(1 - side)) || !is_number(range->input(1)))
      continue;
    const Fact& start = context.facts().Of(range->input(0));
    const Fact& step = context.facts().Of(range->input(2));
    const bool counts = is_number(range->input(0)) && is_number(range->input(2)) && start.elements->integers[0].is(0) &&
                        step.elements->integers[0].is(1);
    if (!counts) continue;
    const Term number = Term::Of(node.input(1 - side));
    return Tidied::Of(
        build::Op("Range", {number, build::Op("Add", {number, Term::Of(range->input(1))}), Term::Of(range->input(2))}));
  }
  return std::nullopt;
}

}  // namespace

std::optional<Tidied> AskJoins(TidyContext& context, const Node& node) {
  if (IsOp(node, "Concat")) {
    if (auto tidied = ConcatOfProducts(context, node); tidied.has_value()) return tidied;
    return WithinConcat(context, node);
  }
  if (IsOp(node, "Add")) return SumOfRange(context, node);
  if (IsOp(node, "Gather")) return GatherOfConcat(context, node);
  if (auto tidied = SliceOfConcat(context, node); tidied.has_value()) return tidied;
  return SliceOfSlice(context, node);
}

}  // namespace ascend_fuse
