// How hard the migration is, by rules that docs/analyze.md lists, and what to do next.
#pragma once

#include "passes/analyze/measure.h"

namespace ascend_fuse {

// Sets complexity and next. The rest of the analysis is there; `target` is the one it was made for.
void Conclude(const MeasuredGraph& after, const Target& target, Analysis* analysis);

}  // namespace ascend_fuse
