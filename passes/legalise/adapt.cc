#include "passes/legalise/adapt.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/functional/function_ref.h"
#include "ir/operands.h"
#include "ir/schema.h"
#include "ir/status_macros.h"
#include "passes/core/apply_rules.h"
#include "passes/core/passes.h"
#include "passes/core/workspace.h"
#include "passes/legalise/passes.h"
#include "patterns/analysis/einsum_letters.h"

namespace ascend_fuse {
namespace {

void Note(Workspace& workspace, const Node& node, std::string_view code) {
  workspace.result.adapted[{std::string(code), std::string(OpType(node))}].emplace_back(Label(node));
}

// A rule without a code is for an operator that is not there at the opset to be written.
bool IsFor(const Workspace& workspace, const Rule& rule, const Node& node, int64_t to) {
  return rule.fixes.empty() ? to > 0 && FindSchema("", OpType(node), to) == nullptr : HasForm(workspace, node, rule.fixes, to);
}

absl::Status ApplyAdapterRules(Workspace& workspace, const std::function<bool(const Node&)>& may, int64_t to) {
  RuleSteps steps;
  steps.literal = true;
  std::vector<const Node*> fixed;  // by token
  steps.matched = [&](const Rule& rule, const Match& match, const Node*) {
    const auto found = std::find_if(match.covered.begin(), match.covered.end(),
                                    [&](const Node* node) { return IsFor(workspace, rule, *node, to) && may(*node); });
    if (found == match.covered.end()) return kNotEmitted;
    fixed.push_back(*found);
    return fixed.size() - 1;
  };
  steps.emitted = [&](MatchToken match, const Rule& rule, const Value*, const std::string&, const Emission& emission) {
    for (const Node* node : emission.replacements) workspace.rewriter().CopyNotes(*fixed[match], node);
    for (const Node* node : emission.inserted) workspace.rewriter().CopyNotes(*fixed[match], node);
    Note(workspace, *fixed[match], rule.fixes.empty() ? "opset-converted" : rule.fixes);
  };
  // What cannot be built stays, and the warning with it.
  return ApplyRules(workspace, workspace.rules(RuleFolder::kAdapt), VisitOrder::kRules, steps);
}

void ApplyAdapterFunctions(Workspace& workspace, const std::function<bool(const Node&)>& may, int64_t to) {
  absl::flat_hash_map<std::string_view, std::vector<const Adapter*>> by_op;
  for (const Adapter& adapter : Adapters()) by_op[adapter.op].push_back(&adapter);
  std::vector<std::pair<const Node*, const Adapter*>> found;  // first all, then the changes
  for (const auto& graph : workspace.model().graphs()) {
    for (const Node* node : graph->nodes()) {
      if (node->dead || node->domain != NameId::kEmpty) continue;
      const auto adapters = by_op.find(OpType(*node));
      if (adapters == by_op.end() || !may(*node)) continue;
      for (const Adapter* adapter : adapters->second) {
        if (HasForm(workspace, *node, adapter->code, to)) found.emplace_back(node, adapter);
      }
    }
  }
  for (const auto& [node, adapter] : found) {
    if (!node->dead && adapter->write(workspace, node)) Note(workspace, *node, adapter->code);
  }
}

}  // namespace

std::vector<const UnsupportedForm*> FormsOf(const Workspace& workspace, const Node& node) {
  return FormsAt(workspace, node, workspace.model().OpsetVersion());
}

std::vector<const UnsupportedForm*> FormsAt(const Workspace& workspace, const Node& node, int64_t opset) {
  if (node.domain != NameId::kEmpty || IsCall(node)) return {};
  auto forms = workspace.target()->UnsupportedForms(node, opset, &workspace.facts());
  forms.erase(std::remove_if(forms.begin(), forms.end(), [](const UnsupportedForm* form) { return form->IsRight(); }),
              forms.end());
  return forms;
}

const UnsupportedForm* NewForm(const std::vector<const UnsupportedForm*>& forms,
                               const std::vector<const UnsupportedForm*>& others) {
  const auto is_new = [&](const UnsupportedForm* form) {
    return std::none_of(others.begin(), others.end(), [&](const UnsupportedForm* other) { return other->code == form->code; });
  };
  const auto found = std::find_if(forms.begin(), forms.end(), is_new);
  return found == forms.end() ? nullptr : *found;
}

bool HasForm(const Workspace& workspace, const Node& node, std::string_view code, int64_t also_at) {
  const auto is_at = [&](int64_t opset) {
    const auto forms = FormsAt(workspace, node, opset);
    return std::any_of(forms.begin(), forms.end(), [&](const UnsupportedForm* form) { return form->code == code; });
  };
  return is_at(workspace.model().OpsetVersion()) || (also_at > 0 && is_at(also_at));
}

absl::Status ApplyAdapters(Workspace& workspace, const std::function<bool(const Node&)>& may, int64_t to) {
  RETURN_IF_ERROR(ApplyAdapterRules(workspace, may, to));
  ApplyAdapterFunctions(workspace, may, to);
  return absl::OkStatus();
}

namespace {

// Adapts the Einsums of which `may` holds.
absl::Status AdaptEinsums(Workspace& workspace, absl::FunctionRef<bool(const Node&)> may) {
  const NameId einsum = workspace.model().names().Intern("Einsum");
  const auto is_one = [&](const Node& node) { return node.op_type == einsum && node.domain == NameId::kEmpty && may(node); };
  for (const auto& graph : workspace.model().graphs()) {
    for (const Node* node : graph->nodes()) {
      if (!node->dead && is_one(*node)) return ApplyAdapters(workspace, is_one);
    }
  }
  return absl::OkStatus();
}

// Whether two operands have a letter for axes that are not proved to be equal, nor to be broadcast.
bool EquatesDims(const Workspace& workspace, const Node& einsum) {
  const Facts& facts = workspace.facts();
  std::vector<size_t> ranks;
  for (const Use& use : einsum.inputs()) {
    if (use.value == nullptr || !facts.Of(use.value).has_rank) return false;
    ranks.push_back(facts.Of(use.value).shape.size());
  }
  const auto letters = EinsumLetters(StringAttribute(einsum, "equation").value_or(""), ranks);
  if (!letters.ok()) return false;
  std::array<std::optional<Dim>, 256> lengths;  // by letter
  for (size_t i = 0; i < ranks.size(); ++i) {
    for (size_t axis = 0; axis < ranks[i]; ++axis) {
      const Dim dim = facts.dims().Resolve(facts.Of(einsum.input(i)).shape[axis]);
      std::optional<Dim>& length = lengths[static_cast<uint8_t>((*letters)[i][axis])];
      if (!length.has_value()) length = dim;
      if (!dim.known() || !length->known() || dim.is(1) || length->is(1)) continue;
      if (!facts.dims().Equal(dim, *length)) return true;
    }
  }
  return false;
}

}  // namespace

absl::Status EquateProducts(Workspace& workspace) {
  if (workspace.ChangesNothing() || workspace.target() == nullptr) return absl::OkStatus();
  const uint64_t changes = workspace.rewriter().Now().changes;
  RETURN_IF_ERROR(AdaptEinsums(workspace, [&workspace](const Node& node) { return EquatesDims(workspace, node); }));
  if (workspace.rewriter().Now().changes == changes) return absl::OkStatus();
  workspace.InferModelAgain();  // of the whole model: such a product in both branches of an If says what the If gives
  workspace.NumberValues();
  return absl::OkStatus();
}

absl::Status AdaptProducts(Workspace& workspace) {
  if (workspace.ChangesNothing()) return absl::OkStatus();
  return AdaptEinsums(workspace, [](const Node&) { return true; });
}

absl::Status Adapt(Workspace& workspace) {
  if (workspace.ChangesNothing()) return absl::OkStatus();
  AdaptNames(workspace);
  AdaptSequences(workspace);
  AdaptBranchInputs(workspace);
  const absl::Status status = ApplyAdapters(workspace, [](const Node&) { return true; });
  return status.ok() ? TryOtherOpsets(workspace) : status;
}

}  // namespace ascend_fuse
