// Finds a rule's pattern in a graph, with full backtracking: alternatives, operand orders, optional parts and
// conditions are all choices that are taken back when a later one fails.
#pragma once

#include <compare>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "patterns/language/match_cache.h"
#include "patterns/language/match_trace.h"
#include "patterns/language/mismatch.h"
#include "patterns/language/prefilter.h"
#include "patterns/language/rule_set.h"
#include "patterns/terms/function_context.h"
#include "patterns/terms/term.h"

namespace ascend_fuse {

// What a match found: a value, the only channel from matching to emitting.
struct Match {
  const Rule* rule = nullptr;
  std::vector<Term> terms;           // by slot of rule->scope
  std::vector<const Node*> covered;  // each once, root first
};

// What stopped an attempt, better things first told: a wrong attribute of the right operator says more than a wrong
// operator.
enum class Stop : uint8_t {
  kWrongOperator,
  kWrongValue,
  kWrongAttribute,
  kConditionFails,
  kWrongConstant,  // the shape is there and a number is not: worth more than one node farther
};

// How far an attempt got; larger got farther.
struct FailureRank {
  int nodes = -1;  // matched ones, each counted once; -1: nothing was tried
  Stop stop = Stop::kWrongOperator;

  bool tried() const { return nodes >= 0; }
  // By nodes, then by what stopped it. A wrong constant stands where a wrong attribute would with one node more.
  friend std::weak_ordering operator<=>(const FailureRank& a, const FailureRank& b) {
    if (a.Place() != b.Place()) return a.Place() < b.Place() ? std::weak_ordering::less : std::weak_ordering::greater;
    return std::weak_ordering::equivalent;
  }
  friend bool operator==(const FailureRank& a, const FailureRank& b) { return a.Place() == b.Place(); }

 private:
  std::pair<int, Stop> Place() const {
    return stop == Stop::kWrongConstant ? std::pair(nodes + 1, Stop::kWrongAttribute) : std::pair(nodes, stop);
  }
};

// The codes of failures that have none of their own: the graph is written differently from the pattern, or a condition
// does not hold.
inline constexpr std::string_view kFormDiffers = "form-differs";
inline constexpr std::string_view kConditionFails = "condition-fails";

// The attempt that got farthest.
struct Failure {
  const Rule* rule = nullptr;
  SourcePosition position;     // in the rule text
  const Node* node = nullptr;  // where in the graph
  std::string expected;
  std::string found;
  std::string code{kFormDiffers};  // of patterns/codes.txtpb
  bool is_sentence = false;        // `found` says all there is to say: a condition's own words
  bool final_word = false;         // what looks like the construct is not one (language/refusal.h), and `expected` is empty
  std::vector<const Node*> covered;
  FailureRank rank;
  MatchTrace* trace = nullptr;  // where the steps of all attempts are noted; nullptr: nobody asks

  // Whether a function or a rule gave it the code.
  bool has_own_code() const { return code != kFormDiffers && code != kConditionFails; }
  // Its own words, or what was expected and what was found.
  std::string Sentence() const;
};

class Matcher {
 public:
  // All must outlive the matcher.
  Matcher(const RuleSet& rules, const FunctionContext& context) : rules_(rules), context_(context) {}

  // Matches `rule` with its first output at `root`. With `failure`, keeps the attempt that got farthest
  // (slower: sentences are made). A rule about two constructs side by side has a second output that the first does
  // not lead to: it is looked for at `partner`, and without one such a rule does not match.
  std::optional<Match> Run(const Rule& rule, const Value* root, Failure* failure = nullptr, const Value* partner = nullptr);
  // From here on what is not as the rule has it is pardoned once (patterns/language/mismatch.h); nullptr: nothing is.
  void SetPardon(Pardon* pardon) { pardon_ = pardon; }

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

  Frame* Begin(const Rule& rule, const Value* root, Failure* failure);
  bool MatchTerm(const Pattern& pattern, Frame* frame, const Term& term, Next next);
  bool MatchVariable(const Pattern& pattern, Frame* frame, const Term& term, Next next);
  // The line of match that says what the rule's name in `slot`, not bound yet, is.
  bool MatchLine(int slot, Frame* frame, const Term& term, Next next);
  // outputs: the line that names several outputs, of which `value` is the one at `place`. quiet: no failure
  // is noted.
  bool MatchOperator(const Pattern& pattern, Frame* frame, const Value* value, Next next, const MatchStatement* outputs,
                     int place, bool quiet);
  bool MatchNode(const Pattern& pattern, Frame* frame, const Node& node, Next next);
  bool MatchOperands(const Pattern& pattern, Frame* frame, const Node& node, Next next);
  bool MatchInputs(const Pattern& pattern, Frame* frame, const Node& node, size_t index, bool swapped, Next next);
  bool MatchAttributes(const Pattern& pattern, Frame* frame, const Node& node, size_t index, Next next);
  bool MatchDefinition(const Pattern& pattern, Frame* frame, const Term& term, Next next);
  bool FinishDefinition(const Pattern& pattern, Frame* frame, Frame* inner, size_t parameter, bool defaults_only, Next next);
  bool Conditions(const std::vector<Condition>& conditions, size_t index, Frame* frame, Next next);
  bool Holds(const std::vector<Condition>& conditions, size_t index, Frame* frame, Next next);
  bool HoldsEqual(const Condition& condition, Frame* frame, Next rest);
  // False, and noted as the failure where this attempt got farther than those before.
  const Node* NodeOfCondition() const;
  bool DoesNotHold(const Condition& condition, const std::string& found);
  bool Refused(const Condition& condition, const absl::Status& status);
  // Binds or compares; calls next with the binding in place and takes it back if next fails.
  bool Unify(const Expression& expression, Frame* frame, const Term& term, Next next);
  bool UnifyList(const Expression& list, size_t index, Frame* frame, const std::vector<Term>& items, size_t item, Next next);
  bool Deliver(Frame* frame, size_t slot, const Term& term, Next next);
  absl::StatusOr<Term> Evaluate(const Expression& expression, Frame* frame);

  Frame* NewFrame(const Scope& scope);
  // Goes on with `next`; where somebody asks, the step is noted for as long as that goes well.
  bool Step(const SourcePosition& position, absl::FunctionRef<std::string()> wanted, absl::FunctionRef<std::string()> met,
            Next next);
  // True if this attempt got farther than those before.
  bool Fail(const SourcePosition& position, const Node* node, Stop stop, absl::FunctionRef<std::string()> expected,
            absl::FunctionRef<std::string()> found);

  friend absl::StatusOr<Term> EvaluateInMatch(const Expression&, const Match&, const FunctionContext&);

  // What `value` is a mere copy of, or nullptr.
  const Value* Below(const Value* value) const { return context_.literal ? nullptr : context_.numbering->Source(value); }
  const Schema* SchemaFor(const Node& node) const { return cache_->SchemaOf(node); }

  const RuleSet& rules_;
  FunctionContext context_;
  std::unique_ptr<MatchCache> own_cache_;  // where the context has none
  MatchCache* cache_ = nullptr;            // from the first attempt on, as the next line
  MatchCache::Operators* operators_ = nullptr;
  const Rule* rule_ = nullptr;
  Failure* failure_ = nullptr;
  std::vector<std::unique_ptr<Frame>> frames_;
  size_t frame_count_ = 0;
  std::vector<const Node*> covered_;
  static constexpr int64_t kMaximumSteps = 200000;
  int64_t steps_ = 0;
  int depth_ = 0;
  const Pattern* quiet_ = nullptr;       // an optional operator: where another one stands is not a failure
  const Node* reader_ = nullptr;         // whose operand is matched
  bool in_definition_ = false;           // conditions are those of a definition
  const Definition* spelled_ = nullptr;  // the definition of which an alternative is matched at this place
  Pardon* pardon_ = nullptr;
};

// The dim that a term is: a dim, or a whole number. Unknown for anything else.
Dim AsDim(const Term& term);

// Evaluates an expression of the rule's emit block with the names that the match bound.
absl::StatusOr<Term> EvaluateInMatch(const Expression& expression, const Match& match, const FunctionContext& context);

}  // namespace ascend_fuse
