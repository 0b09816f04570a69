// Products of two tensors, MatMul and Einsum, as what they do to axes: which axis of an operand is which axis of the result,
// and which ones are summed over.
#pragma once

#include <array>
#include <optional>
#include <vector>

#include "patterns/terms/function_context.h"

namespace ascend_fuse {

struct Product {
  // The i-th of the axes that are summed over, in the order of the first operand.
  static constexpr int Summed(size_t i) { return -1 - static_cast<int>(i); }
  static constexpr bool IsSummed(int axis) { return axis < 0; }
  static constexpr size_t PlaceOfSummed(int axis) { return static_cast<size_t>(-1 - axis); }

  const Node* node = nullptr;
  const Value* result = nullptr;
  std::array<const Value*, 2> operands = {};
  // For each axis of each operand the axis of the result, or which of those it is that both are summed over.
  std::array<std::vector<int>, 2> axes;
  std::array<std::vector<size_t>, 2> summed;  // their places in each operand
};

// The product that computes `value`: a MatMul of operands with at least two axes, or an Einsum of two operands whose
// equation has an arrow, repeats no letter within an operand and sums over letters that both have.
// An operand of a MatMul may have an axis of 1, or none, where the result has more: it is repeated. nullopt for
// anything else, and where a rank is not known.
std::optional<Product> FindProduct(const FunctionContext& context, const Value* value);

}  // namespace ascend_fuse
