#include "tools/exit_codes.h"

#include <charconv>

#include "fmt/format.h"

namespace ascend_fuse {
namespace {

// Of a process that a signal ended, as shells tell it.
std::string OfSignal(std::string_view number) {
  int code = 0;
  const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), code);
  if (error != std::errc() || end != number.data() + number.size() || code <= 128 || code > 128 + 64) return "";
  const int signal = code - 128;
  const std::string_view why = signal == 2    ? " (Control-C)"
                               : signal == 9  ? " (killed: most often there was not enough memory)"
                               : signal == 11 ? " (a fault of the program: please report it, with the model if you can)"
                               : signal == 15 ? " (terminated)"
                                              : "";
  return fmt::format("{}  the process was ended by signal {}{}; no half-written file is left under the name of an output\n", code,
                     signal, why);
}

}  // namespace

const std::vector<ExitCode>& ExitCodes() {
  static const auto* const kCodes = new std::vector<ExitCode>{
      {kDone, "done", "Nothing. optimize wrote the model also where sites are left; --require makes that another exit code."},
      {kFailed, "an error: a file, a model, a rule",
       "Read the last line on stderr: it names the file and what to change. verify, precision and reduce end with it too if "
       "Python or "
       "one of its packages is missing: ascend-fuse doctor says what is there."},
      {kUsage, "wrong usage",
       "Correct the flag or the key of ascend-fuse.toml that stderr names; ascend-fuse COMMAND --help lists the flags. Nothing "
       "was "
       "written."},
      {kNotMet, "what was asked for is not met: --require, verify, precision, report diff",
       "--require: the report says why each site is left, and ascend-fuse explain CODE what can be done; nothing was written. "
       "verify: "
       "an output differs, and the first rewritten place that differs is named. precision: float16 is wrong, and no list makes "
       "it "
       "right. expand and verify with --as-atc: that ATC rejects the model. report diff: something got worse."},
      {kFound, "ATC rejects or misreads the model",
       "check lists what and where, and ascend-fuse explain CODE the way out. optimize wrote nothing; --force writes the model "
       "all "
       "the same, to look at it."},
  };
  return *kCodes;
}

std::string ExplainExit(std::string_view number) {
  std::string text;
  for (const ExitCode& row : ExitCodes()) {
    if (number.empty() || number == fmt::format("{}", row.code))
      text += fmt::format("{}  {}\n   {}\n", row.code, row.meaning, row.what_to_do);
  }
  return text.empty() ? OfSignal(number) : text;
}

}  // namespace ascend_fuse
