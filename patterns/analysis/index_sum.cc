#include "patterns/analysis/index_sum.h"

#include <algorithm>

#include "fmt/format.h"
#include "fmt/ranges.h"
#include "ir/tensor.h"

namespace ascend_fuse {
namespace {

std::string KeyOf(Dim dim) { return fmt::format("{}{}", dim.is_number() ? 'n' : dim.known() ? 'e' : '?', dim.id()); }

}  // namespace

IndexSum IndexTable::Intern(std::vector<Term> terms, Dim constant) {
  std::string key = KeyOf(constant);
  uint8_t depends = 0;
  for (const Term& term : terms) {
    key += fmt::format(" {}*{}", KeyOf(term.coefficient), term.atom);
    depends |= atoms_[term.atom].depends;
  }
  const auto [entry, inserted] = sum_ids_.try_emplace(std::move(key), static_cast<IndexSum>(sums_.size()));
  if (inserted) sums_.push_back({std::move(terms), constant, depends});
  return entry->second;
}

IndexSum IndexTable::Of(Dim dim) {
  dim = dims_.Resolve(dim);
  return dim.known() ? Intern({}, dim) : kNoSum;
}

IndexSum IndexTable::OfAtom(IndexAtom atom) {
  atom.extent = dims_.Resolve(atom.extent);
  std::string key = fmt::format("{} {} {} {} {}", static_cast<int>(atom.kind), atom.axis, KeyOf(atom.extent),
                                atom.value == nullptr ? 0 : atom.value->id + uint64_t{1}, fmt::join(atom.indices, ","));
  const auto [entry, inserted] = atom_ids_.try_emplace(std::move(key), static_cast<uint32_t>(atoms_.size()));
  if (inserted) {
    for (IndexSum index : atom.indices) atom.depends |= sums_[index].depends;
    atoms_.push_back(std::move(atom));
  }
  return Intern({{entry->second, Dim::Of(1)}}, Dim::Of(0));
}

IndexSum IndexTable::Position(int axis, Dim extent) {
  if (dims_.Equal(extent, Dim::Of(1))) return Of(0);
  IndexAtom atom;
  atom.axis = axis;
  atom.extent = extent;
  atom.depends = static_cast<uint8_t>(axis < 4 ? 1 << axis : int{kOnInnerAxis});
  return OfAtom(std::move(atom));
}

IndexSum IndexTable::Read(const Value* value, absl::Span<const IndexSum> indices) {
  if (std::find(indices.begin(), indices.end(), kNoSum) != indices.end()) return kNoSum;
  IndexAtom atom;
  atom.kind = IndexAtom::Kind::kRead;
  atom.value = value;
  atom.indices.assign(indices.begin(), indices.end());
  return OfAtom(std::move(atom));
}

IndexSum IndexTable::Broadcast(IndexSum index, Dim extent) {
  if (index == kNoSum || NumberOf(index) == 0) return index;
  if (const auto& terms = sums_[index].terms; terms.size() == 1 && terms[0].coefficient.is(1) && sums_[index].constant.is(0)) {
    const IndexAtom& atom = atoms_[terms[0].atom];
    // What is 1 here was 1 in what is broadcast, and a place among one is 0.
    if (atom.kind == IndexAtom::Kind::kBroadcast) return Broadcast(IndexSum{atom.indices[0]}, extent);
    if (atom.kind == IndexAtom::Kind::kPosition && dims_.Equal(atom.extent, extent)) return index;
  }
  IndexAtom atom;
  atom.kind = IndexAtom::Kind::kBroadcast;
  atom.extent = extent;
  atom.indices = {index};
  return OfAtom(std::move(atom));
}

IndexSum IndexTable::AddScaled(IndexSum a, IndexSum b, Dim factor) {
  if (a == kNoSum || b == kNoSum || !factor.known()) return kNoSum;
  const Dim constant = dims_.Resolve(dims_.Add(sums_[a].constant, dims_.Mul(sums_[b].constant, factor)));
  if (!constant.known()) return kNoSum;
  std::vector<Term> terms;
  auto x = sums_[a].terms.begin();
  auto y = sums_[b].terms.begin();
  while (x != sums_[a].terms.end() || y != sums_[b].terms.end()) {
    Term term;
    const bool left = y == sums_[b].terms.end() || (x != sums_[a].terms.end() && x->atom <= y->atom);
    const bool right = x == sums_[a].terms.end() || (y != sums_[b].terms.end() && y->atom <= x->atom);
    term.atom = left ? x->atom : y->atom;
    const Dim scaled = right ? dims_.Mul(y->coefficient, factor) : Dim::Of(0);
    term.coefficient = dims_.Resolve(left ? dims_.Add(x->coefficient, scaled) : scaled);
    if (!term.coefficient.known()) return kNoSum;
    if (!term.coefficient.is(0)) terms.push_back(term);
    if (left) ++x;
    if (right) ++y;
  }
  return Intern(std::move(terms), constant);
}

std::pair<IndexSum, IndexSum> IndexTable::DivMod(IndexSum a, Dim divisor) {
  divisor = dims_.Resolve(divisor);
  if (a == kNoSum || !divisor.known() || divisor.is(0)) return {kNoSum, kNoSum};
  if (divisor.is(1)) return {a, Of(0)};
  const Sum sum = sums_[a];
  std::vector<Term> whole;
  std::vector<Term> rest;
  for (const Term& term : sum.terms) {
    const Dim quotient = dims_.ExactDiv(term.coefficient, divisor);
    if (quotient.known()) {
      whole.push_back({term.atom, quotient});
    } else {
      rest.push_back(term);
    }
  }
  const Dim divided = dims_.ExactDiv(sum.constant, divisor);
  const IndexSum quotient = Intern(std::move(whole), divided.known() ? divided : Dim::Of(0));
  const IndexSum remainder = Intern(std::move(rest), divided.known() ? Dim::Of(0) : sum.constant);
  const Dim low = Lower(remainder);
  const Dim high = Upper(remainder);
  if (low.known() && high.known() && dims_.AtLeast(low, Dim::Of(0)) && dims_.AtLeast(dims_.Sub(divisor, Dim::Of(1)), high)) {
    return {quotient, remainder};
  }
  IndexAtom atom;
  atom.kind = IndexAtom::Kind::kFloorDiv;
  atom.extent = divisor;
  atom.indices = {remainder};
  const IndexSum floor = OfAtom(std::move(atom));
  return {Add(quotient, floor), AddScaled(remainder, floor, dims_.Mul(divisor, Dim::Of(-1)))};
}

Dim IndexTable::DimOf(IndexSum sum) const { return sum != kNoSum && sums_[sum].terms.empty() ? sums_[sum].constant : Dim(); }

std::optional<int64_t> IndexTable::NumberOf(IndexSum sum) const {
  const Dim dim = DimOf(sum);
  if (!dim.is_number()) return std::nullopt;
  return dim.number();
}

Dim IndexTable::AtomBound(uint32_t id, bool upper) {
  const IndexAtom atom = atoms_[id];
  switch (atom.kind) {
    case IndexAtom::Kind::kPosition:
      return upper ? dims_.Sub(atom.extent, Dim::Of(1)) : Dim::Of(0);
    case IndexAtom::Kind::kBroadcast: {
      if (upper) return dims_.Sub(atom.extent, Dim::Of(1));
      const Dim low = Lower(atom.indices[0]);
      return low.known() && dims_.AtLeast(low, Dim::Of(0)) ? Dim::Of(0) : Dim();
    }
    case IndexAtom::Kind::kFloorDiv: {
      const Dim bound = Bound(atom.indices[0], upper);
      if (!bound.known()) return Dim();
      if (bound.is_number() && atom.extent.is_number()) return dims_.FloorDiv(bound, atom.extent);
      return !upper && dims_.AtLeast(bound, Dim::Of(0)) ? Dim::Of(0) : Dim();
    }
    case IndexAtom::Kind::kRead:
      return Dim();
  }
  return Dim();
}

Dim IndexTable::Bound(IndexSum id, bool upper) {
  if (id == kNoSum) return Dim();
  const Sum sum = sums_[id];
  Dim bound = sum.constant;
  for (const Term& term : sum.terms) {
    const bool positive = dims_.AtLeast(term.coefficient, Dim::Of(0));
    if (!positive && !dims_.AtLeast(Dim::Of(0), term.coefficient)) return Dim();
    bound = dims_.Add(bound, dims_.Mul(term.coefficient, AtomBound(term.atom, positive == upper)));
  }
  return bound;
}

Dim IndexTable::Lower(IndexSum sum) { return Bound(sum, false); }
Dim IndexTable::Upper(IndexSum sum) { return Bound(sum, true); }

bool IndexTable::AtLeast(IndexSum sum, int64_t number) {
  const Dim low = Lower(sum);
  return low.known() && dims_.AtLeast(low, Dim::Of(number));
}

bool IndexTable::AtMost(IndexSum sum, int64_t number) {
  const Dim high = Upper(sum);
  return high.known() && dims_.AtLeast(Dim::Of(number), high);
}

std::string IndexTable::AtomToString(uint32_t id) const {
  const IndexAtom& atom = atoms_[id];
  switch (atom.kind) {
    case IndexAtom::Kind::kPosition:
      return atom.axis < 4 ? std::string(1, "bhij"[atom.axis]) : fmt::format("u{}", atom.axis);
    case IndexAtom::Kind::kFloorDiv:
      return fmt::format("(({}) // ({}))", ToString(atom.indices[0]), dims_.ToString(atom.extent));
    case IndexAtom::Kind::kBroadcast:
      return fmt::format("(({}) * (({}) > 1))", ToString(atom.indices[0]), dims_.ToString(atom.extent));
    case IndexAtom::Kind::kRead:
      break;
  }
  std::vector<std::string> indices;
  for (IndexSum index : atom.indices) indices.push_back(ToString(index));
  return fmt::format("{}[{}]", ValueName(*atom.value), indices.empty() ? "()" : fmt::format("{}", fmt::join(indices, ", ")));
}

std::string IndexTable::ToString(IndexSum id) const {
  const Sum& sum = sums_[id];
  std::string text;
  for (const Term& term : sum.terms) {
    const std::string atom = AtomToString(term.atom);
    if (term.coefficient.is(1)) {
      text += fmt::format("{}{}", text.empty() ? "" : " + ", atom);
    } else if (term.coefficient.is(-1)) {
      text += fmt::format("{}{}", text.empty() ? "-" : " - ", atom);
    } else {
      text += fmt::format("{}({}) * {}", text.empty() ? "" : " + ", dims_.ToString(term.coefficient), atom);
    }
  }
  if (text.empty()) return dims_.ToString(sum.constant);
  if (!sum.constant.is(0)) text += fmt::format(" + ({})", dims_.ToString(sum.constant));
  return text;
}

}  // namespace ascend_fuse
