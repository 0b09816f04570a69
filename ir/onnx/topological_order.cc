#include "ir/onnx/topological_order.h"

#include <algorithm>
#include <functional>
#include <queue>

#include "absl/functional/function_ref.h"
#include "fmt/format.h"
#include "fmt/ranges.h"

namespace ascend_fuse {
namespace {

size_t IndexOf(const Node& node) { return static_cast<size_t>(node.order >> 20) - 1; }

// `waiting`: by index of a node, how many of the values that it reads are not computed; user_of: the index of the node that
// a use belongs to, or -1.
absl::Status CycleError(const std::vector<const Node*>& nodes, const std::vector<uint32_t>& waiting,
                        absl::FunctionRef<int64_t(const Use&)> user_of) {
  const size_t count = nodes.size();
  // Every node still waiting has a predecessor still waiting: going back finds a cycle.
  std::vector<int64_t> previous(count, -1);
  size_t at = count;
  for (size_t i = 0; i < count; ++i) {
    if (waiting[i] == 0) continue;
    at = i;
    for (const Value* value : nodes[i]->outputs()) {
      for (const Use* use = value == nullptr ? nullptr : value->uses; use != nullptr; use = use->next) {
        if (int64_t user = user_of(*use); user >= 0) previous[static_cast<size_t>(user)] = static_cast<int64_t>(i);
      }
    }
  }
  std::vector<bool> seen(count, false);
  while (!seen[at]) {
    seen[at] = true;
    at = static_cast<size_t>(previous[at]);
  }
  std::vector<std::string> cycle;
  const size_t first = at;
  do {
    cycle.push_back(DescribeNode(*nodes[at]));
    at = static_cast<size_t>(previous[at]);
  } while (at != first);
  std::reverse(cycle.begin(), cycle.end());
  const size_t shown = std::min<size_t>(cycle.size(), 8);
  return absl::InvalidArgumentError(fmt::format(
      "the graph has a cycle of {} nodes, so it cannot be run: {}{}. Export the model again", cycle.size(),
      fmt::join(cycle.begin(), cycle.begin() + static_cast<ptrdiff_t>(shown), " -> "), shown < cycle.size() ? " -> ..." : ""));
}

}  // namespace

std::string DescribeNode(const Node& node) {
  return fmt::format("node '{}' ({}) at byte {}", NodeName(node), OpType(node), node.encoded.file.offset);
}

absl::StatusOr<std::vector<const Node*>> TopologicalOrder(const Graph& graph) {
  const std::vector<const Node*>& nodes = graph.nodes();
  const size_t count = nodes.size();
  // The node of `graph` that a use belongs to; -1 for uses elsewhere.
  auto user_of = [&](const Use& use) -> int64_t {
    const Node* user = use.user;
    while (user != nullptr && user->graph != &graph) user = user->graph->owner();
    return user == nullptr ? -1 : static_cast<int64_t>(IndexOf(*user));
  };
  std::vector<uint32_t> waiting(count, 0);
  for (const Node* node : nodes) {
    for (const Value* value : node->outputs()) {
      for (const Use* use = value == nullptr ? nullptr : value->uses; use != nullptr; use = use->next) {
        if (int64_t user = user_of(*use); user >= 0) ++waiting[static_cast<size_t>(user)];
      }
    }
  }
  std::priority_queue<size_t, std::vector<size_t>, std::greater<>> ready;
  for (size_t i = 0; i < count; ++i) {
    if (waiting[i] == 0) ready.push(i);
  }
  std::vector<const Node*> order;
  order.reserve(count);
  while (!ready.empty()) {
    const Node* node = nodes[ready.top()];
    ready.pop();
    order.push_back(node);
    for (const Value* value : node->outputs()) {
      for (const Use* use = value == nullptr ? nullptr : value->uses; use != nullptr; use = use->next) {
        const int64_t user = user_of(*use);
        if (user >= 0 && --waiting[static_cast<size_t>(user)] == 0) ready.push(static_cast<size_t>(user));
      }
    }
  }
  if (order.size() == count) return order;
  return CycleError(nodes, waiting, user_of);
}

}  // namespace ascend_fuse
