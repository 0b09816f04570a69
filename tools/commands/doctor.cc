// doctor: what of CANN, atc, NPUs, the op plugin and Python this host has, and which options fit.
#include <algorithm>
#include <string>
#include <vector>

#include "fmt/format.h"
#include "fmt/ranges.h"
#include "ir/text/json_string.h"
#include "ir/text/visible.h"
#include "patterns/target/target.h"
#include "tools/commands/command.h"
#include "tools/commands/python.h"
#include "tools/host.h"

namespace ascend_fuse {
namespace {

struct DoctorFlags {
  std::string root = "/";
  bool json = false;
};

struct Diagnosis {
  std::string target, cann;  // the options that fit; "" where nothing says
  bool plugin = false;
  std::vector<std::string> advice;
};

std::vector<std::string> Missing(const Host& host) {
  std::vector<std::string> names;
  for (const PythonPackage& package : host.packages) {
    if (package.version.empty()) names.push_back(package.name);
  }
  return names;
}

void JudgeCann(const Host& host, Diagnosis* diagnosis) {
  auto& advice = diagnosis->advice;
  if (host.canns.empty()) {
    advice.push_back(
        fmt::format("CANN was not found. optimize, list, analyze and check need none; name the release that will compile the "
                    "model with --cann ({}).",
                    fmt::join(Target::CannVersions(), ", ")));
    return;
  }
  const CannInstall& first = host.canns.front();
  diagnosis->cann = first.option;
  if (first.option.empty()) {
    advice.push_back(fmt::format(
        "There are no data of CANN {}. Give --cann one of {}, the nearest one, and compare what atc says with the report.",
        first.version, fmt::join(Target::CannVersions(), ", ")));
  } else {
    advice.push_back(fmt::format("--cann {} fits CANN {}.", first.option, first.version));
  }
  if (host.canns.size() > 1) {
    advice.push_back(
        fmt::format("There are {} installations of CANN. That of {} is taken; source the set_env.sh of the one you mean.",
                    host.canns.size(), first.folder));
  }
  if (host.atc.empty()) {
    advice.emplace_back(
        "atc was not found: this installation cannot compile a model. Install the toolkit, or compile on another host.");
  } else if (!host.atc_in_path) {
    advice.push_back(fmt::format(
        "atc is not in PATH: run `source {}/set_env.sh`, or of a toolkit before 8.5 the set_env.sh of the folder above, "
        "before you call it.",
        first.folder));
  }
}

void JudgeNpus(const Host& host, Diagnosis* diagnosis) {
  auto& advice = diagnosis->advice;
  for (const Npu& npu : host.npus) {
    if (npu.target.empty()) {
      advice.push_back(fmt::format(
          "There are no data of the NPU {}. `ascend-fuse targets` lists the chips there are; docs/newcomer.md adds one.",
          npu.name));
    } else if (diagnosis->target.empty()) {
      diagnosis->target = npu.target;
      advice.push_back(fmt::format("--target {} fits the NPU {}; --target {} also gives atc its --soc_version.", npu.target,
                                   npu.name, npu.soc_version));
    } else {
      advice.push_back(fmt::format("For the NPU {} give --target {}.", npu.name, npu.soc_version));
    }
  }
  if (host.npu_smi == "does not answer") {
    advice.emplace_back(
        "npu-smi does not answer: see whether the driver is loaded and whether you are in its group (HwHiAiUser). Name the chip "
        "with --target.");
  } else if (host.npus.empty()) {
    advice.push_back(fmt::format("No NPU was found. Models can be optimized here all the same: name the chip with --target ({}).",
                                 fmt::join(Target::Chips(), ", ")));
  }
  if (diagnosis->target.empty() || diagnosis->cann.empty()) return;
  TargetOptions options;
  options.chip = diagnosis->target;
  options.cann = diagnosis->cann;
  if (const auto target = Target::Load(options); target.ok()) {
    for (const std::string& warning : target->warnings()) advice.push_back(warning + ".");
  }
}

void JudgeTheRest(const Host& host, Diagnosis* diagnosis) {
  auto& advice = diagnosis->advice;
  diagnosis->plugin = !host.plugins.empty();
  if (diagnosis->plugin) {
    advice.emplace_back("The op plugin is installed: --plugin adds nodes that need it.");
  } else if (!host.canns.empty()) {
    advice.emplace_back(
        "The op plugin is not installed: without it give no --plugin. `ascend-fuse plugin -o FOLDER` writes its source, which "
        "needs CMake and a compiler.");
  }
  if (host.python_version.empty()) {
    advice.emplace_back(
        "Python was not found: verify, precision and reduce need python3 with numpy, onnx and onnxruntime; all other commands "
        "need none.");
  } else if (const auto names = Missing(host); !names.empty()) {
    advice.push_back(
        fmt::format("verify, precision and reduce need more: `{} -m pip install {}`.", host.python, fmt::join(names, " ")));
  }
  if (diagnosis->target.empty() && diagnosis->cann.empty()) return;
  std::string line = "ascend-fuse optimize MODEL.onnx";
  if (!diagnosis->target.empty()) line += " --target " + diagnosis->target;
  if (!diagnosis->cann.empty()) line += " --cann " + diagnosis->cann;
  if (diagnosis->plugin) line += " --plugin";
  advice.push_back(fmt::format("For models of this host: `{}`.", line));
}

Diagnosis Judge(const Host& host) {
  Diagnosis diagnosis;
  JudgeCann(host, &diagnosis);
  JudgeNpus(host, &diagnosis);
  JudgeTheRest(host, &diagnosis);
  return diagnosis;
}

std::string ToText(const Host& host, const Diagnosis& diagnosis) {
  std::string text;
  const auto line = [&text](std::string_view name, const std::string& value) {
    text += fmt::format("{:<12}  {}\n", name, Shown(value.empty() ? "not found" : value));
  };
  if (host.canns.empty()) line("CANN", "");
  for (const CannInstall& cann : host.canns) line("CANN", fmt::format("{} in {}", cann.version, cann.folder));
  line("atc", host.atc);
  line("op plugin", fmt::format("{}", fmt::join(host.plugins, ", ")));
  line("npu-smi", host.npu_smi);
  line("driver", host.driver);
  for (const Npu& npu : host.npus) line("NPU", fmt::format("{} x {}", npu.count, npu.name));
  if (host.npus.empty()) line("NPU", "");
  line("Python", host.python_version.empty() ? "" : fmt::format("{} in {}", host.python_version, host.python));
  for (const PythonPackage& package : host.packages) line(package.name, package.version);
  text += "\n";
  for (const std::string& sentence : diagnosis.advice) text += fmt::format("- {}\n", Shown(sentence));
  return text;
}

std::string Strings(const std::vector<std::string>& texts) {
  std::vector<std::string> quoted;
  for (const std::string& text : texts) quoted.push_back(VisibleJsonString(text));
  return fmt::format("[{}]", fmt::join(quoted, ", "));
}

// null for what was not found.
std::string OrNull(const std::string& text) { return text.empty() ? "null" : VisibleJsonString(text); }

std::string ToJson(const Host& host, const Diagnosis& diagnosis) {
  std::vector<std::string> canns, npus, packages;
  for (const CannInstall& cann : host.canns) {
    canns.push_back(fmt::format(R"({{"folder": {}, "version": {}, "file": {}, "cann": {}}})", VisibleJsonString(cann.folder),
                                VisibleJsonString(cann.version), VisibleJsonString(cann.file), OrNull(cann.option)));
  }
  for (const Npu& npu : host.npus) {
    npus.push_back(fmt::format(R"({{"name": {}, "soc_version": {}, "target": {}, "count": {}}})", VisibleJsonString(npu.name),
                               VisibleJsonString(npu.soc_version), OrNull(npu.target), npu.count));
  }
  for (const PythonPackage& package : host.packages)
    packages.push_back(fmt::format("{}: {}", VisibleJsonString(package.name), OrNull(package.version)));
  return fmt::format(
      "{{\n  \"cann\": [{}],\n  \"atc\": {},\n  \"atc_in_path\": {},\n  \"op_plugin\": {},\n  \"npu_smi\": {},\n  \"driver\": "
      "{},\n"
      "  \"npu\": [{}],\n  \"python\": {},\n  \"python_version\": {},\n  \"packages\": {{{}}},\n"
      "  \"options\": {{\"target\": {}, \"cann\": {}, \"plugin\": {}}},\n  \"advice\": {}\n}}\n",
      fmt::join(canns, ", "), OrNull(host.atc), host.atc_in_path, Strings(host.plugins), OrNull(host.npu_smi),
      OrNull(host.driver), fmt::join(npus, ", "), OrNull(host.python), OrNull(host.python_version), fmt::join(packages, ", "),
      OrNull(diagnosis.target), OrNull(diagnosis.cann), diagnosis.plugin, Strings(diagnosis.advice));
}

int Run(const DoctorFlags& flags) {
  const Host host = LookAtHost(flags.root, PythonProgram());
  const Diagnosis diagnosis = Judge(host);
  return Done(WriteText("-", flags.json ? ToJson(host, diagnosis) : ToText(host, diagnosis)));
}

}  // namespace

void AddDoctor(Commands* commands) {
  auto* flags = commands->New<DoctorFlags>();
  CLI::App* doctor = commands->app()->add_subcommand(
      "doctor", "say what of CANN, atc, NPUs, the op plugin and Python is on this host, and which options fit it");
  doctor->add_flag("--json", flags->json, "as JSON");
  doctor->add_option("--root", flags->root, "look for CANN in this folder, for example the root of a container")
      ->type_name("FOLDER")
      ->capture_default_str();
  commands->Add(doctor, [flags] { return Run(*flags); });
}

}  // namespace ascend_fuse
