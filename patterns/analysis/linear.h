// One view of every spelling of a linear layer, y = x W + b with constant W: MatMul, Gemm, Einsum, 1x1 Conv, their
// bias, the Reshapes around them, quantised weights, LoRA (docs/sources/export-patterns.md 4.1, LN1 to LN8). The graph is not
// changed to be understood.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "patterns/terms/function_context.h"
#include "patterns/terms/term.h"

namespace ascend_fuse {

struct LinearView {
  const Value* x = nullptr;       // [.., K]
  const Value* weight = nullptr;  // the constant itself
  bool transposed = false;        // it is [N, K], not [K, N]
  const Value* bias = nullptr;    // constant [N], or nullptr
  const Node* product = nullptr;  // the MatMul, Gemm, Einsum or Conv
  // Plain: weight is a constant of two dims used as it is, bias 1-D, no factor, and between `product` and the
  // value nothing but the bias. Only such linears can be merged; others are linears all the same.
  bool plain = true;
  std::string why_not_plain;
  // Values from the linear's own down to that of `product`, and those from its weight up to the constant: what must have no other
  // reader if both are to be replaced.
  std::vector<const Value*> chain;
  size_t of_weight = 0;  // as many, the last ones, are constants: a node that takes the linear leaves them to others
};

// The linear layer that computes `y`. FAILED_PRECONDITION with a sentence when none does: a residual is not a
// bias, a MatMul of two activations is not a linear.
absl::StatusOr<LinearView> FindLinear(const FunctionContext& context, const Value* y);

// What keeps `value` computed besides its first reader, as a sentence; empty if nothing does.
std::string OtherReader(const Value* value);

// One linear for two of the same input, to be built: x [Wa | Wb] + [ba | bb]; its first half is `a`, its second `b`.
struct MergedView {
  const Value* x = nullptr;  // [.., K]
  Term weight;               // [2 N, K] if transposed, else [K, 2 N]
  bool transposed = false;
  Term bias;          // [2 N], or no value
  bool gemm = false;  // the two were Gemm
};

// FAILED_PRECONDITION says what forbids it.
absl::StatusOr<MergedView> MergedLinear(const FunctionContext& context, const Value* a, const Value* b);

}  // namespace ascend_fuse
