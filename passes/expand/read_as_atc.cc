#include "passes/expand/read_as_atc.h"

#include <algorithm>
#include <numeric>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "fmt/format.h"
#include "fmt/ranges.h"
#include "ir/movement/axis.h"
#include "ir/status_macros.h"
#include "passes/check/atc_check.h"
#include "passes/core/apply_rules.h"
#include "passes/core/node_inserter.h"

namespace ascend_fuse {
namespace {

using Effect = UnsupportedForm::Effect;

// Sentences of one refusal that are told; the others are counted.
constexpr size_t kMostReasons = 5;

// ATC accepts the form, and makes something else of it.
bool IsMisread(const UnsupportedForm& form) { return form.effect == Effect::kMisread || form.effect == Effect::kLosesType; }

class Reader {
 public:
  explicit Reader(Workspace& workspace) : workspace_(workspace), target_(*workspace.target()) {}

  absl::Status Run() {
    FindRefusals();
    if (!reasons_.empty()) return Refusal("refuses the model");
    ReadConditions();
    ReadLogSoftmaxes();
    RETURN_IF_ERROR(ApplyMisreadRules());
    reasons_ = unwritten_;
    if (!done_.empty()) workspace_.rewriter().DropValueInfo();
    for (const auto& graph : workspace_.model().graphs()) {
      for (const Node* node : graph->nodes()) {
        for (const UnsupportedForm* form : FormsOf(*node)) {
          if (form->certain && IsMisread(*form)) Note(*node, *form);
        }
      }
    }
    return reasons_.empty() ? absl::OkStatus() : Refusal("misreads the model in a way that no rule writes out");
  }

 private:
  std::vector<const UnsupportedForm*> FormsOf(const Node& node) const {
    if (node.dead || node.domain != NameId::kEmpty || done_.contains(&node)) return {};
    return target_.UnsupportedForms(node, workspace_.model().OpsetVersion(), &workspace_.facts());
  }

  // Also where the values decide it, which are not known: a rule says what ATC computes whatever they are.
  bool HasForm(const Node& node, std::string_view code) const {
    const auto forms = FormsOf(node);
    return std::any_of(forms.begin(), forms.end(),
                       [&](const UnsupportedForm* form) { return IsMisread(*form) && !form->unsettled && form->code == code; });
  }

  bool SurelyHas(const Node& node, std::string_view code) const {
    const auto forms = FormsOf(node);
    return std::any_of(forms.begin(), forms.end(),
                       [&](const UnsupportedForm* form) { return form->certain && IsMisread(*form) && form->code == code; });
  }

  void Note(const Node& node, const UnsupportedForm& form) {
    reasons_.push_back(fmt::format("{} {}{}{}: {} [{}]", OpType(node), NodeName(node), form.form.empty() ? "" : " ", form.form,
                                   form.because, form.code));
  }

  absl::Status Refusal(std::string_view what) const {
    const size_t told = std::min(reasons_.size(), kMostReasons);
    const std::string more = reasons_.size() > told ? fmt::format("; and {} more", reasons_.size() - told) : std::string();
    return absl::UnavailableError(fmt::format("ATC of CANN {} {}: {}{}", target_.cann(), what,
                                              fmt::join(absl::MakeConstSpan(reasons_).subspan(0, told), "; "), more));
  }

  // What `check` surely finds. Misreadings of nodes are written out by rules; those of the frame are not.
  void FindRefusals() {
    if (workspace_.inliner().inlined() > 0) reasons_.push_back("the model calls local functions, which ATC does not know");
    for (const FindingRecord& finding : FindInNodes(workspace_.model(), workspace_.facts(), target_)) {
      if (IsFatal(finding) && !Accepted(finding)) Tell(finding, &reasons_);
    }
    for (const FindingRecord& finding : FindInStructure(workspace_.model(), target_)) {
      if (IsFatal(finding)) Tell(finding, Accepted(finding) ? &unwritten_ : &reasons_);
    }
  }

  // ATC accepts it, and makes something else of it.
  static bool Accepted(const FindingRecord& finding) { return finding.effect == "misread" || finding.effect == "loses_type"; }

  static void Tell(const FindingRecord& finding, std::vector<std::string>* sentences) {
    sentences->push_back(
        fmt::format("{}{} [{}]", finding.because, finding.node.empty() ? "" : " (" + finding.node + ")", finding.code));
  }

  // If with a condition that is not a scalar: GE asks for its size, which is 1 (W3). No rule can name bodies.
  void ReadConditions() {
    for (const auto& graph : workspace_.model().graphs()) {
      for (const Node* node : graph->nodes()) {
        if (!SurelyHas(*node, "if-condition-rank")) continue;
        Rewriter& rewriter = workspace_.rewriter();
        rewriter.SetInput(node, 0, rewriter.NumberConstant(graph.get(), DataType::kBool, 1, "atc_condition"));
        done_.insert(node);
      }
    }
  }

  // LogSoftmax before opset 13: over one axis, the last one where none is written (W17). No rule sees that none is.
  void ReadLogSoftmaxes() {
    for (const auto& graph : workspace_.model().graphs()) {
      const std::vector<const Node*> nodes(graph->nodes().begin(), graph->nodes().end());
      for (const Node* node : nodes) {
        if (node->dead || !SurelyHas(*node, "log-softmax-axis")) continue;
        const int rank = workspace_.facts().Of(node->input(0)).rank();
        const int64_t axis = IntAttribute(*node, "axis").value_or(-1);
        const int64_t place = NormalizeAxis(axis, rank);
        if (place < 0) continue;
        std::vector<int64_t> perm(static_cast<size_t>(rank));
        std::iota(perm.begin(), perm.end(), 0);
        std::swap(perm[static_cast<size_t>(place)], perm.back());
        NodeInserter inserter(workspace_, graph.get(), "atc_log_softmax");
        const Value* const turned = inserter.Op("Transpose", {node->input(0)}, {Attribute::Ints("perm", perm)});
        NewNode transpose;
        transpose.op_type = "Transpose";
        transpose.inputs = {inserter.Op("LogSoftmax", {turned}, {Attribute::Int("axis", rank - 1)})};
        transpose.attributes = {Attribute::Ints("perm", perm)};
        const Node* const back = workspace_.rewriter().ReplaceNode(*node, transpose);
        workspace_.Refresh(back);
        done_.insert(node);
        done_.insert(back);
      }
    }
  }

  absl::Status ApplyMisreadRules() {
    RuleSteps steps;
    steps.literal = true;
    steps.matched = [this](const Rule& rule, const Match&, const Node* root) {
      return HasForm(*root, rule.fixes) ? 0 : kNotEmitted;
    };
    steps.emitted = [this](MatchToken, const Rule&, const Value* value, const std::string&, const Emission&) {
      done_.insert(value->producer);
    };
    steps.refused = [](MatchToken, const Rule&, const absl::Status& status) { return status; };
    return ApplyRules(workspace_, workspace_.rules(RuleFolder::kMisread), VisitOrder::kRules, steps);
  }

  Workspace& workspace_;
  const Target& target_;
  absl::flat_hash_set<const Node*> done_;  // written as what ATC makes of them
  std::vector<std::string> reasons_;
  std::vector<std::string> unwritten_;  // misreadings that no rule is about
};

}  // namespace

absl::Status ReadAsAtc(Workspace& workspace) {
  workspace.InferModel();
  workspace.NumberValues();
  return Reader(workspace).Run();
}

}  // namespace ascend_fuse
