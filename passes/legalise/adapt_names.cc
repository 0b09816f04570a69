// Names that ATC does not read as ONNX does: a name that two nodes have, or a node and an input, and an empty output, which
// its parser connects to every empty input (the codes name-twice, name-of-an-input and empty-names-wired). And imports that
// no node needs: beside more than one, older parsers read no node of the empty domain (imports-mixed).
#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "passes/legalise/adapt.h"

namespace ascend_fuse {
namespace {

bool HasEmptyOutput(const Node& node) {
  return std::any_of(node.outputs().begin(), node.outputs().end(),
                     [&](const Value* value) { return value == nullptr || value->producer != &node; });
}

// The first value that the node computes; nullptr where there is none.
const Value* FirstOutput(const Node& node) {
  const auto found = std::find_if(node.outputs().begin(), node.outputs().end(),
                                  [&](const Value* value) { return value != nullptr && value->producer == &node; });
  return found == node.outputs().end() ? nullptr : *found;
}

bool HasEmptyInput(const Node& node) {
  return std::any_of(node.inputs().begin(), node.inputs().end(), [](const Use& use) { return use.value == nullptr; });
}

// The same node under a free name near its own, with a value at every output.
void MakeAnew(Workspace& workspace, const Node* node, bool keep_name) {
  NewNode plan = PlanOf(*node);
  plan.keep_name = plan.keep_name && keep_name;
  const Node* const renamed = workspace.rewriter().ReplaceNode(*node, plan);
  workspace.rewriter().CopyNotes(*node, renamed);
  workspace.Refresh(renamed);
}

struct Renamed {
  const Node* node;
  std::string_view code;
};

std::vector<Renamed> FindIn(const Graph& graph) {
  absl::flat_hash_set<NameId> inputs;
  for (const Value* input : graph.inputs()) inputs.insert(input->name);
  bool empty_input = false;
  for (const Node* node : graph.nodes()) empty_input = empty_input || (!node->dead && HasEmptyInput(*node));
  absl::flat_hash_set<NameId> seen;
  std::vector<Renamed> found;
  for (const Node* node : graph.nodes()) {
    if (node->dead) continue;
    const bool named = node->name != NameId::kEmpty;
    const bool first = !named || seen.insert(node->name).second;
    if (node->is_new || node->subgraph_count > 0 || FirstOutput(*node) == nullptr) continue;
    if (named && inputs.contains(node->name)) {
      found.push_back({node, "name-of-an-input"});
    } else if (!first) {
      found.push_back({node, "name-twice"});
    } else if (empty_input && HasEmptyOutput(*node)) {
      found.push_back({node, "empty-names-wired"});
    }
  }
  return found;
}

void DropUnusedImports(Workspace& workspace) {
  const Model& model = workspace.model();
  if (workspace.target()->ParsesNpuDomain() || !model.functions().empty()) return;
  absl::flat_hash_set<NameId> used = {NameId::kEmpty};
  for (const auto& graph : model.graphs()) {
    for (const Node* node : graph->nodes()) {
      if (!node->dead) used.insert(node->domain);
    }
  }
  std::vector<std::string> unused;
  for (const OpsetImport& import : model.opset_imports()) {
    if (!used.contains(import.domain)) unused.emplace_back(model.Text(import.domain));
  }
  for (const std::string& domain : unused) {
    workspace.rewriter().SetOpsetImport(domain, 0);
    workspace.result.adapted[{"imports-mixed", "import"}].push_back(domain);
  }
}

}  // namespace

void AdaptNames(Workspace& workspace) {
  for (const auto& graph : workspace.model().graphs()) {
    for (const auto& [node, code] : FindIn(*graph)) {
      workspace.result.adapted[{std::string(code), std::string(OpType(*node))}].emplace_back(
          node->name != NameId::kEmpty ? NodeName(*node) : ValueName(*FirstOutput(*node)));
      MakeAnew(workspace, node, code == "empty-names-wired");
    }
  }
  DropUnusedImports(workspace);
}

}  // namespace ascend_fuse
