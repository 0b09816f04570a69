// Before a rotation by halves that stands for one by pairs: the channels of every head are taken apart there, which is an order
// of the columns of the projection's weight.
#pragma once

#include <string>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "passes/core/workspace.h"
#include "passes/layout/channel_paths.h"
#include "patterns/analysis/linear.h"

namespace ascend_fuse {

// What a rotation reads, from the kernel back to its projection.
struct ChannelFront {
  const Node* kernel = nullptr;
  std::vector<const Value*> path;  // the kernel's operand first, what the projection gives last
  Reordered apart;
  const Value* base = nullptr;  // of the path: the value by whose last axis channels are counted
  LinearView linear;
  ChannelOrder channels;  // of base, that `apart.earlier` is made of
};

class ChannelFronts {
 public:
  explicit ChannelFronts(Workspace& workspace) : context_(workspace.Context()) {}

  // Of front->kernel. Empty where there is nothing to fold (base stays nullptr) or everything is as it has to be; else what is in
  // the way.
  std::string Find(ChannelFront* front) const;

 private:
  std::string WhyNotOrdered(const LinearView& linear) const;
  std::string FindChannels(ChannelFront* front, const Value** base) const;
  std::string WhyReadElsewhere(const ChannelFront& front, const Value* base) const;
  bool ReadsOthers(const Node& node, const Value* besides, const absl::flat_hash_set<int64_t>& turned, const Value* base) const;

  const FunctionContext context_;
};

}  // namespace ascend_fuse
