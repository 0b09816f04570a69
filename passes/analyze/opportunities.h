// What was fused, what GE fuses later and what is left, in the order of what it wins by the cost model.
#pragma once

#include <functional>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "passes/analyze/groups.h"

namespace ascend_fuse {

struct OpportunityInput {
  const Report& report;
  const MeasuredGraph& before;
  const MeasuredGraph& after;
  const CostModel& model;
  // Values whose sites are fused with our op plugin: what was tried.
  const absl::flat_hash_set<std::string>& by_plugin;
};

std::vector<OpportunityRecord> FindOpportunities(const OpportunityInput& input);

}  // namespace ascend_fuse
