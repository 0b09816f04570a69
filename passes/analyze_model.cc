#include "passes/analyze_model.h"

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "fmt/format.h"
#include "ir/memory.h"
#include "ir/status_macros.h"
#include "passes/analyze/conclude.h"
#include "passes/analyze/groups.h"
#include "passes/analyze/measure.h"
#include "passes/analyze/memory.h"
#include "passes/analyze/opportunities.h"
#include "passes/analyze/page_sketch.h"
#include "passes/analyze/shares.h"
#include "passes/check/atc_check.h"

namespace ascend_fuse {
namespace {

constexpr size_t kHeaviest = 20;

using RunFunction = absl::StatusOr<Report>(Model* model, const OptimizeOptions& options);

// What two passes of one run see: the graph as it is, and the one that would be written.
class Analyzer {
 public:
  Analyzer(const Model& model, std::shared_ptr<const Target> target, const OptimizeOptions& options)
      : target_(std::move(target)), options_(options), measuring_(model, *target_, options.infer) {}

  // `run`: Optimize or ListOpportunities. `untouched`: the model as it was before the run, for one more.
  absl::StatusOr<AnalyzedRun> Run(Model* model, RunFunction* run, const ModelSource& untouched) {
    OptimizeOptions options = options_;
    options.loaded_target = target_;
    options.passes.push_back(
        Placed("number", "measure_before", [this](Workspace& workspace) { return MeasureBefore(workspace); }));
    options.passes.push_back(
        Placed("choose_style", "measure_after", [this](Workspace& workspace) { return MeasureAfter(workspace); }));
    ASSIGN_OR_RETURN(Report report, run(model, options));
    analysis_.report = report;
    MarkFixed();
    RETURN_IF_ERROR(TryPlugin(untouched));
    const CostModel cost(target_->chip(), launch_);
    analysis_.opportunities = FindOpportunities({analysis_.report, before_, after_, cost, by_plugin_});
    analysis_.sketches = SketchSites(analysis_.report, before_, after_);
    analysis_.dims = measuring_.binding.Used();
    Conclude(after_, *target_, &analysis_);
    return AnalyzedRun{std::move(report), std::move(analysis_)};
  }

 private:
  static PlacedPass Placed(const char* stage, const char* name, std::function<absl::Status(Workspace&)> run) {
    PlacedPass placed;
    placed.stage = stage;
    placed.pass = {name, "facts", "what the graph computes and moves", std::move(run)};
    placed.pass.reads_only = true;
    return placed;
  }

  absl::Status MeasureBefore(Workspace& workspace) {
    findings_ = FindEverywhere(workspace);
    before_ = MeasureGraph(workspace, &measuring_);
    const Reach reach(workspace.model(), workspace.facts());
    MeasureWeights(workspace.model(), reach, measuring_.modules, &analysis_.memory);
    MeasureCaches(workspace.model(), reach, workspace.facts(), &measuring_.binding, &analysis_.memory);
    MeasureTypes(workspace, reach);
    AddSupport(before_, false);
    return absl::OkStatus();
  }

  absl::Status MeasureAfter(Workspace& workspace) {
    after_ = MeasureGraph(workspace, &measuring_);
    launch_ = after_.is_static ? LaunchMode::kStatic : LaunchMode::kDynamic;
    std::vector<SiteRecord> sites;
    for (const Site& site : workspace.sites) {
      sites.push_back(site.record);
      sites.back().outputs.emplace_back(ValueName(*site.value));
    }
    const CostModel cost(target_->chip(), launch_);
    for (MeasuredGraph* graph : {&before_, &after_}) {
      SetTimes(cost, GroupsOfGe(sites, NodePlaces(*graph), graph == &after_), graph);
    }
    Facts& facts = workspace.facts();
    SetShares(before_, after_, &analysis_);
    const SpeedRatio ratio = RatioOf(TimeOf(before_), TimeOf(after_));
    analysis_.ratio = {ratio.low, ratio.middle, ratio.high, std::string(LaunchModeName(launch_))};
    analysis_.heaviest = Heaviest(after_, &measuring_.binding, facts.dims(), cost, kHeaviest);
    const bool lowers = target_->options().precision_mode.find("fp16") != std::string::npos;
    analysis_.precision_bytes = lowers ? "float16" : "float32";
    analysis_.memory.before = before_.activations;
    analysis_.memory.after = after_.activations;
    MeasureFit(cost.chip(), lowers, &analysis_.memory);
    analysis_.host = after_.host;
    AddSupport(after_, true);
    std::set<std::string> uncounted(before_.uncounted.begin(), before_.uncounted.end());
    uncounted.insert(after_.uncounted.begin(), after_.uncounted.end());
    analysis_.uncounted.assign(uncounted.begin(), uncounted.end());
    findings_after_ = FindEverywhere(workspace);
    return absl::OkStatus();
  }

  std::vector<FindingRecord> FindEverywhere(Workspace& workspace) const {
    std::vector<FindingRecord> findings = FindInNodes(workspace.model(), workspace.facts(), *target_);
    for (FindingRecord& finding : FindInStructure(workspace.model(), *target_)) findings.push_back(std::move(finding));
    return findings;
  }

  // What is not found again was mended.
  void MarkFixed() {
    std::set<std::tuple<std::string, std::string, std::string>> left;
    for (const FindingRecord& finding : findings_after_) left.insert({finding.code, finding.op, finding.node});
    for (FindingRecord& finding : findings_) {
      if (!left.contains({finding.code, finding.op, finding.node})) finding.fixed_by = "optimize";
    }
    analysis_.report.findings = std::move(findings_);
  }

  // Whether our op plugin takes what is left.
  absl::Status TryPlugin(const ModelSource& untouched) {
    const auto& sites = analysis_.report.sites;
    const bool left = std::any_of(sites.begin(), sites.end(), [](const SiteRecord& site) { return site.state == "left"; });
    if (!left || target_->options().plugin) return absl::OkStatus();
    OptimizeOptions options = options_;
    options.loaded_target = nullptr;
    options.target = target_->options();
    options.target.plugin = true;
    options.dump_directory.clear();
    options.keep_rest = true;  // what is tidied afterwards changes no site
    ASSIGN_OR_RETURN(const std::shared_ptr<Model> model, untouched());
    const absl::StatusOr<Report> report = ListOpportunities(model.get(), options);
    if (!report.ok()) {
      const bool ends = absl::IsResourceExhausted(report.status()) || absl::IsCancelled(report.status());
      return ends ? report.status() : absl::OkStatus();
    }
    for (const SiteRecord& site : report->sites) {
      if (site.state != "left" && !site.outputs.empty()) by_plugin_.insert(site.kind + " " + site.outputs[0]);
    }
    return absl::OkStatus();
  }

  void MeasureTypes(Workspace& workspace, const Reach& reach) {
    std::map<std::string, TypeRecord> types;
    for (size_t i = 0; i < reach.nodes().size(); ++i) {
      const Node& node = *reach.nodes()[i];
      const MeasuredNode& measured = before_.nodes[i];
      if (measured.launches == 0) continue;
      analysis_.precision.casts += measured.op == "Cast" ? 1 : 0;
      for (const Value* output : node.outputs()) {
        if (output == nullptr) continue;
        const Fact& fact = workspace.facts().Of(output);
        TypeRecord& type = types[std::string(DataTypeName(fact.type))];
        ++type.values;
        type.kernels += output == node.output(0) ? 1 : 0;
        type.bytes += measuring_.binding.Evaluate(BytesOf(fact, &workspace.facts().dims()), workspace.facts().dims());
      }
    }
    for (auto& [name, type] : types) {
      type.type = name;
      analysis_.precision.types.push_back(std::move(type));
    }
  }

  // Of each operator and place where it runs, once.
  void AddSupport(const MeasuredGraph& graph, bool after) {
    std::map<std::tuple<std::string, std::string, std::string>, SupportRecord> records;
    for (const MeasuredNode& node : graph.nodes) {
      const UnsupportedForm* form =
          node.engine == "ai_core" || node.engine == "folded" || node.engine == "none" ? nullptr : node.form;
      SupportRecord& record = records[{node.op, node.engine, form != nullptr ? form->code : ""}];
      ++record.nodes;
      if (record.nodes > 1) continue;
      record.op = node.op;
      record.engine = node.engine;
      SetKernel(node, &record);
      record.after = after;
      if (form != nullptr) {
        record.because = form->because;
        record.source = form->source;
        record.way_out = form->instead;
      } else {
        Explain(node, &record);
      }
    }
    for (auto& [key, record] : records) analysis_.support.push_back(std::move(record));
  }

  void SetKernel(const MeasuredNode& node, SupportRecord* record) const {
    if (node.engine != "ai_core") return;
    record->unit = node.kind == WorkKind::kMatrix ? "cube" : node.kind == WorkKind::kAttention ? "both" : "vector";
    const KernelOfNode kernel = FindKernel(node.op, target_->chip());
    record->kernel = kernel.name;
    if (kernel.shapes == KernelShapes::kUnknown) return;
    record->shapes = kernel.shapes == KernelShapes::kDynamic ? "dynamic" : "static";
    record->source = kernel.source;
  }

  void Explain(const MeasuredNode& node, SupportRecord* record) const {
    const auto standard = target_->Standard(node.op, DataType::kFloat16, before_.opset);
    if (node.engine == "ai_core" && standard.has_value()) {
      record->because = standard->because;
      record->source = standard->source;
    } else if (node.engine == "ai_core") {
      record->because =
          node.op.starts_with("npu.") ? "a node of the chip's contract" : "no form that ATC rejects or misreads is known of it";
      if (!record->kernel.empty()) record->because += fmt::format("; kernel {}", record->kernel);
      if (record->shapes == "static") record->because += ", which takes numbers for all dims only";
      if (record->source.empty()) {
        record->source = target_->HasNode(node.op) ? "patterns/targets" : "docs/sources/ascend-contract.md, section 5.1";
      }
      if (record->shapes == "static" && !before_.is_static) record->way_out = "--fix NAME=N makes numbers of symbolic dims";
    } else if (node.engine == "folded") {
      record->because = "it depends on no input: the compiler makes a constant of it";
    } else if (node.engine == "none") {
      record->because = "no element moves: no kernel";
    } else if (node.engine == "host") {
      record->because = "integers of shapes, or control flow";
    } else {
      record->because = "stock ATC has no parser for it";
    }
  }

  std::shared_ptr<const Target> target_;
  const OptimizeOptions& options_;
  Measuring measuring_;
  MeasuredGraph before_, after_;
  LaunchMode launch_ = LaunchMode::kStatic;
  std::vector<FindingRecord> findings_, findings_after_;
  absl::flat_hash_set<std::string> by_plugin_;
  Analysis analysis_;
};

absl::StatusOr<AnalyzedRun> Analyze(Model* model, const OptimizeOptions& options, RunFunction* run,
                                    const ModelSource& untouched) {
  ASSIGN_OR_RETURN(auto target, TargetOf(options));
  return Analyzer(*model, std::move(target), options).Run(model, run, untouched);
}

// The same model, which a run without changes leaves as it was.
ModelSource Itself(Model* model) {
  return [model] { return std::shared_ptr<Model>(model, [](Model*) {}); };
}

// The page tells of the run that was made; its findings are those of the model as it is, and whether they were mended.
void TakeRun(AnalyzedRun* run) {
  std::vector<FindingRecord>& findings = run->analysis.report.findings;
  for (const FindingRecord& of_result : run->report.findings) {
    const bool told = std::any_of(findings.begin(), findings.end(), [&](const FindingRecord& finding) {
      return finding.code == of_result.code && finding.op == of_result.op && finding.node == of_result.node;
    });
    if (!told) findings.push_back(of_result);
  }
  for (std::vector<PassRecord>* passes : {&run->report.passes, &run->analysis.report.passes}) {
    std::erase_if(*passes, [](const PassRecord& pass) { return pass.name.starts_with("measure_"); });
  }
}

}  // namespace

absl::StatusOr<Analysis> AnalyzeModel(Model* model, const OptimizeOptions& options) {
  auto run = WithinMemory([&] { return Analyze(model, options, &ListOpportunities, Itself(model)); });
  if (!run.ok()) return run.status();
  return std::move(run->analysis);
}

absl::StatusOr<AnalyzedRun> ListAndAnalyze(Model* model, const OptimizeOptions& options) {
  auto run = WithinMemory([&] { return Analyze(model, options, &ListOpportunities, Itself(model)); });
  if (run.ok()) TakeRun(&*run);
  return run;
}

absl::StatusOr<AnalyzedRun> OptimizeAndAnalyze(Model* model, const OptimizeOptions& options, const ModelSource& untouched) {
  auto run = WithinMemory([&] { return Analyze(model, options, &Optimize, untouched); });
  if (!run.ok()) return run;
  TakeRun(&*run);
  std::erase_if(run->analysis.next, [](const StepRecord& step) { return step.action == "optimize"; });
  return run;
}

}  // namespace ascend_fuse
