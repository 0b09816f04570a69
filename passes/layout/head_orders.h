// Orders of heads: whether the tensors of an attention have its heads before the tokens (BNSD) or after them (BSND), so that all
// Transposes around it, and what the kernel takes longer, cost least. The choice is one for attention, rotary embedding, norms of
// heads, cache and everything else between them that computes the same either way.
#pragma once

#include "passes/layout/head_places.h"
#include "passes/layout/order_client.h"

namespace ascend_fuse {

class HeadOrders : public OrderClient {
 public:
  explicit HeadOrders(OrderRun& run) : run_(run), facts_(run.workspace.facts()), places_(run) {}

  absl::Status Find() override { return places_.Find(); }
  void Ask(OrderGraph* graph) override;
  absl::Status Write(const OrderGraph& graph) override;

 private:
  void AskPlace(HeadPlace* place, OrderGraph* graph);
  void AskTensor(const HeadTensor& tensor, OrderGraph* graph);
  OrderGraph::Choice ChoiceOf(const Use& use, Order as_is) const;
  int64_t CostOfExchange(const HeadTensor& tensor) const;

  OrderRun& run_;
  Facts& facts_;
  HeadPlaces places_;
};

}  // namespace ascend_fuse
