// What nodes compute and move together: sums of counts that are functions of the dims.
#pragma once

#include "passes/analyze/measure.h"

namespace ascend_fuse {

// Sums the amounts of a graph that was just measured, whole, by operator and by module. The dims of its nodes are those of
// `dims`: what is kept afterwards is text and numbers.
void SumAmounts(Binding* binding, DimTable* dims, MeasuredGraph* graph);

}  // namespace ascend_fuse
