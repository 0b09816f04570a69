#include "patterns/analysis/attention_operands.h"

#include <algorithm>
#include <utility>

#include "fmt/format.h"
#include "patterns/terms/node_builder.h"
#include "patterns/terms/refusal.h"

namespace ascend_fuse {
namespace {

bool IsHalf(DataType type) { return type == DataType::kFloat16 || type == DataType::kBfloat16; }

}  // namespace

absl::StatusOr<AxisView> OperandView(const FunctionContext& context, AtomTable* atoms, const Product& product, size_t place,
                                     const AxisList& result, const AxisList& summed, std::vector<SizeToProve>* sizes) {
  AxisView view;
  view.value = product.operands[place];
  const Fact& fact = context.facts->Of(view.value);
  const Fact& whole = context.facts->Of(product.result);
  std::vector<bool> seen(result.size(), false);
  for (size_t i = 0; i < product.axes[place].size(); ++i) {
    const int axis = product.axes[place][i];
    if (Product::IsSummed(axis)) {
      view.axes.push_back(summed[Product::PlaceOfSummed(axis)]);
      continue;
    }
    const auto of_result = static_cast<size_t>(axis);
    seen[of_result] = true;
    const Dim size = atoms->SizeOf(result[of_result]);
    if (context.dims->Equal(fact.shape[i], whole.shape[of_result]) || context.dims->Equal(fact.shape[i], size)) {
      view.axes.push_back(result[of_result]);
    } else if (fact.shape[i].is(1)) {
      view.axes.emplace_back();
      view.copied.insert(view.copied.end(), result[of_result].begin(), result[of_result].end());
    } else if (context.dims->NotEqual(fact.shape[i], size)) {
      return At(view.value->producer,
                Refuse(fmt::format("axis {} of {} is not that of {}", i, ValueName(*view.value), ValueName(*product.result)),
                       "attention-not-proved"));
    } else {
      // A mask may have enlarged the result as far as is proved: then the scores say later what the size is.
      view.axes.push_back(result[of_result]);
      sizes->push_back({result[of_result], fact.shape[i], view.value});
    }
  }
  // Axes that only the result has: of the other operand, or in front of this one.
  const std::vector<int>& others = product.axes[1 - place];
  for (size_t axis = 0; axis < result.size(); ++axis) {
    const bool own = std::find(others.begin(), others.end(), static_cast<int>(axis)) == others.end();
    const bool leading = IsOp(*product.node, "MatMul") && axis + 2 < result.size();
    if (!seen[axis] && !own && leading) {
      view.copied.insert(view.copied.end(), result[axis].begin(), result[axis].end());
    }
  }
  return view;
}

AttentionOperand FollowOperand(const FunctionContext& context, AtomTable* atoms, AxisView view) {
  AttentionOperand operand;
  operand.places.push_back(view);
  for (int step = 0; step < kMostOperandSteps; ++step) {
    if (!FollowCopy(context, &view) && !FollowMovement(context, atoms, &view) && !FollowFactor(context, &view) &&
        !FollowWidening(context, &view)) {
      break;
    }
    operand.places.push_back(view);
    const DataType type = context.facts->Of(view.value).type;
    if (IsHalf(type)) operand.half = type;
  }
  const DataType type = context.facts->Of(operand.places.front().value).type;
  if (IsHalf(type)) operand.half = type;
  return operand;
}

std::optional<size_t> KeyAmong(const AtomTable& atoms, const std::array<AttentionOperand, 2>& operands, const Atoms& keys) {
  std::array<Atoms, 2> axes;
  std::array<Atoms, 2> copied;
  for (size_t i = 0; i < 2; ++i) {
    axes[i] = atoms.Leaves(Joined(operands[i].places.front().axes));
    copied[i] = atoms.Leaves(operands[i].places.front().copied);
  }
  const auto has_own = [&](size_t i) {
    const size_t other = 1 - i;
    return std::any_of(axes[i].begin(), axes[i].end(),
                       [&](int atom) { return !Contains(axes[other], atom) && !Contains(copied[other], atom); });
  };
  const auto has_keys = [&](size_t i) {
    return std::any_of(axes[i].begin(), axes[i].end(), [&](int atom) { return Contains(keys, atom); });
  };
  const std::array<bool, 2> is_key =
      keys.empty() ? std::array<bool, 2>{has_own(1), has_own(0)} : std::array<bool, 2>{has_keys(0), has_keys(1)};
  if (is_key[0] != is_key[1]) return is_key[0] ? 0 : 1;
  if (!keys.empty() || is_key[0]) return std::nullopt;
  const auto is_repeated = [&](size_t i) { return !operands[i].places.back().copied.empty(); };
  return is_repeated(0) && !is_repeated(1) ? 0 : 1;
}

DataType CommonType(const FunctionContext& context, const AttentionOperands& operands) {
  const DataType half = operands.query.half;
  if (half != DataType::kUndefined && operands.key.half == half && operands.value.half == half) return half;
  DataType common = DataType::kUndefined;
  for (const AttentionOperand* operand : {&operands.query, &operands.key, &operands.value}) {
    const DataType type = context.facts->Of(operand->places.front().value).type;
    if (type == DataType::kFloat || common == DataType::kUndefined) common = type;
  }
  return common;
}

std::optional<OperandChoice> ChoosePlace(const FunctionContext& context, const AtomTable& atoms, const AttentionOperand& operand,
                                         const OperandForm& form, const AxisList& to, const Atoms& copied) {
  std::optional<OperandChoice> best;
  bool best_fits = false;
  const size_t all = operand.places.back().nodes.size();
  // From the last place on, which keeps no node, so that most of the others are seen to cost more before they are built.
  for (auto at = operand.places.rbegin(); at != operand.places.rend(); ++at) {
    const AxisView& place = *at;
    const bool fits = context.facts->Of(place.value).type == form.type;
    const int cost_of_kept = kCostOfKept * static_cast<int>(all - place.nodes.size());
    if (best.has_value() && ((best_fits && !fits) || (best_fits == fits && cost_of_kept > best->cost))) continue;
    if (atoms.Leaves(place.copied) != copied || (!form.any_factor && place.factor != 1)) continue;
    const auto arranged = Arrange(context, atoms, Term::Of(place.value), place.axes, to, place.value);
    if (!arranged.has_value()) continue;
    const int cost = cost_of_kept + kCostOfBuilt * arranged->nodes;
    if (best.has_value() && best_fits == fits && cost > best->cost) continue;
    best = OperandChoice{fits ? arranged->term : build::Cast(arranged->term, form.type), &place, cost};
    best_fits = fits;
  }
  return best;
}

std::optional<OperandChoice> ChooseShared(const FunctionContext& context, const AtomTable& atoms, const AttentionOperand& operand,
                                          const OperandForm& form, const AxisList& to, const Value* like) {
  const Atoms copied = atoms.Leaves(operand.places.front().copied);
  AxisList once;  // without what is repeated
  std::vector<Term> times;
  for (const Atoms& axis : to) {
    const auto is_copied = [&](int atom) { return Contains(copied, atom); };
    const bool repeated = !axis.empty() && std::all_of(axis.begin(), axis.end(), is_copied);
    once.push_back(repeated ? Atoms() : axis);
    const auto count = repeated ? DimAtRunTime(context, atoms.SizeOf(axis), like) : std::optional(Term::Integer(1));
    if (!count.has_value()) return std::nullopt;
    times.push_back(*count);
  }
  std::optional<OperandChoice> choice = ChoosePlace(context, atoms, operand, form, once, copied);
  if (choice.has_value()) choice->term = build::Op("Expand", {std::move(choice->term), build::Vector(times)});
  return choice;
}

std::optional<Term> DimAtRunTime(const FunctionContext& context, Dim dim, const Value* like) {
  if (dim.is_number()) return Term::Integer(dim.number());
  std::vector<const Value*> values = {like};
  values.insert(values.end(), like->graph->inputs().begin(), like->graph->inputs().end());
  for (const Value* value : values) {
    const Fact& fact = context.facts->Of(value);
    for (size_t axis = 0; fact.has_rank && axis < fact.shape.size(); ++axis) {
      if (!context.dims->Equal(fact.shape[axis], dim)) continue;
      return build::Gather(build::Shape(Term::Of(value)), build::Numbers({static_cast<int64_t>(axis)}), 0);
    }
  }
  return std::nullopt;
}

}  // namespace ascend_fuse
