// Matrices of codes whose rows become columns, many places at once: one place of every row at a time would read the whole matrix
// again and again. Private to ir/onnx.
#pragma once

#include <bit>
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

// Elements of 16 bits, as they are.
void TurnWords(const CodeRows& from, int64_t first, int64_t count, uint16_t* to);

// Numbers of float32, times `factor`, as float16.
void TurnToHalves(const CodeRows& from, int64_t first, int64_t count, float factor, uint16_t* to);

// The bits of the float16 and of the bfloat16 that a number rounds to, half to even; of the latter, not of NaN.
inline uint16_t HalfBits(float number) {
  constexpr uint32_t kBeyond = 0x47800000;  // 65536
  constexpr uint32_t kInfinite = 0x7F800000;
  constexpr uint32_t kNormal = 0x38800000;  // 2^-14
  constexpr uint32_t kHalf = 0x3F000000;    // 0.5, whose last bit is 2^-24, as the last bit of the smallest numbers of float16 is
  constexpr uint32_t kOtherBias = 0xC8000000;
  const auto bits = std::bit_cast<uint32_t>(number);
  const auto sign = static_cast<uint16_t>(bits >> 16 & 0x8000);
  const uint32_t size = bits & 0x7FFFFFFF;
  // All three, of which one is chosen by masks: a loop of it has no branches, and several are computed at once.
  const auto where = [](bool holds) { return 0U - static_cast<uint32_t>(holds); };
  const auto whole = static_cast<int32_t>(size);
  const uint32_t is_nan = where(whole > static_cast<int32_t>(kInfinite));
  const uint32_t is_beyond = where(whole >= static_cast<int32_t>(kBeyond));
  const uint32_t is_small = where(whole < static_cast<int32_t>(kNormal));
  const uint32_t small = std::bit_cast<uint32_t>(std::bit_cast<float>(size) + 0.5F) - kHalf;
  const uint32_t normal = (size + kOtherBias + 0xFFF + (size >> 13 & 1)) >> 13;
  const uint32_t finite = (small & is_small) | (normal & ~is_small);
  const uint32_t beyond = 0x7C00U | (0x200U & is_nan);
  return static_cast<uint16_t>(sign | (beyond & is_beyond) | (finite & ~is_beyond));
}

inline uint16_t BrainBits(float number) {
  const auto bits = std::bit_cast<uint32_t>(number);
  return static_cast<uint16_t>((bits + 0x7FFF + (bits >> 16 & 1)) >> 16);
}

}  // namespace ascend_fuse
