#include "patterns/analysis/score_variants.h"

#include <algorithm>

#include "ir/infer/movement_of.h"
#include "ir/movement/axis.h"
#include "patterns/analysis/product.h"
#include "patterns/terms/term.h"

namespace ascend_fuse {
namespace {

constexpr int kMostSteps = 8;

// The x of x - max(x); nullptr for any other node.
const Value* WithoutItsMaximum(const FunctionContext& context, const Node& node, int64_t rank, int64_t axis) {
  if (!IsOp(node, "Sub") || node.input(0) == nullptr || node.input(1) == nullptr) return nullptr;
  const Node* maximum = node.input(1)->producer;
  if (maximum == nullptr || !IsOp(*maximum, "ReduceMax") || maximum->input(0) == nullptr) return nullptr;
  const auto axes = IntsParameter(*context.facts, *maximum, "axes", 1);
  const bool along = axes.has_value() && axes->size() == 1 && NormalizeAxis((*axes)[0], rank) == axis;
  return along && context.numbering->Same(maximum->input(0), node.input(0)) ? node.input(0) : nullptr;
}

// What a Pad joins one number to along the axis, where `cut` takes it off again; nullptr for any other value.
const Value* PaddedByOne(const FunctionContext& context, const Value* value, const CutColumn& cut) {
  const Movement* movement = context.facts->MovementOf(value);
  if (movement == nullptr || movement->kind != MovementKind::kPads || movement->only() == nullptr) return nullptr;
  const MovedPart& part = *movement->only();
  if (!part.known || part.viewed()) return nullptr;
  const Value* scores = movement->node->input(part.operand);
  const Fact& before = context.facts->Of(scores);
  const Fact& after = context.facts->Of(value);
  if (!before.has_rank || !after.has_rank || before.shape.size() != after.shape.size()) return nullptr;
  for (size_t axis = 0; axis < before.shape.size(); ++axis) {
    const bool joins = axis == cut.axis;
    const Dim length = joins ? context.dims->Add(before.shape[axis], Dim::Of(1)) : before.shape[axis];
    if (!context.dims->Equal(after.shape[axis], length)) return nullptr;
  }
  for (const PlaceWindow& window : part.windows) {
    const bool first = static_cast<size_t>(window.axis) == cut.axis && cut.first;
    if (window.step != 1 || !window.begin.is(first ? 1 : 0)) return nullptr;
  }
  return scores;
}

bool Makes(const AtomTable& atoms, const Atoms& axis, const Atoms& leading) {
  const Atoms made = atoms.Leaves(axis);
  const Atoms whole = atoms.Leaves(leading);
  return !made.empty() && std::all_of(made.begin(), made.end(), [&](int atom) { return Contains(whole, atom); });
}

}  // namespace

std::optional<CutColumn> FindCutColumn(const FunctionContext& context, const Value* value) {
  const Movement* movement = context.facts->MovementOf(value);
  if (movement == nullptr || movement->kind != MovementKind::kPicks || movement->node->output_count != 1) return std::nullopt;
  const MovedPart* part = movement->only();
  if (part == nullptr || !part->known || part->viewed() || !part->windows.empty()) return std::nullopt;
  const Fact& whole = context.facts->Of(movement->node->input(part->operand));
  const Fact& rest = context.facts->Of(value);
  if (!whole.has_rank || !rest.has_rank || whole.shape.size() != rest.shape.size()) return std::nullopt;
  std::optional<CutColumn> cut;
  for (size_t axis = 0; axis < part->axes.size(); ++axis) {
    const AxisSource& source = part->axes[axis];
    if (source.kind != AxisSource::Kind::kPlace || source.step != 1 || source.axis != static_cast<int>(axis)) return std::nullopt;
    if (source.start.is(0) && context.dims->Equal(whole.shape[axis], rest.shape[axis])) continue;
    const bool one_less = context.dims->Equal(whole.shape[axis], context.dims->Add(rest.shape[axis], Dim::Of(1)));
    if (cut.has_value() || !one_less || (!source.start.is(0) && !source.start.is(1))) return std::nullopt;
    cut = CutColumn{movement->node->input(part->operand), axis, source.start.is(1)};
  }
  return cut;
}

std::optional<JoinedColumn> FindJoinedColumn(const FunctionContext& context, const Value* value, const CutColumn& cut) {
  const Fact& whole = context.facts->Of(value);
  if (!whole.has_rank || cut.axis >= whole.shape.size()) return std::nullopt;
  const auto axis = static_cast<int64_t>(cut.axis);
  JoinedColumn joined;
  for (int step = 0; step < kMostSteps; ++step) {
    const Node* node = value->producer;
    if (node == nullptr) return std::nullopt;
    joined.nodes.push_back(node);
    const Value* next = context.numbering->Source(value);
    if (next == nullptr && IsOp(*node, "Cast")) next = node->input(0);
    if (next == nullptr) next = WithoutItsMaximum(context, *node, whole.rank(), axis);
    if (next != nullptr) {
      value = next;
      continue;
    }
    if (const Value* scores = PaddedByOne(context, value, cut); scores != nullptr) {
      joined.scores = scores;
      return joined;
    }
    const int64_t place = IntAttribute(*node, "axis").value_or(0);
    if (!IsOp(*node, "Concat") || node->input_count != 2 || NormalizeAxis(place, whole.rank()) != axis) return std::nullopt;
    joined.column = node->input(cut.first ? 0 : 1);
    joined.scores = node->input(cut.first ? 1 : 0);
    const Fact& column = context.facts->Of(joined.column);
    if (!column.has_rank || column.shape.size() != whole.shape.size() || !column.shape[cut.axis].is(1)) return std::nullopt;
    return joined;
  }
  return std::nullopt;
}

bool IsMixer(const FunctionContext& context, const Value* value) {
  for (int step = 0; step < kMostSteps && value != nullptr; ++step) {
    if (value->IsConstant()) return true;
    const Movement* movement = context.facts->MovementOf(value);
    if (movement == nullptr || movement->only() == nullptr) return false;
    value = movement->node->input(movement->only()->operand);
  }
  return false;
}

std::optional<MixedHeads> FindMixedHeads(const FunctionContext& context, const AtomTable& atoms, const AxisView& view,
                                         const Atoms& leading) {
  const Node* node = view.value->producer;
  if (node == nullptr) return std::nullopt;
  if (IsOp(*node, "Conv")) {
    const Value* weights = node->input(1);
    if (weights == nullptr || node->input(0) == nullptr || view.axes.size() != 4) return std::nullopt;
    const Fact& fact = context.facts->Of(weights);
    const bool points = IsMixer(context, weights) && fact.rank() == 4 && fact.shape[2].is(1) && fact.shape[3].is(1);
    if (!points || !Makes(atoms, view.axes[1], leading)) return std::nullopt;
    return MixedHeads{node->input(0), weights};
  }
  const auto product = FindProduct(context, view.value);
  if (!product.has_value()) return std::nullopt;
  for (size_t i = 0; i < 2; ++i) {
    const Value* weights = product->operands[i];
    if (!IsMixer(context, weights) || context.facts->Of(weights).rank() != 2 || product->summed[i].size() != 1) continue;
    const int made = product->axes[i][1 - product->summed[i][0]];
    const auto& others = product->axes[1 - i];
    if (std::find(others.begin(), others.end(), made) != others.end()) continue;
    if (Makes(atoms, view.axes[static_cast<size_t>(made)], leading)) return MixedHeads{product->operands[1 - i], weights};
  }
  return std::nullopt;
}

}  // namespace ascend_fuse
