// Weights of a softmax over all keys of which some are made 0 after it, divided by what is left: a softmax over the others. JAX
// writes masked attention so, and TensorFlow some.
#pragma once

#include <optional>
#include <vector>

#include "patterns/terms/function_context.h"

namespace ascend_fuse {

struct Renormalized {
  const Value* weights = nullptr;  // before any is made 0
  const Value* keep = nullptr;     // a boolean, true where a weight stays
  int axis = 0;                    // along which the sum is taken
  bool guard = false;              // rows of which nothing is left are 0
  std::vector<const Node*> nodes;
};

std::optional<Renormalized> FindRenormalized(const FunctionContext& context, const Value* value);

}  // namespace ascend_fuse
