// TensorProto headers, and the wire types that the fields of tensors and attributes may have.
#include "ir/onnx/tensor_proto.h"

#include <charconv>
#include <limits>
#include <optional>

#include "absl/container/inlined_vector.h"
#include "fmt/format.h"
#include "ir/onnx/wire_check.h"
#include "ir/status_macros.h"
#include "proto/onnx.pb.h"

namespace ascend_fuse {
namespace {

struct Types {
  uint32_t of[32] = {};
};

constexpr Types MakeAttributeTypes() {
  using A = onnx::AttributeProto;
  Types types;
  for (int number : {A::kNameFieldNumber, A::kRefAttrNameFieldNumber, A::kDocStringFieldNumber, A::kSFieldNumber,
                     A::kTFieldNumber, A::kGFieldNumber, A::kSparseTensorFieldNumber, A::kTpFieldNumber, A::kStringsFieldNumber,
                     A::kTensorsFieldNumber, A::kGraphsFieldNumber, A::kSparseTensorsFieldNumber, A::kTypeProtosFieldNumber}) {
    types.of[number] = kOnlyBytes;
  }
  types.of[A::kTypeFieldNumber] = kOnlyInt;
  types.of[A::kIFieldNumber] = kOnlyInt;
  types.of[A::kFFieldNumber] = 1u << wire::kFixed32;
  types.of[A::kFloatsFieldNumber] = kAnyFixed32;
  types.of[A::kIntsFieldNumber] = kAnyInt;
  return types;
}

constexpr Types MakeTensorTypes() {
  using T = onnx::TensorProto;
  Types types;
  for (int number : {T::kSegmentFieldNumber, T::kStringDataFieldNumber, T::kNameFieldNumber, T::kDocStringFieldNumber,
                     T::kRawDataFieldNumber, T::kExternalDataFieldNumber, T::kMetadataPropsFieldNumber}) {
    types.of[number] = kOnlyBytes;
  }
  types.of[T::kDimsFieldNumber] = kAnyInt;
  types.of[T::kDataTypeFieldNumber] = kOnlyInt;
  types.of[T::kDataLocationFieldNumber] = kOnlyInt;
  types.of[T::kFloatDataFieldNumber] = kAnyFixed32;
  types.of[T::kInt32DataFieldNumber] = kAnyInt;
  types.of[T::kInt64DataFieldNumber] = kAnyInt;
  types.of[T::kUint64DataFieldNumber] = kAnyInt;
  types.of[T::kDoubleDataFieldNumber] = kAnyFixed64;
  return types;
}

constexpr Types kAttributeTypes = MakeAttributeTypes();
constexpr Types kTensorTypes = MakeTensorTypes();

bool ParseNumber(std::string_view text, int64_t* value) {
  const char* end = text.data() + text.size();
  auto [at, error] = std::from_chars(text.data(), end, *value);
  return error == std::errc() && at == end && *value >= 0;
}

// The fields of a TensorProto that its elements are found by.
class TensorReader {
 public:
  explicit TensorReader(const wire::Field& message) : message_(message) {}

  absl::Status Read(Model* model, Tensor* tensor) {
    *tensor = Tensor{};
    wire::Cursor cursor(message_);
    wire::Field field;
    while (cursor.Next(&field)) {
      if (field.number >= 32 || kTensorTypes.of[field.number] == 0) continue;
      if ((kTensorTypes.of[field.number] >> field.type & 1) == 0) return WireTypeError(field, "TensorProto");
      // Its levels are few: where they count, the graph was checked as a whole.
      RETURN_IF_ERROR(CheckField(field, MessageKind::kTensor, 1));
      RETURN_IF_ERROR(Take(field, tensor));
    }
    if (cursor.error() != nullptr) return WireError(cursor);
    tensor->name = model->names().Intern(name_);
    tensor->dims = model->InternDims(dims_);
    tensor->proto = {message_.position, message_.size};
    tensor->proto_bytes = message_.data;
    const int64_t count = tensor->ElementCount();
    if (count < 0) return Damaged(message_, "its dims are negative, or too large to multiply. Export the model again");
    // What the elements take; -1 where the type does not say it.
    const int bits = BitWidth(tensor->type);
    const int64_t needed = bits > 0 && count < std::numeric_limits<int64_t>::max() / 128 ? (count * bits + 7) / 8 : -1;
    return external_ ? FindExternal(needed, tensor) : FindOwn(needed, tensor);
  }

 private:
  absl::Status Damaged(const wire::Field& field, const std::string& what) const {
    return absl::InvalidArgumentError(fmt::format("tensor '{}' at byte {}: {}", name_, field.position, what));
  }

  absl::Status Take(const wire::Field& field, Tensor* tensor) {
    using T = onnx::TensorProto;
    switch (field.number) {
      case T::kDimsFieldNumber:
        if (field.type == wire::kVarint) {
          dims_.push_back(static_cast<int64_t>(field.value));
        } else {
          if (field.has_hole()) return WireTypeError(field, "TensorProto");
          wire::Cursor packed(field);
          uint64_t value = 0;
          while (packed.Varint(&value)) dims_.push_back(static_cast<int64_t>(value));
        }
        break;
      case T::kDataTypeFieldNumber:
        tensor->type = static_cast<DataType>(static_cast<int32_t>(field.value));
        break;
      case T::kNameFieldNumber:
        name_ = field.text();
        break;
      case T::kRawDataFieldNumber:
        if (raw_.has_value()) return Damaged(field, "raw_data is given twice. Export the model again");
        raw_ = field;
        break;
      case T::kDataLocationFieldNumber:
        // Readers of proto2 leave out one that they do not know, those of proto3 take it.
        if (!onnx::TensorProto_DataLocation_IsValid(static_cast<int>(static_cast<int32_t>(field.value)))) {
          return Damaged(field, "its data_location is not one of ONNX. Export the model again");
        }
        external_ = static_cast<int32_t>(field.value) == T::EXTERNAL;
        break;
      case T::kExternalDataFieldNumber:
        TakeExternal(field);
        break;
      case T::kFloatDataFieldNumber:
      case T::kInt32DataFieldNumber:
      case T::kInt64DataFieldNumber:
      case T::kUint64DataFieldNumber:
      case T::kDoubleDataFieldNumber:
      case T::kStringDataFieldNumber:
        // An empty packed list is not data.
        if (field.type != wire::kBytes || field.size > 0 || field.number == T::kStringDataFieldNumber) has_typed_ = true;
        break;
      default:
        break;
    }
    return absl::OkStatus();
  }

  void TakeExternal(const wire::Field& field) {
    wire::Cursor entry(field);
    wire::Field part;
    std::string_view key;
    std::string_view value;
    while (entry.Next(&part)) {
      if (part.type != wire::kBytes) continue;
      if (part.number == onnx::StringStringEntryProto::kKeyFieldNumber) key = part.text();
      if (part.number == onnx::StringStringEntryProto::kValueFieldNumber) value = part.text();
    }
    if (key == "location") location_ = value;
    if (key == "offset") offset_ = value;
    if (key == "length") length_ = value;
  }

  absl::Status FindExternal(int64_t needed, Tensor* tensor) const {
    if (has_typed_ || HasRaw()) {
      return Damaged(message_, "it has external data and data of its own. Export the model again");
    }
    tensor->storage = Storage::kExternal;
    tensor->location = location_;
    tensor->file = {0, -1};
    if (!offset_.empty() && !ParseNumber(offset_, &tensor->file.offset)) {
      return Damaged(message_, fmt::format("external data offset '{}' is not a number of bytes", offset_));
    }
    if (!length_.empty() && !ParseNumber(length_, &tensor->file.size)) {
      return Damaged(message_, fmt::format("external data length '{}' is not a number of bytes", length_));
    }
    if (tensor->file.size < 0) {  // no length given: as many bytes as the elements need
      if (needed >= 0) tensor->file.size = needed;
    } else if (tensor->file.size < needed) {
      return Damaged(message_, fmt::format("external data length {} is less than the {} bytes its type and dims need",
                                           tensor->file.size, needed));
    }
    return absl::OkStatus();
  }

  absl::Status FindOwn(int64_t needed, Tensor* tensor) const {
    if (!HasRaw()) {
      if (has_typed_) tensor->storage = Storage::kTyped;
      return absl::OkStatus();
    }
    if (has_typed_) return Damaged(message_, "it has raw_data and typed data as well. Export the model again");
    if (needed >= 0 && raw_->size != needed) {
      return Damaged(message_,
                     fmt::format("it has {} bytes, and its type and dims need {}. Export the model again", raw_->size, needed));
    }
    if (raw_->is_hole()) {
      tensor->storage = Storage::kFile;
      tensor->file = {raw_->position, raw_->size};
    } else {
      tensor->storage = Storage::kMemory;
      tensor->memory = raw_->text();
    }
    return absl::OkStatus();
  }

  bool HasRaw() const { return raw_.has_value() && raw_->size > 0; }

  const wire::Field& message_;
  absl::InlinedVector<int64_t, 8> dims_;
  std::string_view name_;
  std::optional<wire::Field> raw_;
  bool has_typed_ = false;
  bool external_ = false;
  std::string_view location_;
  std::string_view offset_;
  std::string_view length_;
};

}  // namespace

const uint32_t* AttributeWireTypes() { return kAttributeTypes.of; }
const uint32_t* TensorWireTypes() { return kTensorTypes.of; }

absl::Status WireError(const wire::Cursor& cursor) {
  return absl::InvalidArgumentError(fmt::format("damaged: {} at byte {}. Export the model again, or check the download",
                                                cursor.error() != nullptr ? cursor.error() : "no error", cursor.position()));
}

absl::Status WireTypeError(const wire::Field& field, const char* message) {
  return absl::InvalidArgumentError(
      fmt::format("damaged: field {} of {} at byte {} has wire type {}, which it cannot have. Export the model again, "
                  "or check the download",
                  field.number, message, field.start, static_cast<uint32_t>(field.type)));
}

absl::Status ParseTensor(const wire::Field& message, Model* model, Tensor* tensor) {
  return TensorReader(message).Read(model, tensor);
}

}  // namespace ascend_fuse
