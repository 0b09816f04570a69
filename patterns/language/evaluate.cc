// The matcher's expressions: what one is worth with the names bound so far, and how it is made equal to a term.
#include <cmath>
#include <limits>

#include "fmt/format.h"
#include "patterns/functions/functions.h"
#include "patterns/language/matcher.h"

namespace ascend_fuse {

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
      return expression.is_integer ? Term::Integer(static_cast<int64_t>(expression.number)) : Term::Number(expression.number);
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
        absl::StatusOr<Term> item = Evaluate(argument, frame);
        if (!item.ok()) return item;
        items.push_back(*std::move(item));
      }
      return Term::List(std::move(items));
    }
    case Expression::Kind::kCall: {
      std::vector<Term> arguments;
      for (const Expression& argument : expression.arguments) {
        absl::StatusOr<Term> item = Evaluate(argument, frame);
        if (!item.ok()) return item;
        arguments.push_back(*std::move(item));
      }
      if (expression.optional && arguments[0].kind == Term::Kind::kAbsent) return Term::Absent();
      return Functions()[expression.function].call(context_, arguments);
    }
    case Expression::Kind::kUnary: {
      absl::StatusOr<Term> operand = Evaluate(expression.arguments[0], frame);
      if (!operand.ok()) return operand;
      if (operand->kind == Term::Kind::kNumber) {
        Term term = *operand;
        term.number = -term.number;
        return term;
      }
      return absl::InvalidArgumentError("only a number can be negated");
    }
    case Expression::Kind::kBinary: {
      absl::StatusOr<Term> left = Evaluate(expression.arguments[0], frame);
      if (!left.ok()) return left;
      absl::StatusOr<Term> right = Evaluate(expression.arguments[1], frame);
      if (!right.ok()) return right;
      const char op = expression.text[0];
      if (left->kind == Term::Kind::kNumber && right->kind == Term::Kind::kNumber) {
        const double a = left->number;
        const double b = right->number;
        if (op == '/' && b == 0) return absl::InvalidArgumentError("a division by 0");
        Term term = Term::Number(op == '+' ? a + b : op == '-' ? a - b : op == '*' ? a * b : a / b);
        term.is_integer = left->is_integer && right->is_integer && term.number == std::floor(term.number);
        return term;
      }
      auto dim_of = [](const Term& term) {
        if (term.kind == Term::Kind::kDim) return term.dim;
        if (term.kind == Term::Kind::kNumber && term.number == std::floor(term.number)) {
          return Dim::Of(static_cast<int64_t>(term.number));
        }
        return Dim();
      };
      const Dim a = dim_of(*left);
      const Dim b = dim_of(*right);
      DimTable& dims = *context_.dims;
      const Dim result = op == '+'   ? dims.Add(a, b)
                         : op == '-' ? dims.Sub(a, b)
                         : op == '*' ? dims.Mul(a, b)
                                     : dims.ExactDiv(a, b);
      if (!result.known()) {
        return absl::InvalidArgumentError(
            fmt::format("{} {} {} is not known", DescribeTerm(context_, *left), expression.text, DescribeTerm(context_, *right)));
      }
      return result.is_number() ? Term::Integer(result.number()) : Term::Of(result);
    }
    case Expression::Kind::kOperator: {
      DeferredNode node;
      node.domain = expression.domain;
      node.op_type = expression.text;
      for (const auto& attribute : expression.attributes) {
        absl::StatusOr<Term> value = Evaluate(attribute.value, frame);
        if (!value.ok()) return value;
        node.attributes.emplace_back(attribute.name, *std::move(value));
      }
      for (const Expression& argument : expression.arguments) {
        absl::StatusOr<Term> value = Evaluate(argument, frame);
        if (!value.ok()) return value;
        node.inputs.push_back(*std::move(value));
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
