// What the exit codes of the program mean: the one table that `--explain-exit`, the man page and docs/command-line.md show.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace ascend_fuse {

constexpr int kDone = 0;
constexpr int kFailed = 1;
constexpr int kUsage = 2;
constexpr int kNotMet = 3;
constexpr int kFound = 4;

struct ExitCode {
  int code;
  std::string_view meaning;  // a clause
  std::string_view what_to_do;
};

const std::vector<ExitCode>& ExitCodes();

// All of them, or the one with this number, as text; "" where the program does not end with that number.
std::string ExplainExit(std::string_view number);

}  // namespace ascend_fuse
