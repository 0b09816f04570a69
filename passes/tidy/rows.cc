// Rows: a Gather whose indices count takes rows in their order: all of them, or a range. Of a mask [batch, length] that is viewed
// as one row, the indices b * length + k are its own elements; exports of TorchScript index masks so.
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "ir/movement/axis.h"
#include "ir/movement/movement.h"
#include "passes/tidy/counts.h"
#include "passes/tidy/kinds.h"

namespace ascend_fuse {
namespace {

// Whether along all axes but those of the steps there is one index.
bool IsOneElsewhere(const TidyContext& context, const Fact& indices, const Count& count) {
  size_t step = 0;
  for (int axis = 0; axis < indices.rank(); ++axis) {
    if (step < count.steps.size() && count.steps[step].axis == axis) {
      ++step;
    } else if (!context.dims().Resolve(indices.shape[static_cast<size_t>(axis)]).is(1)) {
      return false;
    }
  }
  return true;
}

// Axes of the indices that have no step, as axes of the result.
std::vector<int64_t> AddedAxes(const Fact& indices, const Count& count, int64_t first) {
  std::vector<int64_t> added;
  size_t step = 0;
  for (int axis = 0; axis < indices.rank(); ++axis) {
    if (step < count.steps.size() && count.steps[step].axis == axis) {
      ++step;
    } else {
      added.push_back(first + axis);
    }
  }
  return added;
}

Term WithAxes(Term x, const std::vector<int64_t>& added) { return added.empty() ? x : build::Unsqueeze(std::move(x), added); }

// Places s, s + 1 ... of one axis.
std::optional<Tidied> RunOfAxis(TidyContext& context, const Node& node, const Count& count, int64_t axis) {
  constexpr int64_t kFewest = 2;  // one row is a Gather
  const Fact& x = context.facts().Of(node.input(0));
  const Fact& indices = context.facts().Of(node.input(1));
  if (count.steps.size() != 1 || !count.IsRun()) return std::nullopt;
  const Dim extent = context.dims().Resolve(indices.shape[static_cast<size_t>(count.steps[0].axis)]);
  const Dim length = context.dims().Resolve(x.shape[static_cast<size_t>(axis)]);
  const std::vector<int64_t> added = AddedAxes(indices, count, axis);
  const Term whole = Term::Of(node.input(0));
  if (count.start.is(0) && context.dims().Equal(extent, length)) return Tidied::Of(WithAxes(whole, added));
  if (!extent.is_number() || !length.is_number() || extent.number() < kFewest) return std::nullopt;
  int64_t first = count.start.number();
  if (first < 0 && first + extent.number() > 0) return std::nullopt;  // from the end, and on from the beginning
  if (first < 0) first += length.number();
  if (first < 0 || first + extent.number() > length.number()) return std::nullopt;
  return Tidied::Of(WithAxes(build::Slice(whole, first, first + extent.number(), axis), added));
}

// What the node reads as rows of one element: its axes are those of a tensor, one after another. nullptr of everything else.
const Value* SourceOfRows(const TidyContext& context, const Node& node) {
  const Movement* const view = context.facts().MovementOf(node.input(0));
  const Fact& rows = context.facts().Of(node.input(0));
  if (view == nullptr || view->kind != MovementKind::kKeepsOrder || node.input(0)->producer == nullptr) return nullptr;
  for (size_t i = 1; i < rows.shape.size(); ++i) {
    if (!context.dims().Resolve(rows.shape[i]).is(1)) return nullptr;
  }
  const Value* const x = node.input(0)->producer->input(0);
  return x != nullptr && context.facts().Of(x).rank() > 1 ? x : nullptr;
}

// One step along each axis of x, as long as all that follows: the indices go over x in its order. One axis may be shorter in the
// indices; longer it cannot be, as the last index of an error-free run is within x.
std::optional<Tidied> RowsInOrder(TidyContext& context, const Node& node, const Count& count) {
  const Value* const x = SourceOfRows(context, node);
  if (x == nullptr || !count.start.is(0)) return std::nullopt;
  const Fact& source = context.facts().Of(x);
  const Fact& indices = context.facts().Of(node.input(1));
  if (count.steps.size() != source.shape.size()) return std::nullopt;
  DimTable& dims = context.workspace.facts().dims();
  Term picked = Term::Of(x);
  bool shorter = false;
  Dim each = Dim::Of(1);
  for (size_t i = source.shape.size(); i-- > 0;) {
    const CountStep& step = count.steps[i];
    if (!dims.Equal(step.each, each)) return std::nullopt;
    if (!dims.Equal(indices.shape[static_cast<size_t>(step.axis)], source.shape[i])) {
      if (shorter || step.places == nullptr) return std::nullopt;
      shorter = true;
      picked = build::Gather(std::move(picked), Term::Of(step.places), static_cast<int64_t>(i));
    }
    each = dims.Mul(each, source.shape[i]);
  }
  std::vector<int64_t> added = AddedAxes(indices, count, 0);
  for (int i = 1; i < context.facts().Of(node.input(0)).rank(); ++i) added.push_back(indices.rank() + i - 1);
  return Tidied::Of(WithAxes(std::move(picked), added));
}

}  // namespace

std::optional<Tidied> AskRows(TidyContext& context, const Node& node) {
  const Fact& x = context.facts().Of(node.input(0));
  const Fact& indices = context.facts().Of(node.input(1));
  const int64_t axis = NormalizeAxis(IntAttribute(node, "axis").value_or(0), x.rank());
  if (node.input(1) == nullptr || !x.has_rank || axis < 0 || !indices.has_rank || indices.rank() == 0) return std::nullopt;
  if (x.elements != nullptr) return std::nullopt;  // arithmetic of shapes, which the compiler does
  const auto count = CountOf(context, *node.input(1));
  if (!count.has_value() || !IsOneElsewhere(context, indices, *count)) return std::nullopt;
  if (auto answer = RunOfAxis(context, node, *count, axis); answer.has_value()) return answer;
  return axis == 0 ? RowsInOrder(context, node, *count) : std::nullopt;
}

}  // namespace ascend_fuse
