// Polynomials with int64 coefficients over numbered atoms, in one canonical form: sums, products and division
// with a rest. Nothing here knows what an atom stands for.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>

#include "absl/container/inlined_vector.h"

namespace ascend_fuse::dim_algebra {

constexpr size_t kMaxTerms = 256;
constexpr size_t kMaxDegree = 24;
// As bounds, the ends of int64 stand for the infinities.
constexpr int64_t kMinusInfinity = std::numeric_limits<int64_t>::min();
constexpr int64_t kInfinity = std::numeric_limits<int64_t>::max();

struct Term {
  int64_t coefficient = 0;
  absl::InlinedVector<uint32_t, 4> factors;  // atoms, rising; repeated for a power
};

// Terms in graded lexicographic order, the constant last; no zero coefficients. A valid order for division.
using Polynomial = absl::InlinedVector<Term, 2>;

Polynomial OfNumber(int64_t number);

// sum += b * scale. False on overflow of int64 or more than kMaxTerms terms, as in the functions below.
bool AddTo(Polynomial* sum, const Polynomial& b, int64_t scale);
bool MultiplyTerm(const Polynomial& a, const Term& term, Polynomial* product);
bool Multiply(const Polynomial& a, const Polynomial& b, Polynomial* product);

// a = quotient * b + rest; the leading terms of b divide no term of `rest`.
bool Divide(Polynomial a, const Polynomial& b, Polynomial* quotient, Polynomial* rest);

// Divides both by the number and the atoms that occur in every term of both.
void CancelCommon(Polynomial* a, Polynomial* b);

// The atoms that occur in every term, with their powers.
Term CommonMonomial(const Polynomial& polynomial);

// The factors of `a` without those of `b`; false if b does not divide a.
bool DivideFactors(const Term& a, const Term& b, Term* quotient);

// Rounded toward minus infinity. False for a divisor of 0 and on overflow.
bool FloorDivNumbers(int64_t a, int64_t b, int64_t* quotient);

// The absolute value, of the least int64 too.
uint64_t Magnitude(int64_t value);

}  // namespace ascend_fuse::dim_algebra
