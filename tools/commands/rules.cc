// rules: the rules in force, a rule to start from, and the test of rules.
#include <unistd.h>

#include <string>
#include <vector>

#include "fmt/format.h"
#include "passes/optimize.h"
#include "passes/optimize_passes.h"
#include "patterns/cost/evidence.h"
#include "patterns/functions/functions.h"
#include "patterns/operators/document.h"
#include "tools/backwards/run.h"
#include "tools/commands/flags.h"
#include "tools/commands/python.h"
#include "tools/rule_files.h"

namespace ascend_fuse {
namespace {

struct RulesFlags {
  OptionFlags options;
  bool operators = false;            // the operators instead
  bool functions = false;            // the functions instead
  bool passes = false;               // the passes instead
  std::vector<std::string> checked;  // files that are looked at instead
};

struct NewRuleFlags {
  std::string name;
  std::string output;
};

struct TestFlags {
  std::vector<std::string> files;
  TargetOptions target;
  backwards::RunOptions options;
  bool graphs = false;  // records for a program
  std::string keep;     // a folder for what shows a fault
};

int RunRules(RulesFlags* flags) {
  if (flags->functions) return Done(WriteText("-", DescribeFunctions()));
  if (flags->operators) return Done(WriteText("-", OperatorsDocument(DescribeSpeed)));
  if (flags->passes) return Done(WriteText("-", DescribePasses(OptimizePasses())));
  OptionFlags& options = flags->options;
  options.rule_paths.insert(options.rule_paths.end(), flags->checked.begin(), flags->checked.end());
  if (const int code = options.SetAndLoad(); code != kDone) return code;
  const auto text = flags->checked.empty() ? DescribeRules(options.options) : CheckRuleFiles(options.options);
  return text.ok() ? Done(WriteText("-", *text)) : Fail(text.status());
}

int RunNewRule(const NewRuleFlags& flags) {
  const auto files = NewRuleFiles(flags.name);
  if (!files.ok()) return Fail(files.status(), kUsage);
  const std::string folder = flags.output.empty() ? "." : flags.output;
  if (const auto status = MakeFolder(folder); !status.ok()) return Fail(status);
  for (const auto& [name, text] : *files) {
    const std::string path = fmt::format("{}/{}", folder, name);
    if (access(path.c_str(), F_OK) == 0) return Fail(fmt::format("{} is there already; nothing was written over it", path));
  }
  for (const auto& [name, text] : *files) {
    const std::string path = fmt::format("{}/{}", folder, name);
    if (const auto status = WriteText(path, text); !status.ok()) return Fail(status);
    fmt::print("wrote {}\n", path);
  }
  return kDone;
}

// The graphs are made here, and compared in Python.
int RunTest(TestFlags* flags) {
  OptionFlags given;
  given.rule_paths = flags->files;
  if (const int code = given.Set(); code != kDone) return code;
  backwards::RunOptions& options = flags->options;
  options.rule_files = given.options.rule_files;
  const auto rules = backwards::RulesOf(options);
  if (!rules.ok()) return Fail(rules.status());
  if (flags->graphs) {
    for (const std::string& rule : *rules) {
      if (const auto status = backwards::RunRule(options, rule); !status.ok()) return Fail(status);
    }
    return kDone;
  }
  std::vector<std::string> command = {"--graphs-command",
                                      "rules",
                                      "test",
                                      "--graphs",
                                      "--count",
                                      fmt::format("{}", options.count),
                                      "--mutants",
                                      fmt::format("{}", options.mutants),
                                      "--seed",
                                      fmt::format("{}", options.seed)};
  if (options.plain) command.push_back("--plain");
  if (options.target.has_value()) {
    command.insert(command.end(), {"--target", options.target->chip, "--cann", options.target->cann});
    if (options.target->plugin) command.push_back("--plugin");
  }
  command.insert(command.end(), flags->files.begin(), flags->files.end());
  std::vector<std::string> arguments = flags->files;
  arguments.insert(arguments.end(), {"--tool", OwnPath()});
  if (!flags->keep.empty()) arguments.insert(arguments.end(), {"--keep", flags->keep});
  return RunPython("rule_test", arguments, command);
}

CLI::App* AddNewRule(CLI::App* rules, NewRuleFlags* flags) {
  CLI::App* make = rules->add_subcommand("new", "write a rule to start from, every part with a comment, and its two goldens");
  make->add_option("name", flags->name, "the rule's name")->required();
  make->add_option("-o,--output", flags->output, "where to; default: here")->type_name("FOLDER");
  return make;
}

CLI::App* AddTest(CLI::App* rules, TestFlags* flags) {
  CLI::App* test = rules->add_subcommand(
      "test", "check the goldens of rule files, and compare the numbers of graphs that are made from the rules backwards");
  test->add_option("files", flags->files, "rule files")->required();
  AddAtcFlags(test, &flags->target);
  test->add_option("--count", flags->options.count, "graphs of each rule")
      ->type_name("N")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  test->add_option("--mutants", flags->options.mutants, "graphs that differ in one place, of each graph")
      ->type_name("N")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  test->add_option("--seed", flags->options.seed, "another seed makes other graphs")->type_name("N")->capture_default_str();
  test->add_flag("--plain", flags->options.plain, "without Identity, Cast and the like between the nodes");
  test->add_option("--keep", flags->keep, "write graphs that show a fault there")->type_name("FOLDER");
  test->add_flag("--graphs", flags->graphs, "the graphs and what came of them as records, for a program; nothing is compared");
  return test;
}

}  // namespace

void AddRules(Commands* commands) {
  auto* flags = commands->New<RulesFlags>();
  CLI::App* rules = commands->app()->add_subcommand("rules", "list the rules in force and where they are written");
  AddTargetFlags(rules, &flags->options);
  rules
      ->add_option("--check", flags->checked,
                   "load these rule files and say what is in them, or the first mistake with its place")
      ->type_name("FILE")
      ->allow_extra_args(false);
  rules->add_flag("--functions", flags->functions, "the functions that rules may call, as a table");
  rules->add_flag("--operators", flags->operators, "the operators that rules may name beside those of ONNX, as Markdown");
  rules->add_flag("--passes", flags->passes, "the passes of optimize in their order, as a table");

  auto* of_new = commands->New<NewRuleFlags>();
  const CLI::App* make = AddNewRule(rules, of_new);
  commands->Add(make, [of_new] { return RunNewRule(*of_new); });

  auto* of_test = commands->New<TestFlags>();
  const CLI::App* test = AddTest(rules, of_test);
  commands->Add(test, [test, of_test] {
    // Without a target all are tried.
    const bool one = test->count("--target") + test->count("--cann") + test->count("--plugin") > 0;
    if (one) of_test->options.target = of_test->target;
    return RunTest(of_test);
  });
  commands->Add(rules, [flags] { return RunRules(flags); });
}

}  // namespace ascend_fuse
