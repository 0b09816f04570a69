// The structural bytes of a model file in memory, payloads left out: everything but tensor data of 4 KB and
// more. Weights stay in the file and are found again by file offset.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "ir/tensor.h"

namespace ascend_fuse {

// A model file that is open for reading. Bytes of the file outside the holes lie in memory, in file order
// and without gaps; a message without a hole inside is contiguous there.
class Skeleton {
 public:
  ~Skeleton();
  Skeleton(const Skeleton&) = delete;
  Skeleton& operator=(const Skeleton&) = delete;

  // Reads the structure of the file at `path` with pread. Errors: NOT_FOUND / PERMISSION_DENIED (cannot
  // open), INVALID_ARGUMENT (not a protobuf message of ModelProto's shape; the sentence names the offset).
  static absl::StatusOr<std::unique_ptr<Skeleton>> Read(const std::string& path);

  int fd() const { return fd_; }
  int64_t file_size() const { return file_size_; }
  const uint8_t* data() const { return data_; }
  // Payloads left out, by rising offset.
  absl::Span<const FileRange> holes() const { return holes_; }

 private:
  Skeleton() = default;
  friend class SkeletonReader;

  int fd_ = -1;
  int64_t file_size_ = 0;
  uint8_t* data_ = nullptr;    // an anonymous mapping of `reserved_` bytes, touched only where used
  size_t reserved_ = 0;
  std::vector<FileRange> holes_;
};

}  // namespace ascend_fuse
