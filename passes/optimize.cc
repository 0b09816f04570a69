#include "passes/optimize.h"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <map>
#include <set>
#include <system_error>

#include "absl/container/flat_hash_set.h"
#include "fmt/format.h"
#include "fmt/ranges.h"
#include "ir/onnx/save.h"
#include "passes/pipeline.h"
#include "patterns/language/rule_set.h"
#include "patterns/operators/inference.h"

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

// What ATC is known to read wrongly in what was left as it was (atc-op-audit.md W1, W2, R1). Said here until
// these forms are rewritten.
void WarnOfAtc(const Model& model, std::vector<std::string>* warnings) {
  int64_t reduce = 0;
  int64_t shape = 0;
  int64_t split = 0;
  std::map<std::string, int64_t> unparsed;
  static constexpr std::string_view kNoParser[] = {"Gelu",
                                                   "RMSNormalization",
                                                   "SimplifiedLayerNormalization",
                                                   "RotaryEmbedding",
                                                   "Attention",
                                                   "GroupNormalization",
                                                   "Swish",
                                                   "Loop",
                                                   "Scan",
                                                   "QuantizeLinear",
                                                   "DequantizeLinear",
                                                   "ConvInteger",
                                                   "MatMulInteger",
                                                   "DFT",
                                                   "STFT",
                                                   "CenterCropPad",
                                                   "DynamicQuantizeLinear",
                                                   "QLinearMatMul",
                                                   "QLinearConv",
                                                   "RNN",
                                                   "TensorScatter"};
  absl::flat_hash_set<std::pair<NameId, NameId>> functions;
  for (const LocalFunction& function : model.functions()) functions.insert({function.domain, function.name});
  for (const auto& graph : model.graphs()) {
    for (const Node* node : graph->nodes()) {
      if (node->dead || functions.contains({node->domain, node->op_type})) continue;
      if (node->domain == NameId::kEmpty) {
        const std::string_view op = OpType(*node);
        if (op == "ReduceMean" && node->input(1) != nullptr) ++reduce;
        if (op == "Shape" &&
            (IntAttribute(*node, "end").has_value() || IntAttribute(*node, "start").value_or(0) != 0)) {
          ++shape;
        }
        if (op == "Split" && IntAttribute(*node, "num_outputs").has_value()) ++split;
        if (std::find(std::begin(kNoParser), std::end(kNoParser), op) != std::end(kNoParser)) {
          ++unparsed[std::string(op)];
        }
      } else if (Domain(*node) != "npu") {
        ++unparsed[fmt::format("{}.{}", Domain(*node), OpType(*node))];
      }
    }
  }
  if (reduce > 0) {
    warnings->push_back(fmt::format(
        "{} ReduceMean with axes as an input: ATC before 9.2 averages over all axes there without a word "
        "(hicann/ops-math:math/reduce_mean/framework); export at opset 17 or lower",
        reduce));
  }
  if (shape > 0) {
    warnings->push_back(
        fmt::format("{} Shape with start or end: every known ATC ignores both and gives the full shape "
                    "(hicann/ops-math:math/shape/framework)",
                    shape));
  }
  if (split > 0) {
    warnings->push_back(fmt::format(
        "{} Split with num_outputs: ATC refuses it or fails on it; explicit split sizes are read", split));
  }
  for (const auto& [op, count] : unparsed) {
    warnings->push_back(
        fmt::format("{} {}: stock ATC has no parser for it and will refuse the model", count, op));
  }
}

// What the output needs that stock ATC does not have.
void WarnOfPlugin(const Model& model, const Target& target, std::vector<std::string>* warnings) {
  if (!target.options().plugin) return;
  std::map<std::string, int64_t> nodes;
  for (const auto& graph : model.graphs()) {
    for (const Node* node : graph->nodes()) {
      if (node->dead || (Domain(*node) != "npu" && node->domain != NameId::kEmpty)) continue;
      if (target.NeedsPlugin(fmt::format("npu.{}", OpType(*node)))) ++nodes[std::string(OpType(*node))];
    }
  }
  std::vector<std::string> words;
  for (const auto& [op, count] : nodes) words.push_back(fmt::format("{} {}", count, op));
  if (words.empty()) return;
  warnings->push_back(fmt::format(
      "ATC reads these nodes only with our op plugin installed, and refuses the model without it: {} "
      "(docs/targets.md says what the plugin registers)",
      fmt::join(words, ", ")));
}

// ATC has no local functions: its ModelProto has no field for them, so a call is an operator that nobody knows
// (ascend-contract.md 5.3).
void WarnOfCalls(const Pipeline& pipeline, const Model& model, std::vector<std::string>* warnings) {
  if (model.functions().empty()) return;
  if (pipeline.calls_kept() > 0) {
    warnings->push_back(
        fmt::format("nothing was fused, so the model keeps its calls of {} local function(s). ATC knows no functions "
                    "and will refuse them: inline them first (onnx.inliner.inline_local_functions)",
                    model.functions().size()));
  }
  constexpr size_t kMost = 10;
  const std::vector<CallsLeft>& left = pipeline.inliner().left();
  for (size_t i = 0; i < std::min(left.size(), kMost); ++i) {
    warnings->push_back(fmt::format(
        "{} call(s) of the local function {} were not looked into, and ATC knows no functions and will refuse them: {}",
        left[i].count, left[i].function, left[i].because));
  }
  if (left.size() > kMost) {
    warnings->push_back(fmt::format("calls of {} more local functions were not looked into", left.size() - kMost));
  }
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
  WarnOfPlugin(model, target, &report->warnings);
  WarnOfCalls(*pipeline, model, &report->warnings);
  if (model.OpsetVersion() > target.MaxOpset()) {
    report->warnings.push_back(
        fmt::format("the model imports opset {}; ATC of CANN {} reads standard operators up to opset {}",
                    model.OpsetVersion(), target.cann(), target.MaxOpset()));
  }
  report->model = model.path();
  report->nodes_before = pipeline->nodes_before();
  report->nodes_after = pipeline->CountNodes();
  report->Summarize();
}

// --dim for a dim that no input has is most likely misspelt.
void WarnOfDims(const Model& model, const InferOptions& options, std::vector<std::string>* warnings) {
  if (options.dims.empty()) return;
  const Facts facts = Infer(model, WithDeclaredOperators());  // without the bindings, which replace symbols by numbers
  std::set<std::string> names;
  for (const Value* value : model.graphs()[0]->inputs()) {
    for (const Dim dim : facts.Of(value).shape) {
      const std::string text = facts.dims().ToString(dim);
      std::string word;
      for (const char c : text + " ") {
        if (std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_') {
          word += c;
        } else if (!word.empty()) {
          if (std::isdigit(static_cast<unsigned char>(word[0])) == 0) names.insert(word);
          word.clear();
        }
      }
      if (!dim.is_number()) names.insert(text);
    }
  }
  for (const auto& [name, range] : options.dims) {
    if (names.count(name) > 0) continue;
    warnings->push_back(
        names.empty() ? fmt::format("--dim {}: no input of the model has a symbolic dim", name)
                      : fmt::format("--dim {}: no input of the model has a dim of that name; there are {}",
                                    name, fmt::join(names, ", ")));
  }
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
  WarnOfDims(*model, options.infer, &report.warnings);
  WarnOfAtc(*model, &report.warnings);
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
  WarnOfDims(*model, options.infer, &report.warnings);
  WarnOfAtc(*model, &report.warnings);
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
