// Tensor data in files beside the model: which locations are allowed, and reading them.
//
// A location is a relative path without "..". No part of it may be a symbolic link, and the file must be a
// regular file with one name (no hard link), as onnx.checker demands since CVE-2026-34446 and -34447. The
// rules hold before anything is opened, so that a model cannot make this program read a file that does not
// belong to it.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ir/tensor.h"

namespace ascend_fuse {

// INVALID_ARGUMENT with the reason when a location must not be used.
absl::Status CheckExternalLocation(std::string_view location);

// The external data files of one model: each is opened at most once for checking. Not thread-safe.
class ExternalData {
 public:
  // `model_path`: the model file; data lies in its directory.
  explicit ExternalData(const std::string& model_path);
  ~ExternalData();
  ExternalData(const ExternalData&) = delete;
  ExternalData& operator=(const ExternalData&) = delete;

  // Size in bytes of the file at `location`. INVALID_ARGUMENT (location not allowed), FAILED_PRECONDITION
  // (missing, not a regular file, a link).
  absl::StatusOr<int64_t> Size(std::string_view location);

  // OK when `tensor` (Storage::kExternal) lies inside its file. Opens nothing but the file.
  absl::Status Check(const Tensor& tensor);

  // Reads `size` bytes of the tensor's data.
  absl::Status Read(const Tensor& tensor, int64_t size, char* to);

 private:
  absl::StatusOr<int> Open(std::string_view location, int64_t* size);

  std::string directory_;
  int directory_fd_ = -1;
  std::map<std::string, int64_t, std::less<>> sizes_;
};

// "." for a path without a directory.
std::string DirectoryOf(const std::string& path);

}  // namespace ascend_fuse
