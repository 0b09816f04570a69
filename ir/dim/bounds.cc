// Bounds of expressions: an interval of each atom, and the relations of opaque atoms to their operands.
#include <algorithm>
#include <numeric>

#include "ir/dim/table.h"

namespace ascend_fuse {

using namespace dim_algebra;  // NOLINT: of the same folder

namespace {

// Saturating arithmetic on bounds, where the ends of int64 stand for the infinities.
int64_t BoundAdd(int64_t a, int64_t b) {
  if (a == kMinusInfinity || b == kMinusInfinity) return kMinusInfinity;
  if (a == kInfinity || b == kInfinity) return kInfinity;
  int64_t sum = 0;
  if (__builtin_add_overflow(a, b, &sum)) return a < 0 ? kMinusInfinity : kInfinity;
  return sum;
}

int64_t BoundMul(int64_t a, int64_t b) {
  if (a == 0 || b == 0) return 0;
  const bool negative = (a < 0) != (b < 0);
  int64_t product = 0;
  if (a == kMinusInfinity || a == kInfinity || b == kMinusInfinity || b == kInfinity || __builtin_mul_overflow(a, b, &product)) {
    return negative ? kMinusInfinity : kInfinity;
  }
  return product;
}

Interval Multiply(const Interval& a, const Interval& b) {
  const int64_t corners[] = {BoundMul(a.low, b.low), BoundMul(a.low, b.high), BoundMul(a.high, b.low), BoundMul(a.high, b.high)};
  return {*std::min_element(corners, corners + 4), *std::max_element(corners, corners + 4)};
}

}  // namespace

Interval DimTable::Impl::BoundsOfAtom(uint32_t id, int effort) {
  if (atoms[id].kind == AtomKind::kSymbol) return atoms[id].range;
  if (atoms[id].bounds_version == version) return atoms[id].bounds;
  const AtomKind kind = atoms[id].kind;
  const Polynomial a = Of(atoms[id].a);
  const Polynomial b = Of(atoms[id].b);
  const Interval of_a{Lower(a, effort - 1), Upper(a, effort - 1)};
  const Interval of_b{Lower(b, effort - 1), Upper(b, effort - 1)};
  Interval result;
  switch (kind) {
    case AtomKind::kFloorDiv:
      if (of_b.low >= 1) {
        const auto bound = [](int64_t value, int64_t divisor) {
          int64_t quotient = value;
          if (value == kMinusInfinity || value == kInfinity) return value;
          if (divisor == kInfinity) return value < 0 ? int64_t{-1} : int64_t{0};
          FloorDivNumbers(value, divisor, &quotient);
          return quotient;
        };
        result.low = bound(of_a.low, of_a.low < 0 ? of_b.low : of_b.high);
        result.high = bound(of_a.high, of_a.high < 0 ? of_b.high : of_b.low);
      } else if (of_a.low >= 0 && of_b.low >= 0) {  // a divisor of 0 is an error
        result.low = 0;
        result.high = of_a.high;
      }
      break;
    case AtomKind::kMin:
      result = {std::min(of_a.low, of_b.low), std::min(of_a.high, of_b.high)};
      break;
    case AtomKind::kMax:
      result = {std::max(of_a.low, of_b.low), std::max(of_a.high, of_b.high)};
      break;
    case AtomKind::kBroadcast:
      result = {std::min(of_a.low, of_b.low), std::max(of_a.high, of_b.high)};
      break;
    case AtomKind::kSymbol:
      break;
  }
  if (effort >= 2) {
    atoms[id].bounds = result;
    atoms[id].bounds_version = version;
  }
  return result;
}

int64_t DimTable::Impl::LowerOf(Dim dim) { return dim.is_number() ? dim.number() : Lower(Of(dim), 3); }

int64_t DimTable::Impl::Upper(const Polynomial& polynomial, int effort) {
  Polynomial negated;
  if (!AddTo(&negated, polynomial, -1)) return kInfinity;
  const int64_t low = Lower(negated, effort);
  return low == kMinusInfinity ? kInfinity : low == kInfinity ? kMinusInfinity : -low;
}

int64_t DimTable::Impl::Lower(const Polynomial& polynomial, int effort) {
  if (effort < 0 || !Spend(polynomial.size())) return kMinusInfinity;
  int64_t low = 0;
  int opaque = -1;
  for (size_t i = 0; i < polynomial.size(); ++i) {
    const Term& term = polynomial[i];
    Interval product{term.coefficient, term.coefficient};
    for (uint32_t factor : term.factors) product = Multiply(product, BoundsOfAtom(factor, effort));
    low = BoundAdd(low, product.low);
    if (opaque < 0 && term.factors.size() == 1 && atoms[term.factors[0]].kind != AtomKind::kSymbol) {
      opaque = static_cast<int>(i);
    }
  }
  if (!expression_bounds.empty() && polynomial.size() > 1) {
    const Dim id = Intern(polynomial);
    if (!id.is_number() && id.known()) {
      auto found = expression_bounds.find(id.bits_);
      if (found != expression_bounds.end()) low = std::max(low, found->second.low);
    }
  }
  if (opaque < 0 || effort == 0) return low;
  // Replace the opaque atom by what bounds it: x - n + 1 <= n * floor(x / n) <= x, and min and max are one
  // of their operands.
  const Term& term = polynomial[static_cast<size_t>(opaque)];
  const Atom atom = atoms[term.factors[0]];
  Polynomial without = polynomial;
  without.erase(without.begin() + opaque);
  const auto with = [&](const Polynomial& other, int64_t scale) {
    Polynomial sum = without;
    return AddTo(&sum, other, scale) ? Lower(sum, effort - 1) : kMinusInfinity;
  };
  const int64_t c = term.coefficient;
  if (atom.kind == AtomKind::kFloorDiv) {
    if (atom.b.is_number() && atom.b.number() > 0 && c % atom.b.number() == 0) {
      const int64_t n = atom.b.number();
      Polynomial replaced = Of(atom.a);
      if (c > 0 && !AddTo(&replaced, OfNumber(n - 1), -1)) return low;
      low = std::max(low, with(replaced, c / n));
    }
  } else {
    const int64_t with_a = with(Of(atom.a), c);
    const int64_t with_b = with(Of(atom.b), c);
    const bool better = atom.kind == (c > 0 ? AtomKind::kMax : AtomKind::kMin);
    low = std::max(low, better ? std::max(with_a, with_b) : std::min(with_a, with_b));
  }
  return low;
}

bool DimTable::Impl::NonNegative(const Polynomial& polynomial) {
  if (Lower(polynomial, 3) >= 0) return true;
  const Term common = CommonMonomial(polynomial);
  if (common.factors.empty()) return false;
  for (uint32_t factor : common.factors) {
    if (BoundsOfAtom(factor, 2).low < 0) return false;
  }
  Polynomial rest = polynomial;
  for (Term& term : rest) {
    Term quotient;
    DivideFactors(term, common, &quotient);
    term.factors = std::move(quotient.factors);
  }
  return Lower(rest, 3) >= 0;
}

bool DimTable::Impl::AtLeast(Dim a, Dim b) {
  if (!a.known() || !b.known()) return false;
  if (a.is_number() && b.is_number()) return a.number() >= b.number();
  Polynomial difference = Of(a);
  return AddTo(&difference, Of(b), -1) && NonNegative(difference);
}

bool DimTable::Impl::NonZero(const Polynomial& difference) {
  if (difference.empty()) return false;
  if (Lower(difference, 3) > 0 || Upper(difference, 3) < 0) return true;
  // 2*a + 4*b + 1 is odd.
  if (!difference.back().factors.empty()) return false;
  uint64_t content = 0;
  for (size_t i = 0; i + 1 < difference.size(); ++i) {
    content = std::gcd(content, Magnitude(difference[i].coefficient));
  }
  return content > 1 && Magnitude(difference.back().coefficient) % content != 0;
}

bool DimTable::Impl::NeverOne(Dim dim) {
  if (dim.is_number()) return !dim.is(1);
  Polynomial difference = Of(dim);
  return AddTo(&difference, OfNumber(1), -1) && NonZero(difference);
}

}  // namespace ascend_fuse
