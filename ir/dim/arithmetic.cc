// Building expressions: every one is interned in its canonical form, and divisions that cancel are carried
// out.
#include <algorithm>
#include <numeric>

#include "ir/dim/table.h"

namespace ascend_fuse {

using namespace dim_algebra;  // NOLINT: of the same folder

namespace {

constexpr int kMaxNesting = 24;      // opaque atoms inside opaque atoms
constexpr size_t kMaxWeight = 4096;  // factors of a polynomial, nested ones included
// Terms that one table handles before it gives up on everything but numbers: about two seconds. A model of a
// million nodes needs a tenth; a graph made to be slow is cut off.
constexpr uint64_t kMaxWork = 100'000'000;
constexpr size_t kMaxStoredTerms = 2'000'000;  // of all expressions together
constexpr size_t kMaxOpaque = 500'000;

}  // namespace

bool DimTable::Impl::Spend(uint64_t terms) {
  work += terms;
  return work <= kMaxWork;
}

Polynomial DimTable::Impl::Of(Dim dim) const {
  if (dim.kind_ == Dim::Kind::kNumber) return OfNumber(dim.bits_);
  return expressions[static_cast<size_t>(dim.bits_)]->polynomial;
}

Dim DimTable::Impl::Intern(Polynomial polynomial) {
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

Dim DimTable::Impl::OfAtom(uint32_t atom) {
  if (atoms[atom].itself.known()) return atoms[atom].itself;
  Term term;
  term.coefficient = 1;
  term.factors.push_back(atom);
  const Dim dim = Intern(Polynomial{term});
  atoms[atom].itself = dim;
  return dim;
}

Dim DimTable::Impl::Opaque(AtomKind kind, Dim a, Dim b) {
  std::string key(1, static_cast<char>(kind));
  for (Dim operand : {a, b}) {
    key.push_back(static_cast<char>(operand.kind_));
    key.append(reinterpret_cast<const char*>(&operand.bits_), sizeof(operand.bits_));
  }
  // Two whose outcome operators decide (a slice within its buffer, a broadcast of equals) are one atom in
  // each body and another outside: what is decided where a body runs is not decided for others.
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

int64_t DimTable::Impl::SingleAtom(Dim dim) const {
  if (dim.kind_ != Dim::Kind::kExpression) return -1;
  const Polynomial& polynomial = expressions[static_cast<size_t>(dim.bits_)]->polynomial;
  if (polynomial.size() != 1 || polynomial[0].coefficient != 1 || polynomial[0].factors.size() != 1) return -1;
  return polynomial[0].factors[0];
}

Dim DimTable::Impl::Sum(Dim a, Dim b, int64_t scale) {
  if (!a.known() || !b.known()) return Dim();
  Polynomial sum = Of(a);
  const Polynomial other = Of(b);
  if (!Spend(sum.size() + other.size())) return Dim();
  return AddTo(&sum, other, scale) ? Intern(std::move(sum)) : Dim();
}

Dim DimTable::Impl::Product(Dim a, Dim b) {
  if (!a.known() || !b.known()) return Dim();
  const Polynomial left = Of(a);
  const Polynomial right = Of(b);
  if (!Spend(left.size() * right.size() * (right.size() + 1))) return Dim();
  Polynomial product;
  return Multiply(left, right, &product) ? Intern(std::move(product)) : Dim();
}

Dim DimTable::Impl::Build(AtomKind kind, Dim a, Dim b) {
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

Dim DimTable::Impl::ExactDiv(Dim a, Dim b) {
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

// numerator / divisor = quotient + rest / divisor, with the smallest rest and divisor.
void DimTable::Impl::DivideByNumber(const Polynomial& numerator, int64_t* divisor, Polynomial* quotient, Polynomial* rest) {
  // floor((d*q + r) / d) = q + floor(r / d) for an integer q: coefficients of r are the least in absolute
  // value, its constant is in [0, d).
  uint64_t content = static_cast<uint64_t>(*divisor);
  for (const Term& term : numerator) {
    int64_t whole = 0;
    FloorDivNumbers(term.coefficient, *divisor, &whole);
    int64_t left = term.coefficient - whole * *divisor;
    if (!term.factors.empty() && left > *divisor / 2) {
      left -= *divisor;
      ++whole;
    }
    if (whole != 0) quotient->push_back({whole, term.factors});
    if (left == 0) continue;
    rest->push_back({left, term.factors});
    if (!term.factors.empty()) content = std::gcd(content, Magnitude(left));
  }
  // floor((g*x + c) / (g*d)) = floor((x + floor(c/g)) / d).
  const int64_t shared = static_cast<int64_t>(content);
  if (shared > 1) {
    Polynomial reduced;
    for (Term term : *rest) {
      FloorDivNumbers(term.coefficient, shared, &term.coefficient);
      if (term.coefficient != 0) reduced.push_back(std::move(term));
    }
    *rest = std::move(reduced);
    *divisor /= shared;
  }
}

Dim DimTable::Impl::FloorDiv(Dim a, Dim b) {
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
    Polynomial above;
    Polynomial below;
    if (!AddTo(&above, numerator, -1) || !AddTo(&below, denominator, -1)) return Dim();
    numerator = std::move(above);
    denominator = std::move(below);
  }
  Polynomial quotient;
  Polynomial rest;
  if (denominator.size() == 1 && denominator[0].factors.empty()) {
    int64_t divisor = denominator[0].coefficient;
    DivideByNumber(numerator, &divisor, &quotient, &rest);
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
      if (inner.kind == AtomKind::kFloorDiv && inner.b.is_number() && !__builtin_mul_overflow(inner.b.number(), divisor, &both) &&
          inner.b.number() > 0) {
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

Dim DimTable::Impl::MinMax(AtomKind kind, Dim a, Dim b) {
  if (!a.known() || !b.known()) return Dim();
  if (a == b) return a;
  if (AtLeast(a, b)) return kind == AtomKind::kMax ? a : b;
  if (AtLeast(b, a)) return kind == AtomKind::kMax ? b : a;
  Order(&a, &b);
  return Opaque(kind, a, b);
}

bool DimTable::Impl::IsOperand(AtomKind kind, Dim whole, Dim part) const {
  if (whole.is_number()) return false;
  const Polynomial& polynomial = expressions[static_cast<size_t>(whole.bits_)]->polynomial;
  if (polynomial.size() != 1 || polynomial[0].coefficient != 1 || polynomial[0].factors.size() != 1) {
    return false;
  }
  const Atom& atom = atoms[polynomial[0].factors[0]];
  if (atom.kind != kind) return false;
  return atom.a == part || atom.b == part || IsOperand(kind, atom.a, part) || IsOperand(kind, atom.b, part);
}

Dim DimTable::Impl::Broadcast(Dim a, Dim b) {
  if (!a.known() || !b.known()) {
    // A number above 1 decides alone: the other is the same or 1.
    const Dim one = a.known() ? a : b;
    return one.known() && NeverOne(one) ? one : Dim();
  }
  if (a == b || b.is(1)) return a;
  if (a.is(1)) return b;
  if (a.is_number()) return a;
  if (b.is_number()) return b;
  if (NeverOne(a)) return a;
  if (NeverOne(b)) return b;
  if (IsOperand(AtomKind::kBroadcast, a, b)) return a;
  if (IsOperand(AtomKind::kBroadcast, b, a)) return b;
  Order(&a, &b);
  return Opaque(AtomKind::kBroadcast, a, b);
}

void DimTable::Impl::Order(Dim* a, Dim* b) {
  if (std::make_pair(static_cast<int>(a->kind_), a->bits_) > std::make_pair(static_cast<int>(b->kind_), b->bits_)) {
    std::swap(*a, *b);
  }
}

}  // namespace ascend_fuse
