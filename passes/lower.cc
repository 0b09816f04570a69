// Lower: rules of patterns/rules/npu replace recognised operators by NPU nodes that the target's contract allows.
#include <algorithm>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "fmt/format.h"
#include "ir/schema.h"
#include "passes/pipeline.h"
#include "patterns/analysis/linear.h"

namespace ascend_fuse {
namespace {

Call CallOf(const Node& node, const Facts& facts, const std::string& op) {
  Call call;
  call.op = op;
  for (const Use& use : node.inputs()) {
    CallInput input;
    if (use.value != nullptr) {
      const Fact& fact = facts.Of(use.value);
      input.present = true;
      input.type = fact.type;
      input.has_rank = fact.has_rank;
      input.shape.assign(fact.shape.begin(), fact.shape.end());
    }
    call.inputs.push_back(std::move(input));
  }
  call.attributes = ReadAttributes(node);
  return call;
}

void AddOnce(std::vector<std::string>* sentences, const std::vector<std::string>& more) {
  for (const std::string& sentence : more) {
    if (std::find(sentences->begin(), sentences->end(), sentence) == sentences->end()) {
      sentences->push_back(sentence);
    }
  }
}

// What the mask of a fused attention is, for the report.
std::string MaskOf(const Rule& rule) {
  if (rule.kind != "attention") return "";
  const bool masked = std::any_of(rule.inputs.begin(), rule.inputs.end(), [](const Parameter& input) {
    return input.name == "mask" || input.name == "keep";
  });
  return masked ? "explicit" : "none";
}

// How much a refusal says: of several the one that says most is told. Below are the ranks of a Failure: how far a rule got.
constexpr int kNotBuilt = 1000;          // the rule matched, and its nodes cannot be built here
constexpr int kNoSuchNode = 1500;        // the target has no such node, or refuses one for a pair
constexpr int kNoSuchNodeBehind = 1999;  // the same of a rule that takes what reads the construct too
constexpr int kRefusedByTarget = 2000;   // the nodes were built, and the target refuses one
constexpr int kSaidByRule = 3000;        // the rule itself says why what looks like the construct is none

// What the target says of the first node of a rule that it refuses in any form; nullopt if it has them all.
std::optional<Answer> WhyNoSuchNode(const Rule& rule, const Target& target, DimTable* dims) {
  for (const std::string& op : rule.nodes) {
    if (!target.HasNode(op)) return target.Check(Call{op, {}, {}}, dims);
  }
  return std::nullopt;
}

// Where a rule can end that takes what reads `value` besides: the results of the operators behind it, as long as
// each has one reader. A linear is up to three (Reshape, MatMul, Add). The last one first.
std::vector<Value*> Behind(const Value* value) {
  constexpr int kMost = 3;
  std::vector<Value*> found;
  for (int step = 0; step < kMost; ++step) {
    if (value->is_graph_output || CountReaders(*value) != 1) break;
    Node* reader = (*LiveUses(*value).begin()).user;
    if (reader->output(0) == nullptr) break;
    value = reader->output(0);
    found.insert(found.begin(), reader->output(0));
  }
  return found;
}

}  // namespace

void Pipeline::LowerNode(Node* node, const Target& target) {
  const std::string key = OperatorKey(*node);
  Value* value = node->output(0);
  std::vector<PipelineSite*> sites;
  for (size_t index : sites_of_[value]) {
    if (sites_[index].state == SiteState::kPending) sites.push_back(&sites_[index]);
  }
  PipelineSite* main = nullptr;
  for (PipelineSite* site : sites) {
    if (site->node == node) main = site;
  }
  if (main == nullptr) return;

  // Why a rule that goes before another one was not used: what that other one emits has its form for this reason.
  // By kind and name of the other one.
  absl::flat_hash_map<std::pair<std::string, std::string>, std::pair<std::string, std::string>> why_this_form;
  PipelineSite* partner = main->pair >= 0 ? &sites_[static_cast<size_t>(main->pair)] : nullptr;
  if (partner != nullptr && (partner->state != SiteState::kPending || partner->node->dead)) partner = nullptr;

  for (size_t r = 0; r < npu_->rules().size(); ++r) {
    const Rule& rule = npu_->rules()[r];
    const auto& starts = npu_->StartOperators(r);
    if (std::find(starts.begin(), starts.end(), key) == starts.end() || Skipped(rule)) continue;
    if (!rule.by_ge.empty() && target.FusedByGe(rule.by_ge).has_value()) continue;
    // A form that GE's own pass takes stays as it is, unless there is a node for it.
    if (!main->by_ge.empty() && rule.kind == main->kind && rule.nodes.empty() &&
        target.FusedByGe(main->by_ge).has_value()) {
      continue;
    }
    // A rule's refusal is told where its kind is counted.
    auto refuse = [&](const std::string& because, const std::string& source, int rank) {
      for (PipelineSite* site : sites) {
        if (site->kind != rule.kind || rank <= site->lowering_rank) continue;
        site->lowering_rank = rank;
        site->because = because;
        site->source = source;
      }
    };
    std::vector<std::string> assumptions;
    FunctionContext context = Context(&assumptions);
    context.target = &target;
    Matcher matcher(*npu_, context);
    if (!rule.from.empty()) {
      // What needs more of the graph than the recognised operator is looked for only where the target has the node.
      if (const auto none = WhyNoSuchNode(rule, target, &facts_.dims()); none.has_value()) {
        if (matcher.Starts(rule, value)) refuse(none->because, none->source, kNoSuchNodeBehind);
        continue;
      }
    }
    Failure failure;
    std::optional<Match> match;
    if (rule.from.empty()) {
      match = matcher.Run(rule, value, &failure, partner != nullptr ? partner->node->output(0) : nullptr);
    } else {
      match = RunBehind(rule, npu_->RootOperators(r), value, &matcher, &failure);
    }
    if (!match.has_value()) {
      if (failure.is_sentence && !rule.before.empty()) {
        why_this_form[{rule.kind, rule.before}] = {failure.found, failure.position.ToString()};
      }
      // That there is no such node here says more than why it could not be used.
      if (failure.is_sentence) {
        if (const auto none = WhyNoSuchNode(rule, target, &facts_.dims()); none.has_value()) {
          refuse(none->because, none->source, kNoSuchNode);
          continue;
        }
      }
      // A condition that failed says more than an operand that is absent or another attribute.
      refuse(failure.rank < 0 ? ""
             : failure.is_sentence
                 ? failure.found
                 : fmt::format("{}: expected {}, found {}", rule.name, failure.expected, failure.found),
             failure.position.ToString(), failure.is_sentence && failure.expected.empty() ? kSaidByRule : failure.rank);
      continue;
    }
    const absl::StatusOr<Emission> emission = emitter_->Emit(*match, context);
    if (!emission.ok()) {
      refuse(std::string(emission.status().message()), rule.position.ToString(), kNotBuilt);
      continue;
    }
    std::string lowered_to;
    Answer answer;
    answer.legal = true;
    std::vector<Node*> made = emission->replacements;
    made.insert(made.end(), emission->inserted.begin(), emission->inserted.end());
    for (Node* candidate : made) {
      if (Domain(*candidate) != "npu") continue;
      const std::string op = fmt::format("npu.{}", OpType(*candidate));
      const Answer one = target.Check(CallOf(*candidate, facts_, op), &facts_.dims());
      if (!one.legal) {
        answer = one;
        break;
      }
      lowered_to = op;
      AddOnce(&assumptions, one.assumptions);
    }
    // Without an NPU node the rule wrote standard operators that every parser of the target maps to a kernel.
    if (lowered_to.empty()) {
      const auto main_node = std::find_if(made.begin(), made.end(), [](const Node* candidate) {
        const Schema* schema = SchemaOf(*candidate);
        return schema != nullptr && schema->costly;
      });
      lowered_to = OperatorKey(main_node != made.end() ? **main_node : *emission->replacements.back());
    }
    if (answer.legal && options_.strict && !assumptions.empty()) {
      answer.legal = false;
      answer.because = fmt::format("--strict: fusing would assume that {}", assumptions[0]);
      answer.source = rule.position.ToString();
    }
    if (!answer.legal) {
      emitter_->Undo(*emission);
      // That the two of a pair cannot share a node says less than why one has none of its own.
      refuse(answer.because, answer.source, match->rule->outputs.size() > 1 && partner != nullptr ? kNoSuchNode : kRefusedByTarget);
      continue;
    }
    emissions_.push_back(*emission);
    // A rule about both of a pair replaces the partner too.
    if (partner != nullptr && partner->node->dead) sites.push_back(partner);
    for (PipelineSite* site : sites) {
      const bool same = site == main || site == partner;
      const bool joined = rule.kind == site->kind;
      if (!same && !joined) continue;
      site->state = SiteState::kFused;
      site->lowered_by = rule.name;
      // What it took besides is given by the node now.
      if (!rule.from.empty()) site->others.push_back(match->terms[static_cast<size_t>(rule.scope.Find(rule.outputs[0]))].value);
      if (rule.precision == "approximate" || site->precision == "exact") site->precision = rule.precision;
      site->lowered_to = lowered_to;
      site->mask = MaskOf(rule);
      const auto why = why_this_form.find({rule.kind, rule.name});
      site->because = why != why_this_form.end() ? why->second.first : "";
      site->source = why != why_this_form.end() ? why->second.second : "";
      AddOnce(&site->assumptions, assumptions);
    }
    return;
  }
}

// A rule that starts from `value` and ends in one of `roots` behind it.
std::optional<Match> Pipeline::RunBehind(const Rule& rule, const std::vector<std::string>& roots, Value* value,
                                         Matcher* matcher, Failure* failure) {
  if (!matcher->Starts(rule, value, failure)) return std::nullopt;
  *failure = Failure();  // what was tried on the way
  for (Value* root : Behind(value)) {
    if (std::find(roots.begin(), roots.end(), OperatorKey(*root->producer)) == roots.end()) continue;
    Failure attempt;
    std::optional<Match> match = matcher->Run(rule, root, &attempt);
    const bool from_it =
        match.has_value() && match->terms[static_cast<size_t>(rule.scope.Find(rule.from))].value == value;
    if (from_it) return match;
    if (attempt.rank > failure->rank) *failure = attempt;
  }
  if (failure->rank >= 0) return std::nullopt;
  std::string other = OtherReader(value);
  const LiveUses uses(*value);
  if (other.empty() && uses.empty()) other = fmt::format("nothing reads {}", ValueName(*value));
  if (other.empty()) other = fmt::format("{} reads {}", OpType(*(*uses.begin()).user), ValueName(*value));
  std::string wanted;
  for (const std::string& root : roots) wanted += (wanted.empty() ? "" : " or ") + root;
  failure->rule = &rule;
  failure->position = rule.position;
  failure->is_sentence = true;
  failure->rank = 0;
  failure->found = fmt::format("{} takes {} behind it too, and here {}", rule.name, wanted, other);
  return std::nullopt;
}

std::string Pipeline::WhyGeCannot(const PipelineSite& site, const ByGe& by_ge) {
  if (by_ge.static_shapes) {
    const Fact& fact = facts_.Of(site.value);
    const bool fixed = fact.has_rank && std::all_of(fact.shape.begin(), fact.shape.end(),
                                                    [](Dim dim) { return dim.is_number(); });
    if (!fixed) return fmt::format("here it is {}", facts_.Describe(site.value));
  }
  if (by_ge.last_opset > 0 && model_->OpsetVersion() > by_ge.last_opset) {
    return fmt::format("the model imports opset {}", model_->OpsetVersion());
  }
  const Node* node = site.value->producer;
  if (!by_ge.computed_by.empty() && (node == nullptr || OperatorKey(*node) != by_ge.computed_by)) {
    return fmt::format("{} was not emitted here", by_ge.computed_by);
  }
  if (by_ge.plain_linear) {
    Value* product = node != nullptr ? node->input(0) : nullptr;
    if (product != nullptr && product->IsConstant()) product = node->input(1);  // Max (0, x)
    if (product == nullptr) return "no linear feeds it";
    const absl::StatusOr<LinearView> linear = FindLinear(Context(), product);
    if (!linear.ok()) return std::string(linear.status().message());
    if (!linear->plain) return fmt::format("here {}", linear->why_not_plain);
    if (CountReaders(*product) > 1) return fmt::format("here {} has another reader", ValueName(*product));
  }
  return "";
}

// A sum is joined with the kernel of the norm that reads it, by us or by GE. Where the norm stayed as it was there is
// no such kernel, and where it reads something else than the sum (scaled, or in another type) GE's pass does not see
// them together. "" where they can be joined.
std::string Pipeline::WhyNotJoined(const PipelineSite& site) const {
  const auto same = sites_of_.find(site.value);
  for (const size_t index : same->second) {
    const PipelineSite& norm = sites_[index];
    if (norm.kind != "rms_norm" && norm.kind != "layer_norm") continue;
    if (norm.state == SiteState::kByGe) return "";
    if (norm.state != SiteState::kFused) break;
    const Value* x = site.value->producer->input(0);
    if (x == nullptr || x->producer == nullptr) break;
    if (IsOp(*x->producer, "Add")) return "";
    if (OpType(*x->producer).substr(0, 3) == "NPU") {
      return fmt::format("{} computes the sum already, with another norm that reads it", OpType(*x->producer));
    }
    return fmt::format("{} reads the sum behind a {} ({}), and only the sum itself can be joined with it", norm.lowered_to,
                       OpType(*x->producer), ValueName(*x));
  }
  return "the norm behind the sum was not fused";
}

absl::Status Pipeline::Lower(const Target& target) {
  const double started = Now();
  const uint64_t before = rewriter_->change_count();
  for (size_t i = 0; i < sites_.size(); ++i) {
    const PipelineSite& site = sites_[i];
    sites_of_[site.node != nullptr ? site.node->output(0) : site.value].push_back(i);
  }
  // What was seen beside no other construct (a linear and its Relu) is lowered where it stands.
  for (PipelineSite& site : sites_) {
    Node* producer = site.value->producer;
    if (site.node != nullptr || producer == nullptr || producer->output(0) != site.value) continue;
    const std::vector<size_t>& same = sites_of_[site.value];
    if (std::none_of(same.begin(), same.end(), [&](size_t other) { return sites_[other].node != nullptr; })) {
      site.node = producer;
    }
  }
  // Outermost last: helpers made for one site are there for the next.
  std::vector<Node*> nodes;
  for (const PipelineSite& site : sites_) {
    if (site.node != nullptr && site.state == SiteState::kPending) nodes.push_back(site.node);
  }
  std::sort(nodes.begin(), nodes.end(), [](const Node* a, const Node* b) {
    return a->order != b->order ? a->order < b->order : a->id < b->id;
  });
  for (Node* node : nodes) {
    if (!node->dead) LowerNode(node, target);
  }
  for (PipelineSite& site : sites_) {
    if (site.state != SiteState::kPending) continue;
    const std::string& construct = site.by_ge.empty() ? site.kind : site.by_ge;
    const std::string unjoined = site.kind == "add_norm" ? WhyNotJoined(site) : "";
    if (!unjoined.empty()) {
      // Both our rule and GE's pass start from the node of the norm.
      const std::optional<ByGe> pass = target.FusedByGe(construct);
      site.because = unjoined;
      site.source = pass.has_value() ? pass->source : "patterns/rules/npu/norm.rule";
    }
    // A standard operator that the parser maps to one kernel is left as it is where it was there, and stays where it
    // took the place of a subgraph.
    if (site.node != nullptr && site.node->domain == NameId::kEmpty) {
      LeftReason outside;
      if (const auto standard = target.Standard(OpType(*site.node), model_->OpsetVersion(), &outside)) {
        site.because = standard->because;
        site.source = standard->source;
        site.state = site.node->is_new ? SiteState::kFused : SiteState::kByGe;
        if (site.node->is_new) {
          site.lowered_to = OpType(*site.node);
          site.because.clear();
          site.source.clear();
        }
        continue;
      }
      if (!outside.because.empty()) {
        site.state = SiteState::kLeft;
        site.because = outside.because;
        site.source = outside.source;
        continue;
      }
    }
    const std::optional<ByGe> by_ge = target.FusedByGe(construct);
    if (by_ge.has_value()) {
      if (std::string why = WhyGeCannot(site, *by_ge); !why.empty()) {
        site.state = SiteState::kLeft;
        site.because = fmt::format("{}; {}", by_ge->because, why);
        site.source = by_ge->source;
        continue;
      }
    }
    if (by_ge.has_value() && unjoined.empty()) {
      site.state = SiteState::kByGe;
      site.because = by_ge->because;
      site.source = by_ge->source;
      continue;
    }
    site.state = SiteState::kLeft;
    if (const auto left = target.WhyLeft(construct); left.has_value()) {
      site.because = left->because;
      site.source = left->source;
    }
    if (site.because.empty()) {
      site.because = fmt::format("no node of {} with CANN {} computes this", target.chip(), target.cann());
      site.source = fmt::format("patterns/rules/npu, patterns/targets/{}.txtpb", target.chip());
    }
  }
  FinishRun("lower", started, before);
  return Verify("lower");
}

}  // namespace ascend_fuse
