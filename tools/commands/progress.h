// How far a run is, on stderr, of what takes longer than a second: a bar on a terminal, lines in a log.
#pragma once

#include <chrono>
#include <string>
#include <string_view>

#include "CLI/CLI.hpp"

namespace ascend_fuse {

class ProgressLine {
 public:
  // `how`: "bar", "lines", "none", or "auto" for a bar where stderr is a terminal and lines where it is not.
  explicit ProgressLine(std::string_view how);
  ~ProgressLine();  // takes the bar away
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  // What is done now, and what part of that is over, 0 to 1.
  void Tell(std::string_view what, double share);

 private:
  using Clock = std::chrono::steady_clock;
  void DrawBar(std::string_view what, double share, double seconds);

  bool bar_ = false;
  bool lines_ = false;
  const Clock::time_point start_ = Clock::now();
  double next_ = 1;  // seconds after the start when something is said again
  double interval_ = 1;
  bool drawn_ = false;
};

// What --progress means, as the help says it.
inline constexpr std::string_view kProgressMeaning =
    "of what takes over a second, on stderr: a bar, lines, or none; auto (default) is a bar on a terminal and lines elsewhere";

// --progress, which takes these words.
void AddProgressFlag(CLI::App* command, std::string* how);

}  // namespace ascend_fuse
