// New attributes and constants, written in the wire format by hand in the field order of libprotobuf.
#include "ir/onnx/encode.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "ir/onnx/model_file.h"
#include "ir/rounding.h"
#include "ir/whole_number.h"
#include "ir/wire.h"
#include "proto/onnx.pb.h"

namespace ascend_fuse {
namespace {

using onnx::AttributeProto;
using onnx::TensorProto;

void AppendFloat(std::string* out, float value) {
  char bytes[sizeof(value)];
  std::memcpy(bytes, &value, sizeof(value));
  out->append(bytes, sizeof(bytes));
}

// The body of one attribute; `encoded` when it has one, payloads put back.
std::string EncodeAttribute(const Model& model, const Attribute& attribute) {
  if (!attribute.encoded.empty()) {
    FileRange range;
    const ModelFile* model_file = model.model_file();
    if (model_file != nullptr && model_file->FindRange(attribute.encoded, &range)) {
      std::string bytes(static_cast<size_t>(range.size), '\0');
      if (model_file->Copy(range.offset, range.size, bytes.data()).ok()) return bytes;
    }
    return std::string(attribute.encoded);
  }
  std::string body;
  wire::AppendBytes(&body, AttributeProto::kNameFieldNumber, attribute.name);
  switch (attribute.type) {
    case AttributeType::kFloat:
      wire::AppendTag(&body, AttributeProto::kFFieldNumber, wire::kFixed32);
      AppendFloat(&body, attribute.f);
      break;
    case AttributeType::kInt:
      wire::AppendInt(&body, AttributeProto::kIFieldNumber, attribute.i);
      break;
    case AttributeType::kString:
      wire::AppendBytes(&body, AttributeProto::kSFieldNumber, attribute.s);
      break;
    case AttributeType::kTensor:
      wire::AppendBytes(&body, AttributeProto::kTFieldNumber, EncodeTensor(model, attribute.tensor));
      break;
    case AttributeType::kFloats:
      for (float value : attribute.floats) {
        wire::AppendTag(&body, AttributeProto::kFloatsFieldNumber, wire::kFixed32);
        AppendFloat(&body, value);
      }
      break;
    case AttributeType::kInts:
      for (int64_t value : attribute.ints) wire::AppendInt(&body, AttributeProto::kIntsFieldNumber, value);
      break;
    case AttributeType::kStrings:
      for (std::string_view value : attribute.strings) {
        wire::AppendBytes(&body, AttributeProto::kStringsFieldNumber, value);
      }
      break;
    default:
      break;
  }
  wire::AppendInt(&body, AttributeProto::kTypeFieldNumber, static_cast<int64_t>(attribute.type));
  if (!attribute.ref_attr_name.empty()) {
    wire::AppendBytes(&body, AttributeProto::kRefAttrNameFieldNumber, attribute.ref_attr_name);
  }
  return body;
}

// The bits of the float16 that `value` rounds to.
uint16_t Float16Bits(double value) {
  constexpr int kMantissaBits = 10;
  constexpr int kBias = 15;
  constexpr uint16_t kInfinity = 0x7C00;
  const double rounded = RoundTo(DataType::kFloat16, value);
  const auto sign = static_cast<uint16_t>(std::signbit(rounded) ? 0x8000 : 0);
  if (std::isnan(rounded)) return sign | kInfinity | 1 << (kMantissaBits - 1);
  if (std::isinf(rounded)) return sign | kInfinity;
  const double magnitude = std::fabs(rounded);
  int exponent = 0;
  std::frexp(magnitude, &exponent);  // magnitude = f * 2^exponent, 0.5 <= f < 1
  const int biased = exponent - 1 + kBias;
  if (magnitude == 0 || biased < 1) {  // subnormal: in steps of 2^-24
    return sign | static_cast<uint16_t>(std::ldexp(magnitude, kMantissaBits + kBias - 1));
  }
  const auto steps = static_cast<uint16_t>(std::ldexp(magnitude, kMantissaBits - (exponent - 1)));
  return sign | static_cast<uint16_t>((biased << kMantissaBits) + (steps - (1 << kMantissaBits)));
}

// The bits of the bfloat16 that `value` rounds to: the upper half of that float's.
uint16_t Bfloat16Bits(double value) {
  const auto bits = std::bit_cast<uint32_t>(static_cast<float>(RoundTo(DataType::kBfloat16, value)));
  return static_cast<uint16_t>(bits >> 16);
}

}  // namespace

std::string EncodeAttributes(const Model& model, const std::vector<Attribute>& attributes) {
  std::string out;
  for (const Attribute& attribute : attributes) {
    wire::AppendBytes(&out, onnx::NodeProto::kAttributeFieldNumber, EncodeAttribute(model, attribute));
  }
  return out;
}

std::string EncodeTensor(const Model& model, const Tensor& tensor) {
  const ModelFile* model_file = model.model_file();
  if (tensor.proto_bytes != nullptr) {  // as it was read, typed fields and external references included
    std::string bytes(static_cast<size_t>(tensor.proto.size), '\0');
    if (tensor.proto.offset < 0) {
      std::memcpy(bytes.data(), tensor.proto_bytes, bytes.size());
    } else if (model_file == nullptr || !model_file->Copy(tensor.proto.offset, tensor.proto.size, bytes.data()).ok()) {
      return {};
    }
    return bytes;
  }
  std::string body;
  for (int64_t dim : tensor.dims) wire::AppendInt(&body, TensorProto::kDimsFieldNumber, dim);
  wire::AppendInt(&body, TensorProto::kDataTypeFieldNumber, static_cast<int64_t>(tensor.type));
  if (tensor.name != NameId::kEmpty) {
    wire::AppendBytes(&body, TensorProto::kNameFieldNumber, model.Text(tensor.name));
  }
  if (tensor.storage == Storage::kFile) {
    std::string bytes(static_cast<size_t>(tensor.file.size), '\0');
    if (model_file == nullptr || !model_file->Copy(tensor.file.offset, tensor.file.size, bytes.data()).ok()) return {};
    wire::AppendBytes(&body, TensorProto::kRawDataFieldNumber, bytes);
  } else if (tensor.storage == Storage::kJoined || tensor.storage == Storage::kDequantized) {
    const absl::StatusOr<std::string> bytes = ReadBytes(model, tensor, std::numeric_limits<int64_t>::max());
    if (!bytes.ok()) return {};
    wire::AppendBytes(&body, TensorProto::kRawDataFieldNumber, *bytes);
  } else if (tensor.storage == Storage::kExternal) {
    auto entry = [&body](std::string_view key, std::string_view value) {
      std::string pair;
      wire::AppendBytes(&pair, onnx::StringStringEntryProto::kKeyFieldNumber, key);
      wire::AppendBytes(&pair, onnx::StringStringEntryProto::kValueFieldNumber, value);
      wire::AppendBytes(&body, TensorProto::kExternalDataFieldNumber, pair);
    };
    entry("location", tensor.location);
    entry("offset", std::to_string(tensor.file.offset));
    entry("length", std::to_string(tensor.file.size));
    wire::AppendInt(&body, TensorProto::kDataLocationFieldNumber, TensorProto::EXTERNAL);
  } else {
    wire::AppendBytes(&body, TensorProto::kRawDataFieldNumber, tensor.memory);
  }
  return body;
}

std::string EncodedNotes(const Node& node) {
  const ModelFile* model_file = node.graph->model().model_file();
  const bool of_file = model_file != nullptr && node.encoded.file.offset >= 0;
  wire::Cursor cursor =
      of_file ? model_file->Open(node.encoded) : wire::Cursor(node.encoded.data, 0, node.encoded.file.size, &wire::kNoHoles);
  std::string bytes;
  wire::Field field;
  while (cursor.Next(&field)) {
    const bool note =
        field.number == onnx::NodeProto::kDocStringFieldNumber || field.number == onnx::NodeProto::kMetadataPropsFieldNumber;
    if (note && field.type == wire::kBytes && !field.has_hole()) wire::AppendBytes(&bytes, field.number, field.text());
  }
  return bytes;
}

std::string EncodeNumber(DataType type, double value) {
  auto bytes = [](auto number) {
    std::string text(sizeof(number), '\0');
    std::memcpy(text.data(), &number, sizeof(number));
    return text;
  };
  switch (type) {
    case DataType::kFloat:
      return bytes(static_cast<float>(value));
    case DataType::kDouble:
      return bytes(value);
    case DataType::kFloat16:
      return bytes(Float16Bits(value));
    case DataType::kBfloat16:
      return bytes(Bfloat16Bits(value));
    case DataType::kBool:
      return bytes(static_cast<uint8_t>(value != 0));
    case DataType::kInt32:
      return bytes(WholeNumber<int32_t>(value));
    case DataType::kInt64:
      return bytes(WholeNumber<int64_t>(value));
    default:
      return {};
  }
}

}  // namespace ascend_fuse
