// The structural bytes of a model file in memory, payloads left out: everything but tensor data of 4 KB and
// more. Weights stay in the file and are found again by file offset.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "ir/graph.h"
#include "ir/tensor.h"
#include "ir/wire.h"

namespace ascend_fuse {

// Told how much of the work of loading a model is done, in bytes of any unit.
using LoadProgress = std::function<void(int64_t done, int64_t total)>;

// A model file that is open for reading. Bytes of the file outside the holes lie in memory, in file order
// and without gaps; a message without a hole inside is contiguous there.
class ModelFile {
 public:
  // Tensor data of at least this many bytes is left in the file.
  static constexpr int64_t kPayloadBytes = 4096;

  ~ModelFile();
  ModelFile(const ModelFile&) = delete;
  ModelFile& operator=(const ModelFile&) = delete;

  // Reads the structure of the file at `path` with pread. Errors: NOT_FOUND / PERMISSION_DENIED (cannot
  // open), INVALID_ARGUMENT (not a protobuf message of ModelProto's shape; the sentence names the offset).
  // Reading is the first half of loading.
  static absl::StatusOr<std::unique_ptr<ModelFile>> Read(const std::string& path, const LoadProgress& progress = nullptr);

  // The same over bytes, which are put into an anonymous file (memfd). `name` stands for them in messages.
  static absl::StatusOr<std::unique_ptr<ModelFile>> FromBytes(std::string_view bytes, const std::string& name);

  int fd() const { return fd_; }
  int64_t file_size() const { return file_size_; }
  const uint8_t* data() const { return data_; }
  // Bytes of the file that are in memory.
  int64_t structural_size() const { return structural_size_; }
  // Nodes and initializers of the graphs of 4 KB and more, counted on the way: sizes for tables.
  int64_t node_fields() const { return node_fields_; }
  int64_t initializer_fields() const { return initializer_fields_; }
  // Payloads left out, by rising offset.
  absl::Span<const FileRange> holes() const { return {holes_.data(), holes_.size() - 1}; }

  // The first hole at or after the file offset, for wire::Cursor.
  const FileRange* HoleAt(int64_t offset) const;

  // A reader of a message of this file, or of one in memory (span.file.offset < 0).
  wire::Cursor Open(const EncodedSpan& span) const {
    return span.file.offset < 0 ? wire::Cursor(span.data, 0, span.file.size, &wire::kNoHoles)
                                : wire::Cursor(span.data, span.file.offset, span.file.size, HoleAt(span.file.offset));
  }

  // The range of the file that `view`, a whole message in memory, stands for: holes inside it are added.
  // False when `view` does not lie in the file.
  bool FindRange(std::string_view view, FileRange* range) const;

  // Copies bytes [offset, offset + size) of the file to `to`, from memory where they are there.
  // DATA_LOSS when the file has become shorter.
  absl::Status Copy(int64_t offset, int64_t size, char* to) const;

  // Reads from the file itself. DATA_LOSS when it has become shorter.
  absl::Status ReadFile(int64_t offset, int64_t size, char* to) const;

  // FAILED_PRECONDITION when the file was written to since it was read.
  absl::Status CheckUnchanged() const;

 private:
  ModelFile() = default;
  friend class ModelFileReader;

  static absl::StatusOr<std::unique_ptr<ModelFile>> FromDescriptor(int fd, const std::string& name, const LoadProgress& progress);

  int fd_ = -1;
  std::string name_;
  int64_t file_size_ = 0;
  int64_t structural_size_ = 0;
  int64_t node_fields_ = 0;
  int64_t initializer_fields_ = 0;
  int64_t modified_seconds_ = 0;  // of the file when it was opened
  int64_t modified_nanoseconds_ = 0;
  uint8_t* data_ = nullptr;  // an anonymous mapping of `reserved_` bytes, touched only where used
  size_t reserved_ = 0;
  bool huge_pages_ = false;
  std::vector<FileRange> holes_;  // ends with wire::kNoHoles
  std::vector<int64_t> removed_;  // bytes left out before hole i
};

}  // namespace ascend_fuse
