// Whether a rule can match at a value, as far as its prefilter sees: operators and constants alone. A no is final.
#pragma once

#include "patterns/language/match_cache.h"
#include "patterns/language/prefilter.h"
#include "patterns/terms/function_context.h"

namespace ascend_fuse {

class MayMatch {
 public:
  MayMatch(const Prefilter& prefilter, const FunctionContext& context, MatchCache& cache, MatchCache::Operators* operators)
      : prefilter_(prefilter), context_(context), cache_(cache), operators_(operators) {}

  bool At(Prefilter::FormId form, const Value* value) const;

 private:
  bool MayBe(Prefilter::FormId form, const Value* value, int* budget) const;
  bool MayRead(const Prefilter::Branch& branch, const Node& node, int* budget) const;

  const Prefilter& prefilter_;
  const FunctionContext& context_;
  MatchCache& cache_;
  MatchCache::Operators* operators_;
};

}  // namespace ascend_fuse
