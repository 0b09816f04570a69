// Pad heads: zeros after the channels of every head of an attention whose kernel takes no heads of that size, written into
// the weights of the projections of query, key and value, and taken out again by the weights of what reads the result.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "passes/core/workspace.h"
#include "passes/layout/padding_writer.h"

namespace ascend_fuse {

// The size of heads with which the target takes `kernel`, a node of ours over tensors [B, N, S, D] that it refuses as it is; 0
// where no other size helps. FAILED_PRECONDITION with a clause where one would, and is too wide to pay.
absl::StatusOr<int64_t> HeadsTaken(const Node& kernel, Workspace& workspace);

class HeadPadder {
 public:
  explicit HeadPadder(Workspace& workspace) : workspace_(workspace) {}

  // Writes the attention (an operator ascend_fuse.Attention) with heads of `width` in query, key and value. FAILED_PRECONDITION
  // with a clause where zeros cannot be put there, or something else would see them; then the graph may be half changed,
  // and the caller takes everything since a mark of his back.
  absl::StatusOr<PaddedHeads> Pad(const Node* attention, int64_t width);
  // To be called when something was taken back.
  void Forget() { padded_.clear(); }

 private:
  Workspace& workspace_;
  PaddedConstants padded_;
};

}  // namespace ascend_fuse
