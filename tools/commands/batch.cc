#include "tools/commands/batch.h"

#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <filesystem>
#include <map>
#include <system_error>
#include <thread>

#include "fmt/format.h"
#include "fmt/ranges.h"
#include "ir/status_macros.h"
#include "ir/text/json_string.h"
#include "ir/text/visible.h"
#include "tools/commands/flags.h"

namespace ascend_fuse {
namespace {

namespace fs = std::filesystem;

bool IsFolder(const std::string& path) {
  std::error_code error;
  return fs::is_directory(path, error);
}

// One spelling for each file, also for one that is not there yet.
std::string OneSpelling(const fs::path& path) {
  std::error_code error;
  const fs::path absolute = fs::absolute(path, error);
  fs::path real = fs::weakly_canonical(absolute, error);
  return error ? absolute.lexically_normal().string() : real.string();
}

// The models in a folder and below it, sorted; what lies in `without` was written by an earlier run.
absl::StatusOr<std::vector<fs::path>> ModelsIn(const std::string& folder, const std::string& without) {
  std::vector<fs::path> found;
  std::error_code error;
  fs::recursive_directory_iterator at(folder, error);
  for (const fs::recursive_directory_iterator end; !error && at != end; at.increment(error)) {
    if (at->is_directory(error) && OneSpelling(at->path()) == without) {
      at.disable_recursion_pending();
    } else if (at->path().extension() == ".onnx" && at->is_regular_file(error)) {
      found.push_back(at->path());
    }
  }
  if (error) return absl::UnavailableError(fmt::format("{} cannot be read: {}", folder, error.message()));
  if (found.empty()) return absl::NotFoundError(fmt::format("{}: there is no .onnx file in this folder", folder));
  std::sort(found.begin(), found.end());
  return found;
}

absl::Status CheckOutputs(const std::vector<BatchModel>& models) {
  std::map<std::string, const BatchModel*> read;
  for (const BatchModel& model : models) read.emplace(OneSpelling(model.input), &model);
  std::map<std::string, const BatchModel*> written;
  for (const BatchModel& model : models) {
    const std::string output = OneSpelling(model.output);
    if (const auto [other, is_new] = written.emplace(output, &model); !is_new) {
      return absl::InvalidArgumentError(fmt::format(
          "{} and {} would both be written to {}; nothing was written. Give them other names, or run them apart with another -o",
          other->second->input, model.input, model.output));
    }
    if (read.count(output) > 0) {
      return absl::InvalidArgumentError(
          fmt::format("{} would be written over {}, which is read as well; nothing was written. Leave that out, or name another "
                      "folder with -o",
                      model.input, model.output));
    }
  }
  return absl::OkStatus();
}

// Work that threads share: each takes the next model until there is none.
class Pool {
 public:
  Pool(const std::vector<BatchModel>& models, const Interrupts& interrupts, const std::function<Ending(const BatchModel&)>& run)
      : models_(models), interrupts_(interrupts), run_(run), endings_(models.size()) {}

  std::vector<Ending> Run(int jobs) {
    // As deep as main's: the C library of static programs gives threads 128 KB.
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, size_t{8} << 20);
    std::vector<pthread_t> threads;
    for (int i = 1; i < jobs; ++i) {
      pthread_t thread;
      if (pthread_create(&thread, &attributes, &Pool::Start, this) != 0) break;  // fewer do it as well
      threads.push_back(thread);
    }
    pthread_attr_destroy(&attributes);
    Work();
    for (const pthread_t thread : threads) pthread_join(thread, nullptr);
    return std::move(endings_);
  }

 private:
  static void* Start(void* pool) {
    static_cast<Pool*>(pool)->Work();
    return nullptr;
  }

  void Work() {
    while (!interrupts_.Came()) {
      const size_t index = next_.fetch_add(1);
      if (index >= models_.size()) return;
      try {
        endings_[index] = run_(models_[index]);
      } catch (const std::exception& error) {
        endings_[index] = {.code = kFailed, .sentences = {error.what()}};
      }
      endings_[index].ran = true;
    }
  }

  const std::vector<BatchModel>& models_;
  const Interrupts& interrupts_;
  const std::function<Ending(const BatchModel&)>& run_;
  std::vector<Ending> endings_;
  std::atomic<size_t> next_ = 0;
};

}  // namespace

std::string BatchModel::With(std::string_view ending) const { return fs::path(output).replace_extension(ending).string(); }

bool IsBatch(const std::vector<std::string>& inputs, const std::string& output) {
  return inputs.size() > 1 || (!inputs.empty() && IsFolder(inputs[0])) || EndsWith(output, "/") || IsFolder(output);
}

absl::StatusOr<std::vector<BatchModel>> PlanBatch(const std::vector<std::string>& inputs, const std::string& folder,
                                                  const std::string& chip) {
  std::vector<BatchModel> models;
  std::error_code error;
  if (!folder.empty() && fs::exists(folder, error) && !IsFolder(folder)) {
    return absl::InvalidArgumentError(fmt::format("-o {}: several models need a folder, and this is a file", folder));
  }
  for (const std::string& input : inputs) {
    if (!IsFolder(input)) {
      const std::string beside = Beside(input, chip);
      models.push_back({input, folder.empty() ? beside : (fs::path(folder) / fs::path(beside).filename()).string()});
      continue;
    }
    if (folder.empty()) {
      return absl::InvalidArgumentError(
          fmt::format("{}: the models of a folder are written to another one; name it with -o", input));
    }
    ASSIGN_OR_RETURN(const auto found, ModelsIn(input, OneSpelling(folder)));
    for (const fs::path& path : found) {
      const fs::path below = Beside(path.lexically_relative(input).string(), chip);
      models.push_back({path.string(), (fs::path(folder) / below).string()});
    }
  }
  RETURN_IF_ERROR(CheckOutputs(models));
  return models;
}

absl::Status MakeFoldersOf(const std::vector<BatchModel>& models) {
  for (const BatchModel& model : models) {
    const fs::path folder = fs::path(model.output).parent_path();
    std::error_code error;
    if (!folder.empty()) fs::create_directories(folder, error);
    if (error) return absl::UnavailableError(fmt::format("{} cannot be made: {}", folder.string(), error.message()));
  }
  return absl::OkStatus();
}

std::vector<Ending> RunBatch(const std::vector<BatchModel>& models, int jobs, const Interrupts& interrupts,
                             const std::function<Ending(const BatchModel&)>& run) {
  return Pool(models, interrupts, run).Run(std::min(jobs, static_cast<int>(models.size())));
}

void BatchProgress::Tell() {
  const std::lock_guard lock(mutex_);
  TellLocked();
}

void BatchProgress::End(std::string_view model) {
  const std::lock_guard lock(mutex_);
  ++ended_;
  last_ = Shown(model);
  TellLocked();
}

void BatchProgress::TellLocked() {
  const std::string what = fmt::format("{} of {} models{}{}", ended_, models_, last_.empty() ? "" : ", last ", last_);
  line_.Tell(what, static_cast<double>(ended_) / static_cast<double>(models_));
}

int JobsOfMachine() { return std::clamp(static_cast<int>(std::thread::hardware_concurrency()), 1, kMostJobs); }

int CodeOf(const std::vector<Ending>& endings) {
  for (const int code : {kFailed, kFound, kNotMet}) {
    if (std::any_of(endings.begin(), endings.end(), [&](const Ending& ending) { return ending.ran && ending.code == code; }))
      return code;
  }
  return kDone;
}

std::string BatchToText(const std::vector<BatchModel>& models, const std::vector<Ending>& endings, double seconds, int jobs) {
  size_t width = 5;
  for (const BatchModel& model : models) width = std::max(width, std::min<size_t>(Shown(model.input).size(), 60));
  std::string text = fmt::format("{:{}}  found  fused  by GE  left  nodes\n", "model", width);
  size_t written = 0, ran = 0;
  for (size_t i = 0; i < models.size(); ++i) {
    const Ending& ending = endings[i];
    text += fmt::format("{:{}}", Shown(models[i].input), width);
    if (ending.counted) {
      text += fmt::format("  {:5}  {:5}  {:5}  {:4}  {} -> {}", ending.found, ending.fused, ending.by_ge, ending.left,
                          ending.nodes_before, ending.nodes_after);
    }
    if (!ending.ran) text += "  not begun";
    if (ending.code != kDone) text += fmt::format("  not written (exit code {})", ending.code);
    text += '\n';
    ran += ending.ran ? 1 : 0;
    written += ending.ran && ending.code == kDone ? 1 : 0;
  }
  text += fmt::format("{} of {} models written", written, models.size());
  for (const int code : {kFailed, kNotMet, kFound}) {
    const auto count = std::count_if(endings.begin(), endings.end(), [&](const Ending& ending) { return ending.code == code; });
    if (count > 0) text += fmt::format(", {} ended with {}", count, code);
  }
  return text + fmt::format("; {:.1f} s, {} thread{}, {:.1f} models/s\n", seconds, jobs, jobs == 1 ? "" : "s",
                            static_cast<double>(ran) / std::max(seconds, 1e-3));
}

std::string BatchToJson(const std::vector<BatchModel>& models, const std::vector<Ending>& endings) {
  std::vector<std::string> rows;
  for (size_t i = 0; i < models.size(); ++i) {
    const Ending& ending = endings[i];
    std::vector<std::string> sentences;
    for (const std::string& sentence : ending.sentences) sentences.push_back(VisibleJsonString(sentence));
    std::string row = fmt::format(R"(  {{"model": {}, "output": {}, "report": {}, "exit_code": {}, "sentences": [{}])",
                                  VisibleJsonString(models[i].input), VisibleJsonString(models[i].output),
                                  VisibleJsonString(models[i].With(".json")), ending.code, fmt::join(sentences, ", "));
    if (ending.counted) {
      row += fmt::format(
          R"(, "nodes": {{"before": {}, "after": {}}}, "sites": {{"found": {}, "fused": {}, "by_ge": {}, "left": {}}})",
          ending.nodes_before, ending.nodes_after, ending.found, ending.fused, ending.by_ge, ending.left);
    }
    rows.push_back(row + "}");
  }
  return fmt::format("{{\"exit_code\": {}, \"models\": [\n{}\n]}}\n", CodeOf(endings), fmt::join(rows, ",\n"));
}

}  // namespace ascend_fuse
