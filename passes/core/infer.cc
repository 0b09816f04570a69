// Infer and number: what is known of every value before anything is looked for; and again where the final operators say more.
#include <set>
#include <vector>

#include "ir/operands.h"
#include "ir/status_macros.h"
#include "passes/core/passes.h"
#include "passes/core/workspace.h"

namespace ascend_fuse {
namespace {

// Infers the node anew. Whether that says more of one of its outputs than was known; of the others it keeps what was known.
template <typename Told>
void InferMore(const Node& node, Facts* facts, Told told) {
  std::vector<Fact> known;
  for (const Value* output : node.outputs()) known.push_back(output != nullptr ? facts->Of(output) : Fact());
  InferNode(node, facts);
  for (size_t i = 0; i < known.size(); ++i) {
    const Value* output = node.output(i);
    if (output == nullptr) continue;
    const Fact now = facts->Of(output);
    if (SaysMore(now, known[i], facts->dims())) {
      told(output);
    } else {
      facts->Set(output, known[i]);
    }
  }
}

// The nodes that compute what was learnt and those that read it, directly and through others, in the order of the graph.
class Readers {
 public:
  explicit Readers(Workspace& workspace) : workspace_(workspace), facts_(workspace.facts()) {}

  // False where a body has to be known too: then the whole model is to be inferred.
  bool Run() {
    const size_t contradictions = facts_.contradictions().size();  // those of the model as it was read
    for (const Value* value : workspace_.emitter().learned()) {
      if (value->producer != nullptr && !value->producer->dead) Add(value->producer);
    }
    while (!waiting_.empty() && !in_body_) {
      const Node* node = *waiting_.begin();
      waiting_.erase(waiting_.begin());
      Infer(*node);
    }
    facts_.ForgetContradictions(contradictions);
    return !in_body_;
  }

 private:
  struct Earlier {
    bool operator()(const Node* a, const Node* b) const { return StandsBefore(*a, *b); }
  };

  void Add(const Node* node) {
    in_body_ = in_body_ || node->graph != &workspace_.model().graph() || node->subgraph_count > 0;
    waiting_.insert(node);
  }

  void Infer(const Node& node) {
    InferMore(node, &facts_, [this](const Value* output) {
      for (const Use& use : LiveUses(*output)) Add(use.user);
    });
  }

  Workspace& workspace_;
  Facts& facts_;
  std::set<const Node*, Earlier> waiting_;
  bool in_body_ = false;
};

}  // namespace

absl::Status InferFacts(Workspace& workspace) {
  RETURN_IF_ERROR(CheckOperands(workspace.model()));
  workspace.InferModel();
  return absl::OkStatus();
}

absl::Status Number(Workspace& workspace) {
  workspace.NumberValues();
  return absl::OkStatus();
}

// An attention has as many rows as its queries, whatever was known of the mask program that stood in front of it. Those who
// read such a result are inferred anew, so that one run knows as much of them as a second one would.
absl::Status InferAgain(Workspace& workspace) {
  if (workspace.emitter().learned().empty()) return absl::OkStatus();
  if (!Readers(workspace).Run()) workspace.InferModelAgain();
  workspace.NumberValues();
  return absl::OkStatus();
}

void InferFurther(Workspace& workspace) {
  Facts& facts = workspace.facts();
  const size_t contradictions = facts.contradictions().size();  // those of the model as it was read
  std::vector<const Node*> nodes;
  for (const Node* node : workspace.model().graph().nodes()) {
    if (!node->dead) nodes.push_back(node);
  }
  SortInOrder(&nodes);
  for (const Node* node : nodes) InferMore(*node, &facts, [](const Value*) {});
  facts.ResolveDims(workspace.model());
  facts.ForgetContradictions(contradictions);
  workspace.NumberValues();
}

}  // namespace ascend_fuse
