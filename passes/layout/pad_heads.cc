#include "passes/layout/pad_heads.h"

#include <algorithm>
#include <string_view>

#include "absl/status/status.h"
#include "fmt/format.h"
#include "ir/status_macros.h"
#include "passes/core/call_of.h"
#include "passes/layout/attention_layout.h"
#include "passes/layout/padding_plan.h"
#include "patterns/cost/costs.h"
#include "patterns/target/target.h"

namespace ascend_fuse {
namespace {

absl::Status No(std::string_view clause) { return absl::FailedPreconditionError(std::string(clause)); }

}  // namespace

absl::StatusOr<PaddedHeads> HeadPadder::Pad(const Node* attention, int64_t width) {
  ASSIGN_OR_RETURN(const PaddingPlan plan, PaddingSearch(workspace_.facts(), attention, width).Run());
  return PaddingWriter(workspace_, plan, padded_).Write();
}

absl::StatusOr<int64_t> HeadsTaken(const Node& kernel, Workspace& workspace) {
  const HeadPadding* padding = FindHeadPadding(OpType(kernel));
  if (padding == nullptr || StringAttribute(kernel, "input_layout") != "BNSD") return 0;
  Call call = CallOf(kernel, workspace.facts(), fmt::format("npu.{}", OpType(kernel)));
  int64_t least = kMostPlaces;
  int64_t most = 0;
  for (size_t i = 0; i < kAttentionOperands; ++i) {
    if (call.inputs.size() < kAttentionOperands || call.inputs[i].shape.size() != 4) return 0;
    const Dim size = workspace.facts().dims().Resolve(call.inputs[i].shape[3]);
    if (!size.is_number()) return 0;
    least = std::min(least, size.number());
    most = std::max(most, size.number());
  }
  const int64_t rounded = PaddedSize(most, padding->multiple_of);
  if (rounded == 0) return 0;
  for (const int64_t width : {most, rounded}) {
    for (size_t i = 0; i < kAttentionOperands; ++i) call.inputs[i].shape[3] = Dim::Of(width);
    if (!workspace.target()->Check(call, &workspace.facts().dims()).legal) continue;
    if (static_cast<double>(width) <= static_cast<double>(least) * padding->at_most) return width;
    return No(fmt::format("heads of {} would be {} wide, more than {} times their size", least, width, padding->at_most));
  }
  return 0;
}

}  // namespace ascend_fuse
