// Orders of rows: linears, norms and all else that computes each row of channels from such rows alone do not ask in which order
// the rows lie. Where a model has its tokens before the batch, [S, B, E], and an attention the batch before them, such nodes have
// the batch first too where that leaves fewer Transposes.
#pragma once

#include "passes/layout/order_client.h"
#include "passes/layout/row_places.h"

namespace ascend_fuse {

class RowOrders : public OrderClient {
 public:
  explicit RowOrders(OrderRun& run) : run_(run), places_(run) {}

  absl::Status Find() override { return places_.Find(); }
  void Ask(OrderGraph* graph) override;
  absl::Status Write(const OrderGraph& graph) override;

 private:
  void AskWay(Way* way, OrderGraph* graph);

  OrderRun& run_;
  RowPlaces places_;
};

}  // namespace ascend_fuse
