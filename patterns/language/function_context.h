// What a function that a rule calls may look at, and where it writes what it found out besides its result.
#pragma once

#include <string>
#include <vector>

#include "ir/infer/facts.h"
#include "patterns/analysis/value_numbering.h"

namespace ascend_fuse {

class Target;

struct FunctionContext {
  const Model* model = nullptr;
  const Target* target = nullptr;  // nullptr outside of lowering
  const Facts* facts = nullptr;
  DimTable* dims = nullptr;  // that of `facts`: new expressions may be made, nothing is unified
  const ValueNumbering* numbering = nullptr;
  // Where a function writes what it takes for granted; nullptr while matching.
  std::vector<std::string>* assumptions = nullptr;
  // Where a function notes the nodes it read as part of what is matched; nullptr where nobody asks.
  std::vector<const Node*>* read = nullptr;
};

}  // namespace ascend_fuse
