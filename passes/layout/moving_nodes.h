// How nodes that move elements are written where their tensors change: with two axes exchanged, or with zeros along some. What
// a node does to positions is asked of its movement (ir/movement/movement.h); which attribute or input of its operator says so
// is known here alone.
#pragma once

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "ir/infer/facts.h"
#include "passes/core/workspace.h"
#include "passes/layout/axis_exchange.h"
#include "passes/layout/zero_padding.h"

namespace ascend_fuse {

// Whether its axes are named where they can be written, whichever of those of its tensors are exchanged.
bool CanExchangeAxes(const Node& node, const Facts& facts);
// Exchanges them in `plan`, which is that of the node. What it makes for that stands in front of the node.
void ExchangeAxes(const Node& node, const ExchangedAxes& axes, Workspace& workspace, NewNode* plan);

// An initializer, or what a Constant node gives.
bool IsGiven(const Value* value);

// Whether it can be written for tensors with zeros along axes.
bool CanBePadded(const Node& node);
// `node` with its parameters (the dims of a Reshape, the starts of a Slice) as its padded outputs ask for; its inputs are still
// the old ones. `first` is the padding of its input 0. What it makes for those stands in front of it. FAILED_PRECONDITION with
// a clause where they cannot be written.
absl::StatusOr<NewNode> PaddedNode(const Node& node, absl::Span<const ZeroPadding> outputs, const ZeroPadding& first,
                                   Workspace& workspace);

}  // namespace ascend_fuse
