// Orders of channels: where a rotary kernel of halves stands for a rotation by pairs, the channels of every head are taken apart
// before it and joined after it. A projection whose weight has them apart, and a product of query and key that reads them apart,
// save moving them when the model runs.
#pragma once

#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "passes/layout/channel_backs.h"
#include "passes/layout/channel_fronts.h"
#include "passes/layout/order_client.h"

namespace ascend_fuse {

class ChannelOrders : public OrderClient {
 public:
  explicit ChannelOrders(OrderRun& run)
      : workspace_(run.workspace), facts_(run.workspace.facts()), fronts_(run.workspace), backs_(run.workspace) {}

  absl::Status Find() override;
  void Ask(OrderGraph* graph) override;
  absl::Status Write(const OrderGraph& graph) override;

 private:
  // All rotations that read one projection. The first order: the channels are those of the model; the second one: they are apart.
  struct Projection {
    std::vector<ChannelFront> fronts;
    OrderGraph::Choice choice = 0;
  };
  // A product of query and key with all rotations that it reads, likewise.
  struct Scores {
    std::vector<ChannelBack> ends;
    OrderGraph::Choice choice = 0;
  };

  void Look(const Node* kernel);
  void Say(const Node* kernel, std::string why);
  void WriteProjection(const std::vector<ChannelFront>& fronts);
  void WriteScores(const std::vector<ChannelBack>& ends);
  void Read(const Node* node, size_t index, const Value* value);

  Workspace& workspace_;
  Facts& facts_;
  const ChannelFronts fronts_;
  const ChannelBacks backs_;
  absl::flat_hash_map<const Value*, Site*> site_of_;
  std::vector<Projection> projections_;
  absl::flat_hash_map<const Node*, size_t> projection_of_;
  std::vector<Scores> scores_;
  absl::flat_hash_map<const Node*, size_t> scores_of_;
};

}  // namespace ascend_fuse
