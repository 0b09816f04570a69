// The command line: flags become options, results become text, JSON and an exit code. Reports go to stdout,
// everything else to stderr. tools/exit_codes.cc says what exit codes mean. Each command stands in a file of tools/commands, with
// its flags.
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <exception>
#include <new>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ascend_fuse_version.h"
#include "fmt/format.h"
#include "fmt/ranges.h"
#include "ir/onnx/output_file.h"
#include "ir/text/visible.h"
#include "tools/command_documents.h"
#include "tools/commands/command.h"
#include "tools/commit.h"
#include "tools/config_file.h"
#include "tools/heap.h"

namespace ascend_fuse {
namespace {

// The version, the commit and how it was built.
std::string VersionText() {
  std::vector<std::string> parts;
  if (*kCommit != '\0') parts.emplace_back(kCommit);
  parts.emplace_back(kBuild);
  return fmt::format("ascend-fuse " ASCEND_FUSE_VERSION " ({})", fmt::join(parts, ", "));
}

// The sentence about a first word that is not a command; "" where it is one. The words stand last first.
std::string OtherCommands(const CLI::App& app, const std::vector<std::string>& words) {
  std::vector<std::string> commands;
  for (const CLI::App* command : app.get_subcommands({})) commands.push_back(command->get_name());
  if (words.empty()) return "";
  const bool has_config = words.back() == "--config" && words.size() > 2;
  const std::string& first = words[words.size() - (has_config ? 3 : 1)];
  if (first.starts_with('-') || std::find(commands.begin(), commands.end(), first) != commands.end()) return "";
  return fmt::format("{} is not a command; there are {}", first, fmt::join(commands, ", "));
}

// `--config FILE` stands before the command, wherever it was given.
void TakeConfig(std::vector<std::string>* words) {
  for (size_t i = words->size(); i-- > 0;) {
    const std::string word = (*words)[i];
    const bool whole = word.starts_with("--config=");
    if (!whole && (word != "--config" || i == 0)) continue;
    const std::string file = whole ? word.substr(std::string_view("--config=").size()) : (*words)[i - 1];
    words->erase(words->begin() + static_cast<int64_t>(i) - (whole ? 0 : 1), words->begin() + static_cast<int64_t>(i) + 1);
    words->insert(words->end(), {file, "--config"});
    return;
  }
}

// The words of the command line, last first, as CLI11 wants them. `--dim b=1 s=1..8` becomes `--dim b=1 --dim s=1..8`: what
// follows, has a `=` and is not a file belongs to the flag as well, and a model after it stays a model.
std::vector<std::string> Words(int argc, char** argv) {
  std::vector<std::string> words;
  std::string flag;  // that the last words belong to
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    const bool is_flag = word.starts_with('-');
    if (!flag.empty() && !is_flag && words.back() != flag) {
      if (word.find('=') != std::string::npos && access(argv[i], F_OK) != 0) {
        words.push_back(flag);
      } else {
        flag.clear();
      }
    }
    if (is_flag) flag = word == "--dim" || word == "--fix" ? word : "";
    words.push_back(word);
  }
  std::reverse(words.begin(), words.end());
  return words;
}

void AddDocuments(Commands* commands) {
  CLI::App* app = commands->app();
  const CLI::App* man = app->add_subcommand("man", "write the man page, ascend-fuse(1)");
  commands->Add(man, [app] { return Done(WriteText("-", ManPage(*app, ASCEND_FUSE_VERSION))); });
  CLI::App* completion = app->add_subcommand("completion", "write the completion of the command line for a shell");
  auto* shell = commands->New<std::string>();
  completion->add_option("shell", *shell, "bash, zsh or fish")->required()->check(CLI::IsMember({"bash", "zsh", "fish"}));
  commands->Add(completion, [app, shell] { return Done(WriteText("-", Completion(*app, *shell))); });
}

void AddCommands(Commands* commands) {
  AddOptimize(commands);
  AddList(commands);
  AddAnalyze(commands);
  AddCheck(commands);
  AddExpand(commands);
  AddVerify(commands);
  AddPrecision(commands);
  AddDiff(commands);
  AddReport(commands);
  AddReduce(commands);
  AddPrint(commands);
  AddRules(commands);
  AddTargets(commands);
  AddPlugin(commands);
  AddExplain(commands);
  AddDoctor(commands);
  AddDocuments(commands);
}

// `--explain-exit [CODE]`, which needs no command.
int RunExplainExit(std::string_view number) {
  const std::string text = ExplainExit(number);
  if (text.empty()) return Fail(fmt::format("{} is not an exit code of this program; those are 0 to 4", number), kUsage);
  return Done(WriteText("-", text));
}

// Options that stand in the file or in variables. The commands that look at nothing do without.
int RunWithConfig(CLI::App* app, const Commands& commands, const std::string& given) {
  const CLI::App* command = app->get_subcommands().front();
  const bool documents = command->get_name() == "man" || command->get_name() == "completion" || command->get_name() == "doctor";
  if (!documents && (getenv(kNoConfig) == nullptr || !given.empty())) {
    std::string read;
    if (const auto status = ApplyConfig(app, given, &read); !status.ok()) return FailOption(status);
    const CLI::Option* quiet = command->get_option_no_throw("--quiet");
    if (!read.empty() && (quiet == nullptr || quiet->count() == 0))
      fmt::print(stderr, "ascend-fuse: options from {}\n", Shown(read));
  }
  return commands.Run();
}

int Main(int argc, char** argv) {
  CLI::App app("Exported ONNX in, the same model with Ascend NPU nodes out, and a report.", "ascend-fuse");
  app.set_version_flag("--version", VersionText());
  std::string config, number;
  app.add_option("--config", config, "options of all commands, in this file instead of ascend-fuse.toml of the current folder")
      ->type_name("FILE");
  // CLI11 lists it in the help; it is looked at before a command is asked for.
  app.add_option("--explain-exit", number, "what exit codes mean and what to do, of all or of one")->type_name("[CODE]");
  app.require_subcommand(1);
  Commands commands(&app);
  AddCommands(&commands);
  if (argc >= 2 && std::string_view(argv[1]) == "--explain-exit" && argc <= 3) return RunExplainExit(argc == 3 ? argv[2] : "");
  std::vector<std::string> words = Words(argc, argv);
  TakeConfig(&words);
  if (const std::string there = OtherCommands(app, words); !there.empty()) return Fail(there, kUsage);
  try {
    app.parse(std::move(words));
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? kDone : kUsage;
  }
  return RunWithConfig(&app, commands, config);
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
  ascend_fuse::UseLargePages();
  try {
    return ascend_fuse::Main(argc, argv);
  } catch (const std::bad_alloc&) {  // of what does not allocate by new
    EndWithoutMemory();
  } catch (const std::exception& error) {
    ascend_fuse::Fail(error.what());
  }
  return ascend_fuse::kFailed;
}
