#include "ir/rounding.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace ascend_fuse {

double RoundTo(DataType type, double value) {
  int precision = 53;  // bits of the significand
  int min_exponent = -1021;
  switch (type) {
    case DataType::kFloat:
      return static_cast<double>(static_cast<float>(value));
    case DataType::kFloat16:
      precision = 11;
      min_exponent = -13;  // of frexp: the smallest normal number is 0.5 * 2^-13
      break;
    case DataType::kBfloat16:
      precision = 8;
      min_exponent = -125;
      break;
    default:
      return value;
  }
  if (!std::isfinite(value) || value == 0) return value;
  int exponent = 0;
  std::frexp(value, &exponent);
  const int shift = precision - std::max(exponent, min_exponent);
  const double rounded = std::ldexp(std::nearbyint(std::ldexp(value, shift)), -shift);
  if (std::abs(rounded) > *LargestFinite(type)) return std::copysign(std::numeric_limits<double>::infinity(), value);
  return rounded;
}

std::optional<double> LargestFinite(DataType type) {
  switch (type) {
    case DataType::kDouble:
      return std::numeric_limits<double>::max();
    case DataType::kFloat:
      return static_cast<double>(std::numeric_limits<float>::max());
    case DataType::kBfloat16:
      return std::ldexp(255.0, 120);
    case DataType::kFloat16:
      return 65504.0;
    default:
      return std::nullopt;
  }
}

bool HoldsAllOf(DataType wide, DataType narrow) {
  switch (narrow) {
    case DataType::kBool:
      return IsFloat(wide) || IsInteger(wide);
    case DataType::kFloat16:
    case DataType::kBfloat16:
      return wide == DataType::kFloat || wide == DataType::kDouble;
    case DataType::kFloat:
      return wide == DataType::kDouble;
    case DataType::kInt32:
      return wide == DataType::kInt64 || wide == DataType::kDouble;
    default:
      return false;
  }
}

bool HoldsInteger(DataType type, double value) {
  if (!IsInteger(type)) return true;
  const double end = std::ldexp(1, BitWidth(type) - (IsSigned(type) ? 1 : 0));
  return value < end && value >= (IsSigned(type) ? -end : 0);
}

}  // namespace ascend_fuse
