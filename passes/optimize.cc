// The four entry points: a workspace, the list of passes, and the report of what they did.
#include "passes/optimize.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "fmt/format.h"
#include "fmt/ranges.h"
#include "ir/memory.h"
#include "ir/status_macros.h"
#include "passes/check/check.h"
#include "passes/core/pass.h"
#include "passes/core/passes.h"
#include "passes/core/run_until_known.h"
#include "passes/core/workspace.h"
#include "passes/expand/passes.h"
#include "passes/optimize_passes.h"
#include "passes/report/build_report.h"
#include "passes/tidy/passes.h"

namespace ascend_fuse {
namespace {

WorkspaceOptions WorkspaceOptionsOf(const OptimizeOptions& options) {
  return {options.rule_files, options.skip,   options.prefer, options.keep_rest,   options.tidy, options.quantised,
          options.limit,      options.strict, options.infer,  options.assumptions, options.fix};
}

// A name that no input has cannot be written.
absl::Status CheckFixes(const Model& model, const OptimizeOptions& options) {
  if (options.fix.empty()) return absl::OkStatus();
  const InputSymbols symbols(model);
  for (const std::string& name : options.fix) {
    const auto& dims = options.infer.dims;
    const auto bound = std::find_if(dims.begin(), dims.end(), [&](const auto& dim) { return dim.first == name; });
    if (bound == dims.end() || bound->second.low != bound->second.high) {
      return absl::InvalidArgumentError(fmt::format("--fix {} needs one number", name));
    }
    if (const std::string why = symbols.WhyNone("--fix", name); !why.empty()) return absl::InvalidArgumentError(why);
  }
  return absl::OkStatus();
}

// A word that chooses nothing is most likely misspelt.
absl::Status CheckTidy(const OptimizeOptions& options) {
  const std::vector<std::string_view> words = TidyWords();
  for (const std::string& word : options.tidy) {
    if (std::find(words.begin(), words.end(), word) != words.end()) continue;
    return absl::InvalidArgumentError(fmt::format("--tidy {}: there are {}", word, fmt::join(words, ", ")));
  }
  return absl::OkStatus();
}

absl::StatusOr<Report> Run(Model* model, const OptimizeOptions& options, bool dry) {
  RETURN_IF_ERROR(CheckFixes(*model, options));
  RETURN_IF_ERROR(CheckTidy(options));
  ASSIGN_OR_RETURN(const auto target, TargetOf(options));
  ASSIGN_OR_RETURN(const auto passes, WithPasses(OptimizePasses(), options.passes));
  RunOptions run;
  run.dry = dry;
  run.dump_directory = dry ? "" : options.dump_directory;
  run.progress = options.progress;
  const auto first_final = std::find_if(passes.begin(), passes.end(), [](const Pass& pass) { return pass.final; });
  run.end = static_cast<size_t>(first_final - passes.begin());
  // Without memory as well, what a dry run did is taken back.
  std::unique_ptr<Workspace> workspace;
  const absl::Status status = WithinMemory([&]() -> absl::Status {
    RETURN_IF_ERROR(RunUntilKnown(model, *target, passes, WorkspaceOptionsOf(options), run, &workspace));
    run.begin = std::exchange(run.end, passes.size());
    return RunPasses(passes, *workspace, run);
  });
  Report report;
  if (status.ok()) report = BuildReport(*workspace);
  if (dry && workspace != nullptr) workspace->TakeEverythingBack();
  if (!status.ok()) return status;
  return report;
}

absl::Status RunExpand(Model* model, const ExpandOptions& options) {
  std::shared_ptr<const Target> target;
  if (options.as_atc.has_value()) {
    ASSIGN_OR_RETURN(target, Target::Shared(*options.as_atc));
  }
  WorkspaceOptions of_workspace;
  of_workspace.rule_files = options.rule_files;
  of_workspace.infer = options.infer;
  ASSIGN_OR_RETURN(const auto workspace, Workspace::Create(model, target.get(), of_workspace));
  RunOptions run;
  run.progress = options.progress;
  return RunPasses({{"inline", "", "", Inline}, {"expand", "", "", ExpandNodes}, {"sweep", "", "", Sweep, true}}, *workspace,
                   run);
}

}  // namespace

absl::StatusOr<Report> Optimize(Model* model, const OptimizeOptions& options) {
  return WithinMemory([&] { return Run(model, options, false); });
}

absl::StatusOr<Report> ListOpportunities(Model* model, const OptimizeOptions& options) {
  return WithinMemory([&] { return Run(model, options, true); });
}

absl::Status Expand(Model* model, const ExpandOptions& options) {
  return WithinMemory([&] { return RunExpand(model, options); });
}

absl::StatusOr<std::shared_ptr<const Target>> TargetOf(const OptimizeOptions& options) {
  if (options.loaded_target != nullptr) return options.loaded_target;
  return Target::Shared(options.target);
}

absl::StatusOr<std::string> DescribeRules(const OptimizeOptions& options) {
  std::string text;
  static constexpr std::pair<RuleFolder, std::string_view> kFolders[] = {
      {RuleFolder::kContrib, "Decompose: operators of ONNX Runtime to standard operators, before anything is recognised"},
      {RuleFolder::kLibrary, "Recognise: subgraphs to standard operators"},
      {RuleFolder::kNpu, "Lower: standard operators to NPU nodes"},
      {RuleFolder::kLeftovers, "Decompose: operators of ONNX Runtime that no node was made of"},
      {RuleFolder::kAdapt, "Adapt: forms that ATC refuses or misreads, in forms that it reads"},
      {RuleFolder::kMisread, "Misread: what ATC makes of a form, for --as-atc only"},
      {RuleFolder::kReference, "Expand: NPU nodes to standard operators"}};
  ASSIGN_OR_RETURN(const UserRules user, UserRules::Parse(options.rule_files));
  for (const auto& [folder, title] : kFolders) {
    ASSIGN_OR_RETURN(auto rules, RuleSet::Load(folder, user));
    text += fmt::format("{}\n", title);
    for (const Rule& rule : rules->rules()) {
      const std::string kind =
          folder != RuleFolder::kLibrary && folder != RuleFolder::kNpu ? std::string() : fmt::format(" ({})", rule.kind);
      text += fmt::format("  {}{}  {}:{}\n", rule.name, kind, rule.position.file, rule.position.line);
      // The first paragraph of the comment.
      std::string_view doc(rule.doc);
      doc = doc.substr(0, doc.find("\n\n"));
      while (!doc.empty()) {
        text += fmt::format("      {}\n", doc.substr(0, doc.find('\n')));
        doc = doc.find('\n') == std::string_view::npos ? std::string_view() : doc.substr(doc.find('\n') + 1);
      }
    }
    text += "\n";
  }
  return text;
}

}  // namespace ascend_fuse
