// Pair rotations: sites of query and key that share cos and sin.
#include <algorithm>
#include <map>
#include <tuple>

#include "absl/container/flat_hash_set.h"
#include "passes/core/workspace.h"
#include "passes/recognise/passes.h"

namespace ascend_fuse {

// Query and key of one attention are turned by one cos and sin: two sites next to each other in the model's order that
// share both, of which neither needs the other.
absl::Status PairRotations(Workspace& workspace) {
  std::vector<Site>& sites = workspace.sites;
  std::map<std::tuple<const Graph*, std::string, uint32_t, uint32_t>, std::vector<int>> groups;
  for (size_t i = 0; i < sites.size(); ++i) {
    const Node* node = sites[i].node;
    if (sites[i].record.kind != "rotary" || node == nullptr || node->dead || Domain(*node) != "ascend_fuse") continue;
    if (node->input(1) == nullptr || node->input(2) == nullptr) continue;
    groups[{node->graph, std::string(StringAttribute(*node, "mode").value_or("")), workspace.numbering().Number(node->input(1)),
            workspace.numbering().Number(node->input(2))}]
        .push_back(static_cast<int>(i));
  }
  // Whether `from` computes something that `node` needs: the search stays between the two.
  auto needs = [](const Node* node, const Node* from) {
    std::vector<const Node*> work = {node};
    absl::flat_hash_set<const Node*> seen = {node};
    while (!work.empty()) {
      const Node* next = work.back();
      work.pop_back();
      if (next == from) return true;
      for (const Use& use : next->inputs()) {
        const Node* producer = use.value != nullptr ? use.value->producer : nullptr;
        if (producer == nullptr || producer->order < from->order || !seen.insert(producer).second) continue;
        work.push_back(producer);
      }
    }
    return false;
  };
  for (auto& [key, members] : groups) {
    std::sort(members.begin(), members.end(),
              [&](int a, int b) { return std::tie(sites[a].order, a) < std::tie(sites[b].order, b); });
    for (size_t i = 0; i + 1 < members.size(); ++i) {
      Site& first = sites[members[i]];
      Site& second = sites[members[i + 1]];
      const std::string& module = first.record.module;
      const bool apart = !module.empty() && !second.record.module.empty() && module != second.record.module;
      if (apart || first.node == second.node || needs(second.node, first.node)) continue;
      first.pair = members[i + 1];
      second.pair = members[i];
      ++i;
    }
  }
  return absl::OkStatus();
}

}  // namespace ascend_fuse
