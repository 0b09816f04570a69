// What a place of the graph looks like from a root on upstream, as one number: layers that are written alike have the same
// number, so that what was found out about one of them need not be looked for in the others.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "ir/graph.h"
#include "ir/infer/facts.h"

namespace ascend_fuse {

class Neighbourhoods {
 public:
  explicit Neighbourhoods(const Facts& facts) : facts_(facts) {}

  // Of `root` and the nodes before it: operators, attributes, which operands are the same, types, shapes and numbers, for so many
  // nodes as rules look at. Names do not count.
  uint64_t Of(const Node* root);
  // Of all these roots, in their order, and of which reads which.
  uint64_t Of(const std::vector<const Node*>& roots);

 private:
  uint64_t Compute(const Node* root);
  uint64_t OfNode(const Node& node);
  uint64_t OfOperand(const Value* value);
  uint64_t OfFact(const Value& value) const;
  uint32_t Number(const void* node_or_value);

  const Facts& facts_;
  absl::flat_hash_map<const Node*, uint64_t> known_;
  // Of the root that is looked at: nodes and inputs in the order in which they are met.
  absl::flat_hash_map<const void*, uint32_t> numbers_;
  std::vector<const Node*> queue_;
};

}  // namespace ascend_fuse
