// Opening external data files without leaving the model's directory.
#include "ir/onnx/external_data.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "fmt/format.h"
#include "ir/onnx/uninterrupted.h"
#include "ir/status_macros.h"

namespace ascend_fuse {
namespace {

constexpr const char* kAdvice = "Put the data file beside the model (a copy, not a link) and name it there.";

// Opens `location` beneath `directory` without following any link; -1 and errno on failure.
int OpenBeneath(int directory, const std::string& location) {
  struct open_how how = {};
  how.flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK;
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS;
  const long fd = Uninterrupted([&] { return syscall(SYS_openat2, directory, location.c_str(), &how, sizeof(how)); });
  if (fd >= 0 || (errno != ENOSYS && errno != EPERM)) return static_cast<int>(fd);
  // An old kernel, or a container that forbids openat2: one component after another.
  int at = dup(directory);
  size_t begin = 0;
  while (at >= 0) {
    const size_t slash = location.find('/', begin);
    const bool last = slash == std::string::npos;
    const std::string part = location.substr(begin, last ? std::string::npos : slash - begin);
    if (part == "..") {
      close(at);
      errno = EXDEV;
      return -1;
    }
    const int next =
        openat(at, part.empty() ? "." : part.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW | (last ? 0 : O_DIRECTORY));
    const int error = errno;
    close(at);
    errno = error;
    at = next;
    if (last) break;
    begin = slash + 1;
  }
  return at;
}

}  // namespace

std::string DirectoryOf(const std::string& path) {
  const size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

absl::Status CheckExternalLocation(std::string_view location) {
  const char* why = nullptr;
  if (location.empty()) {
    why = "is empty";
  } else if (location.front() == '/' || location.front() == '\\' || (location.size() > 1 && location[1] == ':')) {
    why = "is an absolute path";
  } else if (location.find('\0') != std::string_view::npos) {
    why = "has a zero byte";
  } else {
    for (size_t begin = 0; begin <= location.size();) {
      size_t end = location.find_first_of("/\\", begin);
      if (end == std::string_view::npos) end = location.size();
      if (location.substr(begin, end - begin) == "..") why = "leaves the model's directory with '..'";
      begin = end + 1;
    }
  }
  if (why == nullptr) return absl::OkStatus();
  return absl::InvalidArgumentError(fmt::format("external data location '{}' {}. {}", location, why, kAdvice));
}

ExternalData::ExternalData(const std::string& model_path) : directory_(DirectoryOf(model_path)) {}

ExternalData::~ExternalData() {
  if (directory_fd_ >= 0) close(directory_fd_);
}

absl::StatusOr<int> ExternalData::Open(std::string_view location, int64_t* size) {
  RETURN_IF_ERROR(CheckExternalLocation(location));
  if (directory_fd_ < 0) {
    directory_fd_ = Uninterrupted([&] { return open(directory_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC); });
  }
  const std::string name(location);
  const int fd = directory_fd_ < 0 ? -1 : OpenBeneath(directory_fd_, name);
  if (fd < 0) {
    const int error = errno;
    const char* what = std::strerror(error);
    if (error == ELOOP) what = "it is a symbolic link, or lies below one";
    if (error == EXDEV) what = "it lies outside the model's directory";
    return absl::FailedPreconditionError(
        fmt::format("external data file '{}' in directory '{}' cannot be opened: {}. {}", location, directory_, what, kAdvice));
  }
  struct stat info;
  const char* why = nullptr;
  if (fstat(fd, &info) != 0) {
    why = "cannot be examined";
  } else if (!S_ISREG(info.st_mode)) {
    why = "is not a regular file";
  } else if (info.st_nlink > 1) {
    why = "is a hard link (the file has another name as well, so it may belong to something else)";
  }
  if (why != nullptr) {
    close(fd);
    return absl::FailedPreconditionError(
        fmt::format("external data file '{}' in directory '{}' {}. {}", location, directory_, why, kAdvice));
  }
  *size = info.st_size;
  return fd;
}

absl::StatusOr<int64_t> ExternalData::Size(std::string_view location) {
  auto known = sizes_.find(location);
  if (known != sizes_.end()) return known->second;
  int64_t size = 0;
  ASSIGN_OR_RETURN(int fd, Open(location, &size));
  close(fd);
  sizes_.emplace(std::string(location), size);
  return size;
}

absl::Status ExternalData::Check(const Tensor& tensor) {
  ASSIGN_OR_RETURN(int64_t size, Size(tensor.location));
  const int64_t length = tensor.file.size < 0 ? 0 : tensor.file.size;
  if (tensor.file.offset > size || length > size - tensor.file.offset) {
    return absl::FailedPreconditionError(
        fmt::format("external data file '{}' in directory '{}' has {} bytes, but the model needs {} bytes "
                    "from byte {} on. Copy the "
                    "whole data file that was exported together with this model.",
                    tensor.location, directory_, size, length, tensor.file.offset));
  }
  return absl::OkStatus();
}

absl::Status ExternalData::Read(const Tensor& tensor, int64_t size, char* to) {
  int64_t file_size = 0;
  ASSIGN_OR_RETURN(int fd, Open(tensor.location, &file_size));
  int64_t offset = tensor.file.offset;
  int error = 0;
  bool ok = offset <= file_size && size <= file_size - offset;
  while (ok && size > 0) {
    const ssize_t got = pread(fd, to, static_cast<size_t>(size), offset);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) {
      error = got < 0 ? errno : 0;
      ok = false;
      break;
    }
    to += got;
    offset += got;
    size -= got;
  }
  close(fd);
  if (ok) return absl::OkStatus();
  return absl::DataLossError(
      fmt::format("external data file '{}' in directory '{}' cannot be read at byte {}: {}. Copy the whole "
                  "data file that was "
                  "exported together with this model.",
                  tensor.location, directory_, offset, error != 0 ? std::strerror(error) : "it ends there"));
}

}  // namespace ascend_fuse
