// What an attention mask means: which keys each query may attend to, as clauses that all must hold, whatever the program
// that computes the mask. What is not proved is "any", never a guess.
#pragma once

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/types/span.h"
#include "patterns/analysis/index_function.h"

namespace ascend_fuse {

// One condition on query i and key j of batch b. A kind for each thing that a kernel could take.
struct MaskClause {
  enum class Kind : uint8_t {
    kUpTo,     // j <= i + offset: causal
    kFrom,     // j >= i + offset: the left edge of a window
    kChunk,    // j and i lie in the same part of `size` places
    kPrefix,   // j <= i + offset, or j is one of the first keys, as another condition on b and j alone says
    kKeys,     // on b and j alone: key padding
    kQueries,  // on b and i alone: query padding
    kAny,      // anything else
  };
  Kind kind = Kind::kAny;
  Dim offset;  // kUpTo, kFrom, kPrefix
  Dim size;    // kChunk
  // kUpTo, kFrom: of key j alone, because the mask has one query. Where the attention has more, it is one on keys.
  bool one_query = false;
  Decision condition = kNoDecision;  // the clause itself
};

// Which keys take part, and what is added to their scores.
struct MaskForm {
  // False: nothing was found out, and `clauses` is empty.
  bool understood = false;
  std::vector<MaskClause> clauses;
  bool bias = false;                        // something is added to the scores of keys that take part
  bool nothing = false;                     // no key takes part, whatever the query
  std::vector<std::string> padding_inputs;  // the values that clauses kKeys read, each once
  std::vector<std::string> assumptions;     // sentences
  // Whether the mask has a place for each query, and not one for all.
  bool by_query = false;

  const MaskClause* Find(MaskClause::Kind kind) const;
};

// A mask as a site has it. Additive: 0 or minus infinity (docs/sources/export-patterns.md 7.3) beside each score, or a bias.
// Boolean: true = attend.
class MaskForms {
 public:
  MaskForms(const Model& model, const Facts& facts, DimTable* dims, const ValueNumbering& numbering,
            absl::Span<const InputAssumption> assumptions)
      : functions_(model, facts, dims, numbering, assumptions), facts_(facts), dims_(*dims), numbering_(numbering) {}

  // The form of `mask`, [..., T] that broadcasts to scores [B, N, S, T] of these dims; an unknown one is that of the mask.
  // Found out once for each value and dims; linear in the program of the mask, and given up beyond a limit.
  using Scores = std::array<Dim, 4>;
  const MaskForm& Of(const Value* mask, const Scores& scores) { return Of(mask, scores, Lengths::kProved); }
  // That of several masks of one attention: a key takes part where each says so.
  const MaskForm& Together(absl::Span<const Value* const> masks, const Scores& scores) {
    return Together(masks, scores, Lengths::kProved);
  }
  // For a reader of reports alone. Where a mask may be as long as the queries or the keys, or 1 and broadcast, it is taken
  // to be as long, and `assumptions` says so.
  const MaskForm& Described(absl::Span<const Value* const> masks, const Scores& scores);
  // An expression of Python that is true where key j takes part in query i: for tests.
  std::string ToString(const MaskClause& clause) { return functions_.decisions().ToString(clause.condition); }

 private:
  enum class Lengths : uint8_t { kProved, kAssumed };
  const MaskForm& Of(const Value* mask, const Scores& scores, Lengths lengths);
  const MaskForm& Together(absl::Span<const Value* const> masks, const Scores& scores, Lengths lengths);
  std::string KeyOf(absl::Span<const Value* const> masks, const Scores& scores, Lengths lengths) const;
  MaskForm Find(const Value* mask, const Scores& scores, Lengths lengths);
  MaskForm Join(absl::Span<const Value* const> masks, const Scores& scores, Lengths lengths);
  // Where the added number lets a key take part.
  Decision Allowed(Decision added, bool* bias);
  // Integers among the leaves as numbers: what the tests before make 0 is 0, an input of 0 and 1 becomes a test.
  Decision Settle(Decision added, std::vector<Literal>* before, uint64_t* assumptions);
  void FindClauses(Decision allowed, MaskForm* form);
  void Reduce(Decision* rest, std::vector<Literal>* literals);
  Decision OfLiteral(Literal literal);
  MaskClause Classify(Decision condition, bool one_query);
  bool IsEdge(Literal literal, bool one_query, MaskClause* clause);
  bool IsChunk(Literal literal, MaskClause* clause);
  bool IsPrefix(Decision condition, bool one_query, MaskClause* clause);
  // 1 or -1 where the sum is that times position `axis`, besides what depends on no position and other positions.
  int FactorOf(IndexSum sum, int axis) const;
  void NameReads(IndexSum sum, std::vector<std::string>* names) const;

  IndexFunctions functions_;
  const Facts& facts_;
  DimTable& dims_;
  const ValueNumbering& numbering_;
  int paths_ = 0;                                                      // that Settle may still go
  absl::flat_hash_map<std::string, std::unique_ptr<MaskForm>> forms_;  // by numbers of the values and the scores
};

// The dims of the scores of query [B, N, S, D] and key [B, G, T, D], as far as they are known.
MaskForms::Scores ScoresOf(const Facts& facts, const Value* query, const Value* key);

// The word for a form in an attention with `queries` queries and `keys` keys, as reports have it: none,
// causal_bottom_right, causal_top_left, causal (with another offset), window, chunk, prefix, padding, query_padding, bias,
// explicit; sums with "+".
std::string MaskWord(const MaskForm& form, Dim queries, Dim keys, DimTable& dims);

}  // namespace ascend_fuse
