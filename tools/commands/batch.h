// Several models in one run: which file is written for each, the threads that do it, and how each ended. What is done with one
// model is given as a function.
#pragma once

#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tools/commands/command.h"
#include "tools/commands/progress.h"
#include "tools/interrupts.h"

namespace ascend_fuse {

constexpr int kMostJobs = 64;

struct BatchModel {  // one of them
  std::string input;
  std::string output;

  // The path of another file beside the output: ".json" for out/m.ascend910b.onnx gives out/m.ascend910b.json.
  std::string With(std::string_view ending) const;
};

// Whether these arguments mean several models: more than one, a folder, or an output that is a folder.
bool IsBatch(const std::vector<std::string>& inputs, const std::string& output);

// What is written for each input, in their order; a folder stands for all .onnx files in it and below. The outputs are in
// `folder`, those of a folder's files in the same folders of it; without `folder` each is beside its model. INVALID_ARGUMENT
// where two models would write one file, or one would write over a model that is read; NOT_FOUND for a folder without a model.
absl::StatusOr<std::vector<BatchModel>> PlanBatch(const std::vector<std::string>& inputs, const std::string& folder,
                                                  const std::string& chip);

// Makes the folders of all outputs.
absl::Status MakeFoldersOf(const std::vector<BatchModel>& models);

struct Ending {  // how the run of one model ended
  int code = kDone;
  std::vector<std::string> sentences;  // what was wrong
  bool counted = false;                // there are numbers
  int64_t nodes_before = 0, nodes_after = 0;
  int64_t found = 0, fused = 0, by_ge = 0, left = 0;
  bool ran = false;  // false: the process was told to end before
};

// Runs each model once, `jobs` at a time; no ending stops another one, but an interrupt those that have not begun.
std::vector<Ending> RunBatch(const std::vector<BatchModel>& models, int jobs, const Interrupts& interrupts,
                             const std::function<Ending(const BatchModel&)>& run);

// How many models have ended, on stderr: threads tell it.
class BatchProgress {
 public:
  BatchProgress(std::string_view how, size_t models) : line_(how), models_(models) {}

  // Some model goes on: what was told is told again.
  void Tell();
  // `model` has ended.
  void End(std::string_view model);

 private:
  void TellLocked();

  std::mutex mutex_;
  ProgressLine line_;
  const size_t models_;
  size_t ended_ = 0;
  std::string last_;
};

// The number of processors that this process may use, at most kMostJobs.
int JobsOfMachine();

// 0 where all models ended with it, else the first of 1, 4 and 3 that one of them ended with.
int CodeOf(const std::vector<Ending>& endings);

// The table, a line for each model; and the same as JSON.
std::string BatchToText(const std::vector<BatchModel>& models, const std::vector<Ending>& endings, double seconds, int jobs);
std::string BatchToJson(const std::vector<BatchModel>& models, const std::vector<Ending>& endings);

}  // namespace ascend_fuse
