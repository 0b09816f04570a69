#include "ir/onnx/declared_type.h"

#include "proto/onnx.pb.h"

namespace ascend_fuse {

std::string WithDims(std::string_view type, absl::Span<const NewDim> dims) {
  onnx::TypeProto message;
  if (!message.ParseFromArray(type.data(), static_cast<int>(type.size())) || !message.has_tensor_type()) return "";
  auto* declared = message.mutable_tensor_type()->mutable_shape()->mutable_dim();
  if (static_cast<size_t>(declared->size()) != dims.size()) return "";
  bool changed = false;
  for (size_t i = 0; i < dims.size(); ++i) {
    auto* dim = declared->Mutable(static_cast<int>(i));
    if (dims[i].number.has_value() && !(dim->has_dim_value() && dim->dim_value() == *dims[i].number)) {
      dim->set_dim_value(*dims[i].number);
      changed = true;
    } else if (!dims[i].number.has_value() && !dims[i].text.empty() && dim->dim_param() != dims[i].text) {
      dim->set_dim_param(dims[i].text);
      changed = true;
    }
  }
  return changed ? message.SerializeAsString() : "";
}

std::string WithRank(std::string_view type, int rank) {
  onnx::TypeProto message;
  if (!message.ParseFromArray(type.data(), static_cast<int>(type.size())) || !message.has_tensor_type()) return "";
  if (message.tensor_type().has_shape()) return "";
  auto* const shape = message.mutable_tensor_type()->mutable_shape();
  for (int i = 0; i < rank; ++i) shape->add_dim();
  return message.SerializeAsString();
}

}  // namespace ascend_fuse
