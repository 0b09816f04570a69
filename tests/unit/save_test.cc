// Writing: unchanged models to the bit, changed ones with every untouched byte in place, nothing left behind
// on errors.
#include "ir/onnx/save.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <random>

#include "ir/onnx/model_file.h"
#include "ir/rewriter.h"
#include "tests/unit/models.h"

namespace ascend_fuse {
namespace {

using namespace ascend_fuse::testing;  // NOLINT

TEST(Save, UnchangedIsByteEqual) {
  TemporaryDirectory directory;
  const std::string bytes = RichModel().SerializeAsString();
  EXPECT_EQ(MustSave(*MustLoad(bytes)), bytes);
  WriteWhole(directory / "in.onnx", bytes);
  auto model = LoadModel(directory / "in.onnx");
  ASSERT_TRUE(model.ok()) << model.status();
  int64_t last = 0;
  SaveOptions options;
  options.progress = [&](int64_t written, int64_t total) {
    EXPECT_EQ(total, static_cast<int64_t>(bytes.size()));
    last = written;
  };
  ASSERT_TRUE(SaveModel(**model, directory / "out.onnx", options).ok());
  EXPECT_EQ(last, static_cast<int64_t>(bytes.size()));
  EXPECT_EQ(ReadWhole(directory / "out.onnx"), bytes);
  ASSERT_TRUE(SaveModel(**model, directory / "in.onnx").ok());  // onto itself
  EXPECT_EQ(ReadWhole(directory / "in.onnx"), bytes);
  EXPECT_EQ(directory.Files(), (std::vector<std::string>{"in.onnx", "out.onnx"}));
}

TEST(Save, ACancelledOneLeavesNothingBehind) {
  TemporaryDirectory directory;
  auto model = MustLoad(RichModel().SerializeAsString());
  SaveOptions options;
  options.go_on = [] { return false; };
  WriteWhole(directory / "out.onnx", "what was there");
  const absl::Status status = SaveModel(*model, directory / "out.onnx", options);
  EXPECT_EQ(status.code(), absl::StatusCode::kCancelled);
  EXPECT_NE(std::string(status.message()).find("cancelled, nothing was written"), std::string::npos);
  EXPECT_EQ(directory.Files(), std::vector<std::string>{"out.onnx"});
  EXPECT_EQ(ReadWhole(directory / "out.onnx"), "what was there");
}

// Odd but legal encodings: field order, unknown fields and groups, non-minimal lengths, nodes between
// initializers.
TEST(Save, OddEncodingsSurvive) {
  const onnx::ModelProto proto = RichModel();
  std::string graph;
  for (int i = proto.graph().value_info_size() - 1; i >= 0; --i) {
    wire::AppendBytes(&graph, onnx::GraphProto::kValueInfoFieldNumber, proto.graph().value_info(i).SerializeAsString());
  }
  for (const auto& value : proto.graph().output()) {
    wire::AppendBytes(&graph, onnx::GraphProto::kOutputFieldNumber, value.SerializeAsString());
  }
  for (int i = 0; i < proto.graph().node_size(); ++i) {
    std::string node = proto.graph().node(i).SerializeAsString();
    wire::AppendTag(&node, 99, wire::kGroup);
    wire::AppendInt(&node, 7, 1);
    wire::AppendTag(&node, 98, wire::kGroup);
    wire::AppendTag(&node, 98, wire::kEndGroup);
    wire::AppendTag(&node, 99, wire::kEndGroup);
    wire::AppendTag(&graph, onnx::GraphProto::kNodeFieldNumber, wire::kBytes);
    // A length of five bytes where two would do.
    for (int shift = 0; shift < 28; shift += 7) graph.push_back(static_cast<char>((node.size() >> shift & 0x7F) | 0x80));
    graph.push_back('\0');
    graph += node;
    if (i < proto.graph().initializer_size()) {
      wire::AppendBytes(&graph, onnx::GraphProto::kInitializerFieldNumber, proto.graph().initializer(i).SerializeAsString());
    }
    wire::AppendInt(&graph, 1000, i);
  }
  for (const auto& value : proto.graph().input()) {
    wire::AppendBytes(&graph, onnx::GraphProto::kInputFieldNumber, value.SerializeAsString());
  }
  std::string bytes;
  wire::AppendTag(&bytes, 500, wire::kFixed64);
  bytes += "12345678";
  wire::AppendBytes(&bytes, onnx::ModelProto::kGraphFieldNumber, graph);
  wire::AppendBytes(&bytes, 501, "unknown");
  wire::AppendBytes(&bytes, onnx::ModelProto::kOpsetImportFieldNumber, proto.opset_import(0).SerializeAsString());
  wire::AppendInt(&bytes, onnx::ModelProto::kIrVersionFieldNumber, 8);
  auto model = MustLoad(bytes);
  ASSERT_NE(model, nullptr);
  EXPECT_EQ(MustSave(*model), bytes);

  // One node renamed: the rest of the file is the same text.
  Rewriter(model.get()).Rename(FindNode(model->graph(), "layer/relu"), "npu", "Rule");
  const std::string changed = MustSave(*model);
  onnx::ModelProto expected = Parse(bytes);
  for (auto& node : *expected.mutable_graph()->mutable_node()) {
    if (node.name() == "layer/relu") {
      node.set_op_type("Rule");
      node.set_domain("npu");
    }
  }
  EXPECT_EQ(Parse(changed).SerializeAsString(), expected.SerializeAsString());
  for (const char* name : {"layer/matmul", "layer/add", "choice", "big"}) {
    const EncodedSpan span = FindNode(model->graph(), name)->encoded;
    EXPECT_NE(changed.find(bytes.substr(static_cast<size_t>(span.file.offset), static_cast<size_t>(span.file.size))),
              std::string::npos);
  }
}

TEST(Save, RewritesOnlyWhatChanged) {
  const onnx::ModelProto proto = RichModel();
  auto model = MustLoad(proto.SerializeAsString());
  Rewriter rewriter(model.get());
  const Node* matmul = FindNode(model->graph(), "layer/matmul");
  const Node* add = FindNode(model->graph(), "layer/add");
  NewNode fused;
  fused.op_type = "Linear";
  fused.domain = "npu";
  fused.name = "layer/linear";
  const float epsilon[] = {1, 2};
  fused.inputs = {matmul->input(0), matmul->input(1), nullptr, rewriter.Int64Constant(&model->graph(), {3, -4}, "shape")};
  fused.attributes = {Attribute::Int("axis", -1), Attribute::Float("eps", 1e-6f), Attribute::String("mode", "bnsd"),
                      Attribute::Ints("perm", {0, 2, 1}), Attribute::Floats("scales", epsilon)};
  const Node* node = rewriter.ReplaceValue(add->output(), fused);
  EXPECT_TRUE(matmul->dead);
  EXPECT_TRUE(add->dead);
  rewriter.Sweep();

  const std::string saved = MustSave(*model);
  onnx::ModelProto expected = proto;
  onnx::GraphProto* graph = expected.mutable_graph();
  onnx::NodeProto* linear = graph->mutable_node(0);
  linear->Clear();
  for (const char* input : {"x", "w", "", "shape"}) linear->add_input(input);
  linear->add_output("sum");
  linear->set_name("layer/linear");
  linear->set_op_type("Linear");
  linear->set_domain("npu");
  auto attribute = [&](const char* name, onnx::AttributeProto::AttributeType type) {
    auto* added = linear->add_attribute();
    added->set_name(name);
    added->set_type(type);
    return added;
  };
  attribute("axis", onnx::AttributeProto::INT)->set_i(-1);
  attribute("eps", onnx::AttributeProto::FLOAT)->set_f(1e-6f);
  attribute("mode", onnx::AttributeProto::STRING)->set_s("bnsd");
  auto* perm = attribute("perm", onnx::AttributeProto::INTS);
  for (int i : {0, 2, 1}) perm->add_ints(i);
  auto* scales = attribute("scales", onnx::AttributeProto::FLOATS);
  scales->add_floats(1);
  scales->add_floats(2);
  graph->mutable_node()->DeleteSubrange(1, 1);         // add
  graph->mutable_initializer()->DeleteSubrange(1, 1);  // b
  graph->mutable_value_info()->DeleteSubrange(0, 1);   // mm
  onnx::TensorProto* shape = graph->add_initializer();
  shape->add_dims(2);
  shape->set_data_type(onnx::TensorProto::INT64);
  shape->set_name("shape");
  const int64_t values[] = {3, -4};
  shape->set_raw_data(values, sizeof(values));
  EXPECT_EQ(Parse(saved).SerializeAsString(), expected.SerializeAsString());

  // And the result loads again, and is stable.
  auto again = MustLoad(saved);
  EXPECT_EQ(MustSave(*again), saved);
  const Node* read = FindNode(again->graph(), "layer/linear");
  EXPECT_EQ(IntAttribute(*read, "axis"), -1);
  EXPECT_EQ(FloatAttribute(*read, "eps"), 1e-6f);
  EXPECT_EQ(StringAttribute(*read, "mode"), "bnsd");
  EXPECT_EQ(IntsAttribute(*read, "perm"), (std::vector<int64_t>{0, 2, 1}));
  EXPECT_EQ(node->output(), FindNode(model->graph(), "layer/relu")->input(0));
}

TEST(Save, RestoredModelIsByteEqual) {
  const std::string bytes = RichModel().SerializeAsString();
  auto model = MustLoad(bytes);
  Rewriter rewriter(model.get());
  const Node* add = FindNode(model->graph(), "layer/add");
  NewNode fused;
  fused.op_type = "Linear";
  fused.inputs = {add->input(0)};
  const Node* node = rewriter.ReplaceValue(add->output(), fused);
  EXPECT_NE(MustSave(*model), bytes);
  rewriter.Restore(node);
  EXPECT_EQ(MustSave(*model), bytes);
  rewriter.Sweep();
  EXPECT_EQ(MustSave(*model), bytes);
}

TEST(Save, ChangesInsideBodies) {
  const onnx::ModelProto proto = RichModel();
  auto model = MustLoad(proto.SerializeAsString());
  Rewriter rewriter(model.get());
  const Graph* body = FindNode(model->graph(), "choice")->subgraphs()[0];
  const Node* mul = FindNode(*body, "inner/mul");
  NewNode scale;
  scale.op_type = "Scale";
  scale.inputs = {mul->input(0)};
  rewriter.ReplaceValue(mul->output(), scale);
  rewriter.Sweep();
  onnx::ModelProto expected = proto;
  onnx::NodeProto* changed = expected.mutable_graph()->mutable_node(3)->mutable_attribute(0)->mutable_g()->mutable_node(0);
  changed->Clear();
  changed->add_input("act");
  changed->add_output("scaled");
  changed->set_op_type("Scale");
  EXPECT_EQ(Parse(MustSave(*model)).SerializeAsString(), expected.SerializeAsString());
}

TEST(Save, LostOutputOfAnOriginalNode) {
  onnx::ModelProto proto = EmptyModel();
  onnx::GraphProto* graph = proto.mutable_graph();
  SetType(graph->add_input(), "x", 1, {4});
  AddNode(graph, "Split", {"x"}, {"a", "b"}, "split")->set_doc_string("kept");
  SetType(graph->add_output(), "a", 1, {2});
  SetType(graph->add_output(), "b", 1, {2});
  auto model = MustLoad(proto.SerializeAsString());
  Rewriter rewriter(model.get());
  NewNode other;
  other.op_type = "Other";
  other.inputs = {model->graph().inputs()[0]};
  rewriter.ReplaceValue(FindNode(model->graph(), "split")->output(0), other);
  rewriter.Sweep();
  const onnx::ModelProto saved = Parse(MustSave(*model));
  ASSERT_EQ(saved.graph().node_size(), 2);
  EXPECT_EQ(saved.graph().node(0).output(0), "a_1");  // Split has no output that may be left out
  EXPECT_EQ(saved.graph().node(0).output(1), "b");
  EXPECT_EQ(saved.graph().node(0).doc_string(), "kept");
  EXPECT_EQ(saved.graph().node(1).output(0), "a");
  MustLoad(saved.SerializeAsString());
}

// Before version 4 of the format every initializer is an input, too.
TEST(Save, ConstantsThatAreNoInputsNeedVersion4) {
  onnx::ModelProto proto;
  proto.set_ir_version(3);
  proto.add_opset_import()->set_version(9);
  onnx::GraphProto* graph = proto.mutable_graph();
  graph->set_name("g");
  graph->add_input()->set_name("x");
  graph->add_output()->set_name("y");
  onnx::NodeProto* relu = graph->add_node();
  relu->set_op_type("Relu");
  relu->add_input("x");
  relu->add_output("y");
  auto model = MustLoad(proto.SerializeAsString());
  Rewriter rewriter(model.get());
  NewNode sum;
  sum.op_type = "Softplus";
  sum.inputs = {model->graph().inputs()[0]};
  const Node* node = rewriter.ReplaceValue(model->graph().outputs()[0], sum);
  EXPECT_EQ(Parse(MustSave(*model)).ir_version(), 3);
  NewNode shifted;
  shifted.op_type = "Add";
  shifted.inputs = {node->input(0), rewriter.NumberConstant(&model->graph(), DataType::kFloat, 1, "one")};
  rewriter.ReplaceValue(model->graph().outputs()[0], shifted);
  EXPECT_EQ(Parse(MustSave(*model)).ir_version(), 4);
}

TEST(Save, OpsetImportsAndDefaultDomain) {
  const onnx::ModelProto proto = RichModel();
  auto model = MustLoad(proto.SerializeAsString());
  Rewriter rewriter(model.get());
  rewriter.SetOpsetImport("npu", 1);
  onnx::ModelProto expected = proto;
  auto* import = expected.add_opset_import();
  import->set_domain("npu");
  import->set_version(1);
  EXPECT_EQ(Parse(MustSave(*model)).SerializeAsString(), expected.SerializeAsString());
  rewriter.SpellDefaultDomain(DefaultDomain::kExplicit);
  const onnx::ModelProto saved = Parse(MustSave(*model));
  EXPECT_EQ(saved.opset_import(0).domain(), "ai.onnx");
  EXPECT_EQ(saved.opset_import(0).version(), 17);
  for (const auto& node : saved.graph().node()) {
    EXPECT_EQ(node.domain(), "ai.onnx");
    for (const auto& attribute : node.attribute()) {
      for (const auto& inner : attribute.g().node()) EXPECT_EQ(inner.domain(), "ai.onnx");
    }
  }
  auto again = MustLoad(saved.SerializeAsString());
  EXPECT_EQ(again->OpsetVersion(), 17);
  EXPECT_TRUE(IsOp(*FindNode(again->graph(), "layer/add"), "Add"));
  // A model that spells the domain out keeps it when another import changes.
  Rewriter(again.get()).SetOpsetImport("npu", 2);
  EXPECT_EQ(Parse(MustSave(*again)).opset_import(0).domain(), "ai.onnx");
}

TEST(Save, UnsortedInputIsWrittenSortedOnlyWhenChanged) {
  onnx::ModelProto proto = EmptyModel();
  SetType(proto.mutable_graph()->add_input(), "x", 1, {2});
  AddNode(proto.mutable_graph(), "B", {"a"}, {"b"}, "b");
  AddNode(proto.mutable_graph(), "A", {"x"}, {"a"}, "a");
  SetType(proto.mutable_graph()->add_output(), "b", 1, {2});
  const std::string bytes = proto.SerializeAsString();
  auto model = MustLoad(bytes);
  EXPECT_EQ(MustSave(*model), bytes);
  Rewriter(model.get()).Rename(FindNode(model->graph(), "a"), "npu", "A");
  const onnx::ModelProto saved = Parse(MustSave(*model));
  EXPECT_EQ(saved.graph().node(0).name(), "a");
  EXPECT_EQ(saved.graph().node(1).name(), "b");
}

// A model put together in memory, as the text parser does.
TEST(Save, ModelWithoutAFile) {
  Model model;
  GraphBuilder builder(&model);
  auto name = [&](std::string_view text) { return model.names().InternCopy(text); };
  builder.SetHeader(9, "", "");
  builder.AddOpsetImport({NameId::kEmpty, 18});
  const Graph* graph = builder.NewGraph(nullptr, name("g"), {});
  // A span in memory has offset -1; NewGraph above got the default one.
  const Value* x = builder.NewValue(graph, name("x"));
  builder.AddInput(graph, x);
  Node* node = builder.NewNode(graph, 1, 1, 1);
  node->op_type = name("Loop");
  std::string attribute;
  wire::AppendBytes(&attribute, onnx::AttributeProto::kNameFieldNumber, "body");
  wire::AppendInt(&attribute, onnx::AttributeProto::kTypeFieldNumber, onnx::AttributeProto::GRAPH);
  std::string attributes;
  wire::AppendBytes(&attributes, onnx::NodeProto::kAttributeFieldNumber, attribute);
  node->encoded = {reinterpret_cast<const uint8_t*>(attributes.data()), {-1, static_cast<int64_t>(attributes.size())}};
  builder.SetInput(node, 0, x);
  const Value* y = builder.NewValue(graph, name("y"));
  builder.SetOutput(node, 0, y);
  builder.AddOutput(graph, y);
  const Graph* body = builder.NewGraph(node, name("inner"), {});
  builder.SetSubgraph(node, 0, body);
  Node* inner = builder.NewNode(body, 1, 1, 0);
  inner->op_type = name("Neg");
  inner->encoded.file.offset = -1;
  builder.SetInput(inner, 0, x);
  const Value* r = builder.NewValue(body, name("r"));
  builder.SetOutput(inner, 0, r);
  builder.AddOutput(body, r);
  const onnx::ModelProto saved = Parse(MustSave(model));
  EXPECT_EQ(saved.ir_version(), 9);
  EXPECT_EQ(saved.graph().node(0).attribute(0).g().node(0).op_type(), "Neg");
  EXPECT_EQ(saved.graph().node(0).attribute(0).g().output(0).name(), "r");
  EXPECT_EQ(saved.graph().output(0).name(), "y");
  EXPECT_EQ(saved.opset_import(0).version(), 18);
}

TEST(Save, LeavesNothingBehind) {
  TemporaryDirectory directory;
  auto model = MustLoad(RichModel().SerializeAsString());
  EXPECT_EQ(SaveModel(*model, directory / "no/such/out.onnx").code(), absl::StatusCode::kNotFound);
  EXPECT_FALSE(SaveModel(*model, directory.path()).ok());
  EXPECT_FALSE(SaveModel(*model, "/dev/null").ok());
  EXPECT_FALSE(SaveModel(*model, "").ok());
  // The input changes while we look elsewhere.
  WriteWhole(directory / "in.onnx", RichModel().SerializeAsString());
  auto loaded = LoadModel(directory / "in.onnx");
  ASSERT_TRUE(loaded.ok());
  WriteWhole(directory / "in.onnx", "short");
  EXPECT_EQ(SaveModel(**loaded, directory / "out.onnx").code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(directory.Files(), std::vector<std::string>{"in.onnx"});
}

// Inputs of more than 2 GiB are read and copied; a changed one is refused, because nothing could load it.
TEST(Save, MoreThanTwoGigabytes) {
  TemporaryDirectory directory;
  const int64_t payload = (int64_t{2} << 30) + 12345;
  std::string tensor;
  wire::AppendBytes(&tensor, onnx::TensorProto::kNameFieldNumber, "w");
  wire::AppendInt(&tensor, onnx::TensorProto::kDataTypeFieldNumber, onnx::TensorProto::UINT8);
  wire::AppendInt(&tensor, onnx::TensorProto::kDimsFieldNumber, payload);
  wire::AppendTag(&tensor, onnx::TensorProto::kRawDataFieldNumber, wire::kBytes);
  wire::AppendVarint(&tensor, static_cast<uint64_t>(payload));
  onnx::GraphProto rest;
  AddNode(&rest, "Neg", {"w"}, {"y"}, "neg");
  SetType(rest.add_output(), "y", 2, {payload});
  const std::string tail = rest.SerializeAsString();
  std::string head;
  wire::AppendTag(&head, onnx::GraphProto::kInitializerFieldNumber, wire::kBytes);
  wire::AppendVarint(&head, tensor.size() + static_cast<uint64_t>(payload));
  std::string file;
  wire::AppendTag(&file, onnx::ModelProto::kGraphFieldNumber, wire::kBytes);
  wire::AppendVarint(&file, head.size() + tensor.size() + static_cast<uint64_t>(payload) + tail.size());
  file += head + tensor;
  WriteWhole(directory / "in.onnx", file);
  ASSERT_EQ(truncate((directory / "in.onnx").c_str(), static_cast<int64_t>(file.size()) + payload), 0);
  std::ofstream(directory / "in.onnx", std::ios::binary | std::ios::app) << tail;
  auto model = LoadModel(directory / "in.onnx");
  ASSERT_TRUE(model.ok()) << model.status();
  const Node* neg = FindNode((*model)->graph(), "neg");
  EXPECT_EQ(neg->input(0)->initializer->file.size, payload);
  Rewriter(model->get()).Rename(neg, "npu", "Neg");
  EXPECT_EQ(SaveModel(**model, directory / "out.onnx").code(), absl::StatusCode::kOutOfRange);
  EXPECT_EQ(directory.Files(), std::vector<std::string>{"in.onnx"});
}

// Whatever the bytes are: a sentence or a model that can be written and read again. Never a crash.
void Survive(const std::string& bytes) {
  auto model = LoadModelFromBytes(bytes);
  if (!model.ok()) {
    EXPECT_FALSE(model.status().message().empty());
    return;
  }
  for (const auto& graph : (*model)->graphs()) {
    for (const Value* value : graph->initializers()) {
      (void)ReadIntegers(**model, *value->initializer, 1 << 16);
      (void)ReadFloats(**model, *value->initializer, 1 << 16);
    }
    for (const Node* node : graph->nodes()) (void)ReadAttributes(*node);
  }
  EXPECT_EQ(MustSave(**model), bytes);
  Rewriter rewriter(model->get());
  rewriter.SpellDefaultDomain(DefaultDomain::kExplicit);
  rewriter.Sweep();
  auto saved = SaveModelToBytes(**model);
  ASSERT_TRUE(saved.ok()) << saved.status();
  auto again = LoadModelFromBytes(*saved);
  EXPECT_TRUE(again.ok()) << again.status();
}

TEST(Hostile, Truncated) {
  const std::string bytes = RichModel().SerializeAsString();
  for (size_t i = 0; i < 64; ++i) Survive(bytes.substr(0, bytes.size() * i / 64));
  for (size_t i = 1; i < 200; ++i) Survive(bytes.substr(0, bytes.size() - i));
}

TEST(Hostile, FlippedBytes) {
  const std::string bytes = RichModel().SerializeAsString();
  std::mt19937 random(20261121);
  const std::vector<size_t> interesting = {0, 200, 400, bytes.size() - 800};
  for (int i = 0; i < 2000; ++i) {
    std::string damaged = bytes;
    const int flips = 1 + static_cast<int>(random() % 4);
    for (int j = 0; j < flips; ++j) {
      // Half of them in the structure, which is a small part of the file.
      const size_t at =
          random() % 2 == 0 ? random() % bytes.size() : std::min(bytes.size() - 1, interesting[random() % 4] + random() % 800);
      damaged[at] = static_cast<char>(random());
    }
    Survive(damaged);
  }
}

}  // namespace
}  // namespace ascend_fuse
