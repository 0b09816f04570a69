#include "patterns/language/operator_check.h"

#include <algorithm>
#include <cstdlib>
#include <string_view>
#include <utility>

#include "absl/functional/function_ref.h"
#include "fmt/format.h"
#include "fmt/ranges.h"
#include "ir/status_macros.h"
#include "patterns/operators/declarations.h"

namespace ascend_fuse {

// A place in a rule where an operator is matched or made.
struct OperatorCheck::Use {
  struct Attribute {
    std::string_view name;
    const Expression* value = nullptr;
    SourcePosition position;
  };
  std::string_view domain;
  std::string_view op_type;
  SourcePosition position;
  size_t operands = 0;
  size_t outputs = 0;
  std::vector<Attribute> attributes;
  bool made = false;  // by let or emit; else matched

  std::string name() const { return fmt::format("{}.{}", domain, op_type); }
};

namespace {

template <typename... Args>
absl::Status Error(const SourcePosition& position, fmt::format_string<Args...> format, Args&&... args) {
  return absl::InvalidArgumentError(fmt::format("{}: {}", position.ToString(), fmt::format(format, std::forward<Args>(args)...)));
}

bool IsDeclaredDomain(std::string_view domain) { return domain == "npu" || domain == "ascend_fuse"; }

using PatternVisitor = absl::FunctionRef<absl::Status(const Pattern&, size_t outputs)>;
using ExpressionVisitor = absl::FunctionRef<absl::Status(const Expression&, size_t outputs)>;

// Every operator of the two domains in a pattern; `outputs` is how many of the outermost one have names.
absl::Status Visit(const Pattern& pattern, size_t outputs, PatternVisitor visitor) {
  const bool is_operator = pattern.kind == Pattern::Kind::kOperator || pattern.kind == Pattern::Kind::kDefinition;
  if (is_operator && IsDeclaredDomain(pattern.domain)) {
    RETURN_IF_ERROR(visitor(pattern, outputs));
  }
  for (const PatternPointer& argument : pattern.arguments) {
    const size_t of_argument = pattern.kind == Pattern::Kind::kAlternatives ? outputs : 1;
    RETURN_IF_ERROR(Visit(*argument, of_argument, visitor));
  }
  return absl::OkStatus();
}

absl::Status Visit(const Expression& expression, size_t outputs, ExpressionVisitor visitor) {
  if (expression.kind == Expression::Kind::kOperator && IsDeclaredDomain(expression.domain)) {
    RETURN_IF_ERROR(visitor(expression, outputs));
  }
  for (const Expression& argument : expression.arguments) {
    RETURN_IF_ERROR(Visit(argument, 1, visitor));
  }
  return absl::OkStatus();
}

absl::Status Visit(const std::vector<Definition>& definitions, const std::vector<Rule>& rules, PatternVisitor on_pattern,
                   ExpressionVisitor on_expression) {
  const auto conditions = [&](const std::vector<Condition>& lines) -> absl::Status {
    for (const Condition& line : lines) {
      RETURN_IF_ERROR(Visit(line.left, 1, on_expression));
      RETURN_IF_ERROR(Visit(line.right, 1, on_expression));
    }
    return absl::OkStatus();
  };
  for (const Definition& definition : definitions) {
    for (const Definition::Alternative& alternative : definition.alternatives) {
      RETURN_IF_ERROR(Visit(*alternative.pattern, 1, on_pattern));
      RETURN_IF_ERROR(conditions(alternative.conditions));
    }
  }
  for (const Rule& rule : rules) {
    for (const MatchStatement& statement : rule.match) {
      RETURN_IF_ERROR(Visit(*statement.pattern, statement.names.size(), on_pattern));
    }
    RETURN_IF_ERROR(conditions(rule.where));
    for (const EmitStatement& statement : rule.emit) {
      RETURN_IF_ERROR(Visit(statement.value, statement.names.size(), on_expression));
    }
  }
  return absl::OkStatus();
}

const char* TypeWord(AttributeType type) {
  return type == AttributeType::kString ? "a text" : type == AttributeType::kFloat ? "a number" : "an integer";
}

// Whether a literal can be the value of the attribute; what is computed can be.
bool Takes(const DeclaredAttribute& attribute, const Expression& value) {
  const bool text = value.kind == Expression::Kind::kString;
  const bool number = value.kind == Expression::Kind::kNumber;
  if (!text && !number) return value.kind != Expression::Kind::kList;
  if (text != (attribute.type == AttributeType::kString)) return false;
  if (attribute.type == AttributeType::kInt && !value.is_integer) return false;
  if (attribute.only.empty()) return true;
  return std::any_of(attribute.only.begin(), attribute.only.end(), [&](const std::string& word) {
    return text ? word == value.text : std::strtod(word.c_str(), nullptr) == value.number;
  });
}

std::string Written(const Expression& value) {
  if (value.kind == Expression::Kind::kString) return fmt::format("\"{}\"", value.text);
  return value.kind == Expression::Kind::kNumber ? fmt::format("{}", value.number) : "a list";
}

std::vector<std::string_view> NamesOf(const std::vector<DeclaredAttribute>& attributes) {
  std::vector<std::string_view> names;
  for (const DeclaredAttribute& attribute : attributes) names.push_back(attribute.name);
  return names;
}

}  // namespace

OperatorCheck::Use OperatorCheck::UseOf(const Pattern& pattern, size_t outputs) {
  Use use{pattern.domain, pattern.name, pattern.position, pattern.arguments.size(), outputs, {}, false};
  for (const AttributePattern& attribute : pattern.attributes) {
    use.attributes.push_back({attribute.name, &attribute.value, attribute.position});
  }
  return use;
}

OperatorCheck::Use OperatorCheck::UseOf(const Expression& expression, size_t outputs) {
  Use use{expression.domain, expression.text, expression.position, expression.arguments.size(), outputs, {}, true};
  for (const Expression::NamedExpression& attribute : expression.attributes) {
    use.attributes.push_back({attribute.name, &attribute.value, attribute.value.position});
  }
  return use;
}

void OperatorCheck::Note(const Use& use) {
  if (FindDeclaredOperator(use.domain, use.op_type) != nullptr) return;
  OwnOperator& own = own_[use.name()];
  own.matched = own.matched || !use.made;
  own.made = own.made || use.made;
  if (!use.made) return;
  own.operands = std::max(own.operands, use.operands);
  for (const Use::Attribute& attribute : use.attributes) own.attributes.insert(std::string(attribute.name));
}

void OperatorCheck::AddOfUser(const std::vector<Definition>& definitions, const std::vector<Rule>& rules) {
  const auto noted = [this](const Use& use) {
    Note(use);
    return absl::OkStatus();
  };
  Visit(
      definitions, rules, [&](const Pattern& pattern, size_t outputs) { return noted(UseOf(pattern, outputs)); },
      [&](const Expression& expression, size_t outputs) { return noted(UseOf(expression, outputs)); })
      .IgnoreError();
}

absl::Status OperatorCheck::Check(const std::vector<Definition>& definitions, const std::vector<Rule>& rules) const {
  return Visit(
      definitions, rules, [&](const Pattern& pattern, size_t outputs) { return CheckUse(UseOf(pattern, outputs)); },
      [&](const Expression& expression, size_t outputs) { return CheckUse(UseOf(expression, outputs)); });
}

absl::Status OperatorCheck::CheckUse(const Use& use) const {
  const DeclaredOperator* op = FindDeclaredOperator(use.domain, use.op_type);
  if (op == nullptr) return CheckOwn(use);
  for (const Use::Attribute& attribute : use.attributes) {
    const DeclaredAttribute* declared = op->FindAttribute(attribute.name);
    if (declared == nullptr) {
      return Error(attribute.position, "{} has no attribute '{}'{}{}", op->name, attribute.name,
                   op->attributes.empty() ? "" : "; it has ", fmt::join(NamesOf(op->attributes), ", "));
    }
    if (Takes(*declared, *attribute.value)) continue;
    return Error(attribute.position, "{} of {} is {}{}{}, not {}", declared->name, op->name, TypeWord(declared->type),
                 declared->only.empty() ? "" : " of ", fmt::join(declared->only, ", "), Written(*attribute.value));
  }
  if (op->rows.empty()) return absl::OkStatus();
  const SignaturePattern& signature = op->rows[0].signature;
  size_t least = 0;
  for (size_t i = 0; i < signature.inputs.size(); ++i) {
    if (!signature.inputs[i].optional) least = i + 1;
  }
  if (use.operands < least || use.operands > signature.inputs.size()) {
    const std::string wanted =
        least == signature.inputs.size() ? fmt::format("{}", least) : fmt::format("{} to {}", least, signature.inputs.size());
    return Error(use.position, "{} takes {} operands, {} given: {}", op->name, wanted, use.operands, op->rows[0].text);
  }
  if (use.outputs > signature.outputs.size()) {
    return Error(use.position, "{} has {} outputs, {} named: {}", op->name, signature.outputs.size(), use.outputs,
                 op->rows[0].text);
  }
  return absl::OkStatus();
}

absl::Status OperatorCheck::CheckOwn(const Use& use) const {
  const auto found = own_.find(use.name());
  const bool matched = found != own_.end() && found->second.matched;
  const bool made = found != own_.end() && found->second.made;
  if (!made || !matched) {
    return Error(use.position,
                 "unknown operator '{}': it is not among those of docs/operators.md, and no rule of a user {} it too", use.name(),
                 use.made ? "matches" : "makes");
  }
  if (use.made) return absl::OkStatus();
  const OwnOperator& own = found->second;
  for (const Use::Attribute& attribute : use.attributes) {
    if (own.attributes.contains(std::string(attribute.name))) continue;
    return Error(attribute.position, "no rule makes a {} with an attribute '{}'", use.name(), attribute.name);
  }
  if (use.operands > own.operands) {
    return Error(use.position, "{} has {} operands, and no rule makes one with more than {}", use.name(), use.operands,
                 own.operands);
  }
  return absl::OkStatus();
}

}  // namespace ascend_fuse
