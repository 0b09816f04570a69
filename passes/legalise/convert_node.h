// One node from one version of its operator to another: parameters move between attributes and inputs, and attributes whose
// defaults differ are written out. Where the versions do not mean the same, there is a sentence and no node.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "ir/infer/facts.h"
#include "ir/rewriter.h"

namespace ascend_fuse {

// What a node becomes. Inputs that were attributes are constants still to be made.
struct NodeConversion {
  struct Input {
    const Value* value = nullptr;          // nullptr with no elements: absent
    DataType type = DataType::kUndefined;  // of a constant to be made
    std::vector<int64_t> dims;
    std::string bytes;
  };
  std::vector<Input> inputs;
  std::vector<Attribute> attributes;
};

// How `node`, of the default domain and read at opset `from`, is written at opset `to`: a later one, or 17 and what follows it
// (of older ones the types that operators came to take are not known here). No value where it stays as it is, to the byte.
// FAILED_PRECONDITION with a clause that continues the operator's name ("is not there at opset 17") where no form of the same
// operator computes the same.
absl::StatusOr<std::optional<NodeConversion>> ConvertNode(const Node& node, int64_t from, int64_t to, const Facts& facts);

// The node in its new form, in the place of `node`; of a dead one, where it may come back; of one that
// was made, so that what it stands for may.
const Node* Write(const NodeConversion& conversion, const Node& node, Rewriter* rewriter);

}  // namespace ascend_fuse
