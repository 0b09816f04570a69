#include "patterns/language/call_check.h"

#include <cmath>

#include "patterns/functions/functions.h"

namespace ascend_fuse {
namespace {

// What the value of the expression can be.
TermKinds KindsOf(const Expression& expression) {
  switch (expression.kind) {
    case Expression::Kind::kNumber:
      return expression.number == std::floor(expression.number) ? kNumericTerms : kNumberTerm | kListTerm;
    case Expression::Kind::kString:
      return kTextTerm;
    case Expression::Kind::kList:
      return kListTerm;
    case Expression::Kind::kName:
      return DataTypeFromName(expression.text) != DataType::kUndefined ? kTypeTerm : kAnyTerm;
    case Expression::Kind::kCall: {
      const int function = FindFunction(expression.text);
      return function < 0 ? kAnyTerm : Functions()[static_cast<size_t>(function)].result;
    }
    case Expression::Kind::kUnary:
    case Expression::Kind::kBinary:
      return kNumericTerms;
    case Expression::Kind::kOperator:
      return kNodeTerm;
    case Expression::Kind::kWildcard:
    case Expression::Kind::kEllipsis:
      return 0;
  }
  return kAnyTerm;
}

std::string DescribeFound(const Expression& expression, TermKinds kinds) {
  if (expression.kind == Expression::Kind::kNumber) return DescribeKinds(kNumberTerm);
  if (kinds == kNumericTerms) return DescribeKinds(kNumberTerm);
  return kinds == 0 ? expression.kind == Expression::Kind::kWildcard ? "_" : "..." : DescribeKinds(kinds);
}

}  // namespace

std::string Misfit(const FunctionRow& row, size_t index, const Expression& argument) {
  const TermKinds found = KindsOf(argument);
  if ((found & row.arguments[index]) != 0) return "";
  return WrongArgument(row.signature, index, row.arguments[index], DescribeFound(argument, found));
}

}  // namespace ascend_fuse
