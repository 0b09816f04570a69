#include "patterns/analysis/leaf_arithmetic.h"

#include <algorithm>
#include <cmath>

#include "ir/rounding.h"

namespace ascend_fuse {
namespace {

// Integers up to this are kept by float32 and float64; by float16 and bfloat16 up to these.
constexpr double kExactFloat = 1 << 20;
constexpr int64_t kExactHalf = 2048;
constexpr int64_t kExactBfloat = 256;
// Coefficients of places in floating-point sums: more would be products of dims, which float32 need not keep.
constexpr int64_t kMaximumFactor = 64;
// What a tensor has not in any run: numbers of places in int32 are below it.
constexpr int64_t kManyPlaces = 1 << 24;

// A sum that was computed in a type of integers, where it cannot have wrapped around: a number that the type holds, or a
// number of places.
Decision Unwrapped(DataType type, Decision computed, DecisionTable* decisions) {
  IndexTable& sums = decisions->sums();
  if (!IsInteger(type) || type == DataType::kInt64) return computed;
  return decisions->Map(computed, [&](const Leaf& leaf) {
    const auto number = sums.NumberOf(leaf.sum);
    bool holds = number.has_value() && HoldsInteger(type, static_cast<double>(*number));
    if (!number.has_value() && type == DataType::kInt32) {
      const auto few = [](Dim dim) { return !dim.is_number() || std::abs(dim.number()) <= kManyPlaces; };
      const IndexTable::Sum& sum = sums[leaf.sum];
      holds = few(sum.constant) && std::all_of(sum.terms.begin(), sum.terms.end(),
                                               [&](const IndexTable::Term& term) { return few(term.coefficient); });
    } else if (!number.has_value()) {
      holds = sums.AtLeast(leaf.sum, 0) && sums.AtMost(leaf.sum, 127);
    }
    return holds ? decisions->OfSum(leaf.sum) : kNoDecision;
  });
}

}  // namespace

Decision LeafArithmetic::Number(DataType type, double number) {
  if (std::isnan(number)) return kNoDecision;
  if (IsFloat(type)) return decisions_.OfReal(RoundTo(type, number));
  if (type == DataType::kBool) return decisions_.OfBool(number != 0);
  if (!IsInteger(type) || std::fabs(number) > 9e15) return kNoDecision;
  return decisions_.OfSum(sums_.Of(static_cast<int64_t>(number)));
}

std::optional<double> LeafArithmetic::RealOf(const Leaf& leaf) const {
  if (leaf.kind == Leaf::Kind::kReal) return leaf.real;
  if (leaf.kind != Leaf::Kind::kSum) return std::nullopt;
  const auto number = sums_.NumberOf(leaf.sum);
  if (!number.has_value()) return std::nullopt;
  return static_cast<double>(*number);
}

IndexSum LeafArithmetic::SumOf(const Leaf& leaf) {
  if (leaf.kind == Leaf::Kind::kSum) return leaf.sum;
  const bool whole = leaf.kind == Leaf::Kind::kReal && std::trunc(leaf.real) == leaf.real && std::fabs(leaf.real) <= kExactFloat;
  return whole ? sums_.Of(static_cast<int64_t>(leaf.real)) : kNoSum;
}

Decision LeafArithmetic::SafeSum(DataType type, IndexSum sum) {
  if (sum == kNoSum) return kNoDecision;
  if (const auto number = sums_.NumberOf(sum)) return Number(type, static_cast<double>(*number));
  if (type == DataType::kFloat16 || type == DataType::kBfloat16) {
    const int64_t most = type == DataType::kFloat16 ? kExactHalf : kExactBfloat;
    if (!sums_.AtMost(sum, most) || !sums_.AtLeast(sum, -most)) return kNoDecision;
  }
  for (const IndexTable::Term& term : sums_[sum].terms) {
    if (!term.coefficient.is_number() || std::abs(term.coefficient.number()) > kMaximumFactor) return kNoDecision;
  }
  return decisions_.OfSum(sum);
}

Decision LeafArithmetic::Cast(const Leaf& leaf, DataType to) {
  const std::optional<double> real = RealOf(leaf);
  if (to == DataType::kBool) {
    if (real.has_value()) return decisions_.OfBool(*real != 0);
    return leaf.kind == Leaf::Kind::kSum ? decisions_.Not(decisions_.IsZero(leaf.sum)) : kNoDecision;
  }
  if (real.has_value()) {
    if (!IsInteger(to)) return Number(to, *real);
    return HoldsInteger(to, std::trunc(*real)) ? Number(to, std::trunc(*real)) : kNoDecision;
  }
  if (leaf.kind != Leaf::Kind::kSum) return kNoDecision;
  if (IsFloat(to)) {
    const Decision safe = SafeSum(to, leaf.sum);
    return safe != kNoDecision ? safe : decisions_.Map(bits_(leaf.sum), [&](const Leaf& bit) {
      const std::optional<double> number = RealOf(bit);
      return number.has_value() ? Number(to, *number) : kNoDecision;
    });
  }
  if (!IsInteger(to)) return kNoDecision;
  const Decision held = Unwrapped(to, decisions_.OfSum(leaf.sum), &decisions_);
  return held != kNoDecision ? held : bits_(leaf.sum);
}

Decision LeafArithmetic::Unary(const Node& node, DataType type, const Leaf& leaf) {
  const std::string_view op = OpType(node);
  const std::optional<double> real = RealOf(leaf);
  if (op == "IsNaN") return leaf.kind == Leaf::Kind::kRead ? kNoDecision : decisions_.OfBool(false);
  if (op == "IsInf") {
    return real.has_value() && node.attributes_end == node.attributes_begin ? decisions_.OfBool(std::isinf(*real)) : kNoDecision;
  }
  if (op == "Log") return real.has_value() && *real >= 0 ? Number(type, std::log(*real)) : kNoDecision;
  if (real.has_value()) {
    const double number = op == "Neg" ? -*real : std::fabs(*real);
    return HoldsInteger(type, number) ? Number(type, number) : kNoDecision;
  }
  if (leaf.kind != Leaf::Kind::kSum) return kNoDecision;
  const Decision opposite = decisions_.OfSum(sums_.Scale(leaf.sum, Dim::Of(-1)));
  return op == "Neg" ? opposite : decisions_.If(decisions_.AtMostZero(leaf.sum), opposite, decisions_.OfSum(leaf.sum));
}

Decision LeafArithmetic::Compare(std::string_view op, const Leaf& a, const Leaf& b) {
  if (a.kind == Leaf::Kind::kRead || b.kind == Leaf::Kind::kRead) return kNoDecision;
  const std::optional<double> x = RealOf(a);
  const std::optional<double> y = RealOf(b);
  if (x.has_value() && y.has_value()) {
    return decisions_.OfBool(op == "Equal"         ? *x == *y
                             : op == "Less"        ? *x < *y
                             : op == "Greater"     ? *x > *y
                             : op == "LessOrEqual" ? *x <= *y
                                                   : *x >= *y);
  }
  if (b.kind == Leaf::Kind::kReal) return CompareToNumber(op, a.sum, b.real);
  if (a.kind != Leaf::Kind::kReal) return CompareSums(op, a.sum, b.sum);
  const std::string_view turned = op == "Less"          ? "Greater"
                                  : op == "Greater"     ? "Less"
                                  : op == "LessOrEqual" ? "GreaterOrEqual"
                                  : op == "Equal"       ? "Equal"
                                                        : "LessOrEqual";
  return CompareToNumber(turned, b.sum, a.real);
}

Decision LeafArithmetic::CompareSums(std::string_view op, IndexSum a, IndexSum b) {
  const IndexSum difference = sums_.Sub(a, b);
  if (op == "Equal") return decisions_.IsZero(difference);
  if (op == "LessOrEqual") return decisions_.AtMostZero(difference);
  if (op == "Less") return decisions_.AtMostZero(sums_.Add(difference, sums_.Of(1)));
  const Decision not_above = decisions_.AtMostZero(op == "Greater" ? difference : sums_.Add(difference, sums_.Of(1)));
  return not_above == kNoDecision ? kNoDecision : decisions_.Not(not_above);
}

// A sum is a number of places: it is smaller than what int64 does not hold.
Decision LeafArithmetic::CompareToNumber(std::string_view op, IndexSum a, double number) {
  if (std::fabs(number) >= 9.3e18) {
    if (op == "Equal") return decisions_.OfBool(false);
    return decisions_.OfBool((op == "Less" || op == "LessOrEqual") == (number > 0));
  }
  if (std::fabs(number) > 9e15) return kNoDecision;
  const double floor = std::floor(number);
  if (op == "Equal" && floor != number) return decisions_.OfBool(false);
  // a < 2.5 is a <= 2, a >= 2.5 is a > 2.
  if (floor != number) op = op == "Less" || op == "LessOrEqual" ? "LessOrEqual" : "Greater";
  return CompareSums(op, a, sums_.Of(static_cast<int64_t>(floor)));
}

Decision LeafArithmetic::Combine(std::string_view op, DataType type, const Leaf& a, const Leaf& b) {
  if (a.kind == Leaf::Kind::kRead || b.kind == Leaf::Kind::kRead) return CombineReads(op, type, a, b);
  if (!IsFloat(type)) return CombineSums(op, type, a.sum, b.sum);
  const std::optional<double> x = RealOf(a);
  const std::optional<double> y = RealOf(b);
  if (x.has_value() && y.has_value()) {
    if (op == "Div" && *y == 0) return kNoDecision;
    if (op == "Mod") return kNoDecision;
    return Number(type, op == "Add"   ? *x + *y
                        : op == "Sub" ? *x - *y
                        : op == "Mul" ? *x * *y
                        : op == "Div" ? *x / *y
                        : op == "Max" ? std::max(*x, *y)
                                      : std::min(*x, *y));
  }
  if (op == "Mul" && ((x.has_value() && *x == 0) || (y.has_value() && *y == 0))) return Number(type, 0);
  if (op == "Div" && y.has_value() && *y == 1) return decisions_.OfLeaf(a);
  // Integers in floating-point numbers.
  const IndexSum left = SumOf(a);
  const IndexSum right = SumOf(b);
  if (left != kNoSum && right != kNoSum && op != "Div" && op != "Mod") {
    const Decision sum = CombineSums(op, type, left, right);
    if (sum != kNoDecision && decisions_.IsLeaf(sum)) {
      const Decision safe = SafeSum(type, decisions_.LeafOf(sum).sum);
      if (safe != kNoDecision) return safe;
    } else if (sum != kNoDecision) {
      return sum;
    }
  }
  // What an input of 0 and 1 is multiplied with.
  const Leaf& bits = x.has_value() ? b : a;
  const Leaf& other = x.has_value() ? a : b;
  if (sums_[bits.sum].terms.empty()) return kNoDecision;
  return decisions_.Map(bits_(bits.sum), [&](const Leaf& bit) {
    return x.has_value() ? Combine(op, type, other, bit) : Combine(op, type, bit, other);
  });
}

Decision LeafArithmetic::CombineSums(std::string_view op, DataType type, IndexSum a, IndexSum b) {
  if (a == kNoSum || b == kNoSum) return kNoDecision;
  const Dim factor = sums_.DimOf(a);
  const Dim divisor = sums_.DimOf(b);
  const bool positive = divisor.known() && dims_.AtLeast(divisor, Dim::Of(0));  // a run divides by no 0
  Decision result = kNoDecision;
  if (op == "Add") result = decisions_.OfSum(sums_.Add(a, b));
  if (op == "Sub") result = decisions_.OfSum(sums_.Sub(a, b));
  if (op == "Mul" && factor.known()) {
    result = decisions_.OfSum(sums_.Scale(b, factor));
  } else if (op == "Mul" && divisor.known()) {
    result = decisions_.OfSum(sums_.Scale(a, divisor));
  } else if (op == "Mul" && IsInteger(type)) {
    return decisions_.Map2(bits_(a), bits_(b),
                           [&](const Leaf& x, const Leaf& y) { return CombineSums("Mul", type, x.sum, y.sum); });
  }
  // Integers are divided toward 0, and the rest has the sign of the divisor.
  if (op == "Div" && positive && sums_.AtLeast(a, 0)) return decisions_.OfSum(sums_.DivMod(a, divisor).first);
  if (op == "Mod" && positive) return decisions_.OfSum(sums_.DivMod(a, divisor).second);
  if (op == "Max" || op == "Min") {
    const Decision less = decisions_.AtMostZero(sums_.Sub(a, b));
    const Decision x = decisions_.OfSum(a);
    const Decision y = decisions_.OfSum(b);
    return op == "Min" ? decisions_.If(less, x, y) : decisions_.If(less, y, x);
  }
  return Unwrapped(type, result, &decisions_);
}

Decision LeafArithmetic::CombineReads(std::string_view op, DataType type, const Leaf& a, const Leaf& b) {
  const std::optional<double> x = RealOf(a);
  const std::optional<double> y = RealOf(b);
  if ((op == "Mul" || op == "Div") && y.has_value() && *y == 1) return decisions_.OfLeaf(a);
  if (op == "Mul" && x.has_value() && *x == 1) return decisions_.OfLeaf(b);
  if (op != "Add" && (op != "Sub" || !y.has_value())) return kNoDecision;
  if ((a.kind != Leaf::Kind::kRead && !x.has_value()) || (b.kind != Leaf::Kind::kRead && !y.has_value())) return kNoDecision;
  Leaf sum;
  sum.kind = Leaf::Kind::kRead;
  sum.reads = a.reads;
  sum.reads.insert(sum.reads.end(), b.reads.begin(), b.reads.end());
  std::sort(sum.reads.begin(), sum.reads.end());
  const double real_a = x.value_or(a.real);
  const double real_b = y.value_or(b.real);
  sum.real = RoundTo(type, op == "Add" ? real_a + real_b : real_a - real_b);
  if (std::isnan(sum.real) || sum.reads.size() > 8) return kNoDecision;
  return decisions_.OfLeaf(std::move(sum));
}

}  // namespace ascend_fuse
