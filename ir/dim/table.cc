// The operations of DimTable: operands are resolved, then ir/dim/*.cc compute.
#include "ir/dim/table.h"

#include <algorithm>

namespace ascend_fuse {

using namespace dim_algebra;  // NOLINT: of the same folder

namespace {

// hint'1, hint'2 ...: the first after the last that no symbol has.
template <typename Symbols>
std::string UnusedName(const std::string& hint, const Symbols& symbols, uint32_t* suffix) {
  std::string name;
  do {
    name = hint + "'" + std::to_string(++*suffix);
  } while (symbols.contains(name));
  return name;
}

}  // namespace

DimTable::DimTable() : impl_(std::make_unique<Impl>()) {}
DimTable::~DimTable() = default;
DimTable::DimTable(DimTable&&) noexcept = default;
DimTable& DimTable::operator=(DimTable&&) noexcept = default;

Dim DimTable::Symbol(std::string_view name) {
  const auto found = impl_->symbols.find(name);
  if (found != impl_->symbols.end()) {
    const uint32_t id = found->second;
    if (!impl_->atoms[id].fresh) return impl_->OfAtom(id);
    // Somebody else's: another dim.
    impl_->symbols.erase(found);
    const std::string hint(name);
    impl_->atoms[id].name = impl_->names.Copy(UnusedName(hint, impl_->symbols, &impl_->fresh_suffixes[hint]));
    impl_->atoms[id].can_be_told = false;
    impl_->symbols.emplace(impl_->atoms[id].name, id);
  }
  Impl::Atom atom;
  atom.name = impl_->names.Copy(name);
  const uint32_t id = static_cast<uint32_t>(impl_->atoms.size());
  impl_->atoms.push_back(atom);
  impl_->symbols.emplace(atom.name, id);
  return impl_->OfAtom(id);
}

Dim DimTable::FreshSymbol(std::string_view hint, bool is_input) {
  std::string name(hint.empty() ? std::string_view("dim") : hint);
  uint32_t& suffix = impl_->fresh_suffixes[name];
  if (suffix > 0 || impl_->symbols.contains(name)) name = UnusedName(name, impl_->symbols, &suffix);
  const Dim dim = Symbol(name);
  impl_->atoms.back().fresh = true;
  impl_->atoms.back().can_be_told = is_input && impl_->atoms.back().name == hint;
  impl_->atoms.back().scope = impl_->scope;
  impl_->has_fresh = true;
  return dim;
}

Dim DimTable::Find(std::string_view name) const {
  const auto found = impl_->symbols.find(name);
  return found == impl_->symbols.end() ? Dim() : impl_->OfAtom(found->second);
}

bool DimTable::CanBeTold(std::string_view name) const {
  const auto found = impl_->symbols.find(name);
  return found == impl_->symbols.end() || impl_->atoms[found->second].can_be_told;
}

bool DimTable::HasFresh() const { return impl_->has_fresh; }

bool DimTable::MentionsFresh(Dim dim) const { return impl_->has_fresh && impl_->MentionsFresh(Resolve(dim)); }

std::vector<std::string_view> DimTable::Symbols(Dim dim) const {
  std::vector<std::string_view> names;
  impl_->AddSymbols(dim, &names);
  return names;
}

bool DimTable::NamesFewer(Dim few, Dim many) const {
  const std::vector<std::string_view> some = Symbols(few);
  const std::vector<std::string_view> all = Symbols(many);
  return some.size() < all.size() && std::all_of(some.begin(), some.end(), [&](std::string_view name) {
           return std::find(all.begin(), all.end(), name) != all.end();
         });
}

Dim DimTable::Outside(Dim dim) const { return impl_->Outside(dim); }

uint64_t DimTable::Mark() const { return impl_->atoms.size(); }

bool DimTable::OlderThan(Dim dim, uint64_t mark) const {
  dim = Resolve(dim);
  return dim.known() && impl_->OlderThan(dim, mark);
}

uint64_t DimTable::SetScope(uint64_t scope) {
  const uint64_t left = impl_->scope;
  if (scope == left) return left;
  impl_->had_scope = true;
  Leave(*impl_);
  impl_->scope = scope;
  if (!impl_->scoped.equalities.empty()) Enter(*impl_, scope);
  return left;
}

uint64_t DimTable::SetScope(uint64_t scope, uint64_t outer) {
  if (scope != 0 && scope != outer) impl_->scoped.outer[scope] = outer;
  return SetScope(scope);
}

uint64_t DimTable::scope() const { return impl_->scope; }

std::vector<std::pair<Dim, Dim>> DimTable::Scoped(uint64_t scope) const {
  const auto known = impl_->scoped.equalities.find(scope);
  return known == impl_->scoped.equalities.end() ? std::vector<std::pair<Dim, Dim>>() : known->second;
}

void DimTable::ForgetScoped(uint64_t scope) { impl_->scoped.equalities.erase(scope); }

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
  if (a == b) return a;
  a = Resolve(a);
  b = Resolve(b);
  if (a.known() && b.known() && a != b && impl_->unification) {
    // Of two that differ one is 1. Rows of 4 heads never are.
    const bool equal = impl_->UnifyWithinBounds(a, b) || (impl_->NeverOne(a) && impl_->NeverOne(b) && impl_->Unify(a, b));
    if (equal) a = Resolve(a);
  }
  return impl_->Broadcast(a, Resolve(b));
}

bool DimTable::Unify(Dim a, Dim b) { return impl_->unification ? impl_->Unify(a, b) : !NotEqual(a, b); }

bool DimTable::SetUnification(bool on) { return std::exchange(impl_->unification, on); }

Dim DimTable::Resolve(Dim dim) const { return impl_->Resolve(dim); }

bool DimTable::Equal(Dim a, Dim b) const { return a.known() && b.known() && (a == b || Resolve(a) == Resolve(b)); }

bool DimTable::Equal(absl::Span<const Dim> a, absl::Span<const Dim> b) const {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [&](Dim x, Dim y) { return Equal(x, y); });
}

bool DimTable::NotEqual(Dim a, Dim b) const {
  if (!a.known() || !b.known()) return false;
  if (a.is_number() && b.is_number()) return a.number() != b.number();
  Polynomial difference = impl_->Of(Resolve(a));
  return AddTo(&difference, impl_->Of(Resolve(b)), -1) && impl_->NonZero(difference);
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

std::optional<int64_t> DimTable::Evaluate(Dim dim, const std::function<std::optional<int64_t>(std::string_view)>& symbol) const {
  const std::optional<int64_t> value = impl_->Evaluate(Resolve(dim), symbol);
  return value.has_value() ? value : impl_->Evaluate(dim, symbol);
}

}  // namespace ascend_fuse
