// A product of int8 with int8 on the kernel of Ascend that multiplies integers, QuantBatchMatMul.
#pragma once

#include "passes/quantised/code_writer.h"

namespace ascend_fuse {

// The real numbers of a product of codes that the graph computes and a constant weight.
struct Int8Product {
  QuantisedTensor x;
  QuantisedTensor weight;
  bool by_rows = false;         // [N, K]; else [K, N]
  const Value* bias = nullptr;  // constant int32, in units of both scales
};

// What computes the product of `node` on the kernel, of the type of x's scale. Where the target has no such kernel, or it does
// not take these operands, or the numbers would not be those that --quantised asks for, nothing is changed, and it is nullptr.
// Either is told of in CodeWriter::told, by `told` or else by the result of `node`.
const Value* OnInt8Kernel(CodeWriter& writer, const Node* node, const Int8Product& product, const Value* told = nullptr);

// The MatMul or Gemm of numbers that were dequantised, on the kernel; its result is told of in CodeWriter::told. False where
// the node stays.
absl::StatusOr<bool> WriteInt8Linear(CodeWriter& writer, const Node* node);

}  // namespace ascend_fuse
