// What a function that a rule calls may look at, and where it writes what it found out besides its result.
#pragma once

#include <string>
#include <vector>

#include "ir/infer/facts.h"
#include "ir/infer/value_numbering.h"

namespace ascend_fuse {

class AttentionMemo;
class MaskForms;
class MatchCache;
class Target;

struct FunctionContext {
  const Model* model = nullptr;
  const Target* target = nullptr;  // nullptr outside of lowering
  const Facts* facts = nullptr;
  DimTable* dims = nullptr;  // that of `facts`: new expressions may be made, nothing is unified
  const ValueNumbering* numbering = nullptr;
  // Where a function writes what it takes for granted; nullptr while matching.
  std::vector<std::string>* assumptions = nullptr;
  // Nodes are matched as they are written: no copy is looked through.
  bool literal = false;
  // What masks mean, found out once for the model; nullptr while nobody asks.
  MaskForms* masks = nullptr;
  // What is done to the scores of the attention that was asked about last; nullptr: it is found out each time.
  AttentionMemo* attention = nullptr;
  // What all matchers of the model share; nullptr: each keeps its own.
  MatchCache* cache = nullptr;
  // Where a function notes the nodes it read as part of what is matched; nullptr where nobody asks.
  std::vector<const Node*>* read = nullptr;
};

}  // namespace ascend_fuse
