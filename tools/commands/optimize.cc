// optimize, of one model or of several, and list: fuses what the target can run fused, or says what could be.
#include <algorithm>
#include <chrono>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "fmt/format.h"
#include "ir/onnx/load.h"
#include "ir/status_macros.h"
#include "ir/text/visible.h"
#include "passes/analyze_model.h"
#include "passes/check/check.h"
#include "passes/optimize.h"
#include "passes/report/atc_command.h"
#include "passes/report/fusion_result.h"
#include "tools/commands/batch.h"
#include "tools/commands/flags.h"

namespace ascend_fuse {
namespace {

struct OptimizeFlags {
  OptionFlags options;
  std::vector<std::string> inputs;  // of optimize; one that is a file alone is model.input
  int jobs = JobsOfMachine();
  ModelFlags model;
  ReportFlags report;
  std::vector<std::string> require;
  std::string fusion_result;  // where the report is written as GE's fusion_result.json
  std::string atc_script;     // where the command line of ATC is written as a script
  bool force = false;         // write what ATC rejects or misreads
};

// What ATC is to be called with for the model that was written: a line on stdout for a person, a script where one is asked
// for.
int SayAtc(const Report& report, const Target& target, const OptimizeFlags& flags, const std::string& path) {
  if (flags.report.SaysOnStdout()) fmt::print("{}\n", Visible(AtcCommand(report.inputs, target, path)));
  if (flags.atc_script.empty()) return kDone;
  return Done(WriteText(flags.atc_script, AtcScript(report.inputs, target, path)));
}

int WriteOptimized(const Model& model, const Report& report, const Target& target, const OptimizeFlags& flags) {
  if (const std::vector<std::string> why = WhyNotWritten(report); !why.empty() && !flags.force) {
    for (const std::string& sentence : why) Fail(sentence);
    return Fail(fmt::format("not written: ATC (CANN {}) would reject or misread it; --force overrides", report.target.cann),
                kFound);
  }
  const std::string output = flags.model.output.empty() ? Beside(flags.model.input, target.chip()) : flags.model.output;
  if (const auto status = flags.model.Save(model, output, flags.options.progress); !status.ok()) return Fail(status);
  const int said = SayAtc(report, target, flags, output);
  flags.model.SayWritten(output, flags.report);
  return said;
}

// The run, and for a page what was measured in it.
struct MadeRun {
  Report report;
  std::optional<Analysis> analysis;
};

// What is to be done next with the written file is said of the file that -o names.
void NameOutput(const OptimizeFlags& flags, Analysis* analysis) {
  const std::string usual = " " + ShellWord(Beside(flags.model.input, flags.options.options.loaded_target->chip())) + " ";
  for (StepRecord& step : analysis->next) {
    std::string command = step.command + " ";
    const size_t at = command.find(usual);
    if (at == std::string::npos) continue;
    command.replace(at, usual.size(), " " + ShellWord(flags.model.output) + " ");
    step.command = command.substr(0, command.size() - 1);
  }
}

absl::StatusOr<MadeRun> MakeRun(Model* model, const OptimizeFlags& flags, bool change) {
  const OptimizeOptions& options = flags.options.options;
  if (!IsPage(flags.report.report)) {
    ASSIGN_OR_RETURN(Report report, change ? Optimize(model, options) : ListOpportunities(model, options));
    return MadeRun{std::move(report), std::nullopt};
  }
  const auto untouched = [&flags]() -> absl::StatusOr<std::shared_ptr<Model>> { return LoadModel(flags.model.input); };
  ASSIGN_OR_RETURN(AnalyzedRun run, change ? OptimizeAndAnalyze(model, options, untouched) : ListAndAnalyze(model, options));
  if (change && !flags.model.output.empty()) NameOutput(flags, &run.analysis);
  return MadeRun{std::move(run.report), std::move(run.analysis)};
}

void Count(const Report& report, Ending* ending) {
  ending->counted = true;
  ending->nodes_before = report.nodes_before;
  ending->nodes_after = report.nodes_after;
  for (const ReportKindCount& kind : report.kinds) {
    ending->found += kind.found;
    ending->fused += kind.fused;
    ending->by_ge += kind.by_ge;
    ending->left += kind.left;
  }
}

// One model, with flags that were read; `ending` is told of numbers.
int RunModel(OptimizeFlags* given, bool change, Ending* ending) {
  OptimizeFlags& flags = *given;
  const auto model = flags.options.LoadTelling(flags.model.input, flags.report.quiet);
  if (!model.ok()) return Fail(model.status());
  auto run = MakeRun(model->get(), flags, change);
  flags.options.EndProgress();
  if (!run.ok()) return Fail(run.status());
  Report& report = run->report;
  if (report.model.empty()) report.model = flags.model.input;
  Count(report, ending);
  const Analysis* page = run->analysis.has_value() ? &*run->analysis : nullptr;
  if (const int code = flags.report.Write(report, {.changed = change}, page); code != kDone) return code;
  if (!flags.fusion_result.empty()) {
    if (const auto status = WriteText(flags.fusion_result, ReportToFusionResult(report)); !status.ok()) return Fail(status);
  }
  const std::vector<std::string> unmet = UnmetRequirements(report, flags.require);
  for (const std::string& sentence : unmet) Fail(sentence);
  if (!unmet.empty()) {
    if (change) Fail("not written");
    return kNotMet;
  }
  return change ? WriteOptimized(**model, report, *flags.options.options.loaded_target, flags) : kDone;
}

// Flags that name one file, where there are several models: an ending stands for a file beside each.
absl::Status CheckForSeveral(const OptimizeFlags& flags) {
  const auto is_ending = [](const std::string& file) {
    return file.empty() || (file[0] == '.' && file.find('/') == std::string::npos);
  };
  if (!is_ending(flags.report.report)) {
    return absl::InvalidArgumentError(fmt::format(
        "--report {}: of several models each has its own report; give the ending alone, --report .html", flags.report.report));
  }
  if (!is_ending(flags.fusion_result)) {
    return absl::InvalidArgumentError(
        fmt::format("--fusion-result {}: each of several models has its own file; give the ending alone, --fusion-result "
                    ".fusion_result.json",
                    flags.fusion_result));
  }
  if (!is_ending(flags.atc_script)) {
    return absl::InvalidArgumentError(fmt::format(
        "--atc-script {}: each of several models has its own script; give the ending alone, --atc-script .sh", flags.atc_script));
  }
  if (flags.model.weights != "copy" && flags.model.weights != "reference") {
    return absl::InvalidArgumentError(fmt::format(
        "--weights {}: one file cannot hold the weights of several models; run them one by one", flags.model.weights));
  }
  if (!flags.options.options.dump_directory.empty()) {
    return absl::InvalidArgumentError("--dump takes one model, not several");
  }
  return absl::OkStatus();
}

// The same as a run of this model alone, with its report in files beside the output.
Ending RunOneOf(const OptimizeFlags& given, const Interrupts& interrupts, BatchProgress* progress, const BatchModel& of) {
  OptimizeFlags flags = given;
  flags.model.input = of.input;
  flags.model.output = of.output;
  flags.model.interrupts = &interrupts;
  flags.options.options.progress = [&interrupts, progress](const Progress&) {
    progress->Tell();
    return !interrupts.Came();
  };
  flags.report.quiet = true;
  flags.options.progress = "none";
  flags.report.json = of.With(".json");
  if (!given.report.report.empty()) flags.report.report = of.With(given.report.report);
  if (!given.fusion_result.empty()) flags.fusion_result = of.With(given.fusion_result);
  if (!given.atc_script.empty()) flags.atc_script = of.With(given.atc_script);
  Ending ending;
  const About about(of.input);
  ending.code = RunModel(&flags, true, &ending);
  ending.sentences = about.sentences();
  progress->End(of.input);
  return ending;
}

int RunSeveral(const OptimizeFlags& flags) {
  if (const auto status = CheckForSeveral(flags); !status.ok()) return Fail(status, kUsage);
  const auto models = PlanBatch(flags.inputs, flags.model.output, flags.options.options.loaded_target->chip());
  if (!models.ok()) return FailOption(models.status());
  if (const auto status = MakeFoldersOf(*models); !status.ok()) return Fail(status);
  const int jobs = std::min(flags.jobs, static_cast<int>(models->size()));
  const auto start = std::chrono::steady_clock::now();
  const Interrupts interrupts;
  std::vector<Ending> endings;
  {
    BatchProgress progress(flags.report.quiet ? "none" : flags.options.progress, models->size());
    endings = RunBatch(*models, jobs, interrupts,
                       [&](const BatchModel& model) { return RunOneOf(flags, interrupts, &progress, model); });
  }
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  if (!flags.report.json.empty()) {
    if (const auto status = WriteText(flags.report.json, BatchToJson(*models, endings)); !status.ok()) return Fail(status);
  }
  if (!flags.report.quiet && flags.report.json != "-") {
    if (const auto status = WriteText("-", BatchToText(*models, endings, seconds, jobs)); !status.ok()) return Fail(status);
  }
  return CodeOf(endings);
}

int Run(OptimizeFlags* flags, bool change) {
  if (const int code = flags->options.Set(); code != kDone) return code;
  if (const auto status = CheckRequirements(flags->require); !status.ok()) return Fail(status, kUsage);
  if (const int code = flags->options.Load(); code != kDone) return code;
  if (change && IsBatch(flags->inputs, flags->model.output)) return RunSeveral(*flags);
  if (change) flags->model.input = flags->inputs[0];
  Ending ending;
  flags->options.TellProgress(flags->report.quiet);
  return RunModel(flags, change, &ending);
}

void AddFlags(CLI::App* command, OptimizeFlags* flags) {
  OptimizeOptions& options = flags->options.options;
  AddTargetFlags(command, &flags->options);
  AddDimFlag(command, &flags->options);
  AddFixFlag(command, &flags->options);
  command->add_flag("--strict", options.strict, "refuse sites that rest on an assumption");
  command->add_option("--require", flags->require, "exit with 3 if a site of these kinds is left, or none is found")
      ->type_name("KIND,...")
      ->delimiter(',')
      ->allow_extra_args(false);
  AddReportFlags(command, &flags->report);
  command->add_option("--fusion-result", flags->fusion_result, "write what was fused in the form of GE's fusion_result.json")
      ->type_name("FILE");
  AddProgressFlag(command, &flags->options.progress);
  command->add_option("--skip", options.skip, "kinds, rules or nodes not to use")
      ->type_name("NAME,...")
      ->delimiter(',')
      ->allow_extra_args(false);
  command->add_option("--prefer", options.prefer, "a node to emit although it was measured slower; may be repeated")
      ->type_name("NODE,...")
      ->delimiter(',')
      ->allow_extra_args(false);
  AddAssumeFlag(command, &flags->options);
  command->add_flag("--keep-rest", options.keep_rest, "leave what is not fused as it is, byte for byte");
  command->add_option("--tidy", options.tidy, "kinds of tidying of what is not fused; default: all")
      ->type_name("WORD,...")
      ->delimiter(',')
      ->allow_extra_args(false);
  command
      ->add_option(
          "--quantised", flags->options.quantised,
          "exact: what ONNX Runtime computes of quantised operators (default); fast: kernels of integers wherever there is one; "
          "per-token: as fast, and what the model quantises by the range of a tensor is quantised by rows; float: activations "
          "are not "
          "rounded")
      ->type_name("exact|fast|per-token|float")
      ->expected(1);
  command->add_option("--limit", options.limit, "make at most N rewrites")->type_name("N");
  command->add_option("--dump", options.dump_directory, "write the model after each pass there")->type_name("FOLDER");
  command->add_flag("--verbose", flags->report.verbose, "one line for every site, and the time of every pass");
  command->add_flag("--quiet", flags->report.quiet, "print errors only");
}

}  // namespace

void AddOptimize(Commands* commands) {
  auto* flags = commands->New<OptimizeFlags>();
  CLI::App* command =
      commands->app()->add_subcommand("optimize", "replace subgraphs by NPU nodes of the target; write the model and a report");
  command
      ->add_option(
          "model", flags->inputs,
          "the exported ONNX model; several, or a folder, for one run over all of them, whose reports are written beside "
          "the models")
      ->required();
  AddFlags(command, flags);
  AddWeightFlags(command, &flags->model);
  command
      ->add_option("-o,--output", flags->model.output,
                   "default: <model>.<chip>.onnx beside the model; of several models the folder that they are written to")
      ->type_name("FILE|FOLDER");
  command->add_option("-j,--jobs", flags->jobs, "of several models so many at one time; default: as many as there are processors")
      ->type_name("N")
      ->check(CLI::Range(1, kMostJobs));
  command->add_flag(
      "--force", flags->force,
      "write the model also where ATC surely refuses or misreads it; without it, nothing is written then: exit code 4");
  command->add_option("--atc-script", flags->atc_script, "write the command line of ATC as a script")->type_name("FILE");
  commands->Add(command, [flags] { return Run(flags, true); });
}

void AddList(Commands* commands) {
  auto* flags = commands->New<OptimizeFlags>();
  CLI::App* command = commands->app()->add_subcommand("list", "say what could be fused and what nearly matched; changes nothing");
  command->add_option("model", flags->model.input, "the exported ONNX model")->required();
  AddFlags(command, flags);
  commands->Add(command, [flags] { return Run(flags, false); });
}

}  // namespace ascend_fuse
