// What GE fuses itself stays in the form that it looks for: of the nodes of one such construct all are turned, or none.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/types/span.h"
#include "passes/core/workspace.h"
#include "passes/layout/order_graph.h"

namespace ascend_fuse {

class NodesOfGe {
 public:
  // A node whose order is chosen, and the order that it has.
  struct Place {
    const Node* node = nullptr;
    OrderGraph::Choice choice = 0;
    Order as_is = Order::kSecond;
  };

  explicit NodesOfGe(Workspace& workspace);

  // No choice turns some nodes of a construct without the others. `places`: all nodes whose order is chosen.
  void KeepTogether(absl::Span<const Place> places, OrderGraph* graph) const;
  // `made` stands in the place of `node`.
  void Turned(const Node& node, const Node& made);

 private:
  struct Construct {
    Site* site = nullptr;  // nullptr: of nodes of a file that was optimized before
    size_t nodes = 0;
  };
  // The node is part of the construct, which comes after all others until now.
  void Add(const Node& node, Construct* construct);

  std::vector<Construct> constructs_;
  absl::flat_hash_map<std::string, std::vector<size_t>> of_label_;
};

}  // namespace ascend_fuse
