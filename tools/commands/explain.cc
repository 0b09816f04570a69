// explain: what a code of a report means, or why a rule matches at a node.
#include <unistd.h>

#include <string>

#include "fmt/format.h"
#include "fmt/ranges.h"
#include "ir/onnx/load.h"
#include "passes/explain_match.h"
#include "patterns/codes.h"
#include "tools/commands/flags.h"

namespace ascend_fuse {
namespace {

struct ExplainFlags {
  OptionFlags options;
  std::string code;       // or a model, with --rule
  std::string rule;       // the rule that is looked at
  std::string at;         // the node
  bool markdown = false;  // docs/codes.md instead
};

// explain MODEL --rule R --at NODE
int RunExplainMatch(ExplainFlags* flags) {
  if (flags->rule.empty() || flags->at.empty() || flags->code.empty()) {
    return Fail("explain takes a code of a report, or MODEL --rule NAME --at NODE", kUsage);
  }
  if (const int code = flags->options.SetAndLoad(); code != kDone) return code;
  const auto model = LoadModel(flags->code);
  if (!model.ok()) return Fail(model.status());
  const auto text = ExplainMatch(model->get(), flags->options.options, flags->rule, flags->at);
  return text.ok() ? Done(WriteText("-", *text)) : Fail(text.status());
}

int Run(ExplainFlags* flags) {
  if (!flags->rule.empty() || !flags->at.empty()) return RunExplainMatch(flags);
  if (flags->code.empty()) return Done(WriteText("-", flags->markdown ? CodesDocument() : ListCodes()));
  const Code* code = FindCode(flags->code);
  if (code != nullptr) return Done(WriteText("-", DescribeCode(*code)));
  if (access(flags->code.c_str(), F_OK) == 0) return RunExplainMatch(flags);  // a model: it says what is missing
  const auto near = NearestCodes(flags->code);
  if (!near.empty()) {
    return Fail(fmt::format("{} is not a code of a report; did you mean {}?", flags->code, fmt::join(near, " or ")), kUsage);
  }
  Fail(fmt::format("{} is not a code of a report", flags->code));
  fmt::print(stderr, "\n{}", ListCodes());
  return kUsage;
}

}  // namespace

void AddExplain(Commands* commands) {
  auto* flags = commands->New<ExplainFlags>();
  CLI::App* explain = commands->app()->add_subcommand(
      "explain", "explain a code of a report and what can be done about it; or why a rule matches at a node, or does not");
  explain->add_option("code", flags->code,
                      "as the report gives it (mask-per-head); default: all, with their titles; "
                      "with --rule a model");
  explain->add_option("--rule", flags->rule, "a rule: the match step by step, what each part of it met and where it ended")
      ->type_name("NAME");
  explain->add_option("--at", flags->at, "a node of the model, or a value that it computes")->type_name("NODE");
  explain->add_flag("--markdown", flags->markdown, "all codes with their explanations, as docs/codes.md has them");
  AddTargetFlags(explain, &flags->options);
  AddDimFlag(explain, &flags->options);
  commands->Add(explain, [flags] { return Run(flags); });
}

}  // namespace ascend_fuse
