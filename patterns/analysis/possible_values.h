// What numbers the elements of a tensor can be, where they are few: what a mask is known by.
#pragma once

#include <string>
#include <vector>

#include "patterns/terms/function_context.h"

namespace ascend_fuse {

// The finitely many numbers that the elements of a tensor can be.
struct PossibleValues {
  bool known = false;
  std::vector<double> values;            // sorted, at most 16
  std::vector<std::string> assumptions;  // sentences, for example that an int mask holds only 0 and 1
};

// Follows the program that computes `value` over sets of numbers. Sound for every program: an operator it
// does not know gives "not known". NaN never is a member: an operation that could give NaN gives "not known".
PossibleValues ValuesOf(const FunctionContext& context, const Value* value);

}  // namespace ascend_fuse
