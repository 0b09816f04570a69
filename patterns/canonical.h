// Values modulo noise and repetition: which values are the same computation, and which nodes do nothing.
#pragma once

#include <cstdint>
#include <vector>

#include "ir/infer/facts.h"

namespace ascend_fuse {

// Value numbering over the inferred facts. Noise (design.md section 3): Identity, Dropout at inference,
// same-type Cast, full-range Slice, same-shape Expand and Reshape, inverse Transpose pairs, Concat of one,
// multiplication by 1, addition of 0, a ScatterND that overwrites everything.
class Canonical {
 public:
  // One pass over all graphs; linear.
  Canonical(const Model& model, const Facts& facts);

  // Equal numbers: the same value in every run, or one differs from the other by noise only. Small constants
  // with equal type, shape and bytes are the same.
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
