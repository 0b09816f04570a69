#include "tools/commands/flags.h"

#include <cstdio>
#include <mutex>
#include <optional>
#include <utility>

#include "fmt/format.h"
#include "fmt/ranges.h"
#include "ir/onnx/load.h"
#include "ir/onnx/save.h"
#include "passes/option_names.h"
#include "passes/report/report_html.h"

namespace ascend_fuse {
std::string Beside(std::string_view path, std::string_view word) {
  if (EndsWith(path, ".onnx")) path.remove_suffix(5);
  return fmt::format("{}.{}.onnx", path, word);
}

void OptionFlags::TellProgress(bool quiet) {
  if (quiet) progress = "none";
  if (progress == "none") return;
  const auto line = std::make_shared<ProgressLine>(progress);
  line_ = line;
  options.progress = [line](const Progress& at) {
    line->Tell(at.pass, static_cast<double>(at.number) / static_cast<double>(std::max<size_t>(at.count, 1)));
    return true;
  };
}

absl::StatusOr<std::unique_ptr<Model>> OptionFlags::LoadTelling(const std::string& path, bool quiet) const {
  ProgressLine line(quiet ? "none" : progress);
  return LoadModel(path, [&line](int64_t done, int64_t total) {
    line.Tell("loading", static_cast<double>(done) / static_cast<double>(std::max<int64_t>(total, 1)));
  });
}

void OptionFlags::EndProgress() {
  options.progress = nullptr;
  line_.reset();
}

int OptionFlags::Set() {
  const std::pair<const char*, const std::vector<std::string>&> given[] = {
      {"dim", dims}, {"fix", fixes}, {"assume", assumptions}, {"rules", rule_paths}, {"quantised", quantised}};
  for (const auto& [name, values] : given) {
    for (const std::string& value : values) {
      if (const auto status = SetOption(&options, name, value); !status.ok()) return FailOption(status);
    }
  }
  return kDone;
}

int OptionFlags::SetAndLoad() {
  const int code = Set();
  return code != kDone ? code : Load();
}

int OptionFlags::Load() {
  auto loaded = TargetOf(options);
  if (!loaded.ok()) return Fail(loaded.status(), kUsage);
  options.loaded_target = *std::move(loaded);
  return kDone;
}

void AddDimFlag(CLI::App* command, OptionFlags* flags) {
  command
      ->add_option(
          "--dim", flags->dims,
          "name=N, name=low..high or name=low..high:step (multiples of step): what a symbolic dim can be; name=other: the "
          "same as that one; several may follow, and it may be repeated")
      ->type_name("NAME=RANGE")
      ->allow_extra_args(false);
}

void AddFixFlag(CLI::App* command, OptionFlags* flags) {
  command
      ->add_option("--fix", flags->fixes,
                   "name=N: as --dim, and the number is written: inputs become static, and what follows becomes constants; "
                   "several may follow, and it may be repeated")
      ->type_name("NAME=N")
      ->allow_extra_args(false);
}

void AddAssumeFlag(CLI::App* command, OptionFlags* flags) {
  command
      ->add_option("--assume", flags->assumptions,
                   "what an input holds: ones, binary (0 and 1), left-padded, right-padded; may be repeated")
      ->type_name("INPUT=WORD")
      ->allow_extra_args(false);
}

void AddAtcFlags(CLI::App* command, TargetOptions* target) {
  command
      ->add_option("--target", target->chip,
                   fmt::format("chip ({}), an ATC --soc_version, or a path to a .txtpb", fmt::join(Target::Chips(), ", ")))
      ->capture_default_str();
  command
      ->add_option("--cann", target->cann,
                   fmt::format("CANN version ({}), or a path to a .txtpb", fmt::join(Target::CannVersions(), ", ")))
      ->capture_default_str();
  command->add_flag("--plugin", target->plugin,
                    "emit nodes that ATC reads only with our op plugin installed (docs/targets.md lists them)");
}

void AddPrecisionFlag(CLI::App* command, TargetOptions* target) {
  command->add_option("--precision-mode", target->precision_mode, "what atc will be given as --precision_mode")
      ->capture_default_str();
}

void AddTargetFlags(CLI::App* command, OptionFlags* flags) {
  TargetOptions* target = &flags->options.target;
  AddAtcFlags(command, target);
  AddPrecisionFlag(command, target);
  command->add_option("--style", target->style, "emission style: D, N or X; default: chosen for the target");
  command->add_option("--rules", flags->rule_paths, "rule file that adds or overrides rules; may be repeated")
      ->type_name("FILE")
      ->allow_extra_args(false);
}

void AddReportFlags(CLI::App* command, ReportFlags* flags) {
  command->add_option("--json", flags->json, "write the report as JSON; - is stdout")->type_name("FILE");
  command
      ->add_option("--report", flags->report,
                   "write the report as a page for a browser if the name ends in .html, as JSON if in .json, or else as text")
      ->type_name("FILE");
}

bool IsPage(const std::string& path) { return EndsWith(path, ".html") || EndsWith(path, ".htm"); }

int ReportFlags::Write(const Report& of_model, const ReportHtmlOptions& of, const Analysis* analysis) const {
  const auto text = [&] {
    return of.of_check ? FindingsToText(of_model, verbose ? of_model.findings.size() : 3)
                       : ReportToText(of_model, {.verbose = verbose, .changed = of.changed});
  };
  if (!json.empty()) {
    if (const auto status = WriteText(json, ReportToJson(of_model)); !status.ok()) return Fail(status);
  }
  if (!report.empty()) {
    const bool is_json = EndsWith(report, ".json");
    const auto page = [&] {
      return analysis == nullptr ? ReportToHtml(of_model, of) : AnalysisToHtml(*analysis, {.changed = of.changed});
    };
    const auto status = WriteText(report, is_json ? ReportToJson(of_model) : IsPage(report) ? page() : text());
    if (!status.ok()) return Fail(status);
  }
  if (SaysOnStdout()) {
    if (const auto status = WriteText("-", text()); !status.ok()) return Fail(status);
  }
  return kDone;
}

void AddWeightFlags(CLI::App* command, ModelFlags* flags) {
  command
      ->add_option("--weights", flags->weights,
                   "copy: in the model or in data files, as the input has them; reference: only the graph is written, and "
                   "weights are read from the input's files; FILE: all weights in that file beside the output")
      ->type_name("copy|reference|FILE")
      ->capture_default_str();
  command->add_flag("--copy-data", flags->copy_data, "copy data files that the output's directory does not have");
}

absl::Status ModelFlags::Save(const Model& model, const std::string& path, std::string_view progress) const {
  std::optional<Interrupts> own;
  if (interrupts == nullptr) own.emplace();
  const Interrupts& told = interrupts == nullptr ? *own : *interrupts;
  static std::mutex copying;  // several models may have one data file
  std::unique_lock<std::mutex> lock(copying, std::defer_lock);
  if (copy_data) lock.lock();
  ProgressLine line(progress);
  SaveOptions options;
  SetWeights(&options, weights);
  options.copy_data = copy_data;
  options.progress = [&line](int64_t written, int64_t total) {
    if (total > 0) line.Tell("writing", static_cast<double>(written) / static_cast<double>(total));
  };
  options.go_on = [&told] { return !told.Came(); };
  return SaveModel(model, path, options);
}

void ModelFlags::SayWritten(const std::string& path, const ReportFlags& report) const {
  if (report.quiet) return;
  std::string place;
  if (weights == "reference") {
    place = fmt::format(", which reads its weights from {}: keep that", input);
  } else if (weights != "copy") {
    place = fmt::format(", its weights to {} beside it", weights);
  }
  fmt::print(report.SaysOnStdout() ? stdout : stderr, "wrote {}{}\n", path, place);
}

}  // namespace ascend_fuse
