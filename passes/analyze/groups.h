// Which nodes of a measured graph a site stands for, and which of them one kernel of GE computes.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "passes/analyze/measure.h"
#include "passes/core/records.h"

namespace ascend_fuse {

// Nodes by their names and by what they compute.
class NodePlaces {
 public:
  explicit NodePlaces(const MeasuredGraph& graph);
  // -1 where there is none.
  int OfName(std::string_view name) const;
  int OfOutput(std::string_view value) const;

 private:
  absl::flat_hash_map<std::string, int> names_;
  absl::flat_hash_map<std::string, int> outputs_;
};

// The nodes that a site stands for, each once, as they are called in the graph.
std::vector<int> MembersOf(const SiteRecord& site, const NodePlaces& places);

// What GE joins, each node in at most one group. `after`: of the graph that is written.
std::vector<std::vector<int>> GroupsOfGe(const std::vector<SiteRecord>& sites, const NodePlaces& places, bool after);

}  // namespace ascend_fuse
