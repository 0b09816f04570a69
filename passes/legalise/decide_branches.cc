// Branches that the numbers of --fix decide: the one that is taken replaces its If before anything is looked for, so
// that it is fused with what is around it.
#include <algorithm>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "passes/core/copy_value.h"
#include "passes/core/workspace.h"
#include "passes/legalise/passes.h"

namespace ascend_fuse {
namespace {

class BranchDecider {
 public:
  explicit BranchDecider(Workspace& workspace) : workspace_(workspace) {}

  void Run() {
    for (size_t i = 0; i < workspace_.model().graphs().size(); ++i) {
      const auto& graph = workspace_.model().graphs()[i];
      const std::vector<const Node*> nodes(graph->nodes().begin(), graph->nodes().end());
      for (const Node* node : nodes) {
        if (!node->dead && node->op_type == if_) Decide(node);
      }
    }
    if (workspace_.decided_ifs.empty()) return;
    // Of the branch alone more is known than of both, and what reads it goes on from its nodes.
    workspace_.InferModelAgain();
    workspace_.NumberValues();
  }

 private:
  // The branch that is taken, in place of the If. Bodies in it, and its own initializers, are left as they are.
  void Decide(const Node* node) {
    const Fact& condition = workspace_.facts().Of(node->input(0));
    if (condition.elements == nullptr || condition.elements->integers.size() != 1) return;
    const Dim known = workspace_.facts().dims().Resolve(condition.elements->integers[0]);
    const Graph* const taken = known.is_number() ? BranchOf(*node, known.number() != 0) : nullptr;
    if (taken == nullptr || taken->outputs().size() != node->output_count || !taken->initializers().empty()) return;
    std::vector<const Node*> body;
    for (const Node* inner : taken->nodes()) {
      if (!inner->dead) body.push_back(inner);
    }
    if (std::any_of(body.begin(), body.end(), [](const Node* inner) { return inner->subgraph_count > 0; })) return;
    // New nodes stand at the end of the list, before those that read them in the order of the graph.
    SortInOrder(&body);
    absl::flat_hash_map<const Value*, const Value*> moved;
    const auto there = [&moved](const Value* value) {
      const auto found = moved.find(value);
      return found != moved.end() ? found->second : value;
    };
    for (const Node* inner : body) {
      NewNode plan = PlanOf(*inner);
      plan.keep_name = false;
      for (const Value*& input : plan.inputs) input = there(input);
      const std::string name(inner->output() != nullptr ? ValueName(*inner->output()) : OpType(*inner));
      // Each has a place of its own: what one of them is replaced with stands where it stood, before the others.
      const Node* const copy = workspace_.rewriter().Insert(plan, inner->output_count, node->graph, name, node);
      workspace_.rewriter().CopyNotes(*inner, copy);
      workspace_.moved.insert(copy);
      workspace_.Refresh(copy);
      for (size_t i = 0; i < inner->output_count; ++i) {
        if (inner->output(i) != nullptr) moved[inner->output(i)] = copy->output(i);  // an absent operand is not an output
      }
    }
    workspace_.decided_ifs.insert(node);
    const std::vector<const Value*> outputs(node->outputs().begin(), node->outputs().end());
    for (size_t i = 0; i < outputs.size(); ++i) {
      if (outputs[i] == nullptr) continue;
      BecomeCopy(workspace_, outputs[i], there(taken->outputs()[i]), std::string(NodeName(*node)));
    }
  }

  const Graph* BranchOf(const Node& node, bool condition) const {
    size_t body = 0;  // in attribute order
    for (const Attribute& attribute : ReadAttributes(node)) {
      if (attribute.type != AttributeType::kGraph) continue;
      if (attribute.name == (condition ? "then_branch" : "else_branch") && body < node.subgraph_count)
        return node.subgraphs()[body];
      ++body;
    }
    return nullptr;
  }

  Workspace& workspace_;
  const NameId if_ = workspace_.model().names().Intern("If");
};

}  // namespace

absl::Status DecideBranches(Workspace& workspace) {
  if (!workspace.options().fix.empty()) BranchDecider(workspace).Run();
  return absl::OkStatus();
}

}  // namespace ascend_fuse
