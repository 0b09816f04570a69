// Splits: Slices of one tensor that take an axis apart, each a part and together all of it, are one Split. All parts are moved at
// once then, and by one kernel.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "ir/movement/movement.h"
#include "passes/tidy/kinds.h"

namespace ascend_fuse {
namespace {

// What a Slice takes: the places [first, first + count) of one axis, and everything along the others.
struct Part {
  const Value* value = nullptr;
  int axis = 0;
  int64_t first = 0;
  int64_t count = 0;
};

std::optional<Part> PartOf(const TidyContext& context, const Node& node) {
  const Value* const value = node.output();
  const Movement* const movement = value != nullptr && IsOp(node, "Slice") ? context.facts().MovementOf(value) : nullptr;
  const Fact& x = context.facts().Of(node.input(0));
  const Fact& y = context.facts().Of(value);
  if (movement == nullptr || movement->only() == nullptr || !movement->only()->known || !x.has_rank || x.rank() != y.rank()) {
    return std::nullopt;
  }
  const auto& axes = movement->only()->axes;
  std::optional<Part> part;
  for (int i = 0; i < x.rank() && static_cast<size_t>(i) < axes.size(); ++i) {
    const AxisSource& source = axes[static_cast<size_t>(i)];
    const Dim length = context.dims().Resolve(y.shape[static_cast<size_t>(i)]);
    if (source.IsPlace(i) && context.dims().Equal(length, x.shape[static_cast<size_t>(i)])) continue;
    const bool whole_steps = source.kind == AxisSource::Kind::kPlace && source.axis == i && source.step == 1;
    const Dim start = context.dims().Resolve(source.start);
    if (part.has_value() || !whole_steps || !start.is_number() || !length.is_number()) return std::nullopt;
    part = Part{value, i, start.number(), length.number()};
  }
  return part;
}

// All Slices of `x` along the axis, if they are its parts in order and leave nothing out; else empty.
std::vector<Part> PartsOf(const TidyContext& context, const Node& node, const Value& x, int axis) {
  const Dim length = context.dims().Resolve(context.facts().Of(&x).shape[static_cast<size_t>(axis)]);
  if (!length.is_number()) return {};
  std::vector<Part> parts;
  for (const Use& use : LiveUses(x)) {
    if (use.index != 0 || use.user->graph != node.graph) continue;
    const auto part = PartOf(context, *use.user);
    if (part.has_value() && part->axis == axis) parts.push_back(*part);
  }
  std::sort(parts.begin(), parts.end(), [](const Part& a, const Part& b) { return a.first < b.first; });
  int64_t at = 0;
  for (const Part& part : parts) {
    if (part.first != at || part.count < 1) return {};
    at += part.count;
  }
  return at == length.number() && parts.size() > 1 ? parts : std::vector<Part>();
}

}  // namespace

std::optional<Tidied> AskSplits(TidyContext& context, const Node& node) {
  const Value* const x = node.input(0);
  const auto own = x != nullptr ? PartOf(context, node) : std::nullopt;
  if (!own.has_value() || context.undivided.contains({node.graph, x, own->axis})) return std::nullopt;
  const std::vector<Part> parts = PartsOf(context, node, *x, own->axis);
  if (parts.empty()) {
    context.undivided.insert({node.graph, x, own->axis});
    return std::nullopt;
  }
  std::vector<int64_t> counts;
  std::vector<const Value*> values;
  for (const Part& part : parts) {
    counts.push_back(part.count);
    values.push_back(part.value);
  }
  const Term split = build::Op("Split", {Term::Of(x)}, {{"split", build::Numbers(counts)}, {"axis", Term::Integer(own->axis)}});
  return Tidied::Parts(split, std::move(values));
}

}  // namespace ascend_fuse
