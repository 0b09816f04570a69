#include "patterns/language/checker.h"

#include <algorithm>
#include <functional>
#include <string_view>

#include "fmt/format.h"
#include "fmt/ranges.h"
#include "ir/schema.h"
#include "ir/status_macros.h"
#include "patterns/functions/functions.h"
#include "patterns/language/call_check.h"
#include "patterns/operators/declarations.h"

namespace ascend_fuse {
namespace {

absl::Status Error(const SourcePosition& position, const std::string& sentence) {
  return absl::InvalidArgumentError(fmt::format("{}: {}", position.ToString(), sentence));
}

// Names that stand for themselves in expressions.
bool IsKeyword(const std::string& name) {
  if (name.size() < 4) return false;  // most names are letters, and no keyword is shorter
  return name == "true" || name == "false" || name == "infinity" || DataTypeFromName(name) != DataType::kUndefined;
}

// What `ge_construct` and `kind` may name: the kinds and the special forms of them that targets speak of.
const absl::flat_hash_set<std::string_view>& Constructs() {
  static const auto* const kConstructs = [] {
    auto* found = new absl::flat_hash_set<std::string_view>;
    for (const SiteKind& kind : SiteKinds()) {
      found->insert(kind.name);
      found->insert(kind.constructs.begin(), kind.constructs.end());
    }
    return found;
  }();
  return *kConstructs;
}

// Pattern by pattern through one scope: a rule's, or a definition's.
class PatternChecker {
 public:
  PatternChecker(const DefinitionIndex& index, const std::vector<Definition>& definitions, Scope* scope)
      : index_(index), definitions_(definitions), scope_(scope) {}

  absl::Status Check(Pattern* pattern) {
    switch (pattern->kind) {
      case Pattern::Kind::kVariable:
        pattern->slot = scope_->Add(pattern->name);
        break;
      case Pattern::Kind::kWildcard:
      case Pattern::Kind::kAbsent:
      case Pattern::Kind::kLiteral:
      case Pattern::Kind::kAlternatives:
        break;
      case Pattern::Kind::kDefinition:
      case Pattern::Kind::kOperator: {
        const auto found = pattern->domain.empty() ? index_.find(pattern->name) : index_.end();
        RETURN_IF_ERROR(found != index_.end() ? CheckUse(found->second, pattern) : CheckNode(pattern));
        break;
      }
    }
    for (PatternPointer& argument : pattern->arguments) {
      RETURN_IF_ERROR(Check(argument.get()));
    }
    return absl::OkStatus();
  }

 private:
  // The use of a definition.
  absl::Status CheckUse(int index, Pattern* pattern) {
    pattern->kind = Pattern::Kind::kDefinition;
    pattern->definition = index;
    const Definition& definition = definitions_[static_cast<size_t>(index)];
    if (pattern->arguments.size() != definition.parameters.size()) {
      return Error(pattern->position, fmt::format("{} takes {} arguments, {} given", definition.name,
                                                  definition.parameters.size(), pattern->arguments.size()));
    }
    if (!pattern->attributes.empty()) {
      return Error(pattern->position, fmt::format("'{}' is a definition and has no attributes", definition.name));
    }
    if (pattern->optional && pattern->arguments.empty()) {
      return Error(pattern->position, fmt::format("'{}?' needs a first argument", definition.name));
    }
    return absl::OkStatus();
  }

  absl::Status CheckNode(Pattern* pattern) {
    if (pattern->optional) {
      return Error(pattern->position,
                   fmt::format("'{}?': only a definition can be optional, and there is none of that name", pattern->name));
    }
    std::vector<std::string> names;
    for (const AttributePattern& attribute : pattern->attributes) names.push_back(attribute.name);
    RETURN_IF_ERROR(
        CheckOperator(pattern->position, pattern->domain, pattern->name, names, static_cast<int>(pattern->arguments.size())));
    for (AttributePattern& attribute : pattern->attributes) {
      RETURN_IF_ERROR(CheckExpression(&attribute.value, scope_, true, false));
    }
    return absl::OkStatus();
  }

  const DefinitionIndex& index_;
  const std::vector<Definition>& definitions_;
  Scope* scope_;
};

absl::Status CheckCondition(Condition* condition, Scope* scope) {
  const bool equal = condition->relation == Condition::Relation::kEqual;
  // The right side of a let first, so that a name is not its own definition.
  if (condition->relation == Condition::Relation::kLet) {
    RETURN_IF_ERROR(CheckExpression(&condition->right, scope, false, true));
    condition->left.slot = scope->Add(condition->left.text);
    return absl::OkStatus();
  }
  RETURN_IF_ERROR(CheckExpression(&condition->left, scope, equal, false));
  if (condition->relation == Condition::Relation::kHolds) return absl::OkStatus();
  return CheckExpression(&condition->right, scope, equal, false);
}

// How often each name of a scope is written. A variable that is written once says nothing: it is a misspelt
// name, or should be `_`.
class Mentions {
 public:
  explicit Mentions(const Scope& scope) : counts_(scope.names.size(), 0), first_(scope.names.size()) {}

  void Add(const Pattern& pattern) {
    if (pattern.kind == Pattern::Kind::kVariable) AddVariable(pattern.slot, pattern.position);
    for (const AttributePattern& attribute : pattern.attributes) {
      // <scale> binds; <axis = last> may too.
      if (attribute.value.kind == Expression::Kind::kName) {
        AddVariable(attribute.value.slot, attribute.position);
      } else {
        Add(attribute.value);
      }
    }
    for (const PatternPointer& argument : pattern.arguments) Add(*argument);
  }
  void Add(const Expression& expression) {
    if (expression.kind == Expression::Kind::kName && expression.slot >= 0) {
      ++counts_[static_cast<size_t>(expression.slot)];
    }
    for (const Expression& argument : expression.arguments) Add(argument);
    for (const auto& attribute : expression.attributes) Add(attribute.value);
  }
  void Add(const Condition& condition) {
    if (condition.relation == Condition::Relation::kLet) {
      AddVariable(condition.left.slot, condition.position);
    } else {
      Add(condition.left);
    }
    Add(condition.right);
  }
  void Add(int slot) { ++counts_[static_cast<size_t>(slot)]; }

  absl::Status Check(const Scope& scope) const {
    for (size_t slot = 0; slot < counts_.size(); ++slot) {
      const std::string& name = scope.names[slot];
      if (counts_[slot] != 1 || first_[slot].line == 0 || name[0] == '_') continue;
      return Error(first_[slot],
                   fmt::format("'{}' occurs nowhere else: a misspelt name, or one to write as _ or _{}", name, name));
    }
    return absl::OkStatus();
  }

 private:
  void AddVariable(int slot, const SourcePosition& position) {
    if (slot < 0) return;
    if (++counts_[static_cast<size_t>(slot)] == 1) first_[static_cast<size_t>(slot)] = position;
  }

  std::vector<int> counts_;
  std::vector<SourcePosition> first_;  // of variables of the pattern and of let
};

absl::Status CheckMentions(const Rule& rule) {
  Mentions mentions(rule.scope);
  for (size_t i = 0; i < rule.inputs.size(); ++i) mentions.Add(static_cast<int>(i));
  for (const MatchStatement& statement : rule.match) {
    for (const std::string& name : statement.names) {
      if (const int slot = rule.scope.Find(name); slot >= 0) mentions.Add(slot);
    }
    mentions.Add(*statement.pattern);
  }
  for (const Condition& condition : rule.where) mentions.Add(condition);
  for (const EmitStatement& statement : rule.emit) mentions.Add(statement.value);
  return mentions.Check(rule.scope);
}

absl::Status CheckMentions(const Definition& definition) {
  for (const Definition::Alternative& alternative : definition.alternatives) {
    Mentions mentions(definition.scope);
    // The parameters and `result` are there for others.
    for (int slot = 0; slot <= definition.result_slot; ++slot) mentions.Add(slot);
    mentions.Add(*alternative.pattern);
    for (const Condition& condition : alternative.conditions) mentions.Add(condition);
    RETURN_IF_ERROR(mentions.Check(definition.scope));
  }
  return absl::OkStatus();
}

// Finds a definition that stands at the head of itself: without an operator between, matching it would not
// end.
class SelfReference {
 public:
  explicit SelfReference(const std::vector<Definition>& definitions)
      : definitions_(definitions), state_(definitions.size(), State::kNew) {}

  bool Reaches(size_t index) {
    if (state_[index] == State::kOpen) return true;
    if (state_[index] == State::kDone) return false;
    state_[index] = State::kOpen;
    for (const auto& alternative : definitions_[index].alternatives) {
      if (Head(*alternative.pattern)) return true;
    }
    state_[index] = State::kDone;
    return false;
  }

 private:
  enum class State { kNew, kOpen, kDone };

  bool Head(const Pattern& pattern) {
    if (pattern.kind == Pattern::Kind::kAlternatives) {
      return std::any_of(pattern.arguments.begin(), pattern.arguments.end(),
                         [&](const PatternPointer& argument) { return Head(*argument); });
    }
    if (pattern.kind != Pattern::Kind::kDefinition) return false;
    if (Reaches(static_cast<size_t>(pattern.definition))) return true;
    // An argument stands at the head too where the definition can be the bare parameter.
    const Definition& used = definitions_[static_cast<size_t>(pattern.definition)];
    for (size_t i = 0; i < pattern.arguments.size(); ++i) {
      const bool bare = std::any_of(used.alternatives.begin(), used.alternatives.end(), [&](const auto& one) {
        return one.pattern->kind == Pattern::Kind::kVariable && one.pattern->name == used.parameters[i].name;
      });
      if ((bare || (pattern.optional && i == 0)) && Head(*pattern.arguments[i])) return true;
    }
    return false;
  }

  const std::vector<Definition>& definitions_;
  std::vector<State> state_;
};

// Of the construct that an annotation names; "" where it is not written.
absl::Status CheckConstruct(const std::string& construct, const SourcePosition& position) {
  if (construct.empty() || Constructs().contains(construct)) return absl::OkStatus();
  std::vector<std::string_view> known(Constructs().begin(), Constructs().end());
  std::sort(known.begin(), known.end());
  return Error(position,
               fmt::format("'{}' is neither a kind nor a declared construct; there are {}", construct, fmt::join(known, ", ")));
}

absl::Status CheckAnnotations(const absl::flat_hash_set<std::string>& kinds, const Rule& rule) {
  if (rule.kind_position.line > 0 && FindSiteKind(rule.kind) == nullptr && !kinds.contains(rule.kind) &&
      !Constructs().contains(rule.kind)) {
    std::vector<std::string> names;
    for (const SiteKind& kind : SiteKinds()) names.push_back(kind.name);
    return Error(rule.kind_position,
                 fmt::format("'{}' is neither a kind nor a rule; the kinds are {}", rule.kind, fmt::join(names, ", ")));
  }
  if (!rule.ge_construct.empty() && rule.no_ge_pass) {
    return Error(rule.ge_construct_position, "ge_construct names what a pass of GE builds, and no_ge_pass says that none does");
  }
  RETURN_IF_ERROR(CheckConstruct(rule.ge_construct, rule.ge_construct_position));
  return CheckConstruct(rule.joined_by_ge, rule.joined_by_ge_position);
}

// The names on the left of match: each once, and none of the inputs.
absl::Status NameStatements(Rule* rule) {
  for (size_t i = 0; i < rule->match.size(); ++i) {
    const MatchStatement& statement = rule->match[i];
    for (size_t k = 0; k < statement.names.size(); ++k) {
      if (statement.names[k] == "_") continue;
      const size_t slot = static_cast<size_t>(rule->scope.Add(statement.names[k]));
      if (rule->scope.statement[slot] >= 0 || slot < rule->inputs.size()) {
        return Error(statement.position, fmt::format("'{}' is named twice", statement.names[k]));
      }
      rule->scope.statement[slot] = static_cast<int>(i);
      rule->scope.output[slot] = static_cast<int>(k);
    }
  }
  return absl::OkStatus();
}

bool MentionsVariable(const Pattern& pattern, const std::string& name) {
  if (pattern.kind == Pattern::Kind::kVariable && pattern.name == name) return true;
  return std::any_of(pattern.arguments.begin(), pattern.arguments.end(),
                     [&](const PatternPointer& argument) { return MentionsVariable(*argument, name); });
}

// Outputs are computed by a line of match, inputs occur in one.
absl::Status CheckInputsAndOutputs(const Rule& rule) {
  for (const std::string& output : rule.outputs) {
    const int slot = rule.scope.Find(output);
    if (slot < 0 || rule.scope.statement[static_cast<size_t>(slot)] < 0) {
      return Error(rule.position, fmt::format("no line of match computes the output '{}'", output));
    }
  }
  if (rule.outputs.empty()) return Error(rule.position, "a rule needs an output");
  for (const Parameter& input : rule.inputs) {
    const bool used = std::any_of(rule.match.begin(), rule.match.end(), [&](const MatchStatement& statement) {
      return MentionsVariable(*statement.pattern, input.name);
    });
    if (!used) return Error(rule.position, fmt::format("the input '{}' occurs nowhere in match", input.name));
  }
  return absl::OkStatus();
}

absl::Status CheckEmission(Rule* rule) {
  absl::flat_hash_set<std::string> emitted;
  for (EmitStatement& statement : rule->emit) {
    RETURN_IF_ERROR(CheckExpression(&statement.value, &rule->scope, false, true));
    for (const std::string& name : statement.names) {
      if (name == "_") continue;
      emitted.insert(name);
      rule->scope.Add(name);
    }
  }
  if (rule->emit.empty()) return absl::OkStatus();
  for (const std::string& output : rule->outputs) {
    if (!emitted.contains(output)) {
      return Error(rule->position, fmt::format("emit does not compute the output '{}'", output));
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckOperator(const SourcePosition& position, const std::string& domain, const std::string& op_type,
                           const std::vector<std::string>& attributes, int arguments) {
  // RuleSet::Load has checked these against their declarations (patterns/language/operator_check.h).
  if (domain == "npu" || domain == "ascend_fuse") return absl::OkStatus();
  // A rule may name an operator of any version.
  const absl::Span<const Schema> versions = SchemaVersions(domain, op_type);
  if (versions.empty()) {
    return Error(position, fmt::format("unknown operator or definition '{}{}{}'", domain, domain.empty() ? "" : ".", op_type));
  }
  for (const std::string& attribute : attributes) {
    const bool known = std::any_of(versions.begin(), versions.end(), [&](const Schema& schema) {
      return schema.FindAttribute(attribute) != nullptr || schema.FindInput(attribute) >= 0;
    });
    if (!known) {
      return Error(position, fmt::format("{} has no attribute or input '{}' at any opset", op_type, attribute));
    }
  }
  int most = 0;
  for (const Schema& schema : versions) {
    const bool variadic = !schema.inputs.empty() && schema.inputs.back().variadic;
    most = std::max(most, variadic ? 1 << 20 : static_cast<int>(schema.inputs.size()));
  }
  if (arguments > most) {
    return Error(position, fmt::format("{} takes at most {} inputs, {} given", op_type, most, arguments));
  }
  return absl::OkStatus();
}

std::string ArgumentCount(size_t least, size_t most) {
  if (least != most) return fmt::format("{} to {} arguments", least, most);
  return fmt::format("{} argument{}", most, most == 1 ? "" : "s");
}

absl::Status CheckExpression(Expression* expression, Scope* scope, bool may_bind, bool may_build) {
  switch (expression->kind) {
    case Expression::Kind::kName:
      if (IsKeyword(expression->text)) return absl::OkStatus();
      expression->slot = scope->Find(expression->text);
      if (expression->slot < 0) {
        if (!may_bind) return Error(expression->position, fmt::format("unknown name '{}'", expression->text));
        expression->slot = scope->Add(expression->text);
      }
      return absl::OkStatus();
    case Expression::Kind::kCall: {
      expression->function = FindFunction(expression->text);
      if (expression->function < 0) {
        return Error(expression->position, fmt::format("unknown function '{}'", expression->text));
      }
      const FunctionRow& row = Functions()[static_cast<size_t>(expression->function)];
      const int count = static_cast<int>(expression->arguments.size());
      if (count < row.minimum_arguments || count > row.maximum_arguments) {
        const std::string takes =
            ArgumentCount(static_cast<size_t>(row.minimum_arguments), static_cast<size_t>(row.maximum_arguments));
        return Error(expression->position, fmt::format("{} takes {}, {} given", row.name, takes, count));
      }
      for (size_t i = 0; i < expression->arguments.size(); ++i) {
        const Expression& argument = expression->arguments[i];
        if (std::string why = Misfit(row, i, argument); !why.empty()) return Error(argument.position, why);
      }
      if (expression->optional && count == 0) {
        return Error(expression->position, fmt::format("'{}?' needs a first argument", row.name));
      }
      break;
    }
    case Expression::Kind::kOperator: {
      if (!may_build) {
        return Error(expression->position,
                     fmt::format("'{}' builds a node; nodes can be built in let and emit only", expression->text));
      }
      if (expression->optional && expression->arguments.size() != 2) {
        return Error(expression->position,
                     fmt::format("'{}?': only an operator of two operands can do without one", expression->text));
      }
      std::vector<std::string> names;
      for (auto& attribute : expression->attributes) {
        names.push_back(attribute.name);
        RETURN_IF_ERROR(CheckExpression(&attribute.value, scope, false, false));
      }
      RETURN_IF_ERROR(CheckOperator(expression->position, expression->domain, expression->text, names,
                                    static_cast<int>(expression->arguments.size())));
      break;
    }
    default:
      break;
  }
  for (Expression& argument : expression->arguments) {
    const bool list = expression->kind == Expression::Kind::kList;
    RETURN_IF_ERROR(CheckExpression(&argument, scope, may_bind && list, may_build));
  }
  return absl::OkStatus();
}

absl::Status CheckDefinitions(const DefinitionIndex& index, size_t first, std::vector<Definition>* definitions) {
  for (size_t d = first; d < definitions->size(); ++d) {
    Definition& definition = (*definitions)[d];
    for (const Parameter& parameter : definition.parameters) definition.scope.Add(parameter.name);
    definition.result_slot = definition.scope.Add("result");
    for (Parameter& parameter : definition.parameters) {
      if (!parameter.has_default) continue;
      RETURN_IF_ERROR(CheckExpression(&parameter.default_value, &definition.scope, false, false));
    }
    PatternChecker checker(index, *definitions, &definition.scope);
    for (Definition::Alternative& alternative : definition.alternatives) {
      RETURN_IF_ERROR(checker.Check(alternative.pattern.get()));
      for (Condition& condition : alternative.conditions) {
        RETURN_IF_ERROR(CheckCondition(&condition, &definition.scope));
      }
    }
    RETURN_IF_ERROR(CheckMentions(definition));
  }
  SelfReference self(*definitions);
  for (size_t i = first; i < definitions->size(); ++i) {
    if (self.Reaches(i)) {
      return Error((*definitions)[i].position, fmt::format("'{}' is defined by itself", (*definitions)[i].name));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckRule(const DefinitionIndex& index, const std::vector<Definition>& definitions,
                       const absl::flat_hash_set<std::string>& kinds, Rule* rule) {
  RETURN_IF_ERROR(CheckAnnotations(kinds, *rule));
  for (const Parameter& input : rule->inputs) rule->scope.Add(input.name);
  if (rule->match.empty()) return Error(rule->position, fmt::format("rule {} matches nothing", rule->name));
  RETURN_IF_ERROR(NameStatements(rule));
  PatternChecker checker(index, definitions, &rule->scope);
  for (MatchStatement& statement : rule->match) {
    RETURN_IF_ERROR(checker.Check(statement.pattern.get()));
    if (statement.names.size() > 1 && statement.pattern->kind != Pattern::Kind::kOperator) {
      return Error(statement.position, "only one operator, not a definition, can have several outputs");
    }
  }
  RETURN_IF_ERROR(CheckInputsAndOutputs(*rule));
  for (Condition& condition : rule->where) {
    RETURN_IF_ERROR(CheckCondition(&condition, &rule->scope));
  }
  RETURN_IF_ERROR(CheckEmission(rule));
  return CheckMentions(*rule);
}

}  // namespace ascend_fuse
