#include "passes/explain_match.h"

#include <algorithm>
#include <cstddef>
#include <memory>
#include <optional>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "fmt/format.h"
#include "fmt/ranges.h"
#include "ir/status_macros.h"
#include "passes/core/pass.h"
#include "passes/core/workspace.h"
#include "passes/optimize_passes.h"
#include "passes/recognise/downstream.h"
#include "patterns/edit_distance.h"
#include "patterns/language/matcher.h"

namespace ascend_fuse {
namespace {

// Before which passes the rules of a folder look at the graph.
std::vector<std::string> StagesOf(RuleFolder folder) {
  switch (folder) {
    case RuleFolder::kContrib:
      return {"decompose_contrib"};
    case RuleFolder::kLibrary:
      return {"recognise", "pair_rotations"};
    case RuleFolder::kNpu:
      return {"lower"};
    case RuleFolder::kLeftovers:
      return {"decompose_leftovers"};
    case RuleFolder::kAdapt:
      return {"adapt"};
    case RuleFolder::kReference:
    case RuleFolder::kMisread:
      return {"decompose_contrib"};
  }
  return {};
}

struct FoundRule {
  RuleFolder folder = RuleFolder::kLibrary;
  std::unique_ptr<RuleSet> set;
  size_t index = 0;
  const Rule& rule() const { return set->rules()[index]; }
};

absl::StatusOr<FoundRule> FindRule(const OptimizeOptions& options, const std::string& name) {
  ASSIGN_OR_RETURN(const auto user, UserRules::Parse(options.rule_files));
  std::vector<std::string> near;
  for (const RuleFolder folder : {RuleFolder::kLibrary, RuleFolder::kNpu, RuleFolder::kReference, RuleFolder::kContrib,
                                  RuleFolder::kLeftovers, RuleFolder::kAdapt, RuleFolder::kMisread}) {
    ASSIGN_OR_RETURN(auto set, RuleSet::Load(folder, user));
    for (size_t r = 0; r < set->rules().size(); ++r) {
      const std::string& known = set->rules()[r].name;
      if (known == name) return FoundRule{folder, std::move(set), r};
      if (EditDistance(known, name) <= 2 || known.find(name) != std::string::npos) near.push_back(known);
    }
  }
  return absl::NotFoundError(near.empty() ? fmt::format("no rule is called {}; `ascend-fuse rules` lists them", name)
                                          : fmt::format("no rule is called {}; there are {}", name, fmt::join(near, ", ")));
}

const Node* FindNode(const Model& model, std::string_view name) {
  const Node* computes = nullptr;
  for (const auto& graph : model.graphs()) {
    for (const Node* node : graph->nodes()) {
      if (node->dead) continue;
      if (NodeName(*node) == name) return node;
      for (const Value* value : node->outputs()) {
        if (value != nullptr && ValueName(*value) == name) computes = node;
      }
    }
  }
  return computes;
}

// One try of the rule, ending in one node.
struct Attempt {
  const Node* root = nullptr;
  std::optional<Match> match;
  Failure failure;
  MatchTrace trace;
  bool covers = false;  // the node that was asked for
};

class Tries {
 public:
  Tries(Workspace& workspace, const FoundRule& found) : found_(found), context_(workspace.Context()) {
    context_.literal = found.folder == RuleFolder::kAdapt || found.folder == RuleFolder::kMisread;
  }

  // The try that says most of the node: a match that covers it, else the one that got farthest; nullptr where the rule can
  // end in no node after it.
  const Attempt* From(const Node* node) {
    const auto& roots = found_.set->RootOperators(found_.index);
    for (const Node* root : Downstream(node)) {
      const std::string second(SecondName(*root));
      const bool ends = std::find(roots.begin(), roots.end(), OperatorKey(*root)) != roots.end() ||
                        (!second.empty() && std::find(roots.begin(), roots.end(), second) != roots.end());
      if (root->dead || root->output(0) == nullptr || !ends) continue;
      Consider(node, Run(root));
    }
    return best_.has_value() ? &*best_ : nullptr;
  }

 private:
  Attempt Run(const Node* root) {
    Attempt attempt = RunWith(root, nullptr);
    if (attempt.match.has_value() || found_.rule().outputs.size() < 2) return attempt;
    // The second construct of a rule about two stands beside the first.
    for (const Node* other : root->graph->nodes()) {
      if (other->dead || other == root || OperatorKey(*other) != OperatorKey(*root)) continue;
      Attempt both = RunWith(root, other->output(0));
      if (both.match.has_value() || both.failure.rank > attempt.failure.rank) attempt = std::move(both);
      if (attempt.match.has_value()) break;
    }
    return attempt;
  }

  Attempt RunWith(const Node* root, const Value* partner) {
    Attempt attempt;
    attempt.root = root;
    attempt.failure.trace = &attempt.trace;
    Matcher matcher(*found_.set, context_);
    attempt.match = matcher.Run(found_.rule(), root->output(0), &attempt.failure, partner);
    attempt.failure.trace = nullptr;
    return attempt;
  }

  static bool Covers(const Attempt& attempt, const Node* node) {
    const auto& covered = attempt.match.has_value() ? attempt.match->covered : attempt.failure.covered;
    return attempt.root == node || std::find(covered.begin(), covered.end(), node) != covered.end();
  }

  void Consider(const Node* node, Attempt attempt) {
    attempt.covers = Covers(attempt, node);
    if (attempt.match.has_value() && !attempt.covers) return;  // of another place
    if (!best_.has_value() || Says(attempt) > Says(*best_) ||
        (Says(attempt) == Says(*best_) && attempt.failure.rank > best_->failure.rank)) {
      best_ = std::move(attempt);
    }
  }

  // How much an attempt says of the node: larger matches first.
  static std::tuple<size_t, bool> Says(const Attempt& attempt) {
    return {attempt.match.has_value() ? attempt.match->covered.size() : 0, attempt.covers};
  }

  const FoundRule& found_;
  FunctionContext context_;
  std::optional<Attempt> best_;
};

// "17:3", or "defs.rule:40:5" in another file than the rule's.
std::string Place(const SourcePosition& position, const Rule& rule) {
  const std::string place = fmt::format("{}:{}", position.line, position.column);
  if (position.file == rule.position.file) return place;
  return fmt::format("{}:{}", position.file.substr(position.file.rfind('/') + 1), place);
}

std::string Sentence(const std::string& expected, const std::string& found) {
  return expected.empty() ? found : fmt::format("expected {}, found {}", expected, found);
}

std::string Name(const Node& node) { return fmt::format("{} {}", OpType(node), Label(node)); }

std::string Describe(const Attempt& attempt, const Rule& rule, std::string_view when) {
  std::string text = fmt::format("{}, from {}\n", when, Name(*attempt.root));
  size_t width = 0, place_width = 0;
  for (const MatchTrace::Step& step : attempt.trace.farthest) {
    width = std::max(width, std::min<size_t>(step.wanted.size(), 40));
    place_width = std::max(place_width, Place(step.position, rule).size());
  }
  for (const MatchTrace::Step& step : attempt.trace.farthest) {
    text += fmt::format("  {:<{}}  {:<{}}  {}\n", Place(step.position, rule), place_width, step.wanted, width, step.met);
  }
  if (attempt.match.has_value()) return text + fmt::format("it matches: {} nodes\n", attempt.match->covered.size());
  const Failure& failure = attempt.failure;
  if (!failure.rank.tried()) return text + "it does not match: what stands there is nothing that the rule begins with\n";
  if (!attempt.covers) text += "no attempt got as far as that node; this one got farthest\n";
  text += fmt::format("it ends at {}: {}\n", Place(failure.position, rule), Sentence(failure.expected, failure.found));
  if (failure.node != nullptr) text += fmt::format("  at {}\n", Name(*failure.node));
  std::vector<std::string> others;
  for (const MatchTrace::Ending& ending : attempt.trace.endings) {
    if (ending == MatchTrace::Ending{failure.position, failure.expected, failure.found}) continue;
    others.push_back(fmt::format("  {}: {}\n", Place(ending.position, rule), Sentence(ending.expected, ending.found)));
  }
  constexpr size_t kMost = 20;
  if (!others.empty()) text += "other ways ended earlier\n";
  for (size_t i = 0; i < others.size() && i < kMost; ++i) text += others[i];
  if (others.size() > kMost) text += fmt::format("  and {} more\n", others.size() - kMost);
  return text;
}

}  // namespace

absl::StatusOr<std::string> ExplainMatch(Model* model, const OptimizeOptions& options, const std::string& rule,
                                         const std::string& node) {
  ASSIGN_OR_RETURN(const auto found, FindRule(options, rule));
  if (FindNode(*model, node) == nullptr) {
    return absl::NotFoundError(fmt::format("the model has no node or value {}; `ascend-fuse print` shows them", node));
  }
  ASSIGN_OR_RETURN(const auto target, TargetOf(options));
  WorkspaceOptions of_workspace;
  of_workspace.rule_files = options.rule_files;
  of_workspace.infer = options.infer;
  of_workspace.assumptions = options.assumptions;
  if (found.folder == RuleFolder::kLibrary) of_workspace.skip = {rule};  // which would take the nodes away
  ASSIGN_OR_RETURN(const auto workspace, Workspace::Create(model, target.get(), of_workspace));
  std::string text = fmt::format("rule {}, {}:{}, at {}\n", rule, found.rule().position.file, found.rule().position.line, node);
  std::vector<Pass> left = OptimizePasses();
  for (const std::string& stage : StagesOf(found.folder)) {
    const auto end = std::find_if(left.begin(), left.end(), [&](const Pass& pass) { return pass.name == stage; });
    RETURN_IF_ERROR(RunPasses({left.begin(), end}, *workspace));
    left.erase(left.begin(), end);
    const std::string when =
        stage == "pair_rotations" ? "after the other rules have recognised what they do" : fmt::format("before {}", stage);
    const Node* at = FindNode(*model, node);
    if (at == nullptr) {
      text += fmt::format("{}\n  {} is gone: another rule took it\n", when, node);
      continue;
    }
    Tries tries(*workspace, found);
    const Attempt* attempt = tries.From(at);
    if (attempt == nullptr) {
      text += fmt::format("{}\n  the rule ends in {}, and neither {} nor what follows it is one\n", when,
                          fmt::join(found.set->RootOperators(found.index), " or "), Name(*at));
      continue;
    }
    text += Describe(*attempt, found.rule(), when);
    if (attempt->match.has_value()) break;
  }
  return text;
}

}  // namespace ascend_fuse
