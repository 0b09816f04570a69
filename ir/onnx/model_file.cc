// Reads a model file once, front to back, keeping the structure and leaving out the payloads. Descends only
// into messages of 4 KB and more that can contain a tensor, so small nodes cost a few nanoseconds each.
#include "ir/onnx/model_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "fmt/format.h"
#include "ir/onnx/uninterrupted.h"
#include "ir/onnx/wire_check.h"
#include "ir/status_macros.h"
#include "proto/onnx.pb.h"

namespace ascend_fuse {
namespace {

// Messages that may contain a payload, and what else a length-delimited field can be.
enum Kind : uint8_t {
  kOpaque,  // kept as it is
  kPayload,
  kModel,
  kGraph,
  kNode,
  kAttribute,
  kTensor,
  kSparse,
  kTraining,
  kFunction,
  kKinds,
};

constexpr uint32_t kFields = 32;

struct Table {
  Kind child[kKinds][kFields] = {};

  constexpr Table() {
    using namespace onnx;  // NOLINT: the generated field numbers
    child[kModel][ModelProto::kGraphFieldNumber] = kGraph;
    child[kModel][ModelProto::kTrainingInfoFieldNumber] = kTraining;
    child[kModel][ModelProto::kFunctionsFieldNumber] = kFunction;
    child[kGraph][GraphProto::kNodeFieldNumber] = kNode;
    child[kGraph][GraphProto::kInitializerFieldNumber] = kTensor;
    child[kGraph][GraphProto::kSparseInitializerFieldNumber] = kSparse;
    child[kNode][NodeProto::kAttributeFieldNumber] = kAttribute;
    child[kTraining][TrainingInfoProto::kInitializationFieldNumber] = kGraph;
    child[kTraining][TrainingInfoProto::kAlgorithmFieldNumber] = kGraph;
    child[kFunction][FunctionProto::kNodeFieldNumber] = kNode;
    child[kFunction][FunctionProto::kAttributeProtoFieldNumber] = kAttribute;
    child[kAttribute][AttributeProto::kTFieldNumber] = kTensor;
    child[kAttribute][AttributeProto::kTensorsFieldNumber] = kTensor;
    child[kAttribute][AttributeProto::kGFieldNumber] = kGraph;
    child[kAttribute][AttributeProto::kGraphsFieldNumber] = kGraph;
    child[kAttribute][AttributeProto::kSparseTensorFieldNumber] = kSparse;
    child[kAttribute][AttributeProto::kSparseTensorsFieldNumber] = kSparse;
    child[kSparse][SparseTensorProto::kValuesFieldNumber] = kTensor;
    child[kSparse][SparseTensorProto::kIndicesFieldNumber] = kTensor;
    child[kTensor][TensorProto::kRawDataFieldNumber] = kPayload;
    child[kTensor][TensorProto::kFloatDataFieldNumber] = kPayload;
    child[kTensor][TensorProto::kInt32DataFieldNumber] = kPayload;
    child[kTensor][TensorProto::kInt64DataFieldNumber] = kPayload;
    child[kTensor][TensorProto::kDoubleDataFieldNumber] = kPayload;
    child[kTensor][TensorProto::kUint64DataFieldNumber] = kPayload;
  }
};
constexpr Table kTable;

constexpr size_t kFirstRead = size_t{4} << 10;
// What was read is scanned while it is in the L2 cache (2 MB on the machine measured): a read of 1 MB of
// small nodes pushes its own beginning out, and scanning then takes three times as long.
constexpr size_t kLongestRead = size_t{256} << 10;
constexpr size_t kHugePage = size_t{2} << 20;

std::string SystemError(int error) { return std::strerror(error); }

absl::Status ChangedWhileReading(const std::string& name) {
  return absl::DataLossError(
      fmt::format("{}: the file became shorter while it was read. Wait until the program that writes it is "
                  "done, then try again.",
                  name));
}

// pread until all is there; false on a short file or an error (errno 0 for a short file).
bool ReadAll(int fd, int64_t offset, int64_t size, void* to) {
  auto* at = static_cast<uint8_t*>(to);
  while (size > 0) {
    const ssize_t got = pread(fd, at, static_cast<size_t>(std::min<int64_t>(size, int64_t{1} << 30)), offset);
    if (got < 0 && errno == EINTR) continue;
    if (got == 0) errno = 0;
    if (got <= 0) return false;
    at += got;
    offset += got;
    size -= got;
  }
  return true;
}

// Makes the pages of [to, to + size) present in one call. Without it pread takes a page fault for every 4 KB:
// a third of the time of reading a file of 1 MB. Only advice: an older kernel (before 5.14) does not know it.
void Populate(uint8_t* to, size_t size) {
#ifdef MADV_POPULATE_WRITE
  constexpr uintptr_t kPage = 4096;  // a wrong guess makes the call fail, nothing more
  const uintptr_t begin = reinterpret_cast<uintptr_t>(to) & ~(kPage - 1);
  const uintptr_t end = (reinterpret_cast<uintptr_t>(to) + size + kPage - 1) & ~(kPage - 1);
  madvise(reinterpret_cast<void*>(begin), end - begin, MADV_POPULATE_WRITE);
#else
  (void)to;
  (void)size;
#endif
}

}  // namespace

// One scan of one file. Memory position m of the mapping holds file offset m + removed_.
class ModelFileReader {
 public:
  ModelFileReader(ModelFile* file, const std::string& name, const LoadProgress& progress)
      : file_(*file), name_(name), progress_(progress) {}

  absl::Status Run() {
    struct Frame {
      Kind kind;
      uint32_t group;  // the field number of a group, 0 for a message
      int64_t end;
    };
    std::vector<Frame> stack = {{kModel, 0, file_.file_size_}};
    while (!stack.empty()) {
      const Frame frame = stack.back();
      if (position_ == frame.end) {
        if (frame.group != 0) return Broken("a group without an end");
        stack.pop_back();
        continue;
      }
      const int64_t start = position_;
      uint64_t tag = 0;
      RETURN_IF_ERROR(Varint(frame.end, &tag));
      const uint64_t number = tag >> 3;
      if (number == 0 || tag > 0xFFFFFFFFu) return Broken("a field number out of range", start);
      switch (tag & 7) {
        case wire::kVarint: {
          uint64_t value = 0;
          RETURN_IF_ERROR(Varint(frame.end, &value));
          break;
        }
        case wire::kFixed64:
        case wire::kFixed32:
          position_ += (tag & 7) == wire::kFixed64 ? 8 : 4;
          if (position_ > frame.end) return Broken("a truncated field", start);
          break;
        case wire::kBytes: {
          uint64_t length = 0;
          RETURN_IF_ERROR(Varint(frame.end, &length));
          if (length > static_cast<uint64_t>(frame.end - position_)) {
            return Broken(stack.size() == 1 ? "a field that is longer than the rest of the file (cut off?)"
                                            : "a length beyond the end of the enclosing message",
                          start);
          }
          const auto size = static_cast<int64_t>(length);
          if (frame.kind == kGraph) {
            file_.node_fields_ += number == onnx::GraphProto::kNodeFieldNumber ? 1 : 0;
            file_.initializer_fields_ += number == onnx::GraphProto::kInitializerFieldNumber ? 1 : 0;
          }
          const Kind child = size < ModelFile::kPayloadBytes || number >= kFields ? kOpaque : kTable.child[frame.kind][number];
          if (child == kOpaque) {
            position_ += size;
          } else if (child == kPayload) {
            RETURN_IF_ERROR(CheckPayload(number, start, size));
            RETURN_IF_ERROR(LeaveOut(size));
          } else {
            if (stack.size() >= wire::kMaxDepth) return Broken("messages nested more than 100 deep", start);
            stack.push_back({child, 0, position_ + size});
          }
          break;
        }
        case wire::kGroup:
          if (stack.size() >= wire::kMaxDepth) return Broken("groups nested more than 100 deep", start);
          stack.push_back({kOpaque, static_cast<uint32_t>(number), frame.end});
          break;
        case wire::kEndGroup:
          if (frame.group != number) return Broken("the end of a group that was not begun", start);
          stack.pop_back();
          break;
        default:
          return Broken("an unknown wire type", start);
      }
    }
    RETURN_IF_ERROR(Fill(position_));
    file_.structural_size_ = position_ - removed_;
    file_.holes_.push_back(wire::kNoHoles);
    file_.removed_.push_back(removed_);
    return absl::OkStatus();
  }

 private:
  absl::Status Broken(const char* what, int64_t offset) const {
    return absl::InvalidArgumentError(
        fmt::format("{}: not an ONNX model, or a damaged one: {} at byte {} of {}. Export the model again, "
                    "or check the download.",
                    name_, what, offset, file_.file_size_));
  }
  absl::Status Broken(const char* what) const { return Broken(what, position_); }

  // Makes file bytes up to `end` present (at most to the end of the file).
  absl::Status Fill(int64_t end) {
    while (read_to_ < end) {
      const int64_t want = std::max<int64_t>(static_cast<int64_t>(next_read_), end - read_to_);
      const int64_t size = std::min(want, file_.file_size_ - read_to_);
      uint8_t* to = file_.data_ + (read_to_ - removed_);
      if (!file_.huge_pages_) Populate(to, static_cast<size_t>(size));
      if (!ReadAll(file_.fd_, read_to_, size, to)) {
        if (errno == 0) return ChangedWhileReading(name_);
        return absl::DataLossError(fmt::format("{}: cannot read: {}", name_, SystemError(errno)));
      }
      read_to_ += size;
      if (progress_ != nullptr) progress_(read_to_, 2 * file_.file_size_);
      next_read_ = std::min(next_read_ * 2, kLongestRead);
    }
    return absl::OkStatus();
  }

  absl::Status Varint(int64_t end, uint64_t* value) {
    if (position_ + 10 > read_to_) {
      // All bytes skipped so far must land in memory, and ten more to look at.
      RETURN_IF_ERROR(Fill(std::min(position_ + 10, file_.file_size_)));
    }
    const uint8_t* data = file_.data_ + (position_ - removed_);
    if (position_ < end && *data < 0x80) {
      *value = *data;
      ++position_;
      return absl::OkStatus();
    }
    const int64_t start = position_;
    uint64_t result = 0;
    for (int i = 0; i < 10; ++i) {
      if (position_ >= end) return Broken("a truncated varint", start);
      ++position_;
      result |= static_cast<uint64_t>(data[i] & 0x7F) << (7 * i);
      if (data[i] < 0x80) {
        *value = result;
        return absl::OkStatus();
      }
    }
    return Broken("a varint longer than 10 bytes", start);
  }

  // Whether the numbers of a payload at position_ that is packed end with it, as protobuf demands. The bytes of raw_data, which
  // is what weights are, need no look.
  absl::Status CheckPayload(uint64_t number, int64_t start, int64_t size) {
    using T = onnx::TensorProto;
    if (number == T::kRawDataFieldNumber) return absl::OkStatus();
    const char* const wrong = "a packed list that ends inside a number";
    if (number == T::kFloatDataFieldNumber) return size % 4 == 0 ? absl::OkStatus() : Broken(wrong, start);
    if (number == T::kDoubleDataFieldNumber) return size % 8 == 0 ? absl::OkStatus() : Broken(wrong, start);
    constexpr int64_t kPart = 64 << 10;
    const std::unique_ptr<char[]> part(new char[static_cast<size_t>(std::min(size, kPart))]);
    int open = 0;
    for (int64_t done = 0; done < size;) {
      const int64_t count = std::min(size - done, kPart);
      RETURN_IF_ERROR(file_.ReadFile(position_ + done, count, part.get()));
      if (!AreVarints({part.get(), static_cast<size_t>(count)}, &open)) return Broken("a varint longer than 10 bytes", start);
      done += count;
    }
    return open == 0 ? absl::OkStatus() : Broken(wrong, start);
  }

  // Makes [position_, position_ + size) a hole and goes on after it.
  absl::Status LeaveOut(int64_t size) {
    file_.holes_.push_back({position_, size});
    file_.removed_.push_back(removed_);
    const int64_t after = position_ + size;
    const int64_t kept = read_to_ - after;
    if (kept > 0 && kept <= static_cast<int64_t>(4 * kFirstRead)) {
      uint8_t* to = file_.data_ + (position_ - removed_);
      std::memmove(to, to + size, static_cast<size_t>(kept));
    } else {
      read_to_ = after;  // what was read after it is read again, in small pieces
    }
    // Behind a payload comes most likely another tensor: do not read its payload only to drop it.
    next_read_ = kFirstRead;
    position_ = after;
    removed_ += size;
    return absl::OkStatus();
  }

  ModelFile& file_;
  const std::string& name_;
  const LoadProgress& progress_;
  int64_t position_ = 0;
  int64_t read_to_ = 0;
  int64_t removed_ = 0;
  size_t next_read_ = kFirstRead;
};

ModelFile::~ModelFile() {
  if (data_ != nullptr) munmap(data_, reserved_);
  if (fd_ >= 0) close(fd_);
}

absl::StatusOr<std::unique_ptr<ModelFile>> ModelFile::Read(const std::string& path, const LoadProgress& progress) {
  // O_NONBLOCK: opening a named pipe must not wait for a writer.
  const int fd = Uninterrupted([&] { return open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK); });
  if (fd < 0) {
    const int error = errno;
    const std::string sentence = fmt::format("{}: cannot open the model: {}", path, SystemError(error));
    if (error == ENOENT || error == ENOTDIR) return absl::NotFoundError(sentence);
    if (error == EACCES || error == EPERM) return absl::PermissionDeniedError(sentence);
    return absl::UnavailableError(sentence);
  }
  return FromDescriptor(fd, path, progress);
}

absl::StatusOr<std::unique_ptr<ModelFile>> ModelFile::FromBytes(std::string_view bytes, const std::string& name) {
  const int fd = memfd_create("ascend-fuse-model", MFD_CLOEXEC);
  if (fd < 0) {
    return absl::ResourceExhaustedError(fmt::format("{}: cannot make an anonymous file: {}", name, SystemError(errno)));
  }
  for (size_t at = 0; at < bytes.size();) {
    const ssize_t put = write(fd, bytes.data() + at, bytes.size() - at);
    if (put < 0 && errno == EINTR) continue;
    if (put <= 0) {
      const int error = errno;
      close(fd);
      return absl::ResourceExhaustedError(
          fmt::format("{}: cannot keep {} bytes in memory: {}", name, bytes.size(), SystemError(error)));
    }
    at += static_cast<size_t>(put);
  }
  return FromDescriptor(fd, name, nullptr);
}

absl::StatusOr<std::unique_ptr<ModelFile>> ModelFile::FromDescriptor(int fd, const std::string& name,
                                                                     const LoadProgress& progress) {
  std::unique_ptr<ModelFile> file(new ModelFile);
  file->fd_ = fd;
  file->name_ = name;
  struct stat info;
  if (fstat(fd, &info) != 0) {
    return absl::UnavailableError(fmt::format("{}: cannot examine the model: {}", name, SystemError(errno)));
  }
  if (!S_ISREG(info.st_mode)) {
    return absl::InvalidArgumentError(fmt::format("{}: not a regular file but {}. Give the path of an .onnx file.", name,
                                                  S_ISDIR(info.st_mode) ? "a directory" : "a device or a pipe"));
  }
  if (info.st_size == 0) {
    return absl::InvalidArgumentError(fmt::format("{}: the file is empty. Export the model again, or check the download.", name));
  }
  file->file_size_ = info.st_size;
  file->modified_seconds_ = info.st_mtim.tv_sec;
  file->modified_nanoseconds_ = info.st_mtim.tv_nsec;
  // Address space for the whole file; memory only for what is read into it. Aligned for huge pages.
  const size_t size = static_cast<size_t>(info.st_size);
  file->reserved_ = (size + 2 * kHugePage) & ~(kHugePage - 1);
  void* map = mmap(nullptr, file->reserved_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (map == MAP_FAILED) {
    return absl::ResourceExhaustedError(
        fmt::format("{}: cannot reserve {} bytes of address space: {}", name, size, SystemError(errno)));
  }
  file->data_ = static_cast<uint8_t*>(map);
  file->huge_pages_ = size >= 2 * kHugePage && madvise(map, file->reserved_, MADV_HUGEPAGE) == 0;
  RETURN_IF_ERROR(ModelFileReader(file.get(), name, progress).Run());
  return file;
}

const FileRange* ModelFile::HoleAt(int64_t offset) const {
  return std::lower_bound(holes_.data(), holes_.data() + holes_.size() - 1, offset,
                          [](const FileRange& hole, int64_t at) { return hole.offset < at; });
}

bool ModelFile::FindRange(std::string_view view, FileRange* range) const {
  const auto* first = reinterpret_cast<const uint8_t*>(view.data());
  if (first < data_ || first + view.size() > data_ + structural_size_) return false;
  const int64_t begin = first - data_;
  const int64_t end = begin + static_cast<int64_t>(view.size());
  // The first hole whose place in memory is after `begin`: a message does not begin with a hole.
  size_t low = 0;
  size_t high = holes_.size() - 1;
  while (low < high) {
    const size_t middle = (low + high) / 2;
    if (holes_[middle].offset - removed_[middle] <= begin) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  *range = {begin + removed_[low], end - begin};
  for (size_t i = low; i + 1 < holes_.size() && holes_[i].offset - removed_[i] <= end; ++i) {
    // A hole at the very end of the view belongs to it: its tag and length do.
    range->size += holes_[i].size;
  }
  return true;
}

absl::Status ModelFile::ReadFile(int64_t offset, int64_t size, char* to) const {
  if (ReadAll(fd_, offset, size, to)) return absl::OkStatus();
  if (errno == 0) return ChangedWhileReading(name_);
  return absl::DataLossError(fmt::format("{}: cannot read at byte {}: {}", name_, offset, SystemError(errno)));
}

absl::Status ModelFile::Copy(int64_t offset, int64_t size, char* to) const {
  // The hole that contains `offset`, or the first one after it.
  const FileRange* hole = HoleAt(offset);
  if (hole != holes_.data() && hole[-1].offset + hole[-1].size > offset) --hole;
  while (size > 0) {
    int64_t count;
    if (hole->offset <= offset) {
      count = std::min(size, hole->offset + hole->size - offset);
      RETURN_IF_ERROR(ReadFile(offset, count, to));
      ++hole;
    } else {
      count = std::min(size, hole->offset - offset);
      std::memcpy(to, data_ + (offset - removed_[static_cast<size_t>(hole - holes_.data())]), static_cast<size_t>(count));
    }
    offset += count;
    size -= count;
    to += count;
  }
  return absl::OkStatus();
}

absl::Status ModelFile::CheckUnchanged() const {
  struct stat info;
  if (fstat(fd_, &info) == 0 && info.st_size == file_size_ && info.st_mtim.tv_sec == modified_seconds_ &&
      info.st_mtim.tv_nsec == modified_nanoseconds_) {
    return absl::OkStatus();
  }
  return absl::FailedPreconditionError(
      fmt::format("{}: the file was written to after it was loaded, so its weights are not those of the loaded model "
                  "any more. Run again.",
                  name_));
}

}  // namespace ascend_fuse
