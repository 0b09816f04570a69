// The masks and biases of an attention, brought to the axes that kernels take.
#pragma once

#include "absl/status/statusor.h"
#include "patterns/analysis/attention_axes.h"
#include "patterns/analysis/scores.h"
#include "patterns/terms/function_context.h"
#include "patterns/terms/term.h"

namespace ascend_fuse {

// What is added to the scores and what drops keys, as AttentionView has them.
struct MasksOfScores {
  Term added = Term::Absent();  // last
  Term keep = Term::Absent();
  Term bias = Term::Absent();  // added before `added`
};

// The query [batch, heads, queries, width] of this type, multiplied by the factors on the path of the scores. A refusal where
// one of them is not the same for all keys.
absl::StatusOr<Term> QueryWithFactors(const FunctionContext& context, AtomTable* atoms, const AttentionAxes& axes,
                                      const ScorePath& path, Term query, DataType type);

// The masks on the path of the scores, each broadcast to [batch, heads, queries, keys] of `axes`. A refusal where that is not
// proved of one of them.
absl::StatusOr<MasksOfScores> ReadMasksOfScores(const FunctionContext& context, AtomTable* atoms, const AttentionAxes& axes,
                                                const ScorePath& path);

}  // namespace ascend_fuse
