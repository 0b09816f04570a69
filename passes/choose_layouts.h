// The pass `choose_layouts`: heads before or behind tokens around every fused attention.
#pragma once

#include "absl/status/status.h"
#include "passes/workspace.h"

namespace ascend_fuse {

// Only attentions that are written in BNSD, as rules emit them, so that a second run changes nothing. Nothing is changed
// without a target.
absl::Status ChooseLayouts(Workspace& workspace);

}  // namespace ascend_fuse
