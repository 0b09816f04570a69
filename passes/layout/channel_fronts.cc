#include "passes/layout/channel_fronts.h"

#include <optional>
#include <utility>

#include "fmt/format.h"
#include "ir/infer/movement_of.h"
#include "patterns/analysis/channels.h"

namespace ascend_fuse {
std::string ChannelFronts::Find(ChannelFront* front) const {
  front->path = {front->kernel->input(0)};
  while (front->path.size() <= kMaximumChannelSteps) {
    const Node* node = front->path.back()->producer;
    if (node == nullptr || !OnlyMoves(*context_.facts, *node) || node->graph != front->kernel->graph) break;
    front->path.push_back(node->input(0));
  }
  std::optional<Reordered> apart = FindOrder(context_, front->path);
  if (!apart.has_value()) return "";
  front->apart = *std::move(apart);
  absl::StatusOr<LinearView> linear = FindLinear(context_, front->path.back());
  if (!linear.ok()) return std::string(linear.status().message());
  front->linear = *std::move(linear);
  if (std::string why = WhyNotOrdered(front->linear); !why.empty()) return why;
  const Value* base = nullptr;
  if (std::string why = FindChannels(front, &base); !why.empty()) return why;
  if (std::string why = WhyReadElsewhere(*front, base); !why.empty()) return why;
  if (front->linear.product->graph != front->kernel->graph) return "the projection stands in another graph";
  front->base = base;
  return "";
}

// Why the columns of the weight cannot be put in another order.
std::string ChannelFronts::WhyNotOrdered(const LinearView& linear) const {
  if (!linear.plain) return linear.why_not_plain;
  for (const Value* constant : {linear.weight, linear.bias}) {
    if (constant == nullptr) continue;
    if (!constant->IsConstant()) return fmt::format("{} is not an initializer", ValueName(*constant));
    if (std::string why = OtherReader(constant); !why.empty()) return why;
    const Storage storage = constant->initializer->storage;
    if (storage == Storage::kNone || BitWidth(constant->initializer->type) % 8 != 0) {
      return fmt::format("the elements of {} are not given as whole bytes of the input", ValueName(*constant));
    }
  }
  if (linear.bias != nullptr && context_.facts->Of(linear.bias).rank() != 1) {
    return fmt::format("the bias {} has not one dim", ValueName(*linear.bias));
  }
  for (const Value* value : linear.chain) {
    if (value == linear.chain.front()) continue;
    if (std::string why = OtherReader(value); !why.empty()) return why;
  }
  return "";
}

// The channels of the projection that are taken apart. They are counted in the last value of the path that has them all
// along its last axis: a node may stand between that takes the rows of a Gemm apart.
std::string ChannelFronts::FindChannels(ChannelFront* front, const Value** base) const {
  const std::vector<const Value*>& path = front->path;
  size_t at = path.size() - 1;
  while (at > 0 && path[at] != front->apart.earlier && KeepsOrder(*context_.facts, *path[at - 1]->producer) &&
         SameWidth(context_, path[at], path[at - 1])) {
    --at;
  }
  *base = path[at];
  const absl::StatusOr<ChannelMap> map = FollowChannels(context_, front->apart.earlier, {*base});
  if (!map.ok()) return std::string(map.status().message());
  const auto width = static_cast<int64_t>(front->apart.order.size());
  if (map->axes.back() != ChannelMap::kChannels || map->trailing.back() != width) {
    return fmt::format("the channels of {} do not lie along its last axis", ValueName(*front->apart.earlier));
  }
  absl::flat_hash_set<int64_t> seen;
  for (const Channel& channel : ListOf(*map)) {
    if (channel.negative || !seen.insert(channel.index).second) {
      return fmt::format("{} is more than channels of {} in some order", ValueName(*front->apart.earlier), ValueName(**base));
    }
    front->channels.push_back(channel.index);
  }
  return "";
}

// What reads the channels besides the kernel. What reads others of the projection (query, key and value of one product,
// the part of a head that is not turned) is made to read the new one.
std::string ChannelFronts::WhyReadElsewhere(const ChannelFront& front, const Value* base) const {
  const absl::flat_hash_set<int64_t> turned(front.channels.begin(), front.channels.end());
  bool before_base = true;
  bool apart = false;
  for (size_t i = front.path.size(); i-- > 0;) {
    const Value* value = front.path[i];
    if (value == base) before_base = false;
    if (value->is_graph_output) return fmt::format("{} is an output of the graph", ValueName(*value));
    const Node* next = i > 0 ? front.path[i - 1]->producer : front.kernel;
    for (const Use& use : LiveUses(*value)) {
      if (use.user == next && use.user == front.kernel) continue;
      const bool elsewhere = use.user != next && (before_base || apart);
      if (elsewhere || !ReadsOthers(*use.user, use.user == next ? front.path[i - 1] : nullptr, turned, base)) {
        return fmt::format("{} reads {} too", OpType(*use.user), ValueName(*value));
      }
    }
    if (value == front.apart.earlier) apart = true;
  }
  return "";
}

// Whether all that the node gives, but for `besides`, are other channels than these, or no elements at all.
bool ChannelFronts::ReadsOthers(const Node& node, const Value* besides, const absl::flat_hash_set<int64_t>& turned,
                                const Value* base) const {
  if (IsOp(node, "Shape")) return true;
  if (!OnlyMoves(*context_.facts, node) || node.graph != base->graph) return false;
  for (const Value* output : node.outputs()) {
    if (output == nullptr || output == besides) continue;
    if (output->is_graph_output) return false;
    if (LiveUses(*output).empty()) continue;
    const absl::StatusOr<ChannelMap> map = FollowChannels(context_, output, {base});
    if (!map.ok()) return false;
    const std::vector<Channel> channels = ListOf(*map);
    if (channels.empty()) return false;
    for (const Channel& channel : channels) {
      if (turned.contains(channel.index)) return false;
    }
  }
  return true;
}

}  // namespace ascend_fuse
