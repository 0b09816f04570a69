#include "passes/lower/match_rule.h"

#include <string>

#include "fmt/format.h"

namespace ascend_fuse {

std::optional<Match> MatchRule(Workspace& workspace, size_t r, const FunctionContext& context, Attempt* attempt) {
  const RuleSet& rules = workspace.rules(RuleFolder::kNpu);
  const Rule& rule = rules.rules()[r];
  const Value* value = attempt->node->output(0);
  Matcher matcher(rules, context);
  Failure failure;
  std::optional<Match> match =
      matcher.Run(rule, value, &failure, attempt->partner != nullptr ? attempt->partner->node->output(0) : nullptr);
  if (match.has_value()) return match;
  if (failure.is_sentence && !rule.preferred_over.empty()) {
    attempt->why_this_form[{rule.kind, rule.preferred_over}] = {failure.has_own_code() ? failure.code : "other-form",
                                                                failure.found, failure.position.ToString()};
  }
  // That there is no such node here says more than why it could not be used.
  if (failure.is_sentence) {
    if (const auto none = WhyNoSuchNode(rule, *workspace.target(), &workspace.facts().dims()); none.has_value()) {
      attempt->Refuse(rule, none->code, none->because, none->source, RefusalRank::kNoSuchNode);
      return std::nullopt;
    }
  }
  // A condition that failed says more than an operand that is absent or another attribute.
  if (!failure.rank.tried()) return std::nullopt;
  const std::string because =
      failure.is_sentence ? failure.found : fmt::format("{}: expected {}, found {}", rule.name, failure.expected, failure.found);
  if (failure.final_word) {
    attempt->Refuse(rule, failure.code, because, failure.position.ToString(), RefusalRank::kSaidByRule);
  } else {
    attempt->Refuse(rule, failure.code, because, failure.position.ToString(), RefusalRank::kNoMatch, failure.rank);
  }
  return std::nullopt;
}

}  // namespace ascend_fuse
