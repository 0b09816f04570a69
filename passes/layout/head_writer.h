// Writes the tensors of heads and tokens in the orders that were chosen.
#pragma once

#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "passes/core/node_inserter.h"
#include "passes/core/workspace.h"
#include "passes/layout/head_places.h"

namespace ascend_fuse {

class HeadWriter {
 public:
  // `places` have what was chosen for them.
  HeadWriter(OrderRun& run, HeadPlaces& places);

  absl::Status Write();

 private:
  absl::Status WritePlace(const HeadPlace& place);
  void WriteResult(const Value* before, const Value* now, Order order);
  void WriteMembers(HeadTensor& tensor);
  void WriteAsReshape(const Value* exchanged);
  void WriteBetween(const Node* node);
  bool WriteReshapeBetween(const Node* node, const Value* now);
  bool WriteSqueezeBetween(const Node* node, const Value* now);
  void WriteDims(const Value* before, const Value* now, const std::vector<int64_t>& order = {0, 2, 1, 3});
  const Value* Provide(HeadTensor* tensor, Order order);
  NewNode PlanExchanged(const Value* value, NodeInserter* inserter) const;

  Workspace& workspace_;
  NodesOfGe& of_ge_;
  const Facts& facts_;
  HeadPlaces& places_;
  HeadTensors& tensors_;
  const uint32_t newest_;                                           // of the values of the file
  absl::flat_hash_map<const Value*, std::vector<Site*>> sites_of_;  // by what they compute
  absl::flat_hash_map<const Value*, const Value*> copies_;          // results as they were, and what they are exchanged of now
};

}  // namespace ascend_fuse
