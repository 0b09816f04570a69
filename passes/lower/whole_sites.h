// Sites of which no part is another site, or is read elsewhere: what is written in parts for them is computed once.
#pragma once

#include <string_view>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "passes/core/workspace.h"
#include "patterns/language/pattern.h"

namespace ascend_fuse {

class WholeSites {
 public:
  explicit WholeSites(const Workspace& workspace) : workspace_(workspace) {}

  // Whether the rule may write the site in parts, where it does: another site of its kind ends in none of its nodes, and what GE
  // is to join is read by nothing else. True of any other rule.
  bool IsWhole(const Rule& rule, const Site& site);

 private:
  const Workspace& workspace_;
  // What all sites compute, by the last node of each and its kind; filled once.
  absl::flat_hash_map<std::pair<const Node*, std::string_view>, const Value*> roots_;
};

}  // namespace ascend_fuse
