// Chooses the opset before sites are lowered: 17 where only that is missing for an operator that has a kernel there
// (LayerNormalization, HardSwish), in a model in which every node has a form at opset 17 that means what it meant, and in which
// ATC reads every node as well as before. Spellings that GE's own pass joins at any opset do not count.
#include <algorithm>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "fmt/format.h"
#include "ir/status_macros.h"
#include "passes/core/call_of.h"
#include "passes/core/workspace.h"
#include "passes/legalise/adapt.h"
#include "passes/legalise/convert_node.h"
#include "passes/legalise/whole_model.h"
#include "passes/lower/open_dims.h"
#include "passes/lower/passes.h"

namespace ascend_fuse {
namespace {

// Where LayerNormalization begins (onnx, docs/Changelog.md).
constexpr int64_t kRaised = 17;
// Below, Clip and Pad have their numbers in attributes, and types of operators are not known (ConvertNode). Paddle's exporter
// writes 11 and 12.
constexpr int64_t kFirst = 11;

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

std::string ReadDifferently(const Node& node, int64_t to) {
  return fmt::format("it is not raised because {} {} would be read differently at opset {}", OpType(node), Label(node), to);
}

// The nodes of sites, recognised operators and others, which a site names; and nodes that adapters are to take.
struct KindsOfNodes {
  absl::flat_hash_set<const Node*> recognised;
  absl::flat_hash_set<const Node*> named;
  absl::flat_hash_set<const Node*> lost;

  KindsOfNodes(const Workspace& workspace, int64_t to) {
    for (const Site& site : workspace.sites) {
      if (site.node != nullptr) (workspace.IsMade(*site.node) ? recognised : named).insert(site.node);
    }
    const int64_t from = workspace.model().OpsetVersion();
    EachStandardNode(workspace.model(), [&](const Node* node) {
      if (recognised.contains(node) || named.contains(node)) return;
      if (!ConvertNode(*node, from, to, workspace.facts()).ok()) lost.insert(node);
    });
  }
};

// Whether the graph is in a branch of an If that was decided.
bool IsInDecidedIf(const Workspace& workspace, const Graph& graph) {
  for (const Node* owner = graph.owner(); owner != nullptr; owner = owner->graph->owner()) {
    if (workspace.decided_ifs.contains(owner)) return true;
  }
  return false;
}

// Why not: a node that has no form at `to`, or one that ATC does not read and that it does not have now. "" where there is none;
// `planned` are then the nodes that are written anew. Recognised operators are not written: they are lowered, or the nodes after
// them come back, in their new form too. Nodes that a site names stay to the byte.
std::string WhyNotAt(const Workspace& workspace, const KindsOfNodes& kinds, int64_t to, PlannedNodes* planned) {
  const int64_t from = workspace.model().OpsetVersion();
  if (const Node* node = NodeWithoutName(workspace, to); node != nullptr) {
    return fmt::format("it is not raised because {} {} has no name at opset {}", OpType(*node), Label(*node), to);
  }
  for (const auto& graph : workspace.model().graphs()) {
    if (IsInDecidedIf(workspace, *graph)) continue;
    for (const Node* node : graph->nodes()) {
      const bool gone = node->dead && (node->id >= workspace.first_id_of_sites || kinds.lost.contains(node));
      const bool unwritten = gone || kinds.recognised.contains(node);
      if (unwritten || node->domain != NameId::kEmpty) continue;
      auto conversion = ConvertNode(*node, from, to, workspace.facts());
      const bool stays = kinds.named.contains(node) && !node->dead;
      if (conversion.ok() && conversion->has_value() && !stays) {  // Raise asks how ATC reads it
        planned->emplace_back(node, **std::move(conversion));
      } else if (!conversion.ok() || conversion->has_value() ||
                 NewForm(FormsAt(workspace, *node, to), FormsOf(workspace, *node)) != nullptr) {
        return ReadDifferently(*node, to);
      }
    }
  }
  return "";
}

// What comes back, and what is taken back for it, are the nodes that were written anew.
void CoverAnew(Workspace& workspace, const absl::flat_hash_map<const Node*, const Node*>& anew) {
  const auto renew = [&](const Node*& node) {
    if (const auto found = anew.find(node); found != anew.end()) node = found->second;
  };
  for (Site& site : workspace.sites) {
    std::for_each(site.covered.begin(), site.covered.end(), renew);
    std::for_each(site.made.begin(), site.made.end(), renew);
  }
  for (GroupedHalves& grouped : workspace.grouped_halves) {
    renew(grouped.whole);
    std::for_each(grouped.parts.begin(), grouped.parts.end(), renew);
  }
  for (StraightenedNorm& norm : workspace.straightened_norms) {
    renew(norm.root);
    absl::flat_hash_map<const Node*, const Node*> originals;
    for (const auto& [made, original] : norm.originals) {
      std::pair entry(made, original);
      renew(entry.first);
      renew(entry.second);
      originals.insert(entry);
    }
    norm.originals = std::move(originals);
  }
}

// Writes every node in its form of opset `to`, where adapters take what has none. False, and nothing is changed, where ATC does
// not read one of these; `opset_not_raised` says why.
absl::StatusOr<bool> Raise(Workspace& workspace, int64_t to) {
  const int64_t from = workspace.model().OpsetVersion();
  const Rewriter::Mark mark = workspace.rewriter().Now();
  const auto adapted_before = workspace.result.adapted;
  const KindsOfNodes kinds(workspace, to);
  const auto is_lost = [&](const Node& node) { return kinds.lost.contains(&node); };
  RETURN_IF_ERROR(kinds.lost.empty() ? absl::OkStatus() : ApplyAdapters(workspace, is_lost, to));
  PlannedNodes planned;
  workspace.result.opset_not_raised = WhyNotAt(workspace, kinds, to, &planned);
  if (workspace.result.opset_not_raised.empty()) {
    absl::flat_hash_map<const Node*, const Node*> anew;
    const WrittenNodes written = WriteOpset(workspace, planned, to);
    for (size_t i = 0; i < written.size(); ++i) {
      const auto& [node, before] = written[i];
      anew.emplace(planned[i].first, node);
      if (!workspace.IsMade(*planned[i].first)) workspace.moved.insert(node);
      if (NewForm(FormsOf(workspace, *node), before) != nullptr) workspace.result.opset_not_raised = ReadDifferently(*node, to);
    }
    if (workspace.result.opset_not_raised.empty()) CoverAnew(workspace, anew);
  }
  if (!workspace.result.opset_not_raised.empty()) {
    workspace.emitter().TakeBackAll(mark);
    workspace.result.adapted = adapted_before;
    return false;
  }
  workspace.result.opset_before = from;
  workspace.result.converted = static_cast<int64_t>(planned.size());
  return true;
}

}  // namespace

absl::Status ChooseOpset(Workspace& workspace) {
  const int64_t from = workspace.model().OpsetVersion();
  // Functions have opsets of their own; names in the default domain end before opset 17 (docs/sources/ascend-contract.md 0.1).
  const bool may_raise = workspace.target() != nullptr && !workspace.ChangesNothing() && from >= kFirst && from < kRaised &&
                         workspace.target()->MaxOpset() >= kRaised && workspace.model().functions().empty() &&
                         workspace.target()->options().style != "D";
  if (!may_raise) return absl::OkStatus();
  ForgetGeOfOpenDims(workspace);  // need another form, of which there is one more at the raised opset
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
  workspace.rewriter().SetOpsetImport("", kRaised);
  const bool has_norm = std::any_of(norms.begin(), norms.end(), [&](const Site* s) { return trial.Of(*s) == Lowered::kTaken; });
  workspace.rewriter().SetOpsetImport("", from);
  if (!has_norm && kernel == nullptr) return absl::OkStatus();
  const std::string operator_there(has_norm ? std::string_view("LayerNormalization") : OpType(*kernel));
  ASSIGN_OR_RETURN(const bool raised, Raise(workspace, kRaised));
  if (raised) workspace.result.opset_because = fmt::format("where {} is an operator", operator_there);
  return absl::OkStatus();
}

}  // namespace ascend_fuse
