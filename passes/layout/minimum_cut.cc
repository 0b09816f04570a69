#include "passes/layout/minimum_cut.h"

#include <algorithm>

namespace ascend_fuse {

int MinimumCut::AddQuestion() {
  edges_of_.emplace_back();
  return static_cast<int>(edges_of_.size()) - 1;
}

void MinimumCut::Cost(int a, int b, int64_t cost) {
  if (a == b || cost <= 0) return;
  edges_of_[static_cast<size_t>(a)].push_back(edges_.size());
  edges_.push_back({b, cost});
  edges_of_[static_cast<size_t>(b)].push_back(edges_.size());
  edges_.push_back({a, 0});
}

// How far each question is from kZero; false where kOne is not reached any more.
bool MinimumCut::FindLevels() {
  levels_.assign(edges_of_.size(), -1);
  levels_[kZero] = 0;
  std::vector<int> order = {kZero};
  for (size_t i = 0; i < order.size(); ++i) {
    const auto from = static_cast<size_t>(order[i]);
    for (const size_t e : edges_of_[from]) {
      const auto to = static_cast<size_t>(edges_[e].to);
      if (edges_[e].left == 0 || levels_[to] >= 0) continue;
      levels_[to] = levels_[from] + 1;
      order.push_back(edges_[e].to);
    }
  }
  return levels_[kOne] >= 0;
}

// Sends as much as one path takes from kZero to kOne; 0 where there is none left on these levels.
int64_t MinimumCut::Push() {
  std::vector<size_t> path;
  int at = kZero;
  while (at != kOne) {
    const auto from = static_cast<size_t>(at);
    bool moved = false;
    for (size_t& i = next_[from]; i < edges_of_[from].size(); ++i) {
      const size_t e = edges_of_[from][i];
      if (edges_[e].left == 0 || levels_[static_cast<size_t>(edges_[e].to)] != levels_[from] + 1) continue;
      path.push_back(e);
      at = edges_[e].to;
      moved = true;
      break;
    }
    if (moved) continue;
    if (path.empty()) return 0;
    at = edges_[path.back() ^ 1].to;  // a dead end: one back, and its edge is not tried again
    path.pop_back();
    ++next_[static_cast<size_t>(at)];
  }
  int64_t flow = kNever;
  for (const size_t e : path) flow = std::min(flow, edges_[e].left);
  for (const size_t e : path) {
    edges_[e].left -= flow;
    edges_[e ^ 1].left += flow;
  }
  return flow;
}

void MinimumCut::Solve() {
  while (FindLevels()) {
    next_.assign(edges_of_.size(), 0);
    while (Push() > 0) {
    }
  }
  reached_.assign(edges_of_.size(), false);
  for (size_t i = 0; i < levels_.size(); ++i) reached_[i] = levels_[i] >= 0;
}

}  // namespace ascend_fuse
