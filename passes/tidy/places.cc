// Places: rows that are picked or written one by one at indices that count places. GatherND (x, (b, k)), where b and k are a
// Range along an axis each, is x with axes of 1 between, and ScatterND at ranges of places is a Concat of what stays and what is
// written. Masks of transformers are indexed so, and slices are assigned so in exports with computed indices
// (docs/sources/surgery.md).
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "ir/movement/axis.h"
#include "ir/movement/movement.h"
#include "passes/tidy/kinds.h"
#include "patterns/analysis/constant_tensor.h"

namespace ascend_fuse {
namespace {

constexpr int kMostSteps = 32;

// The axis of `to` that is axis `axis` of `from` where both have the same dims in the same order but for ones; -1 elsewhere.
int AxisAmongOnes(const TidyContext& context, const Fact& from, const Fact& to, int axis) {
  if (!from.has_rank || !to.has_rank) return -1;
  int at = 0;
  int found = -1;
  for (int i = 0; i < from.rank(); ++i) {
    const Dim dim = context.dims().Resolve(from.shape[static_cast<size_t>(i)]);
    if (dim.is(1) && i != axis) continue;
    while (at < to.rank() && !dim.is(1) && context.dims().Resolve(to.shape[static_cast<size_t>(at)]).is(1)) ++at;
    if (at >= to.rank() || !context.dims().Equal(dim, to.shape[static_cast<size_t>(at)])) return -1;
    if (i == axis) found = at;
    ++at;
  }
  for (; at < to.rank(); ++at) {
    if (!context.dims().Resolve(to.shape[static_cast<size_t>(at)]).is(1)) return -1;
  }
  return found;
}

// What counts: element p along `axis` is start + p, whatever its places along other axes are.
struct Count {
  static constexpr int kNoAxis = -1;  // all elements are `start`
  int axis = kNoAxis;
  int64_t start = 0;
};

std::optional<Count> CountOfRange(const TidyContext& context, const Node& range) {
  const auto number = [&](size_t input) -> std::optional<int64_t> {
    const Fact& fact = context.facts().Of(range.input(input));
    if (fact.elements == nullptr || fact.elements->integers.size() != 1 || !fact.elements->integers[0].is_number()) {
      return std::nullopt;
    }
    return fact.elements->integers[0].number();
  };
  constexpr size_t kStart = 0, kStep = 2;
  const auto start = number(kStart);
  return start.has_value() && number(kStep) == 1 ? std::optional<Count>(Count{0, *start}) : std::nullopt;
}

// Of a Range, and of a constant.
std::optional<Count> CountOf(const TidyContext& context, const Value& value) {
  const Fact& fact = context.facts().Of(&value);
  if (value.producer != nullptr && IsOp(*value.producer, "Range")) return CountOfRange(context, *value.producer);
  if (fact.elements == nullptr || fact.elements->integers.empty() || !fact.has_rank) return std::nullopt;
  const auto& elements = fact.elements->integers;
  if (!elements[0].is_number()) return std::nullopt;
  Count count = {Count::kNoAxis, elements[0].number()};
  if (std::all_of(elements.begin(), elements.end(), [&](Dim element) { return element.is(count.start); })) return count;
  for (size_t i = 0; i < elements.size(); ++i) {
    if (!elements[i].is(count.start + static_cast<int64_t>(i))) return std::nullopt;
  }
  for (int i = 0; i < fact.rank(); ++i) {
    if (context.dims().Resolve(fact.shape[static_cast<size_t>(i)]).is(1)) continue;
    if (count.axis >= 0) return std::nullopt;
    count.axis = i;
  }
  return count;
}

// Which axis of the result of a movement is axis `axis` of its operand, all of which it has; -1 where none is.
int AxisAfter(const TidyContext& context, const Movement& movement, int axis) {
  const MovedPart& part = *movement.only();
  const Fact& from = context.facts().Of(movement.node->input(part.operand));
  const Fact& to = context.facts().Of(movement.node->output());
  if (movement.kind == MovementKind::kKeepsOrder) return AxisAmongOnes(context, from, to, axis);
  if (part.viewed() || static_cast<size_t>(axis) >= part.axes.size() || !to.has_rank) return -1;
  const AxisSource& source = part.axes[static_cast<size_t>(axis)];
  const bool along =
      source.IsPlace(source.axis) || source.kind == AxisSource::Kind::kBroadcast || source.kind == AxisSource::Kind::kWrapped;
  const bool same = along && source.axis >= 0 && source.axis < to.rank() &&
                    context.dims().Equal(from.shape[static_cast<size_t>(axis)], to.shape[static_cast<size_t>(source.axis)]);
  return same ? source.axis : -1;
}

// The same of what is repeated and viewed in other shapes.
std::optional<Count> CountAlong(const TidyContext& context, const Value* value) {
  std::vector<const Movement*> path;
  std::optional<Count> count;
  for (int i = 0; i < kMostSteps && value != nullptr; ++i) {
    count = CountOf(context, *value);
    if (count.has_value()) break;
    const Movement* const movement = context.facts().MovementOf(value);
    const bool follows = movement != nullptr && movement->only() != nullptr && movement->only()->known &&
                         movement->places.empty() &&
                         (movement->kind == MovementKind::kKeepsOrder || movement->kind == MovementKind::kCopies);
    if (!follows) return std::nullopt;
    path.push_back(movement);
    value = movement->node->input(movement->only()->operand);
  }
  for (auto step = path.rbegin(); step != path.rend() && count.has_value() && count->axis >= 0; ++step) {
    count->axis = AxisAfter(context, **step, count->axis);
    if (count->axis < 0) return std::nullopt;
  }
  return count;
}

// The same of component `component` of a constant, whose components stand along its last axis.
std::optional<Count> CountOfComponent(absl::Span<const int64_t> elements, absl::Span<const int64_t> dims, size_t component) {
  const auto depth = static_cast<size_t>(dims.back());
  const auto at = [&](size_t row) { return elements[row * depth + component]; };
  Count count = {Count::kNoAxis, at(0)};
  std::vector<size_t> strides(dims.size() - 1, 1);
  for (size_t axis = strides.size(); axis-- > 1;) strides[axis - 1] = strides[axis] * static_cast<size_t>(dims[axis]);
  for (size_t axis = 0; axis < strides.size() && count.axis < 0; ++axis) {
    if (dims[axis] > 1 && at(strides[axis]) != count.start) count.axis = static_cast<int>(axis);
  }
  const size_t rows = elements.size() / depth;
  for (size_t row = 0; row < rows; ++row) {
    const auto axis = static_cast<size_t>(std::max(count.axis, 0));
    const auto place = count.axis < 0 ? 0 : static_cast<int64_t>(row / strides[axis]) % dims[axis];
    if (at(row) != count.start + place) return std::nullopt;
  }
  return count;
}

std::vector<Count> CountsOfConstant(const TidyContext& context, const Tensor& tensor) {
  constexpr int64_t kMostElements = int64_t{8} << 20;
  if (tensor.type != DataType::kInt64 || tensor.dims.size() < 2) return {};
  const auto elements = ReadIntegers(context.workspace.model(), tensor, kMostElements);
  if (!elements.ok() || elements->empty()) return {};
  std::vector<Count> counts;
  for (int64_t component = 0; component < tensor.dims.back(); ++component) {
    const auto count = CountOfComponent(*elements, tensor.dims, static_cast<size_t>(component));
    if (!count.has_value()) return {};
    counts.push_back(*count);
  }
  return counts;
}

// What the components of `indices`, which stand along its last axis, count; empty where one does not.
std::vector<Count> CountsOf(const TidyContext& context, const Value* indices) {
  if (const auto constant = indices != nullptr ? ConstantTensor(*indices) : std::nullopt; constant.has_value()) {
    return CountsOfConstant(context, *constant);
  }
  const Movement* const movement = indices != nullptr ? context.facts().MovementOf(indices) : nullptr;
  const Fact& all = context.facts().Of(indices);
  if (movement == nullptr || movement->kind != MovementKind::kJoins || !all.has_rank || movement->parts.empty()) return {};
  std::vector<Count> counts;
  for (const MovedPart& part : movement->parts) {
    const bool one =
        part.known && part.windows.size() == 1 && part.windows[0].axis == all.rank() - 1 && part.windows[0].count.is(1);
    const auto count = one ? CountAlong(context, movement->node->input(part.operand)) : std::nullopt;
    if (!count.has_value() || count->axis >= all.rank() - 1) return {};
    counts.push_back(*count);
  }
  return counts;
}

// GatherND: each component goes over all of its axis, in the order of the axes, and along no other axis there is more than one.
std::optional<Tidied> Gathered(TidyContext& context, const Node& node) {
  const Fact& x = context.facts().Of(node.input(0));
  const Fact& indices = context.facts().Of(node.input(1));
  if (!x.has_rank || IntAttribute(node, "batch_dims").value_or(0) != 0) return std::nullopt;
  const std::vector<Count> counts = CountsOf(context, node.input(1));
  if (counts.empty()) return std::nullopt;
  std::vector<int64_t> added;
  size_t component = 0;
  for (int64_t axis = 0; axis + 1 < indices.rank(); ++axis) {
    const Dim dim = context.dims().Resolve(indices.shape[static_cast<size_t>(axis)]);
    if (component < counts.size() && counts[component].axis == axis) {
      if (counts[component].start != 0 || !context.dims().Equal(dim, x.shape[component])) return std::nullopt;
      ++component;
    } else if (dim.is(1)) {
      added.push_back(axis);
    } else {
      return std::nullopt;
    }
  }
  if (component < counts.size()) return std::nullopt;  // two along one axis, or in another order
  return Tidied::Of(added.empty() ? Term::Of(node.input(0)) : build::Unsqueeze(Term::Of(node.input(0)), added));
}

// A range of one axis that is written.
struct Written {
  int64_t axis = 0;
  int64_t first = 0;
  int64_t last = 0;
  int64_t length = 0;  // of the axis
};

// `x` with `part` in these ranges, and everything along the other axes. Each range takes apart what the ones before it leave.
Term WithPart(const Term& x, const Term& part, absl::Span<const Written> ranges) {
  if (ranges.empty()) return part;
  const Written& range = ranges.front();
  const auto slice = [&](int64_t first, int64_t last) { return build::Slice(x, first, last, range.axis); };
  std::vector<Term> parts;
  if (range.first > 0) parts.push_back(slice(0, range.first));
  parts.push_back(ranges.size() == 1 ? part : WithPart(slice(range.first, range.last), part, ranges.subspan(1)));
  if (range.last < range.length) parts.push_back(slice(range.last, range.length));
  return parts.size() == 1 ? parts[0] : build::Concat(std::move(parts), range.axis);
}

// Adds the range of axis `axis` that a component counts, unless that is all of it. False where it is not known.
bool AddRange(const TidyContext& context, const Count& count, int64_t axis, Dim extent, Dim length,
              std::vector<Written>* ranges) {
  if (count.axis == Count::kNoAxis ? !extent.is(1) : count.axis != axis) return false;
  if (count.start == 0 && context.dims().Equal(extent, length)) return true;
  if (!extent.is_number() || !length.is_number()) return false;
  const int64_t first = count.start < 0 ? count.start + length.number() : count.start;
  const int64_t last = first + extent.number();
  // Numbers from below 0 on count from the end, and those after them from the beginning.
  if (first < 0 || extent.number() < 1 || last > length.number() || (count.start < 0 && count.start + extent.number() > 0))
    return false;
  ranges->push_back({axis, first, last, length.number()});
  return true;
}

// ScatterND: the components go over the first axes, each over a range of its own.
std::optional<Tidied> Scattered(TidyContext& context, const Node& node) {
  constexpr size_t kMostRanges = 2;  // two take up to seven nodes
  const Fact& x = context.facts().Of(node.input(0));
  const Fact& indices = context.facts().Of(node.input(1));
  const Fact& updates = context.facts().Of(node.input(2));
  if (!x.has_rank || updates.rank() != x.rank() || StringAttribute(node, "reduction").value_or("none") != "none")
    return std::nullopt;
  const std::vector<Count> counts = CountsOf(context, node.input(1));
  if (counts.empty() || indices.rank() != static_cast<int>(counts.size()) + 1 || counts.size() > x.shape.size())
    return std::nullopt;
  std::vector<Written> ranges;
  for (size_t i = 0; i < x.shape.size(); ++i) {
    const bool indexed = i < counts.size();
    const Dim extent = context.dims().Resolve(indexed ? indices.shape[i] : x.shape[i]);
    const Dim length = context.dims().Resolve(x.shape[i]);
    if (indexed && !AddRange(context, counts[i], static_cast<int64_t>(i), extent, length, &ranges)) return std::nullopt;
    if (!context.dims().Equal(extent, updates.shape[i])) return std::nullopt;
  }
  if (ranges.size() > kMostRanges) return std::nullopt;
  return Tidied::Of(WithPart(Term::Of(node.input(0)), Term::Of(node.input(2)), ranges));
}

}  // namespace

std::optional<Tidied> AskPlaces(TidyContext& context, const Node& node) {
  return IsOp(node, "GatherND") ? Gathered(context, node) : Scattered(context, node);
}

}  // namespace ascend_fuse
