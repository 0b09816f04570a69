#include "ir/onnx/whole_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "fmt/format.h"
#include "ir/onnx/output_file.h"
#include "ir/onnx/uninterrupted.h"

namespace ascend_fuse {

absl::StatusOr<std::string> ReadWholeFile(const std::string& path) {
  const auto failed = [&path] { return absl::NotFoundError(fmt::format("{} cannot be read: {}", path, std::strerror(errno))); };
  const int fd = Uninterrupted([&] { return open(path.c_str(), O_RDONLY | O_CLOEXEC); });
  if (fd < 0) return failed();
  std::string text;
  char block[16 << 10];
  for (;;) {
    const ssize_t got = read(fd, block, sizeof(block));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) {
      absl::Status status = failed();
      close(fd);
      return status;
    }
    if (got == 0) break;
    text.append(block, static_cast<size_t>(got));
  }
  close(fd);
  return text;
}

absl::Status WriteWholeFile(const std::string& path, const std::string& text) {
  struct stat info;
  if (stat(path.c_str(), &info) == 0 && !S_ISREG(info.st_mode)) {  // a device or a pipe, which stays what it is
    const int fd = Uninterrupted([&] { return open(path.c_str(), O_WRONLY | O_CLOEXEC); });
    if (fd < 0) return SystemError(path, "cannot write", errno);
    absl::Status status = WriteAll(fd, path, text.data(), text.size());
    if (close(fd) != 0 && errno != EINTR && status.ok()) status = SystemError(path, "cannot write", errno);
    return status;
  }
  TemporaryFile file;
  absl::Status status = file.Write(path, [&](int fd) { return WriteAll(fd, path, text.data(), text.size()); });
  return status.ok() ? file.PutInPlace(path) : status;
}

}  // namespace ascend_fuse
