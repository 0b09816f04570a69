// Adapt: the emission style, so that ATC's parser finds every NPU node under a name it knows
// (ascend-contract.md 0.1).
#include "fmt/format.h"
#include "passes/pipeline.h"

namespace ascend_fuse {

std::vector<Node*> Pipeline::NpuNodes() const {
  std::vector<Node*> nodes;
  for (const auto& graph : model_->graphs()) {
    for (Node* node : graph->nodes()) {
      if (!node->dead && node->is_new && Domain(*node) == "npu") nodes.push_back(node);
    }
  }
  return nodes;
}

absl::StatusOr<std::string> Pipeline::ChooseStyle(const Target& target) const {
  const std::vector<Node*> nodes = NpuNodes();
  if (nodes.empty()) return std::string();
  const int64_t opset = model_->OpsetVersion();
  std::string without_alias;
  for (const Node* node : nodes) {
    if (!target.HasAlias(OperatorKey(*node), opset)) without_alias = OperatorKey(*node);
  }
  // DropImport takes one of them out.
  const bool only_default = model_->opset_imports().size() <= (gone_at_first_ ? 2U : 1U);
  const std::string& wanted = target.options().style;
  if (wanted.empty()) {
    return std::string(target.ParsesNpuDomain() ? "N" : without_alias.empty() && only_default ? "D" : "X");
  }
  if (wanted == "D" && !without_alias.empty()) {
    return absl::InvalidArgumentError(
        fmt::format("--style D: {} has no name in the default domain at opset {}; use style X or N",
                    without_alias, opset));
  }
  if (wanted == "D" && !only_default && !target.ParsesNpuDomain()) {
    return absl::InvalidArgumentError(fmt::format(
        "--style D: the model imports {} domains, and the parser of CANN {} then refuses nodes with an "
        "empty domain (E16005); use style X",
        model_->opset_imports().size(), target.cann()));
  }
  if (wanted == "N" && !target.ParsesNpuDomain()) {
    return absl::InvalidArgumentError(fmt::format(
        "--style N: the parser of CANN {} refuses nodes with an empty domain beside the npu domain "
        "(E16005); use style D or X",
        target.cann()));
  }
  if (wanted != "D" && wanted != "N" && wanted != "X") {
    return absl::InvalidArgumentError(fmt::format("unknown --style {}: D, N and X are known", wanted));
  }
  return wanted;
}

absl::StatusOr<std::string> Pipeline::Adapt(const Target& target) {
  const double started = Now();
  const uint64_t before = rewriter_->change_count();
  absl::StatusOr<std::string> style = ChooseStyle(target);
  if (!style.ok() || style->empty()) return style;
  if (*style == "D") {
    for (Node* node : NpuNodes()) rewriter_->Rename(node, "", OpType(*node));
  } else {
    rewriter_->SetOpsetImport("npu", 1);
    rewriter_->SpellDefaultDomain(*style == "X" ? DefaultDomain::kExplicit : DefaultDomain::kEmpty);
  }
  FinishRun("adapt", started, before);
  return style;
}

}  // namespace ascend_fuse
