// What a target is asked about a node that stands in the graph.
#pragma once

#include <string>

#include "ir/infer/facts.h"
#include "patterns/target/target.h"

namespace ascend_fuse {

// The node as a call of `op`.
Call CallOf(const Node& node, const Facts& facts, std::string op);

// Whether the nodes of the graph stand in a branch of an If, where ATC reads an empty input otherwise.
bool IsBranchOfIf(const Graph& graph);

}  // namespace ascend_fuse
