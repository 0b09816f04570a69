// Halves of a packed tensor: which part of which value a Slice, Split or Gather gives, proved from symbolic dims.
// Gates (GLU) and rotations cut one tensor in two; a half that is a few elements off, strided or cut along
// another axis is another function (docs/sources/export-patterns.md 4.3 and 5.1).
#pragma once

#include "absl/status/statusor.h"
#include "patterns/terms/function_context.h"

namespace ascend_fuse {

struct HalfOf {
  Value* whole = nullptr;  // what it is cut from
  int axis = 0;            // counted from the front
  int index = 0;           // 0: the first half (or the even elements), 1: the second (or the odd ones)
  bool strided = false;    // every other element instead of one block
};

// The half that `part` is, looking through noise. FAILED_PRECONDITION with a sentence when it is not provably
// one: unequal parts, three parts, bounds that are not known, overlapping indices.
absl::StatusOr<HalfOf> FindHalf(const FunctionContext& context, Value* part);

}  // namespace ascend_fuse
