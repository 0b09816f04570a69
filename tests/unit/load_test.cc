// Loading: what the graph looks like, and what is refused with which words.
#include "ir/onnx/load.h"

#include "ir/onnx/model_file.h"
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
  EXPECT_GE(add->output()->value_info, 0);
  EXPECT_NE(add->output()->declared_type.data(), nullptr);
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

// A graph out of parts in an order that libprotobuf does not write.
std::string InOrder(const onnx::ModelProto& whole, const std::vector<std::pair<int, std::string>>& fields) {
  onnx::ModelProto header = whole;
  header.clear_graph();
  std::string graph;
  for (const auto& [number, body] : fields) wire::AppendBytes(&graph, static_cast<uint32_t>(number), body);
  std::string bytes = header.SerializeAsString();
  wire::AppendBytes(&bytes, onnx::ModelProto::kGraphFieldNumber, graph);
  return bytes;
}

TEST(Load, TellsHowFarItIs) {
  const TemporaryDirectory directory;
  WriteWhole(directory / "told.onnx", RichModel().SerializeAsString());
  std::vector<double> told;
  const auto model = LoadModel(directory / "told.onnx", [&told](int64_t done, int64_t total) {
    told.push_back(static_cast<double>(done) / static_cast<double>(total));
  });
  ASSERT_TRUE(model.ok());
  ASSERT_GE(told.size(), 2u);
  EXPECT_TRUE(std::is_sorted(told.begin(), told.end()));
  EXPECT_LE(told.front(), 0.5) << "reading is the first half";
  EXPECT_GE(told.back(), 0.5);
  EXPECT_LE(told.back(), 1);
}

TEST(Load, ValueInfoMayStandAnywhere) {
  using G = onnx::GraphProto;
  onnx::ModelProto proto = EmptyModel();
  onnx::GraphProto* graph = proto.mutable_graph();
  const auto node = [graph](const char* from, const char* to) {
    return AddNode(graph, "Relu", {from}, {to}, to)->SerializeAsString();
  };
  const auto info = [](const std::string& name, int64_t dim) {
    onnx::ValueInfoProto value;
    SetType(&value, name, onnx::TensorProto::FLOAT, {dim});
    return value.SerializeAsString();
  };
  const std::vector<std::pair<int, std::string>> fields = {
      {G::kNodeFieldNumber, node("x", "a")},          {G::kInputFieldNumber, info("x", 1)},
      {G::kValueInfoFieldNumber, info("a", 2)},  // after its node
      {G::kNodeFieldNumber, node("a", "b")},          {G::kNodeFieldNumber, node("b", "c")},
      {G::kValueInfoFieldNumber, info("nothing", 3)},  // names nothing
      {G::kValueInfoFieldNumber, info("x", 9)},        // an input, which says for itself
      {G::kValueInfoFieldNumber, info("c", 4)},        // an output, which says for itself
      {G::kValueInfoFieldNumber, info("d", 5)},        // before its node
      {G::kNodeFieldNumber, node("c", "d")},          {G::kOutputFieldNumber, info("c", 6)},
      {G::kNodeFieldNumber, node("d", "e")},          {G::kOutputFieldNumber, info("e", 7)},
      {G::kValueInfoFieldNumber, info("b", 8)},  // out of order
      {G::kValueInfoFieldNumber, info("b", 9)},  // said already
      {G::kValueInfoFieldNumber, info("e", 9)}};
  const std::string bytes = InOrder(proto, fields);
  auto model = MustLoad(bytes);
  ASSERT_NE(model, nullptr);
  const auto declared = [&model](const char* name) -> int64_t {
    const Graph& main = model->graph();
    const Value* value = name[0] == 'x' ? main.inputs()[0] : FindNode(main, name)->output();
    onnx::TypeProto type;
    if (!type.ParseFromArray(value->declared_type.data(), static_cast<int>(value->declared_type.size()))) return -1;
    return type.tensor_type().shape().dim(0).dim_value();
  };
  EXPECT_EQ(declared("x"), 1);
  EXPECT_EQ(declared("a"), 2);
  EXPECT_EQ(declared("b"), 8);
  EXPECT_EQ(declared("c"), 6);
  EXPECT_EQ(declared("d"), 5);
  EXPECT_EQ(declared("e"), 7);
  EXPECT_EQ(MustSave(*model), bytes);
}

TEST(Load, ManyDeclaredNamesInAnyOrder) {
  onnx::ModelProto proto = EmptyModel();
  onnx::GraphProto* graph = proto.mutable_graph();
  SetType(graph->add_input(), "v0", onnx::TensorProto::FLOAT, {1});
  constexpr int kNodes = 1000;
  const auto name = [](int i) { return "v" + std::to_string(i); };
  for (int i = 0; i < kNodes; ++i) AddNode(graph, "Relu", {name(i).c_str()}, {name(i + 1).c_str()});
  SetType(graph->add_output(), name(kNodes), onnx::TensorProto::FLOAT, {1});
  for (int step : {1, 7, kNodes - 1}) {  // in order, in strides, backwards
    graph->clear_value_info();
    for (int i = 0; i < kNodes; ++i) {
      const int at = static_cast<int>(int64_t{i} * step % kNodes) + 1;
      SetType(graph->add_value_info(), name(at), onnx::TensorProto::FLOAT, {at + 10});
    }
    auto model = MustLoad(proto.SerializeAsString());
    ASSERT_NE(model, nullptr);
    for (const Node* node : model->graph().nodes()) {
      const Value* value = node->output();
      const std::string_view encoded = value->declared_type;
      onnx::TypeProto type;
      ASSERT_TRUE(type.ParseFromArray(encoded.data(), static_cast<int>(encoded.size())));
      const std::string number(ValueName(*value).substr(1));
      const int64_t wanted = value->is_graph_output ? 1 : std::stoll(number) + 10;
      EXPECT_EQ(type.tensor_type().shape().dim(0).dim_value(), wanted) << step << " " << ValueName(*value);
    }
  }
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
  EXPECT_HAS(Refusal(std::string("hello, this is not a model at all")), "not an ONNX model");
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
  EXPECT_EQ(FindNode(model->graph(), "layer/add")->input(0), FindNode(model->graph(), "layer/matmul")->output());
}

}  // namespace
}  // namespace ascend_fuse
