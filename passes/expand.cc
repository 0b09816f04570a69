// Expand: rules of patterns/rules/reference replace NPU nodes by what the kernels compute, in standard operators.
#include "absl/container/flat_hash_set.h"
#include "fmt/format.h"
#include "passes/pipeline.h"

namespace ascend_fuse {

absl::Status Pipeline::Expand() {
  const double started = Now();
  const uint64_t before = rewriter_->change_count();
  auto reference = RuleSet::Shared(RuleFolder::kReference, options_.rule_files);
  if (!reference.ok()) return reference.status();
  // Nodes of emission style D carry no domain: they are npu nodes all the same.
  absl::flat_hash_set<std::string> known;
  for (size_t r = 0; r < (*reference)->rules().size(); ++r) {
    for (const std::string& root : (*reference)->RootOperators(r)) known.insert(root);
  }
  for (const auto& graph : model_->graphs()) {
    for (Node* node : graph->nodes()) {
      if (node->domain == NameId::kEmpty && known.contains(fmt::format("npu.{}", OpType(*node)))) {
        rewriter_->Rename(node, "npu", std::string(OpType(*node)));
        InferNode(*node, &facts_);
      }
    }
  }
  facts_ = Infer(*model_, options_.infer);
  numbering_ = std::make_unique<ValueNumbering>(*model_, facts_);
  const FunctionContext context = Context();
  std::vector<std::string> unknown;
  bool any = false;
  for (const auto& graph : model_->graphs()) {
    const std::vector<Node*> nodes = graph->nodes();  // grows while expanding
    for (Node* node : nodes) {
      if (node->dead || Domain(*node) != "npu") continue;
      any = true;
      const std::string key = OperatorKey(*node);
      Failure failure;
      bool done = false;
      for (size_t r = 0; r < (*reference)->rules().size() && !done; ++r) {
        const auto& roots = (*reference)->RootOperators(r);
        if (std::find(roots.begin(), roots.end(), key) == roots.end()) continue;
        Matcher matcher(**reference, context);
        const std::optional<Match> match = matcher.Run((*reference)->rules()[r], node->output(0), &failure);
        if (!match.has_value()) continue;
        const absl::StatusOr<Emission> emission = emitter_->Emit(*match, context);
        if (!emission.ok()) return emission.status();
        done = true;
      }
      if (done) continue;
      unknown.push_back(!failure.rank.tried() ? fmt::format("{} {} (no rule of patterns/rules/reference knows it)", key,
                                                       NodeName(*node))
                                         : fmt::format("{} {} (expected {}, found {})", key, NodeName(*node),
                                                       failure.expected, failure.found));
    }
  }
  if (!unknown.empty()) {
    return absl::FailedPreconditionError(
        fmt::format("{} node(s) cannot be expanded to standard operators: {}", unknown.size(), unknown[0]));
  }
  if (any) {
    rewriter_->SetOpsetImport("npu", 0);
    rewriter_->SpellDefaultDomain(DefaultDomain::kEmpty);
  }
  FinishRun("expand", started, before);
  Sweep();
  return Verify("expand");
}

}  // namespace ascend_fuse
