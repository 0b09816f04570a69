// Check result: what ATC would make of the model as it is written.
#include <algorithm>
#include <initializer_list>
#include <iterator>
#include <vector>

#include "passes/check/atc_check.h"
#include "passes/check/check.h"
#include "passes/check/passes.h"
#include "passes/core/workspace.h"

namespace ascend_fuse {

absl::Status CheckResult(Workspace& workspace) {
  if (workspace.target() == nullptr) return absl::OkStatus();
  const Model& model = workspace.model();
  const Target& target = *workspace.target();
  const auto warn = [&workspace](const std::vector<WarningRecord>& warnings) {
    workspace.result.warnings.insert(workspace.result.warnings.end(), warnings.begin(), warnings.end());
  };
  warn(CheckPlugin(model, target));
  warn(CheckCalls(model, workspace.result.calls_kept, workspace.inliner().left()));
  warn(CheckOpset(model, target));
  // The names of --fix are written into the model as numbers.
  InferOptions infer = workspace.options().infer;
  std::erase_if(infer.dims, [&fix = workspace.options().fix](const auto& dim) {
    return std::find(fix.begin(), fix.end(), dim.first) != fix.end();
  });
  warn(CheckDims(model, infer));
  warn(CheckEmptyDims(model, workspace.facts(), workspace.options().infer));
  const std::vector<FindingRecord> in_nodes = FindInNodes(model, workspace.facts(), target);
  warn(CheckForms(in_nodes));
  std::vector<FindingRecord> frame = FindInStructure(model, target);
  // A style settles what the imports are.
  std::erase_if(frame,
                [&](const FindingRecord& finding) { return finding.code == "imports-mixed" && !workspace.result.style.empty(); });
  for (const std::vector<FindingRecord>* found : std::initializer_list<const std::vector<FindingRecord>*>{&in_nodes, &frame}) {
    std::copy_if(found->begin(), found->end(), std::back_inserter(workspace.result.findings), IsFatal);
  }
  // CheckOpset says it.
  std::erase_if(frame, [](const FindingRecord& finding) { return finding.code == "opset-too-high"; });
  warn(WarningsOf(frame));
  warn(CheckConstants(model, target));
  return absl::OkStatus();
}

}  // namespace ascend_fuse
