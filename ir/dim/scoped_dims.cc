// Puts atoms in the places that they have in a scope, and back where it is left.
#include "ir/dim/scoped_dims.h"

#include "ir/dim/table.h"

namespace ascend_fuse {

using namespace dim_algebra;  // NOLINT: of the same folder

void DimTable::Place(Impl& table, uint32_t atom, Dim value) {
  table.scoped.placed.push_back({atom, value, table.atoms[atom].substitute});
  table.atoms[atom].substitute = value;
  table.scoped.resolved.clear();
}

void DimTable::Leave(Impl& table) {
  auto& placed = table.scoped.placed;
  if (placed.empty()) return;
  for (; !placed.empty(); placed.pop_back()) {
    const ScopedDims::Placed& last = placed.back();
    if (table.atoms[last.atom].substitute == last.value) table.atoms[last.atom].substitute = last.otherwise;
  }
  table.scoped.resolved.clear();
}

void DimTable::Enter(Impl& table, uint64_t scope) {
  std::vector<uint64_t> scopes;  // the innermost one first
  constexpr size_t kDeepest = 64;
  while (scope != 0 && scopes.size() < kDeepest) {
    scopes.push_back(scope);
    const auto outer = table.scoped.outer.find(scope);
    scope = outer == table.scoped.outer.end() ? 0 : outer->second;
  }
  for (auto around = scopes.rbegin(); around != scopes.rend(); ++around) {
    const auto known = table.scoped.equalities.find(*around);
    if (known == table.scoped.equalities.end()) continue;
    for (const auto& [a, b] : known->second) {
      Polynomial difference = table.Of(table.Resolve(a));
      if (!AddTo(&difference, table.Of(table.Resolve(b)), -1) || difference.empty()) continue;
      const Substitution best = table.BestSubstitution(difference, false);
      const Dim value = best.atom < 0 ? Dim() : table.Intern(best.value);
      if (value.known()) Place(table, static_cast<uint32_t>(best.atom), value);
    }
  }
}

}  // namespace ascend_fuse
