// Elements picked by position: what Transpose, Slice, Gather and their like do to small tensors whose elements are known.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include "ir/infer/context.h"

namespace ascend_fuse::infer {

// The output has equal elements if the input has.
inline void Splat(NodeContext& c) {
  if (c.in(0).is_splat) c.SetSplat(0, c.in(0).splat);
}

// Element k of the output is element `index(k)` of input 0; output shape is set and small.
template <typename Index>
void PickElements(NodeContext& c, Index index) {
  const std::optional<int64_t> count = c.SmallCount(0);
  const Fact& in = c.in(0);
  if (in.is_splat) c.SetSplat(0, in.splat);
  if (!count.has_value() || in.elements == nullptr) return;
  if (IsFloat(in.type)) {
    std::vector<double> values;
    for (int64_t k = 0; k < *count; ++k) {
      const int64_t from = index(k);
      if (from < 0 || from >= static_cast<int64_t>(in.elements->floats.size())) return;
      values.push_back(in.elements->floats[static_cast<size_t>(from)]);
    }
    c.SetFloats(0, values);
  } else {
    Dims values;
    for (int64_t k = 0; k < *count; ++k) {
      const int64_t from = index(k);
      if (from < 0 || from >= static_cast<int64_t>(in.elements->integers.size())) return;
      values.push_back(in.elements->integers[static_cast<size_t>(from)]);
    }
    c.SetIntegers(0, values);
  }
}

// Row-major positions of a small shape: the offset that strides give to position k.
class Strided {
 public:
  Strided(absl::Span<const Dim> shape, absl::Span<const int64_t> strides, int64_t base)
      : strides_(strides.begin(), strides.end()), base_(base) {
    for (Dim dim : shape) extents_.push_back(std::max<int64_t>(dim.number(), 1));
  }
  int64_t operator()(int64_t k) const {
    int64_t offset = base_;
    for (size_t axis = extents_.size(); axis-- > 0;) {
      offset += (k % extents_[axis]) * strides_[axis];
      k /= extents_[axis];
    }
    return offset;
  }

 private:
  absl::InlinedVector<int64_t, 6> extents_;
  absl::InlinedVector<int64_t, 6> strides_;
  int64_t base_;
};

// Row-major strides of a shape whose dims are numbers.
inline std::vector<int64_t> StridesOf(absl::Span<const Dim> shape) {
  std::vector<int64_t> strides(shape.size(), 1);
  for (size_t i = shape.size(); i-- > 1;) strides[i - 1] = strides[i] * std::max<int64_t>(shape[i].number(), 1);
  return strides;
}

}  // namespace ascend_fuse::infer
