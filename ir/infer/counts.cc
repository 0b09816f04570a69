#include "ir/infer/counts.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "ir/constant_tensor.h"
#include "ir/infer/context.h"
#include "ir/movement/movement.h"

namespace ascend_fuse {
namespace {

constexpr int kMostSteps = 32;  // of a path
constexpr int64_t kMostElements = int64_t{8} << 20;

// The axis of `to` that is axis `axis` of `from` where both have the same dims in the same order but for ones; -1 elsewhere.
int AxisAmongOnes(const CountContext& context, const Fact& from, const Fact& to, int axis) {
  if (!from.has_rank || !to.has_rank) return -1;
  int at = 0;
  int found = -1;
  for (int i = 0; i < from.rank(); ++i) {
    const Dim dim = context.facts.dims().Resolve(from.shape[static_cast<size_t>(i)]);
    if (dim.is(1) && i != axis) continue;
    while (at < to.rank() && !dim.is(1) && context.facts.dims().Resolve(to.shape[static_cast<size_t>(at)]).is(1)) ++at;
    if (at >= to.rank() || !context.facts.dims().Equal(dim, to.shape[static_cast<size_t>(at)])) return -1;
    if (i == axis) found = at;
    ++at;
  }
  for (; at < to.rank(); ++at) {
    if (!context.facts.dims().Resolve(to.shape[static_cast<size_t>(at)]).is(1)) return -1;
  }
  return found;
}

// Which axis of the result of a movement is axis `axis` of its operand, all of which it has; -1 where none is.
int AxisAfter(const CountContext& context, const Movement& movement, int axis) {
  const MovedPart& part = *movement.only();
  const Fact& from = context.facts.Of(movement.node->input(part.operand));
  const Fact& to = context.facts.Of(movement.node->output());
  if (movement.kind == MovementKind::kKeepsOrder) return AxisAmongOnes(context, from, to, axis);
  if (part.viewed() || static_cast<size_t>(axis) >= part.axes.size() || !to.has_rank) return -1;
  const AxisSource& source = part.axes[static_cast<size_t>(axis)];
  const bool along =
      source.IsPlace(source.axis) || source.kind == AxisSource::Kind::kBroadcast || source.kind == AxisSource::Kind::kWrapped;
  const bool same = along && source.axis >= 0 && source.axis < to.rank() &&
                    context.facts.dims().Equal(from.shape[static_cast<size_t>(axis)], to.shape[static_cast<size_t>(source.axis)]);
  return same ? source.axis : -1;
}

std::optional<Dim> OneElement(const CountContext& context, const Value* value) {
  const Fact& fact = context.facts.Of(value);
  if (value == nullptr || fact.elements == nullptr || fact.elements->integers.size() != 1) return std::nullopt;
  const Dim element = context.facts.dims().Resolve(fact.elements->integers[0]);
  return element.known() ? std::optional(element) : std::nullopt;
}

// The step along each axis is that between its first two places, and then all elements must be what that says.
std::optional<Count> CountOfElements(const std::vector<int64_t>& elements, const std::vector<int64_t>& dims) {
  // No place is beyond the largest size, and no sum of such numbers overflows.
  const auto beyond = [](int64_t i) { return i < -infer::kLargestSize || i > infer::kLargestSize; };
  if (elements.empty() || std::any_of(elements.begin(), elements.end(), beyond)) return std::nullopt;
  std::vector<int64_t> strides(dims.size(), 1);
  for (size_t axis = dims.size(); axis-- > 1;) strides[axis - 1] = strides[axis] * dims[axis];
  Count count = {Dim::Of(elements[0]), {}};
  for (size_t axis = 0; axis < dims.size(); ++axis) {
    const int64_t each = dims[axis] > 1 ? elements[static_cast<size_t>(strides[axis])] - elements[0] : 0;
    if (each != 0) count.steps.push_back({static_cast<int>(axis), Dim::Of(each), nullptr});
  }
  for (size_t row = 0; row < elements.size(); ++row) {
    int64_t sum = elements[0];
    for (const CountStep& step : count.steps) {
      const auto axis = static_cast<size_t>(step.axis);
      sum += static_cast<int64_t>(row) / strides[axis] % dims[axis] * step.each.number();
    }
    if (elements[row] != sum) return std::nullopt;
  }
  return count;
}

// Numbers that inference knows, and those of a larger constant.
std::optional<Count> CountOfNumbers(const CountContext& context, const Value& value) {
  const Fact& fact = context.facts.Of(&value);
  if (const auto one = OneElement(context, &value); one.has_value()) return Count{*one, {}};
  std::vector<int64_t> elements, dims;
  if (fact.elements != nullptr && fact.has_rank) {
    for (const Dim element : fact.elements->integers) {
      if (!element.is_number()) return std::nullopt;
      elements.push_back(element.number());
    }
    for (const Dim dim : fact.shape) dims.push_back(context.facts.dims().Resolve(dim).number());
    return CountOfElements(elements, dims);
  }
  const auto tensor = ConstantTensor(value);
  if (!tensor.has_value() || tensor->type != DataType::kInt64) return std::nullopt;
  const auto read = ReadIntegers(context.model, *tensor, kMostElements);
  if (!read.ok()) return std::nullopt;
  elements.assign(read->begin(), read->end());
  dims.assign(tensor->dims.begin(), tensor->dims.end());
  return CountOfElements(elements, dims);
}

std::optional<Count> CountOfRange(const CountContext& context, const Value& range) {
  constexpr size_t kStart = 0, kStep = 2;
  const auto start = OneElement(context, range.producer->input(kStart));
  const auto step = OneElement(context, range.producer->input(kStep));
  if (!start.has_value() || !step.has_value() || !step->is(1)) return std::nullopt;
  return Count{*start, {{0, Dim::Of(1), start->is(0) ? &range : nullptr}}};
}

// What is counted at the end of a path, which only moves elements and changes between types that hold them.
struct Path {
  const Value* end = nullptr;
  std::vector<const Movement*> moves;  // the last one first
};

Path PathOf(const CountContext& context, const Value& value) {
  Path path = {&value, {}};
  for (int i = 0; i < kMostSteps; ++i) {
    const Node* const node = path.end->producer;
    if (node == nullptr || CountOfNumbers(context, *path.end).has_value()) break;
    const Movement* const movement = context.facts.MovementOf(path.end);
    const bool follows = movement != nullptr && movement->only() != nullptr && movement->only()->known &&
                         movement->places.empty() &&
                         (movement->kind == MovementKind::kKeepsOrder || movement->kind == MovementKind::kCopies);
    if (follows) {
      path.moves.push_back(movement);
      path.end = node->input(movement->only()->operand);
    } else if (IsOp(*node, "Cast") && IsInteger(context.facts.Of(path.end).type) && node->input(0) != nullptr &&
               context.fits_in_32_bits(*node->input(0))) {
      path.end = node->input(0);
    } else {
      break;
    }
  }
  return path;
}

// Each step along the axis of the end of the path that its axis becomes.
bool Follow(const CountContext& context, const Path& path, Count* count) {
  for (auto move = path.moves.rbegin(); move != path.moves.rend(); ++move) {
    for (CountStep& step : count->steps) {
      step.axis = AxisAfter(context, **move, step.axis);
      if (step.axis < 0) return false;
    }
  }
  return true;
}

// The steps of an operand along the axes of what it is broadcast to: each must be as long there.
bool Broadcast(const CountContext& context, const Fact& from, const Fact& to, Count* count) {
  const int more = to.rank() - from.rank();
  if (!from.has_rank || !to.has_rank || more < 0) return false;
  for (CountStep& step : count->steps) {
    const Dim own = from.shape[static_cast<size_t>(step.axis)];
    step.axis += more;
    if (!context.facts.dims().Equal(own, to.shape[static_cast<size_t>(step.axis)])) return false;
  }
  return true;
}

Count Sum(DimTable& dims, const Count& a, const Count& b) {
  Count sum = {dims.Add(a.start, b.start), a.steps};
  for (const CountStep& step : b.steps) {
    const auto at = std::find_if(sum.steps.begin(), sum.steps.end(), [&](const CountStep& own) { return own.axis == step.axis; });
    if (at == sum.steps.end()) {
      sum.steps.push_back(step);
    } else {
      *at = {step.axis, dims.Add(at->each, step.each), nullptr};
    }
  }
  std::sort(sum.steps.begin(), sum.steps.end(), [](const CountStep& x, const CountStep& y) { return x.axis < y.axis; });
  return sum;
}

std::optional<Count> Product(DimTable& dims, const Count& a, const Count& b) {
  if (!a.steps.empty() && !b.steps.empty()) return std::nullopt;
  const Count& factor = a.steps.empty() ? a : b;
  Count product = a.steps.empty() ? b : a;
  product.start = dims.Mul(product.start, factor.start);
  for (CountStep& step : product.steps) step.each = dims.Mul(step.each, factor.start);
  return product;
}

std::optional<Count> CountWithin(const CountContext& context, const Value& value, int depth) {
  constexpr int kDeepest = 4;  // sums of products of ranges
  const Path path = PathOf(context, value);
  const Node* const node = path.end->producer;
  std::optional<Count> count = CountOfNumbers(context, *path.end);
  if (!count.has_value() && node != nullptr && IsOp(*node, "Range")) count = CountOfRange(context, *path.end);
  if (!count.has_value() && node != nullptr && depth < kDeepest && (IsOp(*node, "Add") || IsOp(*node, "Mul"))) {
    const Fact& all = context.facts.Of(path.end);
    auto a = node->input(0) != nullptr ? CountWithin(context, *node->input(0), depth + 1) : std::nullopt;
    auto b = node->input(1) != nullptr ? CountWithin(context, *node->input(1), depth + 1) : std::nullopt;
    if (!a.has_value() || !b.has_value() || !Broadcast(context, context.facts.Of(node->input(0)), all, &*a) ||
        !Broadcast(context, context.facts.Of(node->input(1)), all, &*b)) {
      return std::nullopt;
    }
    DimTable& dims = context.facts.dims();
    count = IsOp(*node, "Add") ? std::optional(Sum(dims, *a, *b)) : Product(dims, *a, *b);
  }
  if (!count.has_value() || !Follow(context, path, &*count)) return std::nullopt;
  return count;
}

// Component `component` of a constant, whose components stand along its last axis.
std::optional<Count> CountOfComponent(absl::Span<const int64_t> elements, const std::vector<int64_t>& dims, size_t component) {
  const auto depth = static_cast<size_t>(dims.back());
  std::vector<int64_t> own;
  for (size_t i = component; i < elements.size(); i += depth) own.push_back(elements[i]);
  return CountOfElements(own, std::vector<int64_t>(dims.begin(), dims.end() - 1));
}

std::vector<Count> RunsOfConstant(const CountContext& context, const Tensor& tensor) {
  if (tensor.type != DataType::kInt64 || tensor.dims.size() < 2) return {};
  const auto elements = ReadIntegers(context.model, tensor, kMostElements);
  if (!elements.ok() || elements->empty()) return {};
  const std::vector<int64_t> dims(tensor.dims.begin(), tensor.dims.end());
  std::vector<Count> runs;
  for (int64_t component = 0; component < dims.back(); ++component) {
    const auto run = CountOfComponent(*elements, dims, static_cast<size_t>(component));
    if (!run.has_value() || !run->IsRun()) return {};
    runs.push_back(*run);
  }
  return runs;
}

}  // namespace

std::optional<Count> CountOf(const CountContext& context, const Value& value) { return CountWithin(context, value, 0); }

std::vector<Count> RunsOf(const CountContext& context, const Value* indices) {
  if (const auto constant = indices != nullptr ? ConstantTensor(*indices) : std::nullopt; constant.has_value()) {
    return RunsOfConstant(context, *constant);
  }
  const Fact& all = context.facts.Of(indices);
  if (all.rank() > 1 && context.facts.dims().Resolve(all.shape.back()).is(1)) {
    const auto run = CountOf(context, *indices);
    const bool rows = run.has_value() && run->IsRun() && (run->steps.empty() || run->steps[0].axis + 1 < all.rank());
    return rows ? std::vector{*run} : std::vector<Count>();
  }
  const Movement* const movement = indices != nullptr ? context.facts.MovementOf(indices) : nullptr;
  if (movement == nullptr || movement->kind != MovementKind::kJoins || !all.has_rank || movement->parts.empty()) return {};
  std::vector<Count> runs;
  for (const MovedPart& part : movement->parts) {
    const bool one =
        part.known && part.windows.size() == 1 && part.windows[0].axis == all.rank() - 1 && part.windows[0].count.is(1);
    const auto run = one ? CountOf(context, *movement->node->input(part.operand)) : std::nullopt;
    if (!run.has_value() || !run->IsRun()) return {};
    if (!run->steps.empty() && run->steps[0].axis >= all.rank() - 1) return {};
    runs.push_back(*run);
  }
  return runs;
}

}  // namespace ascend_fuse
