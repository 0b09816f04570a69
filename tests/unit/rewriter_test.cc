// The Rewriter: value names survive, a replacement can be taken back, sweeping removes what only dead nodes
// used.
#include "ir/rewriter.h"

#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "ir/text/parser.h"
#include "tests/unit/models.h"
#include "tests/unit/named_value.h"
#include "tests/unit/random_rewrites.h"

namespace ascend_fuse {
namespace {

using namespace ascend_fuse::testing;  // NOLINT

size_t Count(const Graph& graph, const std::string& name) {
  size_t count = 0;
  for (const Value* value : graph.initializers()) count += ValueName(*value) == name ? 1 : 0;
  return count;
}

// The MatMul and the Add of RichModel, for which `fused` stands.
struct FusedLinear {
  std::unique_ptr<Model> model = MustLoad(RichModel().SerializeAsString());
  std::string before = MustSave(*model);
  Rewriter rewriter{model.get()};
  Rewriter::Mark mark = rewriter.Now();
  const Node* matmul = FindNode(model->graph(), "layer/matmul");
  const Node* add = FindNode(model->graph(), "layer/add");
  const Value* sum = add->output();
  const Node* fused = rewriter.ReplaceValue(sum, Spec("Linear", {matmul->input(0), matmul->input(1), add->input(1)}));
};

TEST(Rewriter, ReplaceKeepsNamesAndUsers) {
  FusedLinear linear;
  auto& [model, before, rewriter, mark, matmul, add, sum, fused] = linear;
  const Node* relu = FindNode(model->graph(), "layer/relu");
  EXPECT_EQ(sum->producer, fused);
  EXPECT_EQ(ValueName(*sum), "sum");
  EXPECT_EQ(relu->input(0), sum);
  EXPECT_TRUE(add->dead && matmul->dead);
  EXPECT_FALSE(relu->rewired);
  EXPECT_GT(fused->order, matmul->order);
  EXPECT_LT(fused->order, relu->order);
  rewriter.Restore(fused);
  EXPECT_TRUE(fused->dead);
  EXPECT_FALSE(add->dead || matmul->dead);
  EXPECT_EQ(sum->producer, add);
  fused = rewriter.ReplaceValue(sum, Spec("Other", {matmul->input(0)}));
  rewriter.Sweep();
  EXPECT_EQ(Count(model->graph(), "w"), 0u);
  EXPECT_EQ(Count(model->graph(), "b"), 0u);
  EXPECT_EQ(Count(model->graph(), "scale"), 1u);
  MustLoad(MustSave(*model));
}

// A Split of which nobody asks for a part. Found by optimize_fuzz.
TEST(Rewriter, ANodeThatComputesNothingIsReplaced) {
  const auto bytes = EncodeModelText(
      "<ir_version: 8, opset_import: [\"\" : 17]>\ng (float[4] x) => (float[4] y) {\n \"\" = Split (x)\n y = Neg (x)\n}\n");
  ASSERT_TRUE(bytes.ok()) << bytes.status();
  const auto model = MustLoad(*bytes);
  const std::string before = MustSave(*model);
  Rewriter rewriter(model.get());
  const Rewriter::Mark mark = rewriter.Now();
  const Node* const split = model->graph().nodes().front();
  const Node* const written = rewriter.ReplaceNode(*split, Spec("Split", {split->input(0)}));
  EXPECT_TRUE(split->dead && !written->dead);
  EXPECT_EQ(written->output_count, 1u);
  rewriter.RollBack(mark);
  EXPECT_TRUE(!split->dead && written->dead);
  EXPECT_EQ(MustSave(*model), before);
  rewriter.ReplaceNode(*split, Spec("Split", {split->input(0)}));
  rewriter.Sweep(0);
  EXPECT_EQ(model->graph().nodes().size(), 1u) << "nobody reads it";
}

TEST(Rewriter, WhatWaitsComesBackAsItWasWrittenAnew) {
  FusedLinear linear;
  auto& [model, before, rewriter, mark, matmul, add, sum, fused] = linear;
  const Value* product = matmul->output();
  const Node* again = rewriter.ReplaceValue(sum, Spec("Other", {matmul->input(0)}));
  // One inside, and the one that computed the value that was taken, twice replaced by now.
  const Node* other_product = rewriter.ReplaceWaiting(*matmul, Spec("Gemm", {matmul->input(0), matmul->input(1)}));
  const Node* other_add = rewriter.ReplaceWaiting(*add, Spec("Sum", {product, add->input(1)}));
  EXPECT_TRUE(other_product->dead && other_add->dead && matmul->dead && add->dead && fused->dead);
  EXPECT_FALSE(again->dead);
  EXPECT_EQ(sum->producer, again);
  rewriter.Restore(again);
  EXPECT_EQ(sum->producer, fused);
  EXPECT_TRUE(other_add->dead);
  rewriter.Restore(fused);
  EXPECT_EQ(sum->producer, other_add);
  EXPECT_EQ(product->producer, other_product);
  EXPECT_FALSE(other_add->dead || other_product->dead);
  EXPECT_TRUE(add->dead && matmul->dead);
  MustLoad(MustSave(*model));
  rewriter.RollBack(mark);
  EXPECT_EQ(sum->producer, add);
  EXPECT_EQ(product->producer, matmul);
  EXPECT_FALSE(add->dead || matmul->dead);
  EXPECT_EQ(MustSave(*model), before);
}

TEST(Rewriter, WhatWasWrittenAnewIsTakenBackAsOne) {
  FusedLinear linear;
  auto& [model, before, rewriter, mark, matmul, add, sum, fused] = linear;
  const Rewriter::Mark later = rewriter.Now();
  const Node* anew = rewriter.ReplaceMade(*fused, Spec("Gemm", {matmul->input(0), matmul->input(1), add->input(1)}));
  EXPECT_TRUE(fused->dead && add->dead);
  EXPECT_EQ(sum->producer, anew);
  rewriter.Restore(anew);
  EXPECT_EQ(sum->producer, add);
  EXPECT_TRUE(anew->dead && fused->dead);
  EXPECT_FALSE(add->dead || matmul->dead);
  rewriter.RollBack(later);
  EXPECT_EQ(sum->producer, fused);
  rewriter.Restore(fused);
  EXPECT_EQ(sum->producer, add);
  rewriter.RollBack(mark);
  EXPECT_EQ(MustSave(*model), before);
}

TEST(Rewriter, ConstantsAreSharedAndComeBackAfterSweep) {
  auto model = MustLoad(RichModel().SerializeAsString());
  Rewriter rewriter(model.get());
  const Value* one = rewriter.NumberConstant(&model->graph(), DataType::kFloat16, 1, "one");
  EXPECT_EQ(one, rewriter.NumberConstant(&model->graph(), DataType::kFloat16, 1, "uno"));
  const Node* relu = FindNode(model->graph(), "layer/relu");
  const Node* made = rewriter.ReplaceValue(relu->output(), Spec("Mul", {relu->input(0), one}));
  rewriter.Restore(made);
  rewriter.Sweep();
  EXPECT_EQ(Count(model->graph(), "one"), 0u);
  const Value* again = rewriter.NumberConstant(&model->graph(), DataType::kFloat16, 1, "one");
  EXPECT_NE(again, one);
  EXPECT_EQ(Count(model->graph(), std::string(ValueName(*again))), 1u);
}

TEST(Rewriter, ReplacedIfTakesItsBodiesAlong) {
  auto model = MustLoad(RichModel().SerializeAsString());
  const std::string bytes = MustSave(*model);
  Rewriter rewriter(model.get());
  const Node* choice = FindNode(model->graph(), "choice");
  const Node* relu = FindNode(model->graph(), "layer/relu");
  const Node* made = rewriter.ReplaceValue(choice->output(), Spec("Const", {model->graph().inputs()[0]}));
  EXPECT_TRUE(relu->dead);  // only the bodies read it
  rewriter.Restore(made);
  EXPECT_FALSE(relu->dead);
  EXPECT_FALSE(choice->subgraphs()[0]->nodes()[0]->dead);
  EXPECT_EQ(MustSave(*model), bytes);
  rewriter.ReplaceValue(choice->output(), Spec("Const", {model->graph().inputs()[0]}));
  rewriter.Sweep();
  EXPECT_EQ(Count(model->graph(), "scale"), 0u);
  const onnx::ModelProto saved = Parse(MustSave(*model));
  EXPECT_EQ(saved.graph().initializer_size(), 0);
  EXPECT_EQ(saved.graph().value_info_size(), 0);
  EXPECT_EQ(saved.graph().output(0).name(), "y");
}

TEST(Rewriter, SetInputRewritesOnlyInputs) {
  onnx::ModelProto proto = RichModel();
  auto model = MustLoad(proto.SerializeAsString());
  Rewriter rewriter(model.get());
  const Node* relu = FindNode(model->graph(), "layer/relu");
  const Value* sum = relu->input(0);
  const Node* cast = rewriter.Insert(Spec("Cast", {sum}), 1, relu->graph, "sum_half");
  rewriter.SetInput(relu, 0, cast->output());
  rewriter.Sweep();
  onnx::ModelProto saved = Parse(MustSave(*model));
  ASSERT_EQ(saved.graph().node_size(), 7);
  EXPECT_EQ(saved.graph().node(2).op_type(), "Cast");
  EXPECT_EQ(saved.graph().node(2).output(0), "sum_half");
  proto.mutable_graph()->mutable_node(2)->set_input(0, "sum_half");
  EXPECT_EQ(saved.graph().node(3).SerializeAsString(), proto.graph().node(2).SerializeAsString());
  // Set back: the node is the file's bytes again.
  rewriter.SetInput(relu, 0, sum);
  rewriter.Sweep();
  EXPECT_EQ(MustSave(*model), RichModel().SerializeAsString());
}

TEST(Rewriter, NamesAreUnique) {
  auto model = MustLoad(RichModel().SerializeAsString());
  Rewriter rewriter(model.get());
  EXPECT_EQ(model->Text(rewriter.UniqueName("fresh")), "fresh");
  EXPECT_EQ(model->Text(rewriter.UniqueName("fresh")), "fresh_1");
  EXPECT_EQ(model->Text(rewriter.UniqueName("scaled")), "scaled_1");  // a value of a body
  EXPECT_EQ(model->Text(rewriter.UniqueName("layer/add")), "layer/add_1");
}

// Two initializers, [2, 3] and [2, 1] of int32, that one node reads.
onnx::ModelProto TwoConstants() {
  onnx::ModelProto model;
  model.set_ir_version(8);
  model.add_opset_import()->set_version(17);
  onnx::GraphProto* graph = model.mutable_graph();
  graph->set_name("g");
  auto add = [&](const char* name, int64_t columns, std::vector<int32_t> elements) {
    onnx::TensorProto* tensor = graph->add_initializer();
    tensor->set_name(name);
    tensor->set_data_type(onnx::TensorProto::INT32);
    tensor->add_dims(2);
    tensor->add_dims(columns);
    tensor->set_raw_data(elements.data(), elements.size() * sizeof(int32_t));
  };
  add("a", 3, {1, 2, 3, 4, 5, 6});
  add("b", 1, {7, 8});
  onnx::NodeProto* node = graph->add_node();
  node->set_op_type("Concat");
  for (const char* name : {"a", "b"}) node->add_input(name);
  node->add_output("y");
  onnx::AttributeProto* axis = node->add_attribute();
  axis->set_name("axis");
  axis->set_type(onnx::AttributeProto::INT);
  axis->set_i(1);
  graph->add_output()->set_name("y");
  return model;
}

TEST(Rewriter, JoinTakesRowsInTurn) {
  auto model = MustLoad(TwoConstants().SerializeAsString());
  Rewriter rewriter(model.get());
  const Node* concat = model->graph().nodes()[0];
  const Value* parts[] = {concat->input(0), concat->input(1)};
  absl::StatusOr<const Value*> joined = rewriter.Join(parts, 1, "ab");
  ASSERT_TRUE(joined.ok()) << joined.status();
  EXPECT_EQ((*joined)->initializer->storage, Storage::kJoined);
  const std::vector<int64_t> elements = {1, 2, 3, 7, 4, 5, 6, 8};
  EXPECT_EQ(*ReadIntegers(*model, *(*joined)->initializer, 8), elements);
  rewriter.ReplaceValue(concat->output(), Spec("Identity", {*joined}));
  rewriter.Sweep();
  const auto again = MustLoad(MustSave(*model));
  ASSERT_EQ(again->graph().initializers().size(), 1u);
  EXPECT_EQ(*ReadIntegers(*again, *again->graph().initializers()[0]->initializer, 8), elements);
}

TEST(Rewriter, JoinSaysWhatDoesNotFit) {
  auto model = MustLoad(TwoConstants().SerializeAsString());
  Rewriter rewriter(model.get());
  const Node* concat = model->graph().nodes()[0];
  const Value* parts[] = {concat->input(0), concat->input(1)};
  EXPECT_TRUE(absl::StrContains(rewriter.Join(parts, 0, "ab").status().message(), "type or dims differ"));
  EXPECT_TRUE(absl::StrContains(rewriter.Join(parts, 2, "ab").status().message(), "too few dims"));
  const Value* computed[] = {concat->output(), concat->input(1)};
  EXPECT_TRUE(absl::StrContains(rewriter.Join(computed, 1, "ab").status().message(), "not an initializer"));
}

TEST(Rewriter, ReorderTakesColumnsAndRowsInAnotherOrder) {
  auto model = MustLoad(TwoConstants().SerializeAsString());
  Rewriter rewriter(model.get());
  const Node* concat = model->graph().nodes()[0];
  const Value* a = concat->input(0);  // 1 2 3, 4 5 6
  absl::StatusOr<const Value*> columns = rewriter.Reorder(a, 1, {2, 0, 1}, "columns");
  absl::StatusOr<const Value*> rows = rewriter.Reorder(a, 0, {1, 0}, "rows");
  ASSERT_TRUE(columns.ok() && rows.ok()) << columns.status() << rows.status();
  EXPECT_EQ(*ReadIntegers(*model, *(*columns)->initializer, 6), (std::vector<int64_t>{3, 1, 2, 6, 4, 5}));
  EXPECT_EQ(*ReadIntegers(*model, *(*rows)->initializer, 6), (std::vector<int64_t>{4, 5, 6, 1, 2, 3}));
  EXPECT_TRUE(absl::StrContains(rewriter.Reorder(a, 2, {1, 0}, "x").status().message(), "it has no such axis"));
  EXPECT_TRUE(absl::StrContains(rewriter.Reorder(a, 1, {3, 0}, "x").status().message(), "places that it has not"));
  EXPECT_TRUE(absl::StrContains(rewriter.Reorder(concat->output(), 1, {1, 0}, "x").status().message(), "not an initializer"));
}

TEST(Rewriter, ReorderPutsZerosInPlaces) {
  auto model = MustLoad(TwoConstants().SerializeAsString());
  Rewriter rewriter(model.get());
  const Value* a = model->graph().nodes()[0]->input(0);  // 1 2 3, 4 5 6
  absl::StatusOr<const Value*> columns = rewriter.Reorder(a, 1, {0, -1, 1, 2, -1, -1}, "columns");
  absl::StatusOr<const Value*> rows = rewriter.Reorder(a, 0, {-1, 0, 1, -1, -1}, "rows");
  ASSERT_TRUE(columns.ok() && rows.ok()) << columns.status() << rows.status();
  EXPECT_EQ(*ReadIntegers(*model, *(*columns)->initializer, 12), (std::vector<int64_t>{1, 0, 2, 3, 0, 0, 4, 0, 5, 6, 0, 0}));
  EXPECT_EQ(*ReadIntegers(*model, *(*rows)->initializer, 15),
            (std::vector<int64_t>{0, 0, 0, 1, 2, 3, 4, 5, 6, 0, 0, 0, 0, 0, 0}));
  EXPECT_EQ((*columns)->initializer->ElementCount(), 12);
}

// What was joined or is computed is read once, from its first element to its last, in whatever order its places come out.
TEST(Rewriter, ReorderTakesPlacesOfWhatIsStreamed) {
  auto model = MustLoad(TwoConstants().SerializeAsString());
  Rewriter rewriter(model.get());
  const Node* concat = model->graph().nodes()[0];
  const Value* parts[] = {concat->input(0), concat->input(1)};
  const absl::StatusOr<const Value*> joined = rewriter.Join(parts, 1, "ab");  // 1 2 3 7, 4 5 6 8
  ASSERT_TRUE(joined.ok()) << joined.status();
  const absl::StatusOr<const Value*> columns = rewriter.Reorder(*joined, 1, {3, -1, 0, 1}, "columns");
  const absl::StatusOr<const Value*> rows = rewriter.Reorder(*joined, 0, {1, -1, 0, 1}, "rows");
  ASSERT_TRUE(columns.ok() && rows.ok()) << columns.status() << rows.status();
  EXPECT_EQ(*ReadIntegers(*model, *(*columns)->initializer, 8), (std::vector<int64_t>{7, 0, 1, 2, 8, 0, 4, 5}));
  EXPECT_EQ(*ReadIntegers(*model, *(*rows)->initializer, 16),
            (std::vector<int64_t>{4, 5, 6, 8, 0, 0, 0, 0, 1, 2, 3, 7, 4, 5, 6, 8}));
  const absl::StatusOr<const Value*> both = rewriter.Reorder(*rows, 1, {0, 3}, "both");
  ASSERT_TRUE(both.ok()) << both.status();
  EXPECT_EQ(*ReadIntegers(*model, *(*both)->initializer, 8), (std::vector<int64_t>{4, 8, 0, 0, 1, 7, 4, 8}));
}

// A weight of 384 x 256 that is computed from its codes, more than is read at once.
TEST(Rewriter, ReorderTakesPlacesOfWhatIsComputed) {
  auto model = MustLoad(TwoConstants().SerializeAsString());
  Rewriter rewriter(model.get());
  constexpr int64_t kRows = 384;
  constexpr int64_t kColumns = 256;
  std::string codes;
  for (int64_t i = 0; i < kRows * kColumns; ++i) codes.push_back(static_cast<char>((i * 7 + i / kColumns) % 101));
  const Value* integers = rewriter.Constant(&model->graph(), DataType::kInt8, {kRows, kColumns}, codes, "codes");
  Dequantization how;
  how.codes = integers->initializer;
  how.is_signed = true;
  how.length = how.stride = kRows * kColumns;
  how.block = how.length;
  how.factor = 0.5;
  const auto weight = rewriter.Dequantized(&model->graph(), DataType::kFloat, {kRows, kColumns}, how, "weight");
  ASSERT_TRUE(weight.ok()) << weight.status();
  ASSERT_EQ((*weight)->initializer->storage, Storage::kDequantized);
  const std::vector<double> whole = *ReadFloats(*model, *(*weight)->initializer, kRows * kColumns);
  std::vector<int64_t> backwards, apart;  // all of it is wanted to the end; a little of it is wanted at a time
  for (int64_t i = 0; i < kRows; ++i) backwards.push_back(kRows - 1 - i);
  for (int64_t i = 0; i < kColumns; ++i) {
    apart.push_back(i / 2 * 2 + (i % 2 == 0 ? 1 : 0));
    if (i % 32 == 31) apart.insert(apart.end(), {-1, -1});
  }
  for (const bool rows : {true, false}) {
    for (const std::vector<int64_t>& order : {backwards, apart, std::vector<int64_t>{5}}) {
      if (!rows && order == backwards) continue;  // there are fewer columns
      const absl::StatusOr<const Value*> made = rewriter.Reorder(*weight, rows ? 0 : 1, order, "made");
      ASSERT_TRUE(made.ok()) << made.status();
      const std::vector<double> found = *ReadFloats(*model, *(*made)->initializer, kRows * kColumns * 2);
      const auto width = static_cast<int64_t>(order.size());
      ASSERT_EQ(static_cast<int64_t>(found.size()), width * (rows ? kColumns : kRows));
      for (size_t i = 0; i < found.size(); ++i) {
        const auto at = static_cast<int64_t>(i);
        const int64_t row = rows ? order[static_cast<size_t>(at / kColumns)] : at / width;
        const int64_t column = rows ? at % kColumns : order[static_cast<size_t>(at % width)];
        const double expected = row < 0 || column < 0 ? 0 : whole[static_cast<size_t>(row * kColumns + column)];
        ASSERT_EQ(found[i], expected) << i;
      }
    }
  }
}

// That every node of a saved graph reads what stands before it, whatever stands around the graph.
void ExpectSorted(const onnx::GraphProto& graph, std::set<std::string> defined, const std::string& steps) {
  for (const auto& value : graph.input()) defined.insert(value.name());
  for (const auto& tensor : graph.initializer()) defined.insert(tensor.name());
  for (const onnx::NodeProto& node : graph.node()) {
    for (const std::string& input : node.input()) {
      EXPECT_TRUE(input.empty() || defined.contains(input)) << node.DebugString() << steps;
    }
    for (const onnx::AttributeProto& attribute : node.attribute()) {
      if (attribute.has_g()) ExpectSorted(attribute.g(), defined, steps);
    }
    defined.insert(node.output().begin(), node.output().end());
  }
  for (const auto& value : graph.output()) EXPECT_TRUE(defined.contains(value.name())) << value.name() << steps;
}

TEST(RewriterRollBack, BringsEverythingBackAfterAnySteps) {
  for (uint32_t seed = 0; seed < 60; ++seed) {
    for (const std::unique_ptr<Model>& model : ModelsToRewrite()) {
      const std::string bytes = MustSave(*model);
      RandomRewrites random(model.get(), seed);
      Rewriter& rewriter = random.rewriter();
      std::vector<std::pair<Rewriter::Mark, std::string>> marks = {{rewriter.Now(), Picture(*model)}};
      std::string steps = fmt::format("\nseed {} of {}", seed, model->Text(model->graph().name()));
      for (int i = 0; i < 30; ++i) {
        if (random.Below(8) == 0) marks.emplace_back(rewriter.Now(), Picture(*model));
        if (random.Below(10) == 0) {  // back to some mark
          const size_t to = random.Below(marks.size());
          rewriter.RollBack(marks[to].first);
          ASSERT_EQ(Picture(*model), marks[to].second) << steps;
          marks.resize(to + 1);
          steps += fmt::format("\nback to {}", to);
        }
        steps += "\n" + random.Step();
        const absl::Status valid = Verify(*model);
        ASSERT_TRUE(valid.ok()) << valid << steps;
      }
      ExpectSorted(Parse(MustSave(*model)).graph(), {}, steps);
      ASSERT_EQ(Reads(*MustLoad(MustSave(*model))), Reads(*model)) << steps;
      rewriter.RollBack(marks[0].first);
      ASSERT_EQ(Picture(*model), marks[0].second) << steps;
      ASSERT_EQ(MustSave(*model), bytes) << steps;
      Rewriter fresh(model.get());
      for (const char* name : {"made", "constant", "joined", "made_made"}) {
        EXPECT_EQ(rewriter.UniqueName(name), fresh.UniqueName(name)) << name << steps;
      }
    }
  }
}

TEST(RewriterRollBack, SweptModelsAreValidAndSorted) {
  for (uint32_t seed = 0; seed < 40; ++seed) {
    for (const std::unique_ptr<Model>& model : ModelsToRewrite()) {
      RandomRewrites random(model.get(), seed);
      std::string steps = fmt::format("\nseed {}", seed);
      for (int round = 0; round < 2; ++round) {
        for (int i = 0; i < 15; ++i) steps += "\n" + random.Step();
        random.rewriter().Sweep();
        const absl::Status valid = Verify(*model);
        ASSERT_TRUE(valid.ok()) << valid << steps;
        const std::string bytes = MustSave(*model);
        ExpectSorted(Parse(bytes).graph(), {}, steps);
        const Rewriter::Mark mark = random.rewriter().Now();
        for (int i = 0; i < 10; ++i) random.Step();
        random.rewriter().RollBack(mark);
        ASSERT_EQ(MustSave(*model), bytes) << steps;
      }
    }
  }
}

// s0 .. s3, a = s0 * w, ra = Relu (a), na = Neg (ra), d = s1 * w, rd = Relu (d) ...
class RewriterOrder : public ::testing::Test {
 protected:
  RewriterOrder() : model_(Loaded(kOutputs)), bytes_(MustSave(*model_)), rewriter_(model_.get()) {}

  const Value* Named(std::string_view name) const { return NamedValue(*model_, name); }
  // The outputs of the nodes that are alive, in their order.
  std::string Order() const {
    EXPECT_TRUE(Verify(*model_).ok()) << Verify(*model_);
    const onnx::ModelProto saved = Parse(MustSave(*model_));
    std::string text;
    for (const onnx::NodeProto& node : saved.graph().node()) text += node.output(0) + " ";
    return text;
  }

  std::unique_ptr<Model> model_;
  std::string bytes_;
  Rewriter rewriter_;
};

TEST_F(RewriterOrder, ReadersOfTheFirstOutputMoveAfterTheLastProducer) {
  const Rewriter::Mark mark = rewriter_.Now();
  const Node* both = rewriter_.Replace({{0, Named("a")}, {1, Named("d")}}, 2, Spec("Both", {Named("s0"), Named("s1")}));
  EXPECT_EQ(Order(), "s0 a ra na rd e re f g y z ");
  rewriter_.Restore(both);
  EXPECT_TRUE(Verify(*model_).ok()) << Verify(*model_);
  rewriter_.RollBack(mark);
  EXPECT_EQ(MustSave(*model_), bytes_);
}

TEST_F(RewriterOrder, TwoMovesIntoOneGap) {
  const Rewriter::Mark mark = rewriter_.Now();
  rewriter_.Replace({{0, Named("a")}, {1, Named("d")}}, 2, Spec("Both", {Named("s0"), Named("s1")}));
  const Rewriter::Mark inner = rewriter_.Now();
  const std::string picture = Picture(*model_);
  // What was moved stands where d was; now it moves after e, and then one more node stands there.
  rewriter_.Replace({{0, Named("ra")}, {1, Named("e")}}, 2, Spec("Both", {Named("a"), Named("s2")}));
  EXPECT_EQ(Order(), "s0 a rd ra na re f g y z ");
  rewriter_.Replace({{0, Named("rd")}, {1, Named("na")}}, 2, Spec("Both", {Named("d"), Named("ra")}));
  EXPECT_TRUE(Verify(*model_).ok()) << Verify(*model_);
  rewriter_.RollBack(inner);
  EXPECT_EQ(Picture(*model_), picture);
  rewriter_.RollBack(mark);
  EXPECT_EQ(MustSave(*model_), bytes_);
}

TEST(Rewriter, ABodyThatReadsAMovedValueMovesWithItsNode) {
  auto model = Loaded(R"(g (bool c, float[4] x) => (float[4] y) {
    a = Relu (x)
    i = If (c) < then_branch = g1 () => (t) { t = Neg (a) }, else_branch = g2 () => (e) { e = Abs (x) } >
    b = Sigmoid (x)
    y = Add (i, b)
  })");
  const auto& nodes = model->graph().nodes();
  const Node* const choice = nodes[1];
  const Value* const a = nodes[0]->output();
  const Value* const b = nodes[2]->output();
  Rewriter rewriter(model.get());
  const Node* both = rewriter.Replace({{0, a}, {1, b}}, 2, Spec("Both", {model->graph().inputs()[1]}));
  EXPECT_TRUE(StandsBefore(*both, *choice));
  EXPECT_TRUE(Verify(*model).ok()) << Verify(*model);
  rewriter.Restore(both);
  EXPECT_TRUE(Verify(*model).ok()) << Verify(*model);
}

TEST(Rewriter, ABodyThatComesBackStandsAfterWhatItReads) {
  auto model = Loaded(R"(g (bool c, float[4] x) => (float[4] y, float[4] a) {
    a = Relu (x)
    i = If (c) < then_branch = g1 () => (t) { t = Neg (a) }, else_branch = g2 () => (e) { e = Abs (x) } >
    b = Sigmoid (x)
    y = Add (i, b)
  })");
  const auto& nodes = model->graph().nodes();
  const Node* const choice = nodes[1];
  const Value* const x = model->graph().inputs()[1];
  Rewriter rewriter(model.get());
  const Node* other = rewriter.ReplaceValue(choice->output(), Spec("Other", {x}));
  rewriter.Replace({{0, nodes[0]->output()}, {1, nodes[2]->output()}}, 2, Spec("Both", {x}));
  rewriter.Restore(other);
  EXPECT_FALSE(choice->dead);
  EXPECT_TRUE(Verify(*model).ok()) << Verify(*model);
}

// Found by optimize_fuzz: without p the product of the branch reads r, and found that of the branch.
TEST(Rewriter, ABodyGivesANameBackThatItMustReadFromAroundIt) {
  auto model = Loaded(kHiding);
  const std::string before = MustSave(*model);
  Rewriter rewriter(model.get());
  const Rewriter::Mark mark = rewriter.Now();
  const Value* const r = model->graph().nodes()[0]->output();
  const Node* const product = NamedValue(*model, "n")->producer;
  const Value* const own = product->input(1);
  ASSERT_EQ(own->name, r->name);
  rewriter.SetInput(product, 0, r);
  EXPECT_EQ(ValueName(*r), "r");
  EXPECT_EQ(ValueName(*own), "r_1");
  EXPECT_TRUE(Verify(*model).ok()) << Verify(*model);
  const onnx::ModelProto saved = Parse(MustSave(*model));
  const onnx::GraphProto& branch = saved.graph().node(2).attribute(0).g();
  EXPECT_EQ(branch.initializer(0).name(), "r_1");
  EXPECT_EQ(branch.node(0).input(0), "r");
  EXPECT_EQ(branch.node(0).input(1), "r_1");
  const onnx::GraphProto& inner = branch.node(1).attribute(0).g();
  EXPECT_EQ(inner.node(0).input(1), "r_1");
  EXPECT_EQ(branch.node(1).attribute(1).g().node(1).input(1), "r_1");
  EXPECT_EQ(Reads(*MustLoad(MustSave(*model))), Reads(*model));
  rewriter.RollBack(mark);
  EXPECT_EQ(MustSave(*model), before);
}

// ONNX Runtime hands r to both branches then.
TEST(Rewriter, ABranchGivesANameBackThatTheOtherReadsFromAroundIt) {
  auto model = Loaded(kHiding);
  Rewriter rewriter(model.get());
  const Value* const r = model->graph().nodes()[0]->output();
  const Value* const own = NamedValue(*model, "n")->producer->input(1);
  rewriter.SetInput(NamedValue(*model, "d")->producer, 0, r);
  EXPECT_EQ(ValueName(*r), "r");
  EXPECT_EQ(ValueName(*own), "r_1");
  EXPECT_EQ(Reads(*MustLoad(MustSave(*model))), Reads(*model));
}

// An input that is an output as well, with a type of its own at both; and what is sparse.
TEST(Rewriter, ABodyGivesANameBackWhereverItIsWritten) {
  onnx::ModelProto proto = Parse(MustSave(*Loaded(kHiding)));
  onnx::GraphProto* const body = proto.mutable_graph()->mutable_node(5)->mutable_attribute(0)->mutable_g();
  onnx::SparseTensorProto* const sparse = body->add_sparse_initializer();
  sparse->mutable_values()->set_name("b");
  sparse->mutable_values()->set_data_type(onnx::TensorProto::FLOAT);
  sparse->mutable_values()->add_dims(1);
  sparse->mutable_values()->add_float_data(5);
  sparse->mutable_indices()->set_data_type(onnx::TensorProto::INT64);
  sparse->mutable_indices()->add_dims(1);
  sparse->mutable_indices()->add_int64_data(2);
  sparse->add_dims(8);
  *body->add_value_info() = body->input(2);
  body->mutable_value_info(0)->set_name("x");
  body->mutable_node(2)->set_input(1, "b");
  auto model = MustLoad(proto.SerializeAsString());
  Rewriter rewriter(model.get());
  const Node* const product = NamedValue(*model, "q")->producer;
  for (const char* name : {"p", "x", "b"}) rewriter.SetInput(product, 1, NamedValue(*model, name));
  EXPECT_TRUE(Verify(*model).ok()) << Verify(*model);
  const onnx::ModelProto saved = Parse(MustSave(*model));
  const onnx::GraphProto& written = saved.graph().node(5).attribute(0).g();
  EXPECT_EQ(written.input(2).name(), "p_1");
  EXPECT_EQ(written.output(2).name(), "p_1");
  EXPECT_EQ(written.input(2).type().SerializeAsString(), body->input(2).type().SerializeAsString());
  EXPECT_EQ(written.output(2).type().SerializeAsString(), body->output(2).type().SerializeAsString());
  EXPECT_EQ(written.node(0).input(0), "p_1");
  EXPECT_EQ(written.node(0).input(1), "b");
  EXPECT_EQ(written.initializer(0).name(), "x_1");
  EXPECT_EQ(written.initializer(0).raw_data(), body->initializer(0).raw_data());
  EXPECT_EQ(written.value_info(0).name(), "x_1");
  EXPECT_EQ(written.sparse_initializer(0).values().name(), "b_1");
  EXPECT_EQ(written.sparse_initializer(0).values().float_data(0), 5);
  EXPECT_EQ(written.sparse_initializer(0).indices().int64_data(0), 2);
  EXPECT_EQ(written.sparse_initializer(0).dims(0), 8);
  EXPECT_EQ(written.node(2).input(1), "b_1");
  EXPECT_EQ(written.input(0).name(), "i");  // its name hides a value that nothing here reads
  EXPECT_EQ(Reads(*MustLoad(MustSave(*model))), Reads(*model));
}

TEST(Rewriter, WhatWasReplacedInABodyStaysSoWhenTheBodyComesBack) {
  auto model = MustLoad(RichModel().SerializeAsString());
  Rewriter rewriter(model.get());
  const Node* choice = FindNode(model->graph(), "choice");
  const Node* inner = FindNode(*choice->subgraphs()[0], "inner/add");
  rewriter.ReplaceValue(inner->output(), Spec("Linear", {inner->input(1)}));
  const std::string bytes = MustSave(*model);
  const Node* made = rewriter.ReplaceValue(choice->output(), Spec("Const", {model->graph().inputs()[0]}));
  rewriter.Restore(made);
  EXPECT_EQ(MustSave(*model), bytes);
}

TEST(Rewriter, ANodeThatComesBackDoesNotShareItsName) {
  auto model = Loaded(kOutputs);
  Rewriter rewriter(model.get());
  const Node* split = model->graph().nodes()[0];
  NewNode named = Spec("Named", {model->graph().inputs()[0]});
  named.name = "n";
  const Node* first = rewriter.Insert(named, 2, &model->graph(), "first");
  rewriter.SetInput(model->graph().nodes()[1], 0, first->output(0));
  named.keep_name = true;
  const Node* second = rewriter.ReplaceValue(first->output(0), named);
  EXPECT_EQ(NodeName(*second), "n");
  EXPECT_TRUE(first->dead);
  rewriter.SetInput(model->graph().nodes()[4], 0, first->output(1));
  EXPECT_FALSE(first->dead);
  EXPECT_FALSE(split->dead);
  EXPECT_TRUE(Verify(*model).ok()) << Verify(*model);
}

}  // namespace
}  // namespace ascend_fuse
