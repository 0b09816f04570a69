// Rounding to the floating-point types of tensors.
#pragma once

#include "ir/data_type.h"

namespace ascend_fuse {

// `value` rounded to nearest even in a floating-point type, to infinity beyond its largest number. For every other type
// it is returned as it is.
double RoundTo(DataType type, double value);

}  // namespace ascend_fuse
