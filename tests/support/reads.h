// Who reads what in a model: what its file must say by names alone.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "fmt/format.h"
#include "ir/graph.h"
#include "ir/model.h"

namespace ascend_fuse::testing {

inline bool IsAlive(const Graph& graph) {
  for (const Graph* at = &graph; at->owner() != nullptr; at = at->owner()->graph) {
    if (at->owner()->dead) return false;
  }
  return true;
}

// A value as it is seen in `graph`: its name, and how many bodies lie between the two.
inline std::string Seen(const Value* value, const Graph* graph) {
  if (value == nullptr) return "-";
  int bodies = 0;
  for (; graph != value->graph && graph->owner() != nullptr; graph = graph->owner()->graph) ++bodies;
  return fmt::format("{}^{}", ValueName(*value), bodies);
}

// A line a node that is alive, and one a graph with its outputs, sorted.
inline std::vector<std::string> Reads(const Model& model) {
  std::vector<std::string> lines;
  for (const auto& graph : model.graphs()) {
    if (!IsAlive(*graph)) continue;
    for (const Node* node : graph->nodes()) {
      if (node->dead) continue;
      std::vector<std::string> inputs;
      for (const Use& use : node->inputs()) inputs.push_back(Seen(use.value, graph.get()));
      while (!inputs.empty() && inputs.back() == "-") inputs.pop_back();
      std::vector<std::string> outputs;
      for (const Value* value : node->outputs()) {
        if (value != nullptr && value->producer == node) outputs.push_back(Seen(value, graph.get()));
      }
      lines.push_back(
          fmt::format("{} {} ({}) => ({})", NodeName(*node), OpType(*node), fmt::join(inputs, ", "), fmt::join(outputs, ", ")));
    }
    std::vector<std::string> outputs;
    for (const Value* value : graph->outputs()) outputs.push_back(Seen(value, graph.get()));
    lines.push_back(fmt::format("=> ({})", fmt::join(outputs, ", ")));
  }
  std::sort(lines.begin(), lines.end());
  return lines;
}

}  // namespace ascend_fuse::testing
