// Tidy: the rest of the graph as an engineer would write it. Values that are equal are computed once, and every kind of
// passes/tidy/kinds.h is asked about every node, in the order of the graph, so that each sees what came of the nodes before.
// Rounds follow until one finds nothing, which is what a second run finds; each takes time in proportion to the nodes.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "ir/add_once.h"
#include "passes/core/without_promises.h"
#include "passes/core/workspace.h"
#include "passes/tidy/element_orders.h"
#include "passes/tidy/kinds.h"
#include "passes/tidy/passes.h"
#include "passes/tidy/tidy_graph.h"

namespace ascend_fuse {
namespace {

constexpr int kMostRounds = 16;                  // every one of which makes the graph smaller: an end, and no more than that
constexpr int kMostAnswers = 16;                 // about one node
constexpr std::string_view kAllExact = "exact";  // of --tidy: all kinds that keep results to the bit

class Tidier {
 public:
  explicit Tidier(Workspace& workspace) : workspace_(workspace), graph_(workspace), inputs_(workspace) {
    const auto& words = workspace.options().tidy;
    const auto named = [&](std::string_view word) { return std::find(words.begin(), words.end(), word) != words.end(); };
    const bool all_exact = words.empty() || named(kAllExact);
    for (const TidyKind& kind : TidyKinds()) {
      if (!named(kind.word) && (!all_exact || kind.reassociates)) continue;
      if (kind.ops.empty()) of_all_.push_back(&kind);
      for (const std::string_view op : kind.ops) by_op_[workspace.model().names().Intern(op)].push_back(&kind);
    }
    twins_ = all_exact || named("twins");
    orders_ = all_exact || named("orders");
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
    graph_.StartRound();
    first_.clear();
    exact_ = ExactValues();
    undivided_.clear();
    for (const auto& graph : workspace_.model().graphs()) {
      if (twins_) JoinInitializers(*graph);
      std::vector<const Node*> nodes;
      for (const Node* node : graph->nodes()) {
        if (!node->dead) nodes.push_back(node);
      }
      SortInOrder(&nodes);
      for (const Node* node : nodes) {
        if (absl::Status status = workspace_.GoOn(); !status.ok()) return status;
        Visit(node);
      }
      if (orders_) ChooseOrdersOf(*graph);
    }
    graph_.EndRound();
    return absl::OkStatus();
  }

  void Visit(const Node* node) {
    for (int i = 0; i < kMostAnswers && node != nullptr && !node->dead && workspace_.MayReplace(); ++i) {
      if (graph_.IsOfGe(*node)) break;
      if (twins_ && JoinTwins(node)) return;
      const Node* const next = AskAll(node);
      if (next == nullptr) return;
      node = next;
    }
  }

  void ChooseOrdersOf(const Graph& graph) {
    TidyContext context{workspace_, graph_.numbering(), inputs_, exact_, undivided_};
    ElementOrders(context, graph_).Choose(graph, [this](const Node& node) {
      if (!workspace_.MayReplace()) return false;
      Note("tidy-orders", node);
      return true;
    });
  }

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
      const Value* const first = first_.try_emplace({&graph, graph_.numbering().Number(value)}, value).first->second;
      if (first == value || !workspace_.MayReplace()) continue;
      workspace_.result.tidied[{"tidy-twins", "Constant"}].emplace_back(ValueName(*value));
      Count();
      graph_.Reroute(value, first);
    }
  }

  // Whether the node is gone, as its outputs are those of one that stands before it.
  bool JoinTwins(const Node* node) {
    bool joined = false;
    const std::vector<const Value*> outputs(node->outputs().begin(), node->outputs().end());
    for (const Value* value : outputs) {
      // What copies its operand has the same number; whether it may go is another question.
      if (value == nullptr || value->producer != node || graph_.numbering().Source(value) != nullptr) continue;
      if (!value->is_graph_output && LiveUses(*value).empty()) continue;  // nobody reads it
      const auto [entry, fresh] = first_.try_emplace({node->graph, graph_.numbering().Number(value)}, value);
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
      if (!graph_.Become(value, first)) continue;
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
    TidyContext context{workspace_, graph_.numbering(), inputs_, exact_, undivided_};
    const auto found = by_op_.find(node->op_type);
    if (found != by_op_.end()) {
      for (const TidyKind* kind : found->second) {
        if (kind->domain != Domain(*node)) continue;
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
    const Node* const next = graph_.Do(*answer, node);
    if (next != nullptr || node->dead) Note(kind.code, before);
    return next;
  }

  Workspace& workspace_;
  TidyGraph graph_;
  InputDims inputs_;
  ExactValues exact_;    // of one round
  Undivided undivided_;  // of one round
  std::vector<const TidyKind*> of_all_;
  absl::flat_hash_map<NameId, std::vector<const TidyKind*>> by_op_;
  bool twins_ = true;
  bool orders_ = true;
  int64_t done_ = 0;
  absl::flat_hash_map<std::pair<const Graph*, uint32_t>, const Value*> first_;  // of one round, by number
};

}  // namespace

std::vector<std::string_view> TidyWords() {
  std::vector<std::string_view> words = {kAllExact, "twins", "orders"};
  for (const TidyKind& kind : TidyKinds()) AddOnce(kind.word, &words);
  return words;
}

absl::Status Tidy(Workspace& workspace) {
  if (workspace.ChangesNothing() || workspace.options().keep_rest) return absl::OkStatus();
  workspace.rewriter().DropUnread(workspace.made_from());
  return WithoutPromises(workspace, [&workspace] { return Tidier(workspace).Run(); });
}

}  // namespace ascend_fuse
