#include "passes/analyze/shares.h"

#include <algorithm>
#include <map>
#include <string_view>
#include <utility>

namespace ascend_fuse {
namespace {

struct Tally {
  std::string kind;
  int64_t nodes = 0;
  int64_t kernels = 0;
  double time = 0;

  void Add(const MeasuredNode& node) {
    ++nodes;
    kernels += node.launches > 0 ? 1 : 0;
    time += node.time.middle;
  }
};

struct Both {
  Tally before, after;
};

class Sharer {
 public:
  Sharer(const MeasuredGraph& before, const MeasuredGraph& after) : before_(before), after_(after) {}

  void Run(Analysis* analysis) {
    std::map<std::string, Both> operators, modules;
    Tally total_before, total_after;
    for (const auto* graph : {&before_, &after_}) {
      const auto of = [&](Both& both) -> Tally& { return graph == &before_ ? both.before : both.after; };
      for (const MeasuredNode& node : graph->nodes) {
        (graph == &before_ ? total_before : total_after).Add(node);
        Both& op = operators[node.op];
        of(op).Add(node);
        of(op).kind = WorkKindName(node.kind);
        for (const std::string_view path : PathsOf(node.module)) of(modules[std::string(path)]).Add(node);
      }
    }
    SetSide(before_, &analysis->before);
    SetSide(after_, &analysis->after);
    for (const auto& [name, both] : operators) {
      analysis->operators.push_back(Of(name, both, total_before, total_after));
      SetAmounts(before_.operators, after_.operators, &analysis->operators.back());
    }
    std::stable_sort(analysis->operators.begin(), analysis->operators.end(), [](const ShareRecord& a, const ShareRecord& b) {
      return std::max(a.share_before, a.share_after) > std::max(b.share_before, b.share_after);
    });
    for (const auto& [name, both] : modules) {
      analysis->modules.push_back(Of(name, both, total_before, total_after));
      SetAmounts(before_.modules, after_.modules, &analysis->modules.back());
    }
  }

 private:
  static void SetSide(const MeasuredGraph& graph, SideRecord* side) {
    *side = graph.side;
    side->flops = graph.whole.flops;
    side->bytes = graph.whole.bytes;
    if (side->bytes.value > 0) side->intensity = side->flops.value / side->bytes.value;
  }

  static void SetAmounts(const std::map<std::string, AmountsOf>& before, const std::map<std::string, AmountsOf>& after,
                         ShareRecord* share) {
    if (const auto of = before.find(share->name); of != before.end()) {
      share->flops_before = of->second.flops;
      share->bytes_before = of->second.bytes;
    }
    if (const auto of = after.find(share->name); of != after.end()) {
      share->flops_after = of->second.flops;
      share->bytes_after = of->second.bytes;
    }
    if (share->bytes_before.value > 0) {
      share->intensity = share->flops_before.value / share->bytes_before.value;
    } else if (share->bytes_after.value > 0) {
      share->intensity = share->flops_after.value / share->bytes_after.value;
    }
  }

  static ShareRecord Of(const std::string& name, const Both& both, const Tally& total_before, const Tally& total_after) {
    ShareRecord share;
    share.name = name;
    share.kind = both.before.nodes > 0 ? both.before.kind : both.after.kind;
    share.nodes_before = both.before.nodes;
    share.nodes_after = both.after.nodes;
    share.kernels_before = both.before.kernels;
    share.kernels_after = both.after.kernels;
    if (total_before.time > 0) share.share_before = both.before.time / total_before.time;
    if (total_after.time > 0) share.share_after = both.after.time / total_after.time;
    return share;
  }

  const MeasuredGraph& before_;
  const MeasuredGraph& after_;
};

}  // namespace

void SetShares(const MeasuredGraph& before, const MeasuredGraph& after, Analysis* analysis) {
  Sharer(before, after).Run(analysis);
}

KernelTime TimeOf(const MeasuredGraph& graph) {
  KernelTime time;
  for (const MeasuredNode& node : graph.nodes) time += node.time;
  return time;
}

std::vector<HeavyRecord> Heaviest(const MeasuredGraph& graph, Binding* binding, const DimTable& dims, const CostModel& model,
                                  size_t most) {
  std::vector<const MeasuredNode*> nodes;
  for (const MeasuredNode& node : graph.nodes) {
    if (node.time.middle > 0) nodes.push_back(&node);
  }
  most = std::min(most, nodes.size());
  std::partial_sort(nodes.begin(), nodes.begin() + static_cast<int64_t>(most), nodes.end(), [](const auto* a, const auto* b) {
    return a->time.middle != b->time.middle ? a->time.middle > b->time.middle : a < b;
  });
  const double whole = TimeOf(graph).middle;
  std::vector<HeavyRecord> records;
  for (size_t i = 0; i < most; ++i) {
    const MeasuredNode& node = *nodes[i];
    KernelWork without = node.work;
    without.flops = without.scores = 0;
    const double of_bytes = model.TimeOf(without).middle * node.times;
    KernelWork start;
    start.kind = node.kind;
    const bool by_start = model.TimeOf(start).middle * node.times > node.time.middle / 2;
    records.push_back({node.name, node.op, node.module, binding->Of(node.flops, dims), binding->Of(node.bytes, dims),
                       node.time.middle / whole,
                       by_start                             ? "start"
                       : of_bytes < node.time.middle * 0.99 ? "flops"
                                                            : "bytes"});
  }
  return records;
}

}  // namespace ascend_fuse
