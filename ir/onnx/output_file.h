// Files that appear whole or not at all: written under another name beside their place, and renamed. Private to ir/onnx.
#pragma once

#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"

namespace ascend_fuse {

// The error of a system call on `path`, as a status with what to do.
absl::Status SystemError(const std::string& path, const std::string& what, int error);

// Has `write` fill a new file beside `path`, so that a rename puts it in its place within one file system. On an error nothing
// is left behind, and `temporary` is empty.
absl::Status WriteTemporary(const std::string& path, absl::FunctionRef<absl::Status(int fd)> write, std::string* temporary);

absl::Status PutInPlace(const std::string& temporary, const std::string& path);

}  // namespace ascend_fuse
