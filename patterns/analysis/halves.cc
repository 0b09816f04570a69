#include "patterns/analysis/halves.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <vector>

#include "fmt/format.h"
#include "ir/infer/movement_of.h"
#include "patterns/analysis/channels.h"
#include "patterns/terms/node_builder.h"
#include "patterns/terms/refusal.h"

namespace ascend_fuse {
namespace {

// Which half the elements start, start + step ... of an axis of `width` are, half as many as that; nullopt: none.
std::optional<int> HalfFrom(DimTable& dims, Dim start, int64_t step, Dim width) {
  if (start.is(0)) return 0;
  if (step == 2) return start.is(1) ? std::optional(1) : std::nullopt;
  return dims.Equal(dims.Mul(start, Dim::Of(2)), width) ? std::optional(1) : std::nullopt;
}

// The part of `source` that `map` takes of its leading axes, which must have the leading dims of `like`; all of it where
// `like` is null. nullopt where it has not, or where the bounds are not known.
std::optional<Term> PartOf(const FunctionContext& context, const Value* source, const ChannelMap& map, const Value* like) {
  const Fact& fact = context.facts->Of(source);
  std::vector<Term> starts, ends, axes;
  for (size_t i = 0; i < map.windows.size(); ++i) {
    const Window& window = map.windows[i];
    if (like != nullptr) {
      const Dim extent = window.whole ? fact.shape[i] : window.extent;
      if (!context.facts->dims().Equal(extent, context.facts->Of(like).shape[i])) return std::nullopt;
    }
    if (window.whole) continue;
    const DimTable& dims = context.facts->dims();
    if (like == nullptr || !window.start.is_number()) return std::nullopt;
    int64_t end = std::numeric_limits<int64_t>::max();
    if (window.extent.is_number()) {
      end = window.start.number() + window.extent.number();
    } else if (!dims.Equal(context.dims->Add(window.start, window.extent), fact.shape[i])) {
      return std::nullopt;
    }
    starts.push_back(Term::Integer(window.start.number()));
    ends.push_back(Term::Integer(end));
    axes.push_back(Term::Integer(static_cast<int64_t>(i)));
  }
  if (starts.empty()) return Term::Of(source);
  return Term::Node(
      {"",
       "Slice",
       {{"starts", Term::List(std::move(starts))}, {"ends", Term::List(std::move(ends))}, {"axes", Term::List(std::move(axes))}},
       {Term::Of(source)},
       1});
}

}  // namespace

absl::StatusOr<HalfOf> FindHalf(const FunctionContext& context, const Value* part) {
  const Value* value = part;
  while (context.numbering->Source(value) != nullptr) value = context.numbering->Source(value);
  const auto no = [&](std::string_view why) {
    return Refuse(fmt::format("{} is not a half: {}", ValueName(*value), why), "not-a-half");
  };
  const Node* node = value->producer;
  if (node == nullptr || node->input(0) == nullptr) return no("nothing computes it");
  const Movement* movement = context.facts->MovementOf(value);
  const MovedPart* taken = movement != nullptr && movement->kind == MovementKind::kPicks ? movement->only() : nullptr;
  if (taken == nullptr) return no(fmt::format("{} computes it", OpType(*node)));
  DimTable& dims = *context.dims;
  const Fact& whole = context.facts->Of(node->input(taken->operand));
  const Fact& cut = context.facts->Of(value);
  if (whole.rank() < 1 || cut.rank() != whole.rank()) return no("the shapes are not known");
  if (!taken->known) return no("it is not cut along one axis with known bounds");
  // The one axis that is cut; the others are taken whole, in order.
  std::optional<size_t> place;
  for (size_t axis = 0; axis < taken->axes.size(); ++axis) {
    const AxisSource& source = taken->axes[axis];
    const bool own = source.kind == AxisSource::Kind::kPlace && source.step == 1;
    if (own && dims.Equal(whole.shape[axis], cut.shape[axis])) continue;
    if (place.has_value()) return no("it is cut along several axes");
    place = axis;
  }
  if (!place.has_value()) return no("it is not cut along one axis with known bounds");
  const AxisSource& source = taken->axes[*place];
  const Dim width = whole.shape[*place];
  const Dim part_width = cut.shape[*place];
  if (!dims.Equal(dims.Mul(part_width, Dim::Of(2)), width)) {
    return no(fmt::format("it is {} wide, cut from {}", dims.ToString(part_width), dims.ToString(width)));
  }
  if (source.kind == AxisSource::Kind::kRead) {
    const bool known = IntsParameter(*context.facts, *node, "", source.operand).has_value();
    return no(fmt::format("the indices of {} {}", OpType(*node), known ? "do not run through it in order" : "are not known"));
  }
  if (source.kind != AxisSource::Kind::kPlace || (source.step != 1 && source.step != 2)) {
    return no(fmt::format("{} has a step other than 1", OpType(*node)));
  }
  const std::optional<int> index = HalfFrom(dims, source.start, source.step, width);
  if (!index.has_value()) return no("it starts elsewhere");
  return HalfOf{node->input(taken->operand), static_cast<int>(*place), *index, source.step == 2};
}

namespace {

// The halves of last axes that the value is computed from, `steps` nodes away at most.
void AddHalvesUnder(const FunctionContext& context, const Value* value, int steps, std::vector<HalfOf>* found) {
  if (value == nullptr || value->producer == nullptr) return;
  if (const absl::StatusOr<HalfOf> half = FindHalf(context, value); half.ok()) {
    if (half->axis == context.facts->Of(half->whole).rank() - 1) found->push_back(*half);
    return;
  }
  if (steps == 0 || value->producer->inputs().size() > 2) return;
  for (const Use& use : value->producer->inputs()) AddHalvesUnder(context, use.value, steps - 1, found);
}

}  // namespace

bool AreOfHalvesOfOne(const FunctionContext& context, const Value* a, const Value* b) {
  constexpr int kSteps = 3;  // a sum, a product, and an axis of its own
  std::vector<HalfOf> left;
  AddHalvesUnder(context, a, kSteps, &left);
  if (left.empty()) return false;
  std::vector<HalfOf> right;
  AddHalvesUnder(context, b, kSteps, &right);
  return std::any_of(left.begin(), left.end(), [&](const HalfOf& one) {
    return std::any_of(right.begin(), right.end(),
                       [&](const HalfOf& other) { return one.whole == other.whole && one.index != other.index; });
  });
}

bool JoinsHalvesOfOne(const FunctionContext& context, const Node& join) {
  return join.inputs().size() == 2 && context.facts->Of(join.output(0)).rank() >= 2 &&
         AreOfHalvesOfOne(context, join.input(0), join.input(1));
}

absl::StatusOr<std::string> JoinMode(const FunctionContext& context, const Value* y, const Value* a, const Value* b) {
  const Fact& fact = context.facts->Of(y);
  if (fact.rank() < 1 || !fact.shape.back().is_number()) {
    return ChannelsNotProved(fmt::format("the width of {} is not known", ValueName(*y)));
  }
  const int64_t width = fact.shape.back().number();
  const Movement* concat = nullptr;
  for (const Value* value : CutFrom(context, y)) {
    const Node* node = value->producer;
    if (node == nullptr) break;
    const Movement* movement = context.facts->MovementOf(value);
    if (movement != nullptr && movement->kind == MovementKind::kJoins && context.numbering->Source(value) == nullptr) {
      concat = movement;
      break;
    }
    if (!KeepsOrder(*context.facts, *node) && context.numbering->Source(value) == nullptr) break;
  }
  if (concat == nullptr || concat->parts.size() != 2 || !concat->parts[0].known)
    return ChannelsNotProved("two parts are not joined by one Concat");
  // [..., D/2] or, with an axis for the pair, [..., D/2, 1].
  const Fact& part = context.facts->Of(a);
  const int extra = part.rank() - fact.rank();
  if (extra < 0 || extra > 1 || (extra == 1 && !part.shape.back().is(1)) ||
      !part.shape[static_cast<size_t>(fact.rank()) - 1].is(width / 2) || width % 2 != 0) {
    return ChannelsNotProved(fmt::format("{} is not a half of {}", context.facts->Describe(a), context.facts->Describe(y)));
  }
  const int leading = fact.rank() - 1;
  const int at = concat->parts[0].windows[0].axis;
  auto is = [&](const Value* operand, const Value* wanted) {
    for (const Value* value : CutFrom(context, operand)) {
      if (context.numbering->Same(value, wanted)) return true;
      const Node* node = value->producer;
      if (node == nullptr || (!KeepsOrder(*context.facts, *node) && context.numbering->Source(value) == nullptr)) return false;
    }
    return false;
  };
  if (!is(concat->node->input(0), a) || !is(concat->node->input(1), b)) return ChannelsNotProved("other parts are joined");
  // The operands of the Concat are [leading ..., D/2] with unit axes put in.
  const Fact& operand = context.facts->Of(concat->node->input(0));
  if (!operand.has_rank || operand.rank() < leading + 1 ||
      !context.facts->dims().Equal(operand.shape.subspan(0, static_cast<size_t>(leading)),
                                   fact.shape.subspan(0, static_cast<size_t>(leading)))) {
    return ChannelsNotProved("the parts are joined with other leading dims");
  }
  int64_t channels_before = 1;
  int64_t channels_behind = 1;
  for (int i = leading; i < operand.rank(); ++i) {
    if (!operand.shape[static_cast<size_t>(i)].is_number()) return ChannelsNotProved("the width of the parts is not known");
    const int64_t dim = operand.shape[static_cast<size_t>(i)].number();
    if (i < at) channels_before *= dim;
    if (i >= at) channels_behind *= dim;
  }
  if (at < leading || channels_before * channels_behind != width / 2) {
    return ChannelsNotProved(fmt::format("the parts are joined on axis {}, which is not that of the channels", at));
  }
  if (channels_before == 1) return std::string("half");
  if (channels_behind == 1) return std::string("interleaved");
  return ChannelsNotProved("the parts are joined in blocks");
}

namespace {

// A shape: that of `value` with the last axis `scale` times as long.
struct Like {
  const Value* value = nullptr;
  int64_t scale = 1;
};

// The same of a source whose last axis holds all heads, which a and b are cut into at once: [..., H D] as [..., H, D].
std::optional<Cut> CutOfHeads(const FunctionContext& context, const Value* a, const Value* b, const Value* source,
                              const Like& like) {
  const Fact& fact = context.facts->Of(source);
  const Fact& model = context.facts->Of(like.value);
  const auto leading = static_cast<size_t>(fact.rank()) - 1;
  if (fact.rank() < 2 || model.shape.size() <= leading || !fact.shape.back().is_number()) return std::nullopt;
  std::vector<int64_t> dims(leading, 0);
  int64_t count = like.scale;
  for (size_t i = leading; i < model.shape.size(); ++i) {
    if (!model.shape[i].is_number() || model.shape[i].number() < 1) return std::nullopt;
    dims.push_back(model.shape[i].number());
    count *= dims.back();
  }
  dims.back() *= like.scale;
  const int64_t width = dims.back();
  if (!fact.shape.back().is(count) || width % 2 != 0) return std::nullopt;
  const absl::StatusOr<ChannelMap> first = FollowChannels(context, a, {source});
  const absl::StatusOr<ChannelMap> second = first.ok() ? FollowChannels(context, b, {source}) : first;
  if (!second.ok() || !first->IsWhole() || !second->IsWhole() || !first->InOrder() || !second->InOrder()) return std::nullopt;
  if (!PartOf(context, source, *first, like.value).has_value()) return std::nullopt;
  std::vector<int64_t> trailing(dims.begin() + static_cast<std::ptrdiff_t>(leading), dims.end());
  trailing.back() /= 2;
  if (first->trailing != trailing || second->trailing != trailing) return std::nullopt;
  const std::vector<Channel> p = ListOf(*first);
  const std::vector<Channel> q = ListOf(*second);
  if (p.size() != static_cast<size_t>(count / 2) || q.size() != p.size()) return std::nullopt;
  for (const bool pairs : {false, true}) {
    bool fits = true;
    for (int64_t at = 0; at < count / 2 && fits; ++at) {
      const int64_t head = at / (width / 2) * width;
      const int64_t place = at % (width / 2);
      const Channel& one = p[static_cast<size_t>(at)];
      const Channel& other = q[static_cast<size_t>(at)];
      fits = !one.negative && !other.negative && one.index == head + (pairs ? 2 * place : place) &&
             other.index == head + (pairs ? 2 * place + 1 : width / 2 + place);
    }
    if (!fits) continue;
    NoteRead(context, first->nodes);
    NoteRead(context, second->nodes);
    return Cut{source, pairs ? "interleaved" : "half", build::Reshape(Term::Of(source), dims)};
  }
  return std::nullopt;
}

}  // namespace

absl::StatusOr<Cut> CutSource(const FunctionContext& context, const Value* a, const Value* b, const Value* like, int64_t scale) {
  absl::Status why;
  for (const Value* source : CutFrom(context, a)) {
    const Fact& fact = context.facts->Of(source);
    if (fact.rank() < 2 || !fact.shape.back().is_number()) continue;
    if (like != nullptr) {
      const Fact& model = context.facts->Of(like);
      if (model.rank() != fact.rank() || !model.shape.back().is_number() ||
          !fact.shape.back().is(scale * model.shape.back().number())) {
        continue;
      }
    }
    const absl::StatusOr<ChannelMap> first = FollowChannels(context, a, {source});
    if (!first.ok()) continue;
    const std::optional<Term> part = PartOf(context, source, *first, like);
    if (!part.has_value()) continue;
    const int64_t width = first->channels.size();
    if (!fact.shape.back().is(2 * width)) {
      if (why.ok() && source != a) {
        why = ChannelsNotProved(fmt::format("{} is {} channels of the {} of {}, not half of them", ValueName(*a), width,
                                            context.facts->dims().ToString(fact.shape.back()), ValueName(*source)));
      }
      continue;
    }
    const absl::StatusOr<ChannelMap> second = FollowChannels(context, b, {source});
    if (!second.ok()) {
      if (why.ok()) why = second.status();
      continue;
    }
    if (!first->InOrder()) {  // transposed after the cut: the parts of something else
      if (why.ok())
        why = ChannelsNotProved(fmt::format("{} has the axes of {} in another order", ValueName(*a), ValueName(*source)));
      continue;
    }
    // Two parts that lie along different axes broadcast against each other.
    if (second->axes != first->axes || second->trailing != first->trailing ||
        !SameWindows(*first, *second, context.facts->dims())) {
      if (why.ok())
        why = ChannelsNotProved(fmt::format("{} and {} do not lie along the same axes", ValueName(*a), ValueName(*b)));
      continue;
    }
    const std::vector<Channel> p = ListOf(*first);
    const std::vector<Channel> q = ListOf(*second);
    if (p.empty() || p.size() != q.size()) continue;
    for (const bool pairs : {false, true}) {
      bool fits = true;
      for (int64_t i = 0; i < width && fits; ++i) {
        const auto at = static_cast<size_t>(i);
        fits = !p[at].negative && !q[at].negative && p[at].index == (pairs ? 2 * i : i) &&
               q[at].index == (pairs ? 2 * i + 1 : width + i);
      }
      if (!fits) continue;
      NoteRead(context, first->nodes);
      NoteRead(context, second->nodes);
      return Cut{source, pairs ? "interleaved" : "half", *part};
    }
    if (why.ok()) {
      why = ChannelsNotProved(fmt::format("{} begins with channel {} of {} and {} with channel {}: neither halves nor pairs",
                                          ValueName(*a), p[0].index, ValueName(*source), ValueName(*b), q[0].index));
    }
  }
  for (const Value* source : CutFrom(context, a)) {
    if (like == nullptr || context.facts->Of(like).rank() <= context.facts->Of(source).rank()) continue;
    if (auto cut = CutOfHeads(context, a, b, source, {like, scale}); cut.has_value()) return *std::move(cut);
  }
  if (!why.ok()) return why;
  return ChannelsNotProved(fmt::format("{} and {} are not cut from the last axis of one value", ValueName(*a), ValueName(*b)));
}

}  // namespace ascend_fuse
