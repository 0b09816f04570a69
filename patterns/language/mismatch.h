// Matching with one difference: what a rule would take if one constant, attribute, operator or operand of the graph were another.
// A person who edited one node of a graph that fused asks for nothing else.
#pragma once

#include <optional>
#include <string>

#include "absl/functional/function_ref.h"
#include "patterns/language/may_match.h"
#include "patterns/language/pattern.h"
#include "patterns/language/rule_set.h"

namespace ascend_fuse {

class Matcher;
struct Match;

// The one place in which a graph differs from a rule that it matches everywhere else.
struct Mismatch {
  const Node* node = nullptr;
  SourcePosition position;  // in the rule text
  std::string expected;
  std::string found;
  int evidence = 0;  // how much besides is as the rule has it: nodes, constants, and operands that are read twice
};

// As Matcher::Run, where the graph may differ once: nothing is to be emitted of such a match. A match without a difference has no
// `mismatch->node`.
std::optional<Match> MatchButOne(Matcher& matcher, const Rule& rule, const Value* root, Mismatch* mismatch);

// What a matcher asks where the graph is not as the rule has it: once it goes on all the same.
class Pardon {
 public:
  using Next = absl::FunctionRef<bool()>;

  // operators: another operator may be pardoned too.
  Pardon(bool operators, Mismatch* mismatch) : mismatch_(*mismatch), operators_(operators) {}

  bool operators() const { return operators_; }

  // Goes on with `next` as if this were as the rule has it, if nothing was pardoned before.
  bool Take(const SourcePosition& position, const Node* node, absl::FunctionRef<std::string()> expected,
            absl::FunctionRef<std::string()> found, Next next);
  // The same where the node may stand in the place of the operator of `pattern`, with as many operands. `spelled`: the definition
  // of which the pattern is an alternative, or nullptr.
  bool TakeOperator(const Pattern& pattern, const Node& node, const Definition* spelled, Next next);
  // Counts as evidence for as long as `next` goes well.
  bool Evident(Next next);

 private:
  bool MayBe(const Pattern& pattern, const Node& node, const Definition* spelled) const;

  Mismatch& mismatch_;
  const bool operators_;
  bool taken_ = false;
  int evidence_ = 0;
};

// What may be otherwise where somebody pardons.
inline MayMatch::Pardoned PardonedBy(const Pardon* pardon) {
  if (pardon == nullptr) return MayMatch::Pardoned::kNothing;
  return pardon->operators() ? MayMatch::Pardoned::kNumberOrOperator : MayMatch::Pardoned::kNumber;
}

}  // namespace ascend_fuse
