// One driver for "rules by root, match, emit": which rules can end in which node, in which order they are tried, and what
// happens to the nodes that emissions make.
#pragma once

#include <cstddef>
#include <functional>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "passes/core/workspace.h"

namespace ascend_fuse {

enum class VisitOrder {
  // Node after node in the order of the graph, for each the rules in their order until one is applied.
  kNodes,
  // Rule after rule in their order, for each the nodes from the last to the first: a construct with an optional last
  // step is met with that step. Nodes that are made are visited by the rules that follow.
  kRules,
};

// What the user of the driver calls a match: it is handed back with what became of that match.
using MatchToken = size_t;
// A match of which nothing is emitted.
inline constexpr MatchToken kNotEmitted = std::numeric_limits<MatchToken>::max();

// What a user of the driver does at its steps. Those that are left out do nothing.
struct RuleSteps {
  // Nodes are matched as they are written: no copy is looked through.
  bool literal = false;
  // Whether a rule takes part.
  std::function<bool(const Rule&)> use;
  // Whether to go on with this rule: asked before each match of it.
  std::function<bool(const Rule&)> go_on;
  // Whether the rule is tried at this node at all.
  std::function<bool(const Rule&, const Node* root)> looks_at;
  // A match; kNotEmitted: nothing is emitted. Without this step the token is 0.
  std::function<MatchToken(const Rule&, const Match&, const Node* root)> matched;
  // `value` is what the rule was about, root_operator what computed it before.
  std::function<void(MatchToken, const Rule&, const Value* value, const std::string& root_operator, const Emission&)> emitted;
  // What the rule makes cannot be built here. An error ends the run.
  std::function<absl::Status(MatchToken, const Rule&, const absl::Status& why)> refused;
  // kNodes: a node that a rule can end in and that no rule was applied to; the failure that got farthest.
  std::function<void(const Node*, const Failure&)> unmatched;
};

// Applies the rules to all live nodes of the model.
absl::Status ApplyRules(Workspace& workspace, const RuleSet& rules, VisitOrder order, const RuleSteps& steps);

}  // namespace ascend_fuse
