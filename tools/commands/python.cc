// verify, precision and reduce, which run in the Python package, and how a module of that is run.
#include "tools/commands/python.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "fmt/format.h"
#include "tools/commands/command.h"
#include "tools/commands/progress.h"
#include "tools/config_file.h"

namespace ascend_fuse {
namespace {

constexpr int kSignal = 128;  // as shells tell it

struct PythonFlags {
  std::string input;
  std::string second;              // verify: the optimized model
  std::vector<std::string> words;  // flags, as they stand
};

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

// --progress of a command in Python.
void PassOnProgress(CLI::App* command, PythonFlags* flags) {
  const auto pass = [flags](const std::string& how) { flags->words.insert(flags->words.end(), {"--progress", how}); };
  command->add_option_function<std::string>("--progress", pass, std::string(kProgressMeaning))
      ->type_name("auto|bar|lines|none")
      ->check(CLI::IsMember({"auto", "bar", "lines", "none"}));
}

// A flag of a command in Python: it is known here for the help, and so that its value is not an operand.
void PassOn(CLI::App* command, const std::string& name, const std::string& type, const std::string& meaning, PythonFlags* flags) {
  const std::string flag = name.substr(0, name.find(','));
  if (type.empty()) {
    command->add_flag_callback(name, [flags, flag] { flags->words.push_back(flag); }, meaning);
    return;
  }
  const auto pass = [flags, flag](const std::vector<std::string>& values) {
    for (const std::string& value : values) flags->words.insert(flags->words.end(), {flag, value});
  };
  command->add_option_function<std::vector<std::string>>(name, pass, meaning)->type_name(type)->allow_extra_args(false);
}

}  // namespace

std::string OwnPath() {
  char path[PATH_MAX];
  const ssize_t length = readlink("/proc/self/exe", path, sizeof(path));
  return length > 0 && length < static_cast<ssize_t>(sizeof(path)) ? std::string(path, length) : "ascend-fuse";
}

std::string PythonProgram() {
  const std::string own_path = OwnPath();
  // In a Python environment the package belongs to the interpreter that lies beside this program.
  const std::string beside = own_path.substr(0, own_path.rfind('/') + 1) + "python3";
  return PythonFolder(own_path).empty() && access(beside.c_str(), X_OK) == 0 ? beside : "python3";
}

namespace {

// Lets Python find the package, and be told all by flags.
void SetEnvironment() {
  const std::string folder = PythonFolder(OwnPath());
  if (!folder.empty()) {
    const char* old = getenv("PYTHONPATH");
    const std::string path = old == nullptr || *old == '\0' ? folder : fmt::format("{}:{}", folder, old);
    setenv("PYTHONPATH", path.c_str(), 1);
  }
  setenv(kNoConfig, "1", 1);
}

// Runs a module of a package that only Python can find, or says that there is none.
constexpr char kFindPackage[] = R"(import importlib.util, runpy, sys
module = sys.argv.pop(1)
if importlib.util.find_spec("ascend_fuse") is None:
    sys.exit("ascend-fuse: this command runs in the Python package ascend_fuse, which " + sys.executable + " does not have: pip install the wheel"
             " of this release, or keep the folder share of its archive beside bin")
runpy.run_module("ascend_fuse." + module, run_name="__main__", alter_sys=True)
)";

// Runs a module of Python: its exit code, or 128 and the number of the signal that ended it.
int RunModule(const std::string& module, const std::vector<std::string>& arguments, const std::vector<std::string>& more) {
  const std::string python = PythonProgram();
  std::vector<std::string> words = {python, "-m", "ascend_fuse." + module};
  if (PythonFolder(OwnPath()).empty()) words = {python, "-c", kFindPackage, module};
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
  return WIFSIGNALED(status) ? kSignal + WTERMSIG(status) : WEXITSTATUS(status);
}

// Whether a fault of the code that ran ended it.
bool IsFault(int ended) {
  static constexpr int kFaults[] = {SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGSEGV};
  return std::find(std::begin(kFaults), std::end(kFaults), ended - kSignal) != std::end(kFaults);
}

// The exit code for what RunModule returned, with a sentence where a signal ended it; `way_out` is told of a fault.
int ExitCodeOf(int ended, std::string_view way_out = "") {
  if (ended <= kSignal) return ended;
  const std::string why = IsFault(ended) ? fmt::format(", a fault of ONNX Runtime or of what else runs in it{}", way_out)
                          : ended - kSignal == SIGKILL ? ": most often there was not enough memory"
                                                       : "";
  return Fail(fmt::format("python3 was ended by signal {}{}", ended - kSignal, why));
}

// Where ONNX Runtime ends the process, verify tries each of its inputs in a process of its own.
int RunVerify(const PythonFlags& flags) {
  SetEnvironment();
  const std::vector<std::string> arguments = {flags.input, flags.second, "--tool", OwnPath()};
  int ended = RunModule("verification", arguments, flags.words);
  if (IsFault(ended)) {
    fprintf(stderr,
            "ascend-fuse: ONNX Runtime was ended by signal %d; once more, with each input tried in a process of its own\n",
            ended - kSignal);
    setenv("ASCEND_FUSE_ELSEWHERE_FIRST", "1", 1);  // ascend_fuse/verification.py
    ended = RunModule("verification", arguments, flags.words);
  }
  return ExitCodeOf(ended, "; --bindings gives other inputs");
}

}  // namespace

int RunPython(const std::string& module, const std::vector<std::string>& arguments, const std::vector<std::string>& more) {
  SetEnvironment();
  return ExitCodeOf(RunModule(module, arguments, more));
}

void AddVerify(Commands* commands) {
  auto* flags = commands->New<PythonFlags>();
  CLI::App* verify = commands->app()->add_subcommand("verify", "run both models in ONNX Runtime and compare all outputs");
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
  add("--as-half", "", "run the second model in float16 as the chip does: error by module");
  add("--keep-dtype", "FILE", "with --as-half: a list for atc, whose nodes stay float32");
  add("--target", "NAME", "with --as-atc or --as-half: the chip");
  add("--cann", "NAME", "with --as-atc: the release");
  add("--plugin", "", "with --as-atc: the op plugin is installed");
  add("--precision-mode", "MODE", "with --as-atc: what atc is given as --precision_mode");
  PassOnProgress(verify, flags);
  commands->Add(verify, [flags] { return RunVerify(*flags); });
}

void AddPrecision(Commands* commands) {
  auto* flags = commands->New<PythonFlags>();
  CLI::App* precision = commands->app()->add_subcommand(
      "precision", "say what float16 does to a model, and write the files for atc that keep the nodes at risk in float32");
  precision->add_option("model", flags->input, "an ONNX model; files for atc are for the one that is given")->required();
  const auto add = [&](const char* name, const char* type, const char* meaning) {
    PassOn(precision, name, type, meaning, flags);
  };
  add("--data", "FILE", "run it on the inputs in an .npz file, or in all of a folder");
  add("--seeded", "", "run it on generated inputs, as verify does");
  add("--bindings", "JSON", "with --seeded: what symbolic dims and inputs are; default: several that fit the model");
  add("--seed", "N", "seed of the generated inputs");
  add("--dim", "NAME=RANGE", "with --seeded: what a symbolic dim can be; may be repeated");
  add("--keep-dtype", "FILE", "write the list for atc --keep_dtype: names of nodes");
  add("--modify-mixlist", "FILE", "write the JSON for atc --modify_mixlist: types of operators");
  add("--customize-dtypes", "FILE", "write the file for atc --customize_dtypes: names with types");
  add("--target", "NAME", "the chip: what an overflow becomes, what has float32 kernels; default ascend910b");
  add("--tolerance", "NUMBER", "how far an output may be from float32, relative to its largest element; default 1e-2");
  add("--lost-share", "NUMBER", "report values of which more becomes 0 or subnormal; default 0.1");
  add("--seconds", "N", "after which the list is not made smaller; default 300");
  add("--no-weights", "", "do not read constants of more than 1024 elements");
  add("--rules", "FILE", "reference rules of nodes of your own; may be repeated");
  add("--json", "FILE", "write the report as JSON; - is stdout");
  add("--verbose", "", "name every node");
  PassOnProgress(precision, flags);
  precision->footer("Exit code 3: float16 is wrong, and no list makes it right.");
  commands->Add(precision,
                [flags] { return RunPython("precision_analysis", {flags->input, "--tool", OwnPath()}, flags->words); });
}

void AddReduce(Commands* commands) {
  auto* flags = commands->New<PythonFlags>();
  CLI::App* reduce = commands->app()->add_subcommand("reduce", "find the smallest part of a model that still shows a fault");
  reduce->add_option("model", flags->input, "an ONNX model")->required();
  PassOn(reduce, "--check", "COMMAND", "run for every part, with its path for {}; 0 means that the fault is there", flags);
  PassOn(reduce, "-o,--output", "FILE", "default: <model>.small.onnx", flags);
  PassOn(reduce, "--timeout", "SECONDS", "for one run of the command; a longer run does not count as the fault", flags);
  PassOn(reduce, "--quiet", "", "print errors only", flags);
  PassOnProgress(reduce, flags);
  commands->Add(reduce, [flags] { return RunPython("reduce", {flags->input}, flags->words); });
}

}  // namespace ascend_fuse
