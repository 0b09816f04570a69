#include "passes/analyze/shares.h"

#include <algorithm>
#include <map>
#include <string_view>
#include <utility>

namespace ascend_fuse {
namespace {

// A sum of counts: equal ones are counted, so that a layer that stands a hundred times costs one product.
class Sum {
 public:
  void Add(Dim dim, double times) {
    if (dim.is(0)) return;
    if (dim.is_number()) {
      numbers_ += static_cast<double>(dim.number()) * times;
    } else {
      counts_[dim.known() ? dim.id() : -1].first = dim;
      counts_[dim.known() ? dim.id() : -1].second += times;
    }
  }

  Amount Total(Binding* binding, DimTable* dims) const {
    double value = numbers_;
    Dim sum = numbers_ < 9e18 ? Dim::Of(static_cast<int64_t>(numbers_)) : Dim();
    for (const auto& [id, entry] : counts_) {
      if (!entry.first.known()) continue;  // Side::unknown counts them
      value += binding->Evaluate(entry.first, *dims) * entry.second;
      sum = dims->Add(sum, dims->Mul(Dim::Of(static_cast<int64_t>(entry.second)), entry.first));
    }
    return {binding->Of(sum, *dims).formula, value};
  }

 private:
  double numbers_ = 0;
  std::map<int64_t, std::pair<Dim, double>> counts_;  // of expressions, by Dim::id
};

struct Tally {
  std::string kind;
  int64_t nodes = 0;
  int64_t kernels = 0;
  Sum flops, bytes;
  double time = 0;

  void Add(const MeasuredNode& node) {
    ++nodes;
    kernels += node.launches > 0 ? 1 : 0;
    flops.Add(node.flops, node.times);
    bytes.Add(node.bytes, node.times);
    time += node.time.middle;
  }
};

struct Both {
  Tally before, after;
};

class Sharer {
 public:
  Sharer(const MeasuredGraph& before, const MeasuredGraph& after, Binding* binding, DimTable* dims)
      : before_(before), after_(after), binding_(binding), dims_(dims) {}

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
        // A module has what lies below it.
        std::string_view path = node.module;
        of(modules[std::string(path)]).Add(node);
        for (size_t dot = path.rfind('.'); dot != std::string_view::npos; dot = path.rfind('.')) {
          path = path.substr(0, dot);
          of(modules[std::string(path)]).Add(node);
        }
      }
    }
    SetSide(total_before, before_.side, &analysis->before);
    SetSide(total_after, after_.side, &analysis->after);
    for (const auto& [name, both] : operators) analysis->operators.push_back(Of(name, both, total_before, total_after));
    std::stable_sort(analysis->operators.begin(), analysis->operators.end(), [](const ShareRecord& a, const ShareRecord& b) {
      return std::max(a.share_before, a.share_after) > std::max(b.share_before, b.share_after);
    });
    for (const auto& [name, both] : modules) analysis->modules.push_back(Of(name, both, total_before, total_after));
  }

 private:
  void SetSide(const Tally& tally, const SideRecord& counted, SideRecord* side) {
    *side = counted;
    side->flops = tally.flops.Total(binding_, dims_);
    side->bytes = tally.bytes.Total(binding_, dims_);
    if (side->bytes.value > 0) side->intensity = side->flops.value / side->bytes.value;
  }

  ShareRecord Of(const std::string& name, const Both& both, const Tally& total_before, const Tally& total_after) {
    ShareRecord share;
    share.name = name;
    share.kind = both.before.nodes > 0 ? both.before.kind : both.after.kind;
    share.nodes_before = both.before.nodes;
    share.nodes_after = both.after.nodes;
    share.kernels_before = both.before.kernels;
    share.kernels_after = both.after.kernels;
    share.flops_before = both.before.flops.Total(binding_, dims_);
    share.flops_after = both.after.flops.Total(binding_, dims_);
    share.bytes_before = both.before.bytes.Total(binding_, dims_);
    share.bytes_after = both.after.bytes.Total(binding_, dims_);
    if (share.bytes_before.value > 0) {
      share.intensity = share.flops_before.value / share.bytes_before.value;
    } else if (share.bytes_after.value > 0) {
      share.intensity = share.flops_after.value / share.bytes_after.value;
    }
    if (total_before.time > 0) share.share_before = both.before.time / total_before.time;
    if (total_after.time > 0) share.share_after = both.after.time / total_after.time;
    return share;
  }

  const MeasuredGraph& before_;
  const MeasuredGraph& after_;
  Binding* binding_;
  DimTable* dims_;
};

}  // namespace

void SetShares(const MeasuredGraph& before, const MeasuredGraph& after, Binding* binding, DimTable* dims, Analysis* analysis) {
  Sharer(before, after, binding, dims).Run(analysis);
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
