#include "passes/recognise/equal_values.h"

#include <algorithm>

namespace ascend_fuse {

EqualValues::EqualValues(const Model& model, const ValueNumbering& numbering) : numbering_(numbering) {
  for (const auto& graph : model.graphs()) {
    for (const Node* node : graph->nodes()) {
      if (node->dead || node->output(0) == nullptr) continue;
      const bool copy = numbering.Source(node->output(0)) != nullptr;
      if (copy && !IsWeighting(*node)) continue;
      (copy ? weighted_ : members_)[{graph.get(), numbering.Number(node->output(0))}].push_back(node->output(0));
    }
  }
  for (Classes* classes : {&members_, &weighted_}) {
    for (auto& [key, values] : *classes) {
      if (values.size() == 1) continue;
      std::sort(values.begin(), values.end(),
                [](const Value* a, const Value* b) { return StandsBefore(*a->producer, *b->producer); });
    }
  }
}

const std::vector<const Value*>& EqualValues::In(const Classes& classes, const Value& value) const {
  static const std::vector<const Value*>* const kNone = new std::vector<const Value*>();
  const auto found = classes.find({value.graph, numbering_.Number(&value)});
  return found != classes.end() ? found->second : *kNone;
}

const std::vector<const Value*>& EqualValues::Of(const Value& value) const { return In(members_, value); }

const std::vector<const Value*>& EqualValues::Weighted(const Value& value) const { return In(weighted_, value); }

bool EqualValues::IsLookedAt(const Value& value) const {
  const Value* source = numbering_.Source(&value);
  if (source == nullptr) return true;
  if (CountReaders(*source) != 1) return false;
  const std::vector<const Value*>& same = Of(value);
  const auto read_once = [](const Value* one) { return CountReaders(*one) == 1; };
  return same.size() <= 1 || std::all_of(same.begin(), same.end(), read_once);
}

}  // namespace ascend_fuse
