#include "passes/layout/channel_paths.h"

#include <algorithm>
#include <utility>

#include "ir/infer/movement_of.h"
#include "patterns/analysis/channels.h"

namespace ascend_fuse {
namespace {

// The order of the last axis in which `later` has the channels of `earlier`, where it is a value of the same shape that
// differs in that alone.
std::optional<ChannelOrder> OrderBetween(const FunctionContext& context, const Value* earlier, const Value* later) {
  const Fact& fact = context.facts->Of(earlier);
  if (!fact.has_rank || !context.facts->Of(later).has_rank) return std::nullopt;
  if (!context.dims->Equal(fact.shape, context.facts->Of(later).shape)) return std::nullopt;
  const absl::StatusOr<ChannelMap> map = FollowChannels(context, later, {earlier});
  if (!map.ok() || map->trailing.size() != 1 || map->axes.back() != ChannelMap::kChannels) return std::nullopt;
  if (!std::is_sorted(map->axes.begin(), map->axes.end() - 1)) return std::nullopt;
  ChannelOrder order;
  const std::vector<Channel> channels = ListOf(*map);
  std::vector<bool> seen(channels.size(), false);
  for (const Channel& channel : channels) {
    const auto at = static_cast<size_t>(channel.index);
    if (channel.negative || at >= seen.size() || seen[at]) return std::nullopt;
    seen[at] = true;
    order.push_back(channel.index);
  }
  if (std::is_sorted(order.begin(), order.end())) return std::nullopt;
  return map->IsWhole() ? std::optional(order) : std::nullopt;
}

}  // namespace

std::optional<Reordered> FindOrder(const FunctionContext& context, const std::vector<const Value*>& path) {
  for (size_t later = 0; later < path.size(); ++later) {
    for (size_t earlier = later + 1; earlier < path.size(); ++earlier) {
      std::optional<ChannelOrder> order = OrderBetween(context, path[earlier], path[later]);
      if (order.has_value()) return Reordered{path[earlier], path[later], *std::move(order)};
    }
  }
  return std::nullopt;
}

bool OnlyMoves(const Facts& facts, const Node& node) {
  const MovementKind movement = KindOf(facts, node);
  return movement == MovementKind::kKeepsOrder || movement == MovementKind::kPermutes || movement == MovementKind::kPicks;
}

const Use* OnlyUse(const Value& value) {
  if (!ReadOnce(value)) return nullptr;
  return &*LiveUses(value).begin();
}

bool SameWidth(const FunctionContext& context, const Value* a, const Value* b) {
  const Fact& first = context.facts->Of(a);
  const Fact& second = context.facts->Of(b);
  return first.rank() > 0 && second.rank() > 0 && first.shape.back().is_number() &&
         context.dims->Equal(first.shape.back(), second.shape.back());
}

}  // namespace ascend_fuse
