// Quantised tensors, and those of them that are constant.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "passes/core/workspace.h"

namespace ascend_fuse {

// A quantised tensor and what its codes mean: (code - zero) * scale.
struct QuantisedTensor {
  const Value* codes = nullptr;
  const Value* scale = nullptr;  // nullptr: 1
  const Value* zero = nullptr;   // nullptr: 0
  int64_t axis = 1;              // along which scale and zero differ, where they have more than one element
  int64_t block = 0;             // neighbours along it that share one; 0: each place has its own
};

// The lowest and the highest code of a type; nullopt for one that is not quantised to.
std::optional<std::pair<double, double>> CodeRange(DataType type);

// The real numbers that constant codes stand for, with constant scales and zero points, as a constant that is computed when the
// model is saved. FAILED_PRECONDITION with a sentence where it has not the elements that it should.
absl::StatusOr<const Value*> RealOfConstant(Workspace& workspace, const Node& at, const QuantisedTensor& of, DataType type);

// How many factors of so many bits a row of `count` has when it is packed, padding of its last byte included.
int64_t PackedRow(int64_t count, int64_t bits);

// How [rows, length] is computed of codes of so many bits, `stride` of them from row to row, of which `block` neighbours share a
// scale. Their zero point is the middle of the codes. The tensors must live as long as what is returned.
Dequantization RowsInBlocks(const Tensor& codes, int64_t bits, int64_t rows, int64_t length, int64_t stride, int64_t block,
                            const Tensor& scales);

// A constant in the graph of the node that is computed from integers when the model is saved (Rewriter::Dequantized).
absl::StatusOr<const Value*> DequantizedConstant(Workspace& workspace, const Node& at, DataType type,
                                                 absl::Span<const int64_t> dims, const Dequantization& how,
                                                 std::string_view name);

// A constant of one row of numbers, as they lie in memory, that is named after the node and the word.
const Value* RowOfNumbers(Workspace& workspace, const Node& at, DataType type, std::string_view bytes, std::string_view word);

// More scales or zero points of one tensor than this are not read.
constexpr int64_t kMostFactors = int64_t{1} << 22;

// FAILED_PRECONDITION: why an operator cannot be written in standard ones, a sentence.
absl::Status NotWritten(const std::string& because);

}  // namespace ascend_fuse
