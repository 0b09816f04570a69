// A model as text with its facts, and rules of a user on it: what the tests of rules, matcher, masks and
// emission start from.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "fmt/format.h"
#include "gtest/gtest.h"
#include "ir/infer/facts.h"
#include "ir/infer/value_numbering.h"
#include "ir/text/parser.h"
#include "patterns/language/matcher.h"
#include "patterns/language/rule_set.h"
#include "patterns/operators/inference.h"
#include "tests/unit/named_value.h"

namespace ascend_fuse::testing {

// "<header> g (inputs) => (outputs) <constants> { nodes }" of the given opset.
struct Subject {
  explicit Subject(std::string_view text, int opset = 17) {
    auto parsed = ParseModelText(fmt::format("<ir_version: 8, opset_import: [\"\" : {}]>\ng {}", opset, text));
    if (!parsed.ok()) {
      ADD_FAILURE() << parsed.status().message() << "\nin\n" << text;
      std::abort();
    }
    model = *std::move(parsed);
    facts = Infer(*model, WithDeclaredOperators());
    numbering = NumberValues(*model, &facts);
  }

  const Value* Named(std::string_view name) const {
    const Value* const value = NamedValue(*model, name);
    if (value == nullptr) std::abort();
    return value;
  }

  bool Same(std::string_view a, std::string_view b) const { return numbering->Same(Named(a), Named(b)); }

  FunctionContext Context(std::vector<std::string>* assumptions = nullptr) {
    FunctionContext context;
    context.model = model.get();
    context.facts = &facts;
    context.dims = &facts.dims();
    context.numbering = numbering.get();
    context.assumptions = assumptions;
    return context;
  }

  std::unique_ptr<Model> model;
  Facts facts;
  std::unique_ptr<ValueNumbering> numbering;
};

inline std::unique_ptr<RuleSet> Rules(const std::string& text, RuleFolder folder = RuleFolder::kLibrary) {
  auto rules = RuleSet::Load(folder, {{"user.rule", text}});
  if (!rules.ok()) {
    ADD_FAILURE() << rules.status().message();
    std::abort();
  }
  return *std::move(rules);
}

// The sentence with which a user's rules are refused.
inline std::string Refusal(const std::string& text) {
  const auto rules = RuleSet::Load(RuleFolder::kLibrary, {{"user.rule", text}});
  EXPECT_FALSE(rules.ok()) << text;
  return rules.ok() ? "" : std::string(rules.status().message());
}

inline const Rule* FindRule(const RuleSet& rules, std::string_view name) {
  for (const Rule& rule : rules.rules()) {
    if (rule.name == name) return &rule;
  }
  return nullptr;
}

// The user's rule "r" with its output at value `root`. Fills `names` with "x=..." of every bound value or
// number.
struct Attempt {
  std::optional<Match> match;
  Failure failure;
  explicit operator bool() const { return match.has_value(); }
  // The value or number that a name of the rule is bound to, as text.
  std::string operator[](const std::string& name) const {
    if (!match.has_value()) return "no match";
    const int slot = match->rule->scope.Find(name);
    if (slot < 0) return "no name";
    const Term& term = match->terms[slot];
    switch (term.kind) {
      case Term::Kind::kUnbound:
        return "unbound";
      case Term::Kind::kAbsent:
        return "absent";
      case Term::Kind::kValue:
        return std::string(ValueName(*term.value));
      case Term::Kind::kNumber:
        return fmt::format("{}", term.number);
      default:
        return "other";
    }
  }
};

inline Attempt Try(Subject* subject, const RuleSet& rules, std::string_view root = "y") {
  Attempt attempt;
  Matcher matcher(rules, subject->Context());
  const Rule* rule = FindRule(rules, "r");
  if (rule == nullptr) {
    ADD_FAILURE() << "no rule r";
    return attempt;
  }
  attempt.match = matcher.Run(*rule, subject->Named(root), &attempt.failure);
  // Where nobody asks for a failure, the prefilter looks first.
  EXPECT_EQ(matcher.Run(*rule, subject->Named(root)).has_value(), attempt.match.has_value());
  return attempt;
}

// The rule set may not die before the attempt that points into it: tests keep both through this.
inline Attempt Try(std::string_view model, const std::string& rule, int opset = 17) {
  static std::vector<std::unique_ptr<RuleSet>>* const kept = new std::vector<std::unique_ptr<RuleSet>>();
  static std::vector<std::unique_ptr<Subject>>* const subjects = new std::vector<std::unique_ptr<Subject>>();
  kept->push_back(Rules(rule));
  subjects->push_back(std::make_unique<Subject>(model, opset));
  return Try(subjects->back().get(), *kept->back());
}

}  // namespace ascend_fuse::testing
