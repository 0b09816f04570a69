// Which nodes nothing needs any more once some values are computed by something else.
#pragma once

#include <cstddef>
#include <vector>

#include "ir/graph.h"

namespace ascend_fuse {

// What is replaced: nodes that were matched, between values that stay and values that something else computes then.
struct Replacement {
  std::vector<const Value*> inputs;   // these stay
  std::vector<const Value*> outputs;  // something else computes these
  const std::vector<const Node*>& matched;
};

class ReplacedNodes {
 public:
  // `replacement` must outlive this. The search goes back from the outputs in the order of the graph, and stops at the inputs and
  // after four times as many nodes as were matched and 64 more: a program that computes a shape may be longer.
  explicit ReplacedNodes(const Replacement& replacement);

  bool Dies(const Node* node) const;
  // Whether `value` is still needed, as an output of the graph or for a reader that stays: that is in `reader`, one that was
  // not matched if there is one. Who reads but the shape of what was matched does not need its elements.
  bool IsNeeded(const Value* value, const Node** reader) const;

 private:
  bool IsMatched(const Node* node) const;

  const Replacement& replacement_;
  std::vector<const Node*> dying_;
};

}  // namespace ascend_fuse
