#include "ir/onnx/weight_places.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <memory>
#include <utility>
#include <vector>

#include "fmt/format.h"
#include "ir/attribute.h"
#include "ir/memory.h"
#include "ir/onnx/external_data.h"
#include "ir/onnx/output_file.h"
#include "ir/onnx/uninterrupted.h"
#include "ir/status_macros.h"
#include "ir/streamed_tensor.h"

namespace ascend_fuse {
namespace {

std::string BaseName(const std::string& path) { return path.substr(path.rfind('/') + 1); }

bool SameFile(const struct stat& a, const struct stat& b) { return a.st_dev == b.st_dev && a.st_ino == b.st_ino; }

// The path without links and dots; as it is where there is none.
std::string RealPath(const std::string& path) {
  const std::unique_ptr<char, decltype(&std::free)> real(realpath(path.c_str(), nullptr), &std::free);
  return real != nullptr ? real.get() : path;
}

// Whether both files, of the same size, have the same bytes.
bool SameBytes(const std::string& one, const std::string& other) {
  constexpr size_t kBlock = size_t{1} << 20;
  const int fds[] = {open(one.c_str(), O_RDONLY | O_CLOEXEC), open(other.c_str(), O_RDONLY | O_CLOEXEC)};
  bool same = fds[0] >= 0 && fds[1] >= 0;
  std::string blocks[2];
  for (bool end = false; same && !end;) {
    for (int i = 0; i < 2; ++i) {
      blocks[i].resize(kBlock);
      size_t filled = 0;
      while (filled < kBlock) {
        const ssize_t count = Uninterrupted([&] { return read(fds[i], blocks[i].data() + filled, kBlock - filled); });
        if (count <= 0) break;
        filled += static_cast<size_t>(count);
      }
      blocks[i].resize(filled);
    }
    same = blocks[0] == blocks[1];
    end = blocks[0].size() < kBlock;
  }
  for (const int fd : fds) {
    if (fd >= 0) close(fd);
  }
  return same;
}

// Whether the file at `to` is the one at `from` or a copy of it. Weights of two models may have one name and one size: then the
// bytes decide, but for a copy that was made here, which has the time of its source.
bool IsCopy(const std::string& from, const struct stat& source, const std::string& to, const struct stat& target) {
  if (SameFile(source, target)) return true;
  if (source.st_size != target.st_size) return false;
  const bool same_time = source.st_mtim.tv_sec == target.st_mtim.tv_sec && source.st_mtim.tv_nsec == target.st_mtim.tv_nsec;
  return same_time || SameBytes(from, to);
}

absl::Status AnotherFile(const std::string& path, const std::string& from, const std::string& to) {
  return absl::FailedPreconditionError(fmt::format(
      "{}: there is another file '{}' where the data file '{}' is to be found. Move it away, or write the output to another "
      "directory",
      path, to, from));
}

// The data files that the model refers to must be found from where it is written.
absl::Status CheckDataFiles(const Model& model, const std::string& path) {
  const std::string from = DirectoryOf(model.path());
  const std::string to = DirectoryOf(path);
  for (const std::string& location : model.external_locations()) {
    struct stat source;
    struct stat copy;
    const std::string source_path = from + "/" + location;
    if (stat(source_path.c_str(), &source) != 0) {
      return absl::FailedPreconditionError(
          fmt::format("{}: the external data file '{}' is gone. Put it back and run again", path, source_path));
    }
    const std::string copy_path = to + "/" + location;
    if (stat(copy_path.c_str(), &copy) == 0) {
      if (IsCopy(source_path, source, copy_path, copy)) continue;
      return AnotherFile(path, source_path, copy_path);
    }
    return absl::FailedPreconditionError(
        fmt::format("{}: the model's weights are in '{}', which would not be found from there. Write the output to "
                    "directory '{}', let the data files be copied (--copy-data), or have the weights written to one file "
                    "(--weights FILE)",
                    path, source_path, from));
  }
  return absl::OkStatus();
}

// The output must not take the place of a file that its weights are in.
absl::Status CheckOutputIsNoDataFile(const Model& model, const std::string& path) {
  struct stat target;
  if (stat(path.c_str(), &target) != 0) return absl::OkStatus();
  for (const std::string& location : model.external_locations()) {
    struct stat source;
    if (stat((DirectoryOf(model.path()) + "/" + location).c_str(), &source) != 0 || !SameFile(source, target)) continue;
    return absl::InvalidArgumentError(
        fmt::format("{}: this is the file that holds the model's weights. Choose another name for the output", path));
  }
  return absl::OkStatus();
}

// Whether external data belongs to anything but the initializers of the main graph: to bodies, attributes, functions.
bool OthersAreExternal(const Model& model) {
  if (model.external_locations().empty()) return false;
  if (!model.functions().empty()) return true;
  for (const auto& graph : model.graphs()) {
    for (const Value* value : graph->initializers()) {
      if (graph.get() != &model.graph() && value->initializer->storage == Storage::kExternal) return true;
    }
    for (const Node* node : graph->nodes()) {
      if (node->dead) continue;
      for (const Attribute& attribute : ReadAttributes(*node)) {
        if (attribute.type == AttributeType::kTensor && attribute.tensor.storage == Storage::kExternal) return true;
      }
    }
  }
  return false;
}

bool HasWeightsInside(const Model& model) {
  const auto& initializers = model.graph().initializers();
  return std::any_of(initializers.begin(), initializers.end(),
                     [](const Value* value) { return value->initializer->storage == Storage::kFile; });
}

// A model holds 2 GB at most, with all its other weights.
constexpr int64_t kMostComputedInside = int64_t{1} << 30;

int64_t ComputedBytes(const Model& model) {
  int64_t bytes = 0;
  for (const Value* value : model.graph().initializers()) {
    const Tensor& tensor = *value->initializer;
    if (HasComputedElements(tensor)) bytes += tensor.ElementCount() * BitWidth(tensor.type) / 8;
  }
  return bytes;
}

absl::Status PlaceByReference(const Model& model, const std::string& path, WeightPlaces* places) {
  if (model.path().empty()) {
    return absl::InvalidArgumentError(
        fmt::format("{}: the model is in memory: there is no file whose weights could be referred to", path));
  }
  const std::string from = RealPath(DirectoryOf(model.path()));
  const std::string to = RealPath(DirectoryOf(path));
  const std::string beneath = to == "/" ? to : to + "/";
  if (from != to && from.compare(0, beneath.size(), beneath) != 0) {
    return absl::FailedPreconditionError(fmt::format(
        "{}: the weights would stay in '{}', and no reader of ONNX follows a way out of the directory of a model. Write "
        "the output to that directory or one above it, or have the weights copied (--weights copy)",
        path, from));
  }
  if (from != to) places->prefix = from.substr(beneath.size()) + "/";
  if (HasWeightsInside(model)) {
    struct stat input;
    struct stat output;
    if (lstat(model.path().c_str(), &input) != 0 || !S_ISREG(input.st_mode) || input.st_nlink > 1) {
      return absl::FailedPreconditionError(fmt::format(
          "{}: the weights would stay in '{}', which is a link or has a second name, and ONNX Runtime and onnx.checker "
          "refuse that. Give the file itself, or have the weights copied (--weights copy)",
          path, model.path()));
    }
    if (stat(path.c_str(), &output) == 0 && SameFile(input, output)) {
      return absl::InvalidArgumentError(fmt::format(
          "{}: this is the input, whose weights the output would refer to. Choose another name for the output", path));
    }
    places->model_file = places->prefix + BaseName(model.path());
  }
  if (!places->prefix.empty() && OthersAreExternal(model)) {
    return absl::FailedPreconditionError(fmt::format(
        "{}: the model has external data in bodies, attributes or functions, which stays as it is and would not be found "
        "from there. Write the output to directory '{}'",
        path, from));
  }
  return absl::OkStatus();
}

absl::Status PlaceInOneFile(const Model& model, const std::string& path, const std::string& file, WeightPlaces* places) {
  if (absl::Status status = CheckExternalLocation(file); !status.ok()) {
    return absl::InvalidArgumentError(fmt::format("{}: the file for the weights lies beside the output or beneath it: {}", path,
                                                  std::string(status.message())));
  }
  struct stat target;
  const std::string whole = DirectoryOf(path) + "/" + file;
  if (stat(whole.c_str(), &target) == 0) {
    std::vector<std::string> read = {model.path()};
    for (const std::string& location : model.external_locations()) {
      read.push_back(DirectoryOf(model.path()) + "/" + location);
    }
    for (const std::string& one : read) {
      struct stat source;
      if (one.empty() || stat(one.c_str(), &source) != 0 || !SameFile(source, target)) continue;
      return absl::InvalidArgumentError(fmt::format(
          "{}: the weights are read from '{}'. Choose another name for the file that they are to be written to", path, one));
    }
    struct stat output;
    if (stat(path.c_str(), &output) == 0 && SameFile(output, target)) {
      return absl::InvalidArgumentError(fmt::format("{}: model and weights cannot have one name", path));
    }
  }
  if (file == BaseName(path)) return absl::InvalidArgumentError(fmt::format("{}: model and weights cannot have one name", path));
  places->data_file = file;
  places->all_in_data_file = true;
  return OthersAreExternal(model) ? CheckDataFiles(model, path) : absl::OkStatus();
}

}  // namespace

absl::StatusOr<WeightPlaces> PlaceWeights(const Model& model, const std::string& path, const SaveOptions& options) {
  WeightPlaces places;
  // A name that no weight of the model lies in yet.
  const std::string base = BaseName(path) + ".merged.data";
  places.data_file = base;
  const auto& taken = model.external_locations();
  for (int i = 1; std::find(taken.begin(), taken.end(), places.data_file) != taken.end(); ++i) {
    places.data_file = fmt::format("{}.{}", base, i);
  }
  if (!model.path().empty()) {
    RETURN_IF_ERROR(CheckOutputIsNoDataFile(model, path));
  }
  places.computed_in_data_file = ComputedBytes(model) > kMostComputedInside;
  absl::Status status;
  switch (options.weights) {
    case Weights::kCopy:
      if (!model.path().empty() && !options.copy_data) status = CheckDataFiles(model, path);
      break;
    case Weights::kReference:
      status = PlaceByReference(model, path, &places);
      break;
    case Weights::kOneFile:
      status = PlaceInOneFile(model, path, options.weights_file, &places);
      break;
  }
  if (!status.ok()) return status;
  return places;
}

namespace {

// A data file to be copied.
struct Job {
  std::string from, to;
  int64_t size;
};

// The `size` bytes of the open files `input` to `output`.
absl::Status CopyBytes(const Job& job, int input, int output, const std::function<absl::Status(int64_t)>& progress) {
  constexpr int64_t kBlock = 16 << 20;
  std::string block;
  for (int64_t done = 0; done < job.size;) {
    // Within one file system that can, blocks are shared and not copied.
    ssize_t count = copy_file_range(input, nullptr, output, nullptr, static_cast<size_t>(std::min(kBlock, job.size - done)), 0);
    if (count < 0 && (errno == EXDEV || errno == EINVAL || errno == ENOSYS || errno == EOPNOTSUPP || errno == EPERM)) {
      block.resize(size_t{256} << 10);
      count = read(input, block.data(), block.size());
      if (count > 0) {
        RETURN_IF_ERROR(WriteAll(output, job.to, block.data(), static_cast<size_t>(count)));
      }
    }
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return SystemError(job.to, "cannot write", errno);
    if (count == 0) return absl::DataLossError(fmt::format("{}: the file has become shorter while it was copied", job.from));
    done += count;
    RETURN_IF_ERROR(progress(count));
  }
  return absl::OkStatus();
}

absl::Status CopyFile(const Job& job, const std::function<absl::Status(int64_t)>& progress) {
  const int input = Uninterrupted([&] { return open(job.from.c_str(), O_RDONLY | O_CLOEXEC); });
  if (input < 0) return SystemError(job.from, "cannot read", errno);
  TemporaryFile file;
  absl::Status status = WithinMemory([&] {
    return file.Write(job.to, [&](int output) {
      absl::Status copied = CopyBytes(job, input, output, progress);
      // The source's time says later that this is its copy.
      struct stat source;
      if (copied.ok() && fstat(input, &source) == 0) {
        const struct timespec times[] = {source.st_atim, source.st_mtim};
        futimens(output, times);
      }
      return copied;
    });
  });
  close(input);
  return status.ok() ? file.PutInPlace(job.to) : status;
}

// The directories on the way from `directory` to the file at `location`; those that were not there are added to `made`.
absl::Status MakeDirectories(const std::string& directory, const std::string& location, std::vector<std::string>* made) {
  for (size_t slash = location.find('/'); slash != std::string::npos; slash = location.find('/', slash + 1)) {
    std::string path = directory + "/" + location.substr(0, slash);
    made->reserve(made->size() + 1);  // so that what is made is never forgotten
    if (mkdir(path.c_str(), 0777) == 0) {
      made->push_back(std::move(path));
    } else if (errno != EEXIST) {
      return SystemError(path, "cannot make the directory", errno);
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CopyDataFiles(const Model& model, const std::string& path,
                           const std::function<absl::Status(int64_t written, int64_t total)>& progress,
                           std::vector<std::string>* made) {
  std::vector<Job> jobs;
  int64_t total = 0;
  ExternalData files(model.path());  // which checks where they lie
  for (const std::string& location : model.external_locations()) {
    ASSIGN_OR_RETURN(const int64_t size, files.Size(location));
    const std::string from = DirectoryOf(model.path()) + "/" + location;
    const std::string to = DirectoryOf(path) + "/" + location;
    struct stat source;
    struct stat target;
    if (stat(from.c_str(), &source) == 0 && stat(to.c_str(), &target) == 0) {
      if (IsCopy(from, source, to, target)) continue;
      return AnotherFile(path, from, to);
    }
    jobs.push_back({from, to, size});
    total += size;
  }
  int64_t written = 0;
  for (const Job& job : jobs) {
    absl::Status status = MakeDirectories(DirectoryOf(path), job.to.substr(DirectoryOf(path).size() + 1), made);
    if (!status.ok()) return status;
    const auto report = [&](int64_t count) {
      written += count;
      return progress(written, total);
    };
    made->reserve(made->size() + 1);
    std::string copy = job.to;
    if (status = CopyFile(job, report); !status.ok()) return status;
    made->push_back(std::move(copy));
  }
  return absl::OkStatus();
}

}  // namespace ascend_fuse
