// Files that appear whole or not at all: written under another name beside their place, and renamed.
#pragma once

#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"

namespace ascend_fuse {

// The error of a system call on `path`, as a status with what to do.
absl::Status SystemError(const std::string& path, const std::string& what, int error);

// A file under another name, which is removed unless it was put in its place: also when memory runs out in between.
class TemporaryFile {
 public:
  TemporaryFile() = default;
  ~TemporaryFile();
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;

  // Has `write` fill a new file beside `path`, so that a rename puts it in its place within one file system.
  absl::Status Write(const std::string& path, absl::FunctionRef<absl::Status(int fd)> write);
  absl::Status PutInPlace(const std::string& path);

 private:
  std::string name_;  // empty: there is none
};

// Removes what TemporaryFiles have written and not put in its place, for a process that ends at once. Needs no memory.
void RemoveUnfinishedFiles();

// All of it, however many calls that takes. `path` is for the sentence of an error.
absl::Status WriteAll(int fd, const std::string& path, const char* bytes, size_t size);

}  // namespace ascend_fuse
