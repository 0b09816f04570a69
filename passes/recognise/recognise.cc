// Recognise: rules of patterns/rules/library replace subgraphs by standard operators, or note what they see.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "ir/status_macros.h"
#include "passes/core/apply_rules.h"
#include "passes/core/copy_value.h"
#include "passes/core/module_path.h"
#include "passes/core/workspace.h"
#include "passes/recognise/dims_of_masks.h"
#include "passes/recognise/equal_values.h"
#include "passes/recognise/passes.h"
#include "patterns/terms/refusal.h"

namespace ascend_fuse {
namespace {

// The deepest module that all covered nodes with a module share; that of the root if they share none.
std::string ModuleOf(const std::vector<const Node*>& covered) {
  std::string common;
  bool first = true;
  for (const Node* node : covered) {
    const std::string path = ModulePath(*node);
    if (path.empty()) continue;
    if (first) {
      common = path;
      first = false;
      continue;
    }
    size_t same = 0;
    size_t boundary = 0;
    while (same < common.size() && same < path.size() && common[same] == path[same]) {
      ++same;
      if ((same == common.size() || common[same] == '.') && (same == path.size() || path[same] == '.')) {
        boundary = same;
      }
    }
    common.resize(boundary);
    if (common.empty()) break;
  }
  if (common.empty() && !covered.empty()) return ModulePath(*covered.front());
  return common;
}

// The operator that an emission is about: the one of our own domain, where nodes that fit it to the graph stand after
// it, else the last.
const Node* RecognisedNode(const Emission& emission) {
  const Node* last = emission.replacements.back();
  if (Domain(*last) == "ascend_fuse") return last;
  for (const Use& use : last->inputs()) {
    for (const Value* value = use.value; value != nullptr && value->producer != nullptr; value = value->producer->input(0)) {
      // Not beyond what this rule made: another recogniser's operator may stand before it.
      const auto& inserted = emission.inserted;
      if (std::find(inserted.begin(), inserted.end(), value->producer) == inserted.end()) break;
      if (Domain(*value->producer) == "ascend_fuse") return value->producer;
    }
  }
  return last;
}

// Why none of the rules reads the operator of a site as one, of the rule that got farthest.
void SayWhyNotRead(const std::vector<const Rule*>& rules, Matcher* matcher, Site* site) {
  Failure failure;
  for (const Rule* rule : rules) {
    Failure of_rule;
    matcher->Run(*rule, site->value, &of_rule);
    if (failure.rule == nullptr || of_rule.rank > failure.rank) failure = std::move(of_rule);
  }
  if (failure.rule == nullptr) return;
  site->Say(failure.has_own_code() ? failure.code : "operator-differs", failure.Sentence(), failure.position.ToString());
}

// Whether a pass of GE takes what the rule finds only where dims are numbers.
bool AsksForNumbers(const Rule& rule) {
  return std::any_of(rule.where.begin(), rule.where.end(), [](const Condition& condition) {
    return condition.left.kind == Expression::Kind::kCall && condition.left.text == "number";
  });
}

// Sites that are none by themselves: they became part of a larger one, or a later attempt at their value says more.
class OutdatedSites {
 public:
  void Add(size_t site) { outdated_.insert(site); }
  bool Contains(size_t site) const { return outdated_.contains(site); }

  // A rule matched and could not emit: what it said of the value before is out of date.
  void Refused(const std::vector<Site>& sites, size_t site) {
    std::vector<size_t>& refused = refused_[sites[site].value];
    for (const size_t before : refused) {
      if (sites[before].record.rule == sites[site].record.rule) Add(before);
    }
    refused.push_back(site);
  }

  // A rule took the value: what any of its kind said before is out of date.
  void Emitted(const std::vector<Site>& sites, size_t site) {
    for (const size_t before : refused_[sites[site].value]) {
      if (sites[before].record.kind == sites[site].record.kind) Add(before);
    }
  }

  void EraseFrom(std::vector<Site>* sites) const {
    size_t kept = 0;
    for (size_t i = 0; i < sites->size(); ++i) {
      if (Contains(i)) continue;
      if (kept != i) (*sites)[kept] = std::move((*sites)[i]);
      ++kept;
    }
    sites->resize(kept);
  }

 private:
  absl::flat_hash_map<const Value*, std::vector<size_t>> refused_;
  absl::flat_hash_set<size_t> outdated_;
};

// Operators that are constructs by themselves, and that nothing reads because what read them was recognised and reads their
// equals. They come back where that is left.
void CoverEqualNative(const EqualValues& equal, Workspace& workspace) {
  absl::flat_hash_set<const Node*> covered;
  for (Site& site : workspace.sites) {
    if (site.record.rule != "native" || equal.Of(*site.value).size() < 2) continue;
    if (covered.empty()) {
      for (const Site& other : workspace.sites) covered.insert(other.covered.begin(), other.covered.end());
    }
    for (const Value* value : equal.Of(*site.value)) {
      const Node* const node = value->producer;
      const bool unread =
          node->dead && !workspace.IsMade(*node) && !covered.contains(node) && node->op_type == site.node->op_type;
      if (!unread || node->output_count != 1 || !StandsBefore(*site.node, *node)) continue;
      site.covered.push_back(node);
      if (!Label(*node).empty()) site.record.covers.emplace_back(Label(*node));
      site.equals.push_back(node);
    }
  }
}

class Recogniser {
 public:
  Recogniser(Workspace& workspace, DimsOfMasks* dims_of_masks)
      : workspace_(workspace),
        library_(workspace.rules(RuleFolder::kLibrary)),
        sites_(workspace.sites),
        dims_of_masks_(*dims_of_masks) {
    for (const GroupedHalves& halves : workspace.grouped_halves) grouped_.insert(halves.parts.begin(), halves.parts.end());
    for (const StraightenedNorm& norm : workspace.straightened_norms) {
      original_.insert(norm.originals.begin(), norm.originals.end());
    }
  }

  absl::Status Run() {
    ReadRules();
    const EqualValues equal(workspace_.model(), workspace_.numbering());
    RETURN_IF_ERROR(FindConstructs(equal));
    Absorb();
    FindNative();
    CoverEqualNative(equal, workspace_);
    return Observe();
  }

 private:
  // What an operator is by itself, so that those that are there already become sites too: what rules make, and what
  // rules read as one operator (those of newer opsets).
  void ReadRules() {
    for (size_t r = 0; r < library_.rules().size(); ++r) {
      const Rule& rule = library_.rules()[r];
      if (workspace_.Skipped(rule)) continue;
      for (const EmitStatement& statement : rule.emit) {
        if (statement.value.kind != Expression::Kind::kOperator) continue;
        // Where an operator of ours stands inside, what is around it fits it to the graph.
        if (statement.value.domain != "ascend_fuse" && Mentions(statement.value, "ascend_fuse")) continue;
        if (statement.names[0] != rule.outputs[0]) continue;  // further outputs are sums and the like
        const Expression& op = statement.value;
        kind_of_[op.domain.empty() ? op.text : op.domain + "." + op.text] = rule.kind;
      }
      // A rule without inputs asks a function what its operator is part of.
      if (rule.size == 1 && !rule.emit.empty() && !rule.inputs.empty()) {
        const std::string& root = library_.RootOperators(r)[0];
        kind_of_[root] = rule.kind;
        readers_of_[root].push_back(&rule);
      }
    }
  }

  absl::Status FindConstructs(const EqualValues& equal) {
    RuleSteps steps;
    steps.use = [](const Rule& rule) { return !rule.emit.empty(); };
    steps.go_on = [&](const Rule&) { return workspace_.MayReplace(); };
    Matcher matcher(library_, workspace_.Context());
    absl::flat_hash_map<const Node*, const Value*> waiting;  // for the first of their equals
    steps.looks_at = [&](const Rule& rule, const Node* root) {
      // GE sees the Transposes between the parts of a norm that was straightened.
      const bool of_ge = !rule.ge_construct.empty() && original_.contains(root);
      return !of_ge && equal.IsLookedAt(*root->output(0));
    };
    steps.matched = [&](const Rule& rule, const Match& match, const Node* root) {
      // The first of equal values is recognised, and the others read it.
      if (waiting.contains(root)) return kNotEmitted;
      const Value* first = FirstOf(*root, equal);
      const bool is_first = first == root->output(0) || first->producer->dead || !matcher.Run(rule, first).has_value();
      if (!is_first) waiting.emplace(root, first);
      return is_first ? Note(rule, match, root) : kNotEmitted;
    };
    steps.emitted = [&](MatchToken site, const Rule&, const Value* value, const std::string&, const Emission& emission) {
      workspace_.CountReplacement();
      sites_[site].node = RecognisedNode(emission);
      sites_[site].made = emission.replacements;
      for (const Node* made : emission.replacements) site_of_.emplace(made, site);
      learned_ = dims_of_masks_.Learn(&sites_[site]) || learned_;
      outdated_.Emitted(sites_, site);
      Share(*value, equal, &sites_[site]);
    };
    steps.refused = [&](MatchToken site, const Rule& rule, const absl::Status& why) {
      outdated_.Refused(sites_, site);
      sites_[site].SetState("left");
      const std::string code = CodeOf(why);
      sites_[site].Say(code.empty() ? "not-buildable" : code, std::string(why.message()), rule.position.ToString());
      return absl::OkStatus();
    };
    RETURN_IF_ERROR(ApplyRules(workspace_, library_, VisitOrder::kRules, steps));
    // The first one may have become part of something larger, which the others are not.
    absl::flat_hash_set<const Node*> alone;
    for (const auto& [root, first] : waiting) {
      if (!root->dead && first->producer->dead) alone.insert(root);
    }
    waiting.clear();
    if (!alone.empty()) {
      steps.looks_at = [&](const Rule&, const Node* root) { return alone.contains(root); };
      RETURN_IF_ERROR(ApplyRules(workspace_, library_, VisitOrder::kRules, steps));
    }
    // What comes after an attention was looked at before it.
    steps.use = [](const Rule& rule) { return !rule.emit.empty() && (rule.kind == "attention" || rule.kind == "rotary"); };
    steps.looks_at = [&](const Rule&, const Node* root) { return equal.IsLookedAt(*root->output(0)); };
    while (std::exchange(learned_, false)) {
      RETURN_IF_ERROR(ApplyRules(workspace_, library_, VisitOrder::kRules, steps));
      waiting.clear();
    }
    return absl::OkStatus();
  }

  // The first of the values that equal the result of `root`. A product with a weight of ones is recognised with that weight,
  // as products with any other weight are, and not what it is a copy of.
  const Value* FirstOf(const Node& root, const EqualValues& equal) const {
    const Value* value = root.output(0);
    if (workspace_.numbering().Source(value) == nullptr) {
      const std::vector<const Value*>& same = equal.Of(*value);
      return same.empty() ? value : same.front();
    }
    for (const Value* other : equal.Weighted(*value)) {
      if (equal.IsLookedAt(*other)) return other;
    }
    return value;
  }

  // Later values that equal one that was recognised read it instead of computing the construct once more.
  void Share(const Value& first, const EqualValues& equal, Site* site) {
    std::vector<const Value*> same = equal.Of(first);
    same.insert(same.end(), equal.Weighted(first).begin(), equal.Weighted(first).end());
    for (const Value* value : same) {
      const Node* const producer = value->producer;
      const bool made = site_of_.contains(producer) || shared_.contains(producer);
      if (value == &first || producer->dead || made || !StandsBefore(*first.producer, *producer)) continue;
      Cover(producer, site);
      const Node* const read = BecomeCopy(workspace_, value, first.producer->output(first.output_index));
      shared_.insert(read);
      site->made.push_back(read);
    }
  }

  void Cover(const Node* node, Site* site) const {
    if (Label(*node).empty()) return;
    site->covered.push_back(node);
    const auto original = original_.find(node);
    if (original == original_.end() && workspace_.IsMade(*node)) return;  // of an operator of ONNX Runtime: nobody finds its name
    site->record.covers.emplace_back(Label(original != original_.end() ? *original->second : *node));
  }

  // The node to name for a root that `group_halves` made: what computes its first half.
  const Node& InModel(const Node& root) const { return grouped_.contains(&root) ? *root.input(0)->producer : root; }

  // A site for the match; its number.
  MatchToken Note(const Rule& rule, const Match& match, const Node* root) {
    Site site;
    site.value = root->output(0);
    site.assumes = rule.assumes;
    site.ge_construct = rule.ge_construct;
    site.of_numbers = AsksForNumbers(rule);
    site.no_ge_pass = rule.no_ge_pass || original_.contains(root);
    site.order = root->order;
    site.record.kind = rule.kind;
    site.record.rule = rule.name;
    site.record.precision = rule.precision;
    site.record.node = std::string(Label(InModel(*root)));
    site.record.module = ModuleOf(match.covered);
    for (const std::string& name : rule.outputs) {
      const Term& output = match.terms[rule.scope.Find(name)];
      if (output.kind == Term::Kind::kValue && output.value != site.value) site.others.push_back(output.value);
    }
    for (const Node* node : match.covered) {
      if (const auto earlier = site_of_.find(node); earlier != site_of_.end()) {
        taken_.emplace_back(earlier->second, sites_.size());
      }
      Cover(node, &site);
    }
    sites_.push_back(std::move(site));
    return sites_.size() - 1;
  }

  // A construct that became part of a larger one, and that nothing else reads, is not a site of its own: the gelu of a
  // gate. Its nodes are covered by the larger one, and come back with it.
  void Absorb() {
    for (const auto& [part, whole] : taken_) {
      Site& from = sites_[part];
      Site& into = sites_[whole];
      if (outdated_.Contains(part) || from.node == nullptr || into.node == nullptr || from.value->is_graph_output ||
          from.made.size() != 1 || !LiveUses(*from.value).empty()) {
        continue;
      }
      outdated_.Add(part);
      auto& covers = into.record.covers;
      covers.insert(covers.begin(), from.record.covers.begin(), from.record.covers.end());
      into.record.assumptions.insert(into.record.assumptions.end(), from.record.assumptions.begin(),
                                     from.record.assumptions.end());
      into.covered.insert(into.covered.begin(), from.covered.begin(), from.covered.end());
      into.made.insert(into.made.begin(), from.made.begin(), from.made.end());  // restored after the larger one
    }
    outdated_.EraseFrom(&sites_);
  }

  // Operators of the model that are constructs by themselves.
  void FindNative() {
    Matcher matcher(library_, workspace_.Context());
    for (const auto& graph : workspace_.model().graphs()) {
      for (const Node* node : graph->nodes()) {
        if (node->dead || workspace_.IsMade(*node) || node->output(0) == nullptr) continue;
        const auto kind = kind_of_.find(OperatorKey(*node));
        if (kind == kind_of_.end() || kind->first == "Identity") continue;
        Site site;
        site.value = node->output(0);
        site.node = node;
        site.order = node->order;
        site.record.kind = kind->second;
        site.record.rule = "native";
        site.record.node = std::string(Label(*node));
        site.record.module = ModulePath(*node);
        Cover(node, &site);
        if (const auto readers = readers_of_.find(kind->first); readers != readers_of_.end()) {
          SayWhyNotRead(readers->second, &matcher, &site);
        }
        sites_.push_back(std::move(site));
      }
    }
  }

  // Rules that change nothing.
  absl::Status Observe() {
    absl::flat_hash_map<const Value*, std::string> module_of;
    for (const Site& site : sites_) module_of.try_emplace(site.value, site.record.module);
    absl::flat_hash_set<std::pair<std::string, const Value*>> observed;
    RuleSteps steps;
    steps.use = [](const Rule& rule) { return rule.emit.empty(); };
    steps.matched = [&](const Rule& rule, const Match& match, const Node* root) {
      if (!observed.insert({rule.kind, root->output(0)}).second) return kNotEmitted;
      const MatchToken site = Note(rule, match, root);
      // What is seen beside a construct lies in that construct's module.
      if (const auto module = module_of.find(root->output(0)); module != module_of.end()) {
        sites_[site].record.module = module->second;
      }
      return kNotEmitted;
    };
    return ApplyRules(workspace_, library_, VisitOrder::kRules, steps);
  }

  Workspace& workspace_;
  const RuleSet& library_;
  std::vector<Site>& sites_;
  absl::flat_hash_map<std::string, std::string> kind_of_;                  // by operator
  absl::flat_hash_map<std::string, std::vector<const Rule*>> readers_of_;  // by operator
  absl::flat_hash_set<const Node*> grouped_;                               // Concats that group_halves made
  absl::flat_hash_map<const Node*, const Node*> original_;                 // what nodes of straightened norms are in the model
  absl::flat_hash_map<const Node*, size_t> site_of_;                       // what was made, and for which site
  absl::flat_hash_set<const Node*> shared_;                                // what reads the first of equal constructs
  OutdatedSites outdated_;
  DimsOfMasks& dims_of_masks_;
  bool learned_ = false;                          // of a batch, since attentions were looked for
  std::vector<std::pair<size_t, size_t>> taken_;  // sites whose node a later one matched, with the later one
};

}  // namespace

absl::Status Recognise(Workspace& workspace) {
  workspace.first_id_of_sites = workspace.model().node_count();
  DimsOfMasks dims_of_masks(workspace);
  const absl::Status status = Recogniser(workspace, &dims_of_masks).Run();
  workspace.known_of_sites = dims_of_masks.Known();
  return status;
}

}  // namespace ascend_fuse
