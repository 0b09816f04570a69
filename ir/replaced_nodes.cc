#include "ir/replaced_nodes.h"

#include <algorithm>

namespace ascend_fuse {
namespace {

template <typename T>
bool IsIn(const std::vector<const T*>& list, const T* wanted) {
  return std::find(list.begin(), list.end(), wanted) != list.end();
}

}  // namespace

ReplacedNodes::ReplacedNodes(const Replacement& replacement) : replacement_(replacement) {
  const size_t most = 2 * replacement_.matched.size() + 16;
  std::vector<const Node*> work;
  for (const Value* output : replacement_.outputs) {
    if (output->producer != nullptr) work.push_back(output->producer);
  }
  while (!work.empty() && dying_.size() < most) {
    const Node* node = work.back();
    work.pop_back();
    if (Dies(node)) continue;
    const Node* reader = nullptr;
    bool needed = false;
    for (const Value* value : node->outputs()) needed = needed || (value != nullptr && IsNeeded(value, &reader));
    if (needed) continue;
    dying_.push_back(node);
    for (const Use& use : node->inputs()) {
      if (use.value == nullptr || use.value->producer == nullptr || IsIn<Value>(replacement_.inputs, use.value)) continue;
      const Node* producer = use.value->producer;
      work.insert(IsMatched(producer) ? work.end() : work.begin(), producer);
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
