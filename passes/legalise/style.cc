// The emission style: how nodes are spelled, so that ATC's parser finds every NPU node under a name it knows
// (docs/sources/ascend-contract.md 0.1). Chosen and written last, when the nodes and imports of the model are final.
#include <algorithm>

#include "fmt/format.h"
#include "passes/core/workspace.h"
#include "passes/legalise/passes.h"

namespace ascend_fuse {
namespace {

std::vector<const Node*> NpuNodes(const Model& model) {
  std::vector<const Node*> nodes;
  for (const auto& graph : model.graphs()) {
    for (const Node* node : graph->nodes()) {
      if (!node->dead && node->is_new && Domain(*node) == "npu") nodes.push_back(node);
    }
  }
  return nodes;
}

// Nodes of the default domain that this run made.
bool MadeStandardNodes(const Model& model) {
  return std::any_of(model.graphs().begin(), model.graphs().end(), [](const auto& graph) {
    return std::any_of(graph->nodes().begin(), graph->nodes().end(),
                       [](const Node* node) { return !node->dead && node->is_new && node->domain == NameId::kEmpty; });
  });
}

bool ImportsNpu(const Model& model) {
  return std::any_of(model.opset_imports().begin(), model.opset_imports().end(),
                     [&](const OpsetImport& import) { return model.Text(import.domain) == "npu"; });
}

}  // namespace

// D (a name in the default domain), N (domain npu), X (domain ai.onnx on every standard node), or none without NPU nodes.
// INVALID_ARGUMENT for a --style that the target's parser or the model rules out.
absl::Status ChooseStyle(Workspace& workspace) {
  workspace.result.style.clear();
  const Target& target = *workspace.target();
  const Model& model = workspace.model();
  const std::vector<const Node*> nodes = NpuNodes(model);
  if (nodes.empty()) return absl::OkStatus();
  const int64_t opset = model.OpsetVersion();
  std::string without_alias;
  for (const Node* node : nodes) {
    if (!target.HasAlias(OperatorKey(*node), opset)) without_alias = OperatorKey(*node);
  }
  if (!without_alias.empty() && !target.HasNpuName(without_alias)) {
    return absl::InternalError(fmt::format("{} has no name at opset {}", without_alias, opset));
  }
  const bool only_default = model.opset_imports().size() <= 1;
  const std::string& wanted = target.options().style;
  if (wanted.empty()) {
    workspace.result.style = target.ParsesNpuDomain() ? "N" : without_alias.empty() && only_default ? "D" : "X";
    return absl::OkStatus();
  }
  if (wanted == "D" && !without_alias.empty()) {
    return absl::InvalidArgumentError(
        fmt::format("--style D: {} has no name in the default domain at opset {}; use style X or N", without_alias, opset));
  }
  if (wanted == "D" && !only_default && !target.ParsesNpuDomain()) {
    return absl::InvalidArgumentError(
        fmt::format("--style D: the model imports {} domains, and the parser of CANN {} then refuses nodes with an "
                    "empty domain (E16005); use style X",
                    model.opset_imports().size(), target.cann()));
  }
  if (wanted == "N" && !target.ParsesNpuDomain()) {
    return absl::InvalidArgumentError(
        fmt::format("--style N: the parser of CANN {} refuses nodes with an empty domain beside the npu domain "
                    "(E16005); use style D or X",
                    target.cann()));
  }
  workspace.result.style = wanted;
  return absl::OkStatus();
}

absl::Status WriteStyle(Workspace& workspace) {
  Rewriter& rewriter = workspace.rewriter();
  const bool all = workspace.result.style == "D";
  bool in_npu = false;
  for (const Node* node : NpuNodes(workspace.model())) {
    const bool renamed = all || !workspace.target()->HasNpuName(OperatorKey(*node));
    if (renamed) rewriter.Rename(node, "", OpType(*node));
    in_npu = in_npu || !renamed;
  }
  if (all) return absl::OkStatus();
  if (!workspace.result.style.empty()) {
    if (in_npu) rewriter.SetOpsetImport("npu", 1);
    rewriter.SpellDefaultDomain(workspace.result.style == "X" ? DefaultDomain::kExplicit : DefaultDomain::kEmpty);
  } else if (MadeStandardNodes(workspace.model()) && ImportsNpu(workspace.model()) && !workspace.target()->ParsesNpuDomain()) {
    // NPU nodes of the file stand beside the nodes that were made.
    rewriter.SpellDefaultDomain(DefaultDomain::kExplicit);
  }
  return absl::OkStatus();
}

}  // namespace ascend_fuse
