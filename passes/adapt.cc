// Adapt: the emission style, so that ATC's parser finds every NPU node under a name it knows (ascend-contract.md 0.1).
#include <algorithm>

#include "fmt/format.h"
#include "passes/pipeline.h"

namespace ascend_fuse {

absl::StatusOr<std::string> Pipeline::Adapt(const Target& target) {
  const double started = Now();
  const uint64_t before = rewriter_->change_count();
  std::vector<Node*> nodes;
  std::vector<std::string> operators;
  for (const auto& graph : model_->graphs()) {
    for (Node* node : graph->nodes()) {
      if (node->dead || !node->is_new || Domain(*node) != "npu") continue;
      nodes.push_back(node);
      operators.push_back(fmt::format("npu.{}", OpType(*node)));
    }
  }
  if (nodes.empty()) return std::string();
  const int64_t opset = model_->OpsetVersion();
  const bool aliases = std::all_of(operators.begin(), operators.end(),
                                   [&](const std::string& op) { return target.HasAlias(op, opset); });
  const bool only_default = model_->opset_imports().size() <= 1;
  std::string style = target.options().style;
  if (style.empty()) style = target.ParsesNpuDomain() ? "N" : aliases && only_default ? "D" : "X";
  if (style == "D" && !aliases) {
    for (const std::string& op : operators) {
      if (target.HasAlias(op, opset)) continue;
      return absl::InvalidArgumentError(
          fmt::format("--style D: {} has no name in the default domain at opset {}; use style X or N", op, opset));
    }
  }
  if (style == "N" && !target.ParsesNpuDomain()) {
    return absl::InvalidArgumentError(
        fmt::format("--style N: the parser of CANN {} refuses nodes with an empty domain beside the npu domain "
                    "(E16005); use style D or X",
                    target.cann()));
  }
  if (style == "D") {
    for (Node* node : nodes) rewriter_->Rename(node, "", OpType(*node));
  } else if (style == "N" || style == "X") {
    rewriter_->SetOpsetImport("npu", 1);
    rewriter_->SpellDefaultDomain(style == "X" ? DefaultDomain::kExplicit : DefaultDomain::kEmpty);
  } else {
    return absl::InvalidArgumentError(fmt::format("unknown --style {}: D, N and X are known", style));
  }
  FinishRun("adapt", started, before);
  return style;
}

}  // namespace ascend_fuse
