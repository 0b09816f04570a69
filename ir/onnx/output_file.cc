#include "ir/onnx/output_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <utility>

#include "fmt/format.h"
#include "ir/memory.h"
#include "ir/onnx/external_data.h"
#include "ir/onnx/uninterrupted.h"

namespace ascend_fuse {

absl::Status SystemError(const std::string& path, const std::string& what, int error) {
  const std::string sentence = fmt::format("{}: {}: {}", path, what, std::strerror(error));
  switch (error) {
    case ENOSPC:
    case EDQUOT:
    case EFBIG:
      return absl::ResourceExhaustedError(sentence + ". Free some space, or write to another disk");
    case EACCES:
    case EPERM:
    case EROFS:
      return absl::PermissionDeniedError(sentence);
    case ENOENT:
    case ENOTDIR:
      return absl::NotFoundError(sentence + ". Make the directory first");
    default:
      return absl::UnavailableError(sentence);
  }
}

namespace {

// The names of files that are being written; a 65th at one time is not known to RemoveUnfinishedFiles.
std::atomic<const char*> unfinished[64];  // NOLINT: for the end of the process

void Exchange(const char* from, const char* to) {
  for (std::atomic<const char*>& name : unfinished) {
    const char* expected = from;
    if (name.compare_exchange_strong(expected, to)) return;
  }
}

}  // namespace

void RemoveUnfinishedFiles() {
  for (std::atomic<const char*>& name : unfinished) {
    if (const char* path = name.exchange(nullptr); path != nullptr) unlink(path);
  }
}

TemporaryFile::~TemporaryFile() {
  if (name_.empty()) return;
  Exchange(name_.c_str(), nullptr);
  unlink(name_.c_str());
}

absl::Status TemporaryFile::Write(const std::string& path, absl::FunctionRef<absl::Status(int fd)> write) {
  static std::atomic<uint32_t> counter = 0;
  int fd = -1;
  int error = 0;
  for (int attempt = 0; attempt < 100 && fd < 0; ++attempt) {
    std::string name = fmt::format("{}/.ascend-fuse-{}-{}.tmp", DirectoryOf(path), getpid(), counter++);
    fd = Uninterrupted([&] { return open(name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666); });
    error = errno;
    if (fd >= 0) name_ = std::move(name);
    if (fd < 0 && error != EEXIST) break;
  }
  if (fd < 0) return SystemError(path, "cannot create a file in that directory", error);
  Exchange(nullptr, name_.c_str());
  absl::Status status = WithinMemory([&] { return write(fd); });
  // Linux has closed it also where close says EINTR; what was written by then is no less there.
  if (close(fd) != 0 && errno != EINTR && status.ok()) status = SystemError(path, "cannot write", errno);
  return status;
}

absl::Status TemporaryFile::PutInPlace(const std::string& path) {
  if (rename(name_.c_str(), path.c_str()) != 0) {
    return SystemError(path, "cannot put the finished file in its place", errno);
  }
  Exchange(name_.c_str(), nullptr);
  name_.clear();
  return absl::OkStatus();
}

absl::Status WriteAll(int fd, const std::string& path, const char* bytes, size_t size) {
  for (size_t at = 0; at < size;) {
    const ssize_t put = write(fd, bytes + at, size - at);
    if (put < 0 && errno == EINTR) continue;
    if (put <= 0) return SystemError(path, "cannot write", put == 0 ? ENOSPC : errno);
    at += static_cast<size_t>(put);
  }
  return absl::OkStatus();
}

}  // namespace ascend_fuse
