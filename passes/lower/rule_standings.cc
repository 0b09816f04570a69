#include "passes/lower/rule_standings.h"

#include <algorithm>

#include "fmt/format.h"
#include "patterns/analysis/routing.h"
#include "patterns/cost/evidence.h"

namespace ascend_fuse {
namespace {

// Who reads "npu.NPUSwiGlu" of an ONNX file: "stock", "plugin", or "" where it is not a node that we declare.
std::string_view ParserOf(std::string_view op) {
  const DeclaredOperator* node = FindDeclaredOperator("npu", op.substr(op.find('.') + 1));
  return node != nullptr && node->ge.has_value() ? std::string_view(node->ge->parser) : std::string_view();
}

}  // namespace

RuleStandings::RuleStandings(Workspace& workspace)
    : workspace_(workspace),
      rules_(workspace.rules(RuleFolder::kNpu)),
      target_(*workspace.target()),
      standings_(rules_.rules().size()) {}

bool RuleStandings::MayTry(size_t rule, const Attempt& attempt) {
  const Standing& standing = StandingOf(rule);
  if (standing.passed_over) return false;
  return standing.slower == nullptr || !IsSlowerHere(rule, *standing.slower, attempt);
}

const RuleStandings::Standing& RuleStandings::StandingOf(size_t r) {
  std::optional<Standing>& standing = standings_[r];
  const Rule& rule = rules_.rules()[r];
  if (!standing.has_value()) standing = Standing{IsPassedOver(rule), workspace_.SlowerNode(rule)};
  return *standing;
}

// Where the target has not the node of our plugin that a rule emits, and the rule is preferred over one whose nodes stock
// ATC reads, what is said of the latter says more.
bool RuleStandings::IsPassedOver(const Rule& rule) const {
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

// True, and told, where the node of a rule is slower than what it replaces at this site.
bool RuleStandings::IsSlowerHere(size_t r, const DeclaredOperator& node, const Attempt& attempt) {
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
void RuleStandings::RefuseSlower(size_t r, const DeclaredOperator& node, const Attempt& attempt, const std::string& where,
                                 const std::string& because, const std::string& source) {
  const Rule& rule = rules_.rules()[r];
  if (const auto none = WhyNoSuchNode(rule, target_, &workspace_.facts().dims()); none.has_value()) {
    attempt.Refuse(rule, none->code, none->because, none->source, RefusalRank::kMeasuredSlower);
    return;
  }
  attempt.Refuse(rule, "measured-slower",
                 fmt::format("{} was measured slower{} than the nodes it takes the place of ({}); --prefer {} emits it",
                             node.op_type, where, because, node.op_type),
                 source, RefusalRank::kMeasuredSlower);
}

}  // namespace ascend_fuse
