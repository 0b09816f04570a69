// Whether the target takes Ascend nodes in another order of their axes. Layers ask the same again and again: it is answered once.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "ir/infer/facts.h"
#include "passes/layout/axis_exchange.h"
#include "patterns/target/target.h"

namespace ascend_fuse {

class TakenOrders {
 public:
  TakenOrders(Facts& facts, const Target& target) : facts_(facts), target_(target) {}

  // Whether the target takes the node with the axes of these operands exchanged, and `input_layout` in place of its own where it
  // has one and this is not empty, and assumes no more than it does of the node as it is. Nodes of ONNX are always taken.
  bool Takes(const Node& node, const std::vector<size_t>& operands, const ExchangedAxes& axes,
             std::string_view input_layout = "");
  // Whether it takes `after` in place of `before`, and assumes no more than it does of that.
  bool TakesAs(const Call& before, const Call& after);

 private:
  struct Known {
    bool legal = false;
    std::vector<std::string> assumptions;
  };
  const Known& Ask(const Call& call);

  Facts& facts_;
  const Target& target_;
  absl::flat_hash_map<std::string, Known> known_;  // by all that the call is
};

}  // namespace ascend_fuse
