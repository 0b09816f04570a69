// Choose orders: in which order of axes tensors around fused nodes are computed, so that fewer elements are moved. Each client
// says what the orders of its tensors cost, one minimum cut chooses, and the client writes that. What one writes may be a better
// start for another, so they take turns until nothing changes: then the model is a fixed point, and a second run leaves it as it
// is.
#include <memory>

#include "ir/status_macros.h"
#include "passes/core/workspace.h"
#include "passes/layout/channel_orders.h"
#include "passes/layout/head_orders.h"
#include "passes/layout/order_client.h"
#include "passes/layout/passes.h"
#include "passes/layout/row_orders.h"

namespace ascend_fuse {
namespace {

// Every turn that changes something makes the model cheaper; two rounds were the most that were seen.
constexpr int kMostRounds = 8;

// Whether the client changed anything.
absl::StatusOr<bool> TakeTurn(OrderClient&& client, Workspace& workspace) {
  RETURN_IF_ERROR(client.Find());
  OrderGraph graph;
  client.Ask(&graph);
  graph.Solve();
  const uint64_t changes = workspace.rewriter().Now().changes;
  RETURN_IF_ERROR(client.Write(graph));
  return workspace.rewriter().Now().changes != changes;
}

}  // namespace

absl::Status ChooseOrders(Workspace& workspace) {
  if (workspace.ChangesNothing() || workspace.target() == nullptr) return absl::OkStatus();
  workspace.rewriter().DropUnread(workspace.made_from());
  OrderRun run(workspace);
  // These hang on no other order.
  RETURN_IF_ERROR(TakeTurn(ChannelOrders(run), workspace).status());
  for (int round = 0; round < kMostRounds; ++round) {
    ASSIGN_OR_RETURN(const bool rows, TakeTurn(RowOrders(run), workspace));
    ASSIGN_OR_RETURN(const bool heads, TakeTurn(HeadOrders(run), workspace));
    if (!rows && !heads) break;
  }
  return absl::OkStatus();
}

}  // namespace ascend_fuse
