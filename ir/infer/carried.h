// What a turn of a Loop or a Scan gets from the turn before, and which of its dims are the same in all turns.
#pragma once

#include <vector>

#include "ir/infer/facts.h"
#include "ir/model.h"

namespace ascend_fuse::infer {

struct CarriedValue {
  const Value* initial = nullptr;  // what the first turn gets; nullptr where the node leaves it out
  const Value* input = nullptr;    // of the body
  const Value* output = nullptr;   // of the body
  const Value* result = nullptr;   // of the node; nullptr where nobody reads it
};

// In the order in which the node gives them. Empty for every other operator, and for a Scan of opset 8, whose states have a
// batch.
std::vector<CarriedValue> CarriedValues(const Node& node);

// Asks again, after something was learnt of dims, which dims of the carried values every turn gives as it got them: such a dim is
// the one that the first turn gets, in the body and in what the node gives. Inference asks it of what was known then. The body
// is not inferred anew, so that what was learnt of its own dims stays. True where a dim was told.
bool LearnOfTurns(const Node& loop, Facts* facts);

}  // namespace ascend_fuse::infer
