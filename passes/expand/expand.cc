// Expand: rules of patterns/rules/reference replace NPU nodes by what the kernels compute, in standard operators. Where the
// workspace has a target, the standard operators are taken as its ATC reads them.
#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "fmt/format.h"
#include "ir/operands.h"
#include "ir/status_macros.h"
#include "passes/core/apply_rules.h"
#include "passes/core/float_attribute.h"
#include "passes/core/node_inserter.h"
#include "passes/core/workspace.h"
#include "passes/expand/integer_products.h"
#include "passes/expand/passes.h"
#include "passes/expand/read_as_atc.h"

namespace ascend_fuse {
namespace {

// Nodes of emission style D carry no domain: they are npu nodes all the same. Before anything is inferred.
void NameDomains(Workspace& workspace) {
  const RuleSet& reference = workspace.rules(RuleFolder::kReference);
  absl::flat_hash_set<std::string> known;
  for (size_t r = 0; r < reference.rules().size(); ++r) {
    for (const std::string& root : reference.RootOperators(r)) known.insert(root);
  }
  for (const auto& graph : workspace.model().graphs()) {
    for (const Node* node : graph->nodes()) {
      if (node->domain == NameId::kEmpty && known.contains(fmt::format("npu.{}", OpType(*node)))) {
        workspace.rewriter().Rename(node, "npu", std::string(OpType(*node)));
      }
    }
  }
}

// A number that was written as a list is one again: rules ask for numbers.
void NameNumbers(Workspace& workspace) {
  std::vector<const Node*> found;
  for (const auto& graph : workspace.model().graphs()) {
    for (const Node* node : graph->nodes()) {
      const bool ours = !node->dead && Domain(*node) == "npu";
      if (ours && HasListForNumber(FindDeclaredOperator("npu", OpType(*node)), *node)) found.push_back(node);
    }
  }
  for (const Node* node : found) {
    NewNode plan = PlanOf(*node);
    const DeclaredOperator* declared = FindDeclaredOperator("npu", plan.op_type);
    for (Attribute& attribute : plan.attributes) attribute = AsDeclared(declared, attribute);
    workspace.rewriter().ReplaceNode(*node, plan);
  }
}

// An attention of rows of all heads is one in BSND between Reshapes.
void NameRows(Workspace& workspace) {
  std::vector<const Node*> found;
  for (const auto& graph : workspace.model().graphs()) {
    for (const Node* node : graph->nodes()) {
      const bool ours = !node->dead && Domain(*node) == "npu" && node->input_count >= 3 && node->output() != nullptr;
      if (ours && StringAttribute(*node, "input_layout") == "BSH") found.push_back(node);
    }
  }
  if (!found.empty()) workspace.InferModel();
  for (const Node* node : found) {
    const int64_t heads = IntAttribute(*node, "num_heads").value_or(1);
    const int64_t given = IntAttribute(*node, "num_key_value_heads").value_or(0);
    NewNode plan = PlanOf(*node);
    int64_t width = 0;
    for (size_t i = 0; i < 3; ++i) {
      const Fact& fact = workspace.facts().Of(node->input(i));
      const Dim row = fact.rank() == 3 ? workspace.facts().dims().Resolve(fact.shape[2]) : Dim();
      const int64_t own = i == 0 || given == 0 ? heads : given;
      if (!row.is_number() || own < 1) continue;  // no rule knows it then
      width = row.number() / own;
      plan.inputs[i] = NodeInserter(workspace, *node).Build(build::Reshape(Term::Of(node->input(i)), {0, 0, own, width}));
    }
    for (Attribute& attribute : plan.attributes) {
      if (attribute.name == "input_layout") attribute = Attribute::String("input_layout", "BSND");
    }
    plan.keep_name = false;
    const Node* const attention = workspace.rewriter().Insert(plan, 1, node->graph, ValueName(*node->output()));
    NewNode rows = NodeInserter(workspace, *node).Plan(build::Reshape(Term::Of(attention->output()), {0, 0, heads * width}));
    rows.name = plan.name;
    rows.keep_name = !plan.name.empty();
    workspace.rewriter().ReplaceValue(node->output(), rows);
  }
}

// An attention in another layout is one in BNSD between Transposes: rules know that one.
void NameLayouts(Workspace& workspace) {
  std::vector<std::pair<const Node*, std::string>> found;
  for (const auto& graph : workspace.model().graphs()) {
    for (const Node* node : graph->nodes()) {
      const auto layout = StringAttribute(*node, "input_layout");
      const bool ours = !node->dead && Domain(*node) == "npu" && node->input_count >= 3 && node->output() != nullptr;
      if (ours && (layout == "BSND" || layout == "BNSD_BSND")) found.emplace_back(node, *layout);
    }
  }
  for (const auto& [node, layout] : found) {
    const auto turned = [&, at = node](const Value* x) {
      return NodeInserter(workspace, *at).Op("Transpose", {x}, {Attribute::Ints("perm", {0, 2, 1, 3})});
    };
    NewNode plan = PlanOf(*node);
    for (Attribute& attribute : plan.attributes) {
      if (attribute.name == "input_layout") attribute = Attribute::String("input_layout", "BNSD");
    }
    if (layout == "BSND") {
      for (size_t i = 0; i < 3; ++i) {
        if (plan.inputs[i] != nullptr) plan.inputs[i] = turned(plan.inputs[i]);
      }
    }
    plan.keep_name = false;
    const Value* y = workspace.rewriter().Insert(plan, 1, node->graph, ValueName(*node->output()))->output();
    NewNode turn;
    turn.op_type = "Transpose";
    turn.name = plan.name;
    turn.keep_name = !plan.name.empty();
    turn.inputs = {y};
    turn.attributes = {Attribute::Ints("perm", {0, 2, 1, 3})};
    workspace.rewriter().ReplaceValue(node->output(), turn);
  }
}

std::vector<const Node*> NpuNodes(const Model& model) {
  std::vector<const Node*> nodes;
  for (const auto& graph : model.graphs()) {
    for (const Node* node : graph->nodes()) {
      if (!node->dead && Domain(*node) == "npu") nodes.push_back(node);
    }
  }
  return nodes;
}

}  // namespace

absl::Status ExpandNodes(Workspace& workspace) {
  RETURN_IF_ERROR(CheckOperands(workspace.model()));
  NameDomains(workspace);
  NameNumbers(workspace);
  if (workspace.target() != nullptr) {
    RETURN_IF_ERROR(ReadAsAtc(workspace));
  }
  NameRows(workspace);
  NameLayouts(workspace);  // after the reading: its nodes are not of the file
  workspace.InferModel();
  RETURN_IF_ERROR(NameIntegerProducts(workspace));
  workspace.NumberValues();
  const bool any = !NpuNodes(workspace.model()).empty();
  absl::flat_hash_map<const Node*, std::string> why;
  RuleSteps steps;
  steps.refused = [](MatchToken, const Rule&, const absl::Status& status) { return status; };
  steps.unmatched = [&](const Node* node, const Failure& failure) {
    why[node] = fmt::format("expected {}, found {}", failure.expected, failure.found);
  };
  RETURN_IF_ERROR(ApplyRules(workspace, workspace.rules(RuleFolder::kReference), VisitOrder::kNodes, steps));
  std::vector<std::string> unknown;
  for (const Node* node : NpuNodes(workspace.model())) {
    const auto told = why.find(node);
    unknown.push_back(fmt::format("{} {} ({})", OperatorKey(*node), NodeName(*node),
                                  told != why.end() ? told->second : "no rule of patterns/rules/reference knows it"));
  }
  if (!unknown.empty()) {
    return absl::FailedPreconditionError(
        fmt::format("{} node(s) cannot be expanded to standard operators: {}", unknown.size(), unknown[0]));
  }
  if (any) {
    workspace.rewriter().SetOpsetImport("npu", 0);
    workspace.rewriter().SpellDefaultDomain(DefaultDomain::kEmpty);
  }
  return absl::OkStatus();
}

}  // namespace ascend_fuse
