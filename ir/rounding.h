// Which numbers the types of tensors hold.
#pragma once

#include <optional>

#include "ir/data_type.h"

namespace ascend_fuse {

// `value` rounded to nearest even in a floating-point type, to infinity beyond its largest number. For every other type
// it is returned as it is.
double RoundTo(DataType type, double value);

// The largest finite number of float16, bfloat16, float and double; nullopt for every other type.
std::optional<double> LargestFinite(DataType type);

// Whether every number of type `narrow` is one of type `wide`, NaN and infinities included. False also where that is not known.
bool HoldsAllOf(DataType wide, DataType narrow);

// Whether a type of integers holds `value`, a whole number; beyond its range a run wraps around. True for every other type.
bool HoldsInteger(DataType type, double value);

}  // namespace ascend_fuse
