#include "passes/layout/nodes_of_ge.h"

#include <algorithm>

#include "passes/core/joined_sums.h"
#include "passes/core/workspace.h"

namespace ascend_fuse {
namespace {

// What computes a constant is not turned and need not be.
bool OfConstantsAlone(const Node& node) {
  return std::all_of(node.inputs().begin(), node.inputs().end(),
                     [](const Use& use) { return use.value == nullptr || use.value->IsConstant(); });
}

}  // namespace

NodesOfGe::NodesOfGe(Workspace& workspace) {
  for (Site& site : workspace.sites) {
    if (site.record.state != "by_ge") continue;
    Construct construct = {&site};
    for (const Node* node : site.covered) Add(*node, &construct);
    constructs_.push_back(construct);
  }
  for (const Node* norm : NormsJoinedBefore(workspace)) {
    Construct construct;
    Add(*norm->input(0)->producer, &construct);
    Add(*norm, &construct);
    constructs_.push_back(construct);
  }
}

void NodesOfGe::Add(const Node& node, Construct* construct) {
  if (OfConstantsAlone(node)) return;
  std::vector<size_t>& of_label = of_label_[std::string(Label(node))];
  if (!of_label.empty() && of_label.back() == constructs_.size()) return;
  of_label.push_back(constructs_.size());
  ++construct->nodes;
}

void NodesOfGe::KeepTogether(absl::Span<const Place> places, OrderGraph* graph) const {
  if (constructs_.empty()) return;
  std::vector<std::vector<const Place*>> found(constructs_.size());
  for (const Place& place : places) {
    const auto constructs = of_label_.find(std::string(Label(*place.node)));
    if (constructs == of_label_.end()) continue;
    for (const size_t number : constructs->second) found[number].push_back(&place);
  }
  for (size_t number = 0; number < found.size(); ++number) {
    const std::vector<const Place*>& own = found[number];
    const bool together = own.size() == constructs_[number].nodes && std::all_of(own.begin(), own.end(), [&](const Place* place) {
                            return place->as_is == own.front()->as_is;
                          });
    for (size_t i = 0; i < own.size(); ++i) {
      if (!together) {
        graph->Charge(own[i]->choice, Other(own[i]->as_is), OrderGraph::kNever);
      } else if (i > 0) {
        graph->ChargeTogether(own[i - 1]->choice, own[i]->choice, OrderGraph::kNever);
        graph->ChargeTogether(own[i]->choice, own[i - 1]->choice, OrderGraph::kNever);
      }
    }
  }
}

void NodesOfGe::Turned(const Node& node, const Node& made) {
  const auto constructs = of_label_.find(std::string(Label(node)));
  if (constructs == of_label_.end()) return;
  const std::vector<size_t> numbers = constructs->second;
  for (const size_t number : numbers) {
    if (constructs_[number].site == nullptr) continue;
    std::vector<const Node*>& covered = constructs_[number].site->covered;
    const auto old = std::find_if(covered.begin(), covered.end(), [&](const Node* one) { return Label(*one) == Label(node); });
    if (old != covered.end()) *old = &made;
  }
  of_label_[std::string(Label(made))] = numbers;
}

}  // namespace ascend_fuse
