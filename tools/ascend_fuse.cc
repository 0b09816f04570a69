// The command line: flags become options, results become text, JSON and an exit code. Reports go to stdout,
// everything else to stderr. Exit codes: 0 done, 1 an error in the input or of the file system, 2 wrong
// usage, 3 a requirement (--require, verify) is not met, 4 check or optimize found what ATC rejects or misreads.
// Each command stands in a file of tools/commands, with its flags.
#include <unistd.h>

#include <algorithm>
#include <exception>
#include <new>
#include <string>
#include <vector>

#include "ascend_fuse_version.h"
#include "fmt/format.h"
#include "fmt/ranges.h"
#include "ir/onnx/output_file.h"
#include "tools/command_documents.h"
#include "tools/commands/command.h"
#include "tools/commit.h"

namespace ascend_fuse {
namespace {

// The sentence about a first word that is not a command; "" where it is one.
std::string OtherCommands(const CLI::App& app, int argc, char** argv) {
  std::vector<std::string> commands;
  for (const CLI::App* command : app.get_subcommands({})) commands.push_back(command->get_name());
  if (argc < 2 || argv[1][0] == '-' || std::find(commands.begin(), commands.end(), argv[1]) != commands.end()) return "";
  return fmt::format("{} is not a command; there are {}", argv[1], fmt::join(commands, ", "));
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

int Main(int argc, char** argv) {
  CLI::App app("Exported ONNX in, the same model with Ascend NPU nodes out, and a report.", "ascend-fuse");
  const std::string commit = *kCommit == '\0' ? "" : fmt::format(" ({})", kCommit);
  app.set_version_flag("--version", "ascend-fuse " ASCEND_FUSE_VERSION + commit);
  app.require_subcommand(1);
  Commands commands(&app);
  AddOptimize(&commands);
  AddList(&commands);
  AddAnalyze(&commands);
  AddCheck(&commands);
  AddExpand(&commands);
  AddVerify(&commands);
  AddPrecision(&commands);
  AddDiff(&commands);
  AddReduce(&commands);
  AddPrint(&commands);
  AddRules(&commands);
  AddTargets(&commands);
  AddPlugin(&commands);
  AddExplain(&commands);
  AddDocuments(&commands);
  if (const std::string there = OtherCommands(app, argc, argv); !there.empty()) return Fail(there, kUsage);
  try {
    app.parse(Words(argc, argv));
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? kDone : kUsage;
  }
  return commands.Run();
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
