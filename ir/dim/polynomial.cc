#include "ir/dim/polynomial.h"

#include <algorithm>
#include <iterator>
#include <numeric>
#include <utility>

namespace ascend_fuse::dim_algebra {
namespace {

bool Before(const Term& a, const Term& b) {
  if (a.factors.size() != b.factors.size()) return a.factors.size() > b.factors.size();
  return a.factors < b.factors;
}

}  // namespace

bool FloorDivNumbers(int64_t a, int64_t b, int64_t* quotient) {
  if (b == 0 || (b == -1 && a == kMinusInfinity)) return false;
  *quotient = a / b - ((a % b != 0 && (a % b < 0) != (b < 0)) ? 1 : 0);
  return true;
}

uint64_t Magnitude(int64_t value) { return value < 0 ? ~static_cast<uint64_t>(value) + 1 : static_cast<uint64_t>(value); }

bool DivideFactors(const Term& a, const Term& b, Term* quotient) {
  quotient->factors.clear();
  size_t j = 0;
  for (uint32_t factor : a.factors) {
    if (j < b.factors.size() && b.factors[j] == factor) {
      ++j;
    } else {
      quotient->factors.push_back(factor);
    }
  }
  return j == b.factors.size();
}

Polynomial OfNumber(int64_t number) {
  Polynomial polynomial;
  if (number != 0) polynomial.emplace_back().coefficient = number;
  return polynomial;
}

bool AddTo(Polynomial* sum, const Polynomial& b, int64_t scale) {
  Polynomial result;
  size_t i = 0;
  size_t j = 0;
  while (i < sum->size() || j < b.size()) {
    if (j == b.size() || (i < sum->size() && Before((*sum)[i], b[j]))) {
      result.push_back(std::move((*sum)[i++]));
      continue;
    }
    Term term;
    if (__builtin_mul_overflow(b[j].coefficient, scale, &term.coefficient)) return false;
    if (i < sum->size() && !Before(b[j], (*sum)[i])) {
      if (__builtin_add_overflow(term.coefficient, (*sum)[i].coefficient, &term.coefficient)) return false;
      ++i;
    }
    if (term.coefficient != 0) {
      term.factors = b[j].factors;
      result.push_back(std::move(term));
    }
    ++j;
  }
  *sum = std::move(result);
  return sum->size() <= kMaxTerms;
}

bool MultiplyTerm(const Polynomial& a, const Term& term, Polynomial* product) {
  product->clear();
  for (const Term& of_a : a) {
    Term result;
    if (__builtin_mul_overflow(of_a.coefficient, term.coefficient, &result.coefficient)) return false;
    if (of_a.factors.size() + term.factors.size() > kMaxDegree) return false;
    result.factors.resize(of_a.factors.size() + term.factors.size());
    std::merge(of_a.factors.begin(), of_a.factors.end(), term.factors.begin(), term.factors.end(), result.factors.begin());
    product->push_back(std::move(result));  // a monomial order: the product stays sorted
  }
  return true;
}

bool Multiply(const Polynomial& a, const Polynomial& b, Polynomial* product) {
  product->clear();
  if (a.size() * b.size() > kMaxTerms * 16) return false;
  Polynomial partial;
  for (const Term& term : b) {
    if (!MultiplyTerm(a, term, &partial) || !AddTo(product, partial, 1)) return false;
  }
  return true;
}

bool Divide(Polynomial a, const Polynomial& b, Polynomial* quotient, Polynomial* rest) {
  quotient->clear();
  rest->clear();
  if (b.empty()) return false;
  Polynomial partial;
  size_t steps = 0;
  while (!a.empty()) {
    if (++steps > 2 * kMaxTerms) return false;
    Term factor;
    if (a[0].coefficient % b[0].coefficient == 0 && !(b[0].coefficient == -1 && a[0].coefficient == kMinusInfinity) &&
        DivideFactors(a[0], b[0], &factor)) {
      factor.coefficient = a[0].coefficient / b[0].coefficient;
      if (!MultiplyTerm(b, factor, &partial) || !AddTo(&a, partial, -1)) return false;
      if (!AddTo(quotient, Polynomial{factor}, 1)) return false;
    } else {
      if (!AddTo(rest, Polynomial{a[0]}, 1)) return false;
      a.erase(a.begin());
    }
  }
  return true;
}

void CancelCommon(Polynomial* a, Polynomial* b) {
  uint64_t number = 0;
  Term common;
  bool first = true;
  for (const Polynomial* polynomial : {a, b}) {
    for (const Term& term : *polynomial) {
      number = std::gcd(number, Magnitude(term.coefficient));
      if (first) {
        common.factors = term.factors;
        first = false;
        continue;
      }
      absl::InlinedVector<uint32_t, 4> both;
      std::set_intersection(common.factors.begin(), common.factors.end(), term.factors.begin(), term.factors.end(),
                            std::back_inserter(both));
      common.factors = std::move(both);
    }
  }
  if (number > static_cast<uint64_t>(kInfinity)) number = 1;
  if (number <= 1 && common.factors.empty()) return;
  for (Polynomial* polynomial : {a, b}) {
    for (Term& term : *polynomial) {
      if (number > 1) term.coefficient /= static_cast<int64_t>(number);
      Term rest;
      DivideFactors(term, common, &rest);
      term.factors = std::move(rest.factors);
    }
  }
}

Term CommonMonomial(const Polynomial& polynomial) {
  Polynomial copy = polynomial;
  Term common;
  common.coefficient = 1;
  if (copy.empty()) return common;
  common.factors = copy[0].factors;
  for (const Term& term : copy) {
    absl::InlinedVector<uint32_t, 4> both;
    std::set_intersection(common.factors.begin(), common.factors.end(), term.factors.begin(), term.factors.end(),
                          std::back_inserter(both));
    common.factors = std::move(both);
  }
  return common;
}

}  // namespace ascend_fuse::dim_algebra
