#include "passes/optimize.h"

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "fmt/format.h"
#include "fmt/ranges.h"
#include "ir/onnx/save.h"
#include "passes/check.h"
#include "passes/pipeline.h"
#include "patterns/language/rule_set.h"

namespace ascend_fuse {
namespace {

PipelineOptions PipelineOptionsOf(const OptimizeOptions& options) {
  PipelineOptions pipeline;
  pipeline.rule_files = options.rule_files;
  pipeline.skip = options.skip;
  pipeline.limit = options.limit;
  pipeline.strict = options.strict;
  pipeline.infer = options.infer;
  return pipeline;
}

std::string StateName(SiteState state) {
  switch (state) {
    case SiteState::kFused:
      return "fused";
    case SiteState::kByGe:
      return "by_ge";
    default:
      return "left";
  }
}

// Sites in the order in which the model computes them.
std::vector<ReportSite> SitesOf(const std::vector<PipelineSite>& sites) {
  std::vector<const PipelineSite*> sorted;
  for (const PipelineSite& site : sites) sorted.push_back(&site);
  std::stable_sort(sorted.begin(), sorted.end(), [](const PipelineSite* a, const PipelineSite* b) {
    return a->order != b->order ? a->order < b->order : a->kind < b->kind;
  });
  std::vector<ReportSite> result;
  for (const PipelineSite* site : sorted) {
    ReportSite row;
    row.kind = site->kind;
    row.state = StateName(site->state);
    row.module = site->module;
    row.rule = site->rule;
    row.node = site->lowered_to;
    row.covers = site->covers;
    row.precision = site->precision;
    row.mask = site->mask;
    row.assumptions = site->assumptions;
    row.because = site->because;
    row.source = site->source;
    row.name = site->root;
    row.outputs.emplace_back(ValueName(*site->value));
    for (const Value* other : site->others) row.outputs.emplace_back(ValueName(*other));
    if (site->pair >= 0) row.pair = std::string(ValueName(*sites[static_cast<size_t>(site->pair)].value));
    result.push_back(std::move(row));
  }
  return result;
}

void AddWarnings(const std::vector<Warning>& warnings, Report* report) {
  for (const Warning& warning : warnings) report->warnings.push_back(warning.sentence);
}

void FillReport(Pipeline* pipeline, const Target& target, const std::string& style, const Model& model,
                Report* report) {
  report->target.chip = target.chip();
  report->target.cann = target.cann();
  report->target.precision_mode = target.options().precision_mode;
  report->target.style = style;
  report->target.opset = model.OpsetVersion();
  report->target.plugin = target.options().plugin;
  report->sites = SitesOf(pipeline->sites());
  for (const PipelineNearMiss& miss : pipeline->near_misses()) {
    ReportNearMiss row;
    row.rule = miss.failure.rule->name;
    row.at = miss.anchor;
    row.module = miss.module;
    row.matched_nodes = static_cast<int64_t>(miss.failure.covered.size());
    row.stopped_by = miss.failure.node != nullptr ? std::string(NodeName(*miss.failure.node)) : "";
    row.expected = miss.failure.expected;
    row.found = miss.failure.found;
    row.source_position = miss.failure.position.ToString();
    report->near_misses.push_back(std::move(row));
  }
  for (const PassRun& run : pipeline->runs()) {
    report->passes.push_back({run.name, run.milliseconds, static_cast<int64_t>(run.changes)});
  }
  for (const Contradiction& contradiction : pipeline->facts().contradictions()) {
    report->contradictions.push_back(
        {contradiction.value, contradiction.declared, contradiction.computed, contradiction.where});
  }
  for (const std::string& warning : target.warnings()) report->warnings.push_back(warning);
  if (!pipeline->standardized().empty()) {
    std::vector<std::string> words;
    for (const auto& [op, count] : pipeline->standardized()) words.push_back(fmt::format("{} {}", count, op));
    report->warnings.push_back(
        fmt::format("ATC reads none of these operators; written in standard operators: {}", fmt::join(words, ", ")));
  }
  AddWarnings(CheckPlugin(model, target), report);
  AddWarnings(CheckCalls(model, pipeline->calls_kept(), pipeline->inliner().left()), report);
  AddWarnings(CheckOpset(model, target), report);
  report->model = model.path();
  report->nodes_before = pipeline->nodes_before();
  report->nodes_after = pipeline->CountNodes();
  report->Summarize();
}

// --dump: the model as it is now, numbered in the order of the passes.
absl::Status Dump(const Model& model, const std::string& folder, int number, std::string_view pass) {
  if (folder.empty()) return absl::OkStatus();
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) return absl::UnavailableError(fmt::format("--dump {}: {}", folder, error.message()));
  return SaveModel(model, fmt::format("{}/{}-{}.onnx", folder, number, pass));
}

}  // namespace

absl::StatusOr<Report> Optimize(Model* model, const OptimizeOptions& options) {
  auto target = Target::Load(options.target);
  if (!target.ok()) return target.status();
  auto pipeline = Pipeline::Create(model, PipelineOptionsOf(options));
  if (!pipeline.ok()) return pipeline.status();
  if (absl::Status status = (*pipeline)->Recognise(); !status.ok()) return status;
  if (absl::Status status = Dump(*model, options.dump_directory, 1, "recognise"); !status.ok()) return status;
  if (absl::Status status = (*pipeline)->Lower(*target); !status.ok()) return status;
  if (absl::Status status = Dump(*model, options.dump_directory, 2, "lower"); !status.ok()) return status;
  auto style = (*pipeline)->Adapt(*target);
  if (!style.ok()) return style.status();
  if (absl::Status status = Dump(*model, options.dump_directory, 3, "adapt"); !status.ok()) return status;
  (*pipeline)->Restore();
  if (absl::Status status = (*pipeline)->StandardizeRest(); !status.ok()) return status;
  (*pipeline)->DropImport();
  (*pipeline)->KeepCalls();
  (*pipeline)->Sweep();
  if (absl::Status status = Dump(*model, options.dump_directory, 4, "restore"); !status.ok()) return status;
  if (absl::Status status = (*pipeline)->Verify("sweep"); !status.ok()) return status;
  Report report;
  FillReport(pipeline->get(), *target, *style, *model, &report);
  AddWarnings(CheckDims(*model, options.infer), &report);
  AddWarnings(CheckForms(*model, *target), &report);
  return report;
}

absl::StatusOr<Report> ListOpportunities(Model* model, const OptimizeOptions& options) {
  auto target = Target::Load(options.target);
  if (!target.ok()) return target.status();
  auto pipeline = Pipeline::Create(model, PipelineOptionsOf(options));
  if (!pipeline.ok()) return pipeline.status();
  if (absl::Status status = (*pipeline)->Recognise(); !status.ok()) return status;
  if (absl::Status status = (*pipeline)->Lower(*target); !status.ok()) return status;
  // What would be left: recognised operators that no node took do not count.
  (*pipeline)->Restore();
  if (absl::Status status = (*pipeline)->StandardizeRest(); !status.ok()) return status;
  (*pipeline)->KeepCalls();
  auto style = (*pipeline)->ChooseStyle(*target);
  if (!style.ok()) return style.status();
  Report report;
  FillReport(pipeline->get(), *target, *style, *model, &report);
  AddWarnings(CheckDims(*model, options.infer), &report);
  AddWarnings(CheckForms(*model, *target), &report);
  (*pipeline)->UndoAll();
  return report;
}

absl::Status Expand(Model* model, const std::vector<std::pair<std::string, std::string>>& rule_files) {
  PipelineOptions options;
  options.rule_files = rule_files;
  auto pipeline = Pipeline::Create(model, options);
  if (!pipeline.ok()) return pipeline.status();
  return (*pipeline)->Expand();
}

absl::StatusOr<std::string> DescribeRules(const OptimizeOptions& options) {
  std::string text;
  static constexpr std::pair<RuleFolder, std::string_view> kFolders[] = {
      {RuleFolder::kContrib, "Standardize: operators of ONNX Runtime to standard operators"},
      {RuleFolder::kLibrary, "Recognise: subgraphs to standard operators"},
      {RuleFolder::kNpu, "Lower: standard operators to NPU nodes"},
      {RuleFolder::kLeftovers, "Rest: operators of ONNX Runtime that no node was made of"},
      {RuleFolder::kReference, "Expand: NPU nodes to standard operators"}};
  for (const auto& [folder, title] : kFolders) {
    auto rules = RuleSet::Load(folder, options.rule_files);
    if (!rules.ok()) return rules.status();
    text += fmt::format("{}\n", title);
    for (const Rule& rule : (*rules)->rules()) {
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
