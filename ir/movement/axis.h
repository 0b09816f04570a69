// How ONNX counts axes and bounds: from the front, from the end where they are negative, and "to the end".
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

namespace ascend_fuse {

// The axis counted from the front; -1 when out of range, which every axis is of a rank that is not known (-1).
constexpr int64_t NormalizeAxis(int64_t axis, int64_t rank) {
  if (axis < -rank || axis >= rank) return -1;
  return axis < 0 ? axis + rank : axis;
}

// The same for a position among `count` elements.
inline int64_t NormalizePosition(int64_t position, int64_t count) { return NormalizeAxis(position, count); }

// Bounds of a Slice from here on mean "to the end"; from its negative on, "from the beginning".
inline constexpr int64_t kEndless = 0x7fffffff;
// A bound from which on a slice goes to the end: no axis is longer. tf2onnx writes it so.
inline constexpr int64_t kLongest = 1'000'000'000;

// What a Slice takes of an axis.
struct SliceRange {
  int64_t start = 0;
  int64_t count = 0;
};

// Bounds as Slice reads them, of `size` elements.
inline SliceRange RangeOfSlice(int64_t start, int64_t end, int64_t step, int64_t size) {
  const auto clamp = [size](int64_t at, int64_t low, int64_t high) {
    if (at < 0) at = at < -size ? -1 : at + size;
    return std::clamp(at, low, high);
  };
  int64_t from = 0;
  int64_t items = 0;
  if (step > 0) {
    from = clamp(start, 0, size);
    const int64_t to = clamp(end, 0, size);
    items = to > from ? (to - from - 1) / step + 1 : 0;
  } else if (step < 0) {
    from = clamp(start, 0, std::max<int64_t>(size - 1, 0));
    const int64_t to = clamp(end, -1, size - 1);
    if (start < -size) from = -1;
    items = from > to && step > std::numeric_limits<int64_t>::min() ? (from - to - 1) / -step + 1 : 0;
  }
  return {std::max<int64_t>(from, 0), std::max<int64_t>(items, 0)};
}

// A bound of a part of [0, size], counted from the end where it is negative.
inline int64_t ClampBound(int64_t at, int64_t size) { return std::clamp<int64_t>(at < 0 ? at + size : at, 0, size); }

}  // namespace ascend_fuse
