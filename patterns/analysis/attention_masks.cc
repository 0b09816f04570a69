#include "patterns/analysis/attention_masks.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "fmt/format.h"
#include "ir/status_macros.h"
#include "patterns/analysis/mask.h"
#include "patterns/terms/node_builder.h"
#include "patterns/terms/refusal.h"

namespace ascend_fuse {
namespace {

class MaskReader {
 public:
  MaskReader(const FunctionContext& context, AtomTable* atoms, const AttentionAxes& axes)
      : context_(context), atoms_(atoms), keys_(axes.keys), wanted_{axes.batch, axes.heads, axes.queries, axes.keys} {}

  // A factor of the scores as what is broadcast to [B, H, S, 1], which is one for all keys.
  absl::StatusOr<Term> Factor(const ScoreFactor& factor) {
    const Fact& fact = context_.facts->Of(factor.value);
    const AxisList stage = atoms_->Leaves(factor.axes);
    const auto refuse = [&](std::string_view why) {
      return At(factor.node, Refuse(fmt::format("the scores are multiplied by {}, which {}", ValueName(*factor.value), why),
                                    "attention-not-proved"));
    };
    if (!fact.has_rank || fact.shape.size() > stage.size()) return refuse("has not the shape of the scores");
    for (size_t i = 0; i < fact.shape.size(); ++i) {
      const Atoms& axis = stage[stage.size() - fact.shape.size() + i];
      if (fact.shape[i].is(1)) continue;
      if (!context_.dims->Equal(fact.shape[i], atoms_->SizeOf(axis))) return refuse("may be broadcast to them or not");
      if (HasAny(axis, atoms_->Leaves(keys_))) return refuse("is not the same for all keys");
    }
    wanted_.back() = {};
    return MaskTerm({ScoreMask::Kind::kMultiplied, factor.value, factor.axes});
  }

  absl::StatusOr<MasksOfScores> Read(const ScorePath& path) {
    MasksOfScores masks;
    std::vector<Term> added;  // the one that is added first at the end
    for (const ScoreMask& given : path.masks) {
      const ScoreMask mask = WithoutNot(given);
      ASSIGN_OR_RETURN(Term term, PartsOfMask(mask));
      switch (mask.kind) {
        case ScoreMask::Kind::kAdded:
        case ScoreMask::Kind::kSubtracted:
          added.push_back(Scaled(std::move(term), mask));
          continue;
        case ScoreMask::Kind::kDrops:
          term = build::Op("Not", {std::move(term)});
          break;
        case ScoreMask::Kind::kMultiplied:
          term = build::Cast(std::move(term), DataType::kBool);
          break;
        case ScoreMask::Kind::kKeeps:
          break;
      }
      const bool first = masks.keep.kind == Term::Kind::kAbsent;
      masks.keep = first ? std::move(term) : build::Op("And", {std::move(term), masks.keep});
    }
    if (!added.empty()) masks.added = added.front();
    for (size_t i = 1; i < added.size(); ++i) {
      masks.bias = i == 1 ? added[i] : build::Op("Add", {added[i], masks.bias});
    }
    return masks;
  }

 private:
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

  // The mask without a Not that stands after the repeats for every head, which it keeps from being followed.
  ScoreMask WithoutNot(ScoreMask mask) {
    const bool keeps = mask.kind == ScoreMask::Kind::kKeeps;
    if (!keeps && mask.kind != ScoreMask::Kind::kDrops) return mask;
    AxisView view;
    view.value = mask.value;
    while (FollowCopy(context_, &view)) {
    }
    const Node* node = view.value->producer;
    const AxisList stage = atoms_->Leaves(mask.axes);
    if (node == nullptr || !IsOp(*node, "Not") || stage == wanted_) return mask;
    view.value = node->input(0);
    const Fact& fact = context_.facts->Of(view.value);
    if (!fact.has_rank || fact.shape.size() > stage.size()) return mask;
    for (size_t i = 0; i < fact.shape.size(); ++i) {
      const Atoms& axis = stage[stage.size() - fact.shape.size() + i];
      view.axes.push_back(fact.shape[i].is(1) ? Atoms() : axis);
      if (!fact.shape[i].is(1) && !context_.dims->Equal(fact.shape[i], atoms_->SizeOf(axis))) return mask;
    }
    for (int step = 0; step < kMostOperandSteps && view.copied.empty(); ++step) {
      if (!FollowCopy(context_, &view) && !FollowMovement(context_, atoms_, &view)) return mask;
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
    if (sum == nullptr || !IsOp(*sum, "Add") || masks(0) == masks(1) || atoms_->Leaves(mask.axes) == wanted_) {
      return MaskTerm(mask);
    }
    std::vector<Term> parts;
    for (size_t i = 0; i < 2; ++i) {
      ScoreMask part = mask;
      part.value = sum->input(i);
      ASSIGN_OR_RETURN(Term term, MaskTerm(part));
      parts.push_back(std::move(term));
    }
    return build::Op("Add", std::move(parts));
  }

  // What is broadcast to the scores at its place as what is broadcast to [B, H, S, T].
  absl::StatusOr<Term> MaskTerm(const ScoreMask& mask) {
    const AxisList stage = atoms_->Leaves(mask.axes);
    const Fact& fact = context_.facts->Of(mask.value);
    if (stage == wanted_) return Term::Of(mask.value);
    if (!fact.has_rank || fact.shape.size() > stage.size()) {
      return Refuse(fmt::format("the shape of {} is not that of the scores", ValueName(*mask.value)), "mask-shape");
    }
    AxisList wanted = wanted_;
    AxisView view;
    view.value = mask.value;
    for (size_t i = 0; i < fact.shape.size(); ++i) {
      const Atoms& axis = stage[stage.size() - fact.shape.size() + i];
      if (fact.shape[i].is(1)) {
        view.axes.emplace_back();
      } else if (context_.dims->Equal(fact.shape[i], atoms_->SizeOf(axis))) {
        view.axes.push_back(axis);
      } else if (const auto whole = std::find(wanted.begin(), wanted.end(), axis); whole != wanted.end()) {
        // Whether it is 1 or all is asked where a node takes it.
        *whole = atoms_->New(fact.shape[i]);
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
      if (!FollowCopy(context_, &view) && !FollowMovement(context_, atoms_, &view)) break;
    }
    if (best.has_value()) return best->term;
    return Refuse(fmt::format("{} cannot be taken apart into batch, heads, queries and keys", ValueName(*mask.value)),
                  "mask-shape");
  }

  // The mask at this place, which has some atoms of an axis: repeated along the others, as rows and columns of an image are
  // that make one axis of keys.
  std::optional<Arranged> RepeatedInAxes(const AxisView& view, const AxisList& wanted) {
    const AxisList axes = atoms_->Leaves(view.axes);
    const Atoms present = Joined(axes);
    AxisList apart;   // the atoms of such an axis by themselves, those that the mask has
    AxisList filled;  // and all of them
    AxisList to;
    std::vector<Term> dims;
    for (const Atoms& axis : wanted) {
      const Atoms whole = atoms_->Leaves(axis);
      const bool some = HasAny(present, whole);
      to.push_back(some ? whole : Atoms());
      if (!some || HasAll(present, whole)) {
        apart.push_back(to.back());
        filled.push_back(to.back());
        dims.push_back(Term::Integer(1));
        continue;
      }
      for (int atom : whole) {
        const bool has = Contains(present, atom);
        apart.push_back(has ? Atoms{atom} : Atoms());
        filled.push_back({atom});
        const auto dim = has ? std::optional(Term::Integer(1)) : DimAtRunTime(context_, atoms_->SizeOf({atom}), view.value);
        if (!dim.has_value()) return std::nullopt;
        dims.push_back(*dim);
      }
    }
    const auto split = Arrange(context_, *atoms_, Term::Of(view.value), axes, apart, view.value);
    if (!split.has_value()) return std::nullopt;
    Term whole = build::Op("Expand", {split->term, build::Vector(dims)});
    auto merged = Arrange(context_, *atoms_, std::move(whole), filled, to, view.value);
    if (merged.has_value()) merged->nodes += split->nodes + 1;
    return merged;
  }

  // The mask at this place: each of the wanted axes whole, or not at all.
  std::optional<Arranged> MaskAt(const AxisView& view, const AxisList& wanted) {
    const AxisList axes = atoms_->Leaves(view.axes);
    const Atoms present = Joined(axes);
    AxisList to;
    for (const Atoms& axis : wanted) {
      const Atoms whole = atoms_->Leaves(axis);
      if (!whole.empty() && HasAll(present, whole)) {
        to.push_back(whole);
      } else if (!HasAny(present, whole)) {
        to.emplace_back();
      } else {
        return RepeatedInAxes(view, wanted);
      }
    }
    // What broadcasts to the four axes as it is needs no more axes in front.
    if (axes.size() <= to.size() && std::equal(axes.rbegin(), axes.rend(), to.rbegin()) &&
        std::all_of(to.begin(), to.end() - static_cast<std::ptrdiff_t>(axes.size()), [](const Atoms& a) { return a.empty(); })) {
      return Arranged{Term::Of(view.value), 0};
    }
    return Arrange(context_, *atoms_, Term::Of(view.value), axes, to, view.value);
  }

  const FunctionContext& context_;
  AtomTable* atoms_;
  const Atoms keys_;
  AxisList wanted_;  // the axes that kernels broadcast a mask to
};

}  // namespace

absl::StatusOr<Term> QueryWithFactors(const FunctionContext& context, AtomTable* atoms, const AttentionAxes& axes,
                                      const ScorePath& path, Term query, DataType type) {
  for (const ScoreFactor& factor : path.factors) {
    ASSIGN_OR_RETURN(Term term, MaskReader(context, atoms, axes).Factor(factor));
    const DataType given = context.facts->Of(factor.value).type;
    // Of a half-precision query and a factor of more digits each product is rounded once.
    const bool wider = given == DataType::kFloat && type != DataType::kFloat;
    if (wider) query = build::Cast(std::move(query), given);
    if (!wider && given != type) term = build::Cast(std::move(term), type);
    query = build::Op(factor.divides ? "Div" : "Mul", {std::move(query), std::move(term)});
    if (wider) query = build::Cast(std::move(query), type);
  }
  return query;
}

absl::StatusOr<MasksOfScores> ReadMasksOfScores(const FunctionContext& context, AtomTable* atoms, const AttentionAxes& axes,
                                                const ScorePath& path) {
  return MaskReader(context, atoms, axes).Read(path);
}

}  // namespace ascend_fuse
