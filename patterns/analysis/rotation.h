// Rotations of channels: the half of a rotary embedding that changes their places.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "patterns/terms/function_context.h"

namespace ascend_fuse {

// How a kernel turns channels. The names are those of the attribute `mode` of ascend_fuse.Rotary.
//   half             x1, x2 = halves          rotated = (-x2, x1)
//   interleaved      pairs                    rotated = (-x[1], x[0], -x[3], x[2], ...)
//   quarter          x1, x2, x3, x4           rotated = (-x2, x1, -x4, x3)
// (interleave_half takes pairs apart into halves first; see DeinterleavedSource.)
// `rotated` as such a rotation of x [..., D]. `sign` is -1 where `rotated` is subtracted; `signs`, if not null, is a
// constant of one 1 or -1 for each channel that it is multiplied with. FAILED_PRECONDITION with a sentence that says
// what it is instead.
absl::StatusOr<std::string> RotationMode(const FunctionContext& context, const Value* rotated, const Value* x, int sign,
                                         const Value* signs = nullptr);

// The value [..., D] of which x is the even channels followed by the odd ones.
absl::StatusOr<const Value*> DeinterleavedSource(const FunctionContext& context, const Value* x);

}  // namespace ascend_fuse
