// An order of the nodes of a graph in which each stands after what it reads.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "ir/graph.h"

namespace ascend_fuse {

// Each node of the graph after what it and its bodies read; nodes that are free to stand keep the order of the file.
// INVALID_ARGUMENT with the nodes of a cycle where there is one.
absl::StatusOr<std::vector<const Node*>> TopologicalOrder(const Graph& graph);

// "node 'a' (Add) at byte 17" of a file.
std::string DescribeNode(const Node& node);

}  // namespace ascend_fuse
