// The nodes a few steps after one: where rules end that begin at it.
#pragma once

#include <vector>

#include "ir/graph.h"

namespace ascend_fuse {

// The node itself first, then the nearest ones; not beyond a node with many readers.
std::vector<const Node*> Downstream(const Node* node);

}  // namespace ascend_fuse
