// The conditions of a rule: what `where` and `let` ask, in order, and what is said where one does not hold.
#include <cmath>
#include <string>
#include <utility>

#include "fmt/format.h"
#include "ir/whole_number.h"
#include "patterns/language/matcher.h"
#include "patterns/terms/refusal.h"

namespace ascend_fuse {
namespace {

bool Compare(const FunctionContext& context, Condition::Relation relation, const Term& left, const Term& right) {
  const bool numbers = left.kind == Term::Kind::kNumber && right.kind == Term::Kind::kNumber;
  DimTable& dims = *context.dims;
  switch (relation) {
    case Condition::Relation::kNotEqual:
      if (left.kind == Term::Kind::kDim || right.kind == Term::Kind::kDim) return dims.NotEqual(AsDim(left), AsDim(right));
      return !EqualTerms(context, left, right);
    case Condition::Relation::kLess:
      return numbers ? left.number < right.number : dims.AtLeast(AsDim(right), dims.Add(AsDim(left), Dim::Of(1)));
    case Condition::Relation::kLessEqual:
      return numbers ? left.number <= right.number : dims.AtLeast(AsDim(right), AsDim(left));
    case Condition::Relation::kGreater:
      return numbers ? left.number > right.number : dims.AtLeast(AsDim(left), dims.Add(AsDim(right), Dim::Of(1)));
    case Condition::Relation::kGreaterEqual:
      return numbers ? left.number >= right.number : dims.AtLeast(AsDim(left), AsDim(right));
    default:
      return false;
  }
}

// How far a refusal got: one that may be about the wrong operands less far than another.
Stop StopOf(const absl::Status& refusal) { return IsElsewhere(refusal) ? Stop::kWrongAttribute : Stop::kConditionFails; }

}  // namespace

Dim AsDim(const Term& term) {
  if (term.kind == Term::Kind::kDim) return term.dim;
  if (term.kind == Term::Kind::kNumber && term.number == std::floor(term.number)) {
    return Dim::Of(WholeNumber(term.number));
  }
  return Dim();
}

bool Matcher::Conditions(const std::vector<Condition>& conditions, size_t index, Frame* frame, Next next) {
  if (index == conditions.size()) return next();
  if (++steps_ > kMaximumSteps) return false;
  // What functions read counts as matched, for as long as the condition holds.
  const size_t covered = covered_.size();
  std::vector<const Node*>* const outer = context_.read;
  context_.read = &covered_;
  const bool outer_definition = std::exchange(in_definition_, frame->scope != &rule_->scope);
  const bool done = Holds(conditions, index, frame, next);
  in_definition_ = outer_definition;
  context_.read = outer;
  if (!done) covered_.resize(covered);
  return done;
}

bool Matcher::Holds(const std::vector<Condition>& conditions, size_t index, Frame* frame, Next next) {
  const Condition& condition = conditions[index];
  Term bound;  // what a let found
  const auto rest = [&] {
    return Step(
        condition.position, [&] { return condition.source; },
        [&] { return bound.bound() ? DescribeTerm(context_, bound) : std::string("holds"); },
        [&] { return Conditions(conditions, index + 1, frame, next); });
  };
  if (condition.relation == Condition::Relation::kLet) {
    absl::StatusOr<Term> value = Evaluate(condition.right, frame);
    if (!value.ok()) return Refused(condition, value.status());
    bound = *value;
    return Deliver(frame, condition.left.slot, *value, rest);
  }
  if (condition.relation == Condition::Relation::kEqual) return HoldsEqual(condition, frame, rest);
  const absl::StatusOr<Term> left = Evaluate(condition.left, frame);
  if (!left.ok()) return Refused(condition, left.status());
  if (condition.relation == Condition::Relation::kHolds) {
    const bool no = left->kind == Term::Kind::kNumber && left->number == 0;
    return no ? DoesNotHold(condition, "it does not hold") : rest();
  }
  const absl::StatusOr<Term> right = Evaluate(condition.right, frame);
  if (!right.ok()) return Refused(condition, right.status());
  if (Compare(context_, condition.relation, *left, *right)) return rest();
  return DoesNotHold(condition, fmt::format("{} and {}", DescribeTerm(context_, *left), DescribeTerm(context_, *right)));
}

// One side may bind names: the side that can be evaluated goes first.
bool Matcher::HoldsEqual(const Condition& condition, Frame* frame, Next rest) {
  absl::StatusOr<Term> known = Evaluate(condition.left, frame);
  const Expression* other = &condition.right;
  if (!known.ok()) {
    const absl::Status why = known.status();
    if (condition.left.kind == Expression::Kind::kCall) return Refused(condition, why);
    known = Evaluate(condition.right, frame);
    if (!known.ok()) return Refused(condition, why);
    other = &condition.left;
  }
  bool reached = false;
  if (Unify(*other, frame, *known, [&] {
        reached = true;
        return rest();
      })) {
    return true;
  }
  return reached ? false : DoesNotHold(condition, DescribeTerm(context_, *known));
}

// A condition of a definition is about the node whose operands were matched last, one of the rule about the whole.
const Node* Matcher::NodeOfCondition() const {
  return in_definition_ && reader_ != nullptr ? reader_ : covered_.empty() ? nullptr : covered_.front();
}

bool Matcher::DoesNotHold(const Condition& condition, const std::string& found) {
  const bool kept =
      Fail(condition.position, NodeOfCondition(), Stop::kConditionFails, [&] { return condition.source; }, [&] { return found; });
  if (kept) failure_->code = kConditionFails;
  return false;
}

// What a function says of why it has no value needs no further words.
bool Matcher::Refused(const Condition& condition, const absl::Status& status) {
  const Node* const place = PlaceOf(status);
  const bool kept = Fail(
      condition.position, place != nullptr ? place : NodeOfCondition(), StopOf(status),
      [&] { return IsFinalWord(status) ? std::string() : condition.source; }, [&] { return std::string(status.message()); });
  if (!kept) return false;
  // A word that a table lacks says no more than another attribute would.
  failure_->is_sentence = !absl::IsNotFound(status);
  failure_->code = CodeOf(status);
  if (failure_->code.empty()) failure_->code = failure_->is_sentence ? kConditionFails : kFormDiffers;
  failure_->final_word = IsFinalWord(status);
  return false;
}

}  // namespace ascend_fuse
