#include "ir/rounding.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace ascend_fuse {

double RoundTo(DataType type, double value) {
  int precision = 53;  // bits of the significand
  int min_exponent = -1021;
  double max = std::numeric_limits<double>::max();
  switch (type) {
    case DataType::kFloat:
      return static_cast<double>(static_cast<float>(value));
    case DataType::kFloat16:
      precision = 11;
      min_exponent = -13;  // of frexp: the smallest normal number is 0.5 * 2^-13
      max = 65504;
      break;
    case DataType::kBfloat16:
      precision = 8;
      min_exponent = -125;
      max = 3.3895313892515355e38;
      break;
    default:
      return value;
  }
  if (!std::isfinite(value) || value == 0) return value;
  int exponent = 0;
  std::frexp(value, &exponent);
  const int shift = precision - std::max(exponent, min_exponent);
  const double rounded = std::ldexp(std::nearbyint(std::ldexp(value, shift)), -shift);
  if (std::abs(rounded) > max) return std::copysign(std::numeric_limits<double>::infinity(), value);
  return rounded;
}

bool HoldsInteger(DataType type, double value) {
  if (!IsInteger(type)) return true;
  const bool is_unsigned = type == DataType::kUint8 || type == DataType::kUint16 || type == DataType::kUint32 ||
                           type == DataType::kUint64 || type == DataType::kUint4 || type == DataType::kUint2;
  const double end = std::ldexp(1, BitWidth(type) - (is_unsigned ? 0 : 1));
  return value < end && value >= (is_unsigned ? 0 : -end);
}

}  // namespace ascend_fuse
