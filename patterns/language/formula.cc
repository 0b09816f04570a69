#include "patterns/language/formula.h"

#include <algorithm>
#include <iterator>

#include "fmt/format.h"
#include "fmt/ranges.h"
#include "ir/status_macros.h"
#include "patterns/functions/functions.h"
#include "patterns/language/checker.h"

namespace ascend_fuse {
namespace {

absl::Status ErrorAt(const SourcePosition& position, const std::string& sentence) {
  return absl::InvalidArgumentError(fmt::format("{}: {}", position.ToString(), sentence));
}

template <typename Visit>
void VisitAll(Expression& expression, const Visit& visit) {
  visit(expression);
  for (Expression& argument : expression.arguments) VisitAll(argument, visit);
  for (auto& attribute : expression.attributes) VisitAll(attribute.value, visit);
}

int CountParts(const Expression& expression) {
  int count = 0;
  VisitAll(const_cast<Expression&>(expression), [&count](Expression&) { ++count; });
  return count;
}

// What may be written several times: it costs nothing and stands for itself.
bool IsPlain(const Expression& expression) {
  return expression.kind == Expression::Kind::kName || expression.kind == Expression::Kind::kNumber ||
         expression.kind == Expression::Kind::kString;
}

Expression NameExpression(const std::string& name, const SourcePosition& position) {
  Expression expression;
  expression.kind = Expression::Kind::kName;
  expression.text = name;
  expression.position = position;
  return expression;
}

// Every name of `names` becomes the expression beside it.
void Substitute(const std::vector<std::pair<std::string, Expression>>& names, Expression* expression) {
  if (expression->kind == Expression::Kind::kName) {
    for (const auto& [name, replacement] : names) {
      if (expression->text != name) continue;
      *expression = Expression(replacement);
      return;
    }
    return;
  }
  for (Expression& argument : expression->arguments) Substitute(names, &argument);
  for (auto& attribute : expression->attributes) Substitute(names, &attribute.value);
}

}  // namespace

FormulaExpander::FormulaExpander(const std::vector<Formula>& formulas, const std::vector<WordTable>& tables)
    : formulas_(formulas), tables_(tables), expanded_(formulas.size()) {
  for (size_t i = 0; i < formulas.size(); ++i) formula_index_[formulas[i].name] = i;
  for (size_t i = 0; i < tables.size(); ++i) table_index_[tables[i].name] = i;
}

// No name of a rule can contain "@".
std::string FormulaExpander::Fresh(const std::string& name) {
  return fmt::format("{}@{}", name.substr(0, name.find('@')), ++fresh_);
}

absl::Status FormulaExpander::Expand(std::vector<Condition>* conditions) {
  std::vector<Condition> expanded;
  expanded.reserve(conditions->size());
  for (Condition& condition : *conditions) {
    Bindings lets;
    RETURN_IF_ERROR(Expand(&condition.left, &lets));
    RETURN_IF_ERROR(Expand(&condition.right, &lets));
    for (auto& [name, value] : lets) {
      Condition let;
      let.relation = Condition::Relation::kLet;
      let.position = value.position;
      let.source = condition.source;
      let.left = NameExpression(name, value.position);
      let.right = std::move(value);
      expanded.push_back(std::move(let));
    }
    expanded.push_back(std::move(condition));
  }
  *conditions = std::move(expanded);
  return absl::OkStatus();
}

absl::Status FormulaExpander::Expand(Definition* definition) {
  for (Definition::Alternative& alternative : definition->alternatives) {
    RETURN_IF_ERROR(Expand(&alternative.conditions));
  }
  return absl::OkStatus();
}

absl::Status FormulaExpander::Expand(Rule* rule) {
  RETURN_IF_ERROR(Expand(&rule->where));
  std::vector<EmitStatement> expanded;
  expanded.reserve(rule->emit.size());
  for (EmitStatement& statement : rule->emit) {
    Bindings lets;
    RETURN_IF_ERROR(Expand(&statement.value, &lets));
    for (auto& [name, value] : lets) {
      const SourcePosition position = value.position;
      expanded.push_back({{std::move(name)}, std::move(value), position});
    }
    expanded.push_back(std::move(statement));
  }
  rule->emit = std::move(expanded);
  return absl::OkStatus();
}

absl::Status FormulaExpander::Expand(Expression* expression, Bindings* lets) {
  for (Expression& argument : expression->arguments) {
    RETURN_IF_ERROR(Expand(&argument, lets));
  }
  for (auto& attribute : expression->attributes) {
    RETURN_IF_ERROR(Expand(&attribute.value, lets));
  }
  if (expression->kind != Expression::Kind::kCall) return absl::OkStatus();
  if (const auto table = table_index_.find(expression->text); table != table_index_.end()) {
    return UseTable(tables_[table->second], expression);
  }
  if (const auto formula = formula_index_.find(expression->text); formula != formula_index_.end()) {
    return UseFormula(formula->second, expression, lets);
  }
  return absl::OkStatus();
}

// The uses of other formulas inside one, once for all its own uses.
absl::Status FormulaExpander::ExpandFormula(size_t index) {
  Expanded& expanded = expanded_[index];
  if (expanded.state == Expanded::State::kDone) return absl::OkStatus();
  const Formula& formula = formulas_[index];
  if (expanded.state == Expanded::State::kOpen) {
    return ErrorAt(formula.position, fmt::format("'{}' is defined by itself", formula.name));
  }
  expanded.state = Expanded::State::kOpen;
  expanded.value = formula.value;
  RETURN_IF_ERROR(Expand(&expanded.value, &expanded.lets));
  expanded.parts = CountParts(expanded.value);
  for (const auto& let : expanded.lets) expanded.parts += CountParts(let.second);
  if (expanded.parts > kMaximumParts) {
    return ErrorAt(formula.position,
                   fmt::format("'{}' has more than {} parts when it is written out", formula.name, kMaximumParts));
  }
  expanded.state = Expanded::State::kDone;
  return absl::OkStatus();
}

absl::Status FormulaExpander::UseFormula(size_t index, Expression* call, Bindings* lets) {
  RETURN_IF_ERROR(ExpandFormula(index));
  const Formula& formula = formulas_[index];
  const Expanded& expanded = expanded_[index];
  const size_t given = call->arguments.size();
  const size_t needed = static_cast<size_t>(
      std::count_if(formula.parameters.begin(), formula.parameters.end(), [](const Parameter& p) { return !p.has_default; }));
  if (given < needed || given > formula.parameters.size()) {
    return ErrorAt(call->position, fmt::format("{}, defined at {}, takes {}, {} given", formula.name, formula.position.ToString(),
                                               ArgumentCount(needed, formula.parameters.size()), given));
  }
  if (call->optional) {
    return ErrorAt(call->position, fmt::format("'{}?': only a function or an operator can be left out", formula.name));
  }
  std::vector<int> uses(formula.parameters.size(), 0);
  auto count = [&](Expression& part) {
    if (part.kind != Expression::Kind::kName) return;
    for (size_t i = 0; i < uses.size(); ++i) uses[i] += formula.parameters[i].name == part.text ? 1 : 0;
  };
  VisitAll(const_cast<Expression&>(expanded.value), count);
  for (const auto& let : expanded.lets) VisitAll(const_cast<Expression&>(let.second), count);
  Bindings names;
  for (size_t i = 0; i < formula.parameters.size(); ++i) {
    Expression argument = formula.parameters[i].default_value;
    if (i < given) argument = std::move(call->arguments[i]);
    if (uses[i] > 1 && !IsPlain(argument)) {
      const std::string fresh = Fresh(formula.parameters[i].name);
      const SourcePosition position = argument.position;
      lets->emplace_back(fresh, std::move(argument));
      argument = NameExpression(fresh, position);
    }
    names.emplace_back(formula.parameters[i].name, std::move(argument));
  }
  for (const auto& [name, value] : expanded.lets) {
    Expression part = value;
    Substitute(names, &part);
    const std::string fresh = Fresh(name);
    names.emplace_back(name, NameExpression(fresh, part.position));
    lets->emplace_back(fresh, std::move(part));
  }
  Expression value = expanded.value;
  Substitute(names, &value);
  *call = std::move(value);
  return absl::OkStatus();
}

// word (a) becomes translated (a, "word", ["key", "meaning", ...]).
absl::Status FormulaExpander::UseTable(const WordTable& table, Expression* call) const {
  if (call->arguments.size() != 1) {
    return ErrorAt(call->position, fmt::format("the table {} takes 1 argument, {} given", table.name, call->arguments.size()));
  }
  auto text = [call](const std::string& words) {
    Expression expression;
    expression.kind = Expression::Kind::kString;
    expression.position = call->position;
    expression.text = words;
    return expression;
  };
  if (call->arguments[0].kind == Expression::Kind::kString) {
    for (const auto& [word, meaning] : table.words) {
      if (word != call->arguments[0].text) continue;
      *call = Expression(meaning);
      return absl::OkStatus();
    }
    return ErrorAt(call->position, fmt::format("the table {} has no word \"{}\"", table.name, call->arguments[0].text));
  }
  call->text = "translated";
  call->arguments.push_back(text(table.name));
  Expression words;
  words.kind = Expression::Kind::kList;
  words.position = call->position;
  for (const auto& [word, meaning] : table.words) {
    words.arguments.push_back(text(word));
    words.arguments.push_back(meaning);
  }
  call->arguments.push_back(std::move(words));
  return absl::OkStatus();
}

absl::Status FormulaExpander::CheckNames() const {
  for (const Formula& formula : formulas_) {
    if (FindFunction(formula.name) < 0) continue;
    return ErrorAt(formula.position,
                   fmt::format("'{}' is a function that rules call; give the definition another name", formula.name));
  }
  return absl::OkStatus();
}

absl::Status FormulaExpander::CheckAll() {
  for (size_t i = 0; i < formulas_.size(); ++i) {
    RETURN_IF_ERROR(ExpandFormula(i));
    const Formula& formula = formulas_[i];
    const Expanded& expanded = expanded_[i];
    Scope scope;
    for (const Parameter& parameter : formula.parameters) scope.Add(parameter.name);
    for (const auto& let : expanded.lets) {
      Expression copy = let.second;
      RETURN_IF_ERROR(CheckExpression(&copy, &scope, false, true));
      scope.Add(let.first);
    }
    Expression copy = expanded.value;
    RETURN_IF_ERROR(CheckExpression(&copy, &scope, false, true));
  }
  return absl::OkStatus();
}

}  // namespace ascend_fuse
