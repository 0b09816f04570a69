// analyze: what a model is, what will be slow and why, what is left, and what to do next.
#include <string>

#include "passes/analyze/page.h"
#include "passes/analyze_model.h"
#include "tools/commands/flags.h"

namespace ascend_fuse {
namespace {

struct AnalyzeFlags {
  OptionFlags options;
  std::string input;
  std::string json;
  std::string report;
  std::string operators_csv;
  std::string sites_csv;
  bool verbose = false;
  bool quiet = false;
};

int Write(const AnalyzeFlags& flags, const Analysis& analysis) {
  const bool says =
      !flags.quiet && flags.json != "-" && flags.report != "-" && flags.operators_csv != "-" && flags.sites_csv != "-";
  if (!flags.json.empty()) {
    if (const auto status = WriteText(flags.json, AnalysisToJson(analysis)); !status.ok()) return Fail(status);
  }
  if (!flags.report.empty()) {
    const bool html = IsPage(flags.report), json = EndsWith(flags.report, ".json");
    const std::string text = html   ? AnalysisToHtml(analysis)
                             : json ? AnalysisToJson(analysis)
                                    : AnalysisToText(analysis, {.verbose = flags.verbose});
    if (const auto status = WriteText(flags.report, text); !status.ok()) return Fail(status);
  }
  if (!flags.operators_csv.empty()) {
    if (const auto status = WriteText(flags.operators_csv, OperatorsToCsv(analysis)); !status.ok()) return Fail(status);
  }
  if (!flags.sites_csv.empty()) {
    if (const auto status = WriteText(flags.sites_csv, SitesToCsv(analysis)); !status.ok()) return Fail(status);
  }
  return says ? Done(WriteText("-", AnalysisToText(analysis, {.verbose = flags.verbose}))) : kDone;
}

int Run(AnalyzeFlags* flags) {
  if (const int code = flags->options.SetAndLoad(); code != kDone) return code;
  const auto model = flags->options.LoadTelling(flags->input, flags->quiet);
  if (!model.ok()) return Fail(model.status());
  flags->options.TellProgress(flags->quiet);
  auto analysis = AnalyzeModel(model->get(), flags->options.options);
  flags->options.EndProgress();
  if (!analysis.ok()) return Fail(analysis.status());
  return Write(*flags, *analysis);
}

}  // namespace

void AddAnalyze(Commands* commands) {
  auto* flags = commands->New<AnalyzeFlags>();
  CLI::App* command = commands->app()->add_subcommand(
      "analyze", "say what is slow, what is left and why, what the model needs, and what to do next; changes nothing");
  command->add_option("model", flags->input, "an ONNX model")->required();
  AddTargetFlags(command, &flags->options);
  AddDimFlag(command, &flags->options);
  AddFixFlag(command, &flags->options);
  AddAssumeFlag(command, &flags->options);
  AddProgressFlag(command, &flags->options.progress);
  command->add_option("--json", flags->json, "write the analysis as JSON; - is stdout")->type_name("FILE");
  command
      ->add_option("--report", flags->report,
                   "write the analysis as a page for a browser if the name ends in .html, as JSON if in .json, or else as text")
      ->type_name("FILE");
  command->add_option("--operators-csv", flags->operators_csv, "write a table of operators; - is stdout")->type_name("FILE");
  command->add_option("--sites-csv", flags->sites_csv, "write a table of sites; - is stdout")->type_name("FILE");
  command->add_flag("--verbose", flags->verbose, "all rows, with reasons and sources");
  command->add_flag("--quiet", flags->quiet, "print errors only");
  commands->Add(command, [flags] { return Run(flags); });
}

}  // namespace ascend_fuse
