// The writer: first a list of pieces (ranges of the input file, bytes in memory) with its exact size, then
// one pass that copies them in full pages.
#include "ir/onnx/save.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <memory>
#include <vector>

#include "fmt/format.h"
#include "ir/memory.h"
#include "ir/onnx/external_data.h"
#include "ir/onnx/model_file.h"
#include "ir/onnx/model_writer.h"
#include "ir/onnx/output_file.h"
#include "ir/onnx/pieces.h"
#include "ir/onnx/weight_places.h"
#include "ir/status_macros.h"
#include "ir/verify.h"

namespace ascend_fuse {
namespace {

constexpr int64_t kLargestModel = std::numeric_limits<int32_t>::max();
constexpr size_t kBlock = size_t{256} << 10;  // measured: see bench/README.md

// Says how far writing is, and asks whether to go on.
absl::Status Tell(const SaveOptions& options, const std::string& path, int64_t written, int64_t total) {
  if (options.progress) options.progress(written, total);
  if (!options.go_on || options.go_on()) return absl::OkStatus();
  return absl::CancelledError(fmt::format("{}: cancelled, nothing was written", path));
}

// Collects bytes into full blocks and writes those, so that every write is whole pages at a page boundary.
class BlockWriter {
 public:
  BlockWriter(int fd, const std::string& path, int64_t total, const SaveOptions& options)
      : fd_(fd), path_(path), total_(total), options_(options) {}
  ~BlockWriter() { std::free(block_); }
  BlockWriter(const BlockWriter&) = delete;
  BlockWriter& operator=(const BlockWriter&) = delete;

  absl::Status Append(const ModelFile* model_file, int64_t offset, int64_t size) {
    return Fill(size, [&](char* to, int64_t done, int64_t count) { return model_file->Copy(offset + done, count, to); });
  }
  absl::Status Append(ElementReader* reader, int64_t size) {
    return Fill(size, [&](char* to, int64_t, int64_t count) { return reader->Next(count, to); });
  }
  absl::Status Append(std::string_view bytes) {
    return Fill(static_cast<int64_t>(bytes.size()), [&](char* to, int64_t done, int64_t count) {
      std::memcpy(to, bytes.data() + done, static_cast<size_t>(count));
      return absl::OkStatus();
    });
  }

  absl::Status Flush() {
    RETURN_IF_ERROR(WriteAll(fd_, path_, block_, used_));
    written_ += static_cast<int64_t>(used_);
    used_ = 0;
    if (written_ < next_report_) return absl::OkStatus();
    next_report_ = written_ + (int64_t{16} << 20);
    return Tell(options_, path_, written_, total_);
  }

 private:
  template <typename Source>
  absl::Status Fill(int64_t size, Source source) {
    if (block_ == nullptr) block_ = static_cast<char*>(std::aligned_alloc(4096, kBlock));
    if (block_ == nullptr) return OutOfMemory();
    for (int64_t done = 0; done < size;) {
      const int64_t count = std::min(size - done, static_cast<int64_t>(kBlock - used_));
      RETURN_IF_ERROR(source(block_ + used_, done, count));
      used_ += static_cast<size_t>(count);
      done += count;
      if (used_ == kBlock) {
        RETURN_IF_ERROR(Flush());
      }
    }
    return absl::OkStatus();
  }

  int fd_;
  const std::string& path_;
  int64_t total_;
  const SaveOptions& options_;
  char* block_ = nullptr;
  size_t used_ = 0;
  int64_t written_ = 0;
  int64_t next_report_ = 0;
};

// Pieces checked for size; `data`: those of WeightPlaces::data_file.
absl::StatusOr<Pieces> LayOut(const Model& model, const std::string& shown, const WeightPlaces& places, Pieces* data) {
  ModelWriter writer(model, places);
  if (!writer.IsUnchanged()) {
    RETURN_IF_ERROR(Verify(model));
  }
  Pieces pieces = writer.Run();
  *data = std::move(writer.data());
  if (model.model_file() != nullptr) {
    RETURN_IF_ERROR(model.model_file()->CheckUnchanged());
  }
  if (pieces.total() > kLargestModel && !writer.IsUnchanged()) {
    return absl::OutOfRangeError(fmt::format(
        "{}: the model would have {} bytes in one file; protobuf, and with it every runtime and ATC, reads "
        "at "
        "most {}. Have the weights written to a file beside the model (--weights FILE), or left in the input (--weights "
        "reference)",
        shown, pieces.total(), kLargestModel));
  }
  return pieces;
}

absl::Status WritePieces(const Model& model, const Pieces& pieces, int fd, const std::string& path, const SaveOptions& options) {
  // The exact size in one go: faster, and a full disk is found before the first byte. File systems that
  // cannot do it (EOPNOTSUPP and others) go without.
  if (fallocate(fd, 0, 0, pieces.total()) != 0 && (errno == ENOSPC || errno == EDQUOT || errno == EFBIG)) {
    return SystemError(path, fmt::format("no room for {} bytes", pieces.total()), errno);
  }
  BlockWriter writer(fd, path, pieces.total(), options);
  for (const Pieces::Piece& piece : pieces.pieces()) {
    absl::Status status;
    const auto size = static_cast<size_t>(piece.size);
    if (piece.kind == Pieces::kFile) {
      status = writer.Append(model.model_file(), piece.offset, piece.size);
    } else if (piece.kind == Pieces::kElements) {
      ElementReader reader(model, *piece.tensor);
      status = writer.Append(&reader, piece.size);
    } else if (piece.kind == Pieces::kBuffer) {
      status = writer.Append(pieces.buffer().substr(static_cast<size_t>(piece.offset), size));
    } else {
      status = writer.Append(std::string_view(piece.data, size));
    }
    if (!status.ok()) return status;
  }
  RETURN_IF_ERROR(writer.Flush());
  if (model.model_file() != nullptr) {
    RETURN_IF_ERROR(model.model_file()->CheckUnchanged());
  }
  return Tell(options, path, pieces.total(), pieces.total());
}

// The model and the data file that its places ask for: both are complete before either gets its name.
absl::Status WriteFiles(const Model& model, const Pieces& pieces, const Pieces& data, const std::string& data_path,
                        const std::string& path, const SaveOptions& options) {
  const auto write = [&](const Pieces& of_file, const std::string& to, TemporaryFile* temporary) {
    return temporary->Write(to, [&](int fd) { return WritePieces(model, of_file, fd, to, options); });
  };
  TemporaryFile of_data;
  TemporaryFile of_model;
  if (data.total() > 0) {
    RETURN_IF_ERROR(write(data, data_path, &of_data));
  }
  RETURN_IF_ERROR(write(pieces, path, &of_model));
  if (data.total() > 0) {
    RETURN_IF_ERROR(of_data.PutInPlace(data_path));
  }
  return of_model.PutInPlace(path);
}

absl::Status Save(const Model& model, const std::string& path, const SaveOptions& options) {
  struct stat target;
  if (stat(path.c_str(), &target) == 0 && !S_ISREG(target.st_mode)) {
    return absl::InvalidArgumentError(fmt::format("{}: cannot write the model there: it is {}. Give the name of an .onnx file",
                                                  path, S_ISDIR(target.st_mode) ? "a directory" : "a device or a pipe"));
  }
  if (path.empty() || path.rfind("/dev/", 0) == 0 || path.rfind("/proc/", 0) == 0) {
    return absl::InvalidArgumentError(
        fmt::format("{}: cannot write the model there. Give the name of an .onnx file", path.empty() ? "''" : path));
  }
  ASSIGN_OR_RETURN(const WeightPlaces places, PlaceWeights(model, path, options));
  Pieces data;
  ASSIGN_OR_RETURN(Pieces pieces, LayOut(model, path, places, &data));
  std::vector<std::string> copied;
  const absl::Status status = WithinMemory([&]() -> absl::Status {
    if (options.copy_data && options.weights == Weights::kCopy && !model.path().empty()) {
      const auto tell = [&](int64_t written, int64_t total) { return Tell(options, path, written, total); };
      RETURN_IF_ERROR(CopyDataFiles(model, path, tell, &copied));
    }
    return WriteFiles(model, pieces, data, fmt::format("{}/{}", DirectoryOf(path), places.data_file), path, options);
  });
  if (!status.ok()) {
    // Files before the directories that they lie in; a directory that holds something else by now stays.
    for (auto made = copied.rbegin(); made != copied.rend(); ++made) std::remove(made->c_str());
  }
  return status;
}

absl::StatusOr<std::string> SaveToBytes(const Model& model) {
  Pieces data;  // none: there is no file to put it in
  ASSIGN_OR_RETURN(Pieces pieces, LayOut(model, "the model in memory", {}, &data));
  std::string bytes(static_cast<size_t>(pieces.total()), '\0');
  char* to = bytes.data();
  for (const Pieces::Piece& piece : pieces.pieces()) {
    const auto size = static_cast<size_t>(piece.size);
    if (piece.kind == Pieces::kFile) {
      RETURN_IF_ERROR(model.model_file()->Copy(piece.offset, piece.size, to));
    } else if (piece.kind == Pieces::kElements) {
      ElementReader reader(model, *piece.tensor);
      RETURN_IF_ERROR(reader.Next(piece.size, to));
    } else if (piece.kind == Pieces::kBuffer) {
      std::memcpy(to, pieces.buffer().data() + piece.offset, size);
    } else {
      std::memcpy(to, piece.data, size);
    }
    to += size;
  }
  return bytes;
}

}  // namespace

absl::Status SaveModel(const Model& model, const std::string& path, const SaveOptions& options) {
  return WithinMemory([&] { return Save(model, path, options); });
}

absl::StatusOr<std::string> SaveModelToBytes(const Model& model) {
  return WithinMemory([&] { return SaveToBytes(model); });
}

}  // namespace ascend_fuse
