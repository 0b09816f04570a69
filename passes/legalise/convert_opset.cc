// Opset conversion: where ATC reads the model better at opset 17 than at its own, every node is written in the form of that
// opset. A model with a node that has none stays at its opset, and the report says which node. What no adapter takes after
// that may be read at another opset still: reductions whose axes CANN 9.1 reads as an input only, or a model older than
// what is parsed.
#include <algorithm>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "fmt/format.h"
#include "ir/status_macros.h"
#include "passes/core/workspace.h"
#include "passes/legalise/adapt.h"
#include "passes/legalise/convert_node.h"
#include "passes/legalise/passes.h"

namespace ascend_fuse {
namespace {

// The newest opset at which reductions have their axes in an attribute, which every release reads, and at which
// LayerNormalization has a parser (docs/sources/atc-op-audit.md, section 5).
constexpr int64_t kBestRead = 17;

template <typename Visit>
void EachStandardNode(const Model& model, Visit visit) {
  for (const auto& graph : model.graphs()) {
    for (const Node* node : graph->nodes()) {
      if (!node->dead && node->domain == NameId::kEmpty) visit(node);
    }
  }
}

// Whether a form of some node has a row at the opset of the model and none at `to`.
bool Cures(const Workspace& workspace, int64_t to) {
  bool cures = false;
  EachStandardNode(workspace.model(), [&](const Node* node) {
    cures = cures || NewForm(FormsOf(workspace, *node), FormsAt(workspace, *node, to)) != nullptr;
  });
  return cures;
}

// Whether the opset makes no difference to a form of the node: it is written anew in any case.
bool StaysUnread(const Workspace& workspace, const Node& node, int64_t to) {
  const auto there = FormsAt(workspace, node, to);
  const auto forms = FormsOf(workspace, node);
  return std::any_of(forms.begin(), forms.end(), [&](const UnsupportedForm* form) {
    return std::any_of(there.begin(), there.end(), [&](const UnsupportedForm* other) { return other->code == form->code; });
  });
}

std::string Kept(int64_t from, int64_t to, std::string_view why) {
  return fmt::format("the model stays at opset {}, and ATC reads opset {} better: {}", from, to, why);
}

using Planned = std::vector<std::pair<const Node*, NodeConversion>>;

// The nodes that are written in another form at `to`; a sentence where one has none there.
std::string Plan(const Workspace& workspace, int64_t to, Planned* planned) {
  const int64_t from = workspace.model().OpsetVersion();
  std::string why;
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

// A node in its new form, and the forms that it had before.
using Written = std::vector<std::pair<const Node*, std::vector<const UnsupportedForm*>>>;

Written WriteAt(Workspace& workspace, const Planned& planned, int64_t to) {
  Written all;
  for (const auto& [node, conversion] : planned) {
    auto forms = FormsOf(workspace, *node);
    const Node* const written = Write(conversion, *node, &workspace.rewriter());
    for (const Use& use : written->inputs()) {
      const bool constant = use.value != nullptr && use.value->initializer != nullptr;
      if (constant && !workspace.facts().Of(use.value).has_rank) InferConstant(use.value, &workspace.facts());
    }
    workspace.Refresh(written);
    all.emplace_back(written, std::move(forms));
  }
  workspace.rewriter().SetOpsetImport("", to);
  return all;
}

// How many nodes have a form that ATC surely refuses or misreads, by code.
std::map<std::string, int64_t> FaultsAt(const Workspace& workspace, int64_t opset) {
  std::map<std::string, int64_t> faults;
  EachStandardNode(workspace.model(), [&](const Node* node) {
    for (const UnsupportedForm* form : FormsAt(workspace, *node, opset)) {
      if (form->certain) ++faults[form->code];
    }
  });
  return faults;
}

// Whether a fault is gone, or nodes of it, and none came.
bool IsBetter(const std::map<std::string, int64_t>& after, const std::map<std::string, int64_t>& before) {
  const auto is_no_worse = [&](const auto& fault) {
    const auto known = before.find(fault.first);
    return known != before.end() && fault.second <= known->second;
  };
  return after != before && std::all_of(after.begin(), after.end(), is_no_worse);
}

}  // namespace

int64_t OpsetToWrite(const Workspace& workspace) {
  const int64_t opset = workspace.model().OpsetVersion();
  return opset > workspace.target()->MaxOpset() ? kBestRead : opset;
}

absl::Status ConvertOpset(Workspace& workspace) {
  if (workspace.ChangesNothing()) return absl::OkStatus();
  const int64_t from = workspace.model().OpsetVersion();
  const int64_t to = kBestRead;
  // Functions have opsets of their own, and what calls them is not compiled anyway.
  if (from <= to || !workspace.model().functions().empty()) return absl::OkStatus();
  const auto stays = [&](const Node& node) { return StaysUnread(workspace, node, to); };
  RETURN_IF_ERROR(ApplyAdapters(workspace, stays));
  if (OpsetToWrite(workspace) == from && !Cures(workspace, to)) return absl::OkStatus();
  const Facts& facts = workspace.facts();
  // Adapters take what has no form at that opset, if only it is for them.
  const auto has_no_form = [&](const Node& node) { return !ConvertNode(node, from, to, facts).ok(); };
  RETURN_IF_ERROR(ApplyAdapters(workspace, has_no_form, to));

  Planned planned;
  if (const std::string why = Plan(workspace, to, &planned); !why.empty()) {
    workspace.result.opset_kept = Kept(from, to, why);
    return absl::OkStatus();
  }
  const Rewriter::Mark mark = workspace.rewriter().Now();
  const auto adapted_before = workspace.result.adapted;
  const Written written = WriteAt(workspace, planned, to);
  // What is not read in its new form may be written anew once more.
  absl::flat_hash_set<const Node*> worse;
  for (const auto& [node, before] : written) {
    if (NewForm(FormsOf(workspace, *node), before) != nullptr) worse.insert(node);
  }
  const auto is_worse = [&](const Node& node) { return worse.contains(&node); };
  RETURN_IF_ERROR(worse.empty() ? absl::OkStatus() : ApplyAdapters(workspace, is_worse));
  for (const auto& [node, before] : written) {
    const UnsupportedForm* made = node->dead ? nullptr : NewForm(FormsOf(workspace, *node), before);
    if (made == nullptr) continue;
    workspace.result.opset_kept =
        Kept(from, to, fmt::format("{} {} would be {} ({})", OpType(*node), Label(*node), made->form, made->because));
    workspace.emitter().TakeBackAll(mark);
    workspace.result.adapted = adapted_before;
    return absl::OkStatus();
  }
  workspace.result.opset_before = from;
  workspace.result.converted = static_cast<int64_t>(planned.size());
  return absl::OkStatus();
}

absl::Status TryOtherOpsets(Workspace& workspace) {
  const int64_t from = workspace.model().OpsetVersion();
  const int64_t last = workspace.target()->MaxOpset();
  const std::map<std::string, int64_t> before = FaultsAt(workspace, from);
  const bool too_new = from > last;
  if ((before.empty() && !too_new) || !workspace.model().functions().empty()) return absl::OkStatus();
  for (const int64_t to : {kBestRead, last}) {
    if (too_new ? to != last : to <= from || FaultsAt(workspace, to) == before) continue;
    Planned planned;
    if (!Plan(workspace, to, &planned).empty()) continue;
    const Rewriter::Mark mark = workspace.rewriter().Now();
    const auto adapted = workspace.result.adapted;
    WriteAt(workspace, planned, to);
    const absl::Status status = ApplyAdapters(workspace, [](const Node&) { return true; });
    if (!status.ok()) return status;
    const std::map<std::string, int64_t> after = FaultsAt(workspace, to);
    if (IsBetter(after, before) || (too_new && after == before)) {
      workspace.result.opset_before = workspace.result.opset_before > 0 ? workspace.result.opset_before : from;
      workspace.result.converted += static_cast<int64_t>(planned.size());
      workspace.result.opset_kept.clear();
      return absl::OkStatus();
    }
    workspace.emitter().TakeBackAll(mark);
    workspace.result.adapted = adapted;
  }
  return absl::OkStatus();
}

}  // namespace ascend_fuse
