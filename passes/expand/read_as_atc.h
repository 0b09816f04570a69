// The model as ATC of a target builds it, in standard ONNX: what it misreads is written as what it makes of it, so that
// ONNX Runtime computes the numbers that the chip would. For `expand --as-atc` and `verify --as-atc`.
#pragma once

#include "absl/status/status.h"
#include "passes/core/workspace.h"

namespace ascend_fuse {

// Rewrites every form that the workspace's target misreads (rules of patterns/rules/misread). UNAVAILABLE with the reasons
// where ATC refuses the model, and where it misreads a form in a way that no rule knows: then there are no numbers.
// What the sources do not settle is taken as ONNX defines it, and so is what values decide where no rule says what ATC
// computes of them (a computed index that may be negative).
absl::Status ReadAsAtc(Workspace& workspace);

}  // namespace ascend_fuse
