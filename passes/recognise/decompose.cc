// Decompose: operators of ONNX Runtime in standard operators, for ATC reads none of com.microsoft. Before anything is
// looked for, by rules of patterns/rules/contrib, those that are not a construct by themselves, such as a MatMul with a
// transposed operand; at the end, by rules of patterns/rules/leftovers, the constructs that no node was made of.
#include <string>

#include "ir/status_macros.h"
#include "passes/core/apply_rules.h"
#include "passes/core/workspace.h"
#include "passes/recognise/passes.h"

namespace ascend_fuse {
namespace {

constexpr std::string_view kContribDomain = "com.microsoft";
// Of recognised operators, of which the model had none.
constexpr std::string_view kOwnPrefix = "ascend_fuse.";

absl::Status Decompose(Workspace& workspace, RuleFolder folder) {
  RuleSteps steps;
  steps.emitted = [&](MatchToken, const Rule&, const Value* value, const std::string& root_operator, const Emission& emission) {
    if (!root_operator.starts_with(kOwnPrefix)) ++workspace.result.decomposed[root_operator];
    // A cache that nobody reads does not keep what it is made of.
    for (const Node* made : emission.replacements) {
      if (made != value->producer) workspace.rewriter().DropIfUnread(made);
    }
  };
  // What cannot be built, for a shape is not known, stays, and a warning names it.
  return ApplyRules(workspace, workspace.rules(folder), VisitOrder::kNodes, steps);
}

}  // namespace

absl::Status DecomposeContrib(Workspace& workspace) { return Decompose(workspace, RuleFolder::kContrib); }

absl::Status DecomposeLeftovers(Workspace& workspace) {
  RETURN_IF_ERROR(Decompose(workspace, RuleFolder::kLeftovers));
  if (workspace.result.decomposed.empty() || !workspace.model().functions().empty()) return absl::OkStatus();
  for (const auto& graph : workspace.model().graphs()) {
    for (const Node* node : graph->nodes()) {
      if (!node->dead && Domain(*node) == kContribDomain) return absl::OkStatus();
    }
  }
  workspace.rewriter().SetOpsetImport(kContribDomain, 0);
  return absl::OkStatus();
}

}  // namespace ascend_fuse
