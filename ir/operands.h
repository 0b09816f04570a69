// Whether the nodes of a model have the inputs that their operators need.
#pragma once

#include "absl/status/status.h"
#include "ir/model.h"

namespace ascend_fuse {

// INVALID_ARGUMENT with a sentence about the first node of a known operator that lacks an input which is not optional. No
// runtime takes such a model, and what looks at nodes of a known operator may rely on the inputs.
absl::Status CheckOperands(const Model& model);

}  // namespace ascend_fuse
