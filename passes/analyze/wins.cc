#include "passes/analyze/wins.h"

#include <algorithm>
#include <utility>

#include "passes/report/place_pattern.h"

namespace ascend_fuse {

void Win::Add(const MeasuredNode& node) {
  time += node.time.middle;
  kernels += static_cast<int64_t>(node.launches);
  bytes += node.work.bytes * node.times;
}

Win Take(const MeasuredGraph& graph, const std::vector<int>& members, std::vector<bool>* claimed) {
  Win sum;
  for (const int member : members) {
    if ((*claimed)[static_cast<size_t>(member)]) continue;
    (*claimed)[static_cast<size_t>(member)] = true;
    sum.Add(graph.nodes[static_cast<size_t>(member)]);
  }
  return sum;
}

Win IfJoined(const MeasuredGraph& graph, const std::vector<int>& members, WorkKind kind, const CostModel& model) {
  Win win;
  double times = 1;
  for (const int member : members) {
    win.Add(graph.nodes[static_cast<size_t>(member)]);
    times = graph.nodes[static_cast<size_t>(member)].times;
  }
  if (win.kernels == 0) return win;
  const KernelWork joined = Joined(graph, members, kind);
  win.time = std::max(0.0, win.time - model.TimeOf(joined).middle * times);
  win.bytes = std::max(0.0, win.bytes - joined.bytes * times);
  --win.kernels;
  return win;
}

void WinsByPlace::Add(OpportunityRecord record, const std::string& place, const std::string& node, const Win& win) {
  // What stopped a rule has the name of its layer.
  const std::string because = record.kind == "near_miss" ? PlacePattern(record.because) : record.because;
  const Key key(record.kind, record.state, record.emitted_op, because, PlacePattern(place));
  const auto [at, added] = index_.try_emplace(key, records_.size());
  if (added) {
    record.place = place;
    records_.push_back(std::move(record));
  } else {
    records_[at->second].place = PlacePattern(place);
  }
  OpportunityRecord& group = records_[at->second];
  ++group.count;
  group.gain += win.time;
  group.kernels_saved += win.kernels;
  group.bytes_saved += win.bytes;
  group.nodes.push_back(node);
}

std::vector<OpportunityRecord> WinsByPlace::Finish(double whole) {
  for (OpportunityRecord& record : records_) record.gain = whole > 0 ? record.gain / whole : 0;
  std::stable_sort(records_.begin(), records_.end(), [](const auto& a, const auto& b) { return a.gain > b.gain; });
  return std::move(records_);
}

}  // namespace ascend_fuse
