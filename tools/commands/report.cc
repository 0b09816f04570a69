// report diff: what got worse between two reports of one model.
#include <string>

#include "ir/onnx/whole_file.h"
#include "ir/status_macros.h"
#include "ir/text/visible.h"
#include "passes/analyze/compare_reports.h"
#include "tools/commands/command.h"

namespace ascend_fuse {
namespace {

struct ReportDiffFlags {
  std::string before;
  std::string after;
};

absl::StatusOr<ReportChanges> Compare(const ReportDiffFlags& flags) {
  ASSIGN_OR_RETURN(const std::string before, ReadWholeFile(flags.before));
  ASSIGN_OR_RETURN(const std::string after, ReadWholeFile(flags.after));
  return CompareReports(before, after);
}

int RunReportDiff(const ReportDiffFlags& flags) {
  const auto changes = Compare(flags);
  if (!changes.ok()) return Fail(changes.status());
  if (const int code = Done(WriteText("-", Visible(ChangesToText(*changes), true))); code != kDone) return code;
  return changes->worse.empty() ? kDone : kNotMet;
}

}  // namespace

void AddReport(Commands* commands) {
  auto* flags = commands->New<ReportDiffFlags>();
  CLI::App* report = commands->app()->add_subcommand("report", "compare reports");
  report->require_subcommand(1);
  CLI::App* diff =
      report->add_subcommand("diff", "what got worse or better between two reports as JSON; exit code 3: something is worse");
  diff->add_option("before", flags->before, "the JSON of analyze, optimize, list or check that was kept")->required();
  diff->add_option("after", flags->after, "the same of the model, or of the program, as it is now")->required();
  commands->Add(diff, [flags] { return RunReportDiff(*flags); });
}

}  // namespace ascend_fuse
