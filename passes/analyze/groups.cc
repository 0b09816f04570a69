#include "passes/analyze/groups.h"

#include <algorithm>
#include <utility>

#include "absl/container/flat_hash_set.h"

namespace ascend_fuse {

NodePlaces::NodePlaces(const MeasuredGraph& graph) {
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    names_.try_emplace(graph.nodes[i].name, static_cast<int>(i));
    for (const std::string& output : graph.nodes[i].outputs) outputs_.try_emplace(output, static_cast<int>(i));
  }
}

int NodePlaces::OfName(std::string_view name) const {
  const auto found = names_.find(std::string(name));
  return found != names_.end() ? found->second : -1;
}

int NodePlaces::OfOutput(std::string_view value) const {
  const auto found = outputs_.find(std::string(value));
  return found != outputs_.end() ? found->second : -1;
}

std::vector<int> MembersOf(const SiteRecord& site, const NodePlaces& places) {
  std::vector<int> members;
  for (const std::string& name : site.covers) {
    const int place = places.OfName(name);
    if (place >= 0 && std::find(members.begin(), members.end(), place) == members.end()) members.push_back(place);
  }
  std::sort(members.begin(), members.end());
  return members;
}

std::vector<std::vector<int>> GroupsOfGe(const std::vector<SiteRecord>& sites, const NodePlaces& places, bool after) {
  std::vector<std::vector<int>> groups;
  absl::flat_hash_set<int> taken;
  // A site of a sum takes the norm that reads it along: it comes before that norm's own.
  const auto add = [&](const SiteRecord& site) {
    if (site.state != "by_ge" || site.outputs.empty()) return;
    std::vector<int> members = MembersOf(site, places);
    const int computes = places.OfOutput(site.outputs[0]);
    const bool whole = std::find(members.begin(), members.end(), computes) != members.end();
    // What GE joins with a node that we make is not joined in the model as it is.
    if (!whole && (!after || computes < 0)) return;
    if (!whole) members.push_back(computes);
    std::erase_if(members, [&](int member) { return taken.contains(member); });
    if (members.size() < 2) return;
    taken.insert(members.begin(), members.end());
    groups.push_back(std::move(members));
  };
  for (const SiteRecord& site : sites) {
    if (site.kind == "add_norm") add(site);
  }
  for (const SiteRecord& site : sites) {
    if (site.kind != "add_norm") add(site);
  }
  return groups;
}

}  // namespace ascend_fuse
