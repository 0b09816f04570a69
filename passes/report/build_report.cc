#include "passes/report/build_report.h"
#include "passes/core/weights.h"

#include <algorithm>

#include "absl/container/flat_hash_set.h"
#include "fmt/format.h"
#include "fmt/ranges.h"
#include "patterns/cost/evidence.h"

namespace ascend_fuse {
namespace {

std::vector<SiteRecord> RecordsOf(const std::vector<Site>& sites) {
  std::vector<const Site*> sorted;
  for (const Site& site : sites) sorted.push_back(&site);
  std::stable_sort(sorted.begin(), sorted.end(), [](const Site* a, const Site* b) {
    return a->order != b->order ? a->order < b->order : a->record.kind < b->record.kind;
  });
  std::vector<SiteRecord> records;
  for (const Site* site : sorted) {
    SiteRecord record = site->record;
    if (site->pending()) record.state = "left";
    record.outputs.emplace_back(ValueName(*site->value));
    for (const Value* other : site->others) record.outputs.emplace_back(ValueName(*other));
    if (site->pair >= 0) record.pair = std::string(ValueName(*sites[static_cast<size_t>(site->pair)].value));
    records.push_back(std::move(record));
  }
  return records;
}

// As --dim is given: "2", "1..64", "16..4096:16".
std::string RangeText(const DimRange& range) {
  if (range.low == range.high) return fmt::format("{}", range.low);
  std::string text = fmt::format("{}..{}", range.low, range.high);
  if (range.step > 1) text += fmt::format(":{}", range.step);
  return text;
}

// What is known of the speed of the nodes that were emitted, each once, in the order in which they are declared.
std::vector<GainRecord> GainsOf(const std::vector<SiteRecord>& sites) {
  absl::flat_hash_set<std::string_view> emitted;
  for (const SiteRecord& site : sites) {
    if (site.state == "fused") emitted.insert(site.emitted_op);
  }
  std::vector<GainRecord> gains;
  for (const DeclaredOperator& op : DeclaredOperators()) {
    if (op.domain != "npu" || !emitted.contains(op.name)) continue;
    SpeedEvidence speed = EvidenceOf(op.op_type);
    gains.push_back({op.op_type, std::move(speed.evidence), std::move(speed.because), std::move(speed.source)});
  }
  return gains;
}

std::vector<InputRecord> InputsOf(const Model& model, const Facts& facts) {
  std::vector<InputRecord> inputs;
  for (const Value* input : model.graph().inputs()) {
    if (input->initializer != nullptr) continue;
    const Fact& fact = facts.Of(input);
    InputRecord record = {std::string(ValueName(*input)), fact.has_rank, {}};
    for (const Dim dim : fact.shape) {
      const bool number = dim.is_number();
      record.dims.push_back(
          {number ? dim.number() : facts.dims().LowerBound(dim), number ? dim.number() : facts.dims().UpperBound(dim)});
    }
    inputs.push_back(std::move(record));
  }
  return inputs;
}

// What was done to the whole model, a sentence for each.
void WarnOfDecomposed(const RunResult& result, Report* report) {
  if (result.decomposed.empty()) return;
  std::vector<std::string> words;
  for (const auto& [op, count] : result.decomposed) words.push_back(fmt::format("{} {}", count, op));
  // ONNX Runtime 1.31 gives 0 where a mask of the lowest float takes out all keys; the operator's definition an average.
  const char* const rows = result.decomposed.contains("Attention")
                               ? " (Attention: rows with no allowed key are what ONNX says, and ONNX Runtime may give 0 there)"
                               : "";
  report->Warn({"decomposed", fmt::format("ATC reads none of these operators; written in standard operators: {}{}",
                                          fmt::join(words, ", "), rows)});
}

void WarnOfOpset(const RunResult& result, int64_t opset, const Target& target, Report* report) {
  if (result.opset_before <= 0) return;
  const std::string because =
      result.opset_because.empty() ? fmt::format("which ATC of CANN {} reads", target.cann()) : result.opset_because;
  const std::string nodes = result.converted == 0 ? "no node needs another form for that"
                                                  : fmt::format("{} node(s) have another form for that", result.converted);
  report->Warn({"opset-converted", fmt::format("the model is written at opset {} instead of {}, {}; {}", opset,
                                               result.opset_before, because, nodes)});
}

void WarnOfFixedDims(const RunResult& result, const WorkspaceOptions& options, Report* report) {
  if (options.fix.empty()) return;
  std::vector<std::string> words;
  for (const auto& [name, range] : options.infer.dims) {
    if (std::find(options.fix.begin(), options.fix.end(), name) == options.fix.end()) continue;
    words.push_back(fmt::format("{} = {}", name, range.low));
  }
  report->Warn({"dims-fixed", fmt::format("the model is for {} only; {} node(s) became constants with that",
                                          fmt::join(words, ", "), result.folded)});
}

void WarnOfSharedKeys(const RunResult& result, Report* report) {
  if (result.keys_shared <= 0) return;
  report->Warn(
      {"keys-shared", fmt::format("{} attention(s) that are left repeat keys or values no more: queries of heads that share "
                                  "them are rows of one product",
                                  result.keys_shared)});
}

// With the nodes by form, for a program.
void WarnOfAdapted(const RunResult& result, Report* report) {
  if (result.adapted.empty()) return;
  std::vector<std::string> words;
  for (const auto& [form, nodes] : result.adapted) {
    words.push_back(fmt::format("{} {} ({})", nodes.size(), form.second, form.first));
    report->adapted.push_back({form.first, form.second, nodes});
  }
  report->Warn({"adapted", fmt::format("written in forms that ATC reads: {}", fmt::join(words, ", "))});
}

}  // namespace

ReportTarget DescribeTarget(const Target& target, const Model& model, const InferOptions& infer) {
  ReportTarget record;
  record.chip = target.chip();
  record.cann = target.cann();
  record.precision_mode = target.options().precision_mode;
  record.opset = model.OpsetVersion();
  record.plugin = target.options().plugin;
  for (const auto& [name, range] : infer.dims) record.dims.push_back(fmt::format("{}={}", name, RangeText(range)));
  for (const auto& [name, other] : infer.equal_dims) record.dims.push_back(fmt::format("{}={}", name, other));
  return record;
}

Report BuildReport(Workspace& workspace) {
  const Model& model = workspace.model();
  const Target& target = *workspace.target();
  const RunResult& result = workspace.result;
  Report report;
  report.model = model.path();
  report.target = DescribeTarget(target, model, workspace.options().infer);
  report.target.style = result.style;
  report.sites = RecordsOf(workspace.sites);
  report.gains = GainsOf(report.sites);
  report.near_misses = result.near_misses;
  report.passes = result.runs;
  report.inputs = InputsOf(model, workspace.facts());
  for (const Contradiction& contradiction : workspace.facts().contradictions()) {
    report.contradictions.push_back({contradiction.value, contradiction.declared, contradiction.computed, contradiction.where});
  }
  for (const std::string& warning : target.warnings()) report.Warn({"chip-not-in-cann", warning});
  WarnOfDecomposed(result, &report);
  WarnOfOpset(result, model.OpsetVersion(), target, &report);
  WarnOfFixedDims(result, workspace.options(), &report);
  WarnOfSharedKeys(result, &report);
  if (!result.opset_kept.empty()) report.Warn({"opset-kept", result.opset_kept});
  WarnOfAdapted(result, &report);
  for (const auto& [kind, nodes] : result.tidied) report.tidied.push_back({kind.first, kind.second, nodes});
  for (const WarningRecord& warning : result.warnings) report.Warn(warning);
  report.findings = result.findings;
  report.nodes_before = result.nodes_before;
  report.nodes_after = workspace.CountNodes();
  report.weights_before = result.weights_before;
  report.weights_after = CountWeights(model);
  report.Summarize();
  return report;
}

}  // namespace ascend_fuse
