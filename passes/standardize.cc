// Standardize: operators of ONNX Runtime as standard operators, for ATC reads none of com.microsoft. First, by rules
// of patterns/rules/contrib, those that are no construct by themselves, such as a MatMul with a transposed operand; at the
// end, by rules of patterns/rules/leftovers, the constructs that no node was made of.
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "passes/pipeline.h"

namespace ascend_fuse {

absl::Status Pipeline::Standardize() {
  absl::Status status = Rewrite(*runtime_, "standardize");
  gone_at_first_ = runtime_gone_;
  return status;
}

void Pipeline::DropImport() {
  if (runtime_gone_) rewriter_->SetOpsetImport("com.microsoft", 0);
}

absl::Status Pipeline::StandardizeRest() { return Rewrite(*rest_, "rest"); }

absl::Status Pipeline::Rewrite(const RuleSet& rules, const char* pass) {
  const double started = Now();
  const uint64_t before = rewriter_->change_count();
  const FunctionContext context = Context();
  bool remains = false;
  absl::flat_hash_map<std::string, std::vector<size_t>> rules_of;  // by root, in the order to try them
  for (size_t r = 0; r < rules.rules().size(); ++r) {
    if (Skipped(rules.rules()[r])) continue;
    for (const std::string& root : rules.RootOperators(r)) rules_of[root].push_back(r);
  }
  for (const auto& graph : model_->graphs()) {
    const std::vector<Node*> nodes = graph->nodes();  // grows while nodes are made
    for (Node* node : nodes) {
      if (node->dead) continue;
      const std::string key = OperatorKey(*node);
      const bool runtime = Domain(*node) == "com.microsoft";
      bool done = false;
      if (const auto found = rules_of.find(key); found != rules_of.end()) {
        for (const size_t r : found->second) {
          Matcher matcher(rules, context);
          const std::optional<Match> match = matcher.Run(rules.rules()[r], node->output(0));
          if (!match.has_value()) continue;
          const absl::StatusOr<Emission> emission = emitter_->Emit(*match, context);
          if (!emission.ok()) continue;  // the shape is not known: it stays, and a warning names it
          emissions_.push_back(*emission);
          ++standardized_[key];
          done = true;
          break;
        }
      }
      remains = remains || (runtime && !done);
    }
  }
  runtime_gone_ = !standardized_.empty() && !remains && model_->functions().empty();
  FinishRun(pass, started, before);
  return Verify(pass);
}

}  // namespace ascend_fuse
