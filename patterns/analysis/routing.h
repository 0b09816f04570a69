// Rows that a router chose: the tokens of one expert of a mixture, and what is computed from them row by row.
#pragma once

#include "ir/graph.h"
#include "ir/infer/facts.h"

namespace ascend_fuse {

// The TopK or ArgMax that chose which rows, or whose weights, `value` is computed from: on the way there are a linear,
// its bias, and operators that move elements, but neither a norm nor an attention, after which rows are a tensor of their
// own. nullptr where every row is computed with the same weights. A few steps are looked at, whatever the graph.
const Node* FindRouter(const Facts& facts, const Value* value);

}  // namespace ascend_fuse
