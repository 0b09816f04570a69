// The matcher's expressions: what one is worth with the names bound so far, and how it is made equal to a term.
#include <cmath>
#include <limits>

#include "fmt/format.h"
#include "ir/status_macros.h"
#include "ir/whole_number.h"
#include "patterns/functions/functions.h"
#include "patterns/language/matcher.h"

namespace ascend_fuse {
namespace {

// left + right, or with another operation; of numbers and dims.
absl::StatusOr<Term> Arithmetic(const FunctionContext& context, std::string_view operation, const Term& left, const Term& right) {
  const char op = operation[0];
  if (left.kind == Term::Kind::kNumber && right.kind == Term::Kind::kNumber) {
    const double a = left.number;
    const double b = right.number;
    if (op == '/' && b == 0) return absl::InvalidArgumentError("a division by 0");
    Term term = Term::Number(op == '+' ? a + b : op == '-' ? a - b : op == '*' ? a * b : a / b);
    term.is_integer = left.is_integer && right.is_integer && term.number == std::floor(term.number);
    return term;
  }
  const Dim a = AsDim(left);
  const Dim b = AsDim(right);
  DimTable& dims = *context.dims;
  const Dim result = op == '+' ? dims.Add(a, b) : op == '-' ? dims.Sub(a, b) : op == '*' ? dims.Mul(a, b) : dims.ExactDiv(a, b);
  if (!result.known()) {
    return absl::InvalidArgumentError(
        fmt::format("{} {} {} is not known", DescribeTerm(context, left), operation, DescribeTerm(context, right)));
  }
  return result.is_number() ? Term::Integer(result.number()) : Term::Of(result);
}

}  // namespace

bool Matcher::Unify(const Expression& expression, Frame* frame, const Term& term, Next next) {
  switch (expression.kind) {
    case Expression::Kind::kWildcard:
      return next();
    case Expression::Kind::kName:
      if (expression.slot >= 0 && !frame->terms[expression.slot].bound()) {
        return Deliver(frame, expression.slot, term, next);
      }
      break;
    case Expression::Kind::kList:
      if (term.kind != Term::Kind::kList) return false;
      return UnifyList(expression, 0, frame, *term.list, 0, next);
    default:
      break;
  }
  const absl::StatusOr<Term> value = Evaluate(expression, frame);
  return value.ok() && EqualTerms(context_, *value, term) && next();
}

bool Matcher::UnifyList(const Expression& list, size_t index, Frame* frame, const std::vector<Term>& items, size_t item,
                        Next next) {
  if (index == list.arguments.size()) return item == items.size() && next();
  const Expression& expression = list.arguments[index];
  if (expression.kind == Expression::Kind::kEllipsis) {
    const size_t after = list.arguments.size() - index - 1;
    if (items.size() - item < after) return false;
    return UnifyList(list, index + 1, frame, items, items.size() - after, next);
  }
  if (item >= items.size()) return false;
  return Unify(expression, frame, items[item], [&] { return UnifyList(list, index + 1, frame, items, item + 1, next); });
}

absl::StatusOr<Term> Matcher::Evaluate(const Expression& expression, Frame* frame) {
  switch (expression.kind) {
    case Expression::Kind::kNumber:
      return expression.is_integer ? Term::Integer(WholeNumber(expression.number)) : Term::Number(expression.number);
    case Expression::Kind::kString:
      return Term::Text(expression.text);
    case Expression::Kind::kName: {
      if (expression.slot < 0) {
        if (expression.text == "true") return Term::Integer(1);
        if (expression.text == "false") return Term::Integer(0);
        if (expression.text == "infinity") return Term::Number(std::numeric_limits<double>::infinity());
        return Term::Of(DataTypeFromName(expression.text));
      }
      const Term& term = frame->terms[expression.slot];
      if (!term.bound()) {
        return absl::FailedPreconditionError(fmt::format("'{}' has no value here", expression.text));
      }
      return term;
    }
    case Expression::Kind::kWildcard:
    case Expression::Kind::kEllipsis:
      return absl::FailedPreconditionError("_ and ... have no value");
    case Expression::Kind::kList: {
      std::vector<Term> items;
      for (const Expression& argument : expression.arguments) {
        ASSIGN_OR_RETURN(Term && item, Evaluate(argument, frame));
        items.push_back(std::move(item));
      }
      return Term::List(std::move(items));
    }
    case Expression::Kind::kCall: {
      std::vector<Term> arguments;
      for (const Expression& argument : expression.arguments) {
        ASSIGN_OR_RETURN(Term && item, Evaluate(argument, frame));
        arguments.push_back(std::move(item));
      }
      if (expression.optional && arguments[0].kind == Term::Kind::kAbsent) return Term::Absent();
      return Functions()[expression.function].call(context_, arguments);
    }
    case Expression::Kind::kUnary: {
      ASSIGN_OR_RETURN(const Term& operand, Evaluate(expression.arguments[0], frame));
      if (operand.kind == Term::Kind::kNumber) {
        Term term = operand;
        term.number = -term.number;
        return term;
      }
      return absl::InvalidArgumentError("only a number can be negated");
    }
    case Expression::Kind::kBinary: {
      ASSIGN_OR_RETURN(const Term& left, Evaluate(expression.arguments[0], frame));
      ASSIGN_OR_RETURN(const Term& right, Evaluate(expression.arguments[1], frame));
      return Arithmetic(context_, expression.text, left, right);
    }
    case Expression::Kind::kOperator: {
      DeferredNode node;
      node.domain = expression.domain;
      node.op_type = expression.text;
      for (const auto& attribute : expression.attributes) {
        ASSIGN_OR_RETURN(Term && value, Evaluate(attribute.value, frame));
        node.attributes.emplace_back(attribute.name, std::move(value));
      }
      for (const Expression& argument : expression.arguments) {
        ASSIGN_OR_RETURN(Term && value, Evaluate(argument, frame));
        node.inputs.push_back(std::move(value));
      }
      if (expression.optional && node.inputs[0].kind == Term::Kind::kAbsent) return node.inputs[1];
      if (expression.optional && node.inputs[1].kind == Term::Kind::kAbsent) return node.inputs[0];
      return Term::Node(std::move(node));
    }
  }
  return absl::InternalError("unknown expression");
}

absl::StatusOr<Term> EvaluateInMatch(const Expression& expression, const Match& match, const FunctionContext& context) {
  static const RuleSet* const kNoRules = new RuleSet();
  Matcher matcher(*kNoRules, context);
  Matcher::Frame frame;
  frame.scope = &match.rule->scope;
  frame.terms = match.terms;
  return matcher.Evaluate(expression, &frame);
}

}  // namespace ascend_fuse
