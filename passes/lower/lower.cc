// Lower: rules of patterns/rules/npu replace recognised operators by NPU nodes that the target's contract allows.
#include <algorithm>
#include <optional>

#include "absl/container/flat_hash_map.h"
#include "fmt/format.h"
#include "ir/schema.h"
#include "passes/core/call_of.h"
#include "passes/core/workspace.h"
#include "passes/layout/pad_heads.h"
#include "passes/lower/passes.h"
#include "patterns/analysis/routing.h"
#include "patterns/operators/slower_sites.h"
#include "patterns/terms/refusal.h"

namespace ascend_fuse {
namespace {

void AddOnce(std::vector<std::string>* sentences, const std::vector<std::string>& more) {
  for (const std::string& sentence : more) {
    if (std::find(sentences->begin(), sentences->end(), sentence) == sentences->end()) {
      sentences->push_back(sentence);
    }
  }
}

// What the target says of the first node of a rule that it refuses in any form; nullopt if it has them all.
std::optional<Answer> WhyNoSuchNode(const Rule& rule, const Target& target, DimTable* dims) {
  for (const std::string& op : rule.nodes) {
    if (!target.HasNode(op)) return target.Check(Call{op, {}, {}}, dims);
  }
  return std::nullopt;
}

// Who reads "npu.NPUSwiGlu" of an ONNX file: "stock", "plugin", or "" where it is no node that we declare.
std::string_view ParserOf(std::string_view op) {
  const DeclaredOperator* node = FindDeclaredOperator("npu", op.substr(op.find('.') + 1));
  return node != nullptr && node->ge.has_value() ? std::string_view(node->ge->parser) : std::string_view();
}

class Lowering {
 public:
  explicit Lowering(Workspace& workspace)
      : workspace_(workspace),
        rules_(workspace.rules(RuleFolder::kNpu)),
        target_(*workspace.target()),
        standings_(rules_.rules().size()),
        padder_(workspace) {}

  void Run() {
    for (size_t i = 0; i < workspace_.sites.size(); ++i) {
      const Site& site = workspace_.sites[i];
      sites_of_[site.node != nullptr ? site.node->output(0) : site.value].push_back(i);
    }
    PlaceObservations();
    // Outermost last: helpers made for one site are there for the next.
    std::vector<Node*> nodes;
    for (const Site& site : workspace_.sites) {
      if (site.node != nullptr && site.pending()) nodes.push_back(site.node);
    }
    std::sort(nodes.begin(), nodes.end(), [](const Node* a, const Node* b) { return StandsBefore(*a, *b); });
    for (Node* node : nodes) {
      if (!node->dead) LowerNode(node);
    }
  }

 private:
  struct WhyThisForm {
    std::string code;
    std::string because;
    std::string source;
  };

  // A recognised operator whose lowering is looked for, and the rule that is tried.
  struct Attempt {
    Node* node = nullptr;
    Site* main = nullptr;
    Site* partner = nullptr;   // the other of a pair, where it is not decided
    bool padded = false;       // zeros were put behind its heads
    std::vector<Site*> sites;  // all that are not decided and computed by this operator
    // Why a rule that goes before another one was not used: what that other one emits has its form for this
    // reason. By kind and name of the other one.
    absl::flat_hash_map<std::pair<std::string, std::string>, WhyThisForm> why_this_form;
  };

  // What was seen beside no other construct (a linear and its Relu) is lowered where it stands.
  void PlaceObservations() {
    for (Site& site : workspace_.sites) {
      Node* producer = site.value->producer;
      if (site.node != nullptr || producer == nullptr || producer->output(0) != site.value) continue;
      const std::vector<size_t>& same = sites_of_[site.value];
      if (std::none_of(same.begin(), same.end(), [&](size_t other) { return workspace_.sites[other].node != nullptr; })) {
        site.node = producer;
      }
    }
  }

  void LowerNode(Node* node) {
    const std::string key = OperatorKey(*node);
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
      if (!rule.by_ge.empty() && target_.FusedByGe(rule.by_ge).has_value()) continue;
      // A form that GE's own pass takes stays as it is, unless there is a node for it.
      const Site& main = *attempt.main;
      if (!main.by_ge.empty() && rule.kind == main.record.kind && rule.nodes.empty() &&
          target_.FusedByGe(main.by_ge).has_value()) {
        continue;
      }
      const Standing& standing = StandingOf(r);
      if (standing.passed_over) continue;
      if (standing.slower != nullptr && IsSlowerHere(r, *standing.slower, attempt)) continue;
      if (Try(r, &attempt)) return;
    }
  }

  // A rule's refusal is told where its kind is counted.
  static void Refuse(const Rule& rule, const Attempt& attempt, std::string_view code, const std::string& because,
                     const std::string& source, RefusalRank kind, const FailureRank& how_far = {}) {
    const std::pair rank(kind, how_far);
    for (Site* site : attempt.sites) {
      if (site->record.kind != rule.kind || rank <= site->refusal) continue;
      site->refusal = rank;
      site->Say(std::string(code), because, source);
    }
  }

  // What the target makes of a rule, whatever the site.
  struct Standing {
    bool passed_over = false;
    // The node of it that was measured slower at some sites, and is not preferred.
    const DeclaredOperator* slower = nullptr;
  };

  const Standing& StandingOf(size_t r) {
    std::optional<Standing>& standing = standings_[r];
    const Rule& rule = rules_.rules()[r];
    if (!standing.has_value()) standing = Standing{IsPassedOver(rule), workspace_.SlowerNode(rule)};
    return *standing;
  }

  // Where the target has not the node of our plugin that a rule emits, and the rule is preferred over one whose nodes stock
  // ATC reads, what is said of the latter says more.
  bool IsPassedOver(const Rule& rule) const {
    if (rule.nodes.empty() || target_.HasNode(rule.nodes[0]) || ParserOf(rule.nodes[0]) != "plugin") return false;
    const auto& all = rules_.rules();
    for (const Rule* before = &rule; !before->preferred_over.empty();) {
      const auto named = [before](const Rule& other) { return other.name == before->preferred_over; };
      const auto next = std::find_if(all.begin(), all.end(), named);
      if (next == all.end()) return false;
      const auto stock = [](const std::string& op) { return ParserOf(op) == "stock"; };
      if (!next->nodes.empty() && std::all_of(next->nodes.begin(), next->nodes.end(), stock)) return true;
      before = &*next;
    }
    return false;
  }

  // True, and told, where the node of a rule is slower than what it takes the place of at this site.
  bool IsSlowerHere(size_t r, const DeclaredOperator& node, const Attempt& attempt) {
    for (const SlowerSites& row : SlowerSitesOf(node.op_type)) {
      // The one test that there is.
      const Node* router = nullptr;
      for (const Use& use : attempt.node->inputs()) {
        if (router == nullptr) router = FindRouter(workspace_.facts(), use.value);
      }
      if (router == nullptr) continue;
      RefuseSlower(r, node, attempt, fmt::format(" for rows that a router ({}) chose", OpType(*router)), row.because, row.source);
      return true;
    }
    return false;
  }

  // A node that was measured slower, where the target has it and the rule starts here.
  void RefuseSlower(size_t r, const DeclaredOperator& node, const Attempt& attempt, const std::string& where,
                    const std::string& because, const std::string& source) {
    const Rule& rule = rules_.rules()[r];
    if (const auto none = WhyNoSuchNode(rule, target_, &workspace_.facts().dims()); none.has_value()) {
      Refuse(rule, attempt, none->code, none->because, none->source, RefusalRank::kMeasuredSlower);
      return;
    }
    Refuse(rule, attempt, "measured-slower",
           fmt::format("{} was measured slower{} than the nodes it takes the place of ({}); --prefer {} emits it", node.op_type,
                       where, because, node.op_type),
           source, RefusalRank::kMeasuredSlower);
  }

  // Matches the rule at the operator of the attempt; nullopt notes why not.
  std::optional<Match> FindMatch(size_t r, Attempt* attempt, const FunctionContext& context) {
    const Rule& rule = rules_.rules()[r];
    Value* value = attempt->node->output(0);
    Matcher matcher(rules_, context);
    Failure failure;
    std::optional<Match> match =
        matcher.Run(rule, value, &failure, attempt->partner != nullptr ? attempt->partner->node->output(0) : nullptr);
    if (match.has_value()) return match;
    if (failure.is_sentence && !rule.preferred_over.empty()) {
      attempt->why_this_form[{rule.kind, rule.preferred_over}] = {failure.has_own_code() ? failure.code : "other-form",
                                                                  failure.found, failure.position.ToString()};
    }
    // That there is no such node here says more than why it could not be used.
    if (failure.is_sentence) {
      if (const auto none = WhyNoSuchNode(rule, target_, &workspace_.facts().dims()); none.has_value()) {
        Refuse(rule, *attempt, none->code, none->because, none->source, RefusalRank::kNoSuchNode);
        return std::nullopt;
      }
    }
    // A condition that failed says more than an operand that is absent or another attribute.
    if (!failure.rank.tried()) return std::nullopt;
    const std::string because = failure.is_sentence
                                    ? failure.found
                                    : fmt::format("{}: expected {}, found {}", rule.name, failure.expected, failure.found);
    if (failure.final_word) {
      Refuse(rule, *attempt, failure.code, because, failure.position.ToString(), RefusalRank::kSaidByRule);
    } else {
      Refuse(rule, *attempt, failure.code, because, failure.position.ToString(), RefusalRank::kNoMatch, failure.rank);
    }
    return std::nullopt;
  }

  // What the target says of the Ascend nodes of an emission: the first refusal, with the node in `refused`, or all
  // assumptions. `lowered_to` is the last of them, or the standard operator that every parser of the target maps to a kernel.
  Answer Ask(const Emission& emission, std::vector<std::string>* assumptions, std::string* lowered_to, const Node** refused) {
    Answer answer;
    answer.legal = true;
    std::vector<Node*> made = emission.replacements;
    made.insert(made.end(), emission.inserted.begin(), emission.inserted.end());
    for (Node* candidate : made) {
      if (Domain(*candidate) != "npu") continue;
      const std::string op = fmt::format("npu.{}", OpType(*candidate));
      Answer one = target_.Check(CallOf(*candidate, workspace_.facts(), op), &workspace_.facts().dims());
      if (!one.legal) {
        *refused = candidate;
        return one;
      }
      *lowered_to = op;
      AddOnce(assumptions, one.assumptions);
    }
    if (lowered_to->empty()) {
      const auto main_node = std::find_if(made.begin(), made.end(), [](const Node* candidate) {
        const Schema* schema = SchemaOf(*candidate);
        return schema != nullptr && schema->costly;
      });
      *lowered_to = OperatorKey(main_node != made.end() ? **main_node : *emission.replacements.back());
    }
    return answer;
  }

  // What --dim or doing without --strict can change says more than that something else does not fit, but not more than that
  // the chip has no such node, which was said of `site` before.
  static RefusalRank RankOf(std::string_view code, const Site& site) {
    const bool undecided = code == "undecided-dim" || code == "assumption-refused";
    const bool no_node = site.record.code == "node-refused" || site.record.code == "no-node";
    return undecided && !no_node ? RefusalRank::kUndecided : RefusalRank::kRefusedByTarget;
  }

  // True where the rule took the operator.
  bool Try(size_t r, Attempt* attempt) {
    const Rule& rule = rules_.rules()[r];
    std::vector<std::string> assumptions;
    const FunctionContext context = workspace_.Context(&assumptions);
    const std::optional<Match> match = FindMatch(r, attempt, context);
    if (!match.has_value()) return false;
    const absl::StatusOr<Emission> emission = workspace_.emitter().Emit(*match, context);
    if (!emission.ok()) {
      const std::string code = CodeOf(emission.status());
      Refuse(rule, *attempt, code.empty() ? "not-buildable" : code, std::string(emission.status().message()),
             rule.position.ToString(), RefusalRank::kNotBuilt);
      return false;
    }
    std::string lowered_to;
    const Node* refused = nullptr;
    Answer answer = Ask(*emission, &assumptions, &lowered_to, &refused);
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
      Refuse(rule, *attempt, answer.code, answer.because, answer.source,
             pair ? RefusalRank::kNoSuchNode : RankOf(answer.code, *attempt->main));
      return false;
    }
    Take(rule, lowered_to, assumptions, attempt);
    return true;
  }

  // The same with zeros behind the channels of every head, of which nothing but the size was refused. Where they cannot be put
  // there the answer says why.
  bool TryPadded(size_t r, const std::string& kernel, int64_t width, Attempt* attempt, Answer* answer) {
    const Rewriter::Mark mark = workspace_.rewriter().Now();
    Node* const node = attempt->node;
    const std::string before = HeadSizes(*node);
    const absl::StatusOr<PaddedHeads> padded = padder_.Pad(node, width);
    if (padded.ok()) {
      attempt->padded = true;
      attempt->node = attempt->main->node = padded->attention;
      if (Try(r, attempt)) {
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

  // "72", or "16 and 32" where those of the value have another size.
  std::string HeadSizes(const Node& attention) const {
    const auto size = [&](size_t i) {
      const DimTable& dims = workspace_.facts().dims();
      return dims.ToString(dims.Resolve(workspace_.facts().Of(attention.input(i)).shape.back()));
    };
    return size(0) == size(2) ? size(0) : fmt::format("{} and {}", size(0), size(2));
  }

  static std::string NamesOf(const std::vector<std::string>& names) {
    constexpr size_t kNamed = 4;
    std::string text;
    for (size_t i = 0; i < std::min(names.size(), kNamed); ++i) text += (text.empty() ? "" : ", ") + names[i];
    if (names.size() > kNamed) text += fmt::format(" and {} more", names.size() - kNamed);
    return text.empty() ? "shared with other layers" : text;
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
      } else {
        site->Say("", "", "");
      }
      AddOnce(&record.assumptions, assumptions);
    }
  }

  Workspace& workspace_;
  const RuleSet& rules_;
  const Target& target_;
  std::vector<std::optional<Standing>> standings_;  // by number of the rule
  HeadPadder padder_;
  absl::flat_hash_map<const Value*, std::vector<size_t>> sites_of_;  // by what they compute
};

}  // namespace

absl::Status Lower(Workspace& workspace) {
  if (workspace.target() == nullptr) return absl::FailedPreconditionError("without a target nothing can be lowered");
  Lowering(workspace).Run();
  return absl::OkStatus();
}

}  // namespace ascend_fuse
