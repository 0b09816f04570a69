#include "passes/legalise/whole_model.h"

#include "fmt/format.h"
#include "passes/legalise/adapt.h"

namespace ascend_fuse {

const Node* NodeWithoutName(const Workspace& workspace, int64_t opset) {
  for (const auto& graph : workspace.model().graphs()) {
    for (const Node* node : graph->nodes()) {
      if (node->dead || Domain(*node) != "npu") continue;
      const std::string key = OperatorKey(*node);
      if (!workspace.target()->HasNpuName(key) && !workspace.target()->HasAlias(key, opset)) return node;
    }
  }
  return nullptr;
}

std::string PlanOpset(const Workspace& workspace, int64_t to, PlannedNodes* planned) {
  const int64_t from = workspace.model().OpsetVersion();
  std::string why;
  if (const Node* node = NodeWithoutName(workspace, to); node != nullptr) {
    return fmt::format("{} {} has no name at opset {}", OpType(*node), Label(*node), to);
  }
  EachStandardNode(workspace.model(), [&](const Node* node) {
    if (!why.empty()) return;
    auto conversion = ConvertNode(*node, from, to, workspace.facts());
    if (!conversion.ok()) {
      why = fmt::format("{} {} {}", OpType(*node), Label(*node), std::string(conversion.status().message()));
    } else if (conversion->has_value()) {
      planned->emplace_back(node, **std::move(conversion));
    }
  });
  return why;
}

WrittenNodes WriteOpset(Workspace& workspace, const PlannedNodes& planned, int64_t to) {
  WrittenNodes all;
  for (const auto& [node, conversion] : planned) {
    auto forms = FormsOf(workspace, *node);
    const Node* const written = Write(conversion, *node, &workspace.rewriter());
    for (const Use& use : written->inputs()) {
      const bool constant = use.value != nullptr && use.value->initializer != nullptr;
      if (constant && !workspace.facts().Of(use.value).has_rank) InferConstant(use.value, &workspace.facts());
    }
    all.emplace_back(written, std::move(forms));
  }
  workspace.rewriter().SetOpsetImport("", to);
  for (const auto& [written, forms] : all) {
    if (!written->dead) workspace.Refresh(written);  // read as that opset reads them
  }
  return all;
}

}  // namespace ascend_fuse
