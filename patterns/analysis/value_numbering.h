// Values modulo noise and repetition: which values are the same computation, and which nodes do nothing.
#pragma once

#include <cstdint>
#include <vector>

#include "ir/infer/facts.h"

namespace ascend_fuse {

// Value numbering over the inferred facts. Noise (design.md section 3): Identity, Dropout at inference, Cast to
// the same type or to a wider one and back, full-range Slice, Expand and Tile to the same shape, Pad by nothing, Transposes that cancel,
// chains of Reshape, Squeeze, Unsqueeze and Flatten that come back to the shape they started from, Concat, Sum,
// Max, Min or Mean of one, Split into one, operands that change nothing (times 1, plus 0, and true, or false), and
// a ScatterND that overwrites everything. Noise between two nodes that cancel is looked through as well.
class ValueNumbering {
 public:
  // One pass over all graphs; linear.
  ValueNumbering(const Model& model, const Facts& facts);

  // Equal numbers: the same value in every run, or one differs from the other by noise only. Small tensors of
  // equal type, shape and elements are the same, constants as well as shapes that inference proves equal, and
  // initializers that are one range of an external file. An attribute at its default may be written or not.
  uint32_t Number(const Value* value) const {
    return value->id < numbers_.size() ? numbers_[value->id] : value->id;
  }
  bool Same(const Value* a, const Value* b) const { return a == b || Number(a) == Number(b); }

  // The value that `value` is a mere copy of through one node of noise, or nullptr.
  Value* Source(const Value* value) const {
    return value->id < sources_.size() ? sources_[value->id] : nullptr;
  }

 private:
  std::vector<uint32_t> numbers_;
  std::vector<Value*> sources_;
};

}  // namespace ascend_fuse
