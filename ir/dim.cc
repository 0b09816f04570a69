// Canonical polynomials over symbols and opaque atoms (floor division, min, max, broadcast), hash-consed so
// that one expression has one number. What is unified becomes a substitution of atoms; resolving is memoised.
// Modulo has no atom of its own: a mod b is a - b * floor(a / b), so that the two cancel each other.
#include "ir/dim.h"

#include <algorithm>
#include <cctype>
#include <limits>
#include <numeric>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/inlined_vector.h"
#include "ir/arena.h"

namespace ascend_fuse {
namespace {

constexpr size_t kMaxTerms = 256;
constexpr size_t kMaxDegree = 24;
constexpr int kMaxNesting = 24;      // opaque atoms inside opaque atoms
constexpr size_t kMaxWeight = 4096;  // factors of a polynomial, nested ones included
// Terms that one table handles before it gives up on everything but numbers: about two seconds. A model of a
// million nodes needs a tenth; a graph made to be slow is cut off.
constexpr uint64_t kMaxWork = 100'000'000;
constexpr size_t kMaxStoredTerms = 2'000'000;  // of all expressions together
constexpr size_t kMaxOpaque = 500'000;
constexpr int64_t kMinusInfinity = std::numeric_limits<int64_t>::min();
constexpr int64_t kInfinity = std::numeric_limits<int64_t>::max();

enum class AtomKind : uint8_t { kSymbol, kFloorDiv, kMin, kMax, kBroadcast };

struct Term {
  int64_t coefficient = 0;
  absl::InlinedVector<uint32_t, 4> factors;  // atoms, rising; repeated for a power
};

// Terms in graded lexicographic order, the constant last; no zero coefficients. A valid order for division.
using Polynomial = absl::InlinedVector<Term, 2>;

bool Before(const Term& a, const Term& b) {
  if (a.factors.size() != b.factors.size()) return a.factors.size() > b.factors.size();
  return a.factors < b.factors;
}

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
  if (a == kMinusInfinity || a == kInfinity || b == kMinusInfinity || b == kInfinity ||
      __builtin_mul_overflow(a, b, &product)) {
    return negative ? kMinusInfinity : kInfinity;
  }
  return product;
}

struct Interval {
  int64_t low = kMinusInfinity;
  int64_t high = kInfinity;
};

Interval Multiply(const Interval& a, const Interval& b) {
  const int64_t corners[] = {BoundMul(a.low, b.low), BoundMul(a.low, b.high), BoundMul(a.high, b.low),
                             BoundMul(a.high, b.high)};
  return {*std::min_element(corners, corners + 4), *std::max_element(corners, corners + 4)};
}

bool FloorDivNumbers(int64_t a, int64_t b, int64_t* quotient) {
  if (b == 0 || (b == -1 && a == kMinusInfinity)) return false;
  *quotient = a / b - ((a % b != 0 && (a % b < 0) != (b < 0)) ? 1 : 0);
  return true;
}

uint64_t Magnitude(int64_t value) {
  return value < 0 ? ~static_cast<uint64_t>(value) + 1 : static_cast<uint64_t>(value);
}

// The factors of `a` without those of `b`; false if b does not divide a.
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

}  // namespace

struct DimTable::Impl {
  struct Atom {
    AtomKind kind = AtomKind::kSymbol;
    bool fresh = false;
    bool resolving = false;
    uint8_t nesting = 0;
    // The body that made it up: nobody else knows it, so what that body proves of it harms nobody. 0 for names
    // and for what is computed from names, which stand for the same dims everywhere. See DimTable::SetScope.
    uint64_t scope = 0;
    size_t weight = 1;
    std::string_view name;  // of a symbol
    Dim a;                  // operands of an opaque atom
    Dim b;
    Interval range{0, kInfinity};  // of a symbol
    Dim substitute;                // what it was unified with
    Dim itself;                    // the expression that is this atom, once it was asked for
    uint64_t bounds_version = 0;
    Interval bounds;
  };
  struct Expression {
    Polynomial polynomial;
    Dim resolved;
    uint64_t version = 0;  // of `resolved`
  };

  std::vector<Atom> atoms;
  std::vector<std::unique_ptr<Expression>> expressions;
  absl::flat_hash_map<std::string, int64_t> expression_ids;
  absl::flat_hash_map<std::string_view, uint32_t> symbols;
  absl::flat_hash_map<std::string, uint32_t> opaque_ids;
  absl::flat_hash_map<int64_t, Interval> expression_bounds;  // of what a ranged symbol was replaced with
  absl::flat_hash_map<std::string, uint32_t> fresh_suffixes;
  Arena names;
  uint64_t version = 1;
  bool has_fresh = false;
  uint64_t scope = 0;
  bool learning = true;
  uint64_t work = 0;
  size_t stored_terms = 0;
  int depth = 0;  // of Resolve

  // False when too much work was done already.
  bool Spend(uint64_t terms) {
    work += terms;
    return work <= kMaxWork;
  }

  // --- polynomials ---------------------------------------------------------------------------------------

  static Polynomial OfNumber(int64_t number) {
    Polynomial polynomial;
    if (number != 0) polynomial.emplace_back().coefficient = number;
    return polynomial;
  }

  Polynomial Of(Dim dim) const {
    if (dim.kind_ == Dim::Kind::kNumber) return OfNumber(dim.bits_);
    return expressions[static_cast<size_t>(dim.bits_)]->polynomial;
  }

  static bool AddTo(Polynomial* sum, const Polynomial& b, int64_t scale) {
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

  static bool MultiplyTerm(const Polynomial& a, const Term& term, Polynomial* product) {
    product->clear();
    for (const Term& of_a : a) {
      Term result;
      if (__builtin_mul_overflow(of_a.coefficient, term.coefficient, &result.coefficient)) return false;
      if (of_a.factors.size() + term.factors.size() > kMaxDegree) return false;
      result.factors.resize(of_a.factors.size() + term.factors.size());
      std::merge(of_a.factors.begin(), of_a.factors.end(), term.factors.begin(), term.factors.end(),
                 result.factors.begin());
      product->push_back(std::move(result));  // a monomial order: the product stays sorted
    }
    return true;
  }

  static bool Multiply(const Polynomial& a, const Polynomial& b, Polynomial* product) {
    product->clear();
    if (a.size() * b.size() > kMaxTerms * 16) return false;
    Polynomial partial;
    for (const Term& term : b) {
      if (!MultiplyTerm(a, term, &partial) || !AddTo(product, partial, 1)) return false;
    }
    return true;
  }

  // a = quotient * b + rest; the leading terms of b divide no term of `rest`. False when limits are exceeded.
  static bool Divide(Polynomial a, const Polynomial& b, Polynomial* quotient, Polynomial* rest) {
    quotient->clear();
    rest->clear();
    if (b.empty()) return false;
    Polynomial partial;
    size_t steps = 0;
    while (!a.empty()) {
      if (++steps > 2 * kMaxTerms) return false;
      Term factor;
      if (a[0].coefficient % b[0].coefficient == 0 &&
          !(b[0].coefficient == -1 && a[0].coefficient == kMinusInfinity) &&
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

  Dim Intern(Polynomial polynomial) {
    if (polynomial.empty()) return Dim::Of(0);
    if (polynomial.size() == 1 && polynomial[0].factors.empty()) return Dim::Of(polynomial[0].coefficient);
    if (polynomial.size() > kMaxTerms) return Dim();
    std::string key;
    size_t weight = 0;
    for (const Term& term : polynomial) {
      const uint32_t degree = static_cast<uint32_t>(term.factors.size());
      key.append(reinterpret_cast<const char*>(&term.coefficient), sizeof(term.coefficient));
      key.append(reinterpret_cast<const char*>(&degree), sizeof(degree));
      key.append(reinterpret_cast<const char*>(term.factors.data()), degree * sizeof(uint32_t));
      for (uint32_t factor : term.factors) weight += atoms[factor].weight;
    }
    if (weight > kMaxWeight) return Dim();
    const bool atom = polynomial.size() == 1 && polynomial[0].coefficient == 1 && polynomial[0].factors.size() == 1;
    if (stored_terms > kMaxStoredTerms && !atom) {  // an atom by itself always has its expression
      const auto known = expression_ids.find(key);
      return known != expression_ids.end() ? Dim(Dim::Kind::kExpression, known->second) : Dim();
    }
    auto [found, inserted] = expression_ids.try_emplace(std::move(key), expressions.size());
    if (inserted) {
      stored_terms += weight + 1;
      expressions.push_back(std::make_unique<Expression>());
      expressions.back()->polynomial = std::move(polynomial);
    }
    return Dim(Dim::Kind::kExpression, found->second);
  }

  Dim OfAtom(uint32_t atom) {
    if (atoms[atom].itself.known()) return atoms[atom].itself;
    Term term;
    term.coefficient = 1;
    term.factors.push_back(atom);
    const Dim dim = Intern(Polynomial{term});
    atoms[atom].itself = dim;
    return dim;
  }

  Dim Opaque(AtomKind kind, Dim a, Dim b) {
    std::string key(1, static_cast<char>(kind));
    for (Dim operand : {a, b}) {
      key.push_back(static_cast<char>(operand.kind_));
      key.append(reinterpret_cast<const char*>(&operand.bits_), sizeof(operand.bits_));
    }
    // Two whose outcome operators decide (a slice within its buffer, a broadcast of equals) are one atom in each body
    // and another outside: what is decided where a body runs is not decided for others.
    std::string scoped = key;
    if (scope != 0 && (kind == AtomKind::kMin || kind == AtomKind::kBroadcast)) {
      scoped.append(reinterpret_cast<const char*>(&scope), sizeof scope);
    }
    for (const std::string* known : {&scoped, &key}) {
      const auto found = opaque_ids.find(*known);
      if (found != opaque_ids.end()) return OfAtom(found->second);
    }
    Atom atom;
    atom.kind = kind;
    atom.a = a;
    atom.b = b;
    if (scoped != key) atom.scope = scope;
    int nesting = 0;
    for (Dim operand : {a, b}) {
      if (operand.is_number()) continue;
      for (const Term& term : expressions[static_cast<size_t>(operand.bits_)]->polynomial) {
        for (uint32_t factor : term.factors) {
          nesting = std::max(nesting, static_cast<int>(atoms[factor].nesting));
          atom.weight += atoms[factor].weight;
          if (atoms[factor].scope == scope) atom.scope = scope;
        }
      }
    }
    if (opaque_ids.size() >= kMaxOpaque || nesting >= kMaxNesting || atom.weight > kMaxWeight) return Dim();
    atom.nesting = static_cast<uint8_t>(nesting + 1);
    const uint32_t id = static_cast<uint32_t>(atoms.size());
    atoms.push_back(atom);
    opaque_ids.emplace(std::move(scoped), id);
    return OfAtom(id);
  }

  // `dim` of a body, built anew where we are.
  Dim Outside(Dim dim) {
    dim = Resolve(dim);
    if (dim.kind_ != Dim::Kind::kExpression) return dim;
    const Polynomial polynomial = expressions[static_cast<size_t>(dim.bits_)]->polynomial;
    Polynomial sum;
    bool changed = false;
    for (const Term& term : polynomial) {
      Polynomial product = OfNumber(term.coefficient);
      for (uint32_t factor : term.factors) {
        Dim value = OfAtom(factor);
        const AtomKind kind = atoms[factor].kind;
        if ((kind == AtomKind::kMin || kind == AtomKind::kBroadcast) && atoms[factor].scope != 0 &&
            atoms[factor].scope != scope) {
          const Dim a = Outside(atoms[factor].a);
          const Dim b = Outside(atoms[factor].b);
          value = kind == AtomKind::kMin ? MinMax(kind, a, b) : Broadcast(a, b);
          if (!value.known()) return Dim();
          changed = true;
        }
        Polynomial next;
        if (!Multiply(product, Of(value), &next)) return Dim();
        product = std::move(next);
      }
      if (!AddTo(&sum, product, 1)) return Dim();
    }
    return changed ? Intern(std::move(sum)) : dim;
  }

  // --- resolving -----------------------------------------------------------------------------------------

  // The one atom that `dim` is, or -1.
  int64_t SingleAtom(Dim dim) const {
    if (dim.kind_ != Dim::Kind::kExpression) return -1;
    const Polynomial& polynomial = expressions[static_cast<size_t>(dim.bits_)]->polynomial;
    if (polynomial.size() != 1 || polynomial[0].coefficient != 1 || polynomial[0].factors.size() != 1)
      return -1;
    return polynomial[0].factors[0];
  }

  // Atoms whose substitution is being followed stay as they are: two opaque atoms that were unified with
  // each other's parts cannot make this loop. So do atoms at the end of very long chains: what is not
  // resolved is still true.
  Dim ResolveAtom(uint32_t id) {
    if (atoms[id].resolving || depth > 100) return OfAtom(id);
    Dim result;
    atoms[id].resolving = true;
    ++depth;
    if (atoms[id].substitute.known()) {
      Dim target = atoms[id].substitute;
      for (int64_t next = SingleAtom(target), steps = 0; next >= 0 && steps < (1 << 20); ++steps) {
        const Atom& atom = atoms[static_cast<size_t>(next)];
        if (!atom.substitute.known() || atom.resolving) break;
        target = atom.substitute;
        next = SingleAtom(target);
      }
      atoms[id].substitute = target;
      result = Resolve(target);
    } else if (atoms[id].kind != AtomKind::kSymbol) {
      const AtomKind kind = atoms[id].kind;
      const Dim a = Resolve(atoms[id].a);
      const Dim b = Resolve(atoms[id].b);
      result = Build(kind, a, b);
      if (result.known()) result = Resolve(result);
    }
    --depth;
    atoms[id].resolving = false;
    return result.known() ? result : OfAtom(id);
  }

  Dim Resolve(Dim dim) {
    if (dim.kind_ != Dim::Kind::kExpression) return dim;
    Expression* expression = expressions[static_cast<size_t>(dim.bits_)].get();
    if (expression->version == version) return expression->resolved;
    // What was resolved earlier is the better start: substitutions are only ever added.
    Dim start = expression->version == 0 ? dim : expression->resolved;
    Dim result = start;
    if (start.kind_ == Dim::Kind::kExpression && Spend(1)) {
      const Polynomial polynomial = expressions[static_cast<size_t>(start.bits_)]->polynomial;
      bool changed = false;
      Polynomial sum;
      bool ok = true;
      for (const Term& term : polynomial) {
        Polynomial product = OfNumber(term.coefficient);
        for (uint32_t factor : term.factors) {
          const Dim resolved = ResolveAtom(factor);
          const Polynomial of_factor = Of(resolved);
          changed = changed || of_factor.size() != 1 || of_factor[0].coefficient != 1 ||
                    of_factor[0].factors.size() != 1 || of_factor[0].factors[0] != factor;
          Polynomial next;
          ok = ok && Spend(product.size() * of_factor.size() * of_factor.size()) &&
               Multiply(product, of_factor, &next);
          product = std::move(next);
        }
        ok = ok && AddTo(&sum, product, 1);
        if (!ok) break;
      }
      if (ok && changed) {
        const Dim built = Intern(std::move(sum));
        if (built.known()) result = built;
      }
    }
    expression = expressions[static_cast<size_t>(dim.bits_)].get();
    expression->resolved = result;
    expression->version = version;
    return result;
  }

  // --- arithmetic on resolved operands -------------------------------------------------------------------

  Dim Sum(Dim a, Dim b, int64_t scale) {
    if (!a.known() || !b.known()) return Dim();
    Polynomial sum = Of(a);
    const Polynomial other = Of(b);
    if (!Spend(sum.size() + other.size())) return Dim();
    return AddTo(&sum, other, scale) ? Intern(std::move(sum)) : Dim();
  }

  Dim Product(Dim a, Dim b) {
    if (!a.known() || !b.known()) return Dim();
    const Polynomial left = Of(a);
    const Polynomial right = Of(b);
    if (!Spend(left.size() * right.size() * (right.size() + 1))) return Dim();
    Polynomial product;
    return Multiply(left, right, &product) ? Intern(std::move(product)) : Dim();
  }

  Dim Build(AtomKind kind, Dim a, Dim b) {
    switch (kind) {
      case AtomKind::kFloorDiv:
        return FloorDiv(a, b);
      case AtomKind::kMin:
      case AtomKind::kMax:
        return MinMax(kind, a, b);
      case AtomKind::kBroadcast:
        return Broadcast(a, b);
      case AtomKind::kSymbol:
        break;
    }
    return Dim();
  }

  // Divides both by the number and the atoms that occur in every term of both.
  static void CancelCommon(Polynomial* a, Polynomial* b) {
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
        std::set_intersection(common.factors.begin(), common.factors.end(), term.factors.begin(),
                              term.factors.end(), std::back_inserter(both));
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

  Dim ExactDiv(Dim a, Dim b) {
    if (!a.known() || !b.known() || b.is(0)) return Dim();
    if (a.is(0)) return a;
    Polynomial numerator = Of(a);
    Polynomial denominator = Of(b);
    if (!Spend(2 * numerator.size() * (numerator.size() + denominator.size()))) return Dim();
    CancelCommon(&numerator, &denominator);
    Polynomial quotient;
    Polynomial rest;
    if (!Divide(std::move(numerator), denominator, &quotient, &rest) || !rest.empty()) return Dim();
    return Intern(std::move(quotient));
  }

  Dim FloorDiv(Dim a, Dim b) {
    if (!a.known() || !b.known() || b.is(0)) return Dim();
    if (a.is_number() && b.is_number()) {
      int64_t quotient = 0;
      return FloorDivNumbers(a.number(), b.number(), &quotient) ? Dim::Of(quotient) : Dim();
    }
    if (a.is(0) || b.is(1)) return a;
    Polynomial numerator = Of(a);
    Polynomial denominator = Of(b);
    if (!Spend(2 * numerator.size() * (numerator.size() + denominator.size()))) return Dim();
    CancelCommon(&numerator, &denominator);
    if (denominator[0].coefficient < 0) {  // one sign for one quotient
      Polynomial negated;
      if (!AddTo(&negated, numerator, -1)) return Dim();
      numerator = std::move(negated);
      negated.clear();
      if (!AddTo(&negated, denominator, -1)) return Dim();
      denominator = std::move(negated);
    }
    Polynomial quotient;
    Polynomial rest;
    if (denominator.size() == 1 && denominator[0].factors.empty()) {
      int64_t divisor = denominator[0].coefficient;
      // floor((d*q + r) / d) = q + floor(r / d) for an integer q: coefficients of r are the least in absolute
      // value, its constant is in [0, d).
      uint64_t content = static_cast<uint64_t>(divisor);
      for (const Term& term : numerator) {
        int64_t whole = 0;
        FloorDivNumbers(term.coefficient, divisor, &whole);
        int64_t left = term.coefficient - whole * divisor;
        if (!term.factors.empty() && left > divisor / 2) {
          left -= divisor;
          ++whole;
        }
        if (whole != 0) quotient.push_back({whole, term.factors});
        if (left == 0) continue;
        rest.push_back({left, term.factors});
        if (!term.factors.empty()) content = std::gcd(content, Magnitude(left));
      }
      // floor((g*x + c) / (g*d)) = floor((x + floor(c/g)) / d).
      const int64_t shared = static_cast<int64_t>(content);
      if (shared > 1) {
        Polynomial reduced;
        for (Term term : rest) {
          FloorDivNumbers(term.coefficient, shared, &term.coefficient);
          if (term.coefficient != 0) reduced.push_back(std::move(term));
        }
        rest = std::move(reduced);
        divisor /= shared;
      }
      if (rest.empty() || divisor == 1) {
        return AddTo(&quotient, rest, 1) ? Intern(std::move(quotient)) : Dim();
      }
      denominator = OfNumber(divisor);
      // One form for rounding up and down: floor(-x / n) = -floor((x + n - 1) / n), and
      // floor((x + 1) / 2) = x - floor(x / 2).
      if (rest[0].factors.empty()) return Intern(std::move(quotient));  // a constant in [0, divisor)
      const bool up = divisor == 2 && rest.back().factors.empty();
      if (rest[0].coefficient < 0 || up) {
        Polynomial mirrored;
        if (up) {
          rest.pop_back();
          if (!AddTo(&quotient, rest, 1)) return Dim();
          mirrored = rest;
        } else if (!AddTo(&mirrored, rest, -1) || !AddTo(&mirrored, OfNumber(divisor - 1), 1)) {
          return Dim();
        }
        const Dim inner = FloorDiv(Intern(std::move(mirrored)), Dim::Of(divisor));
        return Sum(Intern(std::move(quotient)), inner, -1);
      }
      // floor(floor(x / m) / n) = floor(x / (m * n)).
      if (rest.size() == 1 && rest[0].coefficient == 1 && rest[0].factors.size() == 1) {
        const Atom& inner = atoms[rest[0].factors[0]];
        int64_t both = 0;
        if (inner.kind == AtomKind::kFloorDiv && inner.b.is_number() &&
            !__builtin_mul_overflow(inner.b.number(), divisor, &both) && inner.b.number() > 0) {
          const Dim merged = FloorDiv(inner.a, Dim::Of(both));
          return Sum(Intern(std::move(quotient)), merged, 1);
        }
      }
    } else {
      if (!Divide(std::move(numerator), denominator, &quotient, &rest)) return Dim();
      if (rest.empty()) return Intern(std::move(quotient));
    }
    const Dim whole = Intern(std::move(quotient));
    const Dim above = Intern(rest);
    const Dim below = Intern(denominator);
    if (!above.known() || !below.known()) return Dim();
    Polynomial room = denominator;  // denominator - rest - 1
    if (!AddTo(&room, rest, -1) || !AddTo(&room, OfNumber(1), -1)) return Dim();
    if (Lower(rest, 2) >= 0 && Lower(room, 2) >= 0) return whole;
    return Sum(whole, Opaque(AtomKind::kFloorDiv, above, below), 1);
  }

  Dim MinMax(AtomKind kind, Dim a, Dim b) {
    if (!a.known() || !b.known()) return Dim();
    if (a == b) return a;
    if (AtLeast(a, b)) return kind == AtomKind::kMax ? a : b;
    if (AtLeast(b, a)) return kind == AtomKind::kMax ? b : a;
    Order(&a, &b);
    return Opaque(kind, a, b);
  }

  bool IsOperand(AtomKind kind, Dim whole, Dim part) const {
    if (whole.is_number()) return false;
    const Polynomial& polynomial = expressions[static_cast<size_t>(whole.bits_)]->polynomial;
    if (polynomial.size() != 1 || polynomial[0].coefficient != 1 || polynomial[0].factors.size() != 1) {
      return false;
    }
    const Atom& atom = atoms[polynomial[0].factors[0]];
    if (atom.kind != kind) return false;
    return atom.a == part || atom.b == part || IsOperand(kind, atom.a, part) || IsOperand(kind, atom.b, part);
  }

  Dim Broadcast(Dim a, Dim b) {
    if (!a.known() || !b.known()) {
      // A number above 1 decides alone: the other is the same or 1.
      const Dim one = a.known() ? a : b;
      return one.known() && LowerOf(one) >= 2 ? one : Dim();
    }
    if (a == b || b.is(1)) return a;
    if (a.is(1)) return b;
    if (a.is_number()) return a;
    if (b.is_number()) return b;
    if (LowerOf(a) >= 2) return a;
    if (LowerOf(b) >= 2) return b;
    if (IsOperand(AtomKind::kBroadcast, a, b)) return a;
    if (IsOperand(AtomKind::kBroadcast, b, a)) return b;
    Order(&a, &b);
    return Opaque(AtomKind::kBroadcast, a, b);
  }

  static void Order(Dim* a, Dim* b) {
    if (std::make_pair(static_cast<int>(a->kind_), a->bits_) >
        std::make_pair(static_cast<int>(b->kind_), b->bits_)) {
      std::swap(*a, *b);
    }
  }

  // --- bounds --------------------------------------------------------------------------------------------

  Interval BoundsOfAtom(uint32_t id, int effort) {
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

  int64_t LowerOf(Dim dim) { return dim.is_number() ? dim.number() : Lower(Of(dim), 3); }

  int64_t Upper(const Polynomial& polynomial, int effort) {
    Polynomial negated;
    if (!AddTo(&negated, polynomial, -1)) return kInfinity;
    const int64_t low = Lower(negated, effort);
    return low == kMinusInfinity ? kInfinity : low == kInfinity ? kMinusInfinity : -low;
  }

  // A number that `polynomial` is never below; kMinusInfinity if none is known.
  int64_t Lower(const Polynomial& polynomial, int effort) {
    if (effort < 0 || !Spend(polynomial.size())) return kMinusInfinity;
    int64_t low = 0;
    int opaque = -1;
    for (size_t i = 0; i < polynomial.size(); ++i) {
      const Term& term = polynomial[i];
      Interval product{term.coefficient, term.coefficient};
      for (uint32_t factor : term.factors)
        product = ascend_fuse::Multiply(product, BoundsOfAtom(factor, effort));
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
    const Term term = polynomial[static_cast<size_t>(opaque)];
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

  // The atoms that occur in every term, with their powers.
  static Term CommonMonomial(const Polynomial& polynomial) {
    Polynomial copy = polynomial;
    Term common;
    common.coefficient = 1;
    if (copy.empty()) return common;
    common.factors = copy[0].factors;
    for (const Term& term : copy) {
      absl::InlinedVector<uint32_t, 4> both;
      std::set_intersection(common.factors.begin(), common.factors.end(), term.factors.begin(),
                            term.factors.end(), std::back_inserter(both));
      common.factors = std::move(both);
    }
    return common;
  }

  bool NonNegative(const Polynomial& polynomial) {
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

  bool AtLeast(Dim a, Dim b) {
    if (!a.known() || !b.known()) return false;
    if (a.is_number() && b.is_number()) return a.number() >= b.number();
    Polynomial difference = Of(a);
    return AddTo(&difference, Of(b), -1) && NonNegative(difference);
  }

  bool NonZero(const Polynomial& difference) {
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

  // --- unification ---------------------------------------------------------------------------------------

  bool Occurs(uint32_t atom, const Polynomial& polynomial) const {
    for (const Term& term : polynomial) {
      for (uint32_t factor : term.factors) {
        if (factor == atom) return true;
        const Atom& inner = atoms[factor];
        if (inner.kind == AtomKind::kSymbol) continue;
        if (OccursIn(atom, inner.a) || OccursIn(atom, inner.b)) return true;
      }
    }
    return false;
  }
  bool OccursIn(uint32_t atom, Dim dim) const {
    return dim.kind_ == Dim::Kind::kExpression &&
           Occurs(atom, expressions[static_cast<size_t>(dim.bits_)]->polynomial);
  }

  bool MentionsFresh(Dim dim) const {
    if (dim.kind_ != Dim::Kind::kExpression) return false;
    for (const Term& term : expressions[static_cast<size_t>(dim.bits_)]->polynomial) {
      for (uint32_t factor : term.factors) {
        const Atom& atom = atoms[factor];
        if (atom.kind == AtomKind::kSymbol ? atom.fresh : MentionsFresh(atom.a) || MentionsFresh(atom.b)) {
          return true;
        }
      }
    }
    return false;
  }

  bool OlderThan(Dim dim, uint64_t mark) const {
    if (dim.kind_ != Dim::Kind::kExpression) return true;
    for (const Term& term : expressions[static_cast<size_t>(dim.bits_)]->polynomial) {
      for (uint32_t factor : term.factors) {
        const Atom& atom = atoms[factor];
        if (atom.kind == AtomKind::kSymbol ? factor >= mark
                                           : !OlderThan(atom.a, mark) || !OlderThan(atom.b, mark)) {
          return false;
        }
      }
    }
    return true;
  }

  // `dim` with every Min(x, n) of a number n >= 2 replaced by x; the atoms replaced are added to `clamps`.
  Dim Unclamp(Dim dim, std::vector<std::pair<uint32_t, Dim>>* clamps) {
    if (dim.kind_ != Dim::Kind::kExpression) return dim;
    const Polynomial polynomial = expressions[static_cast<size_t>(dim.bits_)]->polynomial;
    Polynomial sum;
    for (const Term& term : polynomial) {
      Polynomial product = OfNumber(term.coefficient);
      for (uint32_t factor : term.factors) {
        Dim value = OfAtom(factor);
        const Atom& atom = atoms[factor];
        if (atom.kind == AtomKind::kMin && (scope == 0 || atom.scope == scope) &&
            (atom.a.is_number() != atom.b.is_number()) &&
            (atom.a.is_number() ? atom.a : atom.b).number() >= 2) {
          value = atom.a.is_number() ? atom.b : atom.a;
          clamps->emplace_back(factor, value);
        }
        Polynomial next;
        if (!Multiply(product, Of(value), &next)) return dim;
        product = std::move(next);
      }
      if (!AddTo(&sum, product, 1)) return dim;
    }
    const Dim result = Intern(std::move(sum));
    return result.known() ? result : dim;
  }

  // Slicing a buffer of n rows by [past, past + seq) gives Min(past + seq, n) - Min(past, n) rows. Where that
  // meets `seq`, the run is within the buffer (or the rows left would not fit what they meet).
  bool UnifyWithinBounds(Dim a, Dim b) {
    std::vector<std::pair<uint32_t, Dim>> clamps;
    a = Unclamp(a, &clamps);
    b = Unclamp(b, &clamps);
    if (clamps.empty() || a != b) return false;
    for (const auto& [atom, value] : clamps) {
      if (OccursIn(atom, value)) return false;
    }
    for (const auto& [atom, value] : clamps) atoms[atom].substitute = value;
    ++version;
    return true;
  }

  bool Unify(Dim a, Dim b) {
    if (!a.known() || !b.known()) return true;
    a = Resolve(a);
    b = Resolve(b);
    if (a == b || UnifyWithinBounds(a, b)) return true;
    Polynomial difference = Of(a);
    if (!AddTo(&difference, Of(b), -1)) return true;
    if (difference.empty()) return true;
    if (NonZero(difference)) return false;
    // A common factor that is not 0 can be left out.
    Term common = CommonMonomial(difference);
    common.factors.erase(std::remove_if(common.factors.begin(), common.factors.end(),
                                        [this](uint32_t atom) { return BoundsOfAtom(atom, 2).low < 1; }),
                         common.factors.end());
    uint64_t content = 0;
    for (const Term& term : difference) content = std::gcd(content, Magnitude(term.coefficient));
    if (content > static_cast<uint64_t>(kInfinity)) return true;
    for (Term& term : difference) {
      Term quotient;
      DivideFactors(term, common, &quotient);
      term.factors = std::move(quotient.factors);
      term.coefficient /= static_cast<int64_t>(content);
    }
    // Which atom to replace: one that inference made up, then a broadcast whose outcome is now known, then a
    // symbol that is a sum of others (total = past + seq keeps past >= 0 visible), then the newest symbol
    // (those of graph inputs are the oldest), then other opaque atoms.
    int best = -1;
    int64_t best_score = kMinusInfinity;
    Polynomial best_value;
    for (size_t i = 0; i < difference.size(); ++i) {
      const Term& term = difference[i];
      if (term.factors.size() != 1 || (term.coefficient != 1 && term.coefficient != -1)) continue;
      const uint32_t id = term.factors[0];
      Polynomial others = difference;
      others.erase(others.begin() + static_cast<int>(i));
      if ((scope != 0 && atoms[id].scope != scope) || Occurs(id, others)) continue;
      Polynomial value;
      if (!AddTo(&value, others, -term.coefficient)) continue;
      const Atom& atom = atoms[id];
      const bool positive =
          std::all_of(value.begin(), value.end(), [](const Term& part) { return part.coefficient > 0; });
      int64_t score = id;
      if (positive) score += int64_t{1} << 33;
      if (atom.kind == AtomKind::kSymbol) {
        score += int64_t{1} << (atom.fresh ? 36 : 32);
      } else if (atom.kind == AtomKind::kBroadcast) {
        score += int64_t{1} << 35;
      }
      if (best < 0 || score > best_score) {
        best = static_cast<int>(id);
        best_score = score;
        best_value = std::move(value);
      }
    }
    if (best < 0) return true;
    const uint32_t id = static_cast<uint32_t>(best);
    const Interval range = atoms[id].kind == AtomKind::kSymbol ? atoms[id].range : BoundsOfAtom(id, 2);
    if (Upper(best_value, 3) < range.low || Lower(best_value, 3) > range.high) return false;
    const Dim value = Intern(best_value);
    if (!value.known()) return true;
    atoms[id].substitute = value;
    Transfer(best_value, value, range);
    ++version;
    return true;
  }

  // What was known of the atom that `value` replaces holds for `value`.
  void Transfer(const Polynomial& polynomial, Dim value, const Interval& range) {
    if (value.is_number()) return;
    if (polynomial.size() == 1 && polynomial[0].coefficient == 1 && polynomial[0].factors.size() == 1 &&
        atoms[polynomial[0].factors[0]].kind == AtomKind::kSymbol) {
      Interval& of_symbol = atoms[polynomial[0].factors[0]].range;
      of_symbol.low = std::max(of_symbol.low, range.low);
      of_symbol.high = std::min(of_symbol.high, range.high);
      return;
    }
    const auto remember = [this](int64_t id, const Interval& bounds) {
      Interval& known = expression_bounds.try_emplace(id).first->second;
      known.low = std::max(known.low, bounds.low);
      known.high = std::min(known.high, bounds.high);
    };
    if (Lower(polynomial, 3) < range.low) remember(value.bits_, {range.low, kInfinity});
    if (Upper(polynomial, 3) > range.high) {  // bounds are looked up from below: remember -value >= -high
      Polynomial negated;
      if (!AddTo(&negated, polynomial, -1)) return;
      const Dim id = Intern(negated);
      if (id.known() && !id.is_number()) remember(id.bits_, {-range.high, kInfinity});
    }
  }

  // --- text ----------------------------------------------------------------------------------------------

  void Print(Dim dim, std::string* out) const {
    if (!dim.known()) {
      out->append("?");
    } else if (dim.is_number()) {
      out->append(std::to_string(dim.number()));
    } else {
      Print(expressions[static_cast<size_t>(dim.bits_)]->polynomial, out);
    }
  }

  void Print(const Polynomial& polynomial, std::string* out) const {
    // Terms that are added first: "past - 1", not "-1 + past"; and "b - a" rather than "-a + b".
    bool first = true;
    for (const bool negative : {false, true}) {
      for (const Term& term : polynomial) {
        if ((term.coefficient < 0) != negative) continue;
        if (!first) out->append(negative ? " - " : " + ");
        if (first && negative) out->append("-");
        first = false;
        const uint64_t coefficient = Magnitude(term.coefficient);
        if (coefficient != 1 || term.factors.empty()) out->append(std::to_string(coefficient));
        for (size_t i = 0; i < term.factors.size(); ++i) {
          if (i > 0 || coefficient != 1) out->append("*");
          PrintAtom(atoms[term.factors[i]], out);
        }
      }
    }
  }

  void PrintOperand(Dim dim, std::string* out) const {
    bool simple = dim.is_number() && dim.number() >= 0;
    if (!dim.is_number()) {
      const Polynomial& polynomial = expressions[static_cast<size_t>(dim.bits_)]->polynomial;
      simple = polynomial.size() == 1 && polynomial[0].coefficient == 1 && polynomial[0].factors.size() == 1;
    }
    if (!simple) out->append("(");
    Print(dim, out);
    if (!simple) out->append(")");
  }

  void PrintAtom(const Atom& atom, std::string* out) const {
    switch (atom.kind) {
      case AtomKind::kSymbol:
        out->append(atom.name);
        return;
      case AtomKind::kFloorDiv:
        out->append("floor(");
        PrintOperand(atom.a, out);
        out->append("/");
        PrintOperand(atom.b, out);
        out->append(")");
        return;
      case AtomKind::kMin:
        out->append("Min(");
        break;
      case AtomKind::kMax:
        out->append("Max(");
        break;
      case AtomKind::kBroadcast:
        out->append("broadcast(");
        break;
    }
    Print(atom.a, out);
    out->append(", ");
    Print(atom.b, out);
    out->append(")");
  }

  using Binding = std::function<std::optional<int64_t>(std::string_view)>;

  std::optional<int64_t> Evaluate(Dim dim, const Binding& symbol) const {
    if (!dim.known()) return std::nullopt;
    if (dim.is_number()) return dim.number();
    int64_t sum = 0;
    for (const Term& term : expressions[static_cast<size_t>(dim.bits_)]->polynomial) {
      int64_t product = term.coefficient;
      for (uint32_t factor : term.factors) {
        const std::optional<int64_t> value = EvaluateAtom(atoms[factor], symbol);
        if (!value.has_value() || __builtin_mul_overflow(product, *value, &product)) return std::nullopt;
      }
      if (__builtin_add_overflow(sum, product, &sum)) return std::nullopt;
    }
    return sum;
  }

  std::optional<int64_t> EvaluateAtom(const Atom& atom, const Binding& symbol) const {
    if (atom.kind == AtomKind::kSymbol) {
      std::optional<int64_t> value = symbol(atom.name);
      if (!value.has_value() && atom.range.low == atom.range.high) value = atom.range.low;
      return value;
    }
    const std::optional<int64_t> a = Evaluate(atom.a, symbol);
    const std::optional<int64_t> b = Evaluate(atom.b, symbol);
    if (!a.has_value() || !b.has_value()) return std::nullopt;
    switch (atom.kind) {
      case AtomKind::kFloorDiv: {
        int64_t quotient = 0;
        if (!FloorDivNumbers(*a, *b, &quotient)) return std::nullopt;
        return quotient;
      }
      case AtomKind::kMin:
        return std::min(*a, *b);
      case AtomKind::kMax:
        return std::max(*a, *b);
      case AtomKind::kBroadcast:
        return *a == 1 ? *b : *a;
      case AtomKind::kSymbol:
        break;
    }
    return std::nullopt;
  }
};

DimTable::DimTable() : impl_(std::make_unique<Impl>()) {}
DimTable::~DimTable() = default;
DimTable::DimTable(DimTable&&) noexcept = default;
DimTable& DimTable::operator=(DimTable&&) noexcept = default;

Dim DimTable::Symbol(std::string_view name) {
  auto found = impl_->symbols.find(name);
  if (found != impl_->symbols.end()) return impl_->OfAtom(found->second);
  Impl::Atom atom;
  atom.name = impl_->names.Copy(name);
  const uint32_t id = static_cast<uint32_t>(impl_->atoms.size());
  impl_->atoms.push_back(atom);
  impl_->symbols.emplace(atom.name, id);
  return impl_->OfAtom(id);
}

Dim DimTable::FreshSymbol(std::string_view hint) {
  std::string name(hint.empty() ? std::string_view("dim") : hint);
  uint32_t& suffix = impl_->fresh_suffixes[name];
  if (suffix > 0 || impl_->symbols.contains(name)) {
    std::string candidate;
    do {
      candidate = name + "'" + std::to_string(++suffix);
    } while (impl_->symbols.contains(candidate));
    name = std::move(candidate);
  }
  const Dim dim = Symbol(name);
  impl_->atoms.back().fresh = true;
  impl_->atoms.back().scope = impl_->scope;
  impl_->has_fresh = true;
  return dim;
}

bool DimTable::HasFresh() const { return impl_->has_fresh; }

bool DimTable::MentionsFresh(Dim dim) const {
  return impl_->has_fresh && impl_->MentionsFresh(Resolve(dim));
}

Dim DimTable::Outside(Dim dim) { return impl_->Outside(dim); }

uint64_t DimTable::Mark() const { return impl_->atoms.size(); }

bool DimTable::OlderThan(Dim dim, uint64_t mark) const {
  dim = Resolve(dim);
  return dim.known() && impl_->OlderThan(dim, mark);
}

uint64_t DimTable::SetScope(uint64_t scope) { return std::exchange(impl_->scope, scope); }

uint64_t DimTable::version() const { return impl_->version; }

Dim DimTable::Add(Dim a, Dim b) {
  int64_t sum = 0;
  if (a.is_number() && b.is_number() && !__builtin_add_overflow(a.number(), b.number(), &sum)) {
    return Dim::Of(sum);
  }
  return impl_->Sum(Resolve(a), Resolve(b), 1);
}

Dim DimTable::Sub(Dim a, Dim b) { return impl_->Sum(Resolve(a), Resolve(b), -1); }

Dim DimTable::Mul(Dim a, Dim b) {
  int64_t product = 0;
  if (a.is_number() && b.is_number() && !__builtin_mul_overflow(a.number(), b.number(), &product)) {
    return Dim::Of(product);
  }
  if (a.is(1)) return Resolve(b);
  if (b.is(1)) return Resolve(a);
  return impl_->Product(Resolve(a), Resolve(b));
}

Dim DimTable::ExactDiv(Dim a, Dim b) { return impl_->ExactDiv(Resolve(a), Resolve(b)); }
Dim DimTable::FloorDiv(Dim a, Dim b) { return impl_->FloorDiv(Resolve(a), Resolve(b)); }
Dim DimTable::Mod(Dim a, Dim b) { return Sub(a, Mul(b, FloorDiv(a, b))); }
Dim DimTable::Min(Dim a, Dim b) { return impl_->MinMax(AtomKind::kMin, Resolve(a), Resolve(b)); }
Dim DimTable::Max(Dim a, Dim b) { return impl_->MinMax(AtomKind::kMax, Resolve(a), Resolve(b)); }
Dim DimTable::Broadcast(Dim a, Dim b) { return impl_->Broadcast(Resolve(a), Resolve(b)); }

Dim DimTable::Meet(Dim a, Dim b) {
  a = Resolve(a);
  b = Resolve(b);
  if (a.known() && b.known() && a != b && impl_->learning && impl_->UnifyWithinBounds(a, b)) a = Resolve(a);
  return impl_->Broadcast(a, Resolve(b));
}

bool DimTable::Unify(Dim a, Dim b) { return impl_->learning ? impl_->Unify(a, b) : !NotEqual(a, b); }

bool DimTable::SetLearning(bool learning) { return std::exchange(impl_->learning, learning); }

Dim DimTable::Resolve(Dim dim) const { return impl_->Resolve(dim); }

bool DimTable::Equal(Dim a, Dim b) const {
  return a.known() && b.known() && (a == b || Resolve(a) == Resolve(b));
}

bool DimTable::Equal(absl::Span<const Dim> a, absl::Span<const Dim> b) const {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [&](Dim x, Dim y) { return Equal(x, y); });
}

bool DimTable::NotEqual(Dim a, Dim b) const {
  if (!a.known() || !b.known()) return false;
  if (a.is_number() && b.is_number()) return a.number() != b.number();
  Polynomial difference = impl_->Of(Resolve(a));
  return Impl::AddTo(&difference, impl_->Of(Resolve(b)), -1) && impl_->NonZero(difference);
}

bool DimTable::AtLeast(Dim a, Dim b) const { return impl_->AtLeast(Resolve(a), Resolve(b)); }

std::optional<int64_t> DimTable::LowerBound(Dim dim) const {
  dim = Resolve(dim);
  if (!dim.known()) return std::nullopt;
  const int64_t low = impl_->LowerOf(dim);
  return low == kMinusInfinity ? std::nullopt : std::optional<int64_t>(low);
}

std::optional<int64_t> DimTable::UpperBound(Dim dim) const {
  dim = Resolve(dim);
  if (!dim.known()) return std::nullopt;
  const int64_t high = impl_->Upper(impl_->Of(dim), 3);
  return high == kInfinity ? std::nullopt : std::optional<int64_t>(high);
}

void DimTable::SetRange(std::string_view symbol, int64_t low, int64_t high) {
  const Dim dim = Symbol(symbol);
  if (low == high) {
    impl_->Unify(dim, Dim::Of(low));
    return;
  }
  Impl::Atom& atom = impl_->atoms[impl_->symbols.at(symbol)];
  atom.range.low = std::max(atom.range.low, low);
  atom.range.high = std::min(atom.range.high, high);
  if (atom.substitute.known()) {
    const Dim value = Resolve(dim);
    if (value.known()) impl_->Transfer(impl_->Of(value), value, atom.range);
  }
  ++impl_->version;
}

std::string DimTable::ToString(Dim dim) const {
  std::string text;
  impl_->Print(Resolve(dim), &text);
  return text;
}

std::optional<int64_t> DimTable::Evaluate(
    Dim dim, const std::function<std::optional<int64_t>(std::string_view)>& symbol) const {
  const std::optional<int64_t> value = impl_->Evaluate(Resolve(dim), symbol);
  return value.has_value() ? value : impl_->Evaluate(dim, symbol);
}

namespace {

// Reads dim_param expressions as sympy prints them. A value is a fraction, so that floor(s0/2 + 1/2) is
// understood; '-' needs a blank before it, since "batch-size" is a name.
class DimParser {
 public:
  DimParser(DimTable* table, std::string_view text) : table_(table), text_(text) {}

  // Unknown when the text is not an expression.
  Dim Parse() {
    const Fraction value = Sum(0);
    Skip();
    if (!value.above.known() || position_ != text_.size()) return Dim();
    // A dim is whole, so the division is; by a symbol only if it can be carried out ("N/A" is a name).
    if (!value.below.is_number()) return table_->ExactDiv(value.above, value.below);
    return table_->FloorDiv(value.above, value.below);
  }

 private:
  struct Fraction {
    Dim above;
    Dim below = Dim::Of(1);
  };
  static constexpr int kMaxDepth = 32;

  void Skip() {
    while (position_ < text_.size() && text_[position_] == ' ') ++position_;
  }
  bool Take(std::string_view token) {
    const size_t start = position_;
    Skip();
    if (text_.substr(position_, token.size()) == token) {
      position_ += token.size();
      return true;
    }
    position_ = start;
    return false;
  }

  Fraction Combine(const Fraction& a, const Fraction& b, bool subtract) {
    Fraction result;
    const Dim left = table_->Mul(a.above, b.below);
    const Dim right = table_->Mul(b.above, a.below);
    result.above = subtract ? table_->Sub(left, right) : table_->Add(left, right);
    result.below = table_->Mul(a.below, b.below);
    return result;
  }

  Fraction Sum(int depth) {
    Fraction value;
    if (depth > kMaxDepth) return value;
    Skip();
    if (position_ < text_.size() && text_[position_] == '-') {
      ++position_;
      value = Combine({Dim::Of(0)}, Product(depth), true);
    } else {
      value = Product(depth);
    }
    while (value.above.known()) {
      const bool blank = position_ < text_.size() && text_[position_] == ' ';
      if (Take("+")) {
        value = Combine(value, Product(depth), false);
      } else if (blank && Take("-")) {
        value = Combine(value, Product(depth), true);
      } else {
        break;
      }
    }
    return value;
  }

  Fraction Product(int depth) {
    Fraction value = Power(depth);
    while (value.above.known()) {
      if (Take("//")) {
        const Fraction by = Power(depth);
        value = {table_->FloorDiv(table_->Mul(value.above, by.below), table_->Mul(value.below, by.above))};
      } else if (Take("/")) {
        const Fraction by = Power(depth);
        if (by.above.is(0)) return {};
        value = {table_->Mul(value.above, by.below), table_->Mul(value.below, by.above)};
        if (!value.below.known()) return {};
      } else if (Take("%")) {
        const Fraction by = Power(depth);
        value = {table_->Mod(Whole(value), Whole(by))};
      } else if (text_.substr(std::min(position_, text_.size()), 2) != "**" && Take("*")) {
        const Fraction by = Power(depth);
        value = {table_->Mul(value.above, by.above), table_->Mul(value.below, by.below)};
      } else {
        break;
      }
    }
    return value;
  }

  Fraction Power(int depth) {
    Fraction base = Factor(depth);
    if (!base.above.known() || !Take("**")) return base;
    const Fraction exponent = Factor(depth);
    if (!exponent.above.is_number() || !exponent.below.is(1) || exponent.above.number() < 0 ||
        exponent.above.number() > 16) {
      return {};
    }
    Fraction value{Dim::Of(1)};
    for (int64_t i = 0; i < exponent.above.number(); ++i) {
      value = {table_->Mul(value.above, base.above), table_->Mul(value.below, base.below)};
    }
    return value;
  }

  Dim Whole(const Fraction& value) { return table_->FloorDiv(value.above, value.below); }

  Fraction Factor(int depth) {
    Skip();
    if (position_ >= text_.size() || depth > kMaxDepth) return {};
    const char first = text_[position_];
    if (first == '(') {
      ++position_;
      const Fraction value = Sum(depth + 1);
      return Take(")") ? value : Fraction{};
    }
    const size_t start = position_;
    const auto is_letter = [](char c) { return std::isalpha(static_cast<unsigned char>(c)) || c == '_'; };
    const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
    if (is_digit(first)) {
      int64_t number = 0;
      while (position_ < text_.size() && is_digit(text_[position_])) {
        if (__builtin_mul_overflow(number, int64_t{10}, &number) ||
            __builtin_add_overflow(number, int64_t{text_[position_] - '0'}, &number)) {
          return {};
        }
        ++position_;
      }
      if (position_ < text_.size() && (is_letter(text_[position_]) || text_[position_] == '.')) return {};
      return {Dim::Of(number)};
    }
    if (!is_letter(first)) return {};
    while (position_ < text_.size() &&
           (is_letter(text_[position_]) || is_digit(text_[position_]) || text_[position_] == '.' ||
            text_[position_] == ':' || text_[position_] == '\'' || text_[position_] == '$')) {
      ++position_;
    }
    const std::string_view name = text_.substr(start, position_ - start);
    if (position_ >= text_.size() || text_[position_] != '(') {
      // A hyphen or another sign right behind makes it part of a name that is no identifier.
      if (position_ < text_.size() &&
          std::string_view(" +*/%),").find(text_[position_]) == std::string_view::npos) {
        return {};
      }
      return {table_->Symbol(name)};
    }
    ++position_;
    absl::InlinedVector<Fraction, 4> arguments;
    do {
      arguments.push_back(Sum(depth + 1));
      if (!arguments.back().above.known() || arguments.size() > 64) return {};
    } while (Take(","));
    if (!Take(")")) return {};
    return Call(name, arguments);
  }

  Fraction Call(std::string_view name, const absl::InlinedVector<Fraction, 4>& arguments) {
    const size_t count = arguments.size();
    if ((name == "floor" || name == "Floor" || name == "TruncToInt" || name == "IntTrueDiv") && count == 1) {
      return {Whole(arguments[0])};
    }
    if ((name == "ceiling" || name == "ceil" || name == "CeilToInt") && count == 1) {
      return {table_->Sub(Dim::Of(0),
                          table_->FloorDiv(table_->Sub(Dim::Of(0), arguments[0].above), arguments[0].below))};
    }
    const bool min = name == "Min" || name == "min";
    if (min || name == "Max" || name == "max" || name == "broadcast") {
      Dim value = Whole(arguments[0]);
      for (size_t i = 1; i < count; ++i) {
        const Dim other = Whole(arguments[i]);
        value = min                   ? table_->Min(value, other)
                : name == "broadcast" ? table_->Broadcast(value, other)
                                      : table_->Max(value, other);
      }
      return {value};
    }
    if (count == 2) {
      const Dim a = Whole(arguments[0]);
      const Dim b = Whole(arguments[1]);
      if (name == "FloorDiv" || name == "CleanDiv" || name == "floordiv") return {table_->FloorDiv(a, b)};
      if (name == "Mod" || name == "PythonMod" || name == "mod") return {table_->Mod(a, b)};
      if (name == "CeilDiv" || name == "ceildiv") {
        return {table_->Sub(Dim::Of(0), table_->FloorDiv(table_->Sub(Dim::Of(0), a), b))};
      }
    }
    if (count == 3 && name == "ModularIndexing") {
      return {table_->Mod(table_->FloorDiv(Whole(arguments[0]), Whole(arguments[1])), Whole(arguments[2]))};
    }
    return {};
  }

  DimTable* table_;
  std::string_view text_;
  size_t position_ = 0;
};

bool IsPlainName(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '.';
  });
}

}  // namespace

Dim DimTable::Parse(std::string_view text) {
  if (text.empty()) return Dim();
  const bool starts_with_digit = text[0] >= '0' && text[0] <= '9';
  if (text.size() > 1024 || (IsPlainName(text) && !starts_with_digit)) return Symbol(text);
  const Dim dim = DimParser(this, text).Parse();
  return dim.known() ? dim : Symbol(text);
}

}  // namespace ascend_fuse
