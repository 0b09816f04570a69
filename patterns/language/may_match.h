// Whether a rule can match at a value, as far as its prefilter sees: operators and constants alone. A no is final.
// Where one difference is pardoned (patterns/language/mismatch.h), one place may be otherwise.
#pragma once

#include <cstdint>

#include "patterns/language/match_cache.h"
#include "patterns/language/prefilter.h"
#include "patterns/terms/function_context.h"

namespace ascend_fuse {

class MayMatch {
 public:
  MayMatch(const Prefilter& prefilter, const FunctionContext& context, MatchCache& cache, MatchCache::Operators* operators)
      : prefilter_(prefilter), context_(context), cache_(cache), operators_(operators) {}

  // What may be otherwise, at one place.
  enum class Pardoned : uint8_t { kNothing, kNumber, kNumberOrOperator };

  bool At(Prefilter::FormId form, const Value* value, Pardoned pardoned = Pardoned::kNothing) const;

 private:
  bool MayBe(Prefilter::FormId form, const Value* value, Pardoned pardoned, int* budget) const;
  bool MayRead(const Prefilter::Branch& branch, const Node& node, Pardoned pardoned, int* budget) const;
  // With the operands in the order of the branch, or the other way round.
  bool MayReadIn(bool swapped, const Prefilter::Branch& branch, const Node& node, Pardoned pardoned, int* budget) const;

  const Prefilter& prefilter_;
  const FunctionContext& context_;
  MatchCache& cache_;
  MatchCache::Operators* operators_;
};

}  // namespace ascend_fuse
