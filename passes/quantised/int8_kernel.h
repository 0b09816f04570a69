// A product of int8 with int8 on the kernel of Ascend that multiplies integers, QuantBatchMatMul.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "passes/quantised/code_writer.h"

namespace ascend_fuse {

// The real numbers of a product of codes that the graph computes and a constant weight.
struct Int8Product {
  QuantisedTensor x;
  QuantisedTensor weight;
  bool by_rows = false;         // [N, K]; else [K, N]
  const Value* bias = nullptr;  // constant int32, in units of both scales
};

// The node of such a product that is made: that of the stock parser wherever the model's opset has it, or that of our plugin.
std::string Int8Op(const Workspace& workspace);

// Kernels that were taken, by the names of their nodes: the model is written at an opset that has them
// (CodeWriter::highest_opset).
void NoteNames(CodeWriter& writer, const std::vector<std::string>& ops);

// The bits of a positive float32 rounded to the 19 that kernels read of it in a scale of uint64; nullopt where float16 does not
// hold what it makes of integers.
std::optional<uint32_t> RoundedScale(double scale);

// The codes of a bias that is dequantised with the product of both scales and no zero point: they are in units of the product.
// nullptr for any other.
const Value* BiasCodes(CodeWriter& writer, const Value* bias, const Int8Product& product);

// What computes the product of `node` on the kernel, of the type of x's scale. Where the target has no such kernel, or it does
// not take these operands, or the numbers would not be those that --quantised asks for, nothing is changed, and it is nullptr.
// Either is told of in CodeWriter::told, by `told` or else by the result of `node`.
const Value* OnInt8Kernel(CodeWriter& writer, const Node* node, const Int8Product& product, const Value* told = nullptr);

// The MatMul or Gemm of numbers that were dequantised, on the kernel; its result is told of in CodeWriter::told. False where
// the node stays.
absl::StatusOr<bool> WriteInt8Linear(CodeWriter& writer, const Node* node);

// The Conv of numbers that were dequantised in the form of deployed_form.h. False where the node stays.
absl::StatusOr<bool> WriteDeployedConv(CodeWriter& writer, const Node* node);

}  // namespace ascend_fuse
