// Types and shapes that the file declares (TypeProto), read with the wire cursor: a large export declares one
// for every value, and libprotobuf would build an object for each.

#include "fmt/format.h"
#include "ir/add_once.h"
#include "ir/infer/context.h"
#include "ir/wire.h"
#include "proto/onnx.pb.h"

namespace ascend_fuse::infer {
namespace {

Dim ReadDim(const wire::Field& encoded, DimTable* dims) {
  Dim dim;
  wire::Cursor cursor(encoded);
  wire::Field field;
  while (cursor.Next(&field)) {
    if (field.number == onnx::TensorShapeProto_Dimension::kDimValueFieldNumber && field.type == wire::kVarint) {
      dim = DimOfSize(static_cast<int64_t>(field.value));  // some exporters write -1 for unknown
    } else if (field.number == onnx::TensorShapeProto_Dimension::kDimParamFieldNumber && field.type == wire::kBytes) {
      dim = dims->Parse(field.text());
    }
  }
  return dim;
}

void ReadTensorType(const wire::Field& encoded, Facts* facts, Fact* fact) {
  wire::Cursor cursor(encoded);
  wire::Field field;
  while (cursor.Next(&field)) {
    if (field.number == onnx::TypeProto_Tensor::kElemTypeFieldNumber && field.type == wire::kVarint) {
      fact->type = field.value <= 255 ? static_cast<DataType>(field.value) : DataType::kUndefined;
    } else if (field.number == onnx::TypeProto_Tensor::kShapeFieldNumber && field.type == wire::kBytes) {
      Shape shape;
      wire::Cursor entries(field);
      wire::Field entry;
      while (entries.Next(&entry)) {
        if (entry.number == onnx::TensorShapeProto::kDimFieldNumber && entry.type == wire::kBytes) {
          shape.push_back(ReadDim(entry, &facts->dims()));
        }
      }
      fact->has_rank = true;
      fact->shape = facts->arena().Copy(absl::Span<const Dim>(shape));
    }
  }
}

}  // namespace

Fact DeclaredFact(const Value& value, Facts* facts) {
  Fact fact;
  if (value.declared_type.empty()) return fact;
  wire::Cursor cursor(value.declared_type);
  wire::Field field;
  while (cursor.Next(&field)) {
    if (field.number == onnx::TypeProto::kTensorTypeFieldNumber && field.type == wire::kBytes) {
      ReadTensorType(field, facts, &fact);
    }
  }
  return fact;
}

namespace {

// The tensor type inside a sequence or optional, through at most a few levels.
bool FindItems(const wire::Field& type, int depth, wire::Field* tensor) {
  wire::Cursor cursor(type);
  wire::Field field;
  while (cursor.Next(&field)) {
    if (field.type != wire::kBytes) continue;
    if (field.number == onnx::TypeProto::kTensorTypeFieldNumber) {
      *tensor = field;
      return true;
    }
    if (depth == 0 || (field.number != onnx::TypeProto::kSequenceTypeFieldNumber &&
                       field.number != onnx::TypeProto::kOptionalTypeFieldNumber)) {
      continue;
    }
    wire::Cursor inner(field);
    wire::Field element;
    while (inner.Next(&element)) {  // elem_type is field 1 of both
      if (element.number == 1 && element.type == wire::kBytes && FindItems(element, depth - 1, tensor)) return true;
    }
  }
  return false;
}

wire::Field DeclaredType(const Value& value) {
  wire::Field field;
  if (value.declared_type.empty()) return field;
  field.type = wire::kBytes;
  field.data = reinterpret_cast<const uint8_t*>(value.declared_type.data());
  field.size = static_cast<int64_t>(value.declared_type.size());
  return field;
}

}  // namespace

Fact DeclaredItems(const Value& value, Facts* facts) {
  Fact fact;
  wire::Field tensor;
  const wire::Field type = DeclaredType(value);
  if (type.data != nullptr && FindItems(type, 3, &tensor)) ReadTensorType(tensor, facts, &fact);
  return fact;
}

bool DeclaresOptionalTensor(const Value& value) {
  const wire::Field type = DeclaredType(value);
  if (type.data == nullptr) return false;
  wire::Cursor cursor(type);
  wire::Field field;
  wire::Field tensor;
  while (cursor.Next(&field)) {
    if (field.number != onnx::TypeProto::kOptionalTypeFieldNumber || field.type != wire::kBytes) continue;
    wire::Cursor inner(field);
    wire::Field element;
    while (inner.Next(&element)) {
      if (element.number == 1 && element.type == wire::kBytes) return FindItems(element, 0, &tensor);
    }
  }
  return false;
}

}  // namespace ascend_fuse::infer

namespace ascend_fuse {

std::string NameOfUnnamed(const Value& value, size_t axis) {
  // Reads as one name inside an expression.
  std::string name;
  for (char c : ValueName(value)) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
    if (plain || !name.empty()) name.push_back(plain ? c : '.');
  }
  const bool letter_first = !name.empty() && (name[0] < '0' || name[0] > '9');
  return fmt::format("{}{}_d{}", letter_first ? "" : "v", name, axis);
}

namespace {

// Of what a value declares; with `of_unnamed` also of dims without a name.
std::vector<std::string> Names(const Value& value, bool of_unnamed, Facts* unbound) {
  std::vector<std::string> names;
  const Fact declared = infer::DeclaredFact(value, unbound);
  for (size_t i = 0; i < declared.shape.size(); ++i) {
    if (!declared.shape[i].known() && of_unnamed) AddOnce(NameOfUnnamed(value, i), &names);
    for (const std::string_view name : unbound->dims().Symbols(declared.shape[i])) AddOnce(std::string(name), &names);
  }
  return names;
}

}  // namespace

std::vector<std::string> DeclaredSymbols(const Value& value, Facts* unbound) { return Names(value, false, unbound); }

std::vector<std::string> NamesOfDims(const Value& input, Facts* unbound) { return Names(input, true, unbound); }

}  // namespace ascend_fuse
