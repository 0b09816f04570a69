// check: what ATC makes of any ONNX file.
#include <algorithm>

#include "passes/check/atc_check.h"
#include "passes/check/check.h"
#include "passes/check_model.h"
#include "tools/commands/flags.h"

namespace ascend_fuse {
namespace {

struct CheckFlags {
  OptionFlags options;
  ReportFlags report;
  std::string input;
};

int Run(CheckFlags* flags) {
  if (const int code = flags->options.SetAndLoad(); code != kDone) return code;
  const auto model = flags->options.LoadTelling(flags->input, flags->report.quiet);
  if (!model.ok()) return Fail(model.status());
  flags->options.TellProgress(flags->report.quiet);
  auto report = CheckModel(model->get(), flags->options.options);
  flags->options.EndProgress();
  if (!report.ok()) return Fail(report.status());
  report->model = flags->input;
  if (const int code = flags->report.Write(*report, {.changed = false, .of_check = true}); code != kDone) return code;
  const auto& findings = report->findings;
  return std::any_of(findings.begin(), findings.end(), IsFatal) ? kFound : kDone;
}

}  // namespace

void AddCheck(Commands* commands) {
  auto* flags = commands->New<CheckFlags>();
  CLI::App* check = commands->app()->add_subcommand(
      "check", "find what ATC rejects, misreads or runs slowly in any ONNX file; exit code 4: it rejects or misreads");
  check->add_option("model", flags->input, "an ONNX model, optimized or not")->required();
  AddTargetFlags(check, &flags->options);
  AddDimFlag(check, &flags->options);
  AddFixFlag(check, &flags->options);
  AddReportFlags(check, &flags->report);
  AddProgressFlag(check, &flags->options.progress);
  check->add_flag("--verbose", flags->report.verbose, "name every node");
  check->add_flag("--quiet", flags->report.quiet, "print errors only");
  commands->Add(check, [flags] { return Run(flags); });
}

}  // namespace ascend_fuse
