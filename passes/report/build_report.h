// The report of a workspace after its passes have run.
#pragma once

#include "passes/core/workspace.h"
#include "passes/report/report.h"

namespace ascend_fuse {

// What a model is judged for: chip, release and how atc is called, and the dims that were bound.
ReportTarget DescribeTarget(const Target& target, const Model& model, const InferOptions& infer);

// Sites in the order in which the model computes them, near misses, warnings about the model as it is now, and counts.
// The workspace needs a target.
Report BuildReport(Workspace& workspace);

}  // namespace ascend_fuse
