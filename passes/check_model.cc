#include "passes/check_model.h"

#include <set>
#include <tuple>
#include <utility>

#include "fmt/format.h"
#include "ir/memory.h"
#include "ir/operands.h"
#include "ir/status_macros.h"
#include "passes/check/atc_check.h"
#include "passes/check/check.h"
#include "passes/report/build_report.h"
#include "patterns/operators/declarations.h"
#include "patterns/operators/inference.h"

namespace ascend_fuse {
namespace {

std::vector<FindingRecord> FindEverywhere(const Model& model, Facts& facts, const Target& target) {
  std::vector<FindingRecord> findings = FindInNodes(model, facts, target);
  for (FindingRecord& finding : FindInStructure(model, target)) findings.push_back(std::move(finding));
  return findings;
}

// What is found again is the same thing at the same node, and where all nodes are meant, the same thing.
std::tuple<std::string, std::string, std::string> KeyOf(const FindingRecord& finding) {
  return {finding.code, finding.op, finding.node};
}

// Ascend nodes that stock ATC has no parser for, and ATC with our op plugin takes.
void MarkFixedByPlugin(const Model& model, const OptimizeOptions& options, Facts& facts, std::vector<FindingRecord>* findings) {
  if (options.target.plugin) return;
  TargetOptions with = options.target;
  with.plugin = true;
  const auto target = Target::Shared(with);
  if (!target.ok()) return;
  // With the plugin another sentence may be said of the node: then it is not fixed.
  std::set<std::pair<std::string, std::string>> left;
  for (const FindingRecord& finding : FindEverywhere(model, facts, **target)) {
    left.insert({finding.op, finding.node});
  }
  for (FindingRecord& finding : *findings) {
    if (!finding.op.starts_with("npu.") || left.contains({finding.op, finding.node})) continue;
    const DeclaredOperator* op = FindDeclaredOperator("npu", finding.op.substr(4));
    finding.fixed_by = "plugin";
    const int since = op != nullptr && op->ge.has_value() ? op->ge->since : 0;
    finding.way_out = fmt::format("install our op plugin, version {} or later (docs/plugin.md), and say --plugin", since);
  }
}

absl::Status MarkFixedByOptimize(Model* model, const OptimizeOptions& options, const Target& target,
                                 std::vector<FindingRecord>* findings) {
  if (findings->empty()) return absl::OkStatus();
  if (const absl::Status status = Optimize(model, options).status(); !status.ok()) {
    return absl::IsResourceExhausted(status) ? status : absl::OkStatus();
  }
  std::set<std::tuple<std::string, std::string, std::string>> left;
  Facts facts = Infer(*model, WithDeclaredOperators(options.infer));
  for (const FindingRecord& finding : FindEverywhere(*model, facts, target)) left.insert(KeyOf(finding));
  for (FindingRecord& finding : *findings) {
    if (finding.effect != "precision" && !left.contains(KeyOf(finding))) finding.fixed_by = "optimize";
  }
  return absl::OkStatus();
}

absl::StatusOr<Report> Check(Model* model, const OptimizeOptions& options) {
  ASSIGN_OR_RETURN(const auto loaded, TargetOf(options));
  const Target& target = *loaded;
  RETURN_IF_ERROR(CheckImports(*model));
  RETURN_IF_ERROR(CheckOperands(*model));
  Report report;
  report.model = model->path();
  report.target = DescribeTarget(target, *model, options.infer);
  for (const std::string& warning : target.warnings()) report.Warn({"chip-not-in-cann", warning});
  for (const WarningRecord& warning : CheckPlugin(*model, target)) report.Warn(warning);
  {
    Facts facts = Infer(*model, WithDeclaredOperators(options.infer));
    report.findings = FindEverywhere(*model, facts, target);
    for (FindingRecord& finding : FindInConstants(*model, target)) report.findings.push_back(std::move(finding));
    MarkFixedByPlugin(*model, options, facts, &report.findings);
  }  // the facts are gone before optimize makes its own
  RETURN_IF_ERROR(MarkFixedByOptimize(model, options, target, &report.findings));
  report.Summarize();
  return report;
}

}  // namespace

absl::StatusOr<Report> CheckModel(Model* model, const OptimizeOptions& options) {
  return WithinMemory([&] { return Check(model, options); });
}

}  // namespace ascend_fuse
