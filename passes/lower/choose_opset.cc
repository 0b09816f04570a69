// Chooses the opset before sites are lowered: 17 where only that is missing for an operator that has a kernel there
// (LayerNormalization, HardSwish), in a model in which every node means at opset 17 what it meant, and in which ATC reads every
// node as well as before. Spellings that GE's own pass joins at any opset do not count.
#include <algorithm>
#include <string>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "fmt/format.h"
#include "passes/core/call_of.h"
#include "passes/core/workspace.h"
#include "passes/legalise/adapt.h"
#include "passes/legalise/convert_node.h"
#include "passes/legalise/whole_model.h"
#include "passes/lower/passes.h"

namespace ascend_fuse {
namespace {

// Where LayerNormalization begins (onnx, docs/Changelog.md).
constexpr int64_t kRaised = 17;
// Below, ReduceSum, Squeeze and Unsqueeze have their axes in attributes and Softmax is of another meaning. Nodes that wait
// after recognised operators are not written anew, so that all have to stay to the byte.
constexpr int64_t kFirst = 13;

// What rules of patterns/rules/npu make of a recognised operator at the opset that the model imports now.
enum class Lowered { kNot, kOpsetTooLow, kTaken };

class Trial {
 public:
  explicit Trial(Workspace& workspace) : workspace_(workspace), rules_(workspace.rules(RuleFolder::kNpu)) {}

  // Nothing of it is left.
  Lowered Of(const Site& site) {
    for (const size_t r : rules_.RulesEndingIn(OperatorKey(*site.node))) {
      const Rule& rule = rules_.rules()[r];
      if (workspace_.Skipped(rule)) continue;
      if (!rule.ge_construct.empty() && workspace_.target()->FusedByGe(rule.ge_construct).has_value()) continue;
      std::vector<std::string> assumptions;
      const FunctionContext context = workspace_.Context(&assumptions);
      Failure failure;
      const std::optional<Match> match = Matcher(rules_, context).Run(rule, site.node->output(0), &failure);
      if (!match.has_value()) {
        if (failure.code == "opset-too-low") return Lowered::kOpsetTooLow;  // what comes after it is a worse form
      } else if (IsTaken(*match, context) && !(workspace_.options().strict && !assumptions.empty())) {
        return Lowered::kTaken;
      }
    }
    return Lowered::kNot;
  }

 private:
  // Whether the target takes every Ascend node of what the match makes.
  bool IsTaken(const Match& match, const FunctionContext& context) {
    const absl::StatusOr<Emission> emission = workspace_.emitter().Emit(match, context);
    if (!emission.ok()) return false;
    const auto is_taken = [&](const Node* node) {
      if (Domain(*node) != "npu") return true;
      const Call call = CallOf(*node, workspace_.facts(), fmt::format("npu.{}", OpType(*node)));
      return workspace_.target()->Check(call, &workspace_.facts().dims()).legal;
    };
    const bool taken = std::all_of(emission->replacements.begin(), emission->replacements.end(), is_taken) &&
                       std::all_of(emission->inserted.begin(), emission->inserted.end(), is_taken);
    workspace_.emitter().TakeBack(*emission);
    return taken;
  }

  Workspace& workspace_;
  const RuleSet& rules_;
};

// Whether the parser maps the recognised operator to a kernel at the opset that may be chosen, and not at that of the model.
bool WaitsForKernel(const Workspace& workspace, const Node& node) {
  if (node.domain != NameId::kEmpty || !workspace.IsMade(node)) return false;
  const DataType type = workspace.facts().Of(node.input(0)).type;
  const auto has_kernel = [&](int64_t opset) { return workspace.target()->Standard(OpType(node), type, opset).has_value(); };
  return has_kernel(kRaised) && !has_kernel(workspace.model().OpsetVersion());
}

// Why not: a node, of those after recognised operators too, that is written otherwise at `to`, or has a form there that ATC
// does not read and that it does not have now. "" where there is none. Recognised operators themselves are not written: they
// are lowered, or the nodes after them come back.
std::string WhyNotAt(const Workspace& workspace, int64_t to) {
  const int64_t from = workspace.model().OpsetVersion();
  absl::flat_hash_set<const Node*> recognised;
  for (const Site& site : workspace.sites) {
    if (site.node != nullptr && workspace.IsMade(*site.node)) recognised.insert(site.node);
  }
  const auto reads_the_same = [&](const Node& node) {
    const auto conversion = ConvertNode(node, from, to, workspace.facts());
    if (!conversion.ok() || conversion->has_value()) return false;
    return NewForm(FormsAt(workspace, node, to), FormsOf(workspace, node)) == nullptr;
  };
  if (const Node* node = NodeWithoutName(workspace, to); node != nullptr) {
    return fmt::format("it is not raised because {} {} has no name at opset {}", OpType(*node), Label(*node), to);
  }
  for (const auto& graph : workspace.model().graphs()) {
    for (const Node* node : graph->nodes()) {
      const bool unwritten = recognised.contains(node) || (node->is_new && node->dead);
      if (unwritten || node->domain != NameId::kEmpty || reads_the_same(*node)) continue;
      return fmt::format("it is not raised because {} {} would be read differently at opset {}", OpType(*node), Label(*node), to);
    }
  }
  return "";
}

}  // namespace

absl::Status ChooseOpset(Workspace& workspace) {
  const int64_t from = workspace.model().OpsetVersion();
  // Functions have opsets of their own; names in the default domain end before opset 17 (docs/sources/ascend-contract.md 0.1).
  const bool may_raise = workspace.target() != nullptr && !workspace.ChangesNothing() && from >= kFirst && from < kRaised &&
                         workspace.target()->MaxOpset() >= kRaised && workspace.model().functions().empty() &&
                         workspace.target()->options().style != "D";
  if (!may_raise) return absl::OkStatus();
  Trial trial(workspace);
  std::vector<const Site*> norms;
  const Node* kernel = nullptr;  // the first recognised operator that has a kernel at the raised opset alone
  for (const Site& site : workspace.sites) {
    if (!site.pending() || site.node == nullptr || site.node->dead) continue;
    if (kernel == nullptr && WaitsForKernel(workspace, *site.node)) kernel = site.node;
    const bool by_ge = workspace.target()->FusedByGe(site.construct()).has_value();
    if (site.record.kind == "layer_norm" && !by_ge && trial.Of(site) == Lowered::kOpsetTooLow) norms.push_back(&site);
  }
  if (norms.empty() && kernel == nullptr) return absl::OkStatus();
  workspace.result.opset_not_raised = WhyNotAt(workspace, kRaised);
  if (!workspace.result.opset_not_raised.empty()) return absl::OkStatus();
  workspace.rewriter().SetOpsetImport("", kRaised);
  const bool has_norm = std::any_of(norms.begin(), norms.end(), [&](const Site* s) { return trial.Of(*s) == Lowered::kTaken; });
  if (!has_norm && kernel == nullptr) {
    workspace.rewriter().SetOpsetImport("", from);
    return absl::OkStatus();
  }
  workspace.result.opset_before = from;
  workspace.result.opset_because =
      fmt::format("where {} is an operator", has_norm ? std::string_view("LayerNormalization") : OpType(*kernel));
  return absl::OkStatus();
}

}  // namespace ascend_fuse
