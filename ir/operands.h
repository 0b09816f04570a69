// Whether it is known what the operators of a model are, and whether its nodes have the inputs and the output that they need.
#pragma once

#include "absl/status/status.h"
#include "ir/model.h"

namespace ascend_fuse {

// Whether the model has a function of the node's domain and operator.
bool IsCall(const Node& node);

// INVALID_ARGUMENT with a sentence about the first node of an operator of ONNX if the model imports no version of those (or 0 or
// less, which there is not). Operators of different versions compute different things, and what is imported else is up to the
// runtime: ONNX Runtime refuses some of these models, and takes its newest version for others.
absl::Status CheckImports(const Model& model);

// INVALID_ARGUMENT with a sentence about the first node of a known operator that lacks an input which is not optional, or
// every output. No runtime takes such a model, and what looks at nodes of a known operator may rely on that.
absl::Status CheckOperands(const Model& model);

}  // namespace ascend_fuse
