// Products of two tensors, MatMul and Einsum, as what they do to axes: which axis of an operand is which axis of the result,
// and which ones are summed over.
#pragma once

#include <array>
#include <optional>
#include <vector>

#include "patterns/terms/function_context.h"

namespace ascend_fuse {

struct Product {
  static constexpr int kSummed = -1;
  const Node* node = nullptr;
  const Value* result = nullptr;
  std::array<const Value*, 2> operands = {};
  // For each axis of each operand the axis of the result, or kSummed: the one axis that both are summed over.
  std::array<std::vector<int>, 2> axes;
  std::array<size_t, 2> summed = {};  // its place in each operand
};

// The product that computes `value`: a MatMul of operands with at least two axes, or an Einsum of two operands whose
// equation has an arrow and no ellipsis, repeats no letter within an operand and sums over one letter, which both have.
// An operand of a MatMul may have an axis of 1, or none, where the result has more: it is repeated. nullopt for
// anything else, and where a rank is not known.
std::optional<Product> FindProduct(const FunctionContext& context, const Value* value);

}  // namespace ascend_fuse
