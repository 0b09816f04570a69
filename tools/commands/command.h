// What every command of the program is made of: its flags in CLI11, what it does, and how it ends.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/status/status.h"
#include "tools/exit_codes.h"

namespace ascend_fuse {

// The commands of a command line. Each adds itself, with flags of its own.
class Commands {
 public:
  explicit Commands(CLI::App* app) : app_(app) {}

  CLI::App* app() { return app_; }
  // Where the values of a command's flags are; they live as long as the commands.
  template <typename Flags>
  Flags* New() {
    auto flags = std::make_shared<Flags>();
    flags_.push_back(flags);
    return flags.get();
  }
  // What is done when `command` was given. A command inside another one is added before it.
  void Add(const CLI::App* command, std::function<int()> run) { commands_.emplace_back(command, std::move(run)); }
  // Runs the command that was parsed.
  int Run() const;

 private:
  CLI::App* app_;
  std::vector<std::shared_ptr<void>> flags_;
  std::vector<std::pair<const CLI::App*, std::function<int()>>> commands_;
};

void AddOptimize(Commands* commands);
void AddList(Commands* commands);
void AddAnalyze(Commands* commands);
void AddCheck(Commands* commands);
void AddExpand(Commands* commands);
void AddVerify(Commands* commands);
void AddPrecision(Commands* commands);
void AddDiff(Commands* commands);
void AddReport(Commands* commands);
void AddReduce(Commands* commands);
void AddPrint(Commands* commands);
void AddRules(Commands* commands);
void AddTargets(Commands* commands);
void AddPlugin(Commands* commands);
void AddExplain(Commands* commands);
void AddDoctor(Commands* commands);

// While one lives, what fails in this thread is about one of several models: lines on stderr name it, and sentences are kept.
class About {
 public:
  explicit About(std::string model);
  ~About();
  About(const About&) = delete;
  About& operator=(const About&) = delete;

  const std::vector<std::string>& sentences() const { return sentences_; }

 private:
  friend int Fail(std::string_view message, int code);
  const std::string model_;
  std::vector<std::string> sentences_;
};

// One line on stderr. Names out of a file may hold line breaks and terminal control codes: they are written out.
int Fail(std::string_view message, int code = kFailed);
int Fail(const absl::Status& status, int code = kFailed);
// A file that cannot be read is an error, a value that means nothing is wrong usage.
int FailOption(const absl::Status& status);
// kDone, or the status on stderr and kFailed.
int Done(const absl::Status& status);

// To a file, or to stdout where the path is "-".
absl::Status WriteText(const std::string& path, const std::string& given);
// Makes a folder that need not be new.
absl::Status MakeFolder(const std::string& path);
bool EndsWith(std::string_view text, std::string_view end);

}  // namespace ascend_fuse
