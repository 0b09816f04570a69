// Opset conversion: where ATC reads the model better at opset 17 than at its own, every node is written in the form of that
// opset. A model with a node that has none stays at its opset, and the report says which node.
#include <algorithm>
#include <string>
#include <string_view>

#include "absl/container/flat_hash_set.h"
#include "fmt/format.h"
#include "ir/status_macros.h"
#include "passes/core/workspace.h"
#include "passes/legalise/adapt.h"
#include "passes/legalise/passes.h"
#include "passes/legalise/whole_model.h"

namespace ascend_fuse {
namespace {

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

// A form that ATC does not read of the node as it is at `to`, and reads at the opset of the model.
const UnsupportedForm* ReadWorse(const Workspace& workspace, const Node& node, int64_t to) {
  return NewForm(FormsAt(workspace, node, to), FormsOf(workspace, node));
}

std::string WouldBe(const Node& node, const UnsupportedForm& form) {
  return fmt::format("{} {} would be {}: {}", OpType(node), Label(node), form.form.empty() ? "left" : form.form, form.because);
}

// A sentence about a node that stays as it is at `to` and is read worse there.
std::string NodeReadWorse(const Workspace& workspace, int64_t to) {
  std::string why;
  EachStandardNode(workspace.model(), [&](const Node* node) {
    const auto conversion = ConvertNode(*node, workspace.model().OpsetVersion(), to, workspace.facts());
    if (!why.empty() || !conversion.ok() || conversion->has_value()) return;
    if (const UnsupportedForm* form = ReadWorse(workspace, *node, to); form != nullptr) why = WouldBe(*node, *form);
  });
  return why;
}

std::string Kept(int64_t from, int64_t to, std::string_view why) {
  return fmt::format("the model stays at opset {}, and ATC reads opset {} better: {}", from, to, why);
}

}  // namespace

int64_t OpsetToWrite(const Workspace& workspace) {
  const int64_t opset = workspace.model().OpsetVersion();
  return opset > workspace.target()->MaxOpset() ? kBestReadOpset : opset;
}

absl::Status ConvertOpset(Workspace& workspace) {
  if (workspace.ChangesNothing()) return absl::OkStatus();
  const int64_t from = workspace.model().OpsetVersion();
  const int64_t to = kBestReadOpset;
  // Functions have opsets of their own, and what calls them is not compiled anyway.
  if (from <= to || !workspace.model().functions().empty()) return absl::OkStatus();
  const auto stays = [&](const Node& node) { return StaysUnread(workspace, node, to); };
  RETURN_IF_ERROR(ApplyAdapters(workspace, stays));
  if (OpsetToWrite(workspace) == from && !Cures(workspace, to)) return absl::OkStatus();
  if (const absl::StatusOr<std::string> why = WriteAtOpset(workspace, to); !why.ok() || !why->empty()) {
    if (why.ok()) workspace.result.opset_kept = Kept(from, to, *why);
    return why.status();
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> WriteAtOpset(Workspace& workspace, int64_t to) {
  const int64_t from = workspace.model().OpsetVersion();
  const Facts& facts = workspace.facts();
  // Adapters take what has no form at that opset, if only it is for them.
  const auto is_lost = [&](const Node& node) {
    const auto conversion = ConvertNode(node, from, to, facts);
    return !conversion.ok() || (!conversion->has_value() && ReadWorse(workspace, node, to) != nullptr);
  };
  RETURN_IF_ERROR(ApplyAdapters(workspace, is_lost, to));
  PlannedNodes planned;
  if (std::string why = PlanOpset(workspace, to, &planned); !why.empty()) return why;
  if (from <= workspace.target()->MaxOpset()) {
    if (std::string why = NodeReadWorse(workspace, to); !why.empty()) return why;
  }
  const Rewriter::Mark mark = workspace.rewriter().Now();
  const auto adapted_before = workspace.result.adapted;
  const WrittenNodes written = WriteOpset(workspace, planned, to);
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
    std::string why = WouldBe(*node, *made);
    workspace.emitter().TakeBackAll(mark);
    workspace.result.adapted = adapted_before;
    return why;
  }
  workspace.result.opset_before = from;
  workspace.result.converted = static_cast<int64_t>(planned.size());
  return std::string();
}

}  // namespace ascend_fuse
