// What differs between two versions of a model, place by place: which nodes compute a value in the one and which in the
// other.
#pragma once

#include <string>
#include <vector>

#include "ir/model.h"

namespace ascend_fuse {

// Nodes that compute one value, or values that have one node in common, of which both models know the names.
struct Difference {
  std::string module;               // of a node of it, "" where no name tells
  std::vector<std::string> values;  // names that both models have, in the order of the second
  std::vector<std::string> before;  // operators of the first model, as "npu.NPURmsNorm", in their order
  std::vector<std::string> after;   // of the second
};

struct ModelDiff {
  std::vector<std::string> frame;  // sentences about opset, domains, inputs and outputs
  std::vector<Difference> places;  // in the order of the second model, then what only the first has
  int64_t nodes_before = 0;
  int64_t nodes_after = 0;

  bool empty() const { return frame.empty() && places.empty(); }
};

// Nodes are the same when operator, attributes and the names of inputs and outputs are; a name stands for a value of the
// same name. Looks at the main graph; a node with bodies counts as one, and differs where a byte of it does. Weights are
// compared by name, type and dims, not by their elements.
ModelDiff Diff(const Model& before, const Model& after);

// As text: places that differ in the number of a layer only are one.
std::string DiffToText(const ModelDiff& diff);

}  // namespace ascend_fuse
