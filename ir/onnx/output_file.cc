#include "ir/onnx/output_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstring>

#include "fmt/format.h"
#include "ir/onnx/external_data.h"

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

absl::Status WriteTemporary(const std::string& path, absl::FunctionRef<absl::Status(int fd)> write, std::string* temporary) {
  static std::atomic<uint32_t> counter = 0;
  int fd = -1;
  for (int attempt = 0; attempt < 100 && fd < 0; ++attempt) {
    *temporary = fmt::format("{}/.ascend-fuse-{}-{}.tmp", DirectoryOf(path), getpid(), counter++);
    fd = open(temporary->c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd < 0 && errno != EEXIST) break;
  }
  if (fd < 0) {
    temporary->clear();
    return SystemError(path, "cannot create a file in that directory", errno);
  }
  absl::Status status = write(fd);
  if (close(fd) != 0 && status.ok()) status = SystemError(path, "cannot write", errno);
  if (!status.ok()) {
    unlink(temporary->c_str());
    temporary->clear();
  }
  return status;
}

absl::Status PutInPlace(const std::string& temporary, const std::string& path) {
  if (rename(temporary.c_str(), path.c_str()) == 0) return absl::OkStatus();
  return SystemError(path, "cannot put the finished file in its place", errno);
}

}  // namespace ascend_fuse
