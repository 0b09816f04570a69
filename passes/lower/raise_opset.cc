// Raises the opset where only that is missing for LayerNormalization (opset 17): in a model in which every node means at
// opset 17 what it meant, and in which ATC reads every node as well as before. Spellings that GE's own pass joins at any
// opset are no reason.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "fmt/format.h"
#include "ir/status_macros.h"
#include "passes/core/workspace.h"
#include "passes/legalise/adapt.h"
#include "passes/legalise/respell.h"
#include "passes/lower/passes.h"

namespace ascend_fuse {
namespace {

// Where LayerNormalization begins (onnx, docs/Changelog.md).
constexpr int64_t kRaised = 17;
// Below, ReduceSum, Squeeze and Unsqueeze have their axes in attributes and Softmax is of another meaning. Nodes that wait
// after recognised operators are not written anew, so that all have to stay to the byte.
constexpr int64_t kFirst = 13;

bool OnlyOpsetIsMissing(const Site& site) {
  return site.pending() && site.no_ge_pass && site.record.kind == "layer_norm" && site.record.code == "opset-too-low";
}

// Why not: a node, of those after recognised operators too, that is written otherwise at `to`, or has a form there that ATC
// does not read and that it does not have now. "" where there is none. Recognised operators themselves are not written: they
// are lowered, or the nodes after them come back.
std::string WhyNotAt(const Workspace& workspace, int64_t to) {
  const int64_t from = workspace.model().OpsetVersion();
  absl::flat_hash_set<const Node*> recognised;
  for (const Site& site : workspace.sites) {
    if (site.node != nullptr && site.node->is_new) recognised.insert(site.node);
  }
  const auto reads_the_same = [&](const Node& node) {
    const auto respelling = Respell(node, from, to, workspace.facts());
    if (!respelling.ok() || respelling->has_value()) return false;
    return NewForm(FormsAt(workspace, node, to), FormsOf(workspace, node)) == nullptr;
  };
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

absl::Status RaiseOpset(Workspace& workspace) {
  const int64_t from = workspace.model().OpsetVersion();
  // Functions have opsets of their own; names in the default domain end before opset 17 (docs/sources/ascend-contract.md 0.1).
  const bool may_raise = !workspace.ChangesNothing() && from >= kFirst && from < kRaised &&
                         workspace.target()->MaxOpset() >= kRaised && workspace.model().functions().empty() &&
                         workspace.target()->options().style != "D";
  if (!may_raise) return absl::OkStatus();
  std::vector<std::pair<Site*, Site>> waiting;
  for (Site& site : workspace.sites) {
    if (OnlyOpsetIsMissing(site)) waiting.emplace_back(&site, site);
  }
  if (waiting.empty()) return absl::OkStatus();
  if (const std::string why = WhyNotAt(workspace, kRaised); !why.empty()) {
    for (const auto& [site, before] : waiting) site->record.because += "; " + why;
    return absl::OkStatus();
  }
  const auto count_fused = [&] {
    return std::count_if(workspace.sites.begin(), workspace.sites.end(), [](const Site& site) { return site.fused(); });
  };
  const auto fused = count_fused();
  workspace.rewriter().SetOpsetImport("", kRaised);
  for (const auto& [site, before] : waiting) {
    site->Say("", "", "");
    site->refusal = {};
  }
  RETURN_IF_ERROR(Lower(workspace));
  if (count_fused() == fused) {
    workspace.rewriter().SetOpsetImport("", from);
    for (const auto& [site, before] : waiting) *site = before;
    return absl::OkStatus();
  }
  workspace.opset_before = from;
  workspace.opset_because = "where LayerNormalization is an operator";
  return absl::OkStatus();
}

}  // namespace ascend_fuse
