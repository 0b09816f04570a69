// An ONNX file becomes a Model: graphs linked, names interned, nodes keeping their own bytes, weights left in
// the file.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "ir/model.h"
#include "ir/onnx/model_file.h"

namespace ascend_fuse {

// Loads the model at `path`. Every external data file it names must exist beside it and be long enough (it is
// not read). Errors: NOT_FOUND, PERMISSION_DENIED (cannot open), INVALID_ARGUMENT (not an ONNX model,
// damaged, or not a valid graph), FAILED_PRECONDITION (an external data file is missing, too short, or not
// allowed). The message says what, where and what to do.
absl::StatusOr<std::unique_ptr<Model>> LoadModel(const std::string& path, const LoadProgress& progress = nullptr);

// The same for a model in memory; `bytes` may be freed afterwards. External data is looked for beside `path`
// if it is given, and otherwise neither looked for nor readable.
absl::StatusOr<std::unique_ptr<Model>> LoadModelFromBytes(std::string_view bytes, const std::string& path = "");

}  // namespace ascend_fuse
