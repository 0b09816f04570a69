// Decodes attributes of nodes from the file's own bytes when a rule asks for them.
#include "ir/attribute.h"

#include <cstring>

#include "ir/graph.h"
#include "ir/model.h"
#include "ir/onnx/model_file.h"
#include "ir/onnx/tensor_proto.h"
#include "ir/sparse.h"
#include "proto/onnx.pb.h"

namespace ascend_fuse {
namespace {

using onnx::AttributeProto;

wire::Cursor Open(const Node& node, const EncodedSpan& span) {
  const ModelFile* model_file = node.graph->model().model_file();
  if (span.file.offset < 0 || model_file == nullptr) {
    return wire::Cursor(span.data, 0, span.file.size, &wire::kNoHoles);
  }
  return model_file->Open(span);
}

// The part of a node that holds its attributes. Only attributes have holes: none lies before the first one.
wire::Cursor OpenAttributes(const Node& node) {
  EncodedSpan span = node.encoded;
  if (node.attributes_end <= node.attributes_begin) return wire::Cursor();
  const int64_t end = node.attributes_end == Node::kToTheEnd ? span.file.size : node.attributes_end;
  span.data += node.attributes_begin;
  if (span.file.offset >= 0) span.file.offset += node.attributes_begin;
  span.file.size = end - node.attributes_begin;
  return Open(node, span);
}

std::string_view NameOf(const wire::Field& attribute) {
  wire::Cursor cursor(attribute);
  wire::Field field;
  std::string_view name;
  while (cursor.Next(&field)) {
    if (field.number == AttributeProto::kNameFieldNumber && field.type == wire::kBytes) {
      name = field.text();
      // The last one would count; the name is there once, as the first field, in every file that protobuf
      // wrote.
      if (!name.empty()) return name;
    }
  }
  return name;
}

template <typename List>
void AppendInts(const wire::Field& field, List* list) {
  if (field.type == wire::kVarint) {
    list->push_back(static_cast<int64_t>(field.value));
  } else if (field.type == wire::kBytes && !field.has_hole()) {
    wire::Cursor packed(field);
    uint64_t value = 0;
    while (!packed.AtEnd() && packed.Varint(&value)) list->push_back(static_cast<int64_t>(value));
  }
}

float ToFloat(uint32_t bits) {
  float value;
  std::memcpy(&value, &bits, sizeof(value));
  return value;
}

template <typename List>
void AppendFloats(const wire::Field& field, List* list) {
  if (field.type == wire::kFixed32) {
    list->push_back(ToFloat(static_cast<uint32_t>(field.value)));
  } else if (field.type == wire::kBytes && !field.has_hole()) {
    wire::Cursor packed(field);
    uint32_t bits;
    while (!packed.AtEnd() && packed.Fixed32(&bits)) list->push_back(ToFloat(bits));
  }
}

// Bytes of the body that are in memory: its size without the holes in it.
std::string_view InMemory(const wire::Field& field) {
  int64_t size = field.size;
  for (const FileRange* hole = field.hole; hole->offset < field.end(); ++hole) size -= hole->size;
  return {reinterpret_cast<const char*>(field.data), static_cast<size_t>(size)};
}

Attribute Decode(const Node& node, const wire::Field& message) {
  const uint32_t* types = AttributeWireTypes();
  Attribute attribute;
  attribute.encoded = InMemory(message);
  AttributeType found = AttributeType::kUndefined;  // from the field that is there; IR version 1 has no `type`
  wire::Cursor cursor(message);
  wire::Field field;
  while (cursor.Next(&field)) {
    if (field.number >= 32 || (types[field.number] >> field.type & 1) == 0) continue;
    switch (field.number) {
      case AttributeProto::kNameFieldNumber:
        attribute.name = field.text();
        break;
      case AttributeProto::kRefAttrNameFieldNumber:
        attribute.ref_attr_name = field.text();
        break;
      case AttributeProto::kTypeFieldNumber:
        attribute.type = static_cast<AttributeType>(static_cast<int32_t>(field.value));
        break;
      case AttributeProto::kFFieldNumber:
        attribute.f = ToFloat(static_cast<uint32_t>(field.value));
        found = AttributeType::kFloat;
        break;
      case AttributeProto::kIFieldNumber:
        attribute.i = static_cast<int64_t>(field.value);
        found = AttributeType::kInt;
        break;
      case AttributeProto::kSFieldNumber:
        attribute.s = field.text();
        found = AttributeType::kString;
        break;
      case AttributeProto::kFloatsFieldNumber:
        AppendFloats(field, &attribute.floats);
        found = AttributeType::kFloats;
        break;
      case AttributeProto::kIntsFieldNumber:
        AppendInts(field, &attribute.ints);
        found = AttributeType::kInts;
        break;
      case AttributeProto::kStringsFieldNumber:
        attribute.strings.push_back(field.text());
        found = AttributeType::kStrings;
        break;
      case AttributeProto::kTFieldNumber:
        // A damaged tensor was refused when the model was loaded.
        if (ParseTensor(field, &node.graph->model(), &attribute.tensor).ok()) found = AttributeType::kTensor;
        if (node.encoded.file.offset < 0) attribute.tensor.proto.offset = -1;
        break;
      case AttributeProto::kGFieldNumber:
        found = AttributeType::kGraph;
        break;
      case AttributeProto::kGraphsFieldNumber:
        found = AttributeType::kGraphs;
        break;
      case AttributeProto::kTensorsFieldNumber:
        found = AttributeType::kTensors;
        break;
      case AttributeProto::kSparseTensorFieldNumber:
        found = AttributeType::kSparseTensor;
        break;
      case AttributeProto::kSparseTensorsFieldNumber:
        found = AttributeType::kSparseTensors;
        break;
      case AttributeProto::kTpFieldNumber:
        found = AttributeType::kTypeProto;
        break;
      case AttributeProto::kTypeProtosFieldNumber:
        found = AttributeType::kTypeProtos;
        break;
      default:
        break;
    }
  }
  if (attribute.type == AttributeType::kUndefined) attribute.type = found;
  return attribute;
}

}  // namespace

std::optional<SparseTensor> SparseAttribute(const Node& node, std::string_view name) {
  using onnx::SparseTensorProto;
  wire::Cursor attributes = OpenAttributes(node);
  wire::Field field;
  while (attributes.Next(&field)) {
    if (field.number != onnx::NodeProto::kAttributeFieldNumber || field.type != wire::kBytes || NameOf(field) != name) continue;
    wire::Cursor attribute(field);
    wire::Field part;
    while (attribute.Next(&part)) {
      if (part.number != AttributeProto::kSparseTensorFieldNumber || part.type != wire::kBytes) continue;
      SparseTensor sparse;
      wire::Cursor cursor(part);
      wire::Field member;
      while (cursor.Next(&member)) {
        const bool values = member.number == SparseTensorProto::kValuesFieldNumber;
        if (member.number == SparseTensorProto::kDimsFieldNumber) {
          AppendInts(member, &sparse.dims);
        } else if (values || member.number == SparseTensorProto::kIndicesFieldNumber) {
          Tensor* const tensor = values ? &sparse.values : &sparse.indices;
          if (!ParseTensor(member, &node.graph->model(), tensor).ok()) return std::nullopt;
          if (node.encoded.file.offset < 0) tensor->proto.offset = -1;
        }
      }
      return sparse;
    }
  }
  return std::nullopt;
}

std::optional<Attribute> FindAttribute(const Node& node, std::string_view name) {
  wire::Cursor cursor = OpenAttributes(node);
  wire::Field field;
  while (cursor.Next(&field)) {
    if (field.number != onnx::NodeProto::kAttributeFieldNumber || field.type != wire::kBytes) continue;
    if (NameOf(field) == name) return Decode(node, field);
  }
  return std::nullopt;
}

std::string_view NodeMetadata(const Node& node, std::string_view key) {
  wire::Cursor cursor = Open(node, node.encoded);
  wire::Field field;
  while (cursor.Next(&field)) {
    if (field.number != onnx::NodeProto::kMetadataPropsFieldNumber || field.type != wire::kBytes) continue;
    wire::Cursor entry(field);
    wire::Field part;
    std::string_view name;
    std::string_view value;
    while (entry.Next(&part)) {
      if (part.type != wire::kBytes) continue;
      if (part.number == onnx::StringStringEntryProto::kKeyFieldNumber) name = part.text();
      if (part.number == onnx::StringStringEntryProto::kValueFieldNumber) value = part.text();
    }
    if (name == key) return value;
  }
  return {};
}

std::string_view NodeOverload(const Node& node) {
  wire::Cursor cursor = Open(node, node.encoded);
  wire::Field field;
  std::string_view overload;
  while (cursor.Next(&field)) {
    if (field.number == onnx::NodeProto::kOverloadFieldNumber && field.type == wire::kBytes) overload = field.text();
  }
  return overload;
}

std::vector<Attribute> ReadAttributes(const Node& node) {
  std::vector<Attribute> attributes;
  wire::Cursor cursor = OpenAttributes(node);
  wire::Field field;
  while (cursor.Next(&field)) {
    if (field.number != onnx::NodeProto::kAttributeFieldNumber || field.type != wire::kBytes) continue;
    attributes.push_back(Decode(node, field));
  }
  return attributes;
}

std::optional<int64_t> IntAttribute(const Node& node, std::string_view name) {
  std::optional<Attribute> attribute = FindAttribute(node, name);
  if (!attribute.has_value() || attribute->type != AttributeType::kInt) return std::nullopt;
  return attribute->i;
}

std::optional<float> FloatAttribute(const Node& node, std::string_view name) {
  std::optional<Attribute> attribute = FindAttribute(node, name);
  if (!attribute.has_value() || attribute->type != AttributeType::kFloat) return std::nullopt;
  return attribute->f;
}

std::optional<std::string_view> StringAttribute(const Node& node, std::string_view name) {
  std::optional<Attribute> attribute = FindAttribute(node, name);
  if (!attribute.has_value() || attribute->type != AttributeType::kString) return std::nullopt;
  return attribute->s;
}

std::optional<std::vector<int64_t>> IntsAttribute(const Node& node, std::string_view name) {
  std::optional<Attribute> attribute = FindAttribute(node, name);
  if (!attribute.has_value() || attribute->type != AttributeType::kInts) return std::nullopt;
  return std::vector<int64_t>(attribute->ints.begin(), attribute->ints.end());
}

Attribute Attribute::Int(std::string_view name, int64_t value) {
  Attribute attribute;
  attribute.name = name;
  attribute.type = AttributeType::kInt;
  attribute.i = value;
  return attribute;
}

Attribute Attribute::Float(std::string_view name, float value) {
  Attribute attribute;
  attribute.name = name;
  attribute.type = AttributeType::kFloat;
  attribute.f = value;
  return attribute;
}

Attribute Attribute::String(std::string_view name, std::string_view value) {
  Attribute attribute;
  attribute.name = name;
  attribute.type = AttributeType::kString;
  attribute.s = value;
  return attribute;
}

Attribute Attribute::Ints(std::string_view name, absl::Span<const int64_t> values) {
  Attribute attribute;
  attribute.name = name;
  attribute.type = AttributeType::kInts;
  attribute.ints.assign(values.begin(), values.end());
  return attribute;
}

Attribute Attribute::Floats(std::string_view name, absl::Span<const float> values) {
  Attribute attribute;
  attribute.name = name;
  attribute.type = AttributeType::kFloats;
  attribute.floats.assign(values.begin(), values.end());
  return attribute;
}

Attribute Attribute::OfTensor(std::string_view name, const Tensor& value) {
  Attribute attribute;
  attribute.name = name;
  attribute.type = AttributeType::kTensor;
  attribute.tensor = value;
  return attribute;
}

}  // namespace ascend_fuse
