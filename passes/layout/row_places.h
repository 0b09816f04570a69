// The nodes around attentions that compute rows and have the tokens before the batch, and the ways between them.
#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "passes/layout/axis_exchange.h"
#include "passes/layout/order_client.h"
#include "passes/layout/row_ways.h"
#include "passes/layout/way_forms.h"

namespace ascend_fuse {

// A node that computes rows and has the tokens first.
struct RowPlace {
  const Node* node = nullptr;
  Rows rows;
  ExchangedAxes axes;
  Exchangeable exchangeable;
  OrderGraph::Choice choice = 0;  // the first order: the batch first; the second one: as it is
  bool may_change = true;
  bool changes = false;
};

class RowPlaces {
 public:
  explicit RowPlaces(OrderRun& run)
      : run_(run), facts_(run.workspace.facts()), ways_(run.workspace), forms_(run.workspace, run.costs) {}

  // All that can be reached from attentions in BNSD.
  absl::Status Find();

  std::vector<RowPlace>& all() { return places_; }
  RowWays& ways() { return ways_; }
  WayForms& forms() { return forms_; }
  // Of each attention, the ways to its operands and from its results.
  const std::vector<std::vector<Way*>>& attentions() const { return attentions_; }

  // The place that computes the value; nullptr for one that is not a choice.
  RowPlace* MakerOf(const Value* value);
  // The places that read the end of the way, and whether anything else does that does not only ask for its dims.
  std::pair<std::vector<RowPlace*>, bool> ReadersOf(const Way& way);
  // Whether anybody reads the end of the way as it is.
  bool StaysRead(const Way& way);

 private:
  void Look(const Node* attention);
  void LookBehind(const Way& way, size_t nodes);
  void Reach(size_t at);
  void ReachBack(Way& way, const Atoms& tokens, const Atoms& batch);
  void ReachAhead(Way& way, const Atoms& tokens, const Atoms& batch);
  void AddPlace(const Node* node, const Value* value, const Rows& rows);

  OrderRun& run_;
  Facts& facts_;
  RowWays ways_;
  WayForms forms_;
  std::vector<std::vector<Way*>> attentions_;
  std::vector<RowPlace> places_;
  absl::flat_hash_map<const Node*, size_t> place_of_;
};

}  // namespace ascend_fuse
