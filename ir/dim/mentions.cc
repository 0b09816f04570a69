// Which atoms occur in an expression.
#include <algorithm>

#include "ir/dim/table.h"

namespace ascend_fuse {

using namespace dim_algebra;  // NOLINT: of the same folder

bool DimTable::Impl::Occurs(uint32_t atom, const Polynomial& polynomial) const {
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

bool DimTable::Impl::OccursIn(uint32_t atom, Dim dim) const {
  return dim.kind_ == Dim::Kind::kExpression && Occurs(atom, expressions[static_cast<size_t>(dim.bits_)]->polynomial);
}

bool DimTable::Impl::MentionsFresh(Dim dim) const {
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

bool DimTable::Impl::OlderThan(Dim dim, uint64_t mark) const {
  if (dim.kind_ != Dim::Kind::kExpression) return true;
  for (const Term& term : expressions[static_cast<size_t>(dim.bits_)]->polynomial) {
    for (uint32_t factor : term.factors) {
      const Atom& atom = atoms[factor];
      if (atom.kind == AtomKind::kSymbol ? factor >= mark : !OlderThan(atom.a, mark) || !OlderThan(atom.b, mark)) {
        return false;
      }
    }
  }
  return true;
}

void DimTable::Impl::AddSymbols(Dim dim, std::vector<std::string_view>* names) const {
  if (dim.kind_ != Dim::Kind::kExpression) return;
  for (const Term& term : expressions[static_cast<size_t>(dim.bits_)]->polynomial) {
    for (uint32_t factor : term.factors) {
      const Atom& atom = atoms[factor];
      if (atom.kind != AtomKind::kSymbol) {
        AddSymbols(atom.a, names);
        AddSymbols(atom.b, names);
      } else if (std::find(names->begin(), names->end(), atom.name) == names->end()) {
        names->push_back(atom.name);
      }
    }
  }
}

}  // namespace ascend_fuse
