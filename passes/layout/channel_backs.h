// After a rotation by halves that stands for one by pairs: the channels of every head are joined there, which is not needed where
// query and key have the same order and only their product reads them, because (P q) . (P k) = q . k.
#pragma once

#include <string>
#include <vector>

#include "ir/movement/movement.h"
#include "passes/core/workspace.h"
#include "passes/layout/channel_paths.h"

namespace ascend_fuse {

// How the product of query and key reads what a rotation gives.
struct ChannelBack {
  const Node* kernel = nullptr;
  Reordered joined;
  std::vector<const Value*> path;  // from `joined.later` to the operand
  const Node* scores = nullptr;
  size_t operand = 0;
  int64_t offset = 0;  // of the channels in the operand's
  int64_t width = 0;   // of the operand
};

class ChannelBacks {
 public:
  explicit ChannelBacks(Workspace& workspace) : context_(workspace.Context()) {}

  // Of back->kernel. Empty where nothing is joined (scores stays nullptr) or everything is as it has to be; else what is in the
  // way.
  std::string Find(ChannelBack* back) const;

 private:
  std::string FindScores(ChannelBack* back) const;
  std::string Pass(const Node& node, size_t operand, int rank, int* from_end, ChannelBack* back) const;
  std::string PassMove(const Movement& movement, size_t operand, int rank, int* from_end, ChannelBack* back) const;

  const FunctionContext context_;
};

}  // namespace ascend_fuse
