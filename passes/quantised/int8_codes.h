// Codes as the int8 that kernels multiply. They are made of what was quantised by one node where that rounds better than the
// standard operators would be made to, and of the codes as numbers elsewhere.
#pragma once

#include <cstdint>

#include "passes/quantised/code_writer.h"

namespace ascend_fuse {

// Codes as int8, whatever type of 8 bits they had, and their zero point.
struct Int8Codes {
  const Value* codes = nullptr;
  int64_t zero = 0;
  const Value* computed_zero = nullptr;  // in the place of `zero`: int32 [1]
};

// FAILED_PRECONDITION with a sentence where they cannot be had.
absl::StatusOr<Int8Codes> AsInt8(CodeWriter& writer, const Node& at, const QuantisedTensor& of);
// Those that were made since CodeWriter::with_int8 had this size were taken back.
void ForgetInt8(CodeWriter& writer, size_t since);
// What still reads codes as numbers reads them of the int8 that a node made of the same tensor.
void ReadNumbersOfInt8(CodeWriter& writer);

}  // namespace ascend_fuse
