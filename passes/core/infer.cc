// Infer and number: what is known of every value before anything is looked for; and again where the final operators say more.
#include "ir/operands.h"
#include "ir/status_macros.h"
#include "passes/core/passes.h"
#include "passes/core/workspace.h"

namespace ascend_fuse {

absl::Status InferFacts(Workspace& workspace) {
  RETURN_IF_ERROR(CheckOperands(workspace.model()));
  workspace.InferModel();
  return absl::OkStatus();
}

absl::Status Number(Workspace& workspace) {
  workspace.NumberValues();
  return absl::OkStatus();
}

// An attention has as many rows as its queries, whatever was known of the mask program that stood in front of it. Those who
// read such a result are inferred anew, so that one run knows as much of them as a second one would.
absl::Status InferAgain(Workspace& workspace) {
  if (!workspace.emitter().learned()) return absl::OkStatus();
  workspace.InferModelAgain();
  workspace.NumberValues();
  return absl::OkStatus();
}

}  // namespace ascend_fuse
