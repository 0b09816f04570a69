// Recognise: rules of patterns/rules/library replace subgraphs by standard operators, or note what they see.
#include <algorithm>
#include <map>
#include <tuple>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "fmt/format.h"
#include "passes/module_path.h"
#include "passes/pipeline.h"

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

// A node's name, or that of what it computes: exporters need not name nodes.
std::string_view Label(const Node& node) {
  const std::string_view name = NodeName(node);
  if (!name.empty() || node.output_count == 0 || node.output(0) == nullptr) return name;
  return ValueName(*node.output(0));
}

// Operators that only stand where a construct begins, rarest first: one that no rule covered deserves an
// answer.
constexpr std::string_view kAnchors[] = {
    "Softmax",         "Erf",         "Tanh", "InstanceNormalization", "LpNormalization", "Sigmoid",
    "HardSigmoid",     "Clip",        "ReduceL2",
    "ReduceSumSquare", "Neg",         "ReduceMean",
};

bool UsesOperator(const RuleSet& rules, const Pattern& pattern, std::string_view op_type, int depth) {
  if (depth > 20) return false;
  if (pattern.kind == Pattern::Kind::kOperator && pattern.name == op_type) return true;
  for (const PatternPointer& argument : pattern.arguments) {
    if (UsesOperator(rules, *argument, op_type, depth + 1)) return true;
  }
  if (pattern.kind == Pattern::Kind::kDefinition) {
    for (const auto& alternative : rules.definitions()[pattern.definition].alternatives) {
      if (UsesOperator(rules, *alternative.pattern, op_type, depth + 1)) return true;
    }
  }
  return false;
}

// The operator that an emission is about: the one of our own domain, where nodes that fit it to the graph stand behind
// it, else the last.
Node* RecognisedNode(const Emission& emission) {
  Node* last = emission.replacements.back();
  if (Domain(*last) == "ascend_fuse") return last;
  for (const Use& use : last->inputs()) {
    for (const Value* value = use.value; value != nullptr && value->producer != nullptr;
         value = value->producer->input(0)) {
      // Not beyond what this rule made: another recogniser's operator may stand before it.
      const auto& inserted = emission.inserted;
      if (std::find(inserted.begin(), inserted.end(), value->producer) == inserted.end()) break;
      if (Domain(*value->producer) == "ascend_fuse") return value->producer;
    }
  }
  return last;
}

// Values that value numbering proves equal although each is computed by itself, by graph and number, in the order of the
// graph. Copies of one another (noise) are not among them.
class EqualValues {
 public:
  EqualValues(const Model& model, const ValueNumbering& numbering) : numbering_(numbering) {
    for (const auto& graph : model.graphs()) {
      for (Node* node : graph->nodes()) {
        if (node->dead || node->output(0) == nullptr || numbering.Source(node->output(0)) != nullptr) continue;
        members_[{graph.get(), numbering.Number(node->output(0))}].push_back(node->output(0));
      }
    }
    for (auto& [key, values] : members_) {
      std::sort(values.begin(), values.end(), [](const Value* a, const Value* b) {
        return a->producer->order != b->producer->order ? a->producer->order < b->producer->order : a->id < b->id;
      });
    }
  }

  // All of them, the first one first; empty where there is none.
  const std::vector<Value*>& Of(const Value& value) const {
    static const std::vector<Value*>* const kNone = new std::vector<Value*>();
    const auto found = members_.find({value.graph, numbering_.Number(&value)});
    return found != members_.end() ? found->second : *kNone;
  }

 private:
  const ValueNumbering& numbering_;
  absl::flat_hash_map<std::pair<const Graph*, uint32_t>, std::vector<Value*>> members_;
};

// Whether a construct is looked for at `value`, or at a value that is the same: at one of several copies it would be found
// once for each.
bool IsLookedAt(const Value& value, const EqualValues& equal, const ValueNumbering& numbering) {
  const Value* source = numbering.Source(&value);
  if (source == nullptr) return true;
  return CountReaders(*source) == 1 && equal.Of(value).size() <= 1;
}

}  // namespace

absl::Status Pipeline::Recognise() {
  if (absl::Status status = Standardize(); !status.ok()) return status;
  const double started = Now();
  const uint64_t changes_before = rewriter_->change_count();
  Matcher matcher(*library_, Context());

  absl::flat_hash_map<const Graph*, size_t> place_of;  // addresses differ from run to run
  for (const auto& graph : model_->graphs()) place_of.try_emplace(graph.get(), place_of.size());
  absl::flat_hash_map<std::string, std::vector<Node*>> by_operator;
  auto add = [&](Node* node) {
    by_operator[OperatorKey(*node)].push_back(node);
    if (IsOp(*node, "Sum") && node->input_count == 2) by_operator["Add"].push_back(node);  // one of them
  };
  for (const auto& graph : model_->graphs()) {
    for (Node* node : graph->nodes()) {
      if (!node->dead) add(node);
    }
  }

  // What an operator is by itself, so that those that are there already become sites too: what rules make,
  // and what rules read as one operator (those of newer opsets).
  absl::flat_hash_map<std::string, std::string> kind_of;
  absl::flat_hash_map<std::string, const Rule*> reader_of;
  for (const Rule& rule : library_->rules()) {
    if (Skipped(rule)) continue;
    for (const EmitStatement& statement : rule.emit) {
      if (statement.value.kind != Expression::Kind::kOperator) continue;
      // Where an operator of ours stands inside, what is around it fits it to the graph.
      if (statement.value.domain != "ascend_fuse" && Mentions(statement.value, "ascend_fuse")) continue;
      if (statement.names[0] != rule.outputs[0]) continue;  // further outputs are sums and the like
      const Expression& op = statement.value;
      kind_of[op.domain.empty() ? op.text : op.domain + "." + op.text] = rule.kind;
    }
    if (rule.size == 1 && !rule.emit.empty()) {
      const std::string& root = library_->RootOperators(&rule - library_->rules().data())[0];
      kind_of[root] = rule.kind;
      reader_of[root] = &rule;
    }
  }

  absl::flat_hash_set<std::pair<std::string, const Value*>> observed;
  absl::flat_hash_map<const Node*, size_t> site_of;  // what was made, and for which site
  std::vector<std::pair<size_t, size_t>> taken;      // sites whose node a later one matched, with the later one
  auto note = [&](const Rule& rule, const Match& match, Value* value, const std::string& root) {
    PipelineSite site;
    site.kind = rule.kind;
    site.rule = rule.name;
    site.by_ge = rule.by_ge;
    site.precision = rule.precision;
    for (const std::string& name : rule.outputs) {
      const Term& output = match.terms[rule.scope.Find(name)];
      if (output.kind == Term::Kind::kValue && output.value != value) site.others.push_back(output.value);
    }
    site.value = value;
    site.root = root;
    site.order = value->producer != nullptr ? value->producer->order : 0;
    site.module = ModuleOf(match.covered);
    for (const Node* node : match.covered) {
      if (const auto earlier = site_of.find(node); earlier != site_of.end()) {
        taken.emplace_back(earlier->second, sites_.size());
      }
      if (!node->is_new && !Label(*node).empty()) site.covers.emplace_back(Label(*node));
    }
    sites_.push_back(std::move(site));
  };

  const EqualValues equal(*model_, *numbering_);
  // Later values that equal one that was recognised read it instead of computing the construct once more.
  auto share = [&](const Value& first, PipelineSite* site) {
    for (Value* value : equal.Of(first)) {
      const Node* producer = value->producer;
      if (value == &first || producer->dead || producer->is_new || producer->order <= first.producer->order) continue;
      if (!Label(*producer).empty()) site->covers.emplace_back(Label(*producer));
      NewNode copy;
      copy.op_type = "Identity";
      copy.inputs = {const_cast<Value*>(&first)};
      Emission emission;
      emission.replacements = {rewriter_->Replace({value}, copy)};
      site->made.push_back(emission.replacements[0]);
      emissions_.push_back(std::move(emission));
    }
  };

  absl::flat_hash_map<const Value*, std::string> module_of;
  auto sweep_rules = [&](bool observations) -> absl::Status {
    for (size_t r = 0; r < library_->rules().size(); ++r) {
      const Rule& rule = library_->rules()[r];
      if (rule.emit.empty() != observations || Skipped(rule)) continue;
      std::vector<Node*> candidates;
      for (const std::string& root : library_->RootOperators(r)) {
        auto found = by_operator.find(root);
        if (found == by_operator.end()) continue;
        candidates.insert(candidates.end(), found->second.begin(), found->second.end());
      }
      // Last nodes first: a construct with an optional last step is met with that step.
      std::sort(candidates.begin(), candidates.end(), [&](const Node* a, const Node* b) {
        return a->graph != b->graph   ? place_of.at(a->graph) < place_of.at(b->graph)
               : a->order != b->order ? a->order > b->order
                                      : a->id > b->id;
      });
      for (Node* node : candidates) {
        if (node->dead || node->output(0) == nullptr) continue;
        if (options_.limit >= 0 && replacements_ >= options_.limit && !observations) break;
        Value* value = node->output(0);
        if (!observations && !IsLookedAt(*value, equal, *numbering_)) continue;
        const std::optional<Match> match = matcher.Run(rule, value);
        if (!match.has_value()) continue;
        // The first of equal values is recognised, and the others read it.
        Value* first = observations || equal.Of(*value).empty() ? value : equal.Of(*value).front();
        if (first != value && !first->producer->dead && matcher.Run(rule, first).has_value()) continue;
        const std::string root(Label(*node));
        if (observations) {
          if (!observed.insert({rule.kind, value}).second) continue;
          note(rule, *match, value, root);
          // What is seen beside a construct lies in that construct's module.
          if (auto module = module_of.find(value); module != module_of.end())
            sites_.back().module = module->second;
          continue;
        }
        note(rule, *match, value, root);
        const absl::StatusOr<Emission> emission = emitter_->Emit(*match, Context());
        if (!emission.ok()) {
          sites_.back().state = SiteState::kLeft;
          sites_.back().because = std::string(emission.status().message());
          sites_.back().source = rule.position.ToString();
          continue;
        }
        ++replacements_;
        emissions_.push_back(*emission);
        sites_.back().node = RecognisedNode(*emission);
        sites_.back().made = emission->replacements;
        for (Node* made : emission->replacements) {
          add(made);
          site_of.emplace(made, sites_.size() - 1);
        }
        for (Node* made : emission->inserted) add(made);
        share(*value, &sites_.back());
      }
    }
    return absl::OkStatus();
  };
  if (absl::Status status = sweep_rules(false); !status.ok()) return status;
  Absorb(taken);

  // Operators of the model that are constructs by themselves.
  for (const auto& graph : model_->graphs()) {
    for (Node* node : graph->nodes()) {
      if (node->dead || node->is_new || node->output(0) == nullptr) continue;
      auto kind = kind_of.find(OperatorKey(*node));
      if (kind == kind_of.end() || kind->first == "Identity") continue;
      PipelineSite site;
      site.kind = kind->second;
      site.rule = "native";
      site.value = node->output(0);
      site.node = node;
      site.root = std::string(Label(*node));
      site.order = node->order;
      site.module = ModulePath(*node);
      site.covers.emplace_back(Label(*node));
      if (auto reader = reader_of.find(kind->first); reader != reader_of.end()) {
        Failure failure;
        matcher.Run(*reader->second, site.value, &failure);
        if (failure.rule != nullptr) {
          site.because = failure.is_sentence
                             ? failure.found
                             : fmt::format("expected {}, found {}", failure.expected, failure.found);
          site.source = failure.position.ToString();
        }
      }
      sites_.push_back(std::move(site));
    }
  }
  for (const PipelineSite& site : sites_) module_of.try_emplace(site.value, site.module);
  if (absl::Status status = sweep_rules(true); !status.ok()) return status;
  FindPairs();
  FindNearMisses();
  FinishRun("recognise", started, changes_before);
  return Verify("recognise");
}

// A construct that became part of a larger one, and that nothing else reads, is no site of its own: the gelu of a gate.
// Its nodes are covered by the larger one, and come back with it.
void Pipeline::Absorb(const std::vector<std::pair<size_t, size_t>>& taken) {
  std::vector<bool> gone(sites_.size(), false);
  for (const auto& [part, whole] : taken) {
    PipelineSite& from = sites_[part];
    PipelineSite& into = sites_[whole];
    if (gone[part] || from.node == nullptr || into.node == nullptr || from.value->is_graph_output ||
        from.made.size() != 1 || !LiveUses(*from.value).empty()) {
      continue;
    }
    gone[part] = true;
    into.covers.insert(into.covers.begin(), from.covers.begin(), from.covers.end());
    into.made.insert(into.made.begin(), from.made.begin(), from.made.end());  // restored after the larger one
  }
  size_t kept = 0;
  for (size_t i = 0; i < sites_.size(); ++i) {
    if (gone[i]) continue;
    if (kept != i) sites_[kept] = std::move(sites_[i]);
    ++kept;
  }
  sites_.resize(kept);
}

// Query and key of one attention are turned by one cos and sin: two sites next to each other in the model's order that
// share both, of which neither needs the other.
void Pipeline::FindPairs() {
  std::map<std::tuple<const Graph*, std::string, uint32_t, uint32_t>, std::vector<int>> groups;
  for (size_t i = 0; i < sites_.size(); ++i) {
    const Node* node = sites_[i].node;
    if (sites_[i].kind != "rotary" || node == nullptr || node->dead || Domain(*node) != "ascend_fuse") continue;
    if (node->input(1) == nullptr || node->input(2) == nullptr) continue;
    groups[{node->graph, std::string(StringAttribute(*node, "mode").value_or("")),
            numbering_->Number(node->input(1)), numbering_->Number(node->input(2))}]
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
              [&](int a, int b) { return std::tie(sites_[a].order, a) < std::tie(sites_[b].order, b); });
    for (size_t i = 0; i + 1 < members.size(); ++i) {
      PipelineSite& first = sites_[members[i]];
      PipelineSite& second = sites_[members[i + 1]];
      const bool apart = !first.module.empty() && !second.module.empty() && first.module != second.module;
      if (apart || first.node == second.node || needs(second.node, first.node)) continue;
      first.pair = members[i + 1];
      second.pair = members[i];
      ++i;
    }
  }
}

// For every anchor that no rule covered, the rule that got farthest and where it stopped.
void Pipeline::FindNearMisses() {
  // With --limit constructs are left on purpose: nothing is missing there.
  if (options_.limit >= 0) return;
  Matcher matcher(*library_, Context());
  absl::flat_hash_map<std::string_view, std::vector<size_t>> rules_of;
  std::vector<std::string_view> anchors(std::begin(kAnchors), std::end(kAnchors));
  for (const FunctionRow& function : Functions()) {
    if (!function.anchor.empty() && std::find(anchors.begin(), anchors.end(), function.anchor) == anchors.end()) {
      anchors.push_back(function.anchor);
    }
  }
  for (std::string_view anchor : anchors) {
    const bool own = std::find(std::begin(kAnchors), std::end(kAnchors), anchor) != std::end(kAnchors);
    for (size_t r = 0; r < library_->rules().size(); ++r) {
      const Rule& rule = library_->rules()[r];
      if (rule.emit.empty() || Skipped(rule)) continue;
      const bool uses = own && std::any_of(rule.match.begin(), rule.match.end(), [&](const MatchStatement& statement) {
        return UsesOperator(*library_, *statement.pattern, anchor, 0);
      });
      const bool asks = std::any_of(rule.where.begin(), rule.where.end(), [&](const Condition& condition) {
        const Expression& side = condition.relation == Condition::Relation::kLet ? condition.right : condition.left;
        return side.kind == Expression::Kind::kCall && Functions()[side.function].anchor == anchor;
      });
      if (uses || asks) rules_of[anchor].push_back(r);
    }
  }
  for (const auto& graph : model_->graphs()) {
    for (Node* anchor : graph->nodes()) {
      if (anchor->dead || anchor->is_new || anchor->domain != NameId::kEmpty) continue;
      auto rules = rules_of.find(OpType(*anchor));
      if (rules == rules_of.end()) continue;
      const bool own = std::find(std::begin(kAnchors), std::end(kAnchors), OpType(*anchor)) != std::end(kAnchors);
      // Roots lie a few steps downstream.
      std::vector<Node*> reached = {anchor};
      absl::flat_hash_set<const Node*> seen = {anchor};
      for (size_t i = 0; i < reached.size() && reached.size() < 48; ++i) {
        for (const Value* value : reached[i]->outputs()) {
          if (value == nullptr) continue;
          int fan_out = 0;
          for (const Use& use : LiveUses(*value)) {
            if (++fan_out > 8) break;
            if (seen.insert(use.user).second) reached.push_back(use.user);
          }
        }
      }
      Failure best;
      bool best_covers = false;
      for (size_t r : rules->second) {
        const auto& roots = library_->RootOperators(r);
        for (Node* root : reached) {
          if (root->output(0) == nullptr ||
              std::find(roots.begin(), roots.end(), OperatorKey(*root)) == roots.end()) {
            continue;
          }
          Failure failure;
          if (matcher.Run(library_->rules()[r], root->output(0), &failure).has_value()) continue;
          // An attempt tells of this anchor if it reached it, or if it stopped on the way there or right
          // beside it.
          const bool covers =
              std::find(failure.covered.begin(), failure.covered.end(), anchor) != failure.covered.end();
          const bool beside =
              failure.covered.size() >= 3 &&
              std::any_of(failure.covered.begin(), failure.covered.end(), [&](const Node* node) {
                return std::any_of(node->inputs().begin(), node->inputs().end(), [&](const Use& use) {
                  return use.value != nullptr && use.value->producer == anchor;
                });
              });
          // A Sub alone tells nothing: what it is subtracted from and its product must be there too.
          if (!own && ((!covers && !beside) || failure.covered.size() < 3)) continue;
          const size_t enough = IsOp(*anchor, "Softmax") ? 1 : 2;
          const bool stopped = beside || (failure.covered.size() >= enough && seen.contains(failure.node));
          if ((covers && !best_covers) ||
              ((covers || (stopped && !best_covers)) && failure.rank > best.rank)) {
            best = std::move(failure);
            best_covers = covers;
          }
        }
      }
      if (best.rule == nullptr) continue;
      near_misses_.push_back({std::move(best), std::string(Label(*anchor)), ModulePath(*anchor)});
    }
  }
}

}  // namespace ascend_fuse
