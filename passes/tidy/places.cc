// Places: rows that are picked or written one by one at indices that are the places themselves. GatherND (x, (b, k)), where b and
// k are a Range along an axis each, is x with axes of 1 between, and ScatterND at all places is what is written. Masks of
// transformers are indexed so.
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "ir/movement/axis.h"
#include "ir/movement/movement.h"
#include "passes/tidy/kinds.h"

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

// The axis along which a Range or a constant counts 0, 1, 2 ...; -1 for anything else.
int AxisOfCount(const TidyContext& context, const Value& value) {
  const Fact& fact = context.facts().Of(&value);
  if (value.producer != nullptr && IsOp(*value.producer, "Range")) {
    const auto number = [&](size_t input, int64_t wanted) {
      const Fact& parameter = context.facts().Of(value.producer->input(input));
      return parameter.elements != nullptr && parameter.elements->integers.size() == 1 &&
             parameter.elements->integers[0].is(wanted);
    };
    return number(0, 0) && number(2, 1) ? 0 : -1;
  }
  if (fact.elements == nullptr || fact.elements->integers.empty() || !fact.has_rank) return -1;
  for (size_t i = 0; i < fact.elements->integers.size(); ++i) {
    if (!fact.elements->integers[i].is(static_cast<int64_t>(i))) return -1;
  }
  int axis = -1;
  for (int i = 0; i < fact.rank(); ++i) {
    if (context.dims().Resolve(fact.shape[static_cast<size_t>(i)]).is(1)) continue;
    if (axis >= 0) return -1;
    axis = i;
  }
  return axis;
}

// The axis along which every element is its place, whatever its places along others are; -1 where there is none.
int AxisOfPlaces(const TidyContext& context, const Value* value) {
  std::vector<const Movement*> path;
  int axis = -1;
  for (int i = 0; i < kMostSteps && value != nullptr; ++i) {
    axis = AxisOfCount(context, *value);
    if (axis >= 0) break;
    const Movement* const movement = context.facts().MovementOf(value);
    const bool follows = movement != nullptr && movement->only() != nullptr && movement->only()->known &&
                         movement->places.empty() &&
                         (movement->kind == MovementKind::kKeepsOrder || movement->kind == MovementKind::kCopies);
    if (!follows) return -1;
    path.push_back(movement);
    value = movement->node->input(movement->only()->operand);
  }
  for (auto step = path.rbegin(); step != path.rend() && axis >= 0; ++step) {
    const MovedPart& part = *(*step)->only();
    const Fact& from = context.facts().Of((*step)->node->input(part.operand));
    const Fact& to = context.facts().Of((*step)->node->output());
    if ((*step)->kind == MovementKind::kKeepsOrder) {
      axis = AxisAmongOnes(context, from, to, axis);
      continue;
    }
    if (part.viewed() || static_cast<size_t>(axis) >= part.axes.size() || !to.has_rank) return -1;
    const AxisSource& source = part.axes[static_cast<size_t>(axis)];
    const bool same = source.axis >= 0 && source.axis < to.rank() &&
                      (source.IsPlace(source.axis) || source.kind == AxisSource::Kind::kBroadcast ||
                       source.kind == AxisSource::Kind::kWrapped) &&
                      context.dims().Equal(from.shape[static_cast<size_t>(axis)], to.shape[static_cast<size_t>(source.axis)]);
    axis = same ? source.axis : -1;
  }
  return axis;
}

// The axes of `indices` along which its components, which stand along its last axis, are the places; empty where one is not.
std::vector<int64_t> AxesOfComponents(const TidyContext& context, const Value* indices) {
  const Movement* const movement = indices != nullptr ? context.facts().MovementOf(indices) : nullptr;
  const Fact& all = context.facts().Of(indices);
  if (movement == nullptr || movement->kind != MovementKind::kJoins || !all.has_rank || movement->parts.empty()) return {};
  std::vector<int64_t> axes;
  for (const MovedPart& part : movement->parts) {
    const Value* const component = movement->node->input(part.operand);
    const Fact& fact = context.facts().Of(component);
    if (!part.known || part.windows.size() != 1 || part.windows[0].axis != all.rank() - 1 || !part.windows[0].count.is(1))
      return {};
    const int axis = AxisOfPlaces(context, component);
    if (axis < 0 || axis >= fact.rank() - 1) return {};
    axes.push_back(axis);
  }
  return axes;
}

// GatherND: each component goes over all of its axis, in the order of the axes, and along no other axis there is more than one.
std::optional<Tidied> Gathered(TidyContext& context, const Node& node) {
  const Fact& x = context.facts().Of(node.input(0));
  const Fact& indices = context.facts().Of(node.input(1));
  if (!x.has_rank || IntAttribute(node, "batch_dims").value_or(0) != 0) return std::nullopt;
  const std::vector<int64_t> axes = AxesOfComponents(context, node.input(1));
  if (axes.empty()) return std::nullopt;
  std::vector<int64_t> added;
  size_t component = 0;
  for (int64_t axis = 0; axis + 1 < indices.rank(); ++axis) {
    const Dim dim = context.dims().Resolve(indices.shape[static_cast<size_t>(axis)]);
    if (component < axes.size() && axes[component] == axis) {
      if (!context.dims().Equal(dim, x.shape[component])) return std::nullopt;
      ++component;
    } else if (dim.is(1)) {
      added.push_back(axis);
    } else {
      return std::nullopt;
    }
  }
  if (component < axes.size()) return std::nullopt;  // two along one axis, or in another order
  return Tidied::Of(added.empty() ? Term::Of(node.input(0)) : build::Unsqueeze(Term::Of(node.input(0)), added));
}

// ScatterND: the components go over the first axes, so that all is written, each element at its place.
std::optional<Tidied> Written(TidyContext& context, const Node& node) {
  const Fact& x = context.facts().Of(node.input(0));
  const Fact& updates = context.facts().Of(node.input(2));
  if (!x.has_rank || !updates.has_rank || StringAttribute(node, "reduction").value_or("none") != "none") return std::nullopt;
  const std::vector<int64_t> axes = AxesOfComponents(context, node.input(1));
  if (axes.empty() || context.facts().Of(node.input(1)).rank() != static_cast<int>(axes.size()) + 1) return std::nullopt;
  for (size_t i = 0; i < axes.size(); ++i) {
    if (axes[i] != static_cast<int64_t>(i)) return std::nullopt;
  }
  if (!context.dims().Equal(x.shape, updates.shape)) return std::nullopt;
  return Tidied::Of(Term::Of(node.input(2)));
}

}  // namespace

std::optional<Tidied> AskPlaces(TidyContext& context, const Node& node) {
  return IsOp(node, "GatherND") ? Gathered(context, node) : Written(context, node);
}

}  // namespace ascend_fuse
