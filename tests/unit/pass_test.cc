// The list of passes, and a user's own ones in it: where they stand, whose error is told, and that nothing of them is left
// after a dry run.
#include "passes/core/pass.h"
#include "ir/status_macros.h"

#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "fmt/format.h"
#include "fmt/ranges.h"
#include "gtest/gtest.h"
#include "ir/text/parser.h"
#include "ir/text/printer.h"
#include "passes/core/node_inserter.h"
#include "passes/core/workspace.h"
#include "passes/optimize.h"
#include "passes/optimize_passes.h"
#include "patterns/terms/node_builder.h"
#include "tests/unit/models.h"

namespace ascend_fuse {
namespace {

using testing::MustLoad;
using testing::MustSave;

constexpr auto kBefore = PlacedPass::Place::kBefore;
constexpr auto kAfter = PlacedPass::Place::kAfter;

absl::Status DoNothing(Workspace&) { return absl::OkStatus(); }

PlacedPass Placed(PlacedPass::Place place, const std::string& stage, const std::string& name,
                  std::function<absl::Status(Workspace&)> run = DoNothing) {
  return {place, stage, {name, "nothing", "nothing", std::move(run)}};
}

// Four passes of these names and those of the user's, in their order.
std::string Order(const std::vector<PlacedPass>& placed) {
  std::vector<Pass> passes;
  for (const char* name : {"one", "two", "three", "four"}) passes.push_back({name, "", "", DoNothing});
  const auto all = WithPasses(passes, placed);
  if (!all.ok()) return std::string(all.status().message());
  std::vector<std::string> names;
  for (const Pass& pass : *all) names.push_back(pass.name);
  return fmt::format("{}", fmt::join(names, " "));
}

std::string Encoded() {
  return *EncodeModelText(R"(
    <ir_version: 8, opset_import: ["" : 17]>
    g (float[B, 8] x) => (float[B, 8] y)
    { [first] a = Relu (x)  [second] b = Relu (a)  [third] c = Sigmoid (b)  [fourth] y = Mul (b, c) })");
}

// Every Relu becomes the given operator.
absl::Status Rewrite(Workspace& workspace, const std::string& op) {
  std::vector<const Node*> found;
  for (const Node* node : workspace.model().graph().nodes()) {
    if (!node->dead && IsOp(*node, "Relu")) found.push_back(node);
  }
  for (const Node* node : found) {
    NewNode made;
    made.op_type = op;
    made.inputs = {node->input(0)};
    workspace.rewriter().ReplaceValue(node->output(), made);
  }
  return absl::OkStatus();
}

// What computes the value of that name.
std::string ProducerOf(const Graph& graph, const std::string& name) {
  for (const Node* node : graph.nodes()) {
    if (!node->dead && ValueName(*node->output()) == name) return PrintNode(*node);
  }
  return "nothing";
}

TEST(PassTest, APassStandsWhereItIsPlaced) {
  EXPECT_EQ(Order({}), "one two three four");
  EXPECT_EQ(Order({Placed(kBefore, "one", "a")}), "a one two three four");
  EXPECT_EQ(Order({Placed(kAfter, "four", "a")}), "one two three four a");
  EXPECT_EQ(Order({Placed(kAfter, "two", "a"), Placed(kBefore, "three", "b")}), "one two a b three four");
  EXPECT_EQ(Order({Placed(kBefore, "three", "a"), Placed(kAfter, "two", "b")}), "one two b a three four");
}

TEST(PassTest, SeveralAtOnePlaceKeepTheirOrder) {
  EXPECT_EQ(Order({Placed(kAfter, "two", "a"), Placed(kAfter, "two", "b"), Placed(kAfter, "two", "c")}),
            "one two a b c three four");
  EXPECT_EQ(Order({Placed(kBefore, "two", "a"), Placed(kBefore, "two", "b")}), "one a b two three four");
}

TEST(PassTest, APassMayStandBesideOneThatWasGivenBefore) {
  EXPECT_EQ(Order({Placed(kAfter, "two", "a"), Placed(kAfter, "a", "b"), Placed(kBefore, "a", "c")}), "one two c a b three four");
  EXPECT_EQ(Order({Placed(kAfter, "two", "a"), Placed(kAfter, "a", "b"), Placed(kAfter, "two", "c")}),
            "one two a b c three four");
}

TEST(PassTest, AStageThatIsNoneIsAnErrorThatNamesThem) {
  EXPECT_EQ(Order({Placed(kAfter, "five", "a")}), "pass a: unknown stage five; stages are one, two, three, four");
  EXPECT_EQ(Order({Placed(kAfter, "a", "b"), Placed(kAfter, "two", "a")}),
            "pass b: unknown stage a; stages are one, two, three, four");
}

TEST(PassTest, WhatAPassNeedsIsGivenBeforeIt) {
  std::vector<Pass> passes = OptimizePasses();
  EXPECT_TRUE(CheckNeeds(passes).ok());
  const auto lower = std::find_if(passes.begin(), passes.end(), [](const Pass& pass) { return pass.name == "lower"; });
  const auto recognise = std::find_if(passes.begin(), passes.end(), [](const Pass& pass) { return pass.name == "recognise"; });
  std::iter_swap(lower, recognise);
  EXPECT_EQ(CheckNeeds(passes).message(), "the pass lower needs sites, which no pass before it gives");
}

// Value `a` becomes what another operator computes of x: of another shape, another type, or the same.
absl::StatusOr<Report> WithRelusAs(const NewNode& plan) {
  auto model = MustLoad(Encoded());
  OptimizeOptions options;
  const auto replace = [&](Workspace& workspace) {
    const Node* first = workspace.model().graph().nodes().front();
    NewNode made = plan;
    made.inputs = {first->input(0)};
    workspace.rewriter().ReplaceValue(first->output(), made);  // and nobody is told
    return absl::OkStatus();
  };
  options.passes = {Placed(kAfter, "restore", "replace", replace)};
  return Optimize(model.get(), options);
}

TEST(PassTest, AValueKeepsTypeAndShapeWhateverComputesIt) {
  NewNode plan;
  plan.op_type = "Sigmoid";
  EXPECT_TRUE(WithRelusAs(plan).ok());
  plan.op_type = "ReduceMax";
  plan.attributes = {Attribute::Ints("axes", {1})};
  EXPECT_EQ(WithRelusAs(plan).status().message(),
            "after the pass replace: ReduceMax '' computes float[B, 1] as 'a', which is float[B, 8]");
  plan.op_type = "Cast";
  plan.attributes = {Attribute::Int("to", static_cast<int64_t>(DataType::kFloat16))};
  EXPECT_EQ(WithRelusAs(plan).status().message(),
            "after the pass replace: Cast '' computes float16[B, 8] as 'a', which is float[B, 8]");
}

TEST(PassTest, ANameCountsOnce) {
  EXPECT_EQ(Order({Placed(kAfter, "two", "three")}), "there is a pass three already");
  EXPECT_EQ(Order({Placed(kAfter, "two", "a"), Placed(kBefore, "two", "a")}), "there is a pass a already");
}

TEST(PassTest, APassNeedsANameAndAFunction) {
  EXPECT_EQ(Order({Placed(kAfter, "two", "")}), "a pass needs a name and a function");
  EXPECT_EQ(Order({Placed(kAfter, "two", "a", nullptr)}), "a pass needs a name and a function");
}

TEST(PassTest, PassesOfOptimizeSayWhatTheyTakeAndGive) {
  std::vector<std::string> names;
  for (const Pass& pass : OptimizePasses()) {
    EXPECT_FALSE(pass.takes.empty() || pass.gives.empty()) << pass.name;
    EXPECT_EQ(std::count(names.begin(), names.end(), pass.name), 0) << pass.name;
    names.push_back(pass.name);
  }
  EXPECT_EQ(DescribePasses({{"one", "a", "b", DoNothing}, {"two", "c", "d", DoNothing, true}}),
            "| pass | takes | gives | `list` |\n|---|---|---|---|\n| `one` | a | b | yes |\n| `two` | c | d | no |\n");
}

TEST(PassTest, TheErrorOfAPassIsThatOfTheRun) {
  OptimizeOptions options;
  bool later = false;
  options.passes = {
      Placed(kAfter, "recognise", "refuse", [](Workspace&) { return absl::ResourceExhaustedError("no more of this"); }),
      Placed(kAfter, "refuse", "later", [&later](Workspace&) {
        later = true;
        return absl::OkStatus();
      })};
  const auto model = MustLoad(Encoded());
  EXPECT_EQ(Optimize(model.get(), options).status(), absl::ResourceExhaustedError("no more of this"));
  EXPECT_FALSE(later);
}

TEST(PassTest, WhatAPassDidIsWrittenAndCounted) {
  for (const auto& [place, stage] : {std::pair(kBefore, "inline"), std::pair(kAfter, "number")}) {
    OptimizeOptions options;
    options.passes = {Placed(place, stage, "rewrite", [](Workspace& workspace) { return Rewrite(workspace, "Abs"); })};
    const auto model = MustLoad(Encoded());
    const auto report = Optimize(model.get(), options);
    ASSERT_TRUE(report.ok()) << report.status();
    EXPECT_EQ(ProducerOf(model->graph(), "b"), "b = Abs (a)") << stage;
    const auto run =
        std::find_if(report->passes.begin(), report->passes.end(), [](const PassRecord& pass) { return pass.name == "rewrite"; });
    ASSERT_NE(run, report->passes.end());
    EXPECT_GT(run->changes, 0);
  }
}

// A node that asks for a dim of 3 makes the file one for 3 alone: the passes before it are to know that.
TEST(PassTest, WhatIsLearnedOfInputDimsIsKnownFromTheBeginning) {
  std::vector<std::string> seen;
  OptimizeOptions options;
  options.passes = {Placed(kAfter, "number", "look",
                           [&seen](Workspace& workspace) {
                             DimTable& dims = workspace.facts().dims();
                             seen.push_back(dims.ToString(dims.Resolve(dims.Symbol("N"))));
                             return absl::OkStatus();
                           }),
                    Placed(kAfter, "lower", "learn", [](Workspace& workspace) {
                      DimTable& dims = workspace.facts().dims();
                      EXPECT_TRUE(dims.Unify(dims.Symbol("N"), Dim::Of(3)));
                      return Rewrite(workspace, "Abs");
                    })};
  for (const bool dry : {false, true}) {
    seen.clear();
    const auto model =
        MustLoad(*EncodeModelText("<ir_version: 8, opset_import: [\"\" : 17]>\n"
                                  "g (float[N] a) => (float[N] c) { b = Neg (a) c = Relu (b) }"));
    const auto report = dry ? ListOpportunities(model.get(), options) : Optimize(model.get(), options);
    ASSERT_TRUE(report.ok()) << report.status();
    EXPECT_EQ(seen, (std::vector<std::string>{"N", "3"}));
    EXPECT_EQ(ProducerOf(model->graph(), "c"), dry ? "c = Relu (b)" : "c = Abs (b)");
    EXPECT_TRUE(report->target.dims.empty());  // nobody told it
  }
}

TEST(PassTest, ADryRunLeavesTheModelAsItWas) {
  for (const auto& [place, stage] :
       {std::pair(kBefore, "inline"), std::pair(kAfter, "inline"), std::pair(kAfter, "number"), std::pair(kAfter, "recognise"),
        std::pair(kAfter, "lower"), std::pair(kBefore, "sweep"), std::pair(kAfter, "sweep")}) {
    OptimizeOptions options;
    bool ran = false;
    options.passes = {Placed(place, stage, "rewrite", [&ran](Workspace& workspace) {
      ran = true;
      return Rewrite(workspace, "Abs");
    })};
    const std::string bytes = MustSave(*MustLoad(Encoded()));
    const auto model = MustLoad(bytes);
    const auto report = ListOpportunities(model.get(), options);
    ASSERT_TRUE(report.ok()) << report.status();
    EXPECT_TRUE(ran) << stage;
    EXPECT_TRUE(MustSave(*model) == bytes) << stage;
  }
}

TEST(PassTest, CallsOfFunctionsStayInlinedWhereAPassRewiredANode) {
  const auto encoded = EncodeModelText(R"(
    <ir_version: 8, opset_import: ["" : 17, "local" : 1]>
    g (float[B, 8] x) => (float[B, 8] y) { a = Relu (x)  y = local.Twice (a) }
    <domain: "local", opset_import: ["" : 17]>
    Twice (v) => (w) { u = Relu (v)  w = Relu (u) })");
  ASSERT_TRUE(encoded.ok()) << encoded.status();
  OptimizeOptions options;
  options.passes = {Placed(kAfter, "number", "merge", [](Workspace& workspace) {
    const auto& nodes = workspace.model().graph().nodes();
    const Value* x = workspace.model().graph().inputs()[0];
    for (const Node* node : nodes) {
      if (!node->dead && node->output() == workspace.model().graph().outputs()[0]) workspace.rewriter().SetInput(node, 0, x);
    }
    return absl::OkStatus();
  })};
  const auto model = MustLoad(*encoded);
  ASSERT_TRUE(Optimize(model.get(), options).ok());
  EXPECT_EQ(ProducerOf(model->graph(), "y"), "y = Relu (x)");
  const std::string bytes = MustSave(*MustLoad(*encoded));
  const auto listed = MustLoad(bytes);
  ASSERT_TRUE(ListOpportunities(listed.get(), options).ok());
  EXPECT_TRUE(MustSave(*listed) == bytes);
}

TEST(PassTest, ADryRunThatFailsLeavesTheModelAsItWas) {
  OptimizeOptions options;
  options.passes = {Placed(kAfter, "number", "rewrite", [](Workspace& workspace) -> absl::Status {
    RETURN_IF_ERROR(Rewrite(workspace, "Abs"));
    return absl::InternalError("after all");
  })};
  const std::string bytes = MustSave(*MustLoad(Encoded()));
  const auto model = MustLoad(bytes);
  EXPECT_EQ(ListOpportunities(model.get(), options).status(), absl::InternalError("after all"));
  EXPECT_TRUE(MustSave(*model) == bytes);
}

TEST(PassTest, APassThatIsFinalIsLeftOutOfADryRun) {
  for (const bool dry : {false, true}) {
    OptimizeOptions options;
    bool ran = false;
    options.passes = {Placed(kAfter, "sweep", "note", [&ran](Workspace&) {
      ran = true;
      return absl::OkStatus();
    })};
    options.passes[0].pass.final = true;
    const auto model = MustLoad(Encoded());
    ASSERT_TRUE((dry ? ListOpportunities(model.get(), options) : Optimize(model.get(), options)).ok());
    EXPECT_EQ(ran, !dry);
  }
}

TEST(PassTest, VerifyNamesThePassThatBrokeTheGraph) {
  OptimizeOptions options;
  options.passes = {Placed(kAfter, "number", "make_cycle", [](Workspace& workspace) {
    const auto& nodes = workspace.model().graph().nodes();
    workspace.rewriter().SetInput(nodes.front(), 0, nodes.back()->output());
    return absl::OkStatus();
  })};
  const auto model = MustLoad(Encoded());
  const absl::Status status = Optimize(model.get(), options).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInternal);
  EXPECT_HAS(std::string(status.message()), "after the pass make_cycle: ");
  EXPECT_HAS(std::string(status.message()), "or in a cycle");
}

TEST(PassTest, ProgressIsToldOfEveryPass) {
  OptimizeOptions options;
  std::vector<std::string> told;
  options.progress = [&told](const Progress& at) {
    EXPECT_EQ(at.count, OptimizePasses().size());
    if (told.empty() || told.back() != at.pass) told.emplace_back(at.pass);
    EXPECT_EQ(at.number + 1, told.size());
    return true;
  };
  const auto model = MustLoad(Encoded());
  ASSERT_TRUE(Optimize(model.get(), options).ok());
  std::vector<std::string> names;
  for (const Pass& pass : OptimizePasses()) names.push_back(pass.name);
  EXPECT_EQ(told, names);
}

TEST(PassTest, ARunThatIsCancelledSaysWhereAndADryOneLeavesNothing) {
  OptimizeOptions options;
  options.progress = [](const Progress& at) { return at.pass != "lower"; };
  options.passes = {Placed(kAfter, "number", "rewrite", [](Workspace& workspace) { return Rewrite(workspace, "Abs"); })};
  const std::string bytes = MustSave(*MustLoad(Encoded()));
  const auto model = MustLoad(bytes);
  EXPECT_EQ(ListOpportunities(model.get(), options).status(), absl::CancelledError("cancelled in the pass lower"));
  EXPECT_TRUE(MustSave(*model) == bytes);
  EXPECT_EQ(Optimize(model.get(), options).status(), absl::CancelledError("cancelled in the pass lower"));
  EXPECT_EQ(ListOpportunities(MustLoad(bytes).get(), {}).status(), absl::OkStatus());
}

TEST(PassTest, ALongPassAsksWhetherItShallGoOn) {
  std::string nodes;
  for (int i = 0; i < 2000; ++i) nodes += fmt::format("v{} = Relu ({}) ", i + 1, i == 0 ? "x" : fmt::format("v{}", i));
  const auto model = MustLoad(*EncodeModelText(
      fmt::format("<ir_version: 8, opset_import: [\"\" : 17]> g (float[B, 8] x) => (float[B, 8] v2000) {{ {} }}", nodes)));
  OptimizeOptions options;
  int asked = 0;
  options.progress = [&asked](const Progress& at) { return at.pass != "recognise" || ++asked < 3; };
  EXPECT_EQ(Optimize(model.get(), options).status(), absl::CancelledError("cancelled in the pass recognise"));
  EXPECT_EQ(asked, 3);
}

TEST(PassTest, AnExpansionCanBeCancelled) {
  ExpandOptions options;
  options.progress = [](const Progress& at) { return at.pass != "sweep"; };
  EXPECT_EQ(Expand(MustLoad(Encoded()).get(), options), absl::CancelledError("cancelled in the pass sweep"));
}

// The names of its attributes are not those of the term, which may be gone when the plan is written.
TEST(NodeInserter, PlanOutlivesItsTerm) {
  const auto model = MustLoad(Encoded());
  OptimizeOptions options;
  options.passes = {Placed(kAfter, "infer", "plan", [](Workspace& workspace) -> absl::Status {
    const Value* x = workspace.model().graph().inputs()[0];
    NodeInserter inserter(workspace, x->graph, "planned");
    const NewNode plan = inserter.Plan(build::Transpose(Term::Of(x), {1, 0}));
    std::vector<Term> others;  // in the memory that the term had
    for (int i = 0; i < 100; ++i) others.push_back(Term::Node({"", "Other", {{"name", Term::Integer(i)}}, {Term::Of(x)}}));
    EXPECT_EQ(plan.attributes[0].name, "perm");
    return absl::OkStatus();
  })};
  EXPECT_TRUE(Optimize(model.get(), options).ok());
}

}  // namespace
}  // namespace ascend_fuse
