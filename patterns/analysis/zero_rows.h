// What becomes of rows of zeros further down in the graph: whether something divides by them.
#pragma once

#include <optional>
#include <string>

#include "patterns/terms/function_context.h"

namespace ascend_fuse {

// A node that makes infinity or NaN of rows of zeros.
struct ZeroDivision {
  const Node* node = nullptr;
  std::string how;  // "divides by them", "has an epsilon of 0"
};

// The first node found that makes infinity or NaN of a row of `value` (T[..., L], its rows along the last axis) that holds only
// zeros: a norm whose epsilon is 0, or is 0 once it is rounded to float16, a division, a logarithm. Rows are followed through
// what keeps them zero: movement, products with weights, gates, activations; not through a sum with something else. nullopt
// where nothing is found.
std::optional<ZeroDivision> FindZeroDivision(const FunctionContext& context, const Value& value);

}  // namespace ascend_fuse
