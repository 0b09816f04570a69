#include "passes/core/apply_rules.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <utility>

#include "absl/container/node_hash_map.h"
#include "ir/schema.h"
#include "ir/status_macros.h"

namespace ascend_fuse {
namespace {

class Driver {
 public:
  Driver(Workspace& workspace, const RuleSet& rules, const RuleSteps& steps)
      : workspace_(workspace), rules_(rules), steps_(steps), context_(ContextOf(workspace, steps)), matcher_(rules, context_) {}

  absl::Status ByNodes() {
    absl::flat_hash_map<std::string, std::vector<size_t>> rules_of;  // by root, in the order to try them
    for (size_t r = 0; r < rules_.rules().size(); ++r) {
      if (!Uses(rules_.rules()[r])) continue;
      for (const std::string& root : rules_.RootOperators(r)) rules_of[root].push_back(r);
    }
    if (rules_of.empty()) return absl::OkStatus();
    for (const auto& graph : workspace_.model().graphs()) {
      const std::vector<const Node*> nodes = graph->nodes();  // grows while nodes are made
      for (const Node* node : nodes) {
        if (node->dead || node->output(0) == nullptr) continue;
        RETURN_IF_ERROR(workspace_.GoOn());
        const std::string root_operator = OperatorKey(*node);
        const auto found = rules_of.find(root_operator);
        if (found == rules_of.end()) continue;
        Failure failure;
        bool applied = false;
        for (size_t i = 0; i < found->second.size() && !applied; ++i) {
          const absl::Status status =
              Apply(rules_.rules()[found->second[i]], node, steps_.unmatched ? &failure : nullptr, &applied);
          if (!status.ok()) return status;
        }
        if (!applied && steps_.unmatched) steps_.unmatched(node, failure);
      }
    }
    return absl::OkStatus();
  }

  absl::Status ByRules() {
    for (const auto& graph : workspace_.model().graphs()) {
      place_of_.try_emplace(graph.get(), place_of_.size());
      const auto& nodes = graph->nodes();
      for (auto node = nodes.rbegin(); node != nodes.rend(); ++node) {
        if (!(*node)->dead) Add(*node);
      }
    }
    std::vector<const Node*> candidates;
    for (size_t r = 0; r < rules_.rules().size(); ++r) {
      const Rule& rule = rules_.rules()[r];
      if (!Uses(rule)) continue;
      candidates.clear();
      for (const std::string& root : rules_.RootOperators(r)) {
        const auto found = by_operator_.find(root);
        if (found == by_operator_.end()) continue;
        const auto middle = static_cast<std::ptrdiff_t>(candidates.size());
        candidates.insert(candidates.end(), found->second.begin(), found->second.end());
        std::inplace_merge(candidates.begin(), candidates.begin() + middle, candidates.end(), InTurn{this});
      }
      for (const Node* node : candidates) {
        if (node->dead || node->output(0) == nullptr) continue;
        if (steps_.go_on && !steps_.go_on(rule)) break;
        RETURN_IF_ERROR(workspace_.GoOn());
        bool applied = false;
        RETURN_IF_ERROR(Apply(rule, node, nullptr, &applied));
      }
    }
    return absl::OkStatus();
  }

 private:
  static FunctionContext ContextOf(Workspace& workspace, const RuleSteps& steps) {
    FunctionContext context = workspace.Context();
    context.literal = steps.literal;
    return context;
  }

  bool Uses(const Rule& rule) const { return !workspace_.Skipped(rule) && (!steps_.use || steps_.use(rule)); }

  using Nodes = std::vector<const Node*>;

  // The order in which nodes are tried: graph by graph, the last of each first.
  struct InTurn {
    const Driver* driver;
    bool operator()(const Node* a, const Node* b) const {
      // Addresses differ from run to run.
      return a->graph != b->graph ? driver->place_of_.at(a->graph) < driver->place_of_.at(b->graph) : StandsBefore(*b, *a);
    }
  };

  // The lists that a node stands in, found once for each operator.
  const std::vector<Nodes*>& ListsOf(const Node& node) {
    std::vector<Nodes*>& lists = lists_of_[{node.domain, node.op_type}];
    if (lists.empty()) {
      lists.push_back(&by_operator_[OperatorKey(node)]);
      if (const std::string_view second = SecondName(node); !second.empty()) lists.push_back(&by_operator_[std::string(second)]);
    }
    return lists;
  }

  void Add(const Node* node) {
    if (place_of_.empty()) return;  // by nodes
    for (Nodes* list : ListsOf(*node)) {
      // Nodes of the model come in turn, and those that are made stand somewhere between.
      const bool last = list->empty() || !InTurn{this}(node, list->back());
      list->insert(last ? list->end() : std::upper_bound(list->begin(), list->end(), node, InTurn{this}), node);
    }
  }

  absl::Status Apply(const Rule& rule, const Node* node, Failure* failure, bool* applied) {
    if (steps_.looks_at && !steps_.looks_at(rule, node)) return absl::OkStatus();
    const InPlace place(*node->graph, &workspace_.facts());
    const std::optional<Match> match = matcher_.Run(rule, node->output(0), failure);
    if (!match.has_value()) return absl::OkStatus();
    const std::string root_operator = OperatorKey(*node);
    const Value* value = node->output(0);
    const MatchToken token = steps_.matched ? steps_.matched(rule, *match, node) : 0;
    if (token == kNotEmitted) return absl::OkStatus();
    const absl::StatusOr<Emission> emission = workspace_.emitter().Emit(*match, context_);
    if (!emission.ok()) return steps_.refused ? steps_.refused(token, rule, emission.status()) : absl::OkStatus();
    *applied = true;
    for (const Node* made : emission->replacements) Add(made);
    for (const Node* made : emission->inserted) Add(made);
    if (steps_.emitted) steps_.emitted(token, rule, value, root_operator, *emission);
    return absl::OkStatus();
  }

  Workspace& workspace_;
  const RuleSet& rules_;
  const RuleSteps& steps_;
  const FunctionContext context_;
  Matcher matcher_;
  absl::node_hash_map<std::string, Nodes> by_operator_;                           // in turn
  absl::flat_hash_map<std::pair<NameId, NameId>, std::vector<Nodes*>> lists_of_;  // by domain and operator
  absl::flat_hash_map<const Graph*, size_t> place_of_;
};

}  // namespace

absl::Status ApplyRules(Workspace& workspace, const RuleSet& rules, VisitOrder order, const RuleSteps& steps) {
  Driver driver(workspace, rules, steps);
  return order == VisitOrder::kNodes ? driver.ByNodes() : driver.ByRules();
}

}  // namespace ascend_fuse
