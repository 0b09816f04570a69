#include "passes/layout/node_copier.h"

#include "fmt/format.h"

namespace ascend_fuse {

const Value* NodeCopier::Copy(const Value* value) {
  const auto known = copies_.find(value);
  if (known != copies_.end()) return known->second;
  const Node* node = value->producer;
  if (node == nullptr || !nodes_.contains(node)) return value;
  NewNode plan = PlanOf(*node);
  for (const Value*& input : plan.inputs) input = input != nullptr ? Copy(input) : nullptr;
  const Node* copy =
      workspace_.rewriter().Insert(plan, node->output_count, node->graph, fmt::format("{}_ordered", ValueName(*node->output())));
  workspace_.Refresh(copy);
  for (size_t i = 0; i < node->output_count; ++i) {
    if (node->output(i) == nullptr) continue;
    copies_[node->output(i)] = copy->output(i);
    copied_.push_back(node->output(i));
  }
  return copies_.at(value);
}

}  // namespace ascend_fuse
