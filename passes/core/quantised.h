// What a run is told about quantised operators.
#pragma once

#include <cstdint>

namespace ascend_fuse {

// What quantised operators become (docs/quantised.md).
enum class Quantised : uint8_t {
  kExact,  // what ONNX Runtime computes of them, rounding of activations included
  kFast,   // the same on kernels that multiply integers, with their roundings wherever a chip has one
  kFloat,  // activations are not rounded: the numbers before they were quantised, but for the weights
};

}  // namespace ascend_fuse
