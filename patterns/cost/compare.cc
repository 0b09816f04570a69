#include "patterns/cost/compare.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>

#include "absl/status/status.h"
#include "fmt/format.h"
#include "fmt/ranges.h"
#include "ir/status_macros.h"
#include "ir/text/parser.h"
#include "patterns/operators/inference.h"

namespace ascend_fuse {
namespace {

constexpr std::string_view kHeader = "<ir_version: 8, opset_import: [\"\" : 17, \"npu\" : 1, \"com.microsoft\" : 1]>\n";

// The time of all nodes of a graph, in microseconds; nothing for no graph.
absl::StatusOr<KernelTime> TimeOf(const Measurement& row, const std::string& graph, bool on_ai_cpu) {
  KernelTime time;
  if (graph.empty()) return time;
  const auto wrong = [&](const std::string& what) {
    return absl::InvalidArgumentError(fmt::format("patterns/cost/measurements.txtpb, {}: {}", row.name, what));
  };
  const auto model = ParseModelText(fmt::format("{}{}", kHeader, graph));
  if (!model.ok()) return wrong(std::string(model.status().message()));
  Facts facts = Infer(**model, WithDeclaredOperators({}));
  const CostModel costs(row.chip, row.launch);
  for (const Node* node : (*model)->graph().nodes()) {
    const Work work = WorkOf(*node, &facts);
    if (!work.has_row) return wrong(fmt::format("costs.txtpb has no row for {}", WorkName(*node)));
    if (work.kind == WorkKind::kView) continue;
    if (!work.flops.is_number() || !work.bytes.is_number())
      return wrong(fmt::format("the shapes of {} are not known", WorkName(*node)));
    KernelWork kernel = InNumbers(work, false, [&](Dim dim) { return dim.is_number() ? static_cast<double>(dim.number()) : 0; });
    kernel.on_ai_cpu = on_ai_cpu;
    time += costs.TimeOf(kernel);
  }
  return time * static_cast<double>(row.times);
}

// What was measured less what the nodes before take is the rest of the model.
void AddRest(const Measurement& row, KernelTime* before, KernelTime* after) {
  const double whole = row.measured_before * 1e3;
  const auto add = [&](double* of_before, double* of_after) {
    const double rest = std::max(whole - *of_before, 0.0);
    *of_before += rest;
    *of_after += rest;
  };
  add(&before->middle, &after->middle);
  for (int i = 0; i < KernelTime::kCorners; ++i) add(&before->corner[i], &after->corner[i]);
}

int DirectionOf(double ratio) { return ratio > 1 + kTie ? 1 : ratio < 1 - kTie ? -1 : 0; }

std::string Ratio(const SpeedRatio& ratio) {
  return fmt::format("{:.2f} ({:.2f} to {:.2f})", ratio.middle, ratio.low, ratio.high);
}

void AddParameter(std::string_view name, const CostFigure& figure, std::string_view unit, std::string* text) {
  *text += fmt::format("| {} | {:.4g} {} | {} |\n", name, figure.value, unit, figure.source);
}

std::string Parameters() {
  const CostParameters& parameters = CostModelParameters();
  std::string text = "| parameter | value | source |\n|---|---:|---|\n";
  for (const WorkKind kind : {WorkKind::kVector, WorkKind::kMove, WorkKind::kMatrix, WorkKind::kAttention}) {
    AddParameter(fmt::format("fixed cost, {}", WorkKindName(kind)), parameters.fixed[static_cast<size_t>(kind)], "us", &text);
  }
  for (const LaunchMode mode : {LaunchMode::kStatic, LaunchMode::kDynamic, LaunchMode::kSingle}) {
    AddParameter(fmt::format("start, {}", LaunchModeName(mode)), parameters.launch[static_cast<size_t>(mode)], "us", &text);
  }
  AddParameter("share of the cube's peak", parameters.cube_share, "", &text);
  AddParameter("share of the bandwidth", parameters.bandwidth_share, "", &text);
  AddParameter("a kernel of the AI CPU", parameters.ai_cpu_fixed, "us", &text);
  AddParameter("elements on the AI CPU", parameters.ai_cpu_rate, "G/s", &text);
  AddParameter("elements one by one", parameters.scalar_rate, "G/s", &text);
  AddParameter("heads after the tokens, from a length of", parameters.tokens_first_from, "", &text);
  AddParameter("heads after the tokens, times", parameters.tokens_first, "", &text);
  if (const HeadPadding* padding = FindHeadPadding("NPUPromptFlashAttention"); padding != nullptr) {
    const std::string source = fmt::format("{} ({})", padding->because, padding->source);
    AddParameter("heads padded in weights, to a multiple of", {static_cast<double>(padding->multiple_of), source}, "", &text);
    AddParameter("heads padded in weights, at most times", {padding->at_most, "the same"}, "", &text);
  }
  AddParameter("uncertainty, times", parameters.uncertainty, "", &text);
  return text;
}

std::string ChipTable() {
  std::string text =
      "| chip | cube, TFLOPS | memory, GB/s | scores, G/s | vector, G/s | memory, GB |\n|---|---:|---:|---:|---:|---:|\n";
  std::string sources;
  for (const char* name : {"ascend310b", "ascend310p", "ascend910", "ascend910b", "ascend910_93", "ascend950"}) {
    const ChipCost& chip = FindChipCost(name);
    std::string memory;
    for (const CostFigure& size : chip.memory) memory += fmt::format("{}{:.0f}", memory.empty() ? "" : ", ", size.value);
    text += fmt::format("| {} | {:.0f} | {:.0f} | {:.0f} | {:.0f} | {} |\n", name, chip.cube.value, chip.bandwidth.value,
                        chip.scores.value, chip.vector.value, memory);
    sources += fmt::format("- {}: {}; {}; {}\n", name, chip.cube.source, chip.bandwidth.source, chip.scores.source);
  }
  return text + "\n" + sources;
}

std::string LeftOutList() {
  std::string text = "\nLeft out of the comparison, because no graph can be written for them:\n\n";
  for (const LeftOutFigure& figure : PublishedMeasurements().left_out) {
    text += fmt::format("- {}{}{}", fmt::join(figure.nodes, ", "), figure.nodes.empty() ? "" : ": ", figure.what);
    if (figure.is_measured()) text += fmt::format(": {:g} before, {:g} after", figure.measured_before, figure.measured_after);
    text += fmt::format(" ({})\n", figure.source);
  }
  return text;
}

// What the model predicts of nodes that nobody measured.
absl::StatusOr<std::string> UnmeasuredTable() {
  std::string text =
      "\n## Nodes that nobody measured\n\nOf these the model alone says how fast they are, for one size each, on 910B. "
      "`ascend-fuse analyze` predicts it for the sites of a model.\n\n| node | in place of | predicted |\n|---|---|---:|\n";
  for (const Measurement& row : PublishedMeasurements().rows) {
    if (row.is_measured()) continue;
    ASSIGN_OR_RETURN(const Comparison comparison, Compare(row));
    text += fmt::format("| {} | {} | {} |\n", fmt::join(row.nodes, ", "), row.name, Ratio(comparison.predicted));
  }
  return text;
}

}  // namespace

absl::StatusOr<Comparison> Compare(const Measurement& row) {
  ASSIGN_OR_RETURN(KernelTime before, TimeOf(row, row.before, row.ai_cpu));
  ASSIGN_OR_RETURN(KernelTime after, TimeOf(row, row.after, false));
  if (row.whole) AddRest(row, &before, &after);
  Comparison comparison;
  comparison.row = &row;
  comparison.predicted = RatioOf(before, after);
  if (!row.is_measured()) return comparison;
  comparison.measured = row.measured_before / row.measured_after;
  comparison.error = comparison.predicted.middle / comparison.measured - 1;
  const int measured = DirectionOf(comparison.measured);
  const int predicted = DirectionOf(comparison.predicted.middle);
  // Where both lean to one side, a tie of one of them does not contradict the other.
  const bool leans = (comparison.measured > 1) == (comparison.predicted.middle > 1);
  comparison.direction = measured == predicted || (measured * predicted == 0 && leans);
  return comparison;
}

absl::StatusOr<std::vector<Comparison>> CompareWithMeasurements() {
  std::vector<Comparison> comparisons;
  for (const Measurement& row : PublishedMeasurements().rows) {
    if (!row.is_measured()) continue;
    ASSIGN_OR_RETURN(comparisons.emplace_back(), Compare(row));
  }
  return comparisons;
}

absl::StatusOr<std::string> CostsDocument() {
  ASSIGN_OR_RETURN(const std::vector<Comparison> comparisons, CompareWithMeasurements());
  size_t right = 0, near = 0, inside = 0;
  std::string table = "| what | chip, start | measured | predicted | error | assumed; source |\n|---|---|---:|---:|---:|---|\n";
  std::string fails;
  for (const Comparison& comparison : comparisons) {
    const Measurement& row = *comparison.row;
    const bool close = std::abs(comparison.error) <= 0.3;
    right += comparison.direction ? 1 : 0;
    near += close ? 1 : 0;
    inside += comparison.predicted.low <= comparison.measured && comparison.measured <= comparison.predicted.high ? 1 : 0;
    table +=
        fmt::format("| {} | {}, {} | {:.2f} | {} | {:+.0f} %{} | {}{}{} |\n", row.name, row.chip.substr(6),
                    LaunchModeName(row.launch), comparison.measured, Ratio(comparison.predicted), comparison.error * 100,
                    close && comparison.direction ? "" : " **fails**", row.assumed, row.assumed.empty() ? "" : "; ", row.source);
    if (!row.fails.empty()) fails += fmt::format("- {}: {}.\n", row.name, row.fails);
  }
  std::string text =
      "# Costs\n\nOne model predicts how much faster a rewriting is: `patterns/cost/costs.txtpb` holds its figures, each with "
      "its "
      "source, and\n`ascend-fuse analyze` says what follows. **None of the figures is a measurement of ours**, and times of the "
      "model are "
      "good for ratios only.\n\nA kernel takes its start, its fixed cost, and the longest of: its FLOPs at a share of the cube's "
      "peak "
      "(products), its bytes at a share of the\nbandwidth, its scores (attention), its vector instructions where these are known "
      "(activations), its elements one by one (kernels that are\nknown to run on one core). The interval is what comes out when "
      "the fixed "
      "costs of small kernels, those of products and attention, the\nrates of computing and those of moving are divided and "
      "multiplied by the uncertainty, "
      "each by "
      "itself.\n\n## Parameters\n\n";
  text += Parameters();
  text += "\n## Chips\n\n" + ChipTable();
  text += fmt::format(
      "\n## Against measurements\n\nTimes before by times after: {} public comparisons, the direction right in {}, the ratio "
      "within 30 % in "
      "{}, the measured one inside of the\npredicted interval in {}. `patterns/cost/measurements.txtpb` has the graphs that were "
      "compared, and `tests/unit/cost_test.cc` computes this page anew. The figures above were taken from\nrows of this table, "
      "as their sources say: it shows how well few figures describe many measurements, and is not a forecast.\n\n",
      comparisons.size(), right, near, inside);
  text += table;
  text += "\nWhy rows fail:\n\n" + fails;
  ASSIGN_OR_RETURN(const std::string unmeasured, UnmeasuredTable());
  return text + unmeasured + LeftOutList();
}

}  // namespace ascend_fuse
