// What is added to the scores of an attention, taken apart: the numbers that every key keeps (relative positions, ALiBi), and
// what takes keys out.
#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "patterns/terms/function_context.h"
#include "patterns/terms/term.h"

namespace ascend_fuse {

// The sum of `biases`, where every key takes part that no mask takes out.
struct ScoreParts {
  std::vector<const Value*> masks;   // additive of 0 and minus infinity, or boolean with true = attend
  std::vector<const Value*> drops;   // boolean with true = taken out
  std::vector<const Value*> biases;  // real numbers, none of them so low that it takes a key out
};

// `added`: what is added to scores, or booleans (true = attend). Follows sums and choices (Where) back to operands that only
// mask and operands that never do. FAILED_PRECONDITION with a sentence, code mask-is-bias, about an operand that is
// not proved to be one of the two: an input of the graph may hold minus infinity beside numbers.
absl::StatusOr<ScoreParts> SplitScores(const FunctionContext& context, absl::Span<const Value* const> added);

// The sum of `biases`, or no value; of the type of `query`. FAILED_PRECONDITION where a bias is of a wider type than that.
absl::StatusOr<Term> SumOfBiases(const FunctionContext& context, const ScoreParts& parts, const Value* query);

// The same as [1 or B, H, S, T] for a query [B, H, S, D] and a key [B, G, T, D].
absl::StatusOr<Term> WholeBias(const FunctionContext& context, const ScoreParts& parts, const Value* query, const Value* key);

}  // namespace ascend_fuse
