#include "patterns/language/rule_set.h"

#include <algorithm>
#include <array>
#include <mutex>

#include "embedded/pattern_data.h"
#include "fmt/format.h"
#include "patterns/language/checker.h"
#include "patterns/language/formula.h"
#include "patterns/language/order.h"
#include "patterns/language/rule_parser.h"
#include "patterns/operators/check.h"

namespace ascend_fuse {
namespace {

absl::Status DefinedTwice(const SourcePosition& position, const std::string& name) {
  return absl::InvalidArgumentError(
      fmt::format("{}: '{}' is defined twice in this file", position.ToString(), name));
}

bool Mentions(const Pattern& pattern, std::string_view domain) {
  if (pattern.kind == Pattern::Kind::kOperator && pattern.domain == domain) return true;
  return std::any_of(pattern.arguments.begin(), pattern.arguments.end(),
                     [&](const PatternPointer& argument) { return Mentions(*argument, domain); });
}

void AddNodes(const Expression& expression, std::vector<std::string>* nodes) {
  if (expression.kind == Expression::Kind::kOperator && expression.domain == "npu") {
    nodes->push_back(fmt::format("npu.{}", expression.text));
  }
  for (const Expression& argument : expression.arguments) AddNodes(argument, nodes);
}

// A user's rule says by what it reads and makes where it belongs.
RuleFolder FolderOf(const Rule& rule) {
  for (const MatchStatement& statement : rule.match) {
    if (Mentions(*statement.pattern, "npu")) return RuleFolder::kReference;
  }
  for (const EmitStatement& statement : rule.emit) {
    if (Mentions(statement.value, "npu")) return RuleFolder::kNpu;
  }
  return RuleFolder::kLibrary;
}

// Where the built-in rules of a folder are, besides what all folders share.
bool BelongsTo(std::string_view path, RuleFolder folder) {
  static constexpr std::string_view kPrefixes[] = {"patterns/rules/library/", "patterns/rules/npu/",
                                                   "patterns/rules/reference/", "patterns/rules/contrib/",
                                                   "patterns/rules/leftovers/"};
  const std::string_view prefix = kPrefixes[static_cast<size_t>(folder)];
  return path.substr(0, prefix.size()) == prefix || path == "patterns/rules/library/defs.rule" ||
         path == "patterns/rules/library/formulas.rule";
}

// Moves `added` to `all`, each in the place of what had its name. INVALID_ARGUMENT where one file has two of
// a name.
template <typename Named>
absl::Status AddByName(std::vector<Named>* added, std::vector<Named>* all) {
  absl::flat_hash_set<std::string_view> here;
  for (const Named& one : *added) {
    if (!here.insert(one.name).second) return DefinedTwice(one.position, one.name);
  }
  for (Named& one : *added) {
    const auto same =
        std::find_if(all->begin(), all->end(), [&](const Named& other) { return other.name == one.name; });
    if (same != all->end()) {
      *same = std::move(one);
    } else {
      all->push_back(std::move(one));
    }
  }
  return absl::OkStatus();
}

}  // namespace

bool Mentions(const Expression& expression, std::string_view domain) {
  if (expression.kind == Expression::Kind::kOperator && expression.domain == domain) return true;
  return std::any_of(expression.arguments.begin(), expression.arguments.end(),
                     [&](const Expression& argument) { return Mentions(argument, domain); });
}

absl::StatusOr<std::shared_ptr<const RuleSet>> RuleSet::Shared(
    RuleFolder folder, const std::vector<std::pair<std::string, std::string>>& user) {
  using Result = absl::StatusOr<std::shared_ptr<const RuleSet>>;
  auto read = [&user](RuleFolder from) -> Result {
    auto rules = Load(from, user);
    if (!rules.ok()) return rules.status();
    return std::shared_ptr<const RuleSet>(*std::move(rules));
  };
  if (!user.empty()) return read(folder);
  // One for each folder; never destroyed, for threads may outlive main's statics.
  struct Slot {
    std::once_flag once;
    Result rules;
  };
  static auto* const kSlots = new std::array<Slot, kRuleFolders>;
  Slot& slot = (*kSlots)[static_cast<size_t>(folder)];
  std::call_once(slot.once, [&] { slot.rules = read(folder); });
  return slot.rules;
}

absl::StatusOr<std::unique_ptr<RuleSet>> RuleSet::Load(
    RuleFolder folder, const std::vector<std::pair<std::string, std::string>>& user) {
  std::vector<RuleText> texts;
  for (size_t i = 0; i < embedded::pattern_data_count; ++i) {
    const embedded::File& file = embedded::pattern_data[i];
    if (!BelongsTo(file.path, folder)) continue;
    absl::StatusOr<RuleText> text = ParseRules(file.path, file.text);
    if (!text.ok()) return text.status();
    texts.push_back(*std::move(text));
  }
  const size_t built_in = texts.size();
  absl::flat_hash_set<std::string_view> user_files;
  for (const auto& [path, content] : user) {
    absl::StatusOr<RuleText> text = ParseRules(path, content);
    if (!text.ok()) return text.status();
    texts.push_back(*std::move(text));
    user_files.insert(path);
  }
  // Formulas and tables of all files first: a rule may use what a later file has.
  std::vector<Formula> formulas;
  std::vector<WordTable> tables;
  absl::flat_hash_set<std::string> kinds;  // of the rules themselves
  for (RuleText& text : texts) {
    if (absl::Status status = AddByName(&text.formulas, &formulas); !status.ok()) return status;
    if (absl::Status status = AddByName(&text.tables, &tables); !status.ok()) return status;
    for (const Rule& rule : text.rules) kinds.insert(rule.name);
  }
  FormulaExpander expander(formulas, tables);
  // A user's formulas and definitions are spelled for the rules that use them: in other folders they may
  // build on parts that are not there. In the library all of them are looked at.
  if (folder == RuleFolder::kLibrary) {
    if (absl::Status status = expander.CheckAll(); !status.ok()) return status;
  }
  auto set = std::make_unique<RuleSet>();
  OperatorCheck operators;
  for (size_t i = 0; i < texts.size(); ++i) {
    const absl::Status status =
        set->Add(std::move(texts[i]), folder, &expander, i < built_in ? nullptr : &operators);
    if (!status.ok()) return status;
  }
  if (absl::Status status = operators.Check(set->definitions_, set->rules_); !status.ok()) return status;
  if (folder != RuleFolder::kLibrary && !user.empty()) set->DropUnreached(user_files);
  if (absl::Status status = set->Check(kinds); !status.ok()) return status;
  return set;
}

absl::Status RuleSet::Add(RuleText text, RuleFolder folder, FormulaExpander* expander, OperatorCheck* of_user) {
  for (Definition& definition : text.definitions) {
    if (absl::Status status = expander->Expand(&definition); !status.ok()) return status;
  }
  for (Rule& rule : text.rules) {
    if (absl::Status status = expander->Expand(&rule); !status.ok()) return status;
  }
  if (of_user != nullptr) of_user->AddOfUser(text.definitions, text.rules);
  if (absl::Status status = AddByName(&text.definitions, &definitions_); !status.ok()) return status;
  std::vector<Rule> rules;
  for (Rule& rule : text.rules) {
    if (of_user == nullptr || FolderOf(rule) == folder) rules.push_back(std::move(rule));
  }
  return AddByName(&rules, &rules_);
}

// Removes the user's definitions that no rule of this folder uses.
void RuleSet::DropUnreached(const absl::flat_hash_set<std::string_view>& user_files) {
  absl::flat_hash_set<std::string> reached;
  std::vector<const Pattern*> work;
  for (const Rule& rule : rules_) {
    for (const MatchStatement& statement : rule.match) work.push_back(statement.pattern.get());
  }
  while (!work.empty()) {
    const Pattern* pattern = work.back();
    work.pop_back();
    for (const PatternPointer& argument : pattern->arguments) work.push_back(argument.get());
    if (!pattern->domain.empty() || !reached.insert(pattern->name).second) continue;
    for (const Definition& definition : definitions_) {
      if (definition.name != pattern->name) continue;
      for (const auto& alternative : definition.alternatives) work.push_back(alternative.pattern.get());
    }
  }
  definitions_.erase(std::remove_if(definitions_.begin(), definitions_.end(),
                                    [&](const Definition& definition) {
                                      return user_files.contains(definition.position.file) &&
                                             !reached.contains(definition.name);
                                    }),
                     definitions_.end());
}

absl::Status RuleSet::Check(const absl::flat_hash_set<std::string>& kinds) {
  DefinitionIndex index;
  for (size_t i = 0; i < definitions_.size(); ++i) index[definitions_[i].name] = static_cast<int>(i);
  if (absl::Status status = CheckDefinitions(index, &definitions_); !status.ok()) return status;
  for (Rule& rule : rules_) {
    if (absl::Status status = CheckRule(index, definitions_, kinds, &rule); !status.ok()) return status;
    for (const EmitStatement& statement : rule.emit) AddNodes(statement.value, &rule.nodes);
  }
  if (absl::Status status = OrderRules(definitions_, &rules_); !status.ok()) return status;
  for (size_t i = 0; i < rules_.size(); ++i) {
    const Rule& rule = rules_[i];
    roots_.push_back(OperatorsOf(definitions_, rule, rule.outputs[0]));
    starts_.push_back(rule.anchor.empty() ? roots_[i] : OperatorsOf(definitions_, rule, rule.anchor));
    if (roots_[i].empty() || starts_[i].empty()) {
      return absl::InvalidArgumentError(
          fmt::format("{}: the output of rule {} can be anything", rule.position.ToString(), rule.name));
    }
  }
  for (size_t i = 0; i < rules_.size(); ++i) {
    for (const std::string& op : starts_[i]) starting_at_[op].push_back(i);
  }
  for (Definition& definition : definitions_) {
    for (auto& alternative : definition.alternatives) NumberOperators(alternative.pattern.get());
  }
  for (Rule& rule : rules_) {
    for (MatchStatement& statement : rule.match) NumberOperators(statement.pattern.get());
  }
  prefilter_ = Prefilter(definitions_, rules_);
  return absl::OkStatus();
}

void RuleSet::NumberOperators(Pattern* pattern) {
  if (pattern->kind == Pattern::Kind::kOperator) {
    const auto next = static_cast<uint16_t>(operator_numbers_.size() + 1);
    pattern->operator_number = operator_numbers_.try_emplace({pattern->domain, pattern->name}, next).first->second;
  }
  for (PatternPointer& argument : pattern->arguments) NumberOperators(argument.get());
}

uint16_t RuleSet::OperatorNumber(std::string_view domain, std::string_view op_type) const {
  const auto found = operator_numbers_.find(std::pair(std::string(domain), std::string(op_type)));
  return found != operator_numbers_.end() ? found->second : 0;
}

absl::Span<const size_t> RuleSet::RulesStartingAt(std::string_view op) const {
  const auto found = starting_at_.find(op);
  return found == starting_at_.end() ? absl::Span<const size_t>() : absl::MakeConstSpan(found->second);
}

}  // namespace ascend_fuse
