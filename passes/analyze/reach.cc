#include "passes/analyze/reach.h"

#include <algorithm>

namespace ascend_fuse {
namespace {

constexpr int64_t kFewIntegers = 64;

bool IsShapeOp(const Node& node) { return IsOp(node, "Shape") || IsOp(node, "Size"); }

bool IsRandom(const Node& node) {
  return OpType(node).starts_with("Random") || IsOp(node, "Multinomial") || IsOp(node, "Bernoulli");
}

bool AllNumbers(const Fact& fact) {
  return fact.has_rank && std::all_of(fact.shape.begin(), fact.shape.end(), [](Dim dim) { return dim.is_number(); });
}

bool HasNumbers(const Fact& fact) {
  if (fact.elements == nullptr) return false;
  return std::all_of(fact.elements->integers.begin(), fact.elements->integers.end(), [](Dim dim) { return dim.is_number(); });
}

}  // namespace

Reach::Reach(const Model& model, const Facts& facts)
    : facts_(facts),
      needed_(model.node_count()),
      dataless_(model.value_count()),
      folded_(model.value_count()),
      times_(model.node_count(), 1.0) {
  Mark(model);
  for (const auto& graph : model.graphs()) {
    const size_t first = nodes_.size();
    for (const Node* node : graph->nodes()) {
      if (!node->dead && needed_[node->id]) nodes_.push_back(node);
    }
    // Made nodes may stand after their readers in the list.
    const auto begin = nodes_.begin() + static_cast<int64_t>(first);
    const auto before = [](const Node* a, const Node* b) { return StandsBefore(*a, *b); };
    if (!std::is_sorted(begin, nodes_.end(), before)) std::sort(begin, nodes_.end(), before);
  }
  Classify();
  CountTurns(model);
}

void Reach::Mark(const Model& model) {
  std::vector<const Value*> open(model.graph().outputs().begin(), model.graph().outputs().end());
  while (!open.empty()) {
    const Value* value = open.back();
    open.pop_back();
    const Node* node = value->producer;
    if (node == nullptr || needed_[node->id]) continue;
    needed_[node->id] = true;
    for (const Use& use : node->inputs()) {
      if (use.value != nullptr) open.push_back(use.value);
    }
    for (const Graph* body : node->subgraphs()) open.insert(open.end(), body->outputs().begin(), body->outputs().end());
  }
}

// Outer graphs stand before inner ones, so what a body reads from outside is classified; an outer node that reads a value of
// a body does so through its owner, which is never without data.
void Reach::Classify() {
  for (const Node* node : nodes_) {
    if (node->subgraph_count > 0 || IsRandom(*node)) continue;
    bool dataless = true, folded = true;
    if (!IsShapeOp(*node)) {
      for (const Use& use : node->inputs()) {
        if (use.value == nullptr) continue;
        dataless = dataless && IsDataless(*use.value);
        folded = folded && IsFolded(*use.value);
      }
    }
    for (const Value* output : node->outputs()) {
      if (output == nullptr) continue;
      const Fact& fact = facts_.Of(output);
      dataless_[output->id] = dataless;
      folded_[output->id] = dataless && (IsShapeOp(*node) ? HasNumbers(fact) : folded) && (AllNumbers(fact) || HasNumbers(fact));
    }
  }
}

void Reach::CountTurns(const Model& model) {
  for (const auto& graph : model.graphs()) {
    const Node* owner = graph->owner();
    if (owner == nullptr || owner->dead || !needed_[owner->id]) continue;
    double turns = 1;
    if (IsOp(*owner, "Loop")) {
      const Value* count = owner->input(0);
      const Fact* fact = count != nullptr ? &facts_.Of(count) : nullptr;
      const bool known = fact != nullptr && HasNumbers(*fact) && fact->elements->integers.size() == 1;
      // Exporters write the largest integer where only the condition ends a loop.
      const int64_t most = known ? fact->elements->integers[0].number() : 0;
      if (known && most > 0 && most < (int64_t{1} << 31)) {
        turns = static_cast<double>(most);
      } else {
        ++unknown_loops_;
      }
    }
    times_[owner->id] = turns * (owner->graph->owner() == nullptr ? 1.0 : times_[owner->graph->owner()->id]);
  }
}

bool Reach::IsFolded(const Node& node) const {
  bool some = false;
  for (const Value* output : node.outputs()) {
    if (output == nullptr) continue;
    if (!folded_[output->id]) return false;
    some = true;
  }
  return some;
}

bool Reach::IsShapeArithmetic(const Node& node) const {
  bool some = false;
  for (const Value* output : node.outputs()) {
    if (output == nullptr) continue;
    const Fact& fact = facts_.Of(output);
    if (!dataless_[output->id] || IsFloat(fact.type) || fact.rank() < 0 || fact.rank() > 1) return false;
    if (fact.rank() == 1 && !(fact.shape[0].is_number() && fact.shape[0].number() <= kFewIntegers)) return false;
    some = true;
  }
  return some;
}

}  // namespace ascend_fuse
