#include "passes/tidy/tidy_graph.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "ir/infer/movement_of.h"
#include "passes/core/joined_sums.h"
#include "passes/core/node_inserter.h"

namespace ascend_fuse {
namespace {

bool ChangesNothing(const Node& node, const Facts& facts) {
  return IsCopy(facts, node) || (IsOp(node, "Cast") && facts.Of(node.input(0)).type == facts.Of(node.output()).type);
}

}  // namespace

TidyGraph::TidyGraph(Workspace& workspace) : workspace_(workspace) {
  for (const Site& site : workspace.sites) {
    if (site.record.state != "by_ge") continue;
    for (const std::vector<const Node*>* nodes : {&site.covered, &site.for_ge}) {
      for (const Node* node : *nodes) {
        if (!ChangesNothing(*node, workspace.facts()))
          of_ge_.insert(std::string(Label(*node)));  // GE does not look through copies
      }
    }
  }
  // The norms of a file that was optimized before are not sites of norms, and GE joins them with their sums all the same.
  for (const Node* norm : NormsJoinedBefore(workspace)) of_ge_.insert(std::string(Label(*norm->input(0)->producer)));
}

void TidyGraph::EndRound() {
  for (Site& site : workspace_.sites) {  // what it computes may be another value now
    if (site.value != nullptr) site.value = Now(site.value);
    for (const Value*& other : site.others) other = Now(other);
  }
  became_.clear();
}

void TidyGraph::StartRound() { numbering_ = NumberValues(workspace_.model(), &workspace_.facts()); }

const Node* TidyGraph::Do(const Tidied& answer, const Node* node) {
  if (answer.result.has_value() && answer.result->kind == Term::Kind::kValue) {
    const Value* const output = node->output();
    const Value* const source = Now(answer.result->value);
    if (source == output || !LeaveOut(*node, source)) return nullptr;
    return node->dead ? nullptr : node;
  }
  if (!answer.parts.empty()) return Divide(answer, node);
  NodeInserter inserter(workspace_, *node);
  made_from_ = workspace_.model().node_count();
  if (!answer.result.has_value() && !answer.plan.has_value()) {
    for (const auto& [index, input] : answer.inputs) workspace_.rewriter().SetInput(node, index, inserter.Build(input));
    Learn(node);
    return node;
  }
  NewNode plan = answer.plan.has_value() ? *answer.plan : inserter.Plan(*answer.result);
  plan.name = std::string(NodeName(*node));
  plan.keep_name = !plan.name.empty();
  const Value* const output = node->output();
  const Node* const written = workspace_.rewriter().ReplaceValue(output, plan);
  workspace_.rewriter().CopyNotes(*node, written);
  Learn(written);
  return written;
}

const Node* TidyGraph::Divide(const Tidied& answer, const Node* node) {
  std::vector<TakenOutput> taken;
  for (const Value* part : answer.parts) {
    if (IsOfGe(*part->producer)) return nullptr;
    taken.push_back({taken.size(), part});
  }
  NodeInserter inserter(workspace_, *node);
  made_from_ = workspace_.model().node_count();
  const NewNode plan = answer.plan.has_value() ? *answer.plan : inserter.Plan(*answer.result);
  const Node* const written = workspace_.rewriter().Replace(taken, taken.size(), plan);
  if (answer.plan.has_value()) became_[node->output()] = answer.parts[0];  // sites are told by it from here on
  workspace_.rewriter().CopyNotes(*node, written);
  Learn(written);
  return written;
}

// How many forms of the node give a reader another type than ONNX does.
size_t TidyGraph::LostTypes(const Node* node) const {
  if (node == nullptr || node->domain != NameId::kEmpty || workspace_.target() == nullptr) return 0;
  const auto forms = workspace_.target()->UnsupportedForms(*node, workspace_.model().OpsetVersion(), &workspace_.facts());
  return static_cast<size_t>(std::count_if(forms.begin(), forms.end(), [](const UnsupportedForm* form) {
    return form->effect == UnsupportedForm::Effect::kLosesType;
  }));
}

// The same as Become, of a node that copies. A Cast to the same type may stand right after an operator to whose result ATC
// gives another type than ONNX does: it stays.
bool TidyGraph::LeaveOut(const Node& node, const Value* source) {
  const Value* const output = node.output();
  if (!IsOp(node, "Cast") || source->producer == nullptr) return Become(output, source);
  if (output->is_graph_output && IsInteger(workspace_.facts().Of(output).type)) return false;
  const Rewriter::Mark mark = workspace_.rewriter().Now();
  const size_t before = LostTypes(source->producer);
  if (!Become(output, source)) return false;
  if (output->is_graph_output || LostTypes(source->producer) <= before) return true;
  workspace_.rewriter().RollBack(mark);
  became_.erase(output);
  return false;
}

void TidyGraph::Learn(const Node* node) {
  workspace_.Refresh(node);
  Number(*node);
}

// Numbers what was made for the last answer, in the order in which it was made.
void TidyGraph::Number(const Node& node) {
  if (node.id < made_from_) return;
  for (const Use& use : node.inputs()) {
    if (use.value != nullptr && use.value->producer != nullptr) Number(*use.value->producer);
  }
  numbering_->Add(node, workspace_.facts());
}

// What a value became in this round.
const Value* TidyGraph::Now(const Value* value) const {
  for (auto found = became_.find(value); found != became_.end(); found = became_.find(value)) value = found->second;
  return value;
}

void TidyGraph::Reroute(const Value* value, const Value* other) {
  std::vector<Use> uses;  // first all, then the changes
  for (const Use& use : LiveUses(*value)) uses.push_back(use);
  for (const Use& use : uses) workspace_.rewriter().SetInput(use.user, use.index, other);
  became_[value] = other;
}

bool TidyGraph::Become(const Value* value, const Value* other) {
  if (!value->is_graph_output) {
    if (!LiveUses(*value).empty()) {
      Reroute(value, other);
      return true;
    }
    // Nobody reads it: what was made goes, and what the model has stays as it is.
    if (value->producer != nullptr) workspace_.rewriter().DropIfUnread(value->producer);
    return value->producer == nullptr || value->producer->dead;
  }
  const Node* const producer = other->producer;
  if (producer == nullptr || producer->dead || producer->graph != value->graph || other->is_graph_output ||
      producer->subgraph_count > 0) {
    return false;
  }
  std::vector<TakenOutput> taken;
  for (size_t i = 0; i < producer->output_count; ++i) {
    const Value* const output = producer->output(i);
    if (output == nullptr || output->producer != producer) continue;
    taken.push_back({i, output == other ? value : output});
  }
  const Node* const old = producer;
  const bool of_ge = IsOfGe(*old);
  made_from_ = workspace_.model().node_count();
  const Node* const written = workspace_.rewriter().Replace(taken, producer->output_count, PlanOf(*producer));
  workspace_.rewriter().CopyNotes(*old, written);
  if (of_ge) of_ge_.insert(std::string(Label(*written)));  // the same operator of the same operands: GE finds it as before
  Learn(written);
  Reroute(other, value);
  return true;
}

}  // namespace ascend_fuse
