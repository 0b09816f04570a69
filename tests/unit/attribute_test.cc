// Attributes and constants: every kind decoded from what libprotobuf wrote, every element type read from
// every storage.
#include "ir/attribute.h"

#include <cmath>
#include <limits>

#include "ir/onnx/encode.h"
#include "ir/onnx/model_file.h"
#include "ir/rewriter.h"
#include "tests/unit/models.h"

namespace ascend_fuse {
namespace {

using namespace ascend_fuse::testing;  // NOLINT

onnx::AttributeProto* AddAttribute(onnx::NodeProto* node, const std::string& name, onnx::AttributeProto::AttributeType type) {
  auto* attribute = node->add_attribute();
  attribute->set_name(name);
  attribute->set_type(type);
  return attribute;
}

TEST(Attribute, FoundWhereverItStandsInTheNode) {
  using N = onnx::NodeProto;
  onnx::ModelProto proto = EmptyModel();
  const auto attribute = [](const std::string& name, int64_t value) {
    onnx::AttributeProto proto;
    proto.set_name(name);
    proto.set_type(onnx::AttributeProto::INT);
    proto.set_i(value);
    return proto.SerializeAsString();
  };
  const std::string metadata(300, 'm');
  std::string node;
  wire::AppendBytes(&node, N::kNameFieldNumber, "n");
  wire::AppendBytes(&node, N::kDocStringFieldNumber, metadata);
  wire::AppendBytes(&node, N::kAttributeFieldNumber, attribute("first", 1));
  wire::AppendBytes(&node, N::kOutputFieldNumber, "y");
  wire::AppendBytes(&node, N::kOpTypeFieldNumber, "Op");
  wire::AppendBytes(&node, N::kDocStringFieldNumber, metadata);
  wire::AppendBytes(&node, N::kAttributeFieldNumber, attribute("last", 2));
  wire::AppendBytes(&node, N::kDocStringFieldNumber, metadata);
  std::string graph;
  wire::AppendBytes(&graph, onnx::GraphProto::kNodeFieldNumber, node);
  proto.clear_graph();
  std::string bytes = proto.SerializeAsString();
  wire::AppendBytes(&bytes, onnx::ModelProto::kGraphFieldNumber, graph);
  auto model = MustLoad(bytes);
  ASSERT_NE(model, nullptr);
  const Node& read = *FindNode(model->graph(), "n");
  EXPECT_EQ(IntAttribute(read, "first"), 1);
  EXPECT_EQ(IntAttribute(read, "last"), 2);
  EXPECT_EQ(IntAttribute(read, "m"), std::nullopt);
  EXPECT_EQ(ReadAttributes(read).size(), 2u);
}

TEST(Attribute, DecodesEveryKind) {
  onnx::ModelProto proto = EmptyModel();
  onnx::NodeProto* node = AddNode(proto.mutable_graph(), "Op", {}, {"y"}, "n");
  AddAttribute(node, "f", onnx::AttributeProto::FLOAT)->set_f(0.5f);
  AddAttribute(node, "i", onnx::AttributeProto::INT)->set_i(-7);
  AddAttribute(node, "s", onnx::AttributeProto::STRING)->set_s("text");
  auto* floats = AddAttribute(node, "floats", onnx::AttributeProto::FLOATS);
  floats->add_floats(1.5f);
  floats->add_floats(-2);
  auto* ints = AddAttribute(node, "ints", onnx::AttributeProto::INTS);
  for (int64_t i : {int64_t{-1}, std::numeric_limits<int64_t>::max(), std::numeric_limits<int64_t>::min()}) ints->add_ints(i);
  AddAttribute(node, "strings", onnx::AttributeProto::STRINGS)->add_strings("a");
  node->mutable_attribute(5)->add_strings("");
  auto* tensor = AddAttribute(node, "t", onnx::AttributeProto::TENSOR)->mutable_t();
  tensor->set_data_type(onnx::TensorProto::FLOAT);
  tensor->add_dims(2);
  tensor->add_float_data(3);
  tensor->add_float_data(4);
  AddAttribute(node, "ref", onnx::AttributeProto::INT)->set_ref_attr_name("outer");
  node->add_attribute()->set_name("untyped");
  node->mutable_attribute(8)->set_i(5);
  auto model = MustLoad(proto.SerializeAsString());
  const Node& read = *FindNode(model->graph(), "n");
  EXPECT_EQ(FloatAttribute(read, "f"), 0.5f);
  EXPECT_EQ(IntAttribute(read, "i"), -7);
  EXPECT_EQ(IntAttribute(read, "f"), std::nullopt);
  EXPECT_EQ(IntAttribute(read, "absent"), std::nullopt);
  EXPECT_EQ(StringAttribute(read, "s"), "text");
  EXPECT_EQ(IntsAttribute(read, "ints"),
            (std::vector<int64_t>{-1, std::numeric_limits<int64_t>::max(), std::numeric_limits<int64_t>::min()}));
  EXPECT_EQ(FindAttribute(read, "floats")->floats[1], -2);
  ASSERT_EQ(FindAttribute(read, "strings")->strings.size(), 2u);
  EXPECT_EQ(FindAttribute(read, "strings")->strings[0], "a");
  EXPECT_EQ(FindAttribute(read, "ref")->ref_attr_name, "outer");
  EXPECT_EQ(IntAttribute(read, "untyped"), 5);
  EXPECT_EQ(*ReadFloats(*model, FindAttribute(read, "t")->tensor, 10), (std::vector<double>{3, 4}));
  EXPECT_EQ(ReadAttributes(read).size(), 9u);

  // Copied to a new node, each is the same bytes.
  Rewriter rewriter(model.get());
  NewNode copy;
  copy.op_type = "Copy";
  copy.name = "copy";
  copy.attributes = ReadAttributes(read);
  const Node* made = rewriter.Insert(copy, 1, &model->graph(), "z");
  EXPECT_EQ(*ReadFloats(*model, FindAttribute(*made, "t")->tensor, 10), (std::vector<double>{3, 4}));
  const onnx::ModelProto saved = Parse(MustSave(*model));
  ASSERT_EQ(saved.graph().node_size(), 2);
  for (int i = 0; i < 9; ++i) {
    EXPECT_EQ(saved.graph().node(0).attribute(i).SerializeAsString(), node->attribute(i).SerializeAsString());
  }
}

TEST(Attribute, TakesPackedListsAndPayloadsInTheFile) {
  std::string packed;
  for (int i = 0; i < 5; ++i) wire::AppendVarint(&packed, static_cast<uint64_t>(i * 100));
  std::string attribute;
  wire::AppendBytes(&attribute, onnx::AttributeProto::kIntsFieldNumber, packed);
  wire::AppendInt(&attribute, onnx::AttributeProto::kIntsFieldNumber, 500);
  wire::AppendInt(&attribute, onnx::AttributeProto::kTypeFieldNumber, onnx::AttributeProto::INTS);
  wire::AppendBytes(&attribute, onnx::AttributeProto::kNameFieldNumber, "perm");
  std::string node;
  wire::AppendBytes(&node, onnx::NodeProto::kAttributeFieldNumber, attribute);
  wire::AppendBytes(&node, onnx::NodeProto::kNameFieldNumber, "n");
  std::string graph;
  wire::AppendBytes(&graph, onnx::GraphProto::kNodeFieldNumber, node);
  std::string bytes;
  wire::AppendBytes(&bytes, onnx::ModelProto::kGraphFieldNumber, graph);
  auto model = MustLoad(bytes);
  EXPECT_EQ(IntsAttribute(*FindNode(model->graph(), "n"), "perm"), (std::vector<int64_t>{0, 100, 200, 300, 400, 500}));

  // A large tensor in an attribute is copied to a new node with its payload.
  const onnx::ModelProto rich = RichModel();
  model = MustLoad(rich.SerializeAsString());
  const Node* big = FindNode(model->graph(), "big");
  Rewriter rewriter(model.get());
  NewNode copy;
  copy.op_type = "Constant";
  copy.attributes = ReadAttributes(*big);
  copy.attributes.push_back(Attribute::OfTensor("again", copy.attributes[0].tensor));
  const Node* made = rewriter.Insert(copy, 1, big->graph, "z");
  EXPECT_EQ((*ReadIntegers(*model, FindAttribute(*made, "again")->tensor, 3000))[10], 10000);
  const onnx::ModelProto saved = Parse(MustSave(*model));
  // A node that reads nothing stands first.
  EXPECT_EQ(saved.graph().node(0).attribute(0).SerializeAsString(), rich.graph().node(4).attribute(0).SerializeAsString());
  EXPECT_EQ(saved.graph().node(0).attribute(1).t().SerializeAsString(),
            rich.graph().node(4).attribute(0).t().SerializeAsString());
}

Tensor InMemory(DataType type, const std::vector<int64_t>& dims, std::string_view bytes) {
  Tensor tensor;
  tensor.type = type;
  tensor.storage = Storage::kMemory;
  tensor.dims = dims;
  tensor.memory = bytes;
  return tensor;
}

TEST(TensorData, DecodesNarrowTypes) {
  Model model;
  const std::vector<int64_t> three = {3};
  const std::vector<int64_t> two = {2};
  const std::vector<int64_t> four = {4};
  EXPECT_EQ(*ReadIntegers(model, InMemory(DataType::kInt4, three, "\x8f\x07"), 9), (std::vector<int64_t>{-1, -8, 7}));
  EXPECT_EQ(*ReadIntegers(model, InMemory(DataType::kUint4, three, "\x8f\x07"), 9), (std::vector<int64_t>{15, 8, 7}));
  EXPECT_EQ(*ReadIntegers(model, InMemory(DataType::kInt2, four, "\x1b"), 9), (std::vector<int64_t>{-1, -2, 1, 0}));
  EXPECT_EQ(*ReadIntegers(model, InMemory(DataType::kBool, two, std::string_view("\0\1", 2)), 9), (std::vector<int64_t>{0, 1}));
  EXPECT_EQ(*ReadIntegers(model, InMemory(DataType::kInt8, two, "\xff\x7f"), 9), (std::vector<int64_t>{-1, 127}));
  EXPECT_EQ(*ReadFloats(model, InMemory(DataType::kFloat16, three, std::string_view("\x00\x3c\x01\x00\xff\xfb", 6)), 9),
            (std::vector<double>{1, std::ldexp(1, -24), -65504}));
  EXPECT_EQ(*ReadFloats(model, InMemory(DataType::kBfloat16, two, std::string_view("\x80\x3f\x80\xff", 4)), 9),
            (std::vector<double>{1, -std::numeric_limits<double>::infinity()}));
  EXPECT_EQ(*ReadFloats(model, InMemory(DataType::kFloat8E4M3FN, two, "\x7e\x38"), 9), (std::vector<double>{448, 1}));
  EXPECT_EQ(*ReadFloats(model, InMemory(DataType::kFloat8E5M2, two, "\x7b\x7c"), 9),
            (std::vector<double>{57344, std::numeric_limits<double>::infinity()}));
  EXPECT_TRUE(std::isnan((*ReadFloats(model, InMemory(DataType::kFloat8E4M3FNUZ, {}, "\x80"), 9))[0]));
  EXPECT_EQ(*ReadFloats(model, InMemory(DataType::kFloat4E2M1, two, "\xf7"), 9), (std::vector<double>{6, -6}));
  EXPECT_EQ(ReadFloats(model, InMemory(DataType::kFloat, two, "abcd"), 9).status().code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(ReadFloats(model, InMemory(DataType::kInt8, two, "ab"), 9).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(ReadIntegers(model, InMemory(DataType::kInt8, two, "ab"), 1).status().code(), absl::StatusCode::kResourceExhausted);
  const std::vector<int64_t> huge = {std::numeric_limits<int64_t>::max(), 4};
  EXPECT_EQ(ReadBytes(model, InMemory(DataType::kInt8, huge, "ab"), 1).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(TensorData, ReadsTypedFields) {
  onnx::ModelProto proto = EmptyModel();
  auto add = [&](const char* name, int type, int64_t count) {
    auto* tensor = proto.mutable_graph()->add_initializer();
    tensor->set_name(name);
    tensor->set_data_type(type);
    tensor->add_dims(count);
    return tensor;
  };
  auto* half = add("half", onnx::TensorProto::FLOAT16, 2);
  half->add_int32_data(0x3c00);
  half->add_int32_data(0xc000);
  auto* small = add("int8", onnx::TensorProto::INT8, 2);
  small->add_int32_data(-1);
  small->add_int32_data(5);
  add("double", onnx::TensorProto::DOUBLE, 1)->add_double_data(0.1);
  auto* wide = add("uint64", onnx::TensorProto::UINT64, 1);
  wide->add_uint64_data(std::numeric_limits<uint64_t>::max());
  add("int4", onnx::TensorProto::INT4, 2)->add_int32_data(0x7f);
  auto* many = add("many", onnx::TensorProto::FLOAT, 5000);
  for (int i = 0; i < 5000; ++i) many->add_float_data(static_cast<float>(i));
  add("short", onnx::TensorProto::INT64, 2)->add_int64_data(1);
  add("empty", onnx::TensorProto::INT64, 0);
  auto model = MustLoad(proto.SerializeAsString());
  auto tensor = [&](const char* name) -> const Tensor& {
    for (const Value* value : model->graph().initializers()) {
      if (ValueName(*value) == name) return *value->initializer;
    }
    std::abort();
  };
  EXPECT_EQ(*ReadFloats(*model, tensor("half"), 9), (std::vector<double>{1, -2}));
  EXPECT_EQ(*ReadIntegers(*model, tensor("int8"), 9), (std::vector<int64_t>{-1, 5}));
  EXPECT_EQ(*ReadFloats(*model, tensor("double"), 9), (std::vector<double>{0.1}));
  EXPECT_EQ(ReadIntegers(*model, tensor("uint64"), 9).status().code(), absl::StatusCode::kOutOfRange);
  EXPECT_EQ(*ReadIntegers(*model, tensor("int4"), 9), (std::vector<int64_t>{-1, 7}));
  EXPECT_EQ((*ReadFloats(*model, tensor("many"), 5000))[4999], 4999);
  EXPECT_EQ(ReadIntegers(*model, tensor("short"), 9).status().code(), absl::StatusCode::kDataLoss);
  EXPECT_TRUE(ReadIntegers(*model, tensor("empty"), 9)->empty());
}

TEST(Encode, RoundsToNearestEven) {
  auto bits = [](DataType type, double value) {
    const std::string bytes = EncodeNumber(type, value);
    return static_cast<uint8_t>(bytes[0]) | static_cast<uint8_t>(bytes[1]) << 8;
  };
  EXPECT_EQ(bits(DataType::kFloat16, 1.0), 0x3c00);
  EXPECT_EQ(bits(DataType::kFloat16, -65504), 0xfbff);
  EXPECT_EQ(bits(DataType::kFloat16, 65519.99), 0x7bff);
  EXPECT_EQ(bits(DataType::kFloat16, 65520), 0x7c00);
  EXPECT_EQ(bits(DataType::kFloat16, 1e30), 0x7c00);
  EXPECT_EQ(bits(DataType::kFloat16, std::ldexp(1, -24)), 1);
  EXPECT_EQ(bits(DataType::kFloat16, std::ldexp(1, -25)), 0);
  EXPECT_EQ(bits(DataType::kFloat16, std::ldexp(3, -26)), 1);
  EXPECT_EQ(bits(DataType::kFloat16, 2049), 0x6800);  // between 2048 and 2050: the even one
  EXPECT_EQ(bits(DataType::kFloat16, 2051), 0x6802);
  EXPECT_EQ(bits(DataType::kFloat16, std::ldexp(2047.5, -25)),
            0x0400);  // a subnormal that rounds to a normal
  EXPECT_EQ(bits(DataType::kBfloat16, 3.140625), 0x4049);
  EXPECT_EQ(bits(DataType::kBfloat16, -std::numeric_limits<double>::infinity()), 0xff80);
  EXPECT_EQ(bits(DataType::kFloat16, std::nan("")) & 0x7e00, 0x7e00);
  EXPECT_EQ(EncodeNumber(DataType::kInt8, 1), "");
  // What no integer is becomes the nearest one that there is. Found by optimize_fuzz in a mask of an attention of integers.
  const double infinity = std::numeric_limits<double>::infinity();
  EXPECT_EQ(EncodeNumber(DataType::kInt32, -infinity), std::string("\0\0\0\x80", 4));
  EXPECT_EQ(EncodeNumber(DataType::kInt32, 1e300), "\xff\xff\xff\x7f");
  EXPECT_EQ(EncodeNumber(DataType::kInt64, infinity), "\xff\xff\xff\xff\xff\xff\xff\x7f");
  EXPECT_EQ(EncodeNumber(DataType::kInt64, std::nan("")), std::string(8, '\0'));
  EXPECT_EQ(EncodeNumber(DataType::kBool, 1), std::string(1, '\1'));
  // Back and forth over every float16.
  Model model;
  for (int i = 0; i < 0x10000; ++i) {
    if ((i & 0x7c00) == 0x7c00 && (i & 0x3ff) != 0) continue;
    const char bytes[] = {static_cast<char>(i), static_cast<char>(i >> 8)};
    const double value = (*ReadFloats(model, InMemory(DataType::kFloat16, {}, {bytes, 2}), 1))[0];
    ASSERT_EQ(bits(DataType::kFloat16, value), i);
  }
}

}  // namespace
}  // namespace ascend_fuse
