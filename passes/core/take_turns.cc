#include "passes/core/take_turns.h"

#include "ir/status_macros.h"
#include "passes/core/passes.h"
#include "passes/core/workspace.h"

namespace ascend_fuse {
namespace {

constexpr int kMostRounds = 8;  // three were the most that were seen

}  // namespace

absl::Status TakeTurns(Workspace& workspace, absl::Span<const PassFunction> passes) {
  for (int round = 0; round < kMostRounds; ++round) {
    const uint64_t changes = workspace.rewriter().Now().changes;
    InferFurther(workspace);
    for (const PassFunction pass : passes) RETURN_IF_ERROR(pass(workspace));
    if (workspace.rewriter().Now().changes == changes) break;
  }
  return absl::OkStatus();
}

}  // namespace ascend_fuse
