// Types and shapes that the file declares (TypeProto), read with a small cursor over the encoded bytes: a large
// export declares one for every value, most of which nobody asks for.
#include "ir/infer/context.h"
#include "proto/onnx.pb.h"

namespace ascend_fuse::infer {
namespace {

// Reads the fields of one encoded message. After bad bytes there are no more fields.
class FieldReader {
 public:
  FieldReader(const uint8_t* data, size_t size) : at_(data), end_(data + size) {}

  bool Next() {
    if (at_ == end_) return false;
    uint64_t tag = 0;
    if (!Varint(&tag)) return false;
    number_ = static_cast<int>(tag >> 3);
    text_ = {};
    varint_ = 0;
    switch (tag & 7) {
      case 0:
        return Varint(&varint_);
      case 1:
        return Skip(8);
      case 2: {
        uint64_t size = 0;
        if (!Varint(&size) || size > static_cast<uint64_t>(end_ - at_)) return false;
        text_ = {reinterpret_cast<const char*>(at_), static_cast<size_t>(size)};
        return Skip(size);
      }
      case 5:
        return Skip(4);
      default:
        return false;
    }
  }
  int number() const { return number_; }
  uint64_t varint() const { return varint_; }
  std::string_view text() const { return text_; }
  FieldReader message() const { return {reinterpret_cast<const uint8_t*>(text_.data()), text_.size()}; }

 private:
  bool Varint(uint64_t* value) {
    *value = 0;
    for (int shift = 0; shift < 64 && at_ < end_; shift += 7) {
      const uint8_t byte = *at_++;
      *value |= static_cast<uint64_t>(byte & 0x7f) << shift;
      if (byte < 0x80) return true;
    }
    return false;
  }
  bool Skip(uint64_t size) {
    if (size > static_cast<uint64_t>(end_ - at_)) return false;
    at_ += size;
    return true;
  }

  const uint8_t* at_;
  const uint8_t* end_;
  int number_ = 0;
  uint64_t varint_ = 0;
  std::string_view text_;
};

}  // namespace

Fact DeclaredFact(const Value& value, Facts* facts) {
  Fact fact;
  if (value.declared_type.data == nullptr || value.declared_type.file.size <= 0) return fact;
  FieldReader type(value.declared_type.data, static_cast<size_t>(value.declared_type.file.size));
  while (type.Next()) {
    if (type.number() != onnx::TypeProto::kTensorTypeFieldNumber) continue;
    FieldReader tensor = type.message();
    while (tensor.Next()) {
      if (tensor.number() == onnx::TypeProto_Tensor::kElemTypeFieldNumber) {
        fact.type = static_cast<DataType>(tensor.varint());
      } else if (tensor.number() == onnx::TypeProto_Tensor::kShapeFieldNumber) {
        Shape shape;
        FieldReader dims = tensor.message();
        while (dims.Next()) {
          if (dims.number() != onnx::TensorShapeProto::kDimFieldNumber) continue;
          Dim dim;
          FieldReader entry = dims.message();
          while (entry.Next()) {
            if (entry.number() == onnx::TensorShapeProto_Dimension::kDimValueFieldNumber) {
              const int64_t number = static_cast<int64_t>(entry.varint());
              dim = number >= 0 ? Dim::Of(number) : Dim();  // some exporters write -1 for unknown
            } else if (entry.number() == onnx::TensorShapeProto_Dimension::kDimParamFieldNumber) {
              dim = facts->dims().Parse(entry.text());
            }
          }
          shape.push_back(dim);
        }
        fact.has_rank = true;
        fact.shape = facts->arena().Copy(absl::Span<const Dim>(shape));
      }
    }
  }
  return fact;
}

}  // namespace ascend_fuse::infer
