// What a run is told about quantised operators.
#pragma once

#include <cstdint>

namespace ascend_fuse {

// What quantised operators become (docs/quantised.md).
enum class Quantised : uint8_t {
  kExact,     // what ONNX Runtime computes of them, rounding of activations included
  kFast,      // the same on kernels that multiply integers, with their roundings wherever a chip has one
  kPerToken,  // as kFast; what a model quantises by the range of a whole tensor is quantised by that of each row
  kFloat,     // activations are not rounded: the numbers before they were quantised, but for the weights
};

// Whether kernels are taken that round more than the precision mode, or of which a question is open.
constexpr bool TakesAllKernels(Quantised quantised) { return quantised == Quantised::kFast || quantised == Quantised::kPerToken; }

}  // namespace ascend_fuse
