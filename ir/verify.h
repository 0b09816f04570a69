// What must hold of a model between passes. Cheap enough to run after every pass.
#pragma once

#include "absl/status/status.h"
#include "ir/model.h"

namespace ascend_fuse {

// Links are consistent both ways, every value that something alive reads is computed by something alive,
// names are there and unique among what is alive. INTERNAL with a sentence naming node and value.
absl::Status Verify(const Model& model);

}  // namespace ascend_fuse
