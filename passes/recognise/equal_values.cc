#include "passes/recognise/equal_values.h"

#include <algorithm>

namespace ascend_fuse {

EqualValues::EqualValues(const Model& model, const ValueNumbering& numbering) : numbering_(numbering) {
  for (const auto& graph : model.graphs()) {
    for (Node* node : graph->nodes()) {
      if (node->dead || node->output(0) == nullptr || numbering.Source(node->output(0)) != nullptr) continue;
      members_[{graph.get(), numbering.Number(node->output(0))}].push_back(node->output(0));
    }
  }
  for (auto& [key, values] : members_) {
    if (values.size() == 1) continue;
    std::sort(values.begin(), values.end(),
              [](const Value* a, const Value* b) { return StandsBefore(*a->producer, *b->producer); });
  }
}

const std::vector<Value*>& EqualValues::Of(const Value& value) const {
  static const std::vector<Value*>* const kNone = new std::vector<Value*>();
  const auto found = members_.find({value.graph, numbering_.Number(&value)});
  return found != members_.end() ? found->second : *kNone;
}

bool EqualValues::IsLookedAt(const Value& value) const {
  const Value* source = numbering_.Source(&value);
  if (source == nullptr) return true;
  return CountReaders(*source) == 1 && Of(value).size() <= 1;
}

}  // namespace ascend_fuse
