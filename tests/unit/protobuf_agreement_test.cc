// What the loader takes, libprotobuf parses: as proto2, as ONNX's own readers do, and as proto3, as ATC does, which refuses
// strings that are not UTF-8. Of bytes that no message is made of for the IR (metadata, types, functions, ...) as well.
#include <string>
#include <vector>

#include "google/protobuf/descriptor.h"
#include "google/protobuf/message.h"
#include "ir/onnx/load.h"
#include "ir/wire.h"
#include "proto/strict_onnx.pb.h"
#include "tests/unit/models.h"

namespace ascend_fuse {
namespace {

using namespace ascend_fuse::testing;  // NOLINT
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

bool ProtobufParses(const std::string& bytes) {
  onnx::ModelProto proto2;
  strict_onnx::ModelProto proto3;
  return proto2.ParseFromString(bytes) && proto3.ParseFromString(bytes);
}

// Sets every field of a message and of those in it, `depth` levels of them; of a oneof the field of that number.
void FillAll(Message* message, int depth, int oneof_choice = 0) {
  const auto* descriptor = message->GetDescriptor();
  const auto* reflection = message->GetReflection();
  for (int i = 0; i < descriptor->field_count(); ++i) {
    const FieldDescriptor* field = descriptor->field(i);
    const auto* oneof = field->real_containing_oneof();
    if (oneof != nullptr && field->index_in_oneof() != oneof_choice % oneof->field_count()) continue;
    const bool many = field->is_repeated();
    switch (field->cpp_type()) {
      case FieldDescriptor::CPPTYPE_MESSAGE:
        if (depth > 0) {
          FillAll(many ? reflection->AddMessage(message, field) : reflection->MutableMessage(message, field), depth - 1,
                  oneof_choice + 1);
        }
        break;
      case FieldDescriptor::CPPTYPE_STRING:
        many ? reflection->AddString(message, field, "t\u00e9") : reflection->SetString(message, field, "t\u00e9");
        break;
      case FieldDescriptor::CPPTYPE_INT64:
        many ? reflection->AddInt64(message, field, 300) : reflection->SetInt64(message, field, 300);
        break;
      case FieldDescriptor::CPPTYPE_INT32:
        many ? reflection->AddInt32(message, field, 7) : reflection->SetInt32(message, field, 7);
        break;
      case FieldDescriptor::CPPTYPE_UINT64:
        many ? reflection->AddUInt64(message, field, 300) : reflection->SetUInt64(message, field, 300);
        break;
      case FieldDescriptor::CPPTYPE_FLOAT:
        many ? reflection->AddFloat(message, field, 1.5f) : reflection->SetFloat(message, field, 1.5f);
        break;
      case FieldDescriptor::CPPTYPE_DOUBLE:
        many ? reflection->AddDouble(message, field, 1.5) : reflection->SetDouble(message, field, 1.5);
        break;
      default:
        break;  // enums keep their first value
    }
  }
}

strict_onnx::AttributeProto* AddAttribute(strict_onnx::NodeProto* node, const char* name,
                                          strict_onnx::AttributeProto::AttributeType type) {
  strict_onnx::AttributeProto* attribute = node->add_attribute();
  attribute->set_name(name);
  attribute->set_type(type);
  attribute->set_doc_string("d\u00e9");
  return attribute;
}

void SetTensor(strict_onnx::TensorProto* tensor, const char* name) {
  FillAll(tensor, 2);
  tensor->clear_float_data();
  tensor->clear_int32_data();
  tensor->clear_string_data();
  tensor->clear_uint64_data();
  tensor->clear_double_data();
  tensor->clear_raw_data();
  tensor->clear_external_data();
  tensor->set_name(name);
  tensor->set_data_type(strict_onnx::TensorProto::INT64);
  tensor->set_dims(0, 1);
}

// A model that is valid and has every field that ONNX knows.
std::string FullModel() {
  using A = strict_onnx::AttributeProto;
  strict_onnx::ModelProto model;
  FillAll(&model, 3);
  model.set_ir_version(10);
  model.clear_opset_import();
  model.add_opset_import()->set_version(17);
  FillAll(model.add_training_info(), 2);
  FillAll(model.mutable_functions(0), 2);
  strict_onnx::GraphProto* graph = model.mutable_graph();
  graph->clear_node();
  graph->clear_initializer();
  graph->clear_sparse_initializer();
  graph->clear_input();
  graph->clear_output();
  SetTensor(graph->add_initializer(), "w");
  SetTensor(graph->add_sparse_initializer()->mutable_values(), "sparse");
  SetTensor(graph->mutable_sparse_initializer(0)->mutable_indices(), "");
  FillAll(graph->add_input(), 6);
  graph->mutable_input(0)->set_name("x");
  for (int choice = 0; choice < 6; ++choice) FillAll(graph->add_value_info()->mutable_type(), 4, choice);
  strict_onnx::NodeProto* node = graph->add_node();
  FillAll(node, 4);
  node->clear_attribute();
  node->set_input(0, "x");
  node->set_output(0, "y");
  AddAttribute(node, "f", A::FLOAT)->set_f(1);
  AddAttribute(node, "i", A::INT)->set_i(5);
  AddAttribute(node, "s", A::STRING)->set_s("s\u00e9");
  SetTensor(AddAttribute(node, "t", A::TENSOR)->mutable_t(), "t");
  SetTensor(AddAttribute(node, "ts", A::TENSORS)->add_tensors(), "t");
  FillAll(AddAttribute(node, "tp", A::TYPE_PROTO)->mutable_tp(), 3);
  FillAll(AddAttribute(node, "tps", A::TYPE_PROTOS)->add_type_protos(), 3, 2);
  SetTensor(AddAttribute(node, "st", A::SPARSE_TENSOR)->mutable_sparse_tensor()->mutable_values(), "t");
  for (int i = 0; i < 3; ++i) {
    AddAttribute(node, "ints", A::INTS)->add_ints(1000 * i);
    AddAttribute(node, "floats", A::FLOATS)->add_floats(1);
    AddAttribute(node, "strings", A::STRINGS)->add_strings("s\u00e9");
  }
  strict_onnx::GraphProto* body = AddAttribute(node, "g", A::GRAPH)->mutable_g();
  strict_onnx::NodeProto* inner = body->add_node();
  inner->set_op_type("Relu");
  inner->add_input("y2");
  inner->add_output("z");
  body->add_input()->set_name("y2");
  body->add_output()->set_name("z");
  graph->add_output()->set_name("y");
  return model.SerializeAsString();
}

TEST(ProtobufAgreement, TheFullModelIsTaken) {
  const std::string bytes = FullModel();
  auto model = LoadModelFromBytes(bytes);
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_TRUE(ProtobufParses(bytes));
}

// Every byte of a model that has every field, changed in several ways.
TEST(ProtobufAgreement, WhateverByteIsChanged) {
  const std::string good = FullModel();
  int taken = 0;
  int wrong = 0;
  for (size_t at = 0; at < good.size(); ++at) {
    for (const int change : {0x01, 0x02, 0x03, 0x04, 0x08, 0x10, 0x20, 0x40, 0x80, 0x7F, 0xFF, 0xC0}) {
      std::string bytes = good;
      bytes[at] = static_cast<char>(bytes[at] ^ change);
      auto model = LoadModelFromBytes(bytes);
      if (!model.ok()) continue;
      ++taken;
      if (ProtobufParses(bytes)) continue;
      ++wrong;
      if (wrong <= 20) ADD_FAILURE() << "byte " << at << " of " << good.size() << " changed by " << change;
    }
  }
  EXPECT_EQ(wrong, 0) << "of " << taken << " that were taken";
  EXPECT_GT(taken, 1000);
}

// What the loader says of a model with these bytes after it; they must be what makes protobuf refuse it, too.
std::string RefusalOf(const std::string& bytes) {
  EXPECT_FALSE(ProtobufParses(bytes));
  auto model = LoadModelFromBytes(bytes);
  return model.ok() ? "taken" : std::string(model.status().message());
}

std::string Field(uint32_t number, const std::string& body) {
  std::string bytes;
  wire::AppendBytes(&bytes, number, body);
  return bytes;
}

TEST(ProtobufAgreement, SaysFieldAndByte) {
  onnx::ModelProto model = RichModel();
  const std::string good = model.SerializeAsString();
  const auto at = [&good](size_t more) { return "at byte " + std::to_string(good.size() + more); };
  using M = onnx::ModelProto;
  std::string said = RefusalOf(good + Field(M::kMetadataPropsFieldNumber, Field(1, "k") + Field(2, "caf\xe9")));
  EXPECT_HAS(said, "field 2 of StringStringEntryProto " + at(2 + 3) + " is not UTF-8 text");
  said = RefusalOf(good + Field(M::kMetadataPropsFieldNumber,
                                "\x0a\x05"
                                "k"));
  EXPECT_HAS(said, "a length beyond the end of the enclosing message " + at(2));
  said = RefusalOf(good + Field(M::kFunctionsFieldNumber, Field(7, Field(5, Field(8, "\x80")))));
  EXPECT_HAS(said, "field 8 of AttributeProto " + at(7) + " ends inside a number");
  model.mutable_graph()->mutable_node(0)->set_name("\xed\xa0\x80");  // a surrogate
  EXPECT_HAS(RefusalOf(model.SerializeAsString()), "is not UTF-8 text");
}

// Of an enum's number that ONNX does not have, proto2 keeps what it had before, proto3 does not: "{type: STRING, type: 64}".
TEST(ProtobufAgreement, NumbersOfEnumsThatOnnxDoesNotHave) {
  const auto said = [](int64_t type, int64_t location) {
    onnx::ModelProto model = RichModel();
    onnx::AttributeProto* attribute = model.mutable_graph()->mutable_node(0)->add_attribute();
    attribute->set_name("enums");
    attribute->set_type(onnx::AttributeProto::TENSOR);
    attribute->mutable_t()->set_data_type(onnx::TensorProto::FLOAT);
    attribute->mutable_t()->add_dims(0);
    wire::AppendInt(attribute->mutable_t()->mutable_unknown_fields(), onnx::TensorProto::kDataLocationFieldNumber, location);
    wire::AppendInt(attribute->mutable_unknown_fields(), onnx::AttributeProto::kTypeFieldNumber, type);
    auto loaded = LoadModelFromBytes(model.SerializeAsString());
    return loaded.ok() ? "taken" : std::string(loaded.status().message());
  };
  EXPECT_EQ(said(onnx::AttributeProto::TENSOR, onnx::TensorProto::DEFAULT), "taken");
  EXPECT_HAS(said(64, onnx::TensorProto::DEFAULT), "has type 64, which ONNX does not have");
  EXPECT_HAS(said(int64_t{1} << 31, onnx::TensorProto::DEFAULT), "has type -2147483648, which ONNX does not have");
  EXPECT_HAS(said(onnx::AttributeProto::TENSOR, 2), "data_location is not one of ONNX");
}

// Tensor data of 4 KB and more stays in the file: what protobuf would refuse of it is seen nevertheless.
TEST(ProtobufAgreement, PayloadsThatEndInsideANumber) {
  using T = onnx::TensorProto;
  for (const int number : {T::kFloatDataFieldNumber, T::kDoubleDataFieldNumber, T::kInt32DataFieldNumber,
                           T::kInt64DataFieldNumber, T::kUint64DataFieldNumber}) {
    onnx::ModelProto model = RichModel();
    std::string data(100001, '\x01');
    data.back() = '\xff';
    std::string tensor = Field(T::kNameFieldNumber, "p") + Field(static_cast<uint32_t>(number), data);
    wire::AppendInt(&tensor, T::kDimsFieldNumber, 1);
    const std::string graph = model.graph().SerializeAsString() + Field(onnx::GraphProto::kInitializerFieldNumber, tensor);
    model.clear_graph();
    EXPECT_HAS(RefusalOf(model.SerializeAsString() + Field(onnx::ModelProto::kGraphFieldNumber, graph)),
               "a packed list that ends inside a number");
  }
}

// Bodies in bodies, and types in types, up to the level that protobuf reads and one more.
TEST(ProtobufAgreement, NestsAsDeepAsProtobuf) {
  const auto with_types = [](int depth) {
    std::string type;
    for (int i = 0; i < depth; ++i) type = Field(4, Field(1, type));  // a sequence of it
    onnx::ModelProto model = RichModel();
    const std::string value_info = Field(1, "x2") + Field(2, type);
    const std::string graph = model.graph().SerializeAsString() + Field(onnx::GraphProto::kValueInfoFieldNumber, value_info);
    model.clear_graph();
    return model.SerializeAsString() + Field(onnx::ModelProto::kGraphFieldNumber, graph);
  };
  const auto with_bodies = [](int depth) {
    std::string graph;
    for (int i = 0; i < depth; ++i) {
      graph = Field(1, Field(4, "If") + Field(5, Field(1, "then_branch") + Field(6, graph)));
    }
    return Field(onnx::ModelProto::kGraphFieldNumber, graph);
  };
  for (int depth = 1; depth < 60; ++depth) {
    EXPECT_EQ(LoadModelFromBytes(with_types(depth)).ok(), ProtobufParses(with_types(depth))) << depth;
    EXPECT_EQ(LoadModelFromBytes(with_bodies(depth)).ok(), ProtobufParses(with_bodies(depth))) << depth;
  }
  EXPECT_HAS(RefusalOf(with_bodies(34)), "messages are nested more than 100 deep at byte");
}

}  // namespace
}  // namespace ascend_fuse
