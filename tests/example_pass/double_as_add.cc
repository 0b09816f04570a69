// Two passes of one's own: the first writes Mul (x, 2) as Add (x, x), the second one breaks the graph.
#include <cstdio>

#include "absl/container/flat_hash_set.h"
#include "ir/text/parser.h"
#include "ir/text/printer.h"
#include "passes/core/workspace.h"
#include "passes/optimize.h"

namespace {

using namespace ascend_fuse;

// The operand that `mul` doubles: the other one is 2 throughout, and the shape stays. nullptr if there is none.
const Value* Doubled(const Node& mul, const Facts& facts) {
  const Fact& y = facts.Of(mul.output());
  for (size_t i = 0; i < 2; ++i) {
    const Fact& x = facts.Of(mul.input(i));
    const Fact& factor = facts.Of(mul.input(1 - i));
    if (!factor.is_splat || factor.splat != 2 || !x.has_rank || !y.has_rank) continue;
    if (facts.dims().Equal(x.shape, y.shape)) return mul.input(i);
  }
  return nullptr;
}

absl::Status DoubleAsAdd(Workspace& workspace) {
  // What a site was replaced by belongs to the site: `lower` and `restore` look for it.
  absl::flat_hash_set<const Node*> of_sites;
  for (const Site& site : workspace.sites) of_sites.insert(site.made.begin(), site.made.end());
  std::vector<const Node*> found;  // first all, then the changes: a list that grows is not walked
  for (const auto& graph : workspace.model().graphs()) {
    for (const Node* node : graph->nodes()) {
      if (!node->dead && IsOp(*node, "Mul") && !of_sites.contains(node)) found.push_back(node);
    }
  }
  for (const Node* mul : found) {
    const Value* x = Doubled(*mul, workspace.facts());
    if (x == nullptr) continue;
    NewNode add;
    add.op_type = "Add";
    add.name = std::string(NodeName(*mul));
    add.keep_name = true;
    add.inputs = {x, x};
    workspace.Refresh(workspace.rewriter().ReplaceValue(mul->output(), add));
  }
  return absl::OkStatus();
}

// The first node reads what the last one computes.
absl::Status MakeCycle(Workspace& workspace) {
  const auto& nodes = workspace.model().graph().nodes();
  workspace.rewriter().SetInput(nodes.front(), 0, nodes.back()->output());
  return absl::OkStatus();
}

constexpr char kModel[] = R"(
<ir_version: 8, opset_import: ["" : 17]>
model (float[batch, 8] x) => (float[batch, 8] y)
<float two = {2}, float half = {0.5}>
{
  [double] d = Mul (two, x)
  [gate] g = Sigmoid (d)
  [swish] s = Mul (d, g)
  [halve] y = Mul (s, half)
}
)";

// Optimizes the model with one more pass, and prints what came out.
int Show(const PlacedPass& pass) {
  auto model = ParseModelText(kModel);
  if (!model.ok()) return 1;
  OptimizeOptions options;
  options.passes = {pass};
  const auto report = Optimize(model->get(), options);
  if (!report.ok()) {
    std::printf("%s\n", std::string(report.status().message()).c_str());
    return 0;
  }
  for (const Node* node : (*model)->graph().nodes()) std::printf("%s\n", PrintNode(*node).c_str());
  for (const SiteRecord& site : report->sites) {
    std::printf("%s %s: %s\n", site.state.c_str(), site.kind.c_str(), site.because.c_str());
  }
  return 0;
}

}  // namespace

int main() {
  const auto kAfter = PlacedPass::Place::kAfter;
  const Pass good = {"double_as_add", "facts and sites", "no Mul by 2 outside of sites", DoubleAsAdd};
  const Pass bad = {"make_cycle", "nothing", "an invalid graph", MakeCycle};
  return Show({kAfter, "recognise", good}) + Show({kAfter, "number", bad});
}
