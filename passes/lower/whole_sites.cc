#include "passes/lower/whole_sites.h"

#include <algorithm>

namespace ascend_fuse {

bool WholeSites::IsWhole(const Rule& rule, const Site& site) {
  if (rule.joined_by_ge.empty() && !rule.yields_to_ge) return true;
  if (roots_.empty()) {
    for (const Site& other : workspace_.sites) {
      if (!other.covered.empty())
        roots_.emplace(std::pair(other.covered.front(), std::string_view(other.record.kind)), other.value);
    }
  }
  return std::none_of(site.covered.begin(), site.covered.end(), [&](const Node* node) {
    const auto root = roots_.find(std::pair(node, std::string_view(site.record.kind)));
    const bool of_another = root != roots_.end() && root->second != site.value;
    return of_another || (!rule.joined_by_ge.empty() && !node->dead && !IsOp(*node, "Constant"));
  });
}

}  // namespace ascend_fuse
