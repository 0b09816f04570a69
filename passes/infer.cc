// Infer and number: what is known of every value before anything is looked for.
#include "passes/pass.h"

namespace ascend_fuse {

absl::Status InferFacts(Workspace& workspace) {
  workspace.InferModel();
  return absl::OkStatus();
}

absl::Status Number(Workspace& workspace) {
  workspace.NumberValues();
  return absl::OkStatus();
}

}  // namespace ascend_fuse
