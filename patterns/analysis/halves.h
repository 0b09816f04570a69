// Halves of a packed tensor, proved from symbolic dims: which part of which value another one is, what two parts are cut from,
// and how two parts are joined. Gates (GLU) and rotations cut one tensor in two; a half that is a few elements off, strided or
// cut along another axis is another function (docs/sources/export-patterns.md 4.3 and 5.1).
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "patterns/terms/function_context.h"
#include "patterns/terms/term.h"

namespace ascend_fuse {

struct HalfOf {
  const Value* whole = nullptr;  // what it is cut from
  int axis = 0;                  // counted from the front
  int index = 0;                 // 0: the first half (or the even elements), 1: the second (or the odd ones)
  bool strided = false;          // every other element instead of one block
};

// The half that `part` is, looking through noise. FAILED_PRECONDITION with a sentence when it is not provably
// one: unequal parts, three parts, bounds that are not known, overlapping indices.
absl::StatusOr<HalfOf> FindHalf(const FunctionContext& context, const Value* part);

// Whether two values are computed, by a sum of products at most, from the two halves of the last axis of one.
bool AreOfHalvesOfOne(const FunctionContext& context, const Value* a, const Value* b);
// Whether `join` joins two such values and nothing else.
bool JoinsHalvesOfOne(const FunctionContext& context, const Node& join);

// y [..., D] made of a and b [..., D/2] alone: "half" if a is its first half and b its second, "interleaved" if a
// holds its even and b its odd channels.
absl::StatusOr<std::string> JoinMode(const FunctionContext& context, const Value* y, const Value* a, const Value* b);

// The value whose last axis a and b are cut from, and how: "half" or "interleaved". If `like` is not null, a value of
// its shape, but for a last axis `scale` times as wide; where a and b are cut from the same part of leading axes too, that
// part is the value, which is to be built.
struct Cut {
  const Value* source = nullptr;
  std::string mode;
  Term whole;  // `source`, or the part of it
};
absl::StatusOr<Cut> CutSource(const FunctionContext& context, const Value* a, const Value* b, const Value* like = nullptr,
                              int64_t scale = 1);

}  // namespace ascend_fuse
