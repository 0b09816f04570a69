// The Rewriter: value names survive, a replacement can be taken back, sweeping removes what only dead nodes
// used.
#include "ir/rewriter.h"

#include "absl/strings/match.h"
#include "tests/unit/models.h"

namespace ascend_fuse {
namespace {

using namespace ascend_fuse::testing;  // NOLINT

NewNode Spec(std::string_view op_type, std::vector<Value*> inputs) {
  NewNode node;
  node.op_type = op_type;
  node.inputs = std::move(inputs);
  return node;
}

size_t Count(const Graph& graph, const std::string& name) {
  size_t count = 0;
  for (const Value* value : graph.initializers()) count += ValueName(*value) == name ? 1 : 0;
  return count;
}

TEST(Rewriter, ReplaceKeepsNamesAndUsers) {
  auto model = MustLoad(RichModel().SerializeAsString());
  Rewriter rewriter(model.get());
  Node* matmul = FindNode(model->graph(), "layer/matmul");
  Node* add = FindNode(model->graph(), "layer/add");
  Node* relu = FindNode(model->graph(), "layer/relu");
  Value* sum = add->output();
  Node* fused = rewriter.Replace({sum}, Spec("Linear", {matmul->input(0), matmul->input(1), add->input(1)}));
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
  fused = rewriter.Replace({sum}, Spec("Other", {matmul->input(0)}));
  rewriter.Sweep();
  EXPECT_EQ(Count(model->graph(), "w"), 0u);
  EXPECT_EQ(Count(model->graph(), "b"), 0u);
  EXPECT_EQ(Count(model->graph(), "scale"), 1u);
  MustLoad(MustSave(*model));
}

TEST(Rewriter, ConstantsAreSharedAndComeBackAfterSweep) {
  auto model = MustLoad(RichModel().SerializeAsString());
  Rewriter rewriter(model.get());
  Value* one = rewriter.NumberConstant(&model->graph(), DataType::kFloat16, 1, "one");
  EXPECT_EQ(one, rewriter.NumberConstant(&model->graph(), DataType::kFloat16, 1, "uno"));
  Node* relu = FindNode(model->graph(), "layer/relu");
  Node* made = rewriter.Replace({relu->output()}, Spec("Mul", {relu->input(0), one}));
  rewriter.Restore(made);
  rewriter.Sweep();
  EXPECT_EQ(Count(model->graph(), "one"), 0u);
  Value* again = rewriter.NumberConstant(&model->graph(), DataType::kFloat16, 1, "one");
  EXPECT_NE(again, one);
  EXPECT_EQ(Count(model->graph(), std::string(ValueName(*again))), 1u);
}

TEST(Rewriter, ReplacedIfTakesItsBodiesAlong) {
  auto model = MustLoad(RichModel().SerializeAsString());
  const std::string bytes = MustSave(*model);
  Rewriter rewriter(model.get());
  Node* choice = FindNode(model->graph(), "choice");
  Node* relu = FindNode(model->graph(), "layer/relu");
  Node* made = rewriter.Replace({choice->output()}, Spec("Const", {model->graph().inputs()[0]}));
  EXPECT_TRUE(relu->dead);  // only the bodies read it
  rewriter.Restore(made);
  EXPECT_FALSE(relu->dead);
  EXPECT_FALSE(choice->subgraphs()[0]->nodes()[0]->dead);
  EXPECT_EQ(MustSave(*model), bytes);
  rewriter.Replace({choice->output()}, Spec("Const", {model->graph().inputs()[0]}));
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
  Node* relu = FindNode(model->graph(), "layer/relu");
  Value* sum = relu->input(0);
  Node* cast = rewriter.Insert(Spec("Cast", {sum}), 1, relu->graph, "sum_half");
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
  Node* concat = model->graph().nodes()[0];
  Value* parts[] = {concat->input(0), concat->input(1)};
  absl::StatusOr<Value*> joined = rewriter.Join(parts, 1, "ab");
  ASSERT_TRUE(joined.ok()) << joined.status();
  EXPECT_EQ((*joined)->initializer->storage, Storage::kJoined);
  const std::vector<int64_t> elements = {1, 2, 3, 7, 4, 5, 6, 8};
  EXPECT_EQ(*ReadIntegers(*model, *(*joined)->initializer, 8), elements);
  rewriter.Replace({concat->output()}, Spec("Identity", {*joined}));
  rewriter.Sweep();
  const auto again = MustLoad(MustSave(*model));
  ASSERT_EQ(again->graph().initializers().size(), 1u);
  EXPECT_EQ(*ReadIntegers(*again, *again->graph().initializers()[0]->initializer, 8), elements);
}

TEST(Rewriter, JoinSaysWhatDoesNotFit) {
  auto model = MustLoad(TwoConstants().SerializeAsString());
  Rewriter rewriter(model.get());
  Node* concat = model->graph().nodes()[0];
  Value* parts[] = {concat->input(0), concat->input(1)};
  EXPECT_TRUE(absl::StrContains(rewriter.Join(parts, 0, "ab").status().message(), "type or dims differ"));
  EXPECT_TRUE(absl::StrContains(rewriter.Join(parts, 2, "ab").status().message(), "too few dims"));
  Value* computed[] = {concat->output(), concat->input(1)};
  EXPECT_TRUE(absl::StrContains(rewriter.Join(computed, 1, "ab").status().message(), "not an initializer"));
}

}  // namespace
}  // namespace ascend_fuse
