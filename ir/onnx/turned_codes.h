// Matrices of codes whose rows become columns, many places at once: one place of every row at a time would read the whole matrix
// again and again. Private to ir/onnx.
#pragma once

#include <cstdint>

namespace ascend_fuse {

// Rows of codes that follow one another, `stride` bytes each.
struct CodeRows {
  const char* bytes = nullptr;
  int64_t rows = 0;
  int64_t stride = 0;
};

// Codes of 4 bits, the first one of a byte in its low half: of `count` places from `first` on, the codes of all rows, eight of
// neighbouring rows in each int32. Rows, `first` and `count` are multiples of 8. What is 8 too much, being unsigned, is made
// signed where `lower` holds. `to` has count * rows / 8 elements, those of a place after another.
void TurnNibbles(const CodeRows& from, int64_t first, int64_t count, bool lower, uint32_t* to);

// Codes of 8 bits, less `zero`.
void TurnBytes(const CodeRows& from, int64_t first, int64_t count, uint8_t zero, uint8_t* to);

// Numbers of float32, times `factor`, as float16.
void TurnToHalves(const CodeRows& from, int64_t first, int64_t count, float factor, uint16_t* to);

// The bits of the float16 and of the bfloat16 that a number rounds to, half to even; of the latter, not of NaN.
uint16_t HalfBits(float number);
uint16_t BrainBits(float number);

}  // namespace ascend_fuse
