// Finds a rule's pattern in a graph, with full backtracking: alternatives, operand orders, optional parts and
// conditions are all choices that are taken back when a later one fails.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "patterns/language/function_context.h"
#include "patterns/language/rule_set.h"
#include "patterns/language/term.h"

namespace ascend_fuse {

// What a match found: a value, the only channel from matching to emitting.
struct Match {
  const Rule* rule = nullptr;
  std::vector<Term> terms;           // by slot of rule->scope
  std::vector<const Node*> covered;  // each once, root first
};

// The attempt that got farthest.
struct Failure {
  const Rule* rule = nullptr;
  SourcePosition position;     // in the rule text
  const Node* node = nullptr;  // where in the graph
  std::string expected;
  std::string found;
  bool is_sentence = false;  // `found` says all there is to say: a condition's own words
  bool final_word = false;   // what looks like the construct is none (functions/refusal.h), and `expected` is empty
  std::vector<const Node*> covered;
  int rank = -1;  // nodes covered, then the kind of stop; larger got farther
};

class Matcher {
 public:
  // All must outlive the matcher.
  Matcher(const RuleSet& rules, const FunctionContext& context) : rules_(rules), context_(context) {}

  // Matches `rule` with its first output at `root`. With `failure`, keeps the attempt that got farthest
  // (slower: sentences are made). A rule about two constructs side by side has a second output that the first does
  // not lead to: it is looked for at `partner`, and without one such a rule does not match.
  std::optional<Match> Run(const Rule& rule, Value* root, Failure* failure = nullptr, Value* partner = nullptr);
  // Whether `value` can be what the rule calls `from`, as far as its pattern goes.
  bool Starts(const Rule& rule, Value* value, Failure* failure = nullptr);

 private:
  struct Frame;
  struct Closure {
    const Pattern* pattern = nullptr;
    Frame* frame = nullptr;
  };
  struct Frame {
    const Scope* scope = nullptr;
    std::vector<Term> terms;
    std::vector<Closure> closures;  // a definition's parameters
  };
  using Next = absl::FunctionRef<bool()>;

  Frame* Begin(const Rule& rule, Failure* failure);
  bool MatchTerm(const Pattern& pattern, Frame* frame, const Term& term, Next next);
  bool MatchVariable(const Pattern& pattern, Frame* frame, const Term& term, Next next);
  // outputs: the line that names several outputs, of which `value` is the one at `place`. quiet: no failure
  // is noted.
  bool MatchOperator(const Pattern& pattern, Frame* frame, Value* value, Next next,
                     const MatchStatement* outputs, int place, bool quiet);
  bool MatchNode(const Pattern& pattern, Frame* frame, const Node& node, Next next);
  bool MatchInputs(const Pattern& pattern, Frame* frame, const Node& node, size_t index, bool swapped,
                   Next next);
  bool MatchAttributes(const Pattern& pattern, Frame* frame, const Node& node, size_t index, Next next);
  bool MatchDefinition(const Pattern& pattern, Frame* frame, const Term& term, Next next);
  bool FinishDefinition(const Pattern& pattern, Frame* frame, Frame* inner, size_t parameter,
                        bool defaults_only, Next next);
  bool Conditions(const std::vector<Condition>& conditions, size_t index, Frame* frame, Next next);
  bool Holds(const std::vector<Condition>& conditions, size_t index, Frame* frame, Next next);
  // Binds or compares; calls next with the binding in place and takes it back if next fails.
  bool Unify(const Expression& expression, Frame* frame, const Term& term, Next next);
  bool UnifyList(const Expression& list, size_t index, Frame* frame, const std::vector<Term>& items,
                 size_t item, Next next);
  bool Deliver(Frame* frame, size_t slot, const Term& term, Next next);
  absl::StatusOr<Term> Evaluate(const Expression& expression, Frame* frame);
  bool CostlyIsShared(Frame* frame);
  bool FeedsItself(Frame* frame);
  bool Covers(const Node* node) const;

  Frame* NewFrame(const Scope& scope);
  // True if this attempt got farther than those before.
  bool Fail(const SourcePosition& position, const Node* node, int kind,
            absl::FunctionRef<std::string()> expected, absl::FunctionRef<std::string()> found);

  friend absl::StatusOr<Term> EvaluateInMatch(const Expression&, const Match&, const FunctionContext&);

  const RuleSet& rules_;
  FunctionContext context_;
  const Rule* rule_ = nullptr;
  Failure* failure_ = nullptr;
  std::deque<Frame> frames_;
  size_t frame_count_ = 0;
  std::vector<const Node*> covered_;
  int64_t steps_ = 0;
  int depth_ = 0;
  const Pattern* quiet_ = nullptr;  // an optional operator: where another one stands is no failure
};

// Evaluates an expression of the rule's emit block with the names that the match bound.
absl::StatusOr<Term> EvaluateInMatch(const Expression& expression, const Match& match,
                                     const FunctionContext& context);

}  // namespace ascend_fuse
