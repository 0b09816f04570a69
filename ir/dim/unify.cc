// Equalities that every error-free run satisfies: which atom each of them replaces, and resolving expressions
// under all of them.
#include <algorithm>
#include <numeric>

#include "ir/dim/table.h"

namespace ascend_fuse {

using namespace dim_algebra;  // NOLINT: of the same folder

Dim DimTable::Impl::ResolveAtom(uint32_t id) {
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
    if (!scoped.AnyPlaced()) atoms[id].substitute = target;
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

Dim DimTable::Impl::Resolve(Dim dim) {
  if (dim.kind_ != Dim::Kind::kExpression) return dim;
  Expression* expression = expressions[static_cast<size_t>(dim.bits_)].get();
  const bool is_here = scoped.AnyPlaced();
  if (is_here) {
    if (const auto here = scoped.resolved.find(dim.bits_); here != scoped.resolved.end()) return here->second;
  } else if (expression->version == version) {
    return expression->resolved;
  }
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
        changed = changed || of_factor.size() != 1 || of_factor[0].coefficient != 1 || of_factor[0].factors.size() != 1 ||
                  of_factor[0].factors[0] != factor;
        Polynomial next;
        ok = ok && Spend(product.size() * of_factor.size() * of_factor.size()) && Multiply(product, of_factor, &next);
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
  if (is_here) {
    scoped.resolved[dim.bits_] = result;
    return result;
  }
  expression = expressions[static_cast<size_t>(dim.bits_)].get();
  expression->resolved = result;
  expression->version = version;
  return result;
}

Dim DimTable::Impl::Outside(Dim dim) {
  dim = Resolve(dim);
  if (dim.kind_ != Dim::Kind::kExpression || !had_scope) return dim;
  const Polynomial polynomial = expressions[static_cast<size_t>(dim.bits_)]->polynomial;
  Polynomial sum;
  bool changed = false;
  for (const Term& term : polynomial) {
    Polynomial product = OfNumber(term.coefficient);
    for (uint32_t factor : term.factors) {
      Dim value = OfAtom(factor);
      const AtomKind kind = atoms[factor].kind;
      if ((kind == AtomKind::kMin || kind == AtomKind::kBroadcast) && atoms[factor].scope != 0 && atoms[factor].scope != scope) {
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

Dim DimTable::Impl::Unclamp(Dim dim, std::vector<std::pair<uint32_t, Dim>>* clamps) {
  if (dim.kind_ != Dim::Kind::kExpression) return dim;
  const Polynomial polynomial = expressions[static_cast<size_t>(dim.bits_)]->polynomial;
  Polynomial sum;
  for (const Term& term : polynomial) {
    Polynomial product = OfNumber(term.coefficient);
    for (uint32_t factor : term.factors) {
      Dim value = OfAtom(factor);
      const Atom& atom = atoms[factor];
      if (atom.kind == AtomKind::kMin && (scope == 0 || atom.scope == scope) && (atom.a.is_number() != atom.b.is_number()) &&
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

bool DimTable::Impl::UnifyWithinBounds(Dim a, Dim b) {
  std::vector<std::pair<uint32_t, Dim>> clamps;
  a = Unclamp(a, &clamps);
  b = Unclamp(b, &clamps);
  if (clamps.empty() || a != b) return false;
  for (const auto& [atom, value] : clamps) {
    if (OccursIn(atom, value)) return false;
  }
  for (const auto& [atom, value] : clamps) atoms[atom].substitute = value;
  scoped.resolved.clear();
  ++version;
  return true;
}

bool DimTable::Impl::Unify(Dim a, Dim b) {
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
  Substitution best = BestSubstitution(difference, true);
  const bool here_only = best.atom < 0 && scope != 0;
  if (here_only) best = BestSubstitution(difference, false);
  if (best.atom < 0) return true;
  const uint32_t id = static_cast<uint32_t>(best.atom);
  const Interval range = atoms[id].kind == AtomKind::kSymbol ? atoms[id].range : BoundsOfAtom(id, 2);
  if (Upper(best.value, 3) < range.low || Lower(best.value, 3) > range.high) return false;
  const Dim value = Intern(best.value);
  if (!value.known()) return true;
  if (here_only) {
    auto& here = scoped.equalities[scope];
    if (here.size() >= ScopedDims::kMostEqualities) return true;
    here.emplace_back(OfAtom(id), value);
    Place(*this, id, value);
    return true;
  }
  atoms[id].substitute = value;
  Transfer(best.value, value, range);
  scoped.resolved.clear();
  ++version;
  return true;
}

namespace {

// Of an atom that may be replaced; the best one has most: one that inference made up, then a broadcast whose outcome is now
// known, then a symbol that is a sum of others (total = past + seq keeps past >= 0 visible), then the newest symbol (those of
// graph inputs are the oldest), then other opaque atoms.
int64_t ScoreOf(uint32_t id, AtomKind kind, bool fresh, bool positive) {
  int64_t score = id;
  if (positive) score += int64_t{1} << 33;
  if (kind == AtomKind::kSymbol) score += int64_t{1} << (fresh ? 36 : 32);
  if (kind == AtomKind::kBroadcast) score += int64_t{1} << 35;
  return score;
}

}  // namespace

Substitution DimTable::Impl::BestSubstitution(const Polynomial& difference, bool of_scope) {
  Substitution best;
  int64_t best_score = kMinusInfinity;
  for (size_t i = 0; i < difference.size(); ++i) {
    const Term& term = difference[i];
    if (term.factors.size() != 1 || (term.coefficient != 1 && term.coefficient != -1)) continue;
    const uint32_t id = term.factors[0];
    Polynomial others = difference;
    others.erase(others.begin() + static_cast<int>(i));
    if ((of_scope && scope != 0 && atoms[id].scope != scope) || Occurs(id, others)) continue;
    Polynomial value;
    if (!AddTo(&value, others, -term.coefficient)) continue;
    const Atom& atom = atoms[id];
    const bool positive = std::all_of(value.begin(), value.end(), [](const Term& part) { return part.coefficient > 0; });
    const int64_t score = ScoreOf(id, atom.kind, atom.fresh, positive);
    if (best.atom >= 0 && score <= best_score) continue;
    best = {id, std::move(value)};
    best_score = score;
  }
  return best;
}

void DimTable::Impl::Transfer(const Polynomial& polynomial, Dim value, const Interval& range) {
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

}  // namespace ascend_fuse
