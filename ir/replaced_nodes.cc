#include "ir/replaced_nodes.h"

#include <algorithm>
#include <queue>
#include <tuple>
#include <vector>

namespace ascend_fuse {
namespace {

template <typename T>
bool IsIn(const std::vector<const T*>& list, const T* wanted) {
  return std::find(list.begin(), list.end(), wanted) != list.end();
}

// Who reads a value is looked at before what computes it: later nodes first, and those of a body before those around it.
struct LaterFirst {
  static auto Place(const Node& node) {
    size_t bodies = 0;
    for (const Node* owner = node.graph->owner(); owner != nullptr; owner = owner->graph->owner()) ++bodies;
    return std::tuple(bodies, node.graph->owner() != nullptr ? node.graph->owner()->id : 0, node.order, node.id);
  }
  bool operator()(const Node* a, const Node* b) const { return Place(*a) < Place(*b); }
};

}  // namespace

ReplacedNodes::ReplacedNodes(const Replacement& replacement) : replacement_(replacement) {
  const size_t most = 4 * replacement_.matched.size() + 64;
  std::priority_queue<const Node*, std::vector<const Node*>, LaterFirst> work;
  for (const Value* output : replacement_.outputs) {
    if (output->producer != nullptr) work.push(output->producer);
  }
  while (!work.empty() && dying_.size() < most) {
    const Node* node = work.top();
    work.pop();
    if (Dies(node)) continue;
    const Node* reader = nullptr;
    bool needed = false;
    for (const Value* value : node->outputs()) needed = needed || (value != nullptr && IsNeeded(value, &reader));
    if (needed) continue;
    dying_.push_back(node);
    for (const Use& use : node->inputs()) {
      if (use.value == nullptr || use.value->producer == nullptr || IsIn<Value>(replacement_.inputs, use.value)) continue;
      work.push(use.value->producer);
    }
  }
}

bool ReplacedNodes::Dies(const Node* node) const { return IsIn(dying_, node); }
bool ReplacedNodes::IsMatched(const Node* node) const { return IsIn(replacement_.matched, node); }

bool ReplacedNodes::IsNeeded(const Value* value, const Node** reader) const {
  *reader = nullptr;
  if (IsIn(replacement_.outputs, value)) return false;
  for (const Use& use : LiveUses(*value)) {
    if (Dies(use.user) || (IsOp(*use.user, "Shape") && IsMatched(value->producer))) continue;
    if (*reader == nullptr || !IsMatched(use.user)) *reader = use.user;
  }
  return *reader != nullptr || value->is_graph_output;
}

}  // namespace ascend_fuse
