// Find near misses: for every operator at which a construct begins and that no rule covered, the rule that got farthest and
// where it stopped.
#include <algorithm>
#include <bitset>
#include <set>
#include <tuple>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/container/node_hash_map.h"
#include "fmt/format.h"
#include "ir/infer/movement_of.h"
#include "ir/one_of.h"
#include "ir/schema.h"
#include "passes/core/module_path.h"
#include "passes/core/workspace.h"
#include "passes/recognise/downstream.h"
#include "passes/recognise/neighbourhood.h"
#include "passes/recognise/passes.h"
#include "patterns/analysis/product.h"
#include "patterns/functions/functions.h"

namespace ascend_fuse {
namespace {

// Which of some operators patterns use; each definition is looked at once.
class OperatorUse {
 public:
  static constexpr size_t kMost = 128;
  using Operators = std::bitset<kMost>;  // by their place in `operators`

  // Takes the first kMost of `operators`.
  OperatorUse(const RuleSet& rules, const std::vector<std::string_view>& operators) : rules_(rules) {
    for (size_t i = 0; i < operators.size() && i < kMost; ++i) places_.try_emplace(operators[i], i);
  }

  Operators In(const Pattern& pattern) {
    Operators used;
    if (pattern.kind == Pattern::Kind::kOperator) {
      if (const auto place = places_.find(pattern.name); place != places_.end()) used.set(place->second);
    }
    for (const PatternPointer& argument : pattern.arguments) used |= In(*argument);
    if (pattern.kind == Pattern::Kind::kDefinition) used |= InDefinition(static_cast<size_t>(pattern.definition));
    return used;
  }

 private:
  Operators InDefinition(size_t definition) {
    const auto [known, is_new] = known_.try_emplace(definition);
    if (!is_new) return known->second;
    Operators used;
    for (const auto& alternative : rules_.definitions()[definition].alternatives) used |= In(*alternative.pattern);
    return known_[definition] = used;
  }

  const RuleSet& rules_;
  absl::flat_hash_map<std::string_view, size_t> places_;
  absl::flat_hash_map<size_t, Operators> known_;
};

// Nodes of norms that are there also where the mean is not. They say nothing by themselves: a rule has to match but for one
// difference.
constexpr std::string_view kAnchorsOfDifferences[] = {"Sqrt", "Exp"};
// Functions that no rule has, where one may stand in place of that of an activation.
constexpr std::string_view kReplacements[] = {"Atan", "Asinh", "Sin", "Softsign"};
// How much else has to be as the rule has it: x * f (x) is found everywhere.
constexpr int kEvidence = 4;
constexpr size_t kMostRoots = 16;       // of a rule that matches but for one difference, from its anchor on
constexpr size_t kMostFailures = 8192;  // that are kept: those of the roots around an anchor are fewer

bool IsOwn(std::string_view op_type) { return IsOneOf(op_type, NearMissAnchors()); }

bool IsOfDifferences(std::string_view op_type) {
  return IsOneOf(op_type, kAnchorsOfDifferences) || IsOneOf(op_type, kReplacements);
}

std::vector<std::string_view> AnchorsOf(const FunctionRow& function) {
  std::vector<std::string_view> anchors;
  for (std::string_view rest = function.anchor; !rest.empty();) {
    const size_t end = std::min(rest.find(' '), rest.size());
    anchors.push_back(rest.substr(0, end));
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return anchors;
}

// A constant that is not what the rule expects stops it at the node that reads it; sentences begin with its name.
const Node* ReaderOfFound(const Failure& failure) {
  const std::string_view name = std::string_view(failure.found).substr(0, failure.found.find(' '));
  for (auto node = failure.covered.rbegin(); node != failure.covered.rend(); ++node) {
    for (const Use& use : (*node)->inputs()) {
      if (use.value != nullptr && ValueName(*use.value) == name) return *node;
    }
  }
  return nullptr;
}

// Whether `node` only multiplies what the anchor gives by a number, as soft-capping of logits does: an activation is
// multiplied with data.
bool IsScaled(const Facts& facts, const Node& anchor, const Node& node) {
  const auto is_number = [&](const Value* value) { return value != nullptr && facts.Of(value).is_splat; };
  const Value* const scaled = anchor.output(0);
  return IsOp(node, "Mul") &&
         ((node.input(0) == scaled && is_number(node.input(1))) || (node.input(1) == scaled && is_number(node.input(0))));
}

// The node, or what reads its result where that is the same tensor in another shape or order of axes.
const Node* Computing(const Facts& facts, const Node* node) {
  for (MovementKind kind = KindOf(facts, *node); kind == MovementKind::kKeepsOrder || kind == MovementKind::kPermutes;
       kind = KindOf(facts, *node)) {
    const Value* const moved = node->output();
    if (moved == nullptr || !ReadOnce(*moved)) break;
    node = (*LiveUses(*moved).begin()).user;
  }
  return node;
}

// What takes the result of a softmax first, where nothing multiplies it with values; else nullptr.
const Node* ReaderInPlaceOfProduct(const FunctionContext& context, const Node& softmax) {
  const Node* reader = nullptr;
  for (const Use& use : LiveUses(*softmax.output())) {
    const Node* const node = Computing(*context.facts, use.user);
    if (FindProduct(context, node->output(0)).has_value()) return nullptr;
    if (reader == nullptr || StandsBefore(*node, *reader)) reader = node;
  }
  return reader;
}

bool IsReadBy(const Node& node, const std::vector<const Node*>& readers) {
  return std::any_of(readers.begin(), readers.end(), [&](const Node* reader) {
    return std::any_of(reader->inputs().begin(), reader->inputs().end(),
                       [&](const Use& use) { return use.value != nullptr && use.value->producer == &node; });
  });
}

NearMissRecord Record(const Node& anchor, const Failure& failure) {
  NearMissRecord record;
  record.rule = failure.rule->name;
  record.node = std::string(Label(anchor));
  record.module = ModulePath(anchor);
  record.matched_nodes = static_cast<int64_t>(failure.covered.size());
  if (const Node* node = failure.node != nullptr ? failure.node : ReaderOfFound(failure); node != nullptr) {
    record.stopped_by = std::string(Label(*node));
  }
  record.code = failure.code;
  record.expected = failure.expected;
  record.found = failure.found;
  record.source = failure.position.ToString();
  return record;
}

// An attempt tells of this anchor if it reached it, or if it stopped on the way there or right beside it.
class NearMisses {
 public:
  explicit NearMisses(Workspace& workspace)
      : workspace_(workspace),
        library_(workspace.rules(RuleFolder::kLibrary)),
        matcher_(library_, workspace.Context()),
        neighbourhoods_(workspace.facts()) {}

  void Run() {
    FindRules();
    for (const Site& site : workspace_.sites) {
      if (site.node != nullptr || site.record.code.empty()) continue;
      for (const std::string& name : site.record.covers) told_.emplace(name, site.record.kind);
    }
    for (const auto& graph : workspace_.model().graphs()) {
      for (const Node* anchor : graph->nodes()) {
        if (anchor->dead || workspace_.IsMade(*anchor) || anchor->domain != NameId::kEmpty) continue;
        const auto rules = rules_of_.find(OpType(*anchor));
        if (rules != rules_of_.end() && Begins(*anchor)) Look(anchor, rules->second);
      }
    }
  }

 private:
  // Whether the node begins a construct, where its operator alone says little.
  bool Begins(const Node& anchor) const {
    const auto begins = begins_.find(OpType(anchor));
    return begins == begins_.end() || begins->second(workspace_.Context(), anchor);
  }

  // The rules that an anchor says something about: those that match it, and those that ask a function of which it is the
  // sign.
  void FindRules() {
    std::set<size_t> used;
    std::vector<std::string_view> anchors = NearMissAnchors();
    anchors.insert(anchors.end(), std::begin(kAnchorsOfDifferences), std::end(kAnchorsOfDifferences));
    std::vector<std::vector<std::string_view>> of_function;
    for (const FunctionRow& function : Functions()) {
      of_function.push_back(AnchorsOf(function));
      for (const std::string_view anchor : of_function.back()) {
        if (function.begins != nullptr) begins_.try_emplace(anchor, function.begins);
        if (!IsOneOf(anchor, anchors)) anchors.push_back(anchor);
      }
    }
    for (const std::string_view replacement : kReplacements) rules_of_[replacement];
    OperatorUse use(library_, anchors);
    for (size_t r = 0; r < library_.rules().size(); ++r) {
      const Rule& rule = library_.rules()[r];
      if (rule.emit.empty() || workspace_.Skipped(rule)) continue;
      OperatorUse::Operators matched;
      for (const auto& statement : rule.match) matched |= use.In(*statement.pattern);
      for (size_t i = 0; i < anchors.size(); ++i) {
        const std::string_view anchor = anchors[i];
        const bool uses = i < OperatorUse::kMost && matched.test(i) && (IsOwn(anchor) || IsOfDifferences(anchor));
        const bool asks = !uses && std::any_of(rule.where.begin(), rule.where.end(), [&](const Condition& condition) {
          const Expression& side = condition.relation == Condition::Relation::kLet ? condition.right : condition.left;
          return side.kind == Expression::Kind::kCall && IsOneOf(anchor, of_function[side.function]);
        });
        if (uses || asks) rules_of_[anchor].push_back(r);
        if (uses || asks) used.insert(r);
      }
    }
    for (const size_t r : used) {
      for (const std::string& root : library_.RootOperators(r)) rules_of_root_[root].push_back(r);
    }
  }

  void Look(const Node* anchor, const std::vector<size_t>& rules) {
    reached_ = Downstream(anchor);  // roots lie a few steps downstream
    best_ = Failure();
    best_root_ = nullptr;
    best_covers_ = false;
    difference_ = nullptr;
    // In a layer that is written as one before the same rules get farthest at the same places: only these are asked again.
    const auto [known, is_new] = farthest_.try_emplace(neighbourhoods_.Of(reached_));
    if (is_new) {
      known->second = LookForFarthest(anchor, rules);
    } else {
      LookAgain(anchor, known->second);
    }
    TakeDifference();
    if (best_.rule == nullptr) return;
    // Each rule stopped where it began: how far one got elsewhere says nothing of this softmax.
    if (difference_ == nullptr && !best_covers_ && best_.node == best_root_ && IsOp(*anchor, "Softmax")) TellReader(*anchor);
    // What several nodes of one construct tell is told once.
    const bool placed = best_.node != nullptr || difference_ != nullptr;
    if (!misses_.insert({best_.rule, best_.node, best_.found}).second && placed) return;
    if (IsOfDifferences(OpType(*anchor)) && near_.contains(anchor)) return;
    near_.insert(best_.covered.begin(), best_.covered.end());
    const auto told = told_.find(Label(*anchor));
    if (told != told_.end() && told->second == best_.rule->kind) return;
    workspace_.result.near_misses.push_back(Record(*anchor, best_));
  }

  // A rule at a root, by its place among those that are reached; none where `root` is kNowhere.
  static constexpr size_t kNowhere = SIZE_MAX;
  struct Place {
    size_t rule = 0;
    size_t root = kNowhere;
  };
  struct Farthest {
    Place difference;  // the rule that matches but for one difference
    Place failure;     // the rule that got farthest
  };

  Farthest LookForFarthest(const Node* anchor, const std::vector<size_t>& rules) {
    Farthest farthest;
    for (size_t i = 0; i < reached_.size() && i < kMostRoots; ++i) {
      const Nearly& nearly = ButOne(reached_[i]);
      if (Differ(anchor, nearly)) farthest.difference = {nearly.rule, i};
    }
    for (const size_t r : rules) {
      if (IsOfDifferences(OpType(*anchor))) break;
      const auto& roots = library_.RootOperators(r);
      for (size_t i = 0; i < reached_.size(); ++i) {
        const Node* root = reached_[i];
        if (root->output(0) == nullptr || std::find(roots.begin(), roots.end(), OperatorKey(*root)) == roots.end()) {
          continue;
        }
        const Failure& failure = FailureAt(r, root);
        if (failure.rule != nullptr && Consider(anchor, failure, root)) farthest.failure = {r, i};
      }
    }
    return farthest;
  }

  void LookAgain(const Node* anchor, const Farthest& farthest) {
    if (const Place& place = farthest.difference; place.root != kNowhere) {
      const Node* root = reached_[place.root];
      const auto [at, added] = nearly_.try_emplace(root);
      if (added) TryButOne(place.rule, root, &at->second);
      Differ(anchor, at->second);
    }
    if (const Place& place = farthest.failure; place.root != kNowhere) {
      const Failure& failure = FailureAt(place.rule, reached_[place.root]);
      if (failure.rule != nullptr) Consider(anchor, failure, reached_[place.root]);
    }
  }

  // How far a rule gets at a root: all anchors upstream of it ask. `rule` is nullptr where it matches.
  const Failure& FailureAt(size_t rule, const Node* root) {
    if (failures_.size() > kMostFailures) failures_.clear();
    const auto [at, added] = failures_.try_emplace({rule, root});
    if (added && matcher_.Run(library_.rules()[rule], root->output(0), &at->second).has_value()) at->second = Failure();
    return at->second;
  }

  // A rule that matches but for one difference: there is one with most evidence for each root.
  struct Nearly {
    size_t rule = 0;
    Mismatch mismatch;
    Match match;
  };

  const Nearly& ButOne(const Node* root) {
    const auto [at, added] = nearly_.try_emplace(root);
    Nearly& best = at->second;
    const auto rules = rules_of_root_.find(OperatorKey(*root));
    if (!added || root->output(0) == nullptr || rules == rules_of_root_.end()) return best;
    for (const size_t r : rules->second) TryButOne(r, root, &best);
    return best;
  }

  void TryButOne(size_t rule, const Node* root, Nearly* best) {
    Mismatch mismatch;
    std::optional<Match> match = MatchButOne(matcher_, library_.rules()[rule], root->output(0), &mismatch);
    if (!match.has_value() || mismatch.node == nullptr || mismatch.evidence < kEvidence) return;
    if (mismatch.evidence > best->mismatch.evidence) *best = {rule, std::move(mismatch), *std::move(match)};
  }

  // Whether that is the best until now.
  bool Differ(const Node* anchor, const Nearly& nearly) {
    if (nearly.mismatch.node == nullptr) return false;
    if (difference_ != nullptr && difference_->mismatch.evidence >= nearly.mismatch.evidence) return false;
    const auto& covered = nearly.match.covered;
    const bool tells = nearly.mismatch.node == anchor || std::find(covered.begin(), covered.end(), anchor) != covered.end();
    if (tells) difference_ = &nearly;
    return tells;
  }

  // It says more than a rule that only got far.
  void TakeDifference() {
    if (difference_ == nullptr) return;
    const auto& covered = difference_->match.covered;
    if (best_.rule != nullptr && best_.covered.size() > covered.size() + 1) return;
    // All nodes are as a rule has them and a condition does not hold, or it says more of the same node.
    const bool whole = best_.rank.stop == Stop::kConditionFails && best_.covered.size() > covered.size();
    const bool closer = best_.node == difference_->mismatch.node && best_.rank.stop == Stop::kWrongAttribute;
    if (best_.rule != nullptr && (whole || closer)) return;
    best_ = Failure();
    best_.rule = difference_->match.rule;
    best_.position = difference_->mismatch.position;
    best_.node = difference_->mismatch.node;
    best_.expected = difference_->mismatch.expected;
    best_.found = difference_->mismatch.found;
    best_.covered = covered;
  }

  void TellReader(const Node& softmax) {
    const Node* const reader = ReaderInPlaceOfProduct(workspace_.Context(), softmax);
    if (reader == nullptr) return;
    best_.node = reader;
    best_.expected.clear();
    best_.found = fmt::format("{} takes {}, the result of the softmax, which an attention multiplies with its values",
                              OpType(*reader), ValueName(*softmax.output()));
  }

  // Whether that is the best until now.
  bool Consider(const Node* anchor, const Failure& failure, const Node* root) {
    const auto& covered = failure.covered;
    const bool covers = std::find(covered.begin(), covered.end(), anchor) != covered.end();
    const bool beside = covered.size() >= 3 && IsReadBy(*anchor, covered);
    // A Sub alone tells nothing: what it is subtracted from and its product must be there too.
    if (!IsOwn(OpType(*anchor)) && ((!covers && !beside) || covered.size() < 3)) return false;
    const auto scaled = [&](const Node* node) { return IsScaled(workspace_.facts(), *anchor, *node); };
    if (covered.size() <= 2 && std::any_of(covered.begin(), covered.end(), scaled)) return false;
    const size_t enough = IsOp(*anchor, "Softmax") ? 1 : 2;
    const bool stopped = beside || (covered.size() >= enough && IsReached(failure.node));
    const bool farther = (covers && !best_covers_) || ((covers || (stopped && !best_covers_)) && failure.rank > best_.rank);
    if (farther) {
      best_ = failure;
      best_root_ = root;
      best_covers_ = covers;
    }
    return farther;
  }

  bool IsReached(const Node* node) const { return std::find(reached_.begin(), reached_.end(), node) != reached_.end(); }

  Workspace& workspace_;
  const RuleSet& library_;
  Matcher matcher_;
  Neighbourhoods neighbourhoods_;
  absl::flat_hash_map<uint64_t, Farthest> farthest_;                     // by what an anchor's surroundings look like
  absl::flat_hash_map<std::string_view, std::vector<size_t>> rules_of_;  // by anchor
  absl::flat_hash_map<std::string_view, bool (*)(const FunctionContext&, const Node&)> begins_;
  absl::flat_hash_map<std::string, std::vector<size_t>>
      rules_of_root_;                                             // those that use an anchor, by the operator of their root
  absl::flat_hash_map<std::string_view, std::string_view> told_;  // the kinds of sites that say why they are left, by node
  std::set<std::tuple<const Rule*, const Node*, std::string>> misses_;
  absl::flat_hash_set<const Node*> near_;                                  // what these cover
  absl::node_hash_map<const Node*, Nearly> nearly_;                        // by root: layers of anchors ask again
  absl::node_hash_map<std::pair<size_t, const Node*>, Failure> failures_;  // by rule and root
  // Of the anchor that is looked at.
  std::vector<const Node*> reached_;
  Failure best_;
  const Node* best_root_ = nullptr;
  bool best_covers_ = false;
  const Nearly* difference_ = nullptr;
};

}  // namespace

absl::Status FindNearMisses(Workspace& workspace) {
  // With --limit constructs are left on purpose: nothing is missing there.
  if (workspace.options().limit < 0) NearMisses(workspace).Run();
  return absl::OkStatus();
}

}  // namespace ascend_fuse
