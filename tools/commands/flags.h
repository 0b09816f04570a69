// Flags that several commands have.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ir/model.h"
#include "passes/analyze/page.h"
#include "passes/optimize.h"
#include "passes/report/report_html.h"
#include "patterns/target/target.h"
#include "tools/commands/command.h"
#include "tools/commands/progress.h"
#include "tools/interrupts.h"

namespace ascend_fuse {

// Flags that mean options of the library, which says what is wrong with their values.
struct OptionFlags {
  OptimizeOptions options;
  std::vector<std::string> quantised;  // at most one
  std::vector<std::string> dims;
  std::vector<std::string> fixes;
  std::vector<std::string> assumptions;
  std::vector<std::string> rule_paths;
  std::string progress = "auto";

  // Tells of the run that follows, unless it is quiet; EndProgress before anything else is printed.
  void TellProgress(bool quiet);
  void EndProgress();
  // Loads a model, and tells of that too.
  absl::StatusOr<std::unique_ptr<Model>> LoadTelling(const std::string& path, bool quiet) const;

  // Reads all but the target into `options`; kDone, or what is wrong on stderr and an exit code.
  int Set();
  // Loads the target into `options`; a name that no target has is wrong usage.
  int Load();
  int SetAndLoad();

 private:
  std::shared_ptr<ProgressLine> line_;
};

void AddDimFlag(CLI::App* command, OptionFlags* flags);
void AddFixFlag(CLI::App* command, OptionFlags* flags);
void AddAssumeFlag(CLI::App* command, OptionFlags* flags);
// The ATC that is meant.
void AddAtcFlags(CLI::App* command, TargetOptions* target);
void AddPrecisionFlag(CLI::App* command, TargetOptions* target);
// Both, the emission style and rules of the user.
void AddTargetFlags(CLI::App* command, OptionFlags* flags);

// Where reports go.
struct ReportFlags {
  std::string json;
  std::string report;
  bool verbose = false;
  bool quiet = false;

  // Whether a person reads stdout.
  bool SaysOnStdout() const { return !quiet && json != "-" && report != "-"; }
  // Writes the reports that were asked for; the text goes to stdout unless another one does. A page says what the analysis says,
  // where there is one.
  int Write(const Report& report, const ReportHtmlOptions& of, const Analysis* analysis = nullptr) const;
};

// Whether the name of a file asks for a page.
bool IsPage(const std::string& path);

void AddReportFlags(CLI::App* command, ReportFlags* flags);

// How a model is written.
struct ModelFlags {
  std::string input;
  std::string output;
  std::string weights = "copy";  // copy, reference or a file
  bool copy_data = false;
  const Interrupts* interrupts = nullptr;  // those of a run over several models, where it is part of one

  // `progress`: how it is told of, as --progress says.
  absl::Status Save(const Model& model, const std::string& path, std::string_view progress) const;
  // The path an output was written to: to stdout when a person reads it, to stderr when a program does.
  void SayWritten(const std::string& path, const ReportFlags& report) const;
};

void AddWeightFlags(CLI::App* command, ModelFlags* flags);

// "models/m.onnx" with "expanded" -> "models/m.expanded.onnx".
std::string Beside(std::string_view path, std::string_view word);

}  // namespace ascend_fuse
