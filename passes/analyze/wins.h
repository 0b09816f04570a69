// What opportunities are made of: what one place wins, the nodes that are counted already, and places of one kind together.
#pragma once

#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "passes/analyze/measure.h"

namespace ascend_fuse {

// What one place of an opportunity wins.
struct Win {
  double time = 0;
  int64_t kernels = 0;
  double bytes = 0;

  void Add(const MeasuredNode& node);
};

// Time, kernels and bytes of nodes that no other opportunity counts: each counts once.
Win Take(const MeasuredGraph& graph, const std::vector<int>& members, std::vector<bool>* claimed);

// What one kernel in place of these nodes would win.
Win IfJoined(const MeasuredGraph& graph, const std::vector<int>& members, WorkKind kind, const CostModel& model);

// Opportunities with one kind, fate, reason and place but for the number of the layer are one record.
class WinsByPlace {
 public:
  void Add(OpportunityRecord record, const std::string& place, const std::string& node, const Win& win);
  // Most gain first; `whole` is the time that gains become shares of.
  std::vector<OpportunityRecord> Finish(double whole);

  std::vector<OpportunityRecord>& records() { return records_; }

 private:
  using Key = std::tuple<std::string, std::string, std::string, std::string, std::string>;
  std::map<Key, size_t> index_;
  std::vector<OpportunityRecord> records_;
};

// Of the graph that is written, what no site counts: factors and summands that a linear can take along, chains of elementwise
// kernels, and products of one value. What is counted is claimed.
void AddAffines(const MeasuredGraph& graph, std::vector<bool>* claimed, WinsByPlace* wins);
void AddChains(const MeasuredGraph& graph, const std::vector<bool>& claimed, const CostModel& model, WinsByPlace* wins);
void AddProjections(const MeasuredGraph& graph, const CostModel& model, WinsByPlace* wins);

}  // namespace ascend_fuse
