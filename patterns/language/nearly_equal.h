// When a constant of a graph is the number that a rule writes.
#pragma once

#include <cmath>

#include "ir/data_type.h"

namespace ascend_fuse {

// Half of the last digits that a constant of this type keeps (docs/sources/export-patterns.md 4.2: 1e-4 in fp32, 1e-3 in
// fp16, coarser in bf16).
inline double Tolerance(DataType type) {
  switch (type) {
    case DataType::kFloat16:
      return 1e-3;
    case DataType::kBfloat16:
      return 8e-3;
    default:
      return 1e-4;
  }
}

// A number that every binary format keeps exactly (integers, halves, quarters ...) must be met exactly.
inline bool IsExact(double number) { return std::floor(number * 64) == number * 64; }

inline bool NearlyEqual(double expected, double found, DataType type) {
  if (expected == found) return true;
  if (!std::isfinite(found) || IsExact(expected)) return false;
  return std::fabs(expected - found) <= Tolerance(type) * std::fabs(expected);
}

}  // namespace ascend_fuse
