#include "patterns/analysis/rotation.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "fmt/format.h"
#include "ir/attribute.h"
#include "ir/infer/movement_of.h"
#include "ir/status_macros.h"
#include "patterns/analysis/channels.h"
#include "patterns/terms/refusal.h"

namespace ascend_fuse {
namespace {

struct RotationForm {
  const char* name;
  int64_t (*partner)(int64_t channel, int64_t width);
  bool (*negative)(int64_t channel, int64_t width);
  int64_t multiple;
  const char* first;  // what stands in front and must be negated
  const char* second;
};

constexpr RotationForm kRotations[] = {
    {"half", [](int64_t i, int64_t d) { return i < d / 2 ? i + d / 2 : i - d / 2; },
     [](int64_t i, int64_t d) { return i < d / 2; }, 2, "second half", "first half"},
    {"interleaved", [](int64_t i, int64_t) { return i ^ 1; }, [](int64_t i, int64_t) { return i % 2 == 0; }, 2, "odd channels",
     "even channels"},
    {"quarter", [](int64_t i, int64_t d) { return (i / (d / 4)) % 2 == 0 ? i + d / 4 : i - d / 4; },
     [](int64_t i, int64_t d) { return (i / (d / 4)) % 2 == 0; }, 4, "second and fourth quarter", "first and third quarter"},
};

// The rotation that takes channel channels[i] to place i.
absl::StatusOr<std::string> ModeOf(const std::vector<Channel>& channels) {
  const auto width = static_cast<int64_t>(channels.size());
  for (const RotationForm& mode : kRotations) {
    if (width % mode.multiple != 0) continue;
    int64_t same = 0;
    int64_t opposite = 0;
    int64_t negatives = 0;
    bool moved = true;
    for (int64_t i = 0; i < width && moved; ++i) {
      const Channel& channel = channels[static_cast<size_t>(i)];
      moved = channel.index == mode.partner(i, width);
      negatives += channel.negative ? 1 : 0;
      (channel.negative == mode.negative(i, width) ? same : opposite) += 1;
    }
    if (!moved) continue;
    if (same == width) return std::string(mode.name);
    if (opposite == width) {
      return ChannelsNotProved(
          fmt::format("it turns the other way: minus stands before the {}, or the product with sin is subtracted", mode.second));
    }
    if (negatives == 0) return ChannelsNotProved(fmt::format("no part is negated; a rotation negates the {}", mode.first));
    if (negatives == width)
      return ChannelsNotProved(fmt::format("both parts are negated; a rotation negates the {} only", mode.first));
    return ChannelsNotProved(fmt::format("the signs are those of no rotation; one negates the {} only", mode.first));
  }
  for (int64_t i = 0; i < width; ++i) {
    const Channel& channel = channels[static_cast<size_t>(i)];
    if (channel.index == i) {
      return ChannelsNotProved(fmt::format("channel {} stays in its place: no rotation by halves, pairs or quarters", i));
    }
    bool any = false;
    for (const RotationForm& mode : kRotations) {
      any = any || (width % mode.multiple == 0 && channel.index == mode.partner(i, width));
    }
    if (!any) {
      return ChannelsNotProved(fmt::format(
          "channel {} takes the place of channel {} of {}: no rotation by halves, pairs or quarters", channel.index, i, width));
    }
  }
  return ChannelsNotProved("the channels change places in a mixture of ways: no rotation by halves, pairs or quarters");
}

// A part that is not half of the channels is what makes the whole another one than x.
absl::Status OtherShape(const FunctionContext& context, const std::vector<const Node*>& nodes, const Value& rotated,
                        const Value& value) {
  const absl::Status other = ChannelsNotProved(fmt::format("{} has another shape than {}", ValueName(rotated), ValueName(value)));
  const Fact& x = context.facts->Of(&value);
  if (x.rank() < 1 || !x.shape.back().is_number()) return other;
  const int64_t half = x.shape.back().number() / 2;
  for (const Node* node : nodes) {
    if (KindOf(*context.facts, *node) != MovementKind::kPicks) continue;
    for (const Value* part : node->outputs()) {
      if (part == nullptr) continue;
      const Fact& fact = context.facts->Of(part);
      if (fact.rank() != x.rank() || !fact.shape.back().is_number() || fact.shape.back().is(half)) continue;
      return At(node, ChannelsNotProved(fmt::format("{} has {} channels, and half of them are {}", ValueName(*part),
                                                    fact.shape.back().number(), half)));
    }
  }
  return other;
}

absl::StatusOr<std::string> ModeOfRotated(const FunctionContext& context, const Value* rotated, const Value* x, int sign,
                                          const Value* signs) {
  // The same Cast of both changes nothing of which channel is which.
  while (rotated->producer != nullptr && x->producer != nullptr && rotated != x && IsOp(*rotated->producer, "Cast") &&
         IsOp(*x->producer, "Cast") && IntAttribute(*rotated->producer, "to") == IntAttribute(*x->producer, "to") &&
         context.facts->Of(rotated->producer->input(0)).type == context.facts->Of(x->producer->input(0)).type) {
    NoteRead(context, {rotated->producer});
    rotated = rotated->producer->input(0);
    x = x->producer->input(0);
  }
  // From x itself or, where slices of slices were merged, from what both are cut from.
  absl::StatusOr<ChannelMap> map = ChannelsNotProved("");
  std::vector<Channel> of_x;
  std::vector<const Node*> longest;
  absl::Status why;
  for (const Value* source : CutFrom(context, x)) {
    std::vector<const Node*> reached;
    map = FollowChannels(context, rotated, {source}, &reached);
    if (reached.size() > longest.size()) longest = reached;
    if (why.ok()) why = map.status();
    if (!map.ok()) continue;
    if (source == x && !map->IsWhole()) {
      map = ChannelsNotProved(fmt::format("it is a part of {} along another axis", ValueName(*x)));
      why = map.status();
      continue;
    }
    if (source != x) {
      const absl::StatusOr<ChannelMap> own = FollowChannels(context, x, {source});
      if (!own.ok()) {
        map = own.status();
        continue;
      }
      if (!SameWindows(*own, *map, context.facts->dims())) {
        return ChannelsNotProved(
            fmt::format("{} and {} are different parts of {}", ValueName(*rotated), ValueName(*x), ValueName(*source)));
      }
      if (own->axes != map->axes || own->trailing != map->trailing) {
        return ChannelsNotProved(fmt::format("{} and {} do not lie along the same axes", ValueName(*rotated), ValueName(*x)));
      }
      of_x = ListOf(*own);
    }
    break;
  }
  NoteRead(context, longest);
  if (!map.ok()) {
    return ChannelsNotProved(
        fmt::format("{} is not made of the channels of {}: {}", ValueName(*rotated), ValueName(*x), std::string(why.message())));
  }
  if (!map->IsLike(context.facts->Of(x))) return OtherShape(context, longest, *rotated, *x);
  const int64_t width = map->trailing[0];
  std::vector<Channel> channels = ListOf(*map);
  if (channels.empty()) return ChannelsNotProved("too many channels");
  if (!of_x.empty()) {
    absl::flat_hash_map<int64_t, int64_t> place_of;  // the first one, by channel of the source
    for (size_t i = 0; i < of_x.size(); ++i) place_of.try_emplace(of_x[i].index, static_cast<int64_t>(i));
    for (int64_t i = 0; i < width; ++i) {
      Channel& channel = channels[static_cast<size_t>(i)];
      const auto at = place_of.find(channel.index);
      if (at == place_of.end()) {
        return ChannelsNotProved(fmt::format("channel {} of {} is not among those of {}", i, ValueName(*rotated), ValueName(*x)));
      }
      channel.index = at->second;
      channel.negative = channel.negative != of_x[static_cast<size_t>(at->second)].negative;
    }
  }
  if (sign < 0) {
    for (Channel& channel : channels) channel.negative = !channel.negative;
  }
  if (signs != nullptr) {
    const auto negative = SignsOf(context, *signs);
    const Fact& fact = context.facts->Of(signs);
    if (!negative.has_value() || static_cast<int64_t>(negative->size()) != width || !fact.shape.back().is(width)) {
      return ChannelsNotProved(fmt::format("{} does not hold a sign for every channel", ValueName(*signs)));
    }
    for (size_t i = 0; i < channels.size(); ++i) channels[i].negative = channels[i].negative != (*negative)[i];
  }
  return ModeOf(channels);
}

}  // namespace

absl::StatusOr<std::string> RotationMode(const FunctionContext& context, const Value* rotated, const Value* x, int sign,
                                         const Value* signs) {
  absl::StatusOr<std::string> mode = ModeOfRotated(context, rotated, x, sign, signs);
  return mode.ok() ? std::move(mode) : At(rotated->producer, mode.status());
}

absl::StatusOr<const Value*> DeinterleavedSource(const FunctionContext& context, const Value* x) {
  for (const Value* source : CutFrom(context, x)) {
    if (source == x) continue;
    const absl::StatusOr<ChannelMap> map = FollowChannels(context, x, {source});
    if (!map.ok() || !map->IsLike(context.facts->Of(x)) || !map->IsWhole() ||
        !context.facts->dims().Equal(context.facts->Of(x).shape, context.facts->Of(source).shape)) {
      continue;
    }
    const int64_t width = map->trailing[0];
    const std::vector<Channel> channels = ListOf(*map);
    bool fits = width % 2 == 0 && width > 2 && !channels.empty();
    for (int64_t i = 0; i < width && fits; ++i) {
      const Channel& channel = channels[static_cast<size_t>(i)];
      fits = !channel.negative && channel.index == (i < width / 2 ? 2 * i : 2 * (i - width / 2) + 1);
    }
    if (!fits) continue;
    NoteRead(context, map->nodes);
    return source;
  }
  return ChannelsNotProved(fmt::format("{} is not the even and then the odd channels of anything", ValueName(*x)));
}

}  // namespace ascend_fuse
