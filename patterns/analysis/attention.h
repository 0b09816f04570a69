// An attention by its core, whatever its spelling: scores, a softmax over the keys, and the weighted sum of values. What
// the axes are (batch, heads, queries, keys, channels) follows from the two products, not from the number of dims.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "patterns/terms/function_context.h"
#include "patterns/terms/term.h"

namespace ascend_fuse {

// y = softmax (softcap (query key^T scale) + bias + mask) value, as ascend_fuse.Attention takes it. B batch, H heads of the
// query, G heads of key and value, S queries, T keys, D and E head sizes.
struct AttentionView {
  Term query;  // [B, H, S, D]
  Term key;    // [B, G, T, D]
  Term value;  // [B, G, T, E]
  Term mask;   // added, what broadcasts to [B, H, S, T]; may be absent, as the next two
  Term keep;   // boolean: where it is false the score becomes minus infinity
  Term bias;   // added before `mask`
  double scale = 1;
  double softcap = 0;
  bool guard = false;
  // Not empty: it is an attention that no kernel computes, for this reason, and parts are not to be used.
  std::string unfused;
};

// The attention that computes `y`, the product of weights and values or a Reshape of it. Axes are followed through moves of
// data, factors are taken from wherever they stand, float32 islands begin at the half-precision operands. Where it may
// be chosen what is batch and what is a head, heads are what the scores, the operands or the channels were split
// into. FAILED_PRECONDITION with a sentence about what is not a part of an attention; the nodes that were read are noted in
// context.read, also then.
absl::StatusOr<AttentionView> FollowAttention(const FunctionContext& context, const Value* y);

// `attention`, which has the axes [B, H, S, E] of FollowAttention (context, y), with the axes and the type of y.
absl::StatusOr<Term> AttentionOutput(const FunctionContext& context, const Value* y, const Term& attention);

}  // namespace ascend_fuse
