#include "patterns/language/rule_set.h"

#include <algorithm>
#include <array>
#include <functional>
#include <mutex>

#include "absl/container/flat_hash_set.h"
#include "embedded/pattern_data.h"
#include "fmt/format.h"
#include "ir/schema.h"
#include "patterns/functions/functions.h"
#include "patterns/language/call_check.h"
#include "patterns/language/rule_parser.h"

namespace ascend_fuse {
namespace {

absl::Status Error(const SourcePosition& position, const std::string& sentence) {
  return absl::InvalidArgumentError(fmt::format("{}: {}", position.ToString(), sentence));
}

// Names that stand for themselves in expressions.
bool IsKeyword(const std::string& name) {
  return DataTypeFromName(name) != DataType::kUndefined || name == "true" || name == "false" ||
         name == "infinity";
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
  static constexpr std::string_view kPrefixes[] = {"patterns/rules/library/", "patterns/rules/npu/",
                                                   "patterns/rules/reference/", "patterns/rules/contrib/", "patterns/rules/leftovers/"};
  const std::string_view prefix = kPrefixes[static_cast<int>(folder)];
  auto set = std::make_unique<RuleSet>();
  auto add = [&](const std::string& path, std::string_view text, bool built_in) -> absl::Status {
    std::vector<Definition> definitions;
    std::vector<Rule> rules;
    absl::Status status = ParseRules(path, text, &definitions, &rules);
    if (!status.ok()) return status;
    absl::flat_hash_set<std::string> here;
    for (Definition& definition : definitions) {
      if (!here.insert(definition.name).second) {
        return Error(definition.position, fmt::format("'{}' is defined twice in this file", definition.name));
      }
      auto same = std::find_if(set->definitions_.begin(), set->definitions_.end(),
                               [&](const Definition& d) { return d.name == definition.name; });
      if (same != set->definitions_.end()) {
        *same = std::move(definition);
      } else {
        set->definitions_.push_back(std::move(definition));
      }
    }
    for (Rule& rule : rules) {
      if (!built_in && FolderOf(rule) != folder) continue;
      if (!here.insert(rule.name).second) {
        return Error(rule.position, fmt::format("'{}' is defined twice in this file", rule.name));
      }
      auto same = std::find_if(set->rules_.begin(), set->rules_.end(),
                               [&](const Rule& r) { return r.name == rule.name; });
      if (same != set->rules_.end()) {
        *same = std::move(rule);
      } else {
        set->rules_.push_back(std::move(rule));
      }
    }
    return absl::OkStatus();
  };
  for (size_t i = 0; i < embedded::pattern_data_count; ++i) {
    const embedded::File& file = embedded::pattern_data[i];
    // Spellings of one idea are shared by all three folders.
    if (file.path.substr(0, prefix.size()) != prefix && file.path != "patterns/rules/library/defs.rule") continue;
    if (absl::Status status = add(std::string(file.path), file.text, true); !status.ok()) return status;
  }
  for (const auto& [path, text] : user) {
    if (absl::Status status = add(path, text, false); !status.ok()) return status;
  }
  // A user's definitions are spelled for the rules that use them: elsewhere they may build on parts that are
  // not there. In the library all of them are looked at.
  if (folder != RuleFolder::kLibrary && !user.empty()) {
    absl::flat_hash_set<std::string> reached;
    std::vector<const Pattern*> work;
    for (const Rule& rule : set->rules_) {
      for (const MatchStatement& statement : rule.match) work.push_back(statement.pattern.get());
    }
    while (!work.empty()) {
      const Pattern* pattern = work.back();
      work.pop_back();
      for (const PatternPointer& argument : pattern->arguments) work.push_back(argument.get());
      if (!pattern->domain.empty() || !reached.insert(pattern->name).second) continue;
      for (const Definition& definition : set->definitions_) {
        if (definition.name != pattern->name) continue;
        for (const auto& alternative : definition.alternatives) work.push_back(alternative.pattern.get());
      }
    }
    auto of_user = [&](const Definition& definition) {
      return std::any_of(user.begin(), user.end(),
                         [&](const auto& file) { return file.first == definition.position.file; });
    };
    set->definitions_.erase(std::remove_if(set->definitions_.begin(), set->definitions_.end(),
                                           [&](const Definition& definition) {
                                             return of_user(definition) && !reached.contains(definition.name);
                                           }),
                            set->definitions_.end());
  }
  if (absl::Status status = set->Check(); !status.ok()) return status;
  return set;
}

absl::Status RuleSet::CheckOperator(const SourcePosition& position, const std::string& domain,
                                    const std::string& op_type, const std::vector<std::string>& attributes,
                                    int arguments) const {
  // Ascend nodes are described by the targets' contracts, our private operators by the rules that emit them.
  if (domain == "npu" || domain == "ascend_fuse") return absl::OkStatus();
  bool known = false;
  int most = 0;
  absl::flat_hash_set<std::string> names;
  for (const Schema& schema : AllSchemas()) {
    if (schema.domain != domain || schema.op_type != op_type) continue;
    known = true;
    for (const SchemaAttribute& attribute : schema.attributes) names.insert(std::string(attribute.name));
    for (const SchemaInput& input : schema.inputs) {
      names.insert(std::string(input.name));
      if (input.variadic) most = 1 << 20;
    }
    most = std::max<int>(most, static_cast<int>(schema.inputs.size()));
  }
  if (!known) {
    return Error(position, fmt::format("unknown operator or definition '{}{}{}'", domain,
                                       domain.empty() ? "" : ".", op_type));
  }
  for (const std::string& attribute : attributes) {
    if (!names.contains(attribute)) {
      return Error(position,
                   fmt::format("{} has no attribute or input '{}' at any opset", op_type, attribute));
    }
  }
  if (arguments > most) {
    return Error(position, fmt::format("{} takes at most {} inputs, {} given", op_type, most, arguments));
  }
  return absl::OkStatus();
}

absl::Status RuleSet::CheckExpression(Expression* expression, Scope* scope, bool may_bind, bool may_build) {
  switch (expression->kind) {
    case Expression::Kind::kName:
      if (IsKeyword(expression->text)) return absl::OkStatus();
      expression->slot = scope->Find(expression->text);
      if (expression->slot < 0) {
        if (!may_bind) {
          return Error(expression->position, fmt::format("unknown name '{}'", expression->text));
        }
        expression->slot = scope->Add(expression->text);
      }
      return absl::OkStatus();
    case Expression::Kind::kCall: {
      expression->function = FindFunction(expression->text);
      if (expression->function < 0) {
        return Error(expression->position, fmt::format("unknown function '{}'", expression->text));
      }
      const FunctionRow& row = Functions()[expression->function];
      const int count = static_cast<int>(expression->arguments.size());
      if (count < row.minimum_arguments || count > row.maximum_arguments) {
        return Error(expression->position, fmt::format("{} takes {} to {} arguments, {} given", row.name,
                                                       row.minimum_arguments, row.maximum_arguments, count));
      }
      for (size_t i = 0; i < expression->arguments.size(); ++i) {
        const Expression& argument = expression->arguments[i];
        if (std::string why = Misfit(row, i, argument); !why.empty()) return Error(argument.position, why);
      }
      break;
    }
    case Expression::Kind::kOperator: {
      if (!may_build) {
        return Error(
            expression->position,
            fmt::format("'{}' builds a node; nodes can be built in let and emit only", expression->text));
      }
      std::vector<std::string> names;
      for (auto& attribute : expression->attributes) {
        names.push_back(attribute.name);
        if (absl::Status status = CheckExpression(&attribute.value, scope, false, false); !status.ok()) {
          return status;
        }
      }
      if (absl::Status status = CheckOperator(expression->position, expression->domain, expression->text,
                                              names, static_cast<int>(expression->arguments.size()));
          !status.ok()) {
        return status;
      }
      break;
    }
    default:
      break;
  }
  for (Expression& argument : expression->arguments) {
    const bool list = expression->kind == Expression::Kind::kList;
    if (absl::Status status = CheckExpression(&argument, scope, may_bind && list, may_build); !status.ok()) {
      return status;
    }
  }
  return absl::OkStatus();
}

absl::Status RuleSet::CheckCondition(Condition* condition, Scope* scope) {
  const bool equal = condition->relation == Condition::Relation::kEqual;
  const bool let = condition->relation == Condition::Relation::kLet;
  // The right side of a let first, so that a name is not its own definition.
  if (let) {
    if (absl::Status status = CheckExpression(&condition->right, scope, false, true); !status.ok())
      return status;
    condition->left.slot = scope->Add(condition->left.text);
    return absl::OkStatus();
  }
  if (absl::Status status = CheckExpression(&condition->left, scope, equal, false); !status.ok())
    return status;
  if (condition->relation != Condition::Relation::kHolds) {
    if (absl::Status status = CheckExpression(&condition->right, scope, equal, false); !status.ok()) {
      return status;
    }
  }
  return absl::OkStatus();
}

absl::Status RuleSet::CheckPattern(Pattern* pattern, Scope* scope, bool in_rule) {
  switch (pattern->kind) {
    case Pattern::Kind::kVariable:
      pattern->slot = scope->Add(pattern->name);
      return absl::OkStatus();
    case Pattern::Kind::kWildcard:
    case Pattern::Kind::kAbsent:
    case Pattern::Kind::kLiteral:
      return absl::OkStatus();
    case Pattern::Kind::kAlternatives:
      break;
    case Pattern::Kind::kDefinition:
    case Pattern::Kind::kOperator: {
      auto found = pattern->domain.empty() ? definition_index_.find(pattern->name) : definition_index_.end();
      if (found != definition_index_.end()) {
        pattern->kind = Pattern::Kind::kDefinition;
        pattern->definition = found->second;
        const Definition& definition = definitions_[found->second];
        if (pattern->arguments.size() != definition.parameters.size()) {
          return Error(pattern->position,
                       fmt::format("{} takes {} arguments, {} given", definition.name,
                                   definition.parameters.size(), pattern->arguments.size()));
        }
        if (!pattern->attributes.empty()) {
          return Error(pattern->position,
                       fmt::format("'{}' is a definition and has no attributes", definition.name));
        }
        if (pattern->optional && pattern->arguments.empty()) {
          return Error(pattern->position, fmt::format("'{}?' needs a first argument", definition.name));
        }
      } else {
        if (pattern->optional) {
          return Error(pattern->position,
                       fmt::format("'{}?': only a definition can be optional, and there is none of that name",
                                   pattern->name));
        }
        std::vector<std::string> names;
        for (const AttributePattern& attribute : pattern->attributes) names.push_back(attribute.name);
        if (absl::Status status = CheckOperator(pattern->position, pattern->domain, pattern->name, names,
                                                static_cast<int>(pattern->arguments.size()));
            !status.ok()) {
          return status;
        }
        for (AttributePattern& attribute : pattern->attributes) {
          if (absl::Status status = CheckExpression(&attribute.value, scope, true, false); !status.ok()) {
            return status;
          }
          if (attribute.value.kind == Expression::Kind::kName && !IsKeyword(attribute.value.text) &&
              attribute.value.slot < 0) {
            attribute.value.slot = scope->Add(attribute.value.text);
          }
        }
      }
      break;
    }
  }
  for (PatternPointer& argument : pattern->arguments) {
    if (absl::Status status = CheckPattern(argument.get(), scope, in_rule); !status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status RuleSet::Check() {
  for (size_t i = 0; i < definitions_.size(); ++i) {
    definition_index_[definitions_[i].name] = static_cast<int>(i);
  }
  for (Definition& definition : definitions_) {
    for (Parameter& parameter : definition.parameters) definition.scope.Add(parameter.name);
    definition.result_slot = definition.scope.Add("result");
    for (Parameter& parameter : definition.parameters) {
      if (!parameter.has_default) continue;
      if (absl::Status status = CheckExpression(&parameter.default_value, &definition.scope, false, false);
          !status.ok()) {
        return status;
      }
    }
    for (Definition::Alternative& alternative : definition.alternatives) {
      if (absl::Status status = CheckPattern(alternative.pattern.get(), &definition.scope, false);
          !status.ok()) {
        return status;
      }
      for (Condition& condition : alternative.conditions) {
        if (absl::Status status = CheckCondition(&condition, &definition.scope); !status.ok()) return status;
      }
    }
  }
  // A definition that reaches itself without an operator between would match forever.
  for (size_t start = 0; start < definitions_.size(); ++start) {
    std::vector<int> state(definitions_.size(), 0);
    std::function<bool(int)> reaches = [&](int index) -> bool {
      if (state[index] == 1) return true;
      if (state[index] == 2) return false;
      state[index] = 1;
      std::function<bool(const Pattern&)> head = [&](const Pattern& pattern) -> bool {
        if (pattern.kind == Pattern::Kind::kDefinition) {
          if (reaches(pattern.definition)) return true;
          // An argument stands at the head too where the definition can be the bare parameter.
          const Definition& used = definitions_[pattern.definition];
          for (size_t i = 0; i < pattern.arguments.size(); ++i) {
            const bool bare =
                std::any_of(used.alternatives.begin(), used.alternatives.end(), [&](const auto& one) {
                  return one.pattern->kind == Pattern::Kind::kVariable &&
                         one.pattern->name == used.parameters[i].name;
                });
            if ((bare || (pattern.optional && i == 0)) && head(*pattern.arguments[i])) return true;
          }
          return false;
        }
        if (pattern.kind == Pattern::Kind::kAlternatives) {
          return std::any_of(pattern.arguments.begin(), pattern.arguments.end(),
                             [&](const PatternPointer& argument) { return head(*argument); });
        }
        return false;
      };
      for (const auto& alternative : definitions_[index].alternatives) {
        if (head(*alternative.pattern)) return true;
      }
      state[index] = 2;
      return false;
    };
    if (reaches(static_cast<int>(start))) {
      return Error(definitions_[start].position,
                   fmt::format("'{}' is defined by itself", definitions_[start].name));
    }
  }

  for (Rule& rule : rules_) {
    for (Parameter& input : rule.inputs) rule.scope.Add(input.name);
    if (rule.match.empty()) return Error(rule.position, fmt::format("rule {} matches nothing", rule.name));
    for (size_t i = 0; i < rule.match.size(); ++i) {
      for (size_t k = 0; k < rule.match[i].names.size(); ++k) {
        const std::string& name = rule.match[i].names[k];
        if (name == "_") continue;
        const int slot = rule.scope.Add(name);
        if (rule.scope.statement[slot] >= 0 || slot < static_cast<int>(rule.inputs.size())) {
          return Error(rule.match[i].position, fmt::format("'{}' is named twice", name));
        }
        rule.scope.statement[slot] = static_cast<int>(i);
        rule.scope.output[slot] = static_cast<int>(k);
      }
      if (rule.match[i].names.size() > 1 && rule.match[i].pattern->kind != Pattern::Kind::kOperator) {
        return Error(rule.match[i].position, "only one operator, not a definition, can have several outputs");
      }
    }
    for (MatchStatement& statement : rule.match) {
      if (absl::Status status = CheckPattern(statement.pattern.get(), &rule.scope, true); !status.ok()) {
        return status;
      }
      if (statement.names.size() > 1 && statement.pattern->kind != Pattern::Kind::kOperator) {
        return Error(statement.position, "only one operator, not a definition, can have several outputs");
      }
    }
    const size_t matched_names = rule.scope.names.size();
    for (const std::string& output : rule.outputs) {
      const int slot = rule.scope.Find(output);
      if (slot < 0 || rule.scope.statement[slot] < 0) {
        return Error(rule.position, fmt::format("no line of match computes the output '{}'", output));
      }
    }
    if (rule.outputs.empty()) return Error(rule.position, "a rule needs an output");
    for (const Parameter& input : rule.inputs) {
      // An input must occur in the pattern, or it is a misspelt name.
      bool used = false;
      std::function<void(const Pattern&)> visit = [&](const Pattern& pattern) {
        if (pattern.kind == Pattern::Kind::kVariable && pattern.name == input.name) used = true;
        for (const auto& argument : pattern.arguments) visit(*argument);
      };
      for (const MatchStatement& statement : rule.match) visit(*statement.pattern);
      if (!used)
        return Error(rule.position, fmt::format("the input '{}' occurs nowhere in match", input.name));
    }
    // Every variable of the pattern must be an input, the name of a line, a name used elsewhere, or `_`: a
    // name that occurs once is most likely misspelt.
    (void)matched_names;
    for (Condition& condition : rule.where) {
      if (absl::Status status = CheckCondition(&condition, &rule.scope); !status.ok()) return status;
    }
    absl::flat_hash_set<std::string> emitted;
    for (EmitStatement& statement : rule.emit) {
      if (absl::Status status = CheckExpression(&statement.value, &rule.scope, false, true); !status.ok()) {
        return status;
      }
      for (const std::string& name : statement.names) {
        if (name == "_") continue;
        emitted.insert(name);
        rule.scope.Add(name);
      }
    }
    if (!rule.emit.empty()) {
      for (const std::string& output : rule.outputs) {
        if (!emitted.contains(output)) {
          return Error(rule.position, fmt::format("emit does not compute the output '{}'", output));
        }
      }
    }
  }

  for (Rule& rule : rules_) {
    rule.size = 0;
    for (const MatchStatement& statement : rule.match) rule.size += Size(*statement.pattern, rule, 0);
    for (const EmitStatement& statement : rule.emit) AddNodes(statement.value, &rule.nodes);
  }
  std::stable_sort(rules_.begin(), rules_.end(),
                   [](const Rule& a, const Rule& b) { return a.size > b.size; });
  for (size_t round = 0; round < rules_.size(); ++round) {  // `before` moves a rule up
    bool moved = false;
    for (size_t i = 0; i < rules_.size(); ++i) {
      if (rules_[i].before.empty()) continue;
      auto other = std::find_if(rules_.begin(), rules_.end(),
                                [&](const Rule& rule) { return rule.name == rules_[i].before; });
      if (other == rules_.end()) {
        return Error(rules_[i].position, fmt::format("before: there is no rule '{}'", rules_[i].before));
      }
      const size_t to = other - rules_.begin();
      if (to < i) {
        std::rotate(rules_.begin() + to, rules_.begin() + i, rules_.begin() + i + 1);
        moved = true;
      }
    }
    if (!moved) break;
  }

  roots_.resize(rules_.size());
  starts_.resize(rules_.size());
  for (size_t i = 0; i < rules_.size(); ++i) {
    const Rule& rule = rules_[i];
    auto operators_of = [&](const std::string& name) {
      std::vector<std::string> found;
      CollectRoots(*rule.match[rule.scope.statement[rule.scope.Find(name)]].pattern, rule, 0, &found);
      std::sort(found.begin(), found.end());
      found.erase(std::unique(found.begin(), found.end()), found.end());
      return found;
    };
    roots_[i] = operators_of(rule.outputs[0]);
    if (!rule.from.empty()) {
      const int slot = rule.scope.Find(rule.from);
      if (slot < 0 || rule.scope.statement[slot] < 0) {
        return Error(rule.position, fmt::format("from: no line of match computes '{}'", rule.from));
      }
    }
    starts_[i] = rule.from.empty() ? roots_[i] : operators_of(rule.from);
    if (roots_[i].empty() || starts_[i].empty()) {
      return Error(rule.position, fmt::format("the output of rule {} can be anything", rule.name));
    }
  }
  return absl::OkStatus();
}

void RuleSet::CollectRoots(const Pattern& pattern, const Rule& rule, int depth,
                           std::vector<std::string>* roots) const {
  if (depth > 50) return;
  switch (pattern.kind) {
    case Pattern::Kind::kOperator:
      roots->push_back(pattern.domain.empty() ? pattern.name : pattern.domain + "." + pattern.name);
      break;
    case Pattern::Kind::kAlternatives:
      for (const auto& argument : pattern.arguments) CollectRoots(*argument, rule, depth + 1, roots);
      break;
    case Pattern::Kind::kDefinition: {
      const Definition& definition = definitions_[pattern.definition];
      for (const auto& alternative : definition.alternatives) {
        if (alternative.pattern->kind == Pattern::Kind::kVariable) {
          for (size_t i = 0; i < definition.parameters.size(); ++i) {
            if (definition.parameters[i].name == alternative.pattern->name) {
              CollectRoots(*pattern.arguments[i], rule, depth + 1, roots);
            }
          }
        } else {
          CollectRoots(*alternative.pattern, rule, depth + 1, roots);
        }
      }
      if (pattern.optional) CollectRoots(*pattern.arguments[0], rule, depth + 1, roots);
      break;
    }
    case Pattern::Kind::kVariable:
      if (pattern.slot >= 0 && rule.scope.statement[pattern.slot] >= 0) {
        CollectRoots(*rule.match[rule.scope.statement[pattern.slot]].pattern, rule, depth + 1, roots);
      }
      break;
    default:
      break;
  }
}

int RuleSet::Size(const Pattern& pattern, const Rule& rule, int depth) const {
  if (depth > 20) return 0;
  int size = 0;
  for (const auto& argument : pattern.arguments) {
    const int part = Size(*argument, rule, depth + 1);
    size = pattern.kind == Pattern::Kind::kAlternatives ? std::max(size, part) : size + part;
  }
  if (pattern.kind == Pattern::Kind::kOperator) return size + 1;
  if (pattern.kind == Pattern::Kind::kDefinition) {
    int largest = 0;
    for (const auto& alternative : definitions_[pattern.definition].alternatives) {
      largest = std::max(largest, Size(*alternative.pattern, rule, depth + 1));
    }
    return size + largest;
  }
  return size;
}

}  // namespace ascend_fuse
