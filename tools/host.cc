#include "tools/host.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <sstream>
#include <string_view>
#include <system_error>
#include <tuple>
#include <utility>

#include "absl/strings/ascii.h"
#include "fmt/format.h"
#include "ir/onnx/whole_file.h"
#include "patterns/target/target.h"
#include "tools/run_briefly.h"

namespace ascend_fuse {
namespace {

namespace fs = std::filesystem;

constexpr int kSeconds = 5;  // for each program that is asked

std::string Variable(const char* name) {
  const char* value = getenv(name);
  return value == nullptr ? std::string() : value;
}

std::string Trimmed(const std::string& text) { return std::string(absl::StripAsciiWhitespace(text)); }

std::vector<std::string> SplitAt(const std::string& text, char at) {
  std::vector<std::string> parts;
  std::istringstream stream(text);
  for (std::string part; std::getline(stream, part, at);) parts.push_back(Trimmed(part));
  return parts;
}

// The value of `key=value` in a file, whatever the case of the key; "" where it has none.
std::string ValueIn(const std::string& path, std::string_view key) {
  std::error_code error;
  if (!fs::is_regular_file(path, error) || fs::file_size(path, error) > (1 << 20)) return "";
  const auto text = ReadWholeFile(path);
  if (!text.ok()) return "";
  for (const std::string& line : SplitAt(*text, '\n')) {
    const size_t equals = line.find('=');
    if (equals == std::string::npos) continue;
    std::string name = Trimmed(line.substr(0, equals));
    absl::AsciiStrToLower(&name);
    if (name == key) return Trimmed(line.substr(equals + 1));
  }
  return "";
}

bool IsFile(const std::string& path) {
  std::error_code error;
  return fs::is_regular_file(path, error);
}

// The first two numbers of a version, "8.1" of 8.1.RC1; CANN's own numbers of files (7.7.0.1.238) are not those of releases.
std::string Release(const std::string& version) {
  size_t dots = 0, end = 0;
  for (; end < version.size(); ++end) {
    const char c = version[end];
    if (c == '.' && ++dots == 2) break;
    if (c != '.' && !absl::ascii_isdigit(static_cast<unsigned char>(c))) break;
  }
  std::string release = version.substr(0, end);
  if (!release.empty() && release.back() == '.') release.pop_back();
  return release;
}

std::string CannOption(const std::string& version) {
  const std::string release = Release(version);
  for (const std::string& known : Target::CannVersions()) {
    if (known == release) return known;
  }
  return "";
}

// The version of the toolkit in this folder and the file that says it.
std::pair<std::string, std::string> VersionOf(const std::string& folder) {
  for (const char* arch : {"aarch64-linux", "x86_64-linux", "."}) {
    const std::string file = fmt::format("{}/{}/ascend_toolkit_install.info", folder, arch);
    if (std::string version = ValueIn(file, "version"); !version.empty()) return {version, file};
  }
  // Of CANN without a toolkit's file: version_dir is the release, Version a number of this part.
  for (const char* part : {"compiler", "runtime", "opp", "toolkit", "."}) {
    const std::string file = fmt::format("{}/{}/version.info", folder, part);
    for (const char* key : {"version_dir", "version"}) {
      if (std::string version = ValueIn(file, key); !version.empty()) return {version, file};
    }
  }
  return {};
}

// Folders in which a toolkit may be, those of variables first.
std::vector<std::string> CannFolders(const std::string& root) {
  std::vector<std::string> folders;
  for (const char* name : {"ASCEND_HOME_PATH", "ASCEND_TOOLKIT_HOME"}) {
    if (std::string folder = Variable(name); !folder.empty()) folders.push_back(std::move(folder));
  }
  for (const std::string& base : {root + "/usr/local/Ascend", Variable("HOME") + "/Ascend"}) {
    for (const char* name : {"cann", "latest", "ascend-toolkit/latest", "nnae/latest", "nnrt/latest"})
      folders.push_back(fmt::format("{}/{}", base, name));
    std::error_code error;
    std::vector<std::string> versions;  // cann-8.5.0, ascend-toolkit/8.1.RC1
    for (const std::string& above : {base, base + "/ascend-toolkit"}) {
      for (fs::directory_iterator at(above, error), end; !error && at != end; at.increment(error)) {
        if (at->path().filename().string().starts_with("cann-") || above != base) versions.push_back(at->path().string());
      }
    }
    std::sort(versions.begin(), versions.end());
    folders.insert(folders.end(), versions.begin(), versions.end());
  }
  return folders;
}

void FindCann(const std::string& root, Host* host) {
  std::vector<std::string> seen;
  for (const std::string& folder : CannFolders(root)) {
    std::error_code error;
    const std::string real = fs::canonical(folder, error).string();
    if (error || std::find(seen.begin(), seen.end(), real) != seen.end()) continue;
    seen.push_back(real);
    auto [version, file] = VersionOf(folder);
    if (version.empty()) continue;
    std::string option = CannOption(version);
    host->canns.push_back({folder, std::move(version), std::move(file), std::move(option)});
  }
}

void FindAtc(Host* host) {
  for (const std::string& folder : SplitAt(Variable("PATH"), ':')) {
    if (const std::string path = folder + "/atc"; IsFile(path) && access(path.c_str(), X_OK) == 0) {
      host->atc = path;
      host->atc_in_path = true;
      return;
    }
  }
  for (const CannInstall& cann : host->canns) {
    for (const char* place : {"bin/atc", "compiler/bin/atc", "atc/bin/atc"}) {
      if (const std::string path = fmt::format("{}/{}", cann.folder, place); host->atc.empty() && IsFile(path)) host->atc = path;
    }
  }
}

void FindPlugins(Host* host) {
  std::vector<std::string> folders = SplitAt(Variable("ASCEND_CUSTOM_OPP_PATH"), ':');
  for (const CannInstall& cann : host->canns) folders.push_back(cann.folder + "/opp/vendors/ascend_fuse");
  for (const std::string& folder : folders) {
    const std::string path = folder + "/framework/onnx/libascend_fuse_onnx_plugin.so";
    if (!folder.empty() && IsFile(path)) host->plugins.push_back(path);
  }
}

// The chip of --target that a name of npu-smi stands for; nothing where its data are not there.
std::string TargetOfSoc(const std::string& soc_version) {
  TargetOptions options;
  options.chip = soc_version;
  options.cann = Target::CannVersions().back();
  const auto target = Target::Load(options);
  if (target.ok()) return target->chip();
  options.cann = TargetOptions().cann;
  const auto other = Target::Load(options);
  return other.ok() ? other->chip() : "";
}

// Atlas A3 says Ascend910 of all its chips: `-t board` has the rest of the name, "Ascend910" and "9391".
std::string NameOfBoard(const std::string& id) {
  const auto text = RunBriefly({"npu-smi", "info", "-t", "board", "-i", id, "-c", "0"}, kSeconds);
  if (!text.has_value()) return "";
  std::string chip, npu;
  for (const std::string& line : SplitAt(*text, '\n')) {
    const size_t colon = line.find(':');
    if (colon == std::string::npos) continue;
    const std::string key = Trimmed(line.substr(0, colon));
    if (key == "Chip Name") chip = Trimmed(line.substr(colon + 1));
    if (key == "NPU Name") npu = Trimmed(line.substr(colon + 1));
  }
  return chip.empty() || npu.empty() || npu == "NA" ? "" : fmt::format("{}_{}", chip, npu);
}

// "| 0     910B3     | OK   | 90.2 ..." is a row of an NPU, "| 0         | 0000:C1:00.0 | ..." one of its chips.
void FindNpus(Host* host) {
  const auto text = RunBriefly({"npu-smi", "info"}, kSeconds);
  if (!text.has_value()) {
    for (const std::string& folder : SplitAt(Variable("PATH"), ':')) {
      if (IsFile(folder + "/npu-smi")) host->npu_smi = "does not answer";
    }
    return;
  }
  host->npu_smi = "answers";
  for (const std::string& line : SplitAt(*text, '\n')) {
    const std::vector<std::string> columns = SplitAt(line, '|');
    if (columns.size() < 2 || !columns[0].empty()) continue;
    std::istringstream words(columns[1]);
    std::string first, name, more;
    words >> first >> name >> more;
    if (first == "npu-smi") host->npu_smi = name;
    const bool is_npu = columns.size() > 2 && !first.empty() &&
                        std::all_of(first.begin(), first.end(), [](unsigned char c) { return absl::ascii_isdigit(c); }) &&
                        name.find_first_of("0123456789") != std::string::npos && name.size() >= 3 && more.empty();
    if (!is_npu) continue;
    if (name == "Ascend910" || name == "910") {
      if (const std::string whole = NameOfBoard(first); !whole.empty()) name = whole;
    }
    const auto known = std::find_if(host->npus.begin(), host->npus.end(), [&](const Npu& npu) { return npu.name == name; });
    if (known != host->npus.end()) {
      ++known->count;
      continue;
    }
    const std::string soc = name.starts_with("Ascend") ? name : "Ascend" + name;
    host->npus.push_back({name, soc, TargetOfSoc(soc), 1});
  }
}

void FindPython(const std::string& python, Host* host) {
  static constexpr const char* kProgram =
      "import sys\n"
      "from importlib import metadata\n"
      "print(sys.executable)\n"
      "print('.'.join(map(str, sys.version_info[:3])))\n"
      "for name in ('numpy', 'onnx', 'onnxruntime'):\n"
      "    try: print(name, metadata.version(name))\n"
      "    except metadata.PackageNotFoundError: print(name)\n";
  const auto text = RunBriefly({python, "-c", kProgram}, kSeconds);
  if (!text.has_value()) return;
  const std::vector<std::string> lines = SplitAt(*text, '\n');
  if (lines.size() < 2) return;
  host->python = lines[0];
  host->python_version = lines[1];
  for (size_t i = 2; i < lines.size(); ++i) {
    const size_t blank = lines[i].find(' ');
    host->packages.push_back({lines[i].substr(0, blank), blank == std::string::npos ? "" : lines[i].substr(blank + 1)});
  }
}

}  // namespace

Host LookAtHost(const std::string& root, const std::string& python) {
  Host host;
  FindCann(root == "/" ? "" : root, &host);
  FindAtc(&host);
  FindPlugins(&host);
  FindNpus(&host);
  host.driver = ValueIn((root == "/" ? "" : root) + "/usr/local/Ascend/driver/version.info", "version");
  FindPython(python, &host);
  return host;
}

}  // namespace ascend_fuse
