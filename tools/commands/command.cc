#include "tools/commands/command.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>

#include "fmt/format.h"
#include "ir/onnx/whole_file.h"
#include "ir/text/visible.h"

namespace ascend_fuse {

int Commands::Run() const {
  for (const auto& [command, run] : commands_) {
    if (command->parsed()) return run();
  }
  return kUsage;
}

namespace {

thread_local About* about = nullptr;  // the model that this thread works on, where there are several

}  // namespace

About::About(std::string model) : model_(std::move(model)) { about = this; }
About::~About() { about = nullptr; }

int Fail(std::string_view message, int code) {
  if (about == nullptr) {
    fmt::print(stderr, "ascend-fuse: {}\n", Shown(message));
    return code;
  }
  about->sentences_.emplace_back(message);
  const bool names_it = message.find(about->model_) != std::string_view::npos;
  fmt::print(stderr, "ascend-fuse: {}\n", Shown(names_it ? std::string(message) : fmt::format("{}: {}", about->model_, message)));
  return code;
}

int Fail(const absl::Status& status, int code) { return Fail(std::string(status.message()), code); }
int FailOption(const absl::Status& status) { return Fail(status, absl::IsInvalidArgument(status) ? kUsage : kFailed); }
int Done(const absl::Status& status) { return status.ok() ? kDone : Fail(status); }

absl::Status WriteText(const std::string& path, const std::string& given) {
  if (path != "-") return WriteWholeFile(path, given);
  // A terminal obeys what it is shown; a program that reads is given the bytes.
  const std::string& text = isatty(STDOUT_FILENO) == 1 ? Visible(given, true) : given;
  const bool written = fwrite(text.data(), 1, text.size(), stdout) == text.size() && fflush(stdout) == 0;
  return written ? absl::OkStatus() : absl::UnavailableError("stdout cannot be written");
}

absl::Status MakeFolder(const std::string& path) {
  if (mkdir(path.c_str(), 0777) == 0 || errno == EEXIST) return absl::OkStatus();
  return absl::UnavailableError(fmt::format("{} cannot be made: {}", path, strerror(errno)));
}

bool EndsWith(std::string_view text, std::string_view end) {
  return text.size() >= end.size() && text.substr(text.size() - end.size()) == end;
}

}  // namespace ascend_fuse
