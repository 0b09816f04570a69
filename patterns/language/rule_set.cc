#include "patterns/language/rule_set.h"

#include <algorithm>
#include <array>
#include <mutex>

#include "embedded/pattern_data.h"
#include "fmt/format.h"
#include "ir/status_macros.h"
#include "patterns/language/checker.h"
#include "patterns/language/formula.h"
#include "patterns/language/operator_check.h"
#include "patterns/language/order.h"
#include "patterns/language/rule_archive.h"
#include "patterns/language/rule_parser.h"

namespace ascend_fuse {

// What tools/rule_compiler wrote while the program was built. Its declaration cannot be generated: the compiler itself
// is made of this file.
namespace embedded {
extern const File compiled_rules[];
extern const size_t compiled_rules_count;
}  // namespace embedded

namespace {

absl::Status DefinedTwice(const SourcePosition& position, const std::string& name) {
  return absl::InvalidArgumentError(fmt::format("{}: '{}' is defined twice in this file", position.ToString(), name));
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
  const std::string prefix = fmt::format("patterns/rules/{}/", RuleFolderName(folder));
  return path.substr(0, prefix.size()) == prefix || path == "patterns/rules/library/defs.rule" ||
         path == "patterns/rules/library/formulas.rule";
}

// The bytes that the build made of a folder.
std::string_view Compiled(RuleFolder folder, std::string_view part) {
  const std::string name = fmt::format("{}.{}", RuleFolderName(folder), part);
  for (size_t i = 0; i < embedded::compiled_rules_count; ++i) {
    if (embedded::compiled_rules[i].path == name) return embedded::compiled_rules[i].text;
  }
  return {};
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
    const auto same = std::find_if(all->begin(), all->end(), [&](const Named& other) { return other.name == one.name; });
    if (same != all->end()) {
      *same = std::move(one);
    } else {
      all->push_back(std::move(one));
    }
  }
  return absl::OkStatus();
}

}  // namespace

std::string_view RuleFolderName(RuleFolder folder) {
  static constexpr std::string_view kNames[] = {"library", "npu", "reference", "contrib", "leftovers", "adapt", "misread"};
  return kNames[static_cast<size_t>(folder)];
}

bool Mentions(const Expression& expression, std::string_view domain) {
  if (expression.kind == Expression::Kind::kOperator && expression.domain == domain) return true;
  return std::any_of(expression.arguments.begin(), expression.arguments.end(),
                     [&](const Expression& argument) { return Mentions(argument, domain); });
}

absl::StatusOr<UserRules> UserRules::Parse(const std::vector<std::pair<std::string, std::string>>& files) {
  UserRules user;
  for (const auto& [path, content] : files) {
    ASSIGN_OR_RETURN(RuleText text, ParseRules(path, content));
    user.texts_.push_back(std::move(text));
  }
  return user;
}

std::shared_ptr<const RuleSet> RuleSet::Shared(RuleFolder folder) {
  // One for each folder; never destroyed, for threads may outlive main's statics.
  struct Slot {
    std::once_flag once;
    std::shared_ptr<const RuleSet> rules;
  };
  static auto* const kSlots = new std::array<Slot, kRuleFolders>;
  Slot& slot = (*kSlots)[static_cast<size_t>(folder)];
  std::call_once(slot.once, [&] { slot.rules = *Load(folder); });
  return slot.rules;
}

absl::StatusOr<std::unique_ptr<RuleSet>> RuleSet::Load(RuleFolder folder,
                                                       const std::vector<std::pair<std::string, std::string>>& user) {
  ASSIGN_OR_RETURN(const UserRules parsed, UserRules::Parse(user));
  return Load(folder, parsed);
}

absl::StatusOr<std::unique_ptr<RuleSet>> RuleSet::Load(RuleFolder folder, const UserRules& user) {
  auto set = std::make_unique<RuleSet>();
  RuleArchive::Read(Compiled(folder, "rules"), set.get());
  set->Index();
  if (user.empty()) return set;
  RuleVocabulary vocabulary;
  RuleArchive::Read(Compiled(folder, "vocabulary"), &vocabulary);
  if (set->Redefines(user, vocabulary)) return FromText(folder, user);
  RETURN_IF_ERROR(set->Extend(user.texts(), 0, folder, vocabulary));
  return set;
}

absl::StatusOr<std::unique_ptr<RuleSet>> RuleSet::FromText(RuleFolder folder, const UserRules& user, RuleVocabulary* vocabulary) {
  std::vector<RuleText> texts;
  RuleVocabulary own;
  for (size_t i = 0; i < embedded::pattern_data_count; ++i) {
    const embedded::File& file = embedded::pattern_data[i];
    if (!BelongsTo(file.path, folder)) continue;
    ASSIGN_OR_RETURN(RuleText text, ParseRules(file.path, file.text));
    texts.push_back(std::move(text));
  }
  const size_t built_in = texts.size();
  for (RuleText& text : texts) {
    RETURN_IF_ERROR(AddByName(&text.vocabulary.formulas, &own.formulas));
    RETURN_IF_ERROR(AddByName(&text.vocabulary.tables, &own.tables));
  }
  texts.insert(texts.end(), user.texts().begin(), user.texts().end());
  auto set = std::make_unique<RuleSet>();
  RETURN_IF_ERROR(set->Extend(std::move(texts), built_in, folder, own));
  if (vocabulary != nullptr) *vocabulary = std::move(own);
  return set;
}

// Whether built-in rules would read differently: what they are written with has another meaning in the user's files.
bool RuleSet::Redefines(const UserRules& user, const RuleVocabulary& vocabulary) const {
  absl::flat_hash_set<std::string_view> names;
  for (const Definition& definition : definitions_) names.insert(definition.name);
  for (const Formula& formula : vocabulary.formulas) names.insert(formula.name);
  for (const WordTable& table : vocabulary.tables) names.insert(table.name);
  // A definition may have the name of an operator.
  for (const auto& [domain, op_type] : operators_) {
    if (domain.empty()) names.insert(op_type);
  }
  const auto redefines = [&names](const auto& all) {
    return std::any_of(all.begin(), all.end(), [&names](const auto& one) { return names.contains(one.name); });
  };
  return std::any_of(user.texts().begin(), user.texts().end(), [&](const RuleText& text) {
    return redefines(text.definitions) || redefines(text.vocabulary.formulas) || redefines(text.vocabulary.tables);
  });
}

// Adds the rules of `texts`, of which the first `built_in` are not of a user, to those that are there already.
absl::Status RuleSet::Extend(std::vector<RuleText> texts, size_t built_in, RuleFolder folder, const RuleVocabulary& vocabulary) {
  // The vocabulary of all files first: a rule may use what a later file has.
  RuleVocabulary all = vocabulary;
  absl::flat_hash_set<std::string> kinds;  // of the rules themselves
  for (const Rule& rule : rules_) kinds.insert(rule.name);
  for (size_t i = 0; i < texts.size(); ++i) {
    for (const Rule& rule : texts[i].rules) kinds.insert(rule.name);
    if (i < built_in) continue;
    RETURN_IF_ERROR(AddByName(&texts[i].vocabulary.formulas, &all.formulas));
    RETURN_IF_ERROR(AddByName(&texts[i].vocabulary.tables, &all.tables));
  }
  FormulaExpander expander(all.formulas, all.tables);
  RETURN_IF_ERROR(expander.CheckNames());
  // A user's formulas and definitions are spelled for the rules that use them: in other folders they may
  // build on parts that are not there. In the library all of them are looked at.
  if (folder == RuleFolder::kLibrary) {
    RETURN_IF_ERROR(expander.CheckAll());
  }
  OperatorCheck operators;
  for (size_t i = 0; i < texts.size(); ++i) {
    for (Definition& definition : texts[i].definitions) {
      RETURN_IF_ERROR(expander.Expand(&definition));
    }
    for (Rule& rule : texts[i].rules) {
      RETURN_IF_ERROR(expander.Expand(&rule));
    }
    if (i >= built_in) operators.AddOfUser(texts[i].definitions, texts[i].rules);
  }
  const size_t first_definition = definitions_.size();
  absl::flat_hash_set<std::string_view> user_files;
  for (size_t i = 0; i < texts.size(); ++i) {
    if (i >= built_in) user_files.insert(texts[i].file);
    RETURN_IF_ERROR(Add(&texts[i], folder, operators, i >= built_in));
  }
  if (folder != RuleFolder::kLibrary && !user_files.empty()) DropUnreached(user_files);
  return Check(kinds, first_definition);
}

absl::Status RuleSet::Add(RuleText* text, RuleFolder folder, const OperatorCheck& operators, bool of_user) {
  std::vector<Rule> rules;
  for (Rule& rule : text->rules) {
    if (!of_user || FolderOf(rule) == folder) rules.push_back(std::move(rule));
  }
  RETURN_IF_ERROR(operators.Check(text->definitions, rules));
  RETURN_IF_ERROR(AddByName(&text->definitions, &definitions_));
  for (Rule& rule : rules) {
    const auto same = std::find_if(rules_.begin(), rules_.end(), [&](const Rule& other) { return other.name == rule.name; });
    if (same != rules_.end()) rule.place = same->place;
  }
  RETURN_IF_ERROR(AddByName(&rules, &rules_));
  for (size_t i = 0; i < rules_.size(); ++i) {
    if (rules_[i].place < 0) rules_[i].place = static_cast<int>(i);
  }
  return absl::OkStatus();
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
  const auto unreached = [&](const Definition& definition) {
    return user_files.contains(definition.position.file) && !reached.contains(definition.name);
  };
  definitions_.erase(std::remove_if(definitions_.begin(), definitions_.end(), unreached), definitions_.end());
}

// Checks, completes and orders what was added: the definitions from `first_definition` on, and the rules without size.
absl::Status RuleSet::Check(const absl::flat_hash_set<std::string>& kinds, size_t first_definition) {
  DefinitionIndex index;
  for (size_t i = 0; i < definitions_.size(); ++i) index[definitions_[i].name] = static_cast<int>(i);
  RETURN_IF_ERROR(CheckDefinitions(index, first_definition, &definitions_));
  std::vector<std::string> added;
  for (Rule& rule : rules_) {
    if (rule.size >= 0) continue;
    RETURN_IF_ERROR(CheckRule(index, definitions_, kinds, &rule));
    for (const EmitStatement& statement : rule.emit) AddNodes(statement.value, &rule.nodes);
    added.push_back(rule.name);
  }
  RETURN_IF_ERROR(OrderRules(definitions_, &rules_));
  for (size_t i = first_definition; i < definitions_.size(); ++i) {
    for (auto& alternative : definitions_[i].alternatives) NumberOperators(alternative.pattern.get());
  }
  const absl::flat_hash_set<std::string_view> is_added(added.begin(), added.end());
  for (Rule& rule : rules_) {
    if (!is_added.contains(rule.name)) continue;
    for (MatchStatement& statement : rule.match) NumberOperators(statement.pattern.get());
  }
  for (Rule& rule : rules_) {
    if (!is_added.contains(rule.name)) continue;
    RETURN_IF_ERROR(Complete(&rule));
  }
  Index();
  return absl::OkStatus();
}

// Where the rule is looked for. INVALID_ARGUMENT for one that would be looked for everywhere.
absl::Status RuleSet::Complete(Rule* rule) {
  rule->roots = OperatorsOf(definitions_, *rule, rule->outputs[0]);
  if (rule->roots.empty()) {
    return absl::InvalidArgumentError(
        fmt::format("{}: the output of rule {} can be anything", rule->position.ToString(), rule->name));
  }
  prefilter_.Add(definitions_, rule);
  return absl::OkStatus();
}

// The tables that are made anew whenever rules or operators were added.
void RuleSet::Index() {
  ending_in_.clear();
  for (size_t i = 0; i < rules_.size(); ++i) {
    for (const std::string& op : rules_[i].roots) ending_in_[op].push_back(i);
  }
  for (size_t i = operator_numbers_.size(); i < operators_.size(); ++i) {
    operator_numbers_.emplace(operators_[i], static_cast<uint16_t>(i + 1));
  }
}

void RuleSet::NumberOperators(Pattern* pattern) {
  if (pattern->kind == Pattern::Kind::kOperator) {
    const auto next = static_cast<uint16_t>(operators_.size() + 1);
    const auto [found, is_new] = operator_numbers_.try_emplace({pattern->domain, pattern->name}, next);
    if (is_new) operators_.emplace_back(pattern->domain, pattern->name);
    pattern->operator_number = found->second;
  }
  for (PatternPointer& argument : pattern->arguments) NumberOperators(argument.get());
}

uint16_t RuleSet::OperatorNumber(std::string_view domain, std::string_view op_type) const {
  const auto found = operator_numbers_.find(std::pair(std::string(domain), std::string(op_type)));
  return found != operator_numbers_.end() ? found->second : 0;
}

absl::Span<const size_t> RuleSet::RulesEndingIn(std::string_view op) const {
  const auto found = ending_in_.find(op);
  return found == ending_in_.end() ? absl::Span<const size_t>() : absl::MakeConstSpan(found->second);
}

}  // namespace ascend_fuse
