#include "ir/onnx/turned_codes.h"

#include <algorithm>
#include <cstring>

namespace ascend_fuse {
namespace {

constexpr int64_t kEight = 8;
constexpr int64_t kAtOnce = 16;   // words of a row: a line of a cache
constexpr int64_t kColumns = 64;  // words of a row that is written: some lines, one after another

// What will be read soon is fetched while other lines are worked on.
inline void Fetch([[maybe_unused]] const char* bytes) {
#if defined(__GNUC__)
  __builtin_prefetch(bytes);
#endif
}

// Parts of two words change places: those that `mask` has of the one, `shift` bits higher, with those of the other.
template <int shift, uint32_t mask>
void Exchange(uint32_t (&a)[kAtOnce], uint32_t (&b)[kAtOnce]) {
  for (int64_t i = 0; i < kAtOnce; ++i) {
    const uint32_t differs = ((a[i] >> shift) ^ b[i]) & mask;
    b[i] ^= differs;
    a[i] ^= differs << shift;
  }
}

// Eight rows of words of eight nibbles each: nibble j of row i becomes nibble i of row j.
void TurnEights(uint32_t (&rows)[kEight][kAtOnce]) {
  for (const int i : {0, 1, 2, 3}) Exchange<16, 0x0000FFFF>(rows[i], rows[i + 4]);
  for (const int i : {0, 1, 4, 5}) Exchange<8, 0x00FF00FF>(rows[i], rows[i + 2]);
  for (const int i : {0, 2, 4, 6}) Exchange<4, 0x0F0F0F0F>(rows[i], rows[i + 1]);
}

// Words of `width` columns, which are eights of rows, from `bytes` on, whose places are turned into `tile`.
template <bool whole>
void TurnColumns(const char* bytes, int64_t stride, int64_t width, int64_t words, uint32_t flip,
                 uint32_t (&tile)[kEight * kAtOnce][kColumns]) {
  alignas(64) uint32_t rows[kEight][kAtOnce] = {};
  const auto size = static_cast<size_t>(whole ? kAtOnce : words) * sizeof(uint32_t);
  for (int64_t column = 0; column < width; ++column) {
    for (int64_t i = 0; i < kEight; ++i) {
      const char* const row = bytes + (column * kEight + i) * stride;
      std::memcpy(rows[i], row, size);
      if constexpr (whole) Fetch(row + sizeof(rows[i]));
    }
    TurnEights(rows);
    for (int64_t i = 0; i < kEight; ++i) {
      for (int64_t word = 0; word < (whole ? kAtOnce : words); ++word) tile[word * kEight + i][column] = rows[i][word] ^ flip;
    }
  }
}

}  // namespace

void TurnNibbles(const CodeRows& from, int64_t first, int64_t count, bool lower, uint32_t* to) {
  const uint32_t flip = lower ? 0x88888888 : 0;
  const int64_t columns = from.rows / kEight;
  alignas(64) uint32_t tile[kEight * kAtOnce][kColumns];  // written out in lines of a cache
  for (int64_t begin = 0; begin < columns; begin += kColumns) {
    const int64_t width = std::min(kColumns, columns - begin);
    for (int64_t place = 0; place < count; place += kEight * kAtOnce) {
      const int64_t words = std::min<int64_t>(kAtOnce, (count - place) / kEight);
      const char* const bytes = from.bytes + begin * kEight * from.stride + (first + place) / 2;
      if (words == kAtOnce) {
        TurnColumns<true>(bytes, from.stride, width, words, flip, tile);
      } else {
        TurnColumns<false>(bytes, from.stride, width, words, flip, tile);
      }
      for (int64_t i = 0; i < words * kEight; ++i) {
        uint32_t* const row = to + (place + i) * columns + begin;
        if (width == kColumns) {
          std::memcpy(row, tile[i], sizeof(tile[i]));
        } else {
          std::memcpy(row, tile[i], static_cast<size_t>(width) * sizeof(uint32_t));
        }
      }
    }
  }
}

namespace {

// `make` gives what is written for an element; `kRows` of those are written one after another.
template <typename From, int64_t kRows, typename To, typename Make>
void TurnElements(const CodeRows& from, int64_t first, int64_t count, To* to, const Make& make) {
  constexpr int64_t kPlaces = 64 / static_cast<int64_t>(sizeof(From));  // a line of a cache
  To tile[kPlaces][kRows];
  From elements[kPlaces];
  for (int64_t begin = 0; begin < from.rows; begin += kRows) {
    const int64_t rows = std::min(kRows, from.rows - begin);
    for (int64_t place = 0; place < count; place += kPlaces) {
      const int64_t places = std::min(kPlaces, count - place);
      for (int64_t row = 0; row < rows; ++row) {
        const char* const bytes = from.bytes + (begin + row) * from.stride + (first + place) * static_cast<int64_t>(sizeof(From));
        std::memcpy(elements, bytes, static_cast<size_t>(places) * sizeof(From));
        for (int64_t i = 0; i < places; ++i) tile[i][row] = make(elements[i]);
      }
      for (int64_t i = 0; i < places; ++i) {
        std::memcpy(to + (place + i) * from.rows + begin, tile[i], static_cast<size_t>(rows) * sizeof(To));
      }
    }
  }
}

}  // namespace

void TurnBytes(const CodeRows& from, int64_t first, int64_t count, uint8_t zero, uint8_t* to) {
  TurnElements<uint8_t, 256>(from, first, count, to, [zero](uint8_t code) { return static_cast<uint8_t>(code - zero); });
}

void TurnWords(const CodeRows& from, int64_t first, int64_t count, uint16_t* to) {
  TurnElements<uint16_t, 128>(from, first, count, to, [](uint16_t word) { return word; });
}

void TurnToHalves(const CodeRows& from, int64_t first, int64_t count, float factor, uint16_t* to) {
  TurnElements<float, 32>(from, first, count, to, [factor](float number) { return HalfBits(number * factor); });
}

}  // namespace ascend_fuse
