// Lower: rules of patterns/rules/npu replace recognised operators by NPU nodes that the target's contract allows.
#include <algorithm>
#include <optional>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "fmt/format.h"
#include "ir/add_once.h"
#include "ir/schema.h"
#include "passes/core/call_of.h"
#include "passes/core/workspace.h"
#include "passes/layout/pad_heads.h"
#include "passes/lower/attempt.h"
#include "passes/lower/match_rule.h"
#include "passes/lower/open_dims.h"
#include "passes/lower/passes.h"
#include "passes/lower/rule_standings.h"
#include "passes/lower/whole_sites.h"
#include "patterns/cost/costs.h"
#include "patterns/terms/refusal.h"

namespace ascend_fuse {
namespace {

// What --dim or doing without --strict can change says more than that something else does not fit, but not more than that
// the chip has no such node, which was said of `site` before.
RefusalRank RankOf(std::string_view code, const Site& site) {
  const bool undecided = code == "undecided-dim" || code == "assumption-refused";
  const bool no_node = site.record.code == "node-refused" || site.record.code == "no-node";
  return undecided && !no_node ? RefusalRank::kUndecided : RefusalRank::kRefusedByTarget;
}

// "72", or "16 and 32" where those of the value have another size.
std::string HeadSizes(const Facts& facts, const Node& attention) {
  const auto size = [&](size_t i) {
    const DimTable& dims = facts.dims();
    return dims.ToString(dims.Resolve(facts.Of(attention.input(i)).shape.back()));
  };
  return size(0) == size(2) ? size(0) : fmt::format("{} and {}", size(0), size(2));
}

std::string NamesOf(const std::vector<std::string>& names) {
  constexpr size_t kNamed = 4;
  std::string text;
  for (size_t i = 0; i < std::min(names.size(), kNamed); ++i) text += (text.empty() ? "" : ", ") + names[i];
  if (names.size() > kNamed) text += fmt::format(" and {} more", names.size() - kNamed);
  return text.empty() ? "shared with other layers" : text;
}

class Lowering {
 public:
  explicit Lowering(Workspace& workspace)
      : workspace_(workspace),
        rules_(workspace.rules(RuleFolder::kNpu)),
        target_(*workspace.target()),
        standings_(workspace),
        padder_(workspace),
        whole_sites_(workspace) {}

  void Run() {
    for (size_t i = 0; i < workspace_.sites.size(); ++i) {
      const Site& site = workspace_.sites[i];
      sites_of_[site.node != nullptr ? site.node->output(0) : site.value].push_back(i);
    }
    PlaceObservations();
    // Outermost last: helpers made for one site are there for the next.
    std::vector<const Node*> nodes;
    for (const Site& site : workspace_.sites) {
      if (site.node != nullptr && site.pending()) nodes.push_back(site.node);
    }
    SortInOrder(&nodes);
    for (const Node* node : nodes) {
      if (!node->dead) LowerNode(node);
    }
    // A norm further down, which would divide rows of zeros, may be a node by now whose epsilon is larger.
    for (const Site& site : workspace_.sites) {
      if (site.record.code == "zero-rows-divided" && site.node != nullptr && site.pending() && !site.node->dead)
        LowerNode(site.node);
    }
    for (const Site* site : ForgetGeOfOpenDims(workspace_)) LowerNode(site->node);
    LowerWider();
  }

 private:
  // A rotation whose heads were padded after it was refused may be wide enough now.
  void LowerWider() {
    for (size_t i = 0; i < workspace_.sites.size(); ++i) {
      Site& site = workspace_.sites[i];
      const auto found = site.node != nullptr && site.pending() ? wider_.find(site.node) : wider_.end();
      if (found == wider_.end() || found->second->dead || OperatorKey(*site.node) != "ascend_fuse.Rotary") continue;
      const Node* const narrow = std::exchange(site.node, found->second);
      sites_of_[site.node->output(0)] = {i};
      LowerNode(site.node);
      if (site.pending()) site.node = narrow;
    }
  }

  // What was not seen beside another construct (a linear and its Relu) is lowered where it stands.
  void PlaceObservations() {
    for (Site& site : workspace_.sites) {
      const Node* producer = site.value->producer;
      if (site.node != nullptr || producer == nullptr || producer->output(0) != site.value) continue;
      const std::vector<size_t>& same = sites_of_[site.value];
      if (std::none_of(same.begin(), same.end(), [&](size_t other) { return workspace_.sites[other].node != nullptr; })) {
        site.node = producer;
      }
    }
  }

  void LowerNode(const Node* node) {
    const std::string key = OperatorKey(*node);
    const InPlace place(*node->graph, &workspace_.facts());
    Attempt attempt;
    attempt.node = node;
    for (size_t index : sites_of_[node->output(0)]) {
      Site& site = workspace_.sites[index];
      if (!site.pending()) continue;
      attempt.sites.push_back(&site);
      if (site.node == node) attempt.main = &site;
    }
    if (attempt.main == nullptr) return;
    if (attempt.main->pair >= 0) {
      Site& partner = workspace_.sites[static_cast<size_t>(attempt.main->pair)];
      if (partner.pending() && !partner.node->dead) attempt.partner = &partner;
    }
    for (const size_t r : rules_.RulesEndingIn(key)) {
      const Rule& rule = rules_.rules()[r];
      if (workspace_.Skipped(rule)) continue;
      if (!rule.ge_construct.empty() && target_.FusedByGe(rule.ge_construct).has_value()) continue;
      if (!rule.joined_by_ge.empty() && !target_.FusedByGe(rule.joined_by_ge).has_value()) continue;
      // A form that GE's own pass takes stays as it is, unless there is a better node for it.
      const Site& main = *attempt.main;
      if (!main.ge_construct.empty() && rule.kind == main.record.kind && (rule.nodes.empty() || rule.yields_to_ge) &&
          target_.FusedByGe(main.ge_construct).has_value()) {
        continue;
      }
      if (!whole_sites_.IsWhole(rule, main)) continue;
      if (standings_.MayTry(r, attempt) && Try(r, &attempt)) return;
    }
  }

  // What the target says of the Ascend nodes of an emission: the first refusal, with the node in `refused`, or all
  // assumptions. `lowered_to` is the last of them, or the standard operator that every parser of the target maps to a kernel.
  Answer Ask(const Rule& rule, const Emission& emission, std::vector<std::string>* assumptions, std::string* lowered_to,
             const Node** refused) {
    Answer answer;
    answer.legal = true;
    std::vector<const Node*> made = emission.replacements;
    made.insert(made.end(), emission.inserted.begin(), emission.inserted.end());
    for (const Node* candidate : made) {
      if (Domain(*candidate) != "npu") continue;
      const std::string op = fmt::format("npu.{}", OpType(*candidate));
      Answer one = target_.Check(CallOf(*candidate, workspace_.facts(), op), &workspace_.facts().dims());
      if (!one.legal) {
        *refused = candidate;
        return one;
      }
      *lowered_to = op;
      AddEachOnce(one.assumptions, assumptions);
    }
    // The node was made for an equal site, and what stands here reads it.
    if (lowered_to->empty() && !rule.nodes.empty()) *lowered_to = rule.nodes.back();
    if (lowered_to->empty()) {
      const auto main_node = std::find_if(made.begin(), made.end(), [](const Node* candidate) {
        const Schema* schema = SchemaOf(*candidate);
        return schema != nullptr && schema->costly;
      });
      *lowered_to = OperatorKey(main_node != made.end() ? **main_node : *emission.replacements.back());
    }
    return answer;
  }

  // True where the rule took the operator.
  bool Try(size_t r, Attempt* attempt) {
    const Rule& rule = rules_.rules()[r];
    std::vector<std::string> assumptions;
    const FunctionContext context = workspace_.Context(&assumptions);
    const std::optional<Match> match = MatchRule(workspace_, r, context, attempt);
    if (!match.has_value()) return false;
    const absl::StatusOr<Emission> emission = workspace_.emitter().Emit(*match, context);
    if (!emission.ok()) {
      const std::string code = CodeOf(emission.status());
      attempt->Refuse(rule, code.empty() ? "not-buildable" : code, std::string(emission.status().message()),
                      rule.position.ToString(), RefusalRank::kNotBuilt);
      return false;
    }
    std::string lowered_to;
    const Node* refused = nullptr;
    Answer answer = Ask(rule, *emission, &assumptions, &lowered_to, &refused);
    for (const Site* site : attempt->sites) {
      if (!site->assumes.empty()) AddOnce(site->assumes, &assumptions);
    }
    if (answer.legal && workspace_.options().strict && !assumptions.empty()) {
      answer.legal = false;
      answer.because = fmt::format("--strict: fusing would assume that {}", assumptions[0]);
      answer.source = rule.position.ToString();
      answer.code = "assumption-refused";
    }
    if (!answer.legal) {
      const bool attention = refused != nullptr && OperatorKey(*attempt->node) == "ascend_fuse.Attention";
      const absl::StatusOr<int64_t> heads = attention && !attempt->padded ? HeadsTaken(*refused, workspace_) : 0;
      const std::string kernel(refused != nullptr ? OpType(*refused) : "");
      workspace_.emitter().TakeBack(*emission);
      if (!heads.ok())
        answer.because += fmt::format("; zeros in the weights could pad it, but {}", std::string(heads.status().message()));
      if (heads.ok() && *heads > 0 && TryPadded(r, kernel, *heads, attempt, &answer)) return true;
      // That the two of a pair cannot share a node says less than why one has none of its own.
      const bool pair = rule.outputs.size() > 1 && attempt->partner != nullptr;
      attempt->Refuse(rule, answer.code, answer.because, answer.source,
                      pair ? RefusalRank::kNoSuchNode : RankOf(answer.code, *attempt->main));
      return false;
    }
    Take(rule, lowered_to, assumptions, attempt);
    if (!rule.joined_by_ge.empty()) LeaveToGe(rule, *emission, attempt->main);
    return true;
  }

  // GE joins what was written, as it joins the same form in a model that has it.
  void LeaveToGe(const Rule& rule, const Emission& emission, Site* site) const {
    const std::optional<GeConstruct> ge = target_.FusedByGe(rule.joined_by_ge);
    site->SetState("by_ge");
    site->record.emitted_op.clear();
    site->ge_construct = rule.joined_by_ge;
    site->no_ge_pass = false;
    site->of_numbers = false;
    site->for_ge.assign(emission.inserted.begin(), emission.inserted.end());
    site->for_ge.insert(site->for_ge.end(), emission.replacements.begin(), emission.replacements.end());
    workspace_.result.adapted[{"by-ge", site->record.kind}].push_back(site->record.node);
    site->Say("by-ge", fmt::format("it is written in the form that GE joins: {}", ge->because), ge->source);
  }

  // The same with zeros after the channels of every head, of which nothing but the size was refused. Where they cannot be put
  // there the answer says why.
  bool TryPadded(size_t r, const std::string& kernel, int64_t width, Attempt* attempt, Answer* answer) {
    const Rewriter::Mark mark = workspace_.rewriter().Now();
    const Node* const node = attempt->node;
    const std::string before = HeadSizes(workspace_.facts(), *node);
    const absl::StatusOr<PaddedHeads> padded = padder_.Pad(node, width);
    if (padded.ok()) {
      attempt->padded = true;
      attempt->node = attempt->main->node = padded->attention;
      if (Try(r, attempt)) {
        wider_.insert(padded->wider.begin(), padded->wider.end());
        const HeadPadding& why = *FindHeadPadding(kernel);
        attempt->main->Say(
            "heads-padded",
            fmt::format("its heads of {} have zeros up to {} in the weights ({}){}: {}; measured: {}", before, width,
                        NamesOf(padded->weights), padded->sliced ? ", which a Slice takes out of the result" : "",
                        answer->because, why.because),
            why.source);
        return true;
      }
      attempt->padded = false;
      attempt->node = attempt->main->node = node;
    } else {
      answer->because +=
          fmt::format("; zeros in the weights could pad it to {}, but {}", width, std::string(padded.status().message()));
    }
    workspace_.emitter().TakeBackAll(mark);
    padder_.Forget();
    return false;
  }

  void Take(const Rule& rule, const std::string& lowered_to, const std::vector<std::string>& assumptions, Attempt* attempt) {
    // A rule about both of a pair replaces the partner too.
    Site* const partner = attempt->partner;
    if (partner != nullptr && partner->node->dead) attempt->sites.push_back(partner);
    for (Site* site : attempt->sites) {
      SiteRecord& record = site->record;
      if (site != attempt->main && site != partner && rule.kind != record.kind) continue;
      site->SetState("fused");
      if (rule.precision == "approximate" || record.precision == "exact") record.precision = rule.precision;
      site->lowered_by = rule.name;
      record.emitted_op = lowered_to;
      const auto why = attempt->why_this_form.find({rule.kind, rule.name});
      const bool told = why != attempt->why_this_form.end();
      if (told) {
        site->Say(why->second.code, why->second.because, why->second.source);
      } else if (record.code != "opset-too-low") {  // else it says why a better form was not used
        site->Say("", "", "");
      }
      AddEachOnce(assumptions, &record.assumptions);
    }
  }

  Workspace& workspace_;
  const RuleSet& rules_;
  const Target& target_;
  RuleStandings standings_;
  HeadPadder padder_;
  absl::flat_hash_map<const Node*, const Node*> wider_;              // what padding put in the place of nodes
  absl::flat_hash_map<const Value*, std::vector<size_t>> sites_of_;  // by what they compute
  WholeSites whole_sites_;
};

}  // namespace

absl::Status Lower(Workspace& workspace) {
  if (workspace.target() == nullptr) return absl::FailedPreconditionError("without a target nothing can be lowered");
  Lowering(workspace).Run();
  return absl::OkStatus();
}

}  // namespace ascend_fuse
