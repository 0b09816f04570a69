// A node of the graph written once more with other operands, for analyses that carry a computation to another value.
#pragma once

#include <optional>
#include <vector>

#include "patterns/terms/term.h"

namespace ascend_fuse {

// Output `output` of a node like `node` that reads `inputs`. nullopt for a node with bodies, or with an attribute that a
// term cannot hold (tensors, lists of strings).
std::optional<Term> Rebuilt(const Node& node, std::vector<Term> inputs, uint32_t output);

}  // namespace ascend_fuse
