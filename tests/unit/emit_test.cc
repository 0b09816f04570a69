// Emission: what a rule's emit block becomes, in the form the model's opset has, and that it can be taken
// back to the byte.
#include "passes/core/emit.h"

#include <algorithm>
#include <string>
#include <vector>

#include "ir/onnx/save.h"
#include "ir/text/printer.h"
#include "ir/verify.h"
#include "tests/unit/rule_testing.h"

namespace ascend_fuse {
namespace {

using testing::FindRule;
using testing::Rules;
using testing::Subject;

struct Emitted {
  std::unique_ptr<Subject> subject;
  std::unique_ptr<RuleSet> rules;
  std::unique_ptr<Rewriter> rewriter;
  std::unique_ptr<Emitter> emitter;
  absl::Status status;
  Emission emission;

  // The live nodes in the order of computation, one a line.
  std::string Nodes() const {
    std::vector<const Node*> live;
    for (const Node* node : subject->model->graph().nodes()) {
      if (!node->dead) live.push_back(node);
    }
    std::stable_sort(live.begin(), live.end(), [](const Node* a, const Node* b) { return a->order < b->order; });
    std::string text;
    for (const Node* node : live) text += PrintNode(*node) + "\n";
    return text;
  }
};

// Rules for nodes that only these tests make: such a node must be matched by a rule too.
constexpr char kReferences[] =
    "rule three (x) => (y) match { y = npu.Three (x) } emit { y = Relu (x) }\n"
    "rule clipped (x) => (y) match { y = npu.Clipped (x) } emit { y = Relu (x) }\n"
    "rule gate (x) => (y) match { y = npu.Gate (x) } emit { y = Relu (x) }\n"
    "rule op (x) => (y) match { y = npu.Op (x) } emit { y = Relu (x) }\n"
    "rule made (x) => (y) match { y = Elu (x) } emit { y = Add (Add (npu.Three (x), npu.Clipped (x)), "
    "Add (npu.Gate (x), npu.Op (x))) }\n";

Emitted Emit(const std::string& model, const std::string& rule, int opset = 17, std::string_view root = "y") {
  Emitted emitted;
  emitted.subject = std::make_unique<Subject>(model, opset);
  emitted.rules =
      Rules(rule + "\n" + kReferences, rule.find("npu.") == std::string::npos ? RuleFolder::kLibrary : RuleFolder::kNpu);
  emitted.rewriter = std::make_unique<Rewriter>(emitted.subject->model.get());
  emitted.emitter = std::make_unique<Emitter>(emitted.rewriter.get(), &emitted.subject->facts, emitted.subject->numbering.get());
  const FunctionContext context = emitted.subject->Context();
  Matcher matcher(*emitted.rules, context);
  const std::optional<Match> match = matcher.Run(*FindRule(*emitted.rules, "r"), emitted.subject->Named(root));
  if (!match.has_value()) {
    ADD_FAILURE() << "the rule does not match";
    return emitted;
  }
  const absl::StatusOr<Emission> emission = emitted.emitter->Emit(*match, context);
  emitted.status = emission.status();
  if (emission.ok()) emitted.emission = *emission;
  const absl::Status valid = Verify(*emitted.subject->model);
  EXPECT_TRUE(valid.ok()) << valid.message();
  return emitted;
}

TEST(EmitTest, TheOutputKeepsItsNameAndUsers) {
  const Emitted emitted = Emit("(float[4] a) => (float[4] z) { s = Sigmoid (a)\n y = Mul (a, s)\n z = Neg (y) }",
                               "rule r (x) => (y) match { y = Mul (x, Sigmoid (x)) } emit { y = npu.NPUSwish (x) }");
  ASSERT_TRUE(emitted.status.ok()) << emitted.status.message();
  EXPECT_EQ(emitted.Nodes(), "y = npu.NPUSwish (a)\nz = Neg (y)\n");
}

TEST(EmitTest, NestedNodesNumbersAndTypes) {
  const Emitted emitted = Emit("(float16[4] a) => (float16[4] y) { y = Relu (a) }",
                               "rule r (x) => (y) match { y = Relu (x) } "
                               "emit { h = Cast <to = float> (x)\n y = Cast <to = dtype (x)> (Max (h, 0.0)) }");
  ASSERT_TRUE(emitted.status.ok()) << emitted.status.message();
  const std::string nodes = emitted.Nodes();
  EXPECT_NE(nodes.find("Cast <to = 1> (a)"), std::string::npos) << nodes;
  EXPECT_NE(nodes.find("y = Cast <to = 10> ("), std::string::npos) << nodes;
  // The number has the type of what stands beside it.
  for (const Value* value : emitted.subject->model->graph().initializers()) {
    EXPECT_EQ(value->initializer->type, DataType::kFloat);
  }
}

TEST(EmitTest, ParametersGoWhereTheOpsetKeepsThem) {
  const std::string rule = "rule r (x) => (y) match { y = Relu (x) } emit { y = ReduceMean <axes = [-1], keepdims = 1> (x) }";
  const std::string model = "(float[2, 1] a) => (float[2, 1] y) { y = Relu (a) }";
  const Emitted before = Emit(model, rule, 17);
  ASSERT_TRUE(before.status.ok());
  EXPECT_EQ(before.Nodes(), "y = ReduceMean <axes = [-1], keepdims = 1> (a)\n");
  const Emitted after = Emit(model, rule, 18);
  ASSERT_TRUE(after.status.ok());
  EXPECT_EQ(after.Nodes(), "y = ReduceMean <keepdims = 1> (a, y_constant)\n");
}

TEST(EmitTest, WhatGivesAnotherShapeIsNotTheSame) {
  const std::string rule = "rule r (x) => (y) match { y = Relu (x) } emit { y = ReduceMean <axes = [-1], keepdims = 1> (x) }";
  const Emitted emitted = Emit("(float[2, 4] a) => (float[2, 4] y) { y = Relu (a) }", rule);
  EXPECT_EQ(emitted.status.message(), "ReduceMean of these operands gives float[2, 1], and y is float[2, 4]");
  EXPECT_EQ(emitted.Nodes(), "y = Relu (a)\n");
}

TEST(EmitTest, AnAscendNodeHasTheTypeOfWhatItReplaces) {
  const std::string model = "(float16[4] a) => (float[4] y) { w = Cast <to = 1> (a)\n y = Relu (w) }";
  const std::string rule = "rule r (x) => (y) match { y = Relu (Cast <to = float> (x)) } emit { y = ";
  const Emitted other = Emit(model, rule + "npu.NPUSwish (x) }");
  EXPECT_EQ(other.status.message(), "NPUSwish of these operands gives float16[4], and y is float[4]");
  const Emitted same = Emit(model, rule + "Cast <to = float> (npu.NPUSwish (x)) }");
  EXPECT_TRUE(same.status.ok()) << same.status.message();
}

TEST(EmitTest, WhatOurNodesNeedIsNoEvidence) {
  // NPUAddRmsNorm wants operands of one shape; a sum of A and B elements only says that they broadcast.
  const std::string model = "(float[A] a, float[B] b, float[A] w) => (float[C] y) { y = Add (a, b) }";
  const Emitted ours = Emit(model,
                            "rule r (a, b) => (y) match { y = Add (a, b) } "
                            "emit { n, _, y = npu.NPUAddRmsNorm <epsilon = 0.000001> (a, b, a) }");
  ASSERT_TRUE(ours.status.ok()) << ours.status.message();
  const Subject& subject = *ours.subject;
  const auto dim = [&subject](const char* name) { return subject.facts.Of(subject.Named(name)).shape[0]; };
  EXPECT_FALSE(subject.facts.dims().Equal(dim("a"), dim("b")));
  EXPECT_TRUE(subject.facts.contradictions().empty());
}

TEST(EmitTest, AttributesHaveTheTypeOfTheSchema) {
  const Emitted emitted = Emit("(float[2, 4] a, float[4] g) => (float[2, 4] y) { y = Mul (a, g) }",
                               "rule r (x, g) => (y) match { y = Mul (x, g) } where { shape (x) = [..., D], "
                               "shape (g) = [D], rank (x) = 2 } "
                               "emit { y = LayerNormalization <axis = -1, epsilon = 1> (x, g) }");
  ASSERT_TRUE(emitted.status.ok()) << emitted.status.message();
  EXPECT_EQ(emitted.Nodes(), "y = LayerNormalization <axis = -1, epsilon = 1.0> (a, g)\n");
}

TEST(EmitTest, SeveralOutputsAndAnUnusedOne) {
  const Emitted emitted =
      Emit("(float[4] a, float[4] b) => (float[4] y, float[4] s) { s = Add (a, b)\n y = Relu (s) }",
           "rule r (a, b) => (y, s) match { y = Relu (s)\n s = Add (a, b) } emit { y, _, s = npu.Three (a, b) }");
  ASSERT_TRUE(emitted.status.ok()) << emitted.status.message();
  const std::string nodes = emitted.Nodes();
  EXPECT_EQ(nodes.substr(0, 3), "y, ");
  EXPECT_NE(nodes.find(", s = npu.Three (a, b)\n"), std::string::npos) << nodes;
  EXPECT_EQ(std::count(nodes.begin(), nodes.end(), '\n'), 1);
}

TEST(EmitTest, AbsentInputsStayAbsent) {
  const std::string rule = "rule r (x, l?, h) => (y) match { y = Clip (x, l, h) } emit { y = npu.Clipped <a = 1> (x, l, h) }";
  const Emitted without = Emit("(float[4] a, float h) => (float[4] y) { y = Clip (a, , h) }", rule);
  ASSERT_TRUE(without.status.ok()) << without.status.message();
  EXPECT_EQ(without.Nodes(), "y = npu.Clipped <a = 1> (a, \"\", h)\n");
  const Emitted with = Emit("(float[4] a, float l, float h) => (float[4] y) { y = Clip (a, l, h) }", rule);
  ASSERT_TRUE(with.status.ok());
  EXPECT_EQ(with.Nodes(), "y = npu.Clipped <a = 1> (a, l, h)\n");
}

TEST(EmitTest, AnOutputThatIsThereAlreadyIsAnIdentity) {
  const Emitted emitted = Emit("(float[4] a) => (float[4] y) { n = Neg (a)\n y = Neg (n) }",
                               "rule r (x) => (y) match { y = Neg (Neg (x)) } emit { y = x }");
  ASSERT_TRUE(emitted.status.ok()) << emitted.status.message();
  EXPECT_EQ(emitted.Nodes(), "y = Identity (a)\n");
}

TEST(EmitTest, HelpersAreMadeOnce) {
  const Emitted emitted = Emit("(float[4] a) => (float[4] y) { y = Relu (a) }",
                               "rule r (x) => (y) match { y = Relu (x) } emit { y = Mul (Neg (x), Neg (x)) }");
  ASSERT_TRUE(emitted.status.ok()) << emitted.status.message();
  const std::string nodes = emitted.Nodes();
  EXPECT_EQ(std::count(nodes.begin(), nodes.end(), '\n'), 2) << nodes;
}

TEST(EmitTest, WhatIsTakenBackLeavesTheBytes) {
  const std::string model = "(float[4] a) => (float[4] z) { s = Sigmoid (a)\n y = Mul (a, s)\n z = Neg (y) }";
  Emitted emitted = Emit(model,
                         "rule r (x) => (y) match { y = Mul (x, Sigmoid (x)) } "
                         "emit { y = Mul (Neg (Neg (x)), npu.Gate <a = 1> (x, 3.0)) }");
  ASSERT_TRUE(emitted.status.ok()) << emitted.status.message();
  emitted.emitter->TakeBack(emitted.emission);
  emitted.rewriter->Sweep();
  const absl::StatusOr<std::string> undone = SaveModelToBytes(*emitted.subject->model);
  const absl::StatusOr<std::string> fresh = SaveModelToBytes(*Subject(model).model);
  ASSERT_TRUE(undone.ok() && fresh.ok());
  EXPECT_EQ(*undone, *fresh);
}

TEST(EmitTest, AHelperThatWasUndoneCanBeMadeAgain) {
  const std::string rule = "rule r (x) => (y) match { y = Relu (x) } emit { y = Mul (Neg (x), x) }";
  Emitted emitted = Emit("(float[4] a) => (float[4] y) { y = Relu (a) }", rule);
  ASSERT_TRUE(emitted.status.ok());
  emitted.emitter->TakeBack(emitted.emission);
  const FunctionContext context = emitted.subject->Context();
  Matcher matcher(*emitted.rules, context);
  const std::optional<Match> match = matcher.Run(*FindRule(*emitted.rules, "r"), emitted.subject->Named("y"));
  ASSERT_TRUE(match.has_value());
  const absl::StatusOr<Emission> again = emitted.emitter->Emit(*match, context);
  ASSERT_TRUE(again.ok()) << again.status().message();
  const absl::Status valid = Verify(*emitted.subject->model);
  EXPECT_TRUE(valid.ok()) << valid.message();
  EXPECT_NE(emitted.Nodes().find("Neg (a)"), std::string::npos) << emitted.Nodes();
}

TEST(EmitTest, AnExpressionWithoutAValueChangesNothing) {
  const std::string model = "(float[N] a) => (float[N] y) { y = Relu (a) }";
  const Emitted emitted = Emit(model,
                               "rule r (x) => (y) match { y = Relu (x) } where { shape (x) = [D] } "
                               "emit { h = Neg (x)\n y = npu.Op <heads = number (D)> (h) }");
  ASSERT_FALSE(emitted.status.ok());
  EXPECT_EQ(std::string(emitted.status.message()), "N must be a number in the graph; bind it with --dim N=N");
  EXPECT_EQ(emitted.Nodes(), "y = Relu (a)\n");
}

// Tries the rule "r" at `root` of a subject, with what earlier tries left behind.
absl::StatusOr<Emission> EmitAt(Emitted* emitted, const RuleSet& rules, std::string_view root) {
  const FunctionContext context = emitted->subject->Context();
  Matcher matcher(rules, context);
  const std::optional<Match> match = matcher.Run(*FindRule(rules, "r"), emitted->subject->Named(root));
  if (!match.has_value()) return absl::NotFoundError("the rule does not match");
  return emitted->emitter->Emit(*match, context);
}

TEST(EmitTest, WhatIsRefusedHalfWayLeavesNothing) {
  // The first statement makes a constant, a helper and a node in place of s; the second gives another shape.
  const std::string model = "(float[2, N] a, float[M, N] b) => (float[K, N] y, float[K, N] s) { s = Add (a, b)\n y = Relu (s) }";
  const std::string refused =
      "rule r (a, b) => (y, s) match { y = Relu (s)\n s = Add (a, b) } "
      "emit { s = Add (Mul (a, 3.0), Neg (b))\n y = ReduceMean <axes = [-1], keepdims = 0> (s) }";
  const std::string taken = "rule r (x) => (y) match { y = Relu (x) } emit { y = Mul (Neg (x), 3.0) }";
  Emitted emitted = Emit(model, refused);
  Subject& subject = *emitted.subject;
  ASSERT_FALSE(emitted.status.ok());
  const Subject fresh(model);
  EXPECT_EQ(*SaveModelToBytes(*subject.model), *SaveModelToBytes(*fresh.model));
  EXPECT_EQ(subject.facts.contradictions().size(), fresh.facts.contradictions().size());
  for (const char* name : {"a", "b", "s", "y"}) {
    EXPECT_EQ(subject.facts.Describe(subject.Named(name)), fresh.facts.Describe(fresh.Named(name))) << name;
  }
  const auto rows = [](const Subject& of, const char* name) { return of.facts.Of(of.Named(name)).shape[0]; };
  EXPECT_EQ(subject.facts.dims().Equal(rows(subject, "a"), rows(subject, "b")),
            fresh.facts.dims().Equal(rows(fresh, "a"), rows(fresh, "b")));
  // The next emission makes what it makes of a model on which nothing was tried.
  const auto rules = Rules(taken);
  ASSERT_TRUE(EmitAt(&emitted, *rules, "y").ok());
  const Emitted first = Emit(model, taken);
  EXPECT_EQ(emitted.Nodes(), first.Nodes());
  EXPECT_EQ(*SaveModelToBytes(*subject.model), *SaveModelToBytes(*first.subject->model));
}

TEST(EmitTest, EqualInputsInBranchesAreNotSharedAcrossThem) {
  const std::string rule = "rule r (x) => (y) match { y = Relu (x) } emit { y = Mul (Neg (x), x) }";
  Emitted emitted = Emit(R"((bool c, float[4] a) => (float[4] z) {
    z = If (c) < then_branch = g1 () => (y) { p = Abs (a)
                                              y = Relu (p) },
                 else_branch = g2 () => (v) { q = Abs (a)
                                              v = Relu (q) } > })",
                         rule);
  ASSERT_TRUE(emitted.status.ok()) << emitted.status.message();
  EXPECT_TRUE(emitted.subject->Same("p", "q"));
  ASSERT_TRUE(EmitAt(&emitted, *emitted.rules, "v").ok());
  const absl::Status valid = Verify(*emitted.subject->model);
  EXPECT_TRUE(valid.ok()) << valid.message();
  EXPECT_EQ(emitted.subject->Named("v")->producer->input(0)->graph, emitted.subject->Named("v")->graph);
}

TEST(EmitTest, ABodyOfALoopMakesItsOwnHelpers) {
  const std::string rule = "rule r (x) => (y) match { y = Relu (x) } emit { y = Mul (Neg (x), x) }";
  Emitted emitted = Emit(R"((bool c, float[4] a) => (float[4] l, float[4] y)
  <int64 trips = {3}> {
    l = Loop (trips, c, a) < body = g1 (int64 j, bool go, float[4] k) => (bool on, float[4] m) {
                               on = Identity (go)
                               p = Abs (a)
                               v = Relu (p)
                               m = Add (k, v) } >
    q = Abs (a)
    y = Relu (q) })",
                         rule);
  ASSERT_TRUE(emitted.status.ok()) << emitted.status.message();
  ASSERT_TRUE(EmitAt(&emitted, *emitted.rules, "v").ok());
  const absl::Status valid = Verify(*emitted.subject->model);
  EXPECT_TRUE(valid.ok()) << valid.message();
}

TEST(EmitTest, AHelperIsNotBuiltOnADeadOrLaterValue) {
  // p and q are equal: what is made of q first is made of p, which stands before y2 too.
  const std::string rule = "rule r (x) => (y) match { y = Relu (x) } emit { y = Mul (Neg (x), x) }";
  Emitted emitted = Emit(
      "(float[4] a) => (float[4] y, float[4] y2) { p = Abs (a)\n y2 = Relu (p)\n d = Add (y2, a)\n q = Abs (a)\n "
      "y = Relu (q)\n }",
      rule);
  ASSERT_TRUE(emitted.status.ok()) << emitted.status.message();
  EXPECT_EQ(emitted.subject->Named("y")->producer->input(0)->producer->input(0), emitted.subject->Named("p"));
  ASSERT_TRUE(EmitAt(&emitted, *emitted.rules, "y2").ok());
  EXPECT_EQ(emitted.subject->Named("y2")->producer->input(0), emitted.subject->Named("y")->producer->input(0));
  const absl::Status valid = Verify(*emitted.subject->model);
  EXPECT_TRUE(valid.ok()) << valid.message();
}

TEST(EmitTest, AHelperThatAnotherHasTakenTheKeyOfComesBack) {
  // The emission at y makes a helper of its own, as the one of z stands later; taken back, that of z is known again.
  const std::string rule = "rule r (x) => (y) match { y = Relu (x) } emit { y = Mul (Neg (x), x) }";
  const std::string model =
      "(float[4] a) => (float[4] y, float[4] z, float[4] w) { p = Abs (a)\n y = Relu (p)\n d = Neg (y)\n q = Abs (a)\n "
      "z = Relu (q)\n w = Relu (q) }";
  Emitted emitted = Emit(model, rule, 17, "z");
  ASSERT_TRUE(emitted.status.ok());
  const absl::StatusOr<Emission> early = EmitAt(&emitted, *emitted.rules, "y");
  ASSERT_TRUE(early.ok());
  emitted.emitter->TakeBack(*early);
  ASSERT_TRUE(EmitAt(&emitted, *emitted.rules, "w").ok());
  Emitted straight = Emit(model, rule, 17, "z");
  ASSERT_TRUE(EmitAt(&straight, *straight.rules, "w").ok());
  EXPECT_EQ(emitted.Nodes(), straight.Nodes());
}

}  // namespace
}  // namespace ascend_fuse
