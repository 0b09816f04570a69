// The command line: flags become options, results become text, JSON and an exit code. Reports go to stdout,
// everything else to stderr. Exit codes: 0 done, 1 an error in the input or of the file system, 2 wrong
// usage, 3 a requirement (--require, verify) is not met, 4 check or optimize found what ATC refuses or misreads.
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <new>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "CLI/CLI.hpp"
#include "fmt/format.h"
#include "fmt/ranges.h"
#include "ir/onnx/load.h"
#include "ir/onnx/output_file.h"
#include "ir/onnx/save.h"
#include "ir/onnx/whole_file.h"
#include "ir/status_macros.h"
#include "ir/text/printer.h"
#include "ir/text/visible.h"
#include "passes/check/atc_check.h"
#include "passes/check/check.h"
#include "passes/check_model.h"
#include "passes/explain_match.h"
#include "passes/optimize.h"
#include "passes/optimize_passes.h"
#include "passes/option_names.h"
#include "passes/report/atc_command.h"
#include "passes/report/diff.h"
#include "passes/report/report_html.h"
#include "patterns/codes.h"
#include "patterns/functions/functions.h"
#include "patterns/operators/document.h"
#include "patterns/target/plugin_source.h"
#include "patterns/target/target.h"
#include "tools/backwards/run.h"
#include "tools/command_documents.h"
#include "tools/interrupts.h"
#include "tools/rule_files.h"

namespace ascend_fuse {
namespace {

constexpr int kDone = 0;
constexpr int kFailed = 1;
constexpr int kUsage = 2;
constexpr int kNotMet = 3;
constexpr int kFound = 4;

struct Flags {
  std::string input;
  std::string second;  // verify: the optimized model
  std::string output;
  OptimizeOptions options;
  std::vector<std::string> dims;
  std::vector<std::string> fixes;
  std::vector<std::string> assumptions;
  std::vector<std::string> rule_paths;
  std::vector<std::string> require;
  std::string json;
  std::string report;
  bool verbose = false;
  bool quiet = false;
  bool operators = false;            // rules: the operators instead
  bool functions = false;            // rules: the functions instead
  bool passes = false;               // rules: the passes instead
  std::vector<std::string> checked;  // rules: files that are looked at instead
  backwards::RunOptions backwards;   // rules test
  bool graphs = false;               // rules test: records for a program
  std::string keep;                  // rules test: a folder for what shows a fault
  std::string code;                  // explain: a code, or a model with --rule
  std::string rule;                  // explain: the rule that is looked at
  std::string at;                    // explain: the node
  std::string atc_script;            // optimize: where the command line of ATC is written as a script
  bool force = false;                // optimize: write what ATC refuses or misreads
  std::string chip;                  // targets
  std::string op;                    // targets
  bool markdown = false;             // explain: docs/codes.md instead
  int64_t max_elements = 16;
  std::vector<std::string> python_words;  // flags of a command in Python, as they stand
  bool as_atc = false;                    // expand
  std::string weights = "copy";           // copy, reference or a file
  bool copy_data = false;
  PluginOptions plugin;  // plugin
  std::string shell;     // completion
};

// One line on stderr. Names out of a file may hold line breaks and terminal control codes: they are written out.
int Fail(std::string_view message, int code = kFailed) {
  fmt::print(stderr, "ascend-fuse: {}\n", Shown(message));
  return code;
}

int Fail(const absl::Status& status, int code = kFailed) { return Fail(std::string(status.message()), code); }

bool EndsWith(std::string_view text, std::string_view end) {
  return text.size() >= end.size() && text.substr(text.size() - end.size()) == end;
}

// "models/m.onnx" with "expanded" -> "models/m.expanded.onnx".
std::string Beside(std::string_view path, std::string_view word) {
  if (EndsWith(path, ".onnx")) path.remove_suffix(5);
  return fmt::format("{}.{}.onnx", path, word);
}

absl::Status WriteText(const std::string& path, const std::string& given) {
  if (path != "-") return WriteWholeFile(path, given);
  // A terminal obeys what it is shown; a program that reads is given the bytes.
  const std::string& text = isatty(STDOUT_FILENO) == 1 ? Visible(given, true) : given;
  const bool written = fwrite(text.data(), 1, text.size(), stdout) == text.size() && fflush(stdout) == 0;
  return written ? absl::OkStatus() : absl::UnavailableError("stdout cannot be written");
}

// The flags that mean options of the library, which says what is wrong with their values.
absl::Status SetOptions(Flags* flags) {
  const std::pair<const char*, const std::vector<std::string>&> given[] = {
      {"dim", flags->dims}, {"fix", flags->fixes}, {"assume", flags->assumptions}, {"rules", flags->rule_paths}};
  for (const auto& [name, values] : given) {
    for (const std::string& value : values) {
      RETURN_IF_ERROR(SetOption(&flags->options, name, value));
    }
  }
  return absl::OkStatus();
}

void AddWeightFlags(CLI::App* command, Flags* flags) {
  command
      ->add_option("--weights", flags->weights,
                   "copy: in the model or in data files, as the input has them; reference: only the graph is written, and "
                   "weights are read from the input's files; FILE: all weights in that file beside the output")
      ->type_name("copy|reference|FILE")
      ->capture_default_str();
  command->add_flag("--copy-data", flags->copy_data, "copy data files that the output's directory does not have");
}

// A file that cannot be read is an error, a value that means nothing is wrong usage.
int FailOption(const absl::Status& status) { return Fail(status, absl::IsInvalidArgument(status) ? kUsage : kFailed); }

void AddDimFlag(CLI::App* command, Flags* flags) {
  command
      ->add_option(
          "--dim", flags->dims,
          "name=N, name=low..high or name=low..high:step (multiples of step): what a symbolic dim can be; name=other: the "
          "same as that one; may be repeated")
      ->type_name("NAME=RANGE")
      ->allow_extra_args(false);
}

void AddFixFlag(CLI::App* command, Flags* flags) {
  command
      ->add_option("--fix", flags->fixes,
                   "name=N: as --dim, and the number is written: inputs become static, and what follows becomes constants; "
                   "may be repeated")
      ->type_name("NAME=N")
      ->allow_extra_args(false);
}

// Everything about the flags that CLI11 cannot check; the target that they name.
int Prepare(Flags* flags, std::optional<Target>* target) {
  if (const auto status = SetOptions(flags); !status.ok()) return FailOption(status);
  if (const auto status = CheckRequirements(flags->require); !status.ok()) return Fail(status, kUsage);
  auto loaded = Target::Load(flags->options.target);
  if (!loaded.ok()) return Fail(loaded.status(), kUsage);
  *target = *std::move(loaded);
  return kDone;
}

// Writes the reports that were asked for; the text goes to stdout unless another one does.
int WriteReports(const Report& report, const Flags& flags, const ReportHtmlOptions& of) {
  const auto text = [&] {
    return of.of_check ? FindingsToText(report, flags.verbose ? report.findings.size() : 3)
                       : ReportToText(report, {.verbose = flags.verbose, .changed = of.changed});
  };
  if (!flags.json.empty()) {
    if (const auto status = WriteText(flags.json, ReportToJson(report)); !status.ok()) return Fail(status);
  }
  if (!flags.report.empty()) {
    const bool json = EndsWith(flags.report, ".json");
    const bool html = EndsWith(flags.report, ".html") || EndsWith(flags.report, ".htm");
    const auto status = WriteText(flags.report, json ? ReportToJson(report) : html ? ReportToHtml(report, of) : text());
    if (!status.ok()) return Fail(status);
  }
  if (!flags.quiet && flags.json != "-" && flags.report != "-") {
    if (const auto status = WriteText("-", text()); !status.ok()) return Fail(status);
  }
  return kDone;
}

// Says how far writing has come, on a terminal only and only when it takes longer than a second.
class Progress {
 public:
  explicit Progress(bool wanted) : wanted_(wanted && isatty(STDERR_FILENO) == 1) {}
  ~Progress() {
    if (last_ >= 0) fmt::print(stderr, "\r\x1b[K");
  }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void operator()(int64_t written, int64_t total) {
    if (!wanted_ || total <= 0 || std::chrono::steady_clock::now() - start_ < std::chrono::seconds(1)) return;
    const int percent = static_cast<int>(static_cast<double>(written) / static_cast<double>(total) * 100);
    if (percent == last_) return;
    last_ = percent;
    fmt::print(stderr, "\rwriting {} %", percent);
    fflush(stderr);
  }

 private:
  const bool wanted_;
  const std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  int last_ = -1;
};

absl::Status Save(const Model& model, const std::string& path, const Flags& flags) {
  const Interrupts interrupts;
  Progress progress(!flags.quiet);
  SaveOptions options;
  if (flags.weights == "reference") {
    options.weights = Weights::kReference;
  } else if (flags.weights != "copy") {
    options.weights = Weights::kOneFile;
    options.weights_file = flags.weights;
  }
  options.copy_data = flags.copy_data;
  options.progress = [&progress](int64_t written, int64_t total) { progress(written, total); };
  options.go_on = [&interrupts] { return !interrupts.Came(); };
  return SaveModel(model, path, options);
}

// The path an output was written to: to stdout when a person reads it, to stderr when a program does.
void SayWritten(const Flags& flags, const std::string& path) {
  if (flags.quiet) return;
  std::string place;
  if (flags.weights == "reference") {
    place = fmt::format(", which reads its weights from {}: keep that", flags.input);
  } else if (flags.weights != "copy") {
    place = fmt::format(", its weights to {} beside it", flags.weights);
  }
  fmt::print(flags.json == "-" || flags.report == "-" ? stderr : stdout, "wrote {}{}\n", path, place);
}

// What ATC is to be called with for the model that was written: a line on stdout for a person, a script where one is asked
// for.
int SayAtc(const Report& report, const Target& target, const Flags& flags, const std::string& path) {
  const bool says = !flags.quiet && flags.json != "-" && flags.report != "-";
  if (says) fmt::print("{}\n", Visible(AtcCommand(report.inputs, target, path)));
  if (flags.atc_script.empty()) return kDone;
  const auto status = WriteText(flags.atc_script, AtcScript(report.inputs, target, path));
  return status.ok() ? kDone : Fail(status);
}

int RunOptimize(Flags flags, bool change) {
  std::optional<Target> target;
  if (const int code = Prepare(&flags, &target); code != kDone) return code;
  const auto model = LoadModel(flags.input);
  if (!model.ok()) return Fail(model.status());
  auto report = change ? Optimize(model->get(), flags.options) : ListOpportunities(model->get(), flags.options);
  if (!report.ok()) return Fail(report.status());
  if (report->model.empty()) report->model = flags.input;
  if (const int code = WriteReports(*report, flags, {.changed = change}); code != kDone) return code;
  const std::vector<std::string> unmet = UnmetRequirements(*report, flags.require);
  for (const std::string& sentence : unmet) Fail(sentence);
  if (!unmet.empty()) {
    if (change) Fail("not written");
    return kNotMet;
  }
  if (!change) return kDone;
  if (const std::vector<std::string> why = WhyNotWritten(*report); !why.empty() && !flags.force) {
    for (const std::string& sentence : why) Fail(sentence);
    return Fail(fmt::format("not written: ATC (CANN {}) would reject or misread it; --force overrides", report->target.cann),
                kFound);
  }
  const std::string output = flags.output.empty() ? Beside(flags.input, target->chip()) : flags.output;
  if (const auto status = Save(**model, output, flags); !status.ok()) return Fail(status);
  const int said = SayAtc(*report, *target, flags, output);
  SayWritten(flags, output);
  return said;
}

int RunTargets(const Flags& flags) {
  if (flags.chip.empty()) {
    const auto status = WriteText("-", Target::DescribeAll());
    return status.ok() ? kDone : Fail(status);
  }
  TargetOptions options = flags.options.target;
  options.chip = flags.chip;
  const auto target = Target::Load(options);
  if (!target.ok()) return Fail(target.status(), kUsage);
  const auto text = flags.op.empty() ? absl::StatusOr<std::string>(target->Describe()) : target->DescribeOperator(flags.op);
  if (!text.ok()) return Fail(text.status());
  const auto status = WriteText("-", *text);
  return status.ok() ? kDone : Fail(status);
}

int RunCheck(Flags flags) {
  std::optional<Target> target;
  if (const int code = Prepare(&flags, &target); code != kDone) return code;
  const auto model = LoadModel(flags.input);
  if (!model.ok()) return Fail(model.status());
  auto report = CheckModel(model->get(), flags.options);
  if (!report.ok()) return Fail(report.status());
  report->model = flags.input;
  if (const int code = WriteReports(*report, flags, {.changed = false, .of_check = true}); code != kDone) return code;
  const auto& findings = report->findings;
  return std::any_of(findings.begin(), findings.end(), IsFatal) ? kFound : kDone;
}

int RunExpand(Flags flags) {
  if (const auto status = SetOptions(&flags); !status.ok()) return FailOption(status);
  const auto model = LoadModel(flags.input);
  if (!model.ok()) return Fail(model.status());
  ExpandOptions options = {flags.options.rule_files, flags.options.infer, std::nullopt, nullptr};
  if (flags.as_atc) options.as_atc = flags.options.target;
  const auto status = Expand(model->get(), options);
  if (absl::IsUnavailable(status)) return Fail(std::string(status.message()), kNotMet);
  if (!status.ok()) return Fail(status);
  const std::string output = flags.output.empty() ? Beside(flags.input, "expanded") : flags.output;
  if (const auto status = Save(**model, output, flags); !status.ok()) return Fail(status);
  SayWritten(flags, output);
  return kDone;
}

int RunPrint(const Flags& flags) {
  const auto model = LoadModel(flags.input);
  if (!model.ok()) return Fail(model.status());
  PrintOptions options;
  options.max_elements = flags.max_elements;
  const auto status = WriteText(flags.output.empty() ? "-" : flags.output, PrintModelText(**model, options));
  return status.ok() ? kDone : Fail(status);
}

int RunRules(Flags flags) {
  if (flags.functions) {
    const auto status = WriteText("-", DescribeFunctions());
    return status.ok() ? kDone : Fail(status);
  }
  if (flags.operators) {
    const auto status = WriteText("-", OperatorsDocument());
    return status.ok() ? kDone : Fail(status);
  }
  if (flags.passes) {
    const auto status = WriteText("-", DescribePasses(OptimizePasses()));
    return status.ok() ? kDone : Fail(status);
  }
  flags.rule_paths.insert(flags.rule_paths.end(), flags.checked.begin(), flags.checked.end());
  std::optional<Target> target;
  if (const int code = Prepare(&flags, &target); code != kDone) return code;
  const auto text = flags.checked.empty() ? DescribeRules(flags.options) : CheckRuleFiles(flags.options);
  if (!text.ok()) return Fail(text.status());
  const auto status = WriteText("-", *text);
  return status.ok() ? kDone : Fail(status);
}

// rules new NAME
int RunNewRule(const Flags& flags) {
  const auto files = NewRuleFiles(flags.rule);
  if (!files.ok()) return Fail(files.status(), kUsage);
  const std::string folder = flags.output.empty() ? "." : flags.output;
  if (mkdir(folder.c_str(), 0777) != 0 && errno != EEXIST) {
    return Fail(fmt::format("{} cannot be made: {}", folder, strerror(errno)));
  }
  for (const auto& [name, text] : *files) {
    const std::string path = fmt::format("{}/{}", folder, name);
    if (access(path.c_str(), F_OK) == 0) return Fail(fmt::format("{} is there already; nothing was written over it", path));
  }
  for (const auto& [name, text] : *files) {
    const std::string path = fmt::format("{}/{}", folder, name);
    if (const auto status = WriteText(path, text); !status.ok()) return Fail(status);
    fmt::print("wrote {}\n", path);
  }
  return kDone;
}

// explain MODEL --rule R --at NODE
int RunExplainMatch(Flags flags) {
  if (flags.rule.empty() || flags.at.empty() || flags.code.empty()) {
    return Fail("explain takes a code of a report, or MODEL --rule NAME --at NODE", kUsage);
  }
  std::optional<Target> target;
  if (const int code = Prepare(&flags, &target); code != kDone) return code;
  const auto model = LoadModel(flags.code);
  if (!model.ok()) return Fail(model.status());
  const auto text = ExplainMatch(model->get(), flags.options, flags.rule, flags.at);
  if (!text.ok()) return Fail(text.status());
  const auto status = WriteText("-", *text);
  return status.ok() ? kDone : Fail(status);
}

int RunExplain(const Flags& flags) {
  if (!flags.rule.empty() || !flags.at.empty()) return RunExplainMatch(flags);
  if (flags.code.empty()) {
    const auto status = WriteText("-", flags.markdown ? CodesDocument() : ListCodes());
    return status.ok() ? kDone : Fail(status);
  }
  const Code* code = FindCode(flags.code);
  if (code == nullptr) {
    if (access(flags.code.c_str(), F_OK) == 0) return RunExplainMatch(flags);  // a model: it says what is missing
    const auto near = NearestCodes(flags.code);
    if (!near.empty()) {
      return Fail(fmt::format("{} is not a code of a report; did you mean {}?", flags.code, fmt::join(near, " or ")), kUsage);
    }
    Fail(fmt::format("{} is not a code of a report", flags.code));
    fmt::print(stderr, "\n{}", ListCodes());
    return kUsage;
  }
  const auto status = WriteText("-", DescribeCode(*code));
  return status.ok() ? kDone : Fail(status);
}

int RunPlugin(const Flags& flags) {
  const auto files = PluginFiles(flags.plugin);
  if (!files.ok()) return Fail(files.status(), kUsage);
  if (mkdir(flags.output.c_str(), 0777) != 0 && errno != EEXIST) {
    return Fail(fmt::format("{} cannot be made: {}", flags.output, strerror(errno)));
  }
  for (const PluginFile& file : *files) {
    const std::string path = fmt::format("{}/{}", flags.output, file.path);
    if (const auto status = WriteText(path, file.text); !status.ok()) return Fail(status);
    if (file.executable && chmod(path.c_str(), 0755) != 0) {
      return Fail(fmt::format("{} cannot be made executable: {}", path, strerror(errno)));
    }
  }
  fmt::print("wrote {}, version {} of the op plugin; its README.md says how it is built and installed\n", flags.output,
             PluginVersion());
  return kDone;
}

std::string OwnPath() {
  char path[PATH_MAX];
  const ssize_t length = readlink("/proc/self/exe", path, sizeof(path));
  return length > 0 && length < static_cast<ssize_t>(sizeof(path)) ? std::string(path, length) : "ascend-fuse";
}

// The folder that holds the Python package: that of the source tree around a build folder, or of an
// installation.
std::string PythonFolder(const std::string& own_path) {
  const std::string folder = own_path.substr(0, own_path.rfind('/') + 1);
  for (const char* place :
       {"../tools/python", "../../tools/python", "../share/ascend-fuse/python", "../lib/ascend-fuse/python"}) {
    const std::string candidate = folder + place;
    struct stat info;
    if (stat((candidate + "/ascend_fuse/verification.py").c_str(), &info) == 0) return candidate;
  }
  return "";
}

// Runs a module of the Python package with these arguments.
int RunPython(const std::string& module, std::vector<std::string> arguments, const std::vector<std::string>& more) {
  const std::string own_path = OwnPath();
  const std::string folder = PythonFolder(own_path);
  if (!folder.empty()) {
    const char* old = getenv("PYTHONPATH");
    const std::string path = old == nullptr || *old == '\0' ? folder : fmt::format("{}:{}", folder, old);
    setenv("PYTHONPATH", path.c_str(), 1);
  }
  // In a Python environment the package belongs to the interpreter that lies beside this program.
  const std::string beside = own_path.substr(0, own_path.rfind('/') + 1) + "python3";
  const std::string python = folder.empty() && access(beside.c_str(), X_OK) == 0 ? beside : "python3";
  std::vector<std::string> words = {python, "-m", "ascend_fuse." + module};
  words.insert(words.end(), arguments.begin(), arguments.end());
  words.insert(words.end(), more.begin(), more.end());
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  fflush(nullptr);
  const pid_t child = fork();
  if (child < 0) return Fail(fmt::format("cannot start python3: {}", strerror(errno)));
  if (child == 0) {
    execvp(python.c_str(), pointers.data());
    fprintf(stderr, "ascend-fuse: this command runs in Python, and python3 was not found: %s\n", strerror(errno));
    _exit(kFailed);
  }
  int status = 0;
  while (waitpid(child, &status, 0) < 0) {
    if (errno != EINTR) return Fail(fmt::format("python3 was lost: {}", strerror(errno)));
  }
  if (WIFSIGNALED(status)) return Fail(fmt::format("python3 was ended by signal {}", WTERMSIG(status)));
  return WEXITSTATUS(status);
}

// rules test FILE: the graphs are made here, and compared in Python.
int RunTestRules(Flags flags) {
  flags.rule_paths = flags.checked;
  if (const auto status = SetOptions(&flags); !status.ok()) return FailOption(status);
  backwards::RunOptions& options = flags.backwards;
  options.rule_files = flags.options.rule_files;
  const auto rules = backwards::RulesOf(options);
  if (!rules.ok()) return Fail(rules.status());
  if (flags.graphs) {
    for (const std::string& rule : *rules) {
      if (const auto status = backwards::RunRule(options, rule); !status.ok()) return Fail(status);
    }
    return kDone;
  }
  std::vector<std::string> command = {"--graphs-command",
                                      "rules",
                                      "test",
                                      "--graphs",
                                      "--count",
                                      fmt::format("{}", options.count),
                                      "--mutants",
                                      fmt::format("{}", options.mutants),
                                      "--seed",
                                      fmt::format("{}", options.seed)};
  if (options.plain) command.push_back("--plain");
  if (options.target.has_value()) {
    command.insert(command.end(), {"--target", options.target->chip, "--cann", options.target->cann});
    if (options.target->plugin) command.push_back("--plugin");
  }
  command.insert(command.end(), flags.checked.begin(), flags.checked.end());
  std::vector<std::string> arguments = flags.checked;
  arguments.insert(arguments.end(), {"--tool", OwnPath()});
  if (!flags.keep.empty()) arguments.insert(arguments.end(), {"--keep", flags.keep});
  return RunPython("rule_test", arguments, command);
}

int RunVerify(const Flags& flags) {
  return RunPython("verification", {flags.input, flags.second, "--tool", OwnPath()}, flags.python_words);
}

int RunDiff(const Flags& flags) {
  const auto before = LoadModel(flags.input);
  if (!before.ok()) return Fail(before.status());
  const auto after = LoadModel(flags.second);
  if (!after.ok()) return Fail(after.status());
  const auto status = WriteText("-", DiffToText(Diff(**before, **after)));
  return status.ok() ? kDone : Fail(status);
}

// The ATC that is meant.
void AddAtcFlags(CLI::App* command, Flags* flags) {
  TargetOptions& target = flags->options.target;
  command
      ->add_option("--target", target.chip,
                   fmt::format("chip ({}), an ATC --soc_version, or a path to a .txtpb", fmt::join(Target::Chips(), ", ")))
      ->capture_default_str();
  command
      ->add_option("--cann", target.cann,
                   fmt::format("CANN version ({}), or a path to a .txtpb", fmt::join(Target::CannVersions(), ", ")))
      ->capture_default_str();
  command->add_flag("--plugin", target.plugin,
                    "emit nodes that ATC reads only with our op plugin installed (docs/targets.md lists them)");
}

void AddPrecisionFlag(CLI::App* command, Flags* flags) {
  command->add_option("--precision-mode", flags->options.target.precision_mode, "what atc will be given as --precision_mode")
      ->capture_default_str();
}

void AddTargetFlags(CLI::App* command, Flags* flags) {
  TargetOptions& target = flags->options.target;
  AddAtcFlags(command, flags);
  AddPrecisionFlag(command, flags);
  command->add_option("--style", target.style, "emission style: D, N or X; default: chosen for the target");
  command->add_option("--rules", flags->rule_paths, "rule file that adds or overrides rules; may be repeated")
      ->type_name("FILE")
      ->allow_extra_args(false);
}

void AddReportFlags(CLI::App* command, Flags* flags) {
  command->add_option("--json", flags->json, "write the report as JSON; - is stdout")->type_name("FILE");
  command
      ->add_option("--report", flags->report,
                   "write the report as a page for a browser if the name ends in .html, as JSON if in .json, or else as text")
      ->type_name("FILE");
}

void AddRunFlags(CLI::App* command, Flags* flags) {
  command->add_option("model", flags->input, "the exported ONNX model")->required();
  AddTargetFlags(command, flags);
  AddDimFlag(command, flags);
  AddFixFlag(command, flags);
  command->add_flag("--strict", flags->options.strict, "refuse sites that rest on an assumption");
  command->add_option("--require", flags->require, "exit with 3 if a site of these kinds is left, or none is found")
      ->type_name("KIND,...")
      ->delimiter(',')
      ->allow_extra_args(false);
  AddReportFlags(command, flags);
  command->add_option("--skip", flags->options.skip, "kinds, rules or nodes not to use")
      ->type_name("NAME,...")
      ->delimiter(',')
      ->allow_extra_args(false);
  command->add_option("--prefer", flags->options.prefer, "a node to emit although it was measured slower; may be repeated")
      ->type_name("NODE,...")
      ->delimiter(',')
      ->allow_extra_args(false);
  command
      ->add_option("--assume", flags->assumptions,
                   "what an input holds: ones, binary (0 and 1), left-padded, right-padded; may be repeated")
      ->type_name("INPUT=WORD")
      ->allow_extra_args(false);
  command->add_option("--limit", flags->options.limit, "make at most N rewrites")->type_name("N");
  command->add_option("--dump", flags->options.dump_directory, "write the model after each pass there")->type_name("FOLDER");
  command->add_flag("--verbose", flags->verbose, "one line for every site, and the time of every pass");
  command->add_flag("--quiet", flags->quiet, "print errors only");
}

CLI::App* AddDiff(CLI::App* app, Flags* flags) {
  CLI::App* diff = app->add_subcommand("diff", "show what differs between two models, place by place");
  diff->add_option("before", flags->input, "an ONNX model")->required();
  diff->add_option("after", flags->second, "another version of it")->required();
  return diff;
}

// A flag of a command in Python: it is known here for the help, and so that its value is no operand.
void PassOn(CLI::App* command, const std::string& name, const std::string& type, const std::string& meaning, Flags* flags) {
  const std::string flag = name.substr(0, name.find(','));
  if (type.empty()) {
    command->add_flag_callback(name, [flags, flag] { flags->python_words.push_back(flag); }, meaning);
    return;
  }
  const auto pass = [flags, flag](const std::vector<std::string>& values) {
    for (const std::string& value : values) flags->python_words.insert(flags->python_words.end(), {flag, value});
  };
  command->add_option_function<std::vector<std::string>>(name, pass, meaning)->type_name(type)->allow_extra_args(false);
}

CLI::App* AddReduce(CLI::App* app, Flags* flags) {
  CLI::App* reduce = app->add_subcommand("reduce", "find the smallest part of a model that still shows a fault");
  reduce->add_option("model", flags->input, "an ONNX model")->required();
  PassOn(reduce, "--check", "COMMAND", "run for every part, with its path for {}; 0 means that the fault is there", flags);
  PassOn(reduce, "-o,--output", "FILE", "default: <model>.small.onnx", flags);
  PassOn(reduce, "--timeout", "SECONDS", "for one run of the command; a longer run does not count as the fault", flags);
  PassOn(reduce, "--quiet", "", "print errors only", flags);
  return reduce;
}

void AddVerify(CLI::App* app, Flags* flags) {
  CLI::App* verify = app->add_subcommand("verify", "run both models in ONNX Runtime and compare all outputs");
  verify->add_option("original", flags->input, "the exported model")->required();
  verify->add_option("optimized", flags->second, "the optimized model")->required();
  const auto add = [&](const char* name, const char* type, const char* meaning) { PassOn(verify, name, type, meaning, flags); };
  add("--bindings", "JSON", "what symbolic dims and inputs are; default: several that fit the model");
  add("--seed", "N", "seed of the generated inputs");
  add("--tolerance", "NUMBER", "how far outputs may differ, relative to the largest element; default 1e-4 for float32");
  add("--json", "FILE", "write the result as JSON; - is stdout");
  add("--report", "FILE", "the JSON report of optimize: don't-care rows, names of places");
  add("--rules", "FILE", "reference rules of nodes of your own; may be repeated");
  add("--dim", "NAME=RANGE", "what --dim bound when the model was optimized; may be repeated");
  add("--no-regions", "", "compare the outputs only, not every rewritten place");
  add("--as-atc", "", "take the second model as ATC of --target and --cann reads it; it may be the export itself");
  add("--target", "NAME", "with --as-atc: the chip");
  add("--cann", "NAME", "with --as-atc: the release");
  add("--plugin", "", "with --as-atc: the op plugin is installed");
  add("--precision-mode", "MODE", "with --as-atc: what atc is given as --precision_mode");
}

struct RulesCommands {
  CLI::App* rules = nullptr;
  CLI::App* make = nullptr;  // new
  CLI::App* test = nullptr;
};

RulesCommands AddRules(CLI::App* app, Flags* flags) {
  CLI::App* rules = app->add_subcommand("rules", "list the rules in force and where they are written");
  AddTargetFlags(rules, flags);
  rules
      ->add_option("--check", flags->checked,
                   "load these rule files and say what is in them, or the first mistake with its place")
      ->type_name("FILE")
      ->allow_extra_args(false);
  rules->add_flag("--functions", flags->functions, "the functions that rules may call, as a table");
  rules->add_flag("--operators", flags->operators, "the operators that rules may name beside those of ONNX, as Markdown");
  rules->add_flag("--passes", flags->passes, "the passes of optimize in their order, as a table");

  CLI::App* make = rules->add_subcommand("new", "write a rule to start from, every part with a comment, and its two goldens");
  make->add_option("name", flags->rule, "the rule's name")->required();
  make->add_option("-o,--output", flags->output, "where to; default: here")->type_name("FOLDER");

  CLI::App* test = rules->add_subcommand(
      "test", "check the goldens of rule files, and compare the numbers of graphs that are made from the rules backwards");
  test->add_option("files", flags->checked, "rule files")->required();
  AddAtcFlags(test, flags);
  test->add_option("--count", flags->backwards.count, "graphs of each rule")
      ->type_name("N")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  test->add_option("--mutants", flags->backwards.mutants, "graphs that differ in one place, of each graph")
      ->type_name("N")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  test->add_option("--seed", flags->backwards.seed, "another seed makes other graphs")->type_name("N")->capture_default_str();
  test->add_flag("--plain", flags->backwards.plain, "without Identity, Cast and the like between the nodes");
  test->add_option("--keep", flags->keep, "write graphs that show a fault there")->type_name("FOLDER");
  test->add_flag("--graphs", flags->graphs, "the graphs and what came of them as records, for a program; nothing is compared");
  return {rules, make, test};
}

CLI::App* AddExplain(CLI::App* app, Flags* flags) {
  CLI::App* explain = app->add_subcommand(
      "explain", "explain a code of a report and what can be done about it; or why a rule matches at a node, or does not");
  explain->add_option("code", flags->code,
                      "as the report gives it (mask-per-head); default: all, with their titles; "
                      "with --rule a model");
  explain->add_option("--rule", flags->rule, "a rule: the match step by step, what each part of it met and where it ended")
      ->type_name("NAME");
  explain->add_option("--at", flags->at, "a node of the model, or a value that it computes")->type_name("NODE");
  explain->add_flag("--markdown", flags->markdown, "all codes with their explanations, as docs/codes.md has them");
  AddTargetFlags(explain, flags);
  AddDimFlag(explain, flags);
  return explain;
}

// The sentence about a first word that is no command; "" where it is one.
std::string OtherCommands(const CLI::App& app, int argc, char** argv) {
  std::vector<std::string> commands;
  for (const CLI::App* command : app.get_subcommands({})) commands.push_back(command->get_name());
  if (argc < 2 || argv[1][0] == '-' || std::find(commands.begin(), commands.end(), argv[1]) != commands.end()) return "";
  return fmt::format("{} is not a command; there are {}", argv[1], fmt::join(commands, ", "));
}

int Main(int argc, char** argv) {
  CLI::App app("Exported ONNX in, the same model with Ascend NPU nodes out, and a report.", "ascend-fuse");
  app.set_version_flag("--version", "ascend-fuse " ASCEND_FUSE_VERSION);
  app.require_subcommand(1);
  Flags flags;

  CLI::App* optimize =
      app.add_subcommand("optimize", "replace subgraphs by NPU nodes of the target; write the model and a report");
  AddRunFlags(optimize, &flags);
  AddWeightFlags(optimize, &flags);
  optimize->add_option("-o,--output", flags.output, "default: <model>.<chip>.onnx beside the model")->type_name("FILE");

  optimize->add_flag(
      "--force", flags.force,
      "write the model also where ATC surely refuses or misreads it; without it, nothing is written then: exit code 4");
  optimize->add_option("--atc-script", flags.atc_script, "write the command line of ATC as a script")->type_name("FILE");

  CLI::App* list = app.add_subcommand("list", "say what could be fused and what nearly matched; changes nothing");
  AddRunFlags(list, &flags);

  CLI::App* check = app.add_subcommand(
      "check", "find what ATC rejects, misreads or runs slowly in any ONNX file; exit code 4: it rejects or misreads");
  check->add_option("model", flags.input, "an ONNX model, optimized or not")->required();
  AddTargetFlags(check, &flags);
  AddDimFlag(check, &flags);
  AddFixFlag(check, &flags);
  AddReportFlags(check, &flags);
  check->add_flag("--verbose", flags.verbose, "name every node");
  check->add_flag("--quiet", flags.quiet, "print errors only");

  CLI::App* expand = app.add_subcommand("expand", "turn NPU nodes back into standard ONNX");
  expand->add_option("model", flags.input, "an optimized model")->required();
  AddWeightFlags(expand, &flags);
  expand->add_option("-o,--output", flags.output, "default: <model>.expanded.onnx beside it")->type_name("FILE");
  expand->add_option("--rules", flags.rule_paths, "rule file with reference rules of your own nodes; may be repeated")
      ->type_name("FILE")
      ->allow_extra_args(false);
  AddDimFlag(expand, &flags);
  expand->add_flag("--as-atc", flags.as_atc,
                   "take standard operators as ATC of --target and --cann reads them, not as ONNX defines them; exit code 3 "
                   "if it refuses the model");
  AddAtcFlags(expand, &flags);
  AddPrecisionFlag(expand, &flags);
  expand->add_flag("--quiet", flags.quiet, "print errors only");

  AddVerify(&app, &flags);
  CLI::App* diff = AddDiff(&app, &flags);
  CLI::App* reduce = AddReduce(&app, &flags);

  CLI::App* print = app.add_subcommand("print", "print the model as ONNX text");
  print->add_option("model", flags.input, "an ONNX model")->required();
  print->add_option("-o,--output", flags.output, "default: stdout")->type_name("FILE");
  print->add_option("--max-elements", flags.max_elements, "longer constants are elided; -1: never")->capture_default_str();

  const RulesCommands rules = AddRules(&app, &flags);

  CLI::App* targets = app.add_subcommand("targets", "list the chips and CANN versions, or what one of them accepts");
  targets->add_option("chip", flags.chip, "a chip, an ATC --soc_version, or a path to a .txtpb");
  targets->add_option("operator", flags.op, "an NPU node or a standard operator: what is known of it there");
  targets->add_option("--cann", flags.options.target.cann, "CANN version, or a path to a .txtpb")->capture_default_str();
  targets->add_flag("--plugin", flags.options.target.plugin, "with our op plugin installed");

  CLI::App* plugin = app.add_subcommand("plugin", "write the op plugin as source: parsers that let ATC read what --plugin emits");
  plugin->add_option("-o,--output", flags.output, "the folder that is written")->required()->type_name("FOLDER");
  plugin->add_option("--cann", flags.plugin.cann, "leave out what this CANN version has no operator for; default: nothing")
      ->type_name("VERSION");
  plugin->add_option("--nodes", flags.plugin.nodes, "parsers of these nodes only")
      ->type_name("NODE,...")
      ->delimiter(',')
      ->allow_extra_args(false);

  CLI::App* explain = AddExplain(&app, &flags);

  CLI::App* man = app.add_subcommand("man", "write the man page, ascend-fuse(1)");
  CLI::App* completion = app.add_subcommand("completion", "write the completion of the command line for a shell");
  completion->add_option("shell", flags.shell, "bash, zsh or fish")->required()->check(CLI::IsMember({"bash", "zsh", "fish"}));

  if (const std::string there = OtherCommands(app, argc, argv); !there.empty()) return Fail(there, kUsage);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? kDone : kUsage;
  }
  if (optimize->parsed()) return RunOptimize(std::move(flags), true);
  if (list->parsed()) return RunOptimize(std::move(flags), false);
  if (check->parsed()) return RunCheck(std::move(flags));
  if (expand->parsed()) return RunExpand(flags);
  if (diff->parsed()) return RunDiff(flags);
  if (reduce->parsed()) return RunPython("reduce", {flags.input}, flags.python_words);
  if (print->parsed()) return RunPrint(flags);
  if (rules.make->parsed()) return RunNewRule(flags);
  if (rules.test->parsed()) {
    // Without a target all are tried.
    const bool one = rules.test->count("--target") + rules.test->count("--cann") + rules.test->count("--plugin") > 0;
    if (one) flags.backwards.target = flags.options.target;
    return RunTestRules(std::move(flags));
  }
  if (rules.rules->parsed()) return RunRules(std::move(flags));
  if (targets->parsed()) return RunTargets(flags);
  if (plugin->parsed()) return RunPlugin(flags);
  if (explain->parsed()) return RunExplain(flags);
  if (man->parsed() || completion->parsed()) {
    const auto status = WriteText("-", man->parsed() ? ManPage(app, ASCEND_FUSE_VERSION) : Completion(app, flags.shell));
    return status.ok() ? kDone : Fail(status);
  }
  return RunVerify(flags);
}

}  // namespace
}  // namespace ascend_fuse

namespace {

// Without memory the process ends at once: Abseil's tables cannot be taken apart after an allocation in them has failed.
void EndWithoutMemory() {
  constexpr char kSentence[] = "ascend-fuse: there is not enough memory\n";
  ascend_fuse::RemoveUnfinishedFiles();
  if (write(STDERR_FILENO, kSentence, sizeof(kSentence) - 1) < 0) _exit(ascend_fuse::kFailed);
  _exit(ascend_fuse::kFailed);
}

}  // namespace

int main(int argc, char** argv) {
  std::set_new_handler(&EndWithoutMemory);
  try {
    return ascend_fuse::Main(argc, argv);
  } catch (const std::bad_alloc&) {  // of what does not allocate by new
    EndWithoutMemory();
  } catch (const std::exception& error) {
    ascend_fuse::Fail(error.what());
  }
  return ascend_fuse::kFailed;
}
