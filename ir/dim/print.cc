// Expressions as text, and their value under a binding of symbols.
#include <algorithm>

#include "ir/dim/table.h"

namespace ascend_fuse {

using namespace dim_algebra;  // NOLINT: of the same folder

void DimTable::Impl::Print(Dim dim, std::string* out) const {
  if (!dim.known()) {
    out->append("?");
  } else if (dim.is_number()) {
    out->append(std::to_string(dim.number()));
  } else {
    Print(expressions[static_cast<size_t>(dim.bits_)]->polynomial, out);
  }
}

void DimTable::Impl::Print(const Polynomial& polynomial, std::string* out) const {
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

void DimTable::Impl::PrintOperand(Dim dim, std::string* out) const {
  bool simple = dim.is_number() && dim.number() >= 0;
  if (!dim.is_number()) {
    const Polynomial& polynomial = expressions[static_cast<size_t>(dim.bits_)]->polynomial;
    simple = polynomial.size() == 1 && polynomial[0].coefficient == 1 && polynomial[0].factors.size() == 1;
  }
  if (!simple) out->append("(");
  Print(dim, out);
  if (!simple) out->append(")");
}

void DimTable::Impl::PrintAtom(const Atom& atom, std::string* out) const {
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

std::optional<int64_t> DimTable::Impl::Evaluate(Dim dim, const Binding& symbol) const {
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

std::optional<int64_t> DimTable::Impl::EvaluateAtom(const Atom& atom, const Binding& symbol) const {
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

}  // namespace ascend_fuse
