// What keeps a graph from running on the chip alone: shape arithmetic, kernels of the AI CPU, shapes that depend on data, values
// that the host reads back, control flow.
#pragma once

#include <string>
#include <vector>

#include "passes/analyze/measure.h"

namespace ascend_fuse {

// `symbols`: the dims that shape arithmetic is computed of, as the model names them.
std::vector<HostRecord> FindHostWork(const MeasuredGraph& graph, const Reach& reach, const Facts& facts,
                                     std::vector<std::string>* symbols);

}  // namespace ascend_fuse
