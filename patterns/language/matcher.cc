#include "patterns/language/matcher.h"

#include <algorithm>

#include "fmt/format.h"
#include "ir/add_once.h"
#include "ir/schema.h"
#include "ir/whole_number.h"
#include "patterns/functions/functions.h"
#include "patterns/language/may_match.h"
#include "patterns/language/nearly_equal.h"
#include "patterns/language/obstacle.h"
#include "patterns/terms/refusal.h"

namespace ascend_fuse {
namespace {

// A search that takes more steps than this is given up: the largest built-in rule needs a few thousand.

// Recursion of continuations: each matched operator adds a few levels.
constexpr int kMaximumDepth = 2000;

std::string FullName(std::string_view domain, std::string_view op_type) {
  return domain.empty() ? std::string(op_type) : fmt::format("{}.{}", domain, op_type);
}

// One element and at most one dim: combining it with another operand leaves that operand's shape.
bool BroadcastsAsScalar(const Fact& fact) { return fact.rank() == 0 || (fact.rank() == 1 && fact.shape[0].is(1)); }

// Whether input `place`, a constant of equal elements, leaves the shape of an elementwise node to the other
// operands: each of its dims is 1 or the dim that another operand has there anyway.
bool BroadcastsLikeScalar(const FunctionContext& context, const Schema* schema, const Node& node, size_t place) {
  const Facts& facts = *context.facts;
  const Value* value = node.input(place);
  if (value == nullptr || node.input_count < 2) return false;
  const Fact& fact = facts.Of(value);
  double number = 0;
  if (!fact.has_rank || BroadcastsAsScalar(fact) || !ConstantNumber(facts, value, &number)) return false;
  if (schema == nullptr || !schema->elementwise) return false;
  size_t rank = 0;
  for (size_t i = 0; i < node.input_count; ++i) {
    if (i == place || node.input(i) == nullptr) continue;
    const Fact& other = facts.Of(node.input(i));
    if (!other.has_rank) return false;
    rank = std::max(rank, other.shape.size());
  }
  if (fact.shape.size() > rank) return false;
  for (size_t from_end = 1; from_end <= fact.shape.size(); ++from_end) {
    const Dim dim = fact.shape[fact.shape.size() - from_end];
    bool given = dim.is(1);
    for (size_t i = 0; !given && i < node.input_count; ++i) {
      if (i == place || node.input(i) == nullptr) continue;
      const auto& other = facts.Of(node.input(i)).shape;
      given = from_end <= other.size() && facts.dims().Equal(other[other.size() - from_end], dim);
    }
    if (!given) return false;
  }
  return true;
}

// An attribute that no term stands for is compared with others by its name.
Term AttributeTerm(const Attribute& attribute) {
  std::optional<Term> term = TermOfAttribute(attribute);
  return term.has_value() ? *std::move(term) : Term::Text(fmt::format("(attribute {})", attribute.name));
}

// An integer input that newer opsets use in place of an attribute (axes, split ...), as the attribute was.
Term TermOfParameterInput(const Facts& facts, const Value* value) {
  const Fact& fact = facts.Of(value);
  if (fact.elements == nullptr || !fact.has_rank) return Term::Of(const_cast<const Value*>(value));
  std::vector<Term> items;
  for (Dim element : fact.elements->integers) {
    items.push_back(element.is_number() ? Term::Integer(element.number()) : Term::Of(element));
  }
  for (double element : fact.elements->floats) items.push_back(Term::Number(element));
  if (fact.shape.empty() && items.size() == 1) return items[0];
  return Term::List(std::move(items));
}

// Negative axes count from the end: [-1] and [2] name the same axis of a value of rank 3.
Term NormalizeAxes(const Term& term, int rank) {
  auto one = [rank](const Term& item) {
    if (item.kind == Term::Kind::kNumber && item.number < 0) {
      return Term::Integer(WholeNumber(item.number) + rank);
    }
    return item;
  };
  if (term.kind == Term::Kind::kNumber) return one(term);
  if (term.kind != Term::Kind::kList) return term;
  std::vector<Term> items;
  for (const Term& item : *term.list) items.push_back(one(item));
  return Term::List(std::move(items));
}

// Axes that a rule binds to a name: counted from the end and in order, so that [1, 2] and [-1, -2] of a value of
// rank 3 are one list.
Term AxesFromEnd(const Term& term, int rank) {
  auto one = [rank](const Term& item) {
    if (item.kind == Term::Kind::kNumber && item.number >= 0) {
      return Term::Integer(WholeNumber(item.number) - rank);
    }
    return item;
  };
  if (term.kind == Term::Kind::kNumber) return one(term);
  if (term.kind != Term::Kind::kList) return term;
  std::vector<Term> items;
  for (const Term& item : *term.list) items.push_back(one(item));
  std::sort(items.begin(), items.end(), [](const Term& a, const Term& b) { return a.number < b.number; });
  return Term::List(std::move(items));
}

bool IsAxisAttribute(std::string_view name) { return name == "axes" || name == "axis"; }

struct DepthGuard {
  int* depth;
  explicit DepthGuard(int* d) : depth(d) { ++*depth; }
  ~DepthGuard() { --*depth; }
};

std::vector<const Node*> EachOnce(const std::vector<const Node*>& nodes) {
  std::vector<const Node*> once;
  AddEachOnce(nodes, &once);
  return once;
}

// What a pattern wants of an attribute.
std::string DescribeMention(const FunctionContext& context, const Pattern& pattern, const AttributePattern& mention,
                            const absl::StatusOr<Term>& expected) {
  return fmt::format("{} with {} = {}", pattern.name, mention.name, expected.ok() ? DescribeTerm(context, *expected) : "?");
}

// Whether an attempt got farther than the one that is kept. Conditions are asked in the order of the text: of two ways to match
// as much of `rule`, the one that failed at a later one. nullptr: at a condition of a definition.
bool GotFarther(const Failure& kept, const FailureRank& rank, const Rule* rule, const SourcePosition& position) {
  if (rank > kept.rank) return true;
  return rank == kept.rank && rank.stop == Stop::kConditionFails && kept.rule == rule && kept.position.line < position.line;
}

bool Evident(Pardon* pardon, Pardon::Next next) { return pardon != nullptr ? pardon->Evident(next) : next(); }

}  // namespace

std::string Failure::Sentence() const { return is_sentence ? found : fmt::format("expected {}, found {}", expected, found); }

Matcher::Frame* Matcher::NewFrame(const Scope& scope) {
  if (frame_count_ == frames_.size()) frames_.push_back(std::make_unique<Frame>());
  Frame* frame = frames_[frame_count_++].get();
  frame->scope = &scope;
  // Most names are unbound already: an attempt that failed took them back.
  for (Term& term : frame->terms) {
    if (term.bound()) term = Term();
  }
  frame->terms.resize(scope.names.size());
  frame->closures.clear();
  return frame;
}

bool Matcher::Fail(const SourcePosition& position, const Node* node, Stop stop, absl::FunctionRef<std::string()> expected,
                   absl::FunctionRef<std::string()> found) {
  if (failure_ == nullptr) return false;
  if (failure_->trace != nullptr) failure_->trace->End({position, expected(), found()});
  FailureRank rank{static_cast<int>(covered_.size()), stop};
  if (!GotFarther(*failure_, rank, in_definition_ ? nullptr : rule_, position)) return false;
  std::vector<const Node*> covered = EachOnce(covered_);  // a node may be there twice
  rank.nodes = static_cast<int>(covered.size());
  if (!GotFarther(*failure_, rank, in_definition_ ? nullptr : rule_, position)) return false;
  *failure_ = {.rule = rule_,
               .position = position,
               .node = node,
               .expected = expected(),
               .found = found(),
               .covered = std::move(covered),
               .rank = rank,
               .trace = failure_->trace};
  if (failure_->trace != nullptr) failure_->trace->farthest = failure_->trace->now;
  return true;
}

Matcher::Frame* Matcher::Begin(const Rule& rule, const Value* root, Failure* failure) {
  rule_ = &rule;
  failure_ = failure;
  frame_count_ = 0;
  covered_.clear();
  steps_ = 0;
  depth_ = 0;
  if (cache_ == nullptr) {
    cache_ = context_.cache;
    if (cache_ == nullptr) {
      own_cache_ = std::make_unique<MatchCache>(root->graph->model());
      cache_ = own_cache_.get();
    }
    operators_ = cache_->OperatorsOf(rules_);
  }
  return NewFrame(rule.scope);
}

std::optional<Match> Matcher::Run(const Rule& rule, const Value* root, Failure* failure, const Value* partner) {
  Frame* frame = Begin(rule, root, failure);
  std::optional<Match> match;
  // Where somebody asks for the failure, the rule is tried all the same: how far it gets is the answer.
  const MayMatch may_match(rules_.prefilter(), context_, *cache_, operators_);
  if (failure_ == nullptr && !may_match.At(rule.root_form, root, PardonedBy(pardon_))) return match;
  auto finish = [&] {
    // An input marked ? that no alternative bound is absent.
    std::vector<int> absent;
    for (size_t i = 0; i < rule.inputs.size(); ++i) {
      if (!frame->terms[i].bound()) {
        if (!rule.inputs[i].optional) return false;
        frame->terms[i] = Term::Absent();
        absent.push_back(static_cast<int>(i));
      }
    }
    const bool done = Conditions(rule.where, 0, frame, [&] {
      if (const auto obstacle = FindObstacle(rule, frame->terms, covered_, *cache_, failure_ != nullptr); obstacle.has_value()) {
        Fail(
            rule.position, obstacle->node, Stop::kConditionFails, [&] { return obstacle->expected; },
            [&] { return obstacle->found; });
        return false;
      }
      match.emplace();
      match->rule = &rule;
      match->terms = frame->terms;
      if (failure_ != nullptr && failure_->trace != nullptr) failure_->trace->farthest = failure_->trace->now;
      match->covered = EachOnce(covered_);
      return true;
    });
    if (!done) {
      for (int slot : absent) frame->terms[slot] = Term();
    }
    return done;
  };
  MatchLine(rule.scope.Find(rule.outputs[0]), frame, Term::Of(root), [&] {
    for (size_t i = 1; i < rule.outputs.size(); ++i) {
      const int other = rule.scope.Find(rule.outputs[i]);
      if (frame->terms[other].bound()) continue;
      return partner != nullptr && MatchLine(other, frame, Term::Of(partner), finish);
    }
    return finish();
  });
  return match;
}

bool Matcher::MatchTerm(const Pattern& pattern, Frame* frame, const Term& term, Next next) {
  if (++steps_ > kMaximumSteps || depth_ > kMaximumDepth) {
    Fail(
        pattern.position, nullptr, Stop::kConditionFails, [] { return std::string("a search of bounded length"); },
        [] { return std::string("too many combinations; the search was given up"); });
    return false;
  }
  const DepthGuard guard(&depth_);
  const bool quiet = quiet_ == &pattern;
  quiet_ = nullptr;
  const Value* value = term.kind == Term::Kind::kValue ? term.value : nullptr;
  switch (pattern.kind) {
    case Pattern::Kind::kWildcard:
      return next();
    case Pattern::Kind::kAbsent:
      if (term.kind == Term::Kind::kAbsent) return next();
      Fail(
          pattern.position, value != nullptr ? value->producer : nullptr, Stop::kWrongValue,
          [] { return std::string("no input here"); }, [&] { return DescribeTerm(context_, term); });
      return false;
    case Pattern::Kind::kVariable:
      return MatchVariable(pattern, frame, term, next);
    case Pattern::Kind::kLiteral: {
      double number = 0;
      auto literal = [&] { return fmt::format("{}", pattern.number); };
      auto met = [&] { return DescribeTerm(context_, term); };
      auto step = [&] { return Step(pattern.position, literal, met, next); };
      if (term.kind == Term::Kind::kNumber && NearlyEqual(pattern.number, term.number, DataType::kFloat))
        return Evident(pardon_, step);
      if (value != nullptr && (term.like_scalar || BroadcastsAsScalar(context_.facts->Of(value))) &&
          ConstantNumber(*context_.facts, value, &number) &&
          NearlyEqual(pattern.number, number, context_.facts->Of(value).type)) {
        return Evident(pardon_, step);
      }
      const bool constant = value != nullptr && ConstantNumber(*context_.facts, value, &number);
      const Node* node = value != nullptr && value->producer != nullptr && !constant ? value->producer : reader_;
      auto expected = [&] { return fmt::format("the constant {}", pattern.number); };
      Fail(pattern.position, node, constant ? Stop::kWrongConstant : Stop::kWrongValue, expected, met);
      return constant && pardon_ != nullptr && pardon_->Take(pattern.position, node, expected, met, next);
    }
    case Pattern::Kind::kAlternatives:
      for (const PatternPointer& alternative : pattern.arguments) {
        if (MatchTerm(*alternative, frame, term, next)) return true;
      }
      return false;
    case Pattern::Kind::kDefinition:
      return MatchDefinition(pattern, frame, term, next);
    case Pattern::Kind::kOperator:
      if (value == nullptr) return false;
      return MatchOperator(pattern, frame, value, next, nullptr, 0, quiet);
  }
  return false;
}

bool Matcher::MatchVariable(const Pattern& pattern, Frame* frame, const Term& term, Next next) {
  Term& slot = frame->terms[pattern.slot];
  auto name = [&] { return pattern.name; };
  auto met = [&] { return DescribeTerm(context_, term); };
  if (slot.bound()) {
    // A constant that is a number at its first place must be one here too.
    const bool as_number = !slot.like_scalar || term.like_scalar ||
                           (term.kind == Term::Kind::kValue && BroadcastsAsScalar(context_.facts->Of(term.value)));
    if (as_number && EqualTerms(context_, slot, term)) {
      return Evident(pardon_, [&] { return Step(pattern.position, name, met, next); });
    }
    auto expected = [&] { return fmt::format("the same as {} = {}", pattern.name, DescribeTerm(context_, slot)); };
    Fail(pattern.position, reader_, Stop::kWrongValue, expected, met);
    return pardon_ != nullptr && pardon_->Take(pattern.position, reader_, expected, met, next);
  }
  if (static_cast<size_t>(pattern.slot) < frame->closures.size()) {
    const Closure closure = frame->closures[pattern.slot];
    slot = term;
    if (MatchTerm(*closure.pattern, closure.frame, term, next)) return true;
    frame->terms[pattern.slot] = Term();
    return false;
  }
  if (frame->scope->statement[pattern.slot] >= 0) return MatchLine(pattern.slot, frame, term, next);
  if (term.kind == Term::Kind::kAbsent && frame->scope == &rule_->scope) {
    const bool optional = static_cast<size_t>(pattern.slot) < rule_->inputs.size() && rule_->inputs[pattern.slot].optional;
    if (!optional) {
      Fail(
          pattern.position, nullptr, Stop::kWrongValue, [&] { return fmt::format("an input {}", pattern.name); },
          [] { return std::string("no input"); });
      return false;
    }
  }
  slot = term;
  if (Step(pattern.position, name, met, next)) return true;
  frame->terms[pattern.slot] = Term();
  return false;
}

bool Matcher::MatchLine(int slot, Frame* frame, const Term& term, Next next) {
  const MatchStatement& line = rule_->match[frame->scope->statement[slot]];
  if (line.names.size() > 1) {
    if (term.kind != Term::Kind::kValue) return false;
    return MatchOperator(*line.pattern, frame, term.value, next, &line, frame->scope->output[slot], false);
  }
  frame->terms[slot] = term;
  if (MatchTerm(*line.pattern, frame, term, next)) return true;
  frame->terms[slot] = Term();
  return false;
}

bool Matcher::MatchOperator(const Pattern& pattern, Frame* frame, const Value* value, Next next, const MatchStatement* outputs,
                            int place, bool quiet) {
  const size_t covered = covered_.size();
  for (const Value* current = value; current != nullptr; current = Below(current)) {
    const Node* node = current->producer;
    if (node == nullptr || node->dead) break;
    auto match_node = [&] {
      return Step(
          pattern.position, [&] { return FullName(pattern.domain, pattern.name); },
          [&] {
            return fmt::format("{}{}{}", NodeName(*node).empty() ? ValueName(*current) : NodeName(*node),
                               current == value ? "" : ", seen through copies up to ", current == value ? "" : ValueName(*value));
          },
          [&] { return MatchNode(pattern, frame, *node, next); });
    };
    if (operators_->Of(*node).Is(*node, pattern.operator_number)) {
      const Schema* schema = SchemaFor(*node);
      // A pattern stands for the first output; operators with interchangeable outputs (Split) for any.
      const bool any_output = schema != nullptr && schema->outputs.size() == 1;
      if (outputs == nullptr && (current->output_index == 0 || any_output)) {
        covered_.push_back(node);
        if (match_node()) return true;
        covered_.resize(covered);
        // Noise above stays covered for what lies below.
        for (const Value* noise = value; noise != current; noise = Below(noise)) {
          covered_.push_back(noise->producer);
        }
      } else if (outputs != nullptr) {
        std::vector<int> bound;
        // The second output of a Split is not the first.
        bool fits = node->output_count <= outputs->names.size() && static_cast<int>(current->output_index) == place;
        for (size_t i = 0; fits && i < outputs->names.size(); ++i) {
          if (outputs->names[i] == "_") continue;
          const int slot = frame->scope->Find(outputs->names[i]);
          const Term output = Term::Of(i < node->output_count ? node->output(i) : nullptr);
          if (frame->terms[slot].bound()) {
            fits = EqualTerms(context_, frame->terms[slot], output);
            continue;
          }
          frame->terms[slot] = output;
          bound.push_back(slot);
        }
        if (fits) {
          covered_.push_back(node);
          if (match_node()) return true;
          covered_.resize(covered);
        }
        for (int slot : bound) frame->terms[slot] = Term();
      }
    } else if (!quiet) {
      Fail(
          pattern.position, node, Stop::kWrongOperator, [&] { return FullName(pattern.domain, pattern.name); },
          [&] { return fmt::format("{} computed by {}", ValueName(*current), FullName(Domain(*node), OpType(*node))); });
      const bool first = pardon_ != nullptr && outputs == nullptr && current->output_index == 0;
      if (first && pardon_->TakeOperator(pattern, *node, spelled_, [&] {
            return MatchAttributes(pattern, frame, *node, 0, [&] { return MatchOperands(pattern, frame, *node, next); });
          })) {
        return true;
      }
    }
    if (Below(current) != nullptr) covered_.push_back(node);
  }
  covered_.resize(covered);
  if (value->producer == nullptr && !quiet) {
    Fail(
        pattern.position, nullptr, Stop::kWrongOperator, [&] { return FullName(pattern.domain, pattern.name); },
        [&] { return DescribeTerm(context_, Term::Of(value)); });
  }
  return false;
}

bool Matcher::MatchNode(const Pattern& pattern, Frame* frame, const Node& node, Next next) {
  return MatchAttributes(pattern, frame, node, 0, [&] {
    const Schema* schema = SchemaFor(node);
    // Attributes that the pattern does not mention must have their defaults.
    for (const Attribute& attribute : ReadAttributes(node)) {
      const bool mentioned = std::any_of(pattern.attributes.begin(), pattern.attributes.end(),
                                         [&](const AttributePattern& mention) { return mention.name == attribute.name; });
      if (mentioned) continue;
      const SchemaAttribute* row = schema != nullptr ? schema->FindAttribute(attribute.name) : nullptr;
      if (row != nullptr && row->has_default &&
          EqualTerms(context_, AttributeTerm(attribute), AttributeTerm(row->default_value))) {
        continue;
      }
      Fail(
          pattern.position, &node, Stop::kWrongAttribute,
          [&] { return fmt::format("{} with the default of `{}`", pattern.name, attribute.name); },
          [&] { return fmt::format("{} = {}", attribute.name, DescribeTerm(context_, AttributeTerm(attribute))); });
      return false;
    }
    // Inputs beyond the pattern's arguments must be absent or be mentioned as attributes.
    for (size_t i = pattern.arguments.size(); i < node.input_count; ++i) {
      if (node.input(i) == nullptr) continue;
      const bool mentioned = schema != nullptr && i < schema->inputs.size() &&
                             std::any_of(pattern.attributes.begin(), pattern.attributes.end(),
                                         [&](const AttributePattern& mention) { return mention.name == schema->inputs[i].name; });
      if (mentioned) continue;
      Fail(
          pattern.position, &node, Stop::kWrongAttribute,
          [&] { return fmt::format("{} with {} inputs", pattern.name, pattern.arguments.size()); },
          [&] { return fmt::format("{} inputs", node.input_count); });
      return false;
    }
    return MatchOperands(pattern, frame, node, next);
  });
}

// In both orders where the operator, that of the rule or that of the node, is commutative.
bool Matcher::MatchOperands(const Pattern& pattern, Frame* frame, const Node& node, Next next) {
  if (MatchInputs(pattern, frame, node, 0, false, next)) return true;
  const Schema* schema = SchemaFor(node);
  const bool swaps = schema != nullptr && (schema->commutative || OpType(node) != pattern.name);
  return swaps && pattern.arguments.size() == 2 && node.input_count == 2 && MatchInputs(pattern, frame, node, 0, true, next);
}

bool Matcher::MatchInputs(const Pattern& pattern, Frame* frame, const Node& node, size_t index, bool swapped, Next next) {
  if (index == pattern.arguments.size()) return next();
  const size_t input = swapped ? 1 - index : index;
  Term term = Term::Of(node.input(input));
  term.like_scalar = BroadcastsLikeScalar(context_, SchemaFor(node), node, input);
  const Node* const outer = std::exchange(reader_, &node);
  spelled_ = nullptr;
  const bool done = MatchTerm(*pattern.arguments[index], frame, term,
                              [&] { return MatchInputs(pattern, frame, node, index + 1, swapped, next); });
  reader_ = outer;
  return done;
}

bool Matcher::MatchAttributes(const Pattern& pattern, Frame* frame, const Node& node, size_t index, Next next) {
  if (index == pattern.attributes.size()) return next();
  const AttributePattern& mention = pattern.attributes[index];
  Term term = Term::Absent();
  auto met = [&] { return fmt::format("{} = {}", mention.name, DescribeTerm(context_, term)); };
  auto rest = [&] {
    return Step(
        mention.position, [&] { return mention.name; }, met,
        [&] { return MatchAttributes(pattern, frame, node, index + 1, next); });
  };
  auto wrong = [&](const absl::StatusOr<Term>& expected) {
    auto wanted = [&] { return DescribeMention(context_, pattern, mention, expected); };
    Fail(mention.position, &node, Stop::kWrongAttribute, wanted, met);
    return pardon_ != nullptr && pardon_->Take(mention.position, &node, wanted, met, rest);
  };
  if (mention.value.kind == Expression::Kind::kWildcard) return MatchAttributes(pattern, frame, node, index + 1, next);
  const Schema* schema = SchemaFor(node);
  if (const auto attribute = FindAttribute(node, mention.name); attribute.has_value()) {
    term = AttributeTerm(*attribute);
  } else if (schema != nullptr) {
    const int input = schema->FindInput(mention.name);
    if (input >= 0 && node.input(input) != nullptr) {
      term = TermOfParameterInput(*context_.facts, node.input(input));
    } else if (const SchemaAttribute* row = schema->FindAttribute(mention.name); row != nullptr && row->has_default) {
      term = AttributeTerm(row->default_value);
    }
  }
  if (IsAxisAttribute(mention.name) && node.input(0) != nullptr) {
    const int rank = context_.facts->Of(node.input(0)).rank();
    // Unsqueeze counts its axes in the output.
    const int axes_rank =
        OpType(node) == "Unsqueeze" && node.output(0) != nullptr ? context_.facts->Of(node.output(0)).rank() : rank;
    if (axes_rank >= 0 && mention.value.kind != Expression::Kind::kName) {
      const absl::StatusOr<Term> expected = Evaluate(mention.value, frame);
      if (expected.ok() && EqualTerms(context_, NormalizeAxes(*expected, axes_rank), NormalizeAxes(term, axes_rank))) {
        return rest();
      }
      return wrong(expected);
    }
    if (axes_rank >= 0) term = AxesFromEnd(term, axes_rank);
  }
  bool reached = false;  // what failed then lies after this attribute
  if (Unify(mention.value, frame, term, [&] {
        reached = true;
        return rest();
      })) {
    return true;
  }
  if (reached) return false;
  return wrong(Evaluate(mention.value, frame));
}

bool Matcher::MatchDefinition(const Pattern& pattern, Frame* frame, const Term& term, Next next) {
  const Definition& definition = rules_.definitions()[pattern.definition];
  const size_t frame_mark = frame_count_;
  if (term.kind == Term::Kind::kValue) {
    for (const Definition::Alternative& alternative : definition.alternatives) {
      Frame* inner = NewFrame(definition.scope);
      for (const PatternPointer& argument : pattern.arguments) inner->closures.push_back({argument.get(), frame});
      inner->terms[definition.result_slot] = term;
      if (pattern.optional) quiet_ = alternative.pattern.get();  // where it is missing, nothing is wrong
      const bool matched = Step(
          pattern.position, [&] { return pattern.name + (pattern.optional ? "?" : ""); },
          [&] { return fmt::format("tried as {}", alternative.pattern->position.ToString()); },
          [&] {
            spelled_ = &definition;
            return MatchTerm(*alternative.pattern, inner, term, [&] {
              return Conditions(alternative.conditions, 0, inner,
                                [&] { return FinishDefinition(pattern, frame, inner, 0, false, next); });
            });
          });
      if (matched) return true;
      frame_count_ = frame_mark;
    }
  }
  if (!pattern.optional) return false;
  Frame* inner = NewFrame(definition.scope);
  for (const PatternPointer& argument : pattern.arguments) inner->closures.push_back({argument.get(), frame});
  auto wrapped = [&] {
    inner->terms[0] = term;
    if (FinishDefinition(pattern, frame, inner, 1, true, next)) return true;
    inner->terms[0] = Term();
    return false;
  };
  const bool matched = Step(
      pattern.position, [&] { return pattern.name + "?"; }, [] { return std::string("left out"); },
      [&] { return MatchTerm(*pattern.arguments[0], frame, term, wrapped); });
  if (!matched) frame_count_ = frame_mark;
  return matched;
}

// Parameters that the alternative left open take their defaults.
bool Matcher::FinishDefinition(const Pattern& pattern, Frame* frame, Frame* inner, size_t parameter, bool defaults_only,
                               Next next) {
  const Definition& definition = rules_.definitions()[pattern.definition];
  if (parameter >= definition.parameters.size()) return next();
  auto rest = [&] { return FinishDefinition(pattern, frame, inner, parameter + 1, defaults_only, next); };
  if (inner->terms[parameter].bound() || !definition.parameters[parameter].has_default) return rest();
  const absl::StatusOr<Term> value = Evaluate(definition.parameters[parameter].default_value, inner);
  if (!value.ok()) return false;
  return Deliver(inner, parameter, *value, rest);
}

// Gives a parameter of a definition its term, which must then fit what the caller wrote there.
bool Matcher::Deliver(Frame* frame, size_t slot, const Term& term, Next next) {
  if (frame->terms[slot].bound()) return EqualTerms(context_, frame->terms[slot], term) && next();
  frame->terms[slot] = term;
  const bool done =
      slot < frame->closures.size() ? MatchTerm(*frame->closures[slot].pattern, frame->closures[slot].frame, term, next) : next();
  if (!done) frame->terms[slot] = Term();
  return done;
}

}  // namespace ascend_fuse
