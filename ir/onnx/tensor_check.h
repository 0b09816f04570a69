// Tensors of a file that is being loaded: well-formed, and where their elements lie in other files, these may be read and hold
// them.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "ir/model.h"
#include "ir/onnx/external_data.h"
#include "ir/wire.h"

namespace ascend_fuse {

class TensorCheck {
 public:
  // `path`: of the model; empty where it has no place among files. `found` is told of every other file, by its location.
  TensorCheck(Model* model, const std::string& path, std::function<void(std::string_view)> found)
      : model_(model), found_(std::move(found)) {
    if (!path.empty()) external_.emplace(path);
  }

  // What a TensorProto says.
  absl::Status Parse(const wire::Field& message, Tensor* tensor);
  absl::Status Check(const wire::Field& message);
  // Of a SparseTensorProto, whose name is that of its values.
  absl::Status CheckSparse(const wire::Field& message, NameId* name);

 private:
  absl::Status CheckExternal(const Tensor& tensor);

  Model* model_;
  std::function<void(std::string_view)> found_;
  std::optional<ExternalData> external_;
};

}  // namespace ascend_fuse
