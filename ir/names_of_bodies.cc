#include "ir/names_of_bodies.h"

namespace ascend_fuse {

void NamesOfBodies::Read(const Model& model) {
  read_ = true;
  for (const auto& body : model.graphs()) {
    if (body->owner() == nullptr) continue;
    for (const Value* value : body->inputs()) values_.try_emplace({body.get(), value->name}, value);
    for (const Value* value : body->initializers()) values_.try_emplace({body.get(), value->name}, value);
    for (const Node* node : body->nodes()) {
      for (const Value* value : node->outputs()) {
        if (value != nullptr) values_.try_emplace({body.get(), value->name}, value);
      }
    }
  }
}

const Value* NamesOfBodies::Find(const Value& value, const Graph& graph, bool beside) {
  if (value.graph == &graph) return nullptr;
  if (!read_) Read(graph.model());
  for (const Graph* at = &graph; at != value.graph && at->owner() != nullptr; at = at->owner()->graph) {
    for (const Graph* body : at->owner()->subgraphs()) {
      if (body != at && !beside) continue;
      const auto own = values_.find({body, value.name});
      if (own != values_.end() && own->second->name == value.name) return own->second;
    }
  }
  return nullptr;
}

std::vector<const Graph*> GraphsThatName(const Value& value) {
  std::vector<const Graph*> graphs = {value.graph};
  for (const Use* use = value.uses; use != nullptr; use = use->next) graphs.push_back(use->user->graph);
  return graphs;
}

}  // namespace ascend_fuse
