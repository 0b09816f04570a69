#include "ir/onnx/save.h"
namespace ascend_fuse { absl::StatusOr<std::string> SaveModelToBytes(const Model&) { return absl::UnimplementedError(""); } 
absl::Status SaveModel(const Model&, const std::string&, const SaveOptions&) { return absl::UnimplementedError(""); } }
