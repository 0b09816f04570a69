#include "patterns/analysis/attention.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <utility>

#include "fmt/format.h"
#include "ir/movement/data_movement.h"
#include "ir/status_macros.h"
#include "patterns/analysis/axis_map.h"
#include "patterns/analysis/mask.h"
#include "patterns/analysis/product.h"
#include "patterns/analysis/scores.h"
#include "patterns/terms/node_builder.h"
#include "patterns/terms/refusal.h"

namespace ascend_fuse {
namespace {

constexpr int kMostOperandSteps = 24;
// A node that is built costs more than one that stays: what is there is left where both would do.
constexpr int kCostOfBuilt = 3;
constexpr int kCostOfKept = 2;

absl::Status No(const std::string& sentence) { return Refuse(sentence, "attention-not-proved"); }

bool IsHalf(DataType type) { return type == DataType::kFloat16 || type == DataType::kBfloat16; }

bool HasAll(const Atoms& all, const Atoms& some) {
  return std::all_of(some.begin(), some.end(), [&](int atom) { return Contains(all, atom); });
}

bool HasAny(const Atoms& all, const Atoms& some) {
  return std::any_of(some.begin(), some.end(), [&](int atom) { return Contains(all, atom); });
}

Atoms Without(const Atoms& all, const Atoms& some) {
  Atoms rest;
  for (int atom : all) {
    if (!Contains(some, atom)) rest.push_back(atom);
  }
  return rest;
}

// An operand of a product, and the places on the way back from it at which it could be taken.
struct Operand {
  std::vector<AxisView> places;          // the operand itself first
  DataType half = DataType::kUndefined;  // the half-precision type that some place has
};

// A place in an operand, as what the kernel takes.
struct Choice {
  Term term;
  const AxisView* place = nullptr;
  int cost = 0;
};

// An axis must have this size, which is that of the value.
struct SizeToProve {
  Atoms axis;
  Dim size;
  const Value* value = nullptr;
};

class AttentionReader {
 public:
  AttentionReader(const FunctionContext& context, Value* y) : context_(context), atoms_(context.dims), y_(y) {}

  absl::StatusOr<AttentionView> Read() {
    absl::StatusOr<AttentionView> view = ReadParts();
    if (context_.read != nullptr) {
      context_.read->insert(context_.read->end(), reached_.begin(), reached_.end());
    }
    // What is no attention here is none for any rule.
    if (!view.ok()) return FinalWord(std::string(view.status().message()), CodeOf(view.status()));
    return view;
  }

  // After Read: `attention` as y.
  absl::StatusOr<Term> Output(const Term& attention) {
    const DataType type = context_.facts->Of(y_).type;
    std::optional<Arranged> arranged =
        Arrange(context_, atoms_, attention, {batch_, heads_, queries_, channels_}, output_axes_, query_source_);
    if (!arranged.has_value()) return No(fmt::format("the dims of {} cannot be told", ValueName(*y_)));
    if (arranged->nodes == 0 || type_ == type) return arranged->term;
    return build::Cast(std::move(arranged->term), type);
  }

 private:
  absl::StatusOr<AttentionView> ReadParts() {
    std::optional<Product> weighted = FindProduct(context_, y_);
    const bool reshaped = !weighted.has_value();
    if (reshaped) {
      const Node* node = y_->producer;
      if (node == nullptr || !KeepsOrder(*node) || node->input(0) == nullptr) return No("no product is here");
      weighted = FindProduct(context_, node->input(0));
      if (!weighted.has_value()) return No("no product is here");
      reached_.push_back(node);
    }
    for (size_t i = 0; i < 2; ++i) {
      if (!LeadsToSoftmax(context_, weighted->operands[i])) continue;
      return ReadWeighted(*weighted, i, reshaped);
    }
    return No(fmt::format("{} is not a product with the result of a softmax", ValueName(*y_)));
  }

  absl::StatusOr<AttentionView> ReadWeighted(const Product& weighted, size_t weights_place, bool reshaped) {
    reached_.push_back(weighted.node);
    const Fact& result = context_.facts->Of(weighted.result);
    AxisList axes;
    for (Dim dim : result.shape) axes.push_back(atoms_.New(dim));
    output_axes_ = axes;
    if (reshaped) {
      auto regrouped = atoms_.Regroup(axes, context_.facts->Of(y_).shape);
      if (!regrouped.has_value()) return No(fmt::format("the dims of {} are not proved", ValueName(*y_)));
      output_axes_ = *std::move(regrouped);
    }
    const Value* summed = weighted.operands[weights_place];
    keys_ = atoms_.New(context_.facts->Of(summed).shape[weighted.summed[weights_place]]);
    absl::StatusOr<AxisView> weights = OperandView(weighted, weights_place, axes, keys_);
    if (!weights.ok()) return weights.status();
    absl::StatusOr<AxisView> value = OperandView(weighted, 1 - weights_place, axes, keys_);
    if (!value.ok()) return value.status();
    if (!weights->copied.empty()) return No("the weights are the same for some of the batch or of the heads");
    absl::StatusOr<ScorePath> path = FollowScores(context_, &atoms_, *weights, keys_, &reached_);
    if (!path.ok()) return path.status();
    absl::Status status = ReadScores(*path, *weights, *std::move(value));
    if (!status.ok()) return status;
    return Assemble(*path, reshaped);
  }

  // An operand of a product, from the axes of the result. `summed`: the atoms of the axis that is summed over.
  absl::StatusOr<AxisView> OperandView(const Product& product, size_t place, const AxisList& result, const Atoms& summed) {
    AxisView view;
    view.value = product.operands[place];
    const Fact& fact = context_.facts->Of(view.value);
    const Fact& whole = context_.facts->Of(product.result);
    std::vector<bool> seen(result.size(), false);
    for (size_t i = 0; i < product.axes[place].size(); ++i) {
      const int axis = product.axes[place][i];
      if (axis == Product::kSummed) {
        view.axes.push_back(summed);
        continue;
      }
      const auto of_result = static_cast<size_t>(axis);
      seen[of_result] = true;
      const Dim size = atoms_.SizeOf(result[of_result]);
      if (context_.dims->Equal(fact.shape[i], whole.shape[of_result]) || context_.dims->Equal(fact.shape[i], size)) {
        view.axes.push_back(result[of_result]);
      } else if (fact.shape[i].is(1)) {
        view.axes.emplace_back();
        view.copied.insert(view.copied.end(), result[of_result].begin(), result[of_result].end());
      } else if (context_.dims->NotEqual(fact.shape[i], size)) {
        return No(fmt::format("axis {} of {} is not that of {}", i, ValueName(*view.value), ValueName(*product.result)));
      } else {
        // A mask may have enlarged the result as far as is proved: then the scores say later what the size is.
        view.axes.push_back(result[of_result]);
        sizes_.push_back({result[of_result], fact.shape[i], view.value});
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

  // What the axes are, and which operand of the product of scores is the query.
  absl::Status ReadScores(const ScorePath& path, const AxisView& weights, AxisView value) {
    const Product& product = path.product;
    const Fact& first = context_.facts->Of(product.operands[0]);
    const Atoms width = atoms_.New(first.shape[product.summed[0]]);
    std::array<AxisView, 2> operands;
    for (size_t i = 0; i < 2; ++i) {
      absl::StatusOr<AxisView> view = OperandView(product, i, path.axes, width);
      if (!view.ok()) return view.status();
      operands[i] = *std::move(view);
    }
    const auto has_keys = [&](const AxisView& view) { return HasAny(atoms_.Leaves(Joined(view.axes)), atoms_.Leaves(keys_)); };
    if (has_keys(operands[0]) == has_keys(operands[1])) return No("the keys are not an axis of one operand of the scores");
    if (has_keys(operands[0])) std::swap(operands[0], operands[1]);
    query_ = FollowOperand(std::move(operands[0]));
    key_ = FollowOperand(std::move(operands[1]));
    value_ = FollowOperand(std::move(value));
    width_ = atoms_.Leaves(width);
    keys_ = atoms_.Leaves(keys_);
    // Axes that the value has too are batch or heads, and the others of the weights are queries.
    const Atoms all = atoms_.Leaves(Joined(output_axes_));
    const AxisView& v = value_.places.front();
    Atoms of_value = atoms_.Leaves(Joined(v.axes));
    const Atoms of_copies = atoms_.Leaves(v.copied);
    of_value.insert(of_value.end(), of_copies.begin(), of_copies.end());
    const Atoms of_weights = atoms_.Leaves(Joined(weights.axes));
    for (int atom : all) {
      const bool in_value = Contains(of_value, atom);
      const bool in_weights = Contains(of_weights, atom);
      if (in_value && in_weights) {
        leading_.push_back(atom);
      } else {
        (in_value ? channels_ : queries_).push_back(atom);
      }
    }
    return absl::OkStatus();
  }

  Operand FollowOperand(AxisView view) {
    Operand operand;
    operand.places.push_back(view);
    for (int step = 0; step < kMostOperandSteps; ++step) {
      if (!FollowCopy(context_, &view) && !FollowMovement(context_, &atoms_, &view) && !FollowFactor(context_, &view) &&
          !FollowWidening(context_, &view)) {
        break;
      }
      operand.places.push_back(view);
      const DataType type = context_.facts->Of(view.value).type;
      if (IsHalf(type)) operand.half = type;
    }
    const DataType type = context_.facts->Of(operand.places.front().value).type;
    if (IsHalf(type)) operand.half = type;
    return operand;
  }

  absl::StatusOr<AttentionView> Assemble(const ScorePath& path, bool reshaped) {
    for (const auto& [axis, size, value] : sizes_) {
      if (!context_.dims->Equal(atoms_.SizeOf(atoms_.Leaves(axis)), size)) {
        return No(fmt::format("whether {} is repeated is not known", ValueName(*value)));
      }
    }
    ReadTypes();
    absl::Status why = No("what is batch and what are heads is not proved");
    const Atoms queries = queries_;
    for (const Atoms& heads : PossibleHeads(path)) {
      heads_ = heads;
      shared_ = Without(heads, leading_);
      queries_ = Without(queries, shared_);
      batch_ = Without(leading_, heads);
      if (reshaped && atoms_.Leaves(output_axes_) != AxisList{batch_, heads_, queries_, channels_}) {
        why = No(fmt::format("{} has not the axes of an attention", ValueName(*y_)));
        continue;
      }
      absl::StatusOr<AttentionView> view = WithHeads(path);
      if (view.ok()) return view;
      why = view.status();
    }
    return why;
  }

  // The type that all operands can have in one kernel: half precision where all have a place of one such type.
  void ReadTypes() {
    const DataType half = query_.half;
    if (half != DataType::kUndefined && key_.half == half && value_.half == half) {
      type_ = half;
      return;
    }
    type_ = DataType::kUndefined;
    for (const Operand* operand : {&query_, &key_, &value_}) {
      const DataType type = context_.facts->Of(operand->places.front().value).type;
      if (type == DataType::kFloat || type_ == DataType::kUndefined) type_ = type;
    }
  }

  // Whether those of `all` that are in `some` stand behind those that are not: heads stand behind the batch.
  static bool HasTheLastOf(const Atoms& all, const Atoms& some) {
    return std::is_partitioned(all.begin(), all.end(), [&](int atom) { return !Contains(some, atom); });
  }

  // What the heads can be, what says most first.
  std::vector<Atoms> PossibleHeads(const ScorePath& path) {
    std::vector<Atoms> possible;
    const auto add = [&](Atoms heads) {
      if (HasAll(leading_, heads) && std::find(possible.begin(), possible.end(), heads) == possible.end()) {
        possible.push_back(std::move(heads));
      }
    };
    // Heads that share a key may have become rows of the query: what one axis holds of them and of the heads of the key, or what
    // the channels of a layer were split into. An axis of batch and tokens is neither.
    for (const AxisView& place : query_.places) {
      for (const Atoms& given : place.axes) {
        const Atoms axis = atoms_.Leaves(given);
        const Atoms heads = Without(axis, width_);
        const bool split = heads.size() < axis.size();
        const bool of_the_key = HasAny(heads, leading_) && !(HasAll(heads, leading_) && HasAll(heads, queries_));
        if (HasAny(heads, queries_) && (split || of_the_key) && HasTheLastOf(leading_, heads)) possible.push_back(heads);
      }
    }
    const auto add_of = [&](const AxisList& given, const Atoms& row, const Atoms& column) {
      const AxisList axes = atoms_.Leaves(given);
      const size_t rank = axes.size();
      if (rank < 4 || axes[rank - 2] != row || axes[rank - 1] != column) return;
      if (rank >= 5 && (!key_.places.front().copied.empty() || !value_.places.front().copied.empty())) {
        add(Joined({axes[rank - 4], axes[rank - 3]}));
      }
      add(axes[rank - 3]);
    };
    for (const AxisList& stage : path.stages) add_of(stage, queries_, keys_);
    add_of(output_axes_, queries_, channels_);
    for (const AxisView& place : query_.places) add_of(place.axes, queries_, width_);
    for (const AxisView& place : key_.places) add_of(place.axes, keys_, width_);
    for (const AxisView& place : value_.places) add_of(place.axes, keys_, channels_);
    // Heads are what the channels of a layer are split into.
    for (const AxisView& place : query_.places) {
      for (const Atoms& given : place.axes) {
        const Atoms axis = atoms_.Leaves(given);
        if (HasAll(axis, width_) && axis.size() > width_.size()) add(Without(axis, width_));
      }
    }
    if (possible.empty()) add(leading_.size() >= 2 ? Atoms{leading_.back()} : Atoms{});
    return possible;
  }

  absl::StatusOr<AttentionView> WithHeads(const ScorePath& path) {
    AttentionView view;
    const std::optional<Choice> query = Choose(query_, {batch_, heads_, queries_, width_}, {});
    if (!query.has_value()) return No(fmt::format("{} cannot be taken apart into batch, heads and queries", NameOf(query_)));
    // Key and value are of one number of heads: both before their copies, or both behind them.
    std::optional<Choice> key;
    std::optional<Choice> value;
    for (const AxisView& place : key_.places) {
      const Atoms copied = atoms_.Leaves(place.copied);
      Atoms repeated = copied;
      repeated.insert(repeated.end(), shared_.begin(), shared_.end());
      if (repeated.size() > heads_.size() || !std::equal(repeated.rbegin(), repeated.rend(), heads_.rbegin())) continue;
      const Atoms groups(heads_.begin(), heads_.end() - static_cast<std::ptrdiff_t>(repeated.size()));
      const auto k = Choose(key_, {batch_, groups, keys_, width_}, copied);
      const auto v = Choose(value_, {batch_, groups, keys_, channels_}, copied);
      if (!k.has_value() || !v.has_value()) continue;
      if (key.has_value() && k->cost + v->cost >= key->cost + value->cost) continue;
      key = k;
      value = v;
    }
    if (!key.has_value()) {
      return No(fmt::format("{} and {} cannot be taken apart into batch, heads and keys", NameOf(key_), NameOf(value_)));
    }
    view.query = query->term;
    view.key = key->term;
    view.value = value->term;
    view.scale = path.scale * query->place->factor * key->place->factor;
    for (const Choice* choice : std::array<const Choice*, 3>{&*query, &*key, &*value}) {
      reached_.insert(reached_.end(), choice->place->nodes.begin(), choice->place->nodes.end());
    }
    view.softcap = path.softcap;
    view.guard = path.guard;
    query_source_ = query_.places.front().value;
    RETURN_IF_ERROR(AddMasks(path, &view));
    return view;
  }

  static std::string NameOf(const Operand& operand) { return std::string(ValueName(*operand.places.front().value)); }

  // The place that costs least of those that are repeated along `copied` and can be given these axes: of one with the type
  // of all operands, and where there is none of any, with a Cast. Of equal ones the first.
  std::optional<Choice> Choose(const Operand& operand, const AxisList& to, const Atoms& copied) {
    std::optional<Choice> best;
    bool best_fits = false;
    const size_t all = operand.places.back().nodes.size();
    // From the last place on, which keeps no node, so that most of the others are seen to cost more before they are built.
    for (auto at = operand.places.rbegin(); at != operand.places.rend(); ++at) {
      const AxisView& place = *at;
      const bool fits = context_.facts->Of(place.value).type == type_;
      const int cost_of_kept = kCostOfKept * static_cast<int>(all - place.nodes.size());
      if (best.has_value() && ((best_fits && !fits) || (best_fits == fits && cost_of_kept > best->cost))) continue;
      // What the value is multiplied with is no part of the scores.
      if (atoms_.Leaves(place.copied) != copied || (&operand == &value_ && place.factor != 1)) continue;
      const auto arranged = Arrange(context_, atoms_, Term::Of(place.value), place.axes, to, place.value);
      if (!arranged.has_value()) continue;
      const int cost = cost_of_kept + kCostOfBuilt * arranged->nodes;
      if (best.has_value() && best_fits == fits && cost > best->cost) continue;
      best = Choice{fits ? arranged->term : build::Cast(arranged->term, type_), &place, cost};
      best_fits = fits;
    }
    return best;
  }

  absl::Status AddMasks(const ScorePath& path, AttentionView* view) {
    std::vector<Term> added;  // the one that is added first at the end
    for (const ScoreMask& given : path.masks) {
      const ScoreMask mask = WithoutNot(given);
      absl::StatusOr<Term> term = PartsOfMask(mask);
      if (!term.ok()) return term.status();
      switch (mask.kind) {
        case ScoreMask::Kind::kAdded:
        case ScoreMask::Kind::kSubtracted:
          added.push_back(Scaled(*std::move(term), mask));
          continue;
        case ScoreMask::Kind::kDrops:
          term = build::Op("Not", {*std::move(term)});
          break;
        case ScoreMask::Kind::kMultiplied:
          term = build::Cast(*std::move(term), DataType::kBool);
          break;
        case ScoreMask::Kind::kKeeps:
          break;
      }
      view->keep = view->keep.bound() ? build::Op("And", {*std::move(term), view->keep}) : *std::move(term);
    }
    if (!view->keep.bound()) view->keep = Term::Absent();
    view->mask = added.empty() ? Term::Absent() : added.front();
    view->bias = Term::Absent();
    for (size_t i = 1; i < added.size(); ++i) {
      view->bias = i == 1 ? added[i] : build::Op("Add", {added[i], view->bias});
    }
    return absl::OkStatus();
  }

  // Whether what is added drops a key or does nothing, scaled or not.
  bool OnlyDrops(const ScoreMask& mask) const {
    const PossibleValues set = ValuesOf(context_, mask.value);
    return set.known && set.assumptions.empty() && std::all_of(set.values.begin(), set.values.end(), [&](double number) {
             return number == 0 || (number <= kMaskThreshold && number * mask.factor <= kMaskThreshold);
           });
  }

  // (scores + mask) * factor is scores * factor + mask * factor.
  Term Scaled(Term term, const ScoreMask& mask) const {
    const bool subtracted = mask.kind == ScoreMask::Kind::kSubtracted;
    if (!subtracted && (mask.factor == 1 || OnlyDrops(mask))) return term;
    if (mask.factor == 1) return build::Op("Neg", {std::move(term)});
    const DataType type = context_.facts->Of(mask.value).type;
    const double factor = subtracted ? -mask.factor : mask.factor;
    return build::Op("Mul", {std::move(term), build::Constant(type, {}, factor)});
  }

  // The mask without a Not that stands behind the repeats for every head, which it keeps from being followed.
  ScoreMask WithoutNot(ScoreMask mask) {
    const bool keeps = mask.kind == ScoreMask::Kind::kKeeps;
    if (!keeps && mask.kind != ScoreMask::Kind::kDrops) return mask;
    AxisView view;
    view.value = mask.value;
    while (FollowCopy(context_, &view)) {
    }
    const Node* node = view.value->producer;
    const AxisList stage = atoms_.Leaves(mask.axes);
    if (node == nullptr || !IsOp(*node, "Not") || stage == AxisList{batch_, heads_, queries_, keys_}) return mask;
    view.value = node->input(0);
    const Fact& fact = context_.facts->Of(view.value);
    if (!fact.has_rank || fact.shape.size() > stage.size()) return mask;
    for (size_t i = 0; i < fact.shape.size(); ++i) {
      const Atoms& axis = stage[stage.size() - fact.shape.size() + i];
      view.axes.push_back(fact.shape[i].is(1) ? Atoms() : axis);
      if (!fact.shape[i].is(1) && !context_.dims->Equal(fact.shape[i], atoms_.SizeOf(axis))) return mask;
    }
    for (int step = 0; step < kMostOperandSteps && view.copied.empty(); ++step) {
      if (!FollowCopy(context_, &view) && !FollowMovement(context_, &atoms_, &view)) return mask;
    }
    mask.kind = keeps ? ScoreMask::Kind::kDrops : ScoreMask::Kind::kKeeps;
    mask.value = node->input(0);
    return mask;
  }

  // A mask, part by part where it is the sum of something that masks and something that is not known to: arranged as one
  // they could not be told apart any more.
  absl::StatusOr<Term> PartsOfMask(const ScoreMask& mask) {
    AxisView view;
    view.value = mask.value;
    while (FollowCopy(context_, &view)) {
    }
    const Node* sum = view.value->producer;
    const auto masks = [&](size_t i) { return sum->input(i) != nullptr && ValuesOf(context_, sum->input(i)).known; };
    if (sum == nullptr || !IsOp(*sum, "Add") || masks(0) == masks(1) ||
        atoms_.Leaves(mask.axes) == AxisList{batch_, heads_, queries_, keys_}) {
      return MaskTerm(mask);
    }
    std::vector<Term> parts;
    for (size_t i = 0; i < 2; ++i) {
      ScoreMask part = mask;
      part.value = sum->input(i);
      absl::StatusOr<Term> term = MaskTerm(part);
      if (!term.ok()) return term.status();
      parts.push_back(*std::move(term));
    }
    return build::Op("Add", std::move(parts));
  }

  // What is broadcast to the scores at its place as what is broadcast to [B, H, S, T].
  absl::StatusOr<Term> MaskTerm(const ScoreMask& mask) {
    AxisList wanted = {batch_, heads_, queries_, keys_};
    const AxisList stage = atoms_.Leaves(mask.axes);
    const Fact& fact = context_.facts->Of(mask.value);
    if (stage == wanted) return Term::Of(mask.value);
    if (!fact.has_rank || fact.shape.size() > stage.size()) {
      return Refuse(fmt::format("the shape of {} is not that of the scores", ValueName(*mask.value)), "mask-shape");
    }
    AxisView view;
    view.value = mask.value;
    for (size_t i = 0; i < fact.shape.size(); ++i) {
      const Atoms& axis = stage[stage.size() - fact.shape.size() + i];
      if (fact.shape[i].is(1)) {
        view.axes.emplace_back();
      } else if (context_.dims->Equal(fact.shape[i], atoms_.SizeOf(axis))) {
        view.axes.push_back(axis);
      } else if (const auto whole = std::find(wanted.begin(), wanted.end(), axis); whole != wanted.end()) {
        // Whether it is 1 or all is asked where a node takes it.
        *whole = atoms_.New(fact.shape[i]);
        view.axes.push_back(*whole);
      } else {
        return Refuse(fmt::format("whether axis {} of {} is broadcast to the scores is not known", i, ValueName(*mask.value)),
                      "mask-shape");
      }
    }
    std::optional<Arranged> best;
    int best_cost = 0;
    for (int step = 0; step < kMostOperandSteps; ++step) {
      if (std::optional<Arranged> arranged = MaskAt(view, wanted); arranged.has_value()) {
        // A mask from before it was repeated for every head is one that kernels take.
        const int cost = kCostOfBuilt * arranged->nodes - kCostOfKept * static_cast<int>(view.nodes.size());
        if (!best.has_value() || cost < best_cost) {
          best = arranged;
          best_cost = cost;
        }
      }
      if (!FollowCopy(context_, &view) && !FollowMovement(context_, &atoms_, &view)) break;
    }
    if (best.has_value()) return best->term;
    return Refuse(fmt::format("{} cannot be taken apart into batch, heads, queries and keys", ValueName(*mask.value)),
                  "mask-shape");
  }

  // The mask at this place: each of the wanted axes whole, or not at all.
  std::optional<Arranged> MaskAt(const AxisView& view, const AxisList& wanted) {
    const AxisList axes = atoms_.Leaves(view.axes);
    const Atoms present = Joined(axes);
    AxisList to;
    for (const Atoms& axis : wanted) {
      const Atoms whole = atoms_.Leaves(axis);
      if (!whole.empty() && HasAll(present, whole)) {
        to.push_back(whole);
      } else if (!HasAny(present, whole)) {
        to.emplace_back();
      } else {
        return std::nullopt;
      }
    }
    // What broadcasts to the four axes as it is needs no more axes in front.
    if (axes.size() <= to.size() && std::equal(axes.rbegin(), axes.rend(), to.rbegin()) &&
        std::all_of(to.begin(), to.end() - static_cast<std::ptrdiff_t>(axes.size()), [](const Atoms& a) { return a.empty(); })) {
      return Arranged{Term::Of(view.value), 0};
    }
    return Arrange(context_, atoms_, Term::Of(view.value), axes, to, view.value);
  }

  const FunctionContext& context_;
  AtomTable atoms_;
  Value* y_;
  std::vector<const Node*> reached_;
  std::vector<SizeToProve> sizes_;
  AxisList output_axes_;  // of y
  Atoms keys_;
  Atoms queries_;
  Atoms channels_;  // of the value
  Atoms width_;     // the channels of query and key
  Atoms leading_;   // batch and heads
  Atoms batch_;
  Atoms heads_;
  Atoms shared_;  // heads that are no axis of key and value, but rows of the query in its product
  Operand query_;
  Operand key_;
  Operand value_;
  DataType type_ = DataType::kUndefined;
  Value* query_source_ = nullptr;
};

}  // namespace

absl::StatusOr<AttentionView> FollowAttention(const FunctionContext& context, Value* y) {
  return AttentionReader(context, y).Read();
}

absl::StatusOr<Term> AttentionOutput(const FunctionContext& context, Value* y, const Term& attention) {
  FunctionContext quiet = context;
  quiet.read = nullptr;
  AttentionReader reader(quiet, y);
  if (absl::StatusOr<AttentionView> view = reader.Read(); !view.ok()) return view.status();
  return reader.Output(attention);
}

}  // namespace ascend_fuse
