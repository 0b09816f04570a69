// What types of operators and modules do on both sides of a rewriting.
#pragma once

#include "passes/analyze/measure.h"

namespace ascend_fuse {

// Sets the totals of both sides, operators and modules.
void SetShares(const MeasuredGraph& before, const MeasuredGraph& after, Analysis* analysis);

// The nodes that take most of the time.
std::vector<HeavyRecord> Heaviest(const MeasuredGraph& graph, Binding* binding, const DimTable& dims, const CostModel& model,
                                  size_t most);

// Time of all nodes.
KernelTime TimeOf(const MeasuredGraph& graph);

}  // namespace ascend_fuse
