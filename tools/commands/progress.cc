#include "tools/commands/progress.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "fmt/format.h"

namespace ascend_fuse {
namespace {

constexpr int kBarWidth = 24;
constexpr double kBarInterval = 0.1;     // seconds
constexpr double kLongestInterval = 30;  // of lines: a log of an hour stays short

}  // namespace

ProgressLine::ProgressLine(std::string_view how) {
  const bool terminal = isatty(STDERR_FILENO) == 1;
  bar_ = how == "bar" || (how == "auto" && terminal);
  lines_ = how == "lines" || (how == "auto" && !terminal);
}

ProgressLine::~ProgressLine() {
  if (!drawn_) return;
  fmt::print(stderr, "\r\x1b[K");
  fflush(stderr);
}

void ProgressLine::Tell(std::string_view what, double share) {
  if (!bar_ && !lines_) return;
  const double seconds = std::chrono::duration<double>(Clock::now() - start_).count();
  if (seconds < next_) return;
  share = std::clamp(share, 0.0, 1.0);
  if (bar_) {
    DrawBar(what, share, seconds);
    next_ = seconds + kBarInterval;
    return;
  }
  fmt::print(stderr, "ascend-fuse: {}, {:.0f} %, {:.0f} s\n", what, share * 100, seconds);
  interval_ = std::min(interval_ * 2, kLongestInterval);
  next_ = seconds + interval_;
}

void ProgressLine::DrawBar(std::string_view what, double share, double seconds) {
  const auto full = static_cast<size_t>(share * kBarWidth);
  fmt::print(stderr, "\r\x1b[K[{}{}] {:3.0f} %  {}  {:.0f} s", std::string(full, '='), std::string(kBarWidth - full, ' '),
             share * 100, what, seconds);
  fflush(stderr);
  drawn_ = true;
}

void AddProgressFlag(CLI::App* command, std::string* how) {
  command->add_option("--progress", *how, std::string(kProgressMeaning))
      ->type_name("auto|bar|lines|none")
      ->check(CLI::IsMember({"auto", "bar", "lines", "none"}));
}

}  // namespace ascend_fuse
