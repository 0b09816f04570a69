// expand: NPU nodes become standard ONNX again.
#include <optional>
#include <string>

#include "passes/optimize.h"
#include "tools/commands/flags.h"

namespace ascend_fuse {
namespace {

struct ExpandFlags {
  OptionFlags options;
  ModelFlags model;
  ReportFlags report;
  bool as_atc = false;
};

int Run(ExpandFlags* flags) {
  if (const int code = flags->options.Set(); code != kDone) return code;
  const auto model = flags->options.LoadTelling(flags->model.input, flags->report.quiet);
  if (!model.ok()) return Fail(model.status());
  const OptimizeOptions& given = flags->options.options;
  flags->options.TellProgress(flags->report.quiet);
  ExpandOptions options = {given.rule_files, given.infer, std::nullopt, given.progress};
  if (flags->as_atc) options.as_atc = given.target;
  const auto status = Expand(model->get(), options);
  options.progress = nullptr;
  flags->options.EndProgress();
  if (absl::IsUnavailable(status)) return Fail(status, kNotMet);
  if (!status.ok()) return Fail(status);
  const std::string output = flags->model.output.empty() ? Beside(flags->model.input, "expanded") : flags->model.output;
  if (const auto saved = flags->model.Save(**model, output, flags->options.progress); !saved.ok()) return Fail(saved);
  flags->model.SayWritten(output, flags->report);
  return kDone;
}

}  // namespace

void AddExpand(Commands* commands) {
  auto* flags = commands->New<ExpandFlags>();
  CLI::App* expand = commands->app()->add_subcommand("expand", "turn NPU nodes back into standard ONNX");
  expand->add_option("model", flags->model.input, "an optimized model")->required();
  AddWeightFlags(expand, &flags->model);
  expand->add_option("-o,--output", flags->model.output, "default: <model>.expanded.onnx beside it")->type_name("FILE");
  expand->add_option("--rules", flags->options.rule_paths, "rule file with reference rules of your own nodes; may be repeated")
      ->type_name("FILE")
      ->allow_extra_args(false);
  AddDimFlag(expand, &flags->options);
  expand->add_flag("--as-atc", flags->as_atc,
                   "take standard operators as ATC of --target and --cann reads them, not as ONNX defines them; exit code 3 "
                   "if it refuses the model");
  AddAtcFlags(expand, &flags->options.options.target);
  AddPrecisionFlag(expand, &flags->options.options.target);
  AddProgressFlag(expand, &flags->options.progress);
  expand->add_flag("--quiet", flags->report.quiet, "print errors only");
  commands->Add(expand, [flags] { return Run(flags); });
}

}  // namespace ascend_fuse
