#include "ir/onnx/tensor_check.h"

#include "fmt/format.h"
#include "ir/onnx/tensor_proto.h"
#include "ir/onnx/wire_check.h"
#include "ir/status_macros.h"
#include "proto/onnx.pb.h"

namespace ascend_fuse {

absl::Status TensorCheck::Parse(const wire::Field& message, Tensor* tensor) {
  RETURN_IF_ERROR(ParseTensor(message, model_, tensor));
  return CheckExternal(*tensor);
}

absl::Status TensorCheck::Check(const wire::Field& message) {
  Tensor tensor;
  return Parse(message, &tensor);
}

absl::Status TensorCheck::CheckSparse(const wire::Field& message, NameId* name) {
  wire::Cursor cursor(message);
  wire::Field field;
  while (cursor.Next(&field)) {
    if (field.number == onnx::SparseTensorProto::kDimsFieldNumber) {
      RETURN_IF_ERROR(CheckField(field, MessageKind::kSparseTensor, 1));
    }
    if (field.number != onnx::SparseTensorProto::kValuesFieldNumber &&
        field.number != onnx::SparseTensorProto::kIndicesFieldNumber) {
      continue;
    }
    if (field.type != wire::kBytes) return WireTypeError(field, "SparseTensorProto");
    Tensor tensor;
    RETURN_IF_ERROR(Parse(field, &tensor));
    if (name != nullptr && field.number == onnx::SparseTensorProto::kValuesFieldNumber) *name = tensor.name;
  }
  if (cursor.error() != nullptr) return WireError(cursor);
  return absl::OkStatus();
}

absl::Status TensorCheck::CheckExternal(const Tensor& tensor) {
  if (tensor.storage != Storage::kExternal) return absl::OkStatus();
  absl::Status status = external_.has_value() ? external_->Check(tensor) : CheckExternalLocation(tensor.location);
  if (status.ok()) {
    found_(tensor.location);
    return status;
  }
  return absl::Status(status.code(), fmt::format("tensor '{}' at byte {}: {}", model_->names().Text(tensor.name),
                                                 tensor.proto.offset, std::string(status.message())));
}

}  // namespace ascend_fuse
