// print and diff: a model as text, and what differs between two.
#include <string>

#include "ir/onnx/load.h"
#include "ir/text/printer.h"
#include "passes/report/diff.h"
#include "tools/commands/command.h"

namespace ascend_fuse {
namespace {

struct PrintFlags {
  std::string input;
  std::string output = "-";
  PrintOptions options;
};

struct DiffFlags {
  std::string before;
  std::string after;
};

int RunPrint(const PrintFlags& flags) {
  const auto model = LoadModel(flags.input);
  if (!model.ok()) return Fail(model.status());
  return Done(WriteText(flags.output.empty() ? "-" : flags.output, PrintModelText(**model, flags.options)));
}

int RunDiff(const DiffFlags& flags) {
  const auto before = LoadModel(flags.before);
  if (!before.ok()) return Fail(before.status());
  const auto after = LoadModel(flags.after);
  if (!after.ok()) return Fail(after.status());
  return Done(WriteText("-", DiffToText(Diff(**before, **after))));
}

}  // namespace

void AddPrint(Commands* commands) {
  auto* flags = commands->New<PrintFlags>();
  flags->options.max_elements = 16;
  CLI::App* print = commands->app()->add_subcommand("print", "print the model as ONNX text");
  print->add_option("model", flags->input, "an ONNX model")->required();
  print->add_option("-o,--output", flags->output, "default: stdout")->type_name("FILE");
  print->add_option("--max-elements", flags->options.max_elements, "longer constants are elided; -1: never")
      ->capture_default_str();
  commands->Add(print, [flags] { return RunPrint(*flags); });
}

void AddDiff(Commands* commands) {
  auto* flags = commands->New<DiffFlags>();
  CLI::App* diff = commands->app()->add_subcommand("diff", "show what differs between two models, place by place");
  diff->add_option("before", flags->before, "an ONNX model")->required();
  diff->add_option("after", flags->after, "another version of it")->required();
  commands->Add(diff, [flags] { return RunDiff(*flags); });
}

}  // namespace ascend_fuse
