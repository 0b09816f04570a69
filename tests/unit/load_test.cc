// Loading: what the graph looks like, and what is refused with which words.
#include "ir/onnx/load.h"

#include "ir/onnx/skeleton.h"
#include "tests/unit/models.h"

namespace ascend_fuse {
namespace {

using namespace ascend_fuse::testing;  // NOLINT

std::string Refusal(const std::string& bytes) {
  auto model = LoadModelFromBytes(bytes);
  EXPECT_FALSE(model.ok());
  return model.ok() ? "" : std::string(model.status().message());
}
std::string Refusal(const onnx::ModelProto& model) { return Refusal(model.SerializeAsString()); }

TEST(Load, LinksEverything) {
  auto model = MustLoad(RichModel().SerializeAsString());
  ASSERT_NE(model, nullptr);
  EXPECT_EQ(model->ir_version(), 8);
  EXPECT_EQ(model->producer_name(), "test");
  EXPECT_EQ(model->OpsetVersion(), 17);
  ASSERT_EQ(model->functions().size(), 1u);
  EXPECT_EQ(model->Text(model->functions()[0].domain), "local");
  const Graph& graph = model->graph();
  EXPECT_EQ(model->Text(graph.name()), "main");
  ASSERT_EQ(graph.nodes().size(), 6u);
  EXPECT_EQ(graph.inputs().size(), 2u);
  EXPECT_EQ(graph.initializers().size(), 3u);
  ASSERT_EQ(graph.outputs().size(), 1u);
  EXPECT_TRUE(graph.outputs()[0]->is_graph_output);
  const Node* matmul = FindNode(graph, "layer/matmul");
  EXPECT_EQ(OpType(*matmul), "MatMul");
  EXPECT_TRUE(matmul->input(0)->is_graph_input);
  const Tensor* w = matmul->input(1)->initializer;
  ASSERT_NE(w, nullptr);
  EXPECT_EQ(w->storage, Storage::kFile);
  EXPECT_EQ(w->file.size, 8192);
  const Node* add = FindNode(graph, "layer/add");
  EXPECT_EQ(add->input(0)->producer, matmul);
  EXPECT_EQ(add->input(1)->initializer->storage, Storage::kMemory);
  EXPECT_NE(add->output()->value_info.data, nullptr);
  EXPECT_NE(add->output()->declared_type.data, nullptr);
  // Bodies: captured values are uses of the outer value by inner nodes.
  const Node* choice = FindNode(graph, "choice");
  ASSERT_EQ(choice->subgraph_count, 2u);
  EXPECT_EQ(model->graphs().size(), 3u);
  int inner_uses = 0;
  for (const Use& use : LiveUses(*FindNode(graph, "layer/relu")->output())) {
    EXPECT_EQ(use.user->graph->owner(), choice);
    ++inner_uses;
  }
  EXPECT_EQ(inner_uses, 2);
  const Graph* body = choice->subgraphs()[0];
  EXPECT_EQ(body->nodes()[0]->input(1)->initializer->name, body->nodes()[0]->input(1)->name);
  EXPECT_EQ(body->initializers()[0]->initializer->storage, Storage::kFile);
  EXPECT_EQ(choice->subgraphs()[1]->initializers()[0]->initializer->storage, Storage::kMemory);
}

TEST(Load, ReadsWeightsFromTheFile) {
  auto model = MustLoad(RichModel().SerializeAsString());
  const Tensor* w = FindNode(model->graph(), "layer/matmul")->input(1)->initializer;
  auto bytes = ReadBytes(*model, *w, 1 << 20);
  ASSERT_TRUE(bytes.ok()) << bytes.status();
  const onnx::ModelProto parsed = RichModel();
  EXPECT_EQ(*bytes, parsed.graph().initializer(0).raw_data());
  auto value = FindAttribute(*FindNode(model->graph(), "big"), "value");
  ASSERT_TRUE(value.has_value());
  EXPECT_EQ(value->tensor.storage, Storage::kTyped);
  auto numbers = ReadIntegers(*model, value->tensor, 3000);
  ASSERT_TRUE(numbers.ok()) << numbers.status();
  EXPECT_EQ((*numbers)[2999], 2999000);
  EXPECT_EQ(ReadIntegers(*model, value->tensor, 2999).status().code(), absl::StatusCode::kResourceExhausted);
}

TEST(Load, SortsNodes) {
  onnx::ModelProto proto = EmptyModel();
  SetType(proto.mutable_graph()->add_input(), "x", 1, {2});
  AddNode(proto.mutable_graph(), "C", {"b"}, {"c"}, "c");
  AddNode(proto.mutable_graph(), "D", {"x"}, {"d"}, "d");
  AddNode(proto.mutable_graph(), "B", {"a"}, {"b"}, "b");
  AddNode(proto.mutable_graph(), "A", {"x"}, {"a"}, "a");
  SetType(proto.mutable_graph()->add_output(), "c", 1, {2});
  auto model = MustLoad(proto.SerializeAsString());
  std::string order;
  uint64_t last = 0;
  for (const Node* node : model->graph().nodes()) {
    order += NodeName(*node);
    EXPECT_GT(node->order, last);
    last = node->order;
  }
  EXPECT_EQ(order, "dabc");
}

TEST(Load, SortsOwnersOfBodiesThatCapture) {
  onnx::ModelProto proto = EmptyModel();
  SetType(proto.mutable_graph()->add_input(), "x", 1, {2});
  onnx::NodeProto* owner = AddNode(proto.mutable_graph(), "If", {"x"}, {"y"}, "owner");
  auto* attribute = owner->add_attribute();
  attribute->set_name("then_branch");
  attribute->set_type(onnx::AttributeProto::GRAPH);
  AddNode(attribute->mutable_g(), "Neg", {"late"}, {"r"}, "inner");
  attribute->mutable_g()->add_output()->set_name("r");
  AddNode(proto.mutable_graph(), "Abs", {"x"}, {"late"}, "late");
  SetType(proto.mutable_graph()->add_output(), "y", 1, {2});
  auto model = MustLoad(proto.SerializeAsString());
  EXPECT_EQ(NodeName(*model->graph().nodes()[0]), "late");
  // The same with a cycle through the body.
  proto.mutable_graph()->mutable_node(1)->set_input(0, "y");
  EXPECT_HAS(Refusal(proto), "cycle of 2 nodes");
}

TEST(Load, Refuses) {
  EXPECT_HAS(Refusal(std::string()), "empty");
  EXPECT_HAS(Refusal(std::string("hello, this is no model at all")), "not an ONNX model");
  onnx::ModelProto no_graph;
  no_graph.set_ir_version(8);
  EXPECT_HAS(Refusal(no_graph), "no graph");
  const std::string one = RichModel().SerializeAsString();
  EXPECT_HAS(Refusal(one + one), "two");

  onnx::ModelProto proto = RichModel();
  AddNode(proto.mutable_graph(), "Neg", {"nowhere"}, {"z"}, "lost");
  EXPECT_HAS(Refusal(proto), "node 'lost' (Neg)");
  EXPECT_HAS(Refusal(proto), "reads 'nowhere'");

  proto = RichModel();
  AddNode(proto.mutable_graph(), "Neg", {"x"}, {"mm"}, "again");
  EXPECT_HAS(Refusal(proto), "'mm' is given to two values");
  proto = RichModel();
  AddNode(proto.mutable_graph(), "Neg", {"x"}, {"flag"}, "again");
  EXPECT_HAS(Refusal(proto), "graph input");
  proto = RichModel();
  AddInitializer(proto.mutable_graph(), "w", 2);
  EXPECT_HAS(Refusal(proto), "'w' is given to two values");
  proto = RichModel();
  proto.mutable_graph()->mutable_node(0)->set_input(0, "sum");
  EXPECT_HAS(Refusal(proto), "cycle of 2 nodes");
  EXPECT_HAS(Refusal(proto), "layer/add");
  proto = RichModel();
  SetType(proto.mutable_graph()->add_output(), "gone", 1, {1});
  EXPECT_HAS(Refusal(proto), "graph output 'gone'");
  proto = RichModel();
  auto* import = proto.add_opset_import();
  import->set_domain("ai.onnx");
  import->set_version(18);
  EXPECT_HAS(Refusal(proto), "versions 17 and 18");
  EXPECT_FALSE(LoadModel("/no/such/file.onnx").ok());
  EXPECT_EQ(LoadModel("/no/such/file.onnx").status().code(), absl::StatusCode::kNotFound);
  EXPECT_FALSE(LoadModel("/tmp").ok());
  EXPECT_FALSE(LoadModel("/dev/null").ok());
}

// The second opinion: a change of wire type, checked by hand.
TEST(Load, RefusesWrongWireTypes) {
  std::string node;
  wire::AppendInt(&node, onnx::NodeProto::kOpTypeFieldNumber, 5);
  std::string graph;
  wire::AppendBytes(&graph, onnx::GraphProto::kNodeFieldNumber, node);
  std::string model;
  wire::AppendBytes(&model, onnx::ModelProto::kGraphFieldNumber, graph);
  EXPECT_HAS(Refusal(model), "NodeProto at byte 4 has wire type 0");
  std::string raw;
  wire::AppendBytes(&raw, onnx::TensorProto::kNameFieldNumber, "t");
  wire::AppendBytes(&raw, onnx::TensorProto::kRawDataFieldNumber, "abcd");
  wire::AppendBytes(&raw, onnx::TensorProto::kRawDataFieldNumber, std::string(5000, 'x'));
  graph.clear();
  wire::AppendBytes(&graph, onnx::GraphProto::kInitializerFieldNumber, raw);
  model.clear();
  wire::AppendBytes(&model, onnx::ModelProto::kGraphFieldNumber, graph);
  EXPECT_HAS(Refusal(model), "raw_data is given twice");
}

TEST(Load, LimitsNesting) {
  for (int depth : {30, 70, 2000}) {
    std::string graph;
    for (int i = 0; i < depth; ++i) {
      std::string attribute;
      wire::AppendBytes(&attribute, onnx::AttributeProto::kNameFieldNumber, "body");
      wire::AppendBytes(&attribute, onnx::AttributeProto::kGFieldNumber, graph);
      std::string node;
      wire::AppendBytes(&node, onnx::NodeProto::kAttributeFieldNumber, attribute);
      graph.clear();
      wire::AppendBytes(&graph, onnx::GraphProto::kNodeFieldNumber, node);
    }
    std::string model;
    wire::AppendBytes(&model, onnx::ModelProto::kGraphFieldNumber, graph);
    auto loaded = LoadModelFromBytes(model);
    EXPECT_EQ(loaded.ok(), depth == 30) << depth << loaded.status();
  }
}

TEST(Load, BodiesMayReuseAndShadowNames) {
  onnx::ModelProto proto = RichModel();
  // A body value with the name of an outer value hides it inside the body.
  onnx::GraphProto* body = proto.mutable_graph()->mutable_node(3)->mutable_attribute(0)->mutable_g();
  AddNode(body, "Neg", {"result"}, {"mm"}, "shadow");
  auto model = MustLoad(proto.SerializeAsString());
  const Node* shadow = FindNode(*FindNode(model->graph(), "choice")->subgraphs()[0], "shadow");
  EXPECT_NE(shadow->output(), FindNode(model->graph(), "layer/matmul")->output());
  EXPECT_EQ(FindNode(model->graph(), "layer/add")->input(0),
            FindNode(model->graph(), "layer/matmul")->output());
}

}  // namespace
}  // namespace ascend_fuse
