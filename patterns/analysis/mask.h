// What an attention mask is, as far as a kernel with an explicit boolean mask needs it: which elements are
// masked, whatever the program that computed them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "patterns/analysis/possible_values.h"
#include "patterns/terms/function_context.h"
#include "patterns/terms/term.h"

namespace ascend_fuse {

// The name of `value`, or, where it was made for an emission, of what it was made of: the model has a value of that name.
std::string_view NameInModel(const Facts& facts, const Value& value);

// At or below this an added number takes a key out of the softmax (docs/sources/export-patterns.md 7.3: -1e4 as bfloat16
// rounds it, and everything larger in magnitude).
constexpr double kMaskThreshold = -1e4 * (1 - 1.0 / 256);

// What operators of ONNX Runtime add to the score of a key that is masked, where no mask_filter_value is written
// (onnxruntime: docs/ContribOperators.md).
constexpr double kRuntimeMaskFill = -10000;

// `mask` as a boolean tensor of shape [queries, keys] or [B or 1, 1, queries, keys] in which true means masked out, built from
// the boolean the exporter started with where there is one, by comparison otherwise. mask: the additive or
// boolean (true = attend) mask; query [B, N, S, D]; key [B, G, T, D]. A mask that was only expanded over the heads is
// taken from before that. FAILED_PRECONDITION with a sentence if it holds numbers other than 0 and minus infinity (a
// bias), differs from head to head, or has a shape that is not known. Adds what it assumes to context.assumptions.
absl::StatusOr<Term> ExplicitMask(const FunctionContext& context, const Value* mask, const Value* query, const Value* key);

// The same of a boolean in which true means masked out already.
absl::StatusOr<Term> ExplicitDrop(const FunctionContext& context, const Value* drop, const Value* query, const Value* key);

// Where only a mask that is broadcast or as long as the batch of a query [B, N, S, D] leaves the shape of the scores as it is,
// and neither is proved, the sentence that says so; "" where nothing is to be taken for granted, or the shapes cannot fit.
std::string AssumedOfBatch(const DimTable& dims, const Fact& mask, const Fact& query);
// The same of its number of queries, the last but one dim.
std::string AssumedOfQueries(const DimTable& dims, const Fact& mask, const Fact& query);

// OK where adding `mask` to scores of query [B, N, S, D] leaves their shape as it is, for every run.
absl::Status CheckMaskFits(const FunctionContext& context, const Value* mask, const Value* query);

// OK where the dims of what is added or masked are 1 or those of the scores of a query whose fact is `query`, [B, N, S, D]:
// broadcasting may enlarge a mask, never the scores. Adds what it assumes to context.assumptions.
absl::Status CheckMaskShape(const FunctionContext& context, const Value& mask, const Fact& query);

// A mask expanded to [S, T], or to [B or 1, heads, S, T] from rank 3 on or where `heads` is not 1, for a query [B, N, S, D] and
// a key [B, G, T, D]. fact: that of the mask, where it is known.
Term ExpandedToScores(const FunctionContext& context, Term mask, const Fact* fact, const Term& heads, const Value* query,
                      const Value* key);

// Whether a mask is boolean, or provably holds only 0 and what takes a key out.
bool OnlyMasks(const FunctionContext& context, const Value* mask);

// True when every masked element of an additive mask is minus infinity itself, so that a row without any
// allowed key is NaN after the softmax (and 0 after an IsNaN guard).
bool MasksWithInfinity(const FunctionContext& context, const Value* mask);

}  // namespace ascend_fuse
