#include "ir/onnx/weight_writer.h"

#include <algorithm>
#include <string>
#include <string_view>

#include "ir/onnx/encode.h"
#include "ir/onnx/kept_fields.h"
#include "ir/streamed_tensor.h"
#include "proto/onnx.pb.h"

namespace ascend_fuse {
namespace {

// Where the parts of joined tensors lie decides where these go: what comes from external data stays external.
bool IsExternal(const Tensor& tensor) {
  if (tensor.storage == Storage::kExternal) return true;
  if (tensor.storage == Storage::kDequantized) return IsExternal(*tensor.dequantization->codes);
  return tensor.storage == Storage::kJoined &&
         std::any_of(tensor.parts.begin(), tensor.parts.end(), [](const Tensor* part) { return IsExternal(*part); });
}

// Elements that come from other tensors while they are written.
bool IsStreamed(const Tensor& tensor) { return tensor.storage == Storage::kJoined || tensor.storage == Storage::kDequantized; }

int64_t ByteSize(const Tensor& tensor) { return (tensor.ElementCount() * BitWidth(tensor.type) + 7) / 8; }

std::string EncodedBytes(int number, std::string_view bytes) {
  std::string encoded;
  wire::AppendBytes(&encoded, static_cast<uint32_t>(number), bytes);
  return encoded;
}

}  // namespace

void WeightWriter::Write(const Tensor& tensor) {
  if (WriteMoved(tensor)) return;
  const Pieces::Mark mark = out_->Begin(onnx::GraphProto::kInitializerFieldNumber);
  if (tensor.proto_bytes != nullptr || tensor.storage == Storage::kExternal) {
    out_->Copy(EncodeTensor(model_, tensor));
  } else {
    WriteHead(tensor);
    if (tensor.storage == Storage::kFile) {
      out_->Header(onnx::TensorProto::kRawDataFieldNumber, tensor.file.size);
      out_->File(tensor.file.offset, tensor.file.size);
    } else if (IsStreamed(tensor)) {
      out_->Header(onnx::TensorProto::kRawDataFieldNumber, ByteSize(tensor));
      out_->Elements(tensor, ByteSize(tensor));
    } else {
      out_->Bytes(onnx::TensorProto::kRawDataFieldNumber, tensor.memory);
    }
  }
  out_->End(mark);
}

void WeightWriter::WriteHead(const Tensor& tensor) {
  for (int64_t dim : tensor.dims) out_->Int(onnx::TensorProto::kDimsFieldNumber, dim);
  out_->Int(onnx::TensorProto::kDataTypeFieldNumber, static_cast<int64_t>(tensor.type));
  out_->Bytes(onnx::TensorProto::kNameFieldNumber, model_.names().Text(tensor.name));
}

bool WeightWriter::GoesIntoDataFile(const Tensor& tensor) const {
  if (places_.data_file.empty()) return false;
  const bool joined = IsStreamed(tensor);
  if (joined && IsExternal(tensor)) return true;
  if (places_.computed_in_data_file && HasComputedElements(tensor)) return true;
  if (places_.all_in_data_file && tensor.storage == Storage::kExternal) return true;
  if (!places_.all_in_data_file && (!joined || places_.model_file.empty())) return false;
  const bool plain = joined || tensor.storage == Storage::kFile || tensor.storage == Storage::kMemory;
  return plain && ByteSize(tensor) >= ModelFile::kPayloadBytes;
}

bool WeightWriter::WriteMoved(const Tensor& tensor) {
  FileRange range = tensor.file;
  std::string location;
  if (GoesIntoDataFile(tensor)) {
    range = AddToDataFile(tensor);
    location = places_.data_file;
  } else if (tensor.storage == Storage::kFile && !places_.model_file.empty()) {
    location = places_.model_file;
  } else if (tensor.storage == Storage::kExternal && !places_.prefix.empty()) {
    location = places_.prefix + std::string(tensor.location);
  } else {
    return false;
  }
  const Pieces::Mark mark = out_->Begin(onnx::GraphProto::kInitializerFieldNumber);
  if (tensor.proto.offset < 0) {
    WriteHead(tensor);
  } else {
    const EncodedSpan encoded = {tensor.proto_bytes, tensor.proto};
    wire::Cursor cursor = OpenSpan(model_.model_file(), encoded);
    wire::Field field;
    while (cursor.Next(&field)) {
      const bool of_place = field.number == onnx::TensorProto::kRawDataFieldNumber ||
                            field.number == onnx::TensorProto::kExternalDataFieldNumber ||
                            field.number == onnx::TensorProto::kDataLocationFieldNumber;
      if (!of_place) KeepField(encoded, field, cursor, out_);
    }
  }
  const auto entry = [this](std::string_view key, const std::string& value) {
    const Pieces::Mark inner = out_->Begin(onnx::TensorProto::kExternalDataFieldNumber);
    out_->Copy(EncodedBytes(onnx::StringStringEntryProto::kKeyFieldNumber, key));
    out_->Copy(EncodedBytes(onnx::StringStringEntryProto::kValueFieldNumber, value));
    out_->End(inner);
  };
  entry("location", location);
  entry("offset", std::to_string(std::max<int64_t>(range.offset, 0)));
  entry("length", std::to_string(range.size));
  out_->Int(onnx::TensorProto::kDataLocationFieldNumber, onnx::TensorProto::EXTERNAL);
  out_->End(mark);
  return true;
}

// Large ones begin at a page boundary, so that they can be mapped.
FileRange WeightWriter::AddToDataFile(const Tensor& tensor) {
  constexpr int64_t kPage = 4096;
  constexpr int64_t kVector = 64;
  constexpr int64_t kLarge = 64 << 10;
  const int64_t size = ByteSize(tensor);
  const int64_t unit = size >= kLarge ? kPage : kVector;
  const int64_t offset = (data_.total() + unit - 1) / unit * unit;
  data_.Copy(std::string(static_cast<size_t>(offset - data_.total()), '\0'));
  if (tensor.storage == Storage::kFile) {
    data_.File(tensor.file.offset, size);
  } else if (tensor.storage == Storage::kMemory) {
    data_.View(tensor.memory);
  } else {
    data_.Elements(tensor, size);
  }
  return {offset, size};
}

}  // namespace ascend_fuse
