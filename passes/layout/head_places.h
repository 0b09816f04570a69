// The nodes around attentions that compute the same with heads and tokens exchanged, and the tensors between them.
#pragma once

#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "passes/layout/axis_exchange.h"
#include "passes/layout/head_tensors.h"
#include "passes/layout/order_client.h"

namespace ascend_fuse {

// A node whose order is chosen.
struct HeadPlace {
  const Node* node = nullptr;
  bool is_attention = false;
  Exchangeable exchangeable;
  Order as_is = kHeadsFirst;
  OrderGraph::Choice operands = 0;  // one choice but for an attention
  OrderGraph::Choice results = 0;
  Order chosen_operands = kHeadsFirst;
  Order chosen_results = kHeadsFirst;

  bool changes() const { return chosen_operands != as_is || chosen_results != as_is; }
};

// What an attention with these orders has as its input_layout.
std::string_view InputLayout(Order operands, Order results);

class HeadPlaces {
 public:
  explicit HeadPlaces(OrderRun& run) : run_(run), facts_(run.workspace.facts()), tensors_(facts_) {}

  // All that can be reached from attentions in BNSD.
  absl::Status Find();

  std::vector<HeadPlace>& all() { return places_; }
  HeadTensors& tensors() { return tensors_; }
  const HeadPlace* MakerOf(const HeadTensor& tensor) const {
    return tensor.maker >= 0 ? &places_[static_cast<size_t>(tensor.maker)] : nullptr;
  }
  // The place of a node; nullptr for one that is not a choice.
  const HeadPlace* PlaceOf(const Node* node) const;
  bool IsTaken(const HeadPlace& place, Order operands, Order results);
  // Whether all its tensors are in its order, as they are: what is added to its own Transpose has none.
  bool Agree(const HeadPlace& place) const;

 private:
  int AddPlace(const Node* node, Order as_is, bool is_attention);
  int AddIfExchangeable(const Node* node, Order order);
  void Reach(size_t at);
  void ReachTensor(const Value* value, Order order);

  OrderRun& run_;
  Facts& facts_;
  HeadTensors tensors_;
  std::vector<HeadPlace> places_;
  absl::flat_hash_map<const Node*, int> place_of_;
};

}  // namespace ascend_fuse
