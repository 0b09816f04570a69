// Tidy: the rest of the graph as an engineer would write it. Values that are equal are computed once, and every kind of
// passes/tidy/kinds.h is asked about every node, in the order of the graph, so that each sees what came of the nodes before.
// Rounds follow until one finds nothing, which is what a second run finds; each takes time in proportion to the nodes.
#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "passes/core/node_inserter.h"
#include "passes/core/workspace.h"
#include "passes/tidy/kinds.h"
#include "passes/tidy/passes.h"

namespace ascend_fuse {
namespace {

constexpr int kMostRounds = 16;   // every one of which makes the graph smaller: an end, and no more than that
constexpr int kMostAnswers = 16;  // about one node

class Tidier {
 public:
  explicit Tidier(Workspace& workspace) : workspace_(workspace), inputs_(workspace) {
    for (const Site& site : workspace.sites) {
      if (site.record.state == "by_ge") of_ge_.insert(site.record.covers.begin(), site.record.covers.end());
    }
    const auto& words = workspace.options().tidy;
    for (const TidyKind& kind : TidyKinds()) {
      if (!words.empty() && std::find(words.begin(), words.end(), kind.word) == words.end()) continue;
      if (kind.ops.empty()) of_all_.push_back(&kind);
      for (const std::string_view op : kind.ops) by_op_[workspace.model().names().Intern(op)].push_back(&kind);
    }
    twins_ = words.empty() || std::find(words.begin(), words.end(), "twins") != words.end();
  }

  absl::Status Run() {
    for (int round = 0; round < kMostRounds; ++round) {
      const int64_t before = done_;
      if (absl::Status status = Round(); !status.ok()) return status;
      if (done_ == before) break;
    }
    return absl::OkStatus();
  }

 private:
  absl::Status Round() {
    numbering_ = std::make_unique<ValueNumbering>(workspace_.model(), workspace_.facts());
    first_.clear();
    became_.clear();
    for (const auto& graph : workspace_.model().graphs()) {
      if (twins_) JoinInitializers(*graph);
      std::vector<const Node*> nodes;
      for (const Node* node : graph->nodes()) {
        if (!node->dead) nodes.push_back(node);
      }
      std::sort(nodes.begin(), nodes.end(), [](const Node* a, const Node* b) { return StandsBefore(*a, *b); });
      for (const Node* node : nodes) {
        if (absl::Status status = workspace_.GoOn(); !status.ok()) return status;
        Visit(node);
      }
    }
    return absl::OkStatus();
  }

  void Visit(const Node* node) {
    for (int i = 0; i < kMostAnswers && node != nullptr && !node->dead && workspace_.MayReplace(); ++i) {
      if (IsOfGe(*node)) break;
      if (twins_ && JoinTwins(node)) return;
      const Node* const next = AskAll(node);
      if (next == nullptr) return;
      node = next;
    }
  }

  // GE looks for its forms node by node.
  bool IsOfGe(const Node& node) const { return !of_ge_.empty() && of_ge_.contains(std::string(Label(node))); }

  void Note(std::string_view code, const Node& node) {
    workspace_.result.tidied[{std::string(code), std::string(OpType(node))}].emplace_back(Label(node));
    Count();
  }

  void Count() {
    workspace_.CountReplacement();
    ++done_;
  }

  // --- twins ---

  // Constants of one content are one.
  void JoinInitializers(const Graph& graph) {
    const std::vector<const Value*> initializers = graph.initializers();
    for (const Value* value : initializers) {
      if (!value->IsConstant() || LiveUses(*value).empty()) continue;
      const Value* const first = first_.try_emplace({&graph, numbering_->Number(value)}, value).first->second;
      if (first == value || !workspace_.MayReplace()) continue;
      workspace_.result.tidied[{"tidy-twins", "Constant"}].emplace_back(ValueName(*value));
      Count();
      Reroute(value, first);
    }
  }

  // Whether the node is gone, as its outputs are those of one that stands before it.
  bool JoinTwins(const Node* node) {
    bool joined = false;
    const std::vector<const Value*> outputs(node->outputs().begin(), node->outputs().end());
    for (const Value* value : outputs) {
      if (value == nullptr || value->producer != node) continue;
      const auto [entry, fresh] = first_.try_emplace({node->graph, numbering_->Number(value)}, value);
      const Value* const first = entry->second;
      if (fresh || first == value) continue;
      const bool there =
          first->IsConstant() || (first->producer != nullptr && !first->producer->dead && StandsBefore(*first->producer, *node));
      if (!there) {
        entry->second = value;
        continue;
      }
      if (!IsSameToTheBit(*value, *first)) continue;
      const Node before = *node;  // what it was called
      if (!Become(value, first)) continue;
      if (!joined) Note("tidy-twins", before);
      joined = true;
    }
    return joined && node->dead;
  }

  // Equal numbers tell of whole numbers that they are equal. Floats may differ by the sign of a zero, or by what inference and
  // a runtime round: they are equal where one operator computes them of the same operands, which are joined already.
  bool IsSameToTheBit(const Value& value, const Value& first) const {
    const Fact& fact = workspace_.facts().Of(&value);
    if (IsInteger(fact.type)) return true;
    const Node* const a = value.producer;
    const Node* const b = first.producer;
    if (a == nullptr || b == nullptr) {
      return (a == nullptr || IsOp(*a, "Constant")) && (b == nullptr || IsOp(*b, "Constant"));
    }
    if (a->op_type != b->op_type || a->domain != b->domain || a->input_count != b->input_count) return false;
    bool same = true;
    for (size_t i = 0; i < a->input_count; ++i) same = same && a->input(i) == b->input(i);
    const bool swapped = a->input_count == 2 && a->input(0) == b->input(1) && a->input(1) == b->input(0);
    return same || swapped;
  }

  // --- kinds ---

  // The node to be asked about next, nullptr where nobody answers.
  const Node* AskAll(const Node* node) {
    TidyContext context{workspace_, *numbering_, inputs_};
    const auto found = by_op_.find(node->op_type);
    if (found != by_op_.end() && node->domain == NameId::kEmpty) {
      for (const TidyKind* kind : found->second) {
        if (const Node* const next = Ask(*kind, context, node); next != nullptr || node->dead) return next;
      }
    }
    for (const TidyKind* kind : of_all_) {
      if (const Node* const next = Ask(*kind, context, node); next != nullptr || node->dead) return next;
    }
    return nullptr;
  }

  const Node* Ask(const TidyKind& kind, TidyContext& context, const Node* node) {
    const std::optional<Tidied> answer = kind.ask(context, *node);
    if (!answer.has_value()) return nullptr;
    const Node before = *node;
    const Node* const next = Do(*answer, node);
    if (next != nullptr || node->dead) Note(kind.code, before);
    return next;
  }

  const Node* Do(const Tidied& answer, const Node* node) {
    if (answer.result.has_value() && answer.result->kind == Term::Kind::kValue) {
      const Value* const output = node->output();
      const Value* const source = Now(answer.result->value);
      return source != output && Become(output, source) && !node->dead ? node : nullptr;
    }
    NodeInserter inserter(workspace_, *node);
    made_from_ = workspace_.model().node_count();
    if (!answer.result.has_value()) {
      for (const auto& [index, input] : answer.inputs) workspace_.rewriter().SetInput(node, index, inserter.Build(input));
      Learn(node);
      return node;
    }
    NewNode plan = inserter.Plan(*answer.result);
    plan.name = std::string(NodeName(*node));
    plan.keep_name = !plan.name.empty();
    const Value* const output = node->output();
    const Node* const written = workspace_.rewriter().ReplaceValue(output, plan);
    workspace_.rewriter().CopyNotes(*node, written);
    Learn(written);
    return written;
  }

  void Learn(const Node* node) {
    workspace_.Refresh(node);
    Number(*node);
  }

  // Numbers what was made for the last answer, in the order in which it was made.
  void Number(const Node& node) {
    if (node.id < made_from_) return;
    for (const Use& use : node.inputs()) {
      if (use.value != nullptr && use.value->producer != nullptr) Number(*use.value->producer);
    }
    numbering_->Add(node, workspace_.facts());
  }

  // --- values in place of others ---

  // What a value became in this round.
  const Value* Now(const Value* value) const {
    for (auto found = became_.find(value); found != became_.end(); found = became_.find(value)) value = found->second;
    return value;
  }

  void Reroute(const Value* value, const Value* other) {
    std::vector<Use> uses;  // first all, then the changes
    for (const Use& use : LiveUses(*value)) uses.push_back(use);
    for (const Use& use : uses) workspace_.rewriter().SetInput(use.user, use.index, other);
    became_[value] = other;
  }

  // Who reads `value` reads `other`, which is equal. An output of the graph keeps its name: then it is what the other one was
  // computed as. False where that cannot be.
  bool Become(const Value* value, const Value* other) {
    if (!value->is_graph_output) {
      Reroute(value, other);
      return true;
    }
    const Node* const producer = other->producer;
    if (producer == nullptr || producer->dead || producer->graph != value->graph || other->is_graph_output ||
        producer->subgraph_count > 0 || IsOfGe(*producer)) {
      return false;
    }
    std::vector<TakenOutput> taken;
    for (size_t i = 0; i < producer->output_count; ++i) {
      const Value* const output = producer->output(i);
      if (output == nullptr || output->producer != producer) continue;
      taken.push_back({i, output == other ? value : output});
    }
    const Node* const old = producer;
    made_from_ = workspace_.model().node_count();
    const Node* const written = workspace_.rewriter().Replace(taken, producer->output_count, PlanOf(*producer));
    workspace_.rewriter().CopyNotes(*old, written);
    Learn(written);
    Reroute(other, value);
    for (Site& site : workspace_.sites) {
      if (site.value == other) site.value = value;
      std::replace(site.others.begin(), site.others.end(), other, value);
    }
    return true;
  }

  Workspace& workspace_;
  InputDims inputs_;
  absl::flat_hash_set<std::string> of_ge_;  // names of the nodes that GE fuses itself
  std::vector<const TidyKind*> of_all_;
  absl::flat_hash_map<NameId, std::vector<const TidyKind*>> by_op_;
  bool twins_ = true;
  int64_t done_ = 0;
  uint32_t made_from_ = 0;  // the ids of what is made for one answer
  // Of one round:
  std::unique_ptr<ValueNumbering> numbering_;
  absl::flat_hash_map<std::pair<const Graph*, uint32_t>, const Value*> first_;  // by number
  absl::flat_hash_map<const Value*, const Value*> became_;
};

}  // namespace

std::vector<std::string_view> TidyWords() {
  std::vector<std::string_view> words = {"twins"};
  for (const TidyKind& kind : TidyKinds()) {
    if (std::find(words.begin(), words.end(), kind.word) == words.end()) words.push_back(kind.word);
  }
  return words;
}

absl::Status Tidy(Workspace& workspace) {
  if (workspace.ChangesNothing() || workspace.options().keep_rest) return absl::OkStatus();
  return Tidier(workspace).Run();
}

}  // namespace ascend_fuse
