// What no site counts and fewer kernels could do: factors and summands of channels after a linear, chains of elementwise kernels,
// products of one value with several weights.
#include <algorithm>
#include <map>
#include <utility>

#include "fmt/format.h"
#include "fmt/ranges.h"
#include "passes/analyze/wins.h"

namespace ascend_fuse {
namespace {

constexpr size_t kShortestChain = 3;
constexpr size_t kMostNamed = 8;

bool CanBeInChain(const MeasuredNode& node) {
  return node.launches > 0 && !node.is_new && node.runs_on_chip() && (node.kind == WorkKind::kVector || node.op == "Cast") &&
         !node.op.starts_with("npu.");
}

// Kernels up to `end`, each the only reader of the one before; they are `done` then.
std::vector<int> ChainTo(size_t end, const MeasuredGraph& graph, const std::vector<bool>& claimed, std::vector<bool>* done) {
  std::vector<int> chain = {static_cast<int>(end)};
  (*done)[end] = true;
  for (size_t at = 0; at < chain.size(); ++at) {
    for (const int input : graph.nodes[static_cast<size_t>(chain[at])].inputs) {
      const size_t i = static_cast<size_t>(input);
      if ((*done)[i] || claimed[i] || !CanBeInChain(graph.nodes[i]) || graph.nodes[i].readers != 1) continue;
      (*done)[i] = true;
      chain.push_back(input);
    }
  }
  std::reverse(chain.begin(), chain.end());
  return chain;
}

}  // namespace

void AddAffines(const MeasuredGraph& graph, std::vector<bool>* claimed, WinsByPlace* wins) {
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    const MeasuredNode& node = graph.nodes[i];
    if (node.goes_into.empty() || node.launches == 0 || (*claimed)[i]) continue;
    OpportunityRecord record;
    record.kind = "affine";
    record.state = "left";
    record.because =
        fmt::format("one number for each channel, which the weight or the bias of the {} before it can hold", node.goes_into);
    record.source = "docs/sources/surgery.md";
    record.way = "optimize --tidy exact,affines: rounds in another order";
    wins->Add(std::move(record), node.module.empty() ? node.name : node.module, node.name,
              Take(graph, {static_cast<int>(i)}, claimed));
  }
}

void AddChains(const MeasuredGraph& graph, const std::vector<bool>& claimed, const CostModel& model, WinsByPlace* wins) {
  std::vector<bool> done(graph.nodes.size());
  for (size_t end = graph.nodes.size(); end-- > 0;) {
    if (done[end] || claimed[end] || !CanBeInChain(graph.nodes[end])) continue;
    const std::vector<int> chain = ChainTo(end, graph, claimed, &done);
    if (chain.size() < kShortestChain) continue;
    std::vector<std::string> ops;
    for (const int member : chain) ops.push_back(graph.nodes[static_cast<size_t>(member)].op);
    if (ops.size() > kMostNamed) ops = {ops[0], ops[1], ops[2], "...", ops.back()};
    OpportunityRecord record;
    record.kind = "elementwise_chain";
    record.state = "left";
    record.because = fmt::format("{}: no construct that a kernel of the chip computes", fmt::join(ops, ", "));
    record.way = "a kernel of your own (a rule with a node of your op package), or an export that writes it in fewer operators";
    const MeasuredNode& last = graph.nodes[end];
    wins->Add(std::move(record), last.module.empty() ? last.name : last.module, last.name,
              IfJoined(graph, chain, WorkKind::kNone, model));
  }
}

void AddProjections(const MeasuredGraph& graph, const CostModel& model, WinsByPlace* wins) {
  std::map<std::string, std::vector<const MeasuredNode*>> groups;
  for (const MeasuredNode& node : graph.nodes) {
    if (!node.reads_weight_of.empty() && node.launches > 0) groups[node.reads_weight_of].push_back(&node);
  }
  const Measurement* measured = nullptr;
  for (const Measurement& row : PublishedMeasurements().rows) {
    if (row.tells_of == "packed_projections") measured = &row;
  }
  for (const auto& [value, members] : groups) {
    if (members.size() < 2) continue;
    const MeasuredNode& first = *members[0];
    // Their weights and results are moved all the same: what is won are the starts.
    KernelWork start;
    start.kind = WorkKind::kMatrix;
    const auto fewer = static_cast<int64_t>(members.size()) - 1;
    const double one = model.TimeOf(start).middle;
    // Where a product takes longer than its start, packing was measured to win nothing.
    const bool short_ones = first.time.middle < 2 * one * first.times;
    const Win win = {short_ones ? one * static_cast<double>(fewer) * first.times : 0, fewer, 0};
    OpportunityRecord record;
    record.kind = "packed_projections";
    record.state = "left";
    record.because = fmt::format("{} linears read one value; packed they are one kernel", members.size());
    record.source = "patterns/cost";
    if (measured != nullptr) {
      record.because += fmt::format(", which was measured to win nothing where there are many rows ({:g} against {:g} ms)",
                                    measured->measured_before, measured->measured_after);
      record.source = measured->source;
    }
    record.way = "pack the weights before export; worth it in decode steps only";
    wins->Add(std::move(record), first.module.empty() ? first.name : first.module, first.name, win);
  }
}

}  // namespace ascend_fuse
