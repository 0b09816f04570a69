// Which channels of which value the channels of another are: the meaning of the slices, concatenations, reshapes and
// sign changes by which exporters spell a rotation.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "patterns/terms/function_context.h"
#include "patterns/terms/term.h"

namespace ascend_fuse {

// One channel: plus or minus channel `index` of source number `source`.
struct Channel {
  int source = 0;
  int64_t index = 0;
  bool negative = false;
};

// The part of a leading axis that a Slice with step 1 takes.
struct Window {
  bool whole = true;
  Dim start;   // as the Slice has it; what follows says something where it is not whole
  Dim end;     // likewise
  Dim extent;  // how many elements that is
};

// A value whose axes are the leading axes of its sources, and between or after them others that, taken together in
// row-major order, hold these channels of the last axis of the sources.
struct ChannelMap {
  static constexpr int kChannels = -1;
  int leading = 0;
  std::vector<Window> windows;  // of each leading axis of the source
  std::vector<int> axes;        // of the value: which leading axis of the source each is, or kChannels
  std::vector<int64_t> trailing;
  std::vector<Channel> channels;
  std::vector<const Node*> nodes;  // read on the way, the last one first
};

// Follows `value` back to `sources` through operators that only move, drop or negate channels, or take a part of a
// leading axis. A source of shape [..., C] has C channels; C must be a number of at most `most`. FAILED_PRECONDITION with a
// sentence naming the operator that does anything else; `reached` (may be null) then still gets the nodes that were read.
constexpr int64_t kMaximumChannels = 4096;
absl::StatusOr<ChannelMap> FollowChannels(const FunctionContext& context, Value* value, absl::Span<Value* const> sources,
                                          std::vector<const Node*>* reached = nullptr, int64_t most = kMaximumChannels);

// How a kernel turns channels. The names are those of the attribute `mode` of ascend_fuse.Rotary.
//   half             x1, x2 = halves          rotated = (-x2, x1)
//   interleaved      pairs                    rotated = (-x[1], x[0], -x[3], x[2], ...)
//   quarter          x1, x2, x3, x4           rotated = (-x2, x1, -x4, x3)
// (interleave_half takes pairs apart into halves first; see DeinterleavedSource.)
// `rotated` as such a rotation of x [..., D]. `sign` is -1 where `rotated` is subtracted; `signs`, if not null, is a
// constant of one 1 or -1 for each channel that it is multiplied with. FAILED_PRECONDITION with a sentence that says
// what it is instead.
absl::StatusOr<std::string> RotationMode(const FunctionContext& context, Value* rotated, Value* x, int sign,
                                         const Value* signs = nullptr);

// y [..., D] made of a and b [..., D/2] alone: "half" if a is its first half and b its second, "interleaved" if a
// holds its even and b its odd channels.
absl::StatusOr<std::string> JoinMode(const FunctionContext& context, Value* y, Value* a, Value* b);

// The value whose last axis a and b are cut from, and how: "half" or "interleaved". If `like` is not null, a value of
// its shape, but for a last axis `scale` times as wide; where a and b are cut from the same part of leading axes too, that
// part is the value, which is to be built.
struct Cut {
  Value* source = nullptr;
  std::string mode;
  Term whole;  // `source`, or the part of it
};
absl::StatusOr<Cut> CutSource(const FunctionContext& context, Value* a, Value* b, const Value* like = nullptr, int64_t scale = 1);

// The value [..., D] of which x is the even channels followed by the odd ones.
absl::StatusOr<Value*> DeinterleavedSource(const FunctionContext& context, Value* x);

}  // namespace ascend_fuse
