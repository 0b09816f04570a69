// Paths of a rotation's channels, and where along them the channels of every head are put in another order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "ir/infer/facts.h"
#include "patterns/terms/function_context.h"

namespace ascend_fuse {

constexpr size_t kMaximumChannelSteps = 12;  // from a kernel to the projection, and from it to the scores

using ChannelOrder = std::vector<int64_t>;  // channel i is what channel order[i] was

// Two values of a path that differ by an order.
struct Reordered {
  const Value* earlier = nullptr;
  const Value* later = nullptr;
  ChannelOrder order;
};

// `path` from its last value to its first one.
std::optional<Reordered> FindOrder(const FunctionContext& context, const std::vector<const Value*>& path);

// Whether the node only moves elements of its first input.
bool OnlyMoves(const Facts& facts, const Node& node);
// The one node that reads the value; nullptr where there are more, or the value is an output of the graph.
const Use* OnlyUse(const Value& value);
// Whether the last axes of both are the same number.
bool SameWidth(const FunctionContext& context, const Value* a, const Value* b);

}  // namespace ascend_fuse
