#include "patterns/analysis/halves.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "fmt/format.h"
#include "ir/attribute.h"
#include "patterns/terms/refusal.h"
#include "patterns/terms/term.h"

namespace ascend_fuse {
absl::StatusOr<HalfOf> FindHalf(const FunctionContext& context, Value* part) {
  Value* value = part;
  while (context.numbering->Source(value) != nullptr) value = context.numbering->Source(value);
  const Node* node = value->producer;
  auto no = [&](std::string_view why) {
    return Refuse(fmt::format("{} is not a half: {}", ValueName(*value), why), "not-a-half");
  };
  if (node == nullptr || node->input(0) == nullptr) return no("nothing computes it");
  DimTable& dims = *context.dims;
  const Fact& whole = context.facts->Of(node->input(0));
  const Fact& cut = context.facts->Of(value);
  const bool split = IsOp(*node, "Split");
  const bool slice = IsOp(*node, "Slice");
  const bool gather = IsOp(*node, "Gather");
  if (!split && !slice && !gather) return no(fmt::format("{} computes it", OpType(*node)));
  if (whole.rank() < 1 || cut.rank() != whole.rank()) return no("the shapes are not known");
  HalfOf half;
  half.whole = node->input(0);
  auto set_axis = [&](int64_t axis) {
    half.axis = static_cast<int>(axis < 0 ? axis + whole.rank() : axis);
    return half.axis >= 0 && half.axis < whole.rank();
  };
  std::vector<Dim> starts, axes, steps;
  if (slice) {
    const auto given_starts = ListParameter(*context.facts, *node, "starts", 1);
    if (!given_starts.has_value()) return no("it is not cut along one axis with known bounds");
    starts = *given_starts;
    const auto given_axes = ListParameter(*context.facts, *node, "axes", 3);
    if (node->input(3) != nullptr && !given_axes.has_value()) return no("the axis of Slice is not known");
    if (given_axes.has_value()) axes = *given_axes;
    for (size_t i = 0; !given_axes.has_value() && i < starts.size(); ++i) {
      axes.push_back(Dim::Of(static_cast<int64_t>(i)));
    }
    const auto given_steps = ListParameter(*context.facts, *node, "steps", 4);
    if (node->input(4) != nullptr && !given_steps.has_value()) return no("the step of Slice is not known");
    steps = given_steps.value_or(std::vector<Dim>(starts.size(), Dim::Of(1)));
    if (axes.size() != starts.size() || steps.size() != starts.size()) return no("the bounds of Slice do not fit");
    // The one axis that is cut; the others are taken whole, in order.
    std::optional<size_t> place;
    for (size_t i = 0; i < axes.size(); ++i) {
      if (!axes[i].is_number() || !set_axis(axes[i].number())) return no("the axis is beyond the rank");
      const size_t axis = static_cast<size_t>(half.axis);
      if (steps[i].is(1) && dims.Equal(whole.shape[axis], cut.shape[axis])) continue;
      if (place.has_value()) return no("it is cut along several axes");
      place = i;
    }
    if (!place.has_value()) return no("it is not cut along one axis with known bounds");
    starts = {starts[*place]};
    steps = {steps[*place]};
    set_axis(axes[*place].number());
  } else if (!set_axis(IntAttribute(*node, "axis").value_or(0))) {
    return no("the axis is beyond the rank");
  }
  const Dim width = whole.shape[half.axis];
  const Dim part_width = cut.shape[half.axis];
  if (!dims.Equal(dims.Mul(part_width, Dim::Of(2)), width)) {
    return no(fmt::format("it is {} wide, cut from {}", dims.ToString(part_width), dims.ToString(width)));
  }
  if (split) {
    if (node->output_count != 2) return no("Split has not two outputs");
    half.index = static_cast<int>(value->output_index);
    return half;
  }
  if (gather) {
    // Constant indices that run through one half in order.
    const Fact& indices = context.facts->Of(node->input(1));
    if (indices.rank() != 1 || indices.elements == nullptr || indices.elements->integers.empty()) {
      return no("the indices of Gather are not known");
    }
    const auto& list = indices.elements->integers;
    const int64_t count = static_cast<int64_t>(list.size());
    if (!std::all_of(list.begin(), list.end(), [](Dim index) { return index.is_number(); })) {
      return no("the indices of Gather are not known");
    }
    auto at = [&](int64_t i) {
      const int64_t index = list[static_cast<size_t>(i)].number();
      return index < 0 ? index + 2 * count : index;
    };
    const int64_t step = count > 1 ? at(1) - at(0) : 1;
    for (int64_t i = 0; i < count; ++i) {
      if (at(i) != at(0) + i * step) return no("the indices of Gather do not run through it in order");
    }
    if (step == 1 && (at(0) == 0 || at(0) == count)) {
      half.index = at(0) == 0 ? 0 : 1;
      return half;
    }
    if (step == 2 && (at(0) == 0 || at(0) == 1)) {
      half.index = static_cast<int>(at(0));
      half.strided = true;
      return half;
    }
    return no("the indices of Gather start elsewhere");
  }
  // A Slice that gives half of the elements: with step 1 one block, with step 2 every other one.
  const Dim start = starts[0];
  if (steps[0].is(2)) {
    // -D and 1 - D count from the end.
    const Dim from_end = start.is_number() && start.number() < 0 ? Dim::Of(-start.number()) : Dim();
    const bool first = start.is(0) || dims.Equal(from_end, width);
    const bool second = start.is(1) || (from_end.known() && dims.Equal(Dim::Of(1 - start.number()), width));
    if (!first && !second) return no("it starts elsewhere");
    half.strided = true;
    half.index = first ? 0 : 1;
    return half;
  }
  if (!steps[0].is(1)) return no("Slice has a step other than 1");
  if (start.is(0)) return half;
  half.index = 1;
  if (start.is_number() && start.number() < 0) {  // -D/2 counts from the end
    if (!dims.Equal(Dim::Of(-2 * start.number()), width)) return no("it starts elsewhere");
    return half;
  }
  if (dims.Equal(dims.Mul(start, Dim::Of(2)), width)) return half;
  return no("it starts elsewhere");
}

}  // namespace ascend_fuse
