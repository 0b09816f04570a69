// A softmax in any spelling: the operator, or its formula written out.
#pragma once

#include <optional>
#include <vector>

#include "patterns/terms/function_context.h"

namespace ascend_fuse {

struct SoftmaxView {
  const Value* input = nullptr;
  int axis = 0;                    // of `input`, from 0
  const Value* added = nullptr;    // to the sum of exponentials: what takes part in the softmax and has no weight
  std::vector<const Node*> nodes;  // the last one first
};

// The softmax along one axis that computes `value`: Softmax, Exp (LogSoftmax (x)), or exp(x - max(x)) divided by its sum,
// with or without the maximum. Before opset 13 a Softmax flattens all axes from its own on: it is one along the last axis
// only. nullopt for anything else.
std::optional<SoftmaxView> FindSoftmax(const FunctionContext& context, const Value* value);

// exp(x), or exp(x - max(x)) with the maximum along the axis, which somebody else divides by a sum along the axis.
std::optional<SoftmaxView> FindExponential(const FunctionContext& context, const Value* value, int axis);

// The same where `total` is that sum, whose axis stays as 1: what is made of the exponentials is divided by it later.
std::optional<SoftmaxView> FindUndivided(const FunctionContext& context, const Value* value, const Value* total);

}  // namespace ascend_fuse
