// An attention in parts, which operators that are a whole attention are taken apart into, and what its parts compute.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "patterns/terms/term.h"

namespace ascend_fuse {

// H heads of the query, G of key and value.
struct PartsOfAttention {
  Term query;                         // [B, H, S, D]
  Term key;                           // [B, G, T, D], the cache in front
  Term value;                         // [B, G, T, E]
  Term present_key = Term::Absent();  // as outputs have them; absent: none is asked for
  Term present_value = Term::Absent();
  int64_t heads = 0;
  int64_t key_heads = 0;
  double scale = 0;
  double softcap = 0;
  Term added = Term::Absent();              // to the scores
  Term keep = Term::Absent();               // boolean, true = attend
  Term sink = Term::Absent();               // [1, H, 1, 1]: takes part in the softmax beside the keys
  bool guard = false;                       // rows without any key are 0
  DataType softmax = DataType::kUndefined;  // the type that the softmax is computed in, if another
  DataType type = DataType::kUndefined;
  bool flat = true;  // the output is [B, S, H E]
};

// What the parts compute.
struct AttentionOutcome {
  Term y;
  std::array<Term, 4> scores;  // after the product, the cap, the mask, the softmax
};

AttentionOutcome ComputeAttention(const PartsOfAttention& parts);

// What an operator gives: y, present_key, present_value and the scores of a mode, which are absent.
std::vector<Term> AttentionOutputs(const PartsOfAttention& parts);

bool IsGiven(const Term& term);

namespace build {

// The length of axis `axis` of x, a scalar.
Term Length(const Term& x, int64_t axis);
// 0, 1, ... length - 1, a vector.
Term Range(const Term& length);
// Both, or `b` where `a` is absent.
Term And(const Term& a, const Term& b);
// x [B, S, N D] as [B, N, S, D].
Term Heads(const Term& x, int64_t heads);

}  // namespace build
}  // namespace ascend_fuse
