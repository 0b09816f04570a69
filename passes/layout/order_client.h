// Who takes part in choosing orders: it finds the tensors and nodes that are in play, says what their orders cost, and writes
// what was chosen. The pass `choose_orders` asks one after another until none finds anything better.
#pragma once

#include "absl/status/status.h"
#include "passes/core/workspace.h"
#include "passes/layout/attention_layout.h"
#include "passes/layout/nodes_of_ge.h"
#include "passes/layout/order_graph.h"
#include "passes/layout/taken_orders.h"

namespace ascend_fuse {

// What all clients of one run share.
struct OrderRun {
  explicit OrderRun(Workspace& of) : workspace(of), taken(of.facts(), *of.target()), costs(of.target()->chip()), of_ge(of) {}

  Workspace& workspace;
  TakenOrders taken;
  LayoutCosts costs;
  NodesOfGe of_ge;
};

class OrderClient {
 public:
  virtual ~OrderClient() = default;

  virtual absl::Status Find() = 0;
  virtual void Ask(OrderGraph* graph) = 0;
  // After Solve.
  virtual absl::Status Write(const OrderGraph& graph) = 0;
};

}  // namespace ascend_fuse
