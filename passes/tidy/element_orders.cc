#include "passes/tidy/element_orders.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "fmt/format.h"
#include "ir/constant_tensor.h"
#include "ir/movement/movement.h"
#include "passes/core/node_inserter.h"

namespace ascend_fuse {
namespace {

// A constant that has one long axis, whose elements stand in the same order along that axis in both.
const Value* ConstantIn(const TidyContext& context, const LinkKind& kind, const Value& constant, bool to_first,
                        const Graph* graph) {
  const auto tensor = ConstantTensor(constant);
  const auto bytes = ReadBytes(context.workspace.model(), *tensor, kMostConstantBytes);
  const int axis = *LongAxis(*tensor, kind.rank);
  // In the first order axis i is what axis axes[i] is in the second one.
  const auto at = std::find(kind.axes.begin(), kind.axes.end(), axis);
  const int64_t to = to_first ? at - kind.axes.begin() : kind.axes[static_cast<size_t>(axis)];
  std::vector<int64_t> dims(static_cast<size_t>(kind.rank - to), 1);
  dims[0] = *std::max_element(tensor->dims.begin(), tensor->dims.end());
  const Value* const written = context.workspace.rewriter().Constant(graph, tensor->type, dims, *bytes, ValueName(constant));
  InferConstant(written, &context.workspace.facts());
  return written;
}

}  // namespace

void ElementOrders::Choose(const Graph& graph, absl::FunctionRef<bool(const Node&)> done) {
  absl::flat_hash_set<const Node*> met;
  const std::vector<const Node*> nodes(graph.nodes().begin(), graph.nodes().end());
  for (const Node* node : nodes) {
    const auto link = LinkOf(context_, *node);
    if (!link.has_value() || !met.insert(node).second || graph_.IsOfGe(*node)) continue;
    ElementPart part = parts_.Grow(*node, *link);
    for (const auto& [value, place] : part.places) {
      const auto own = value->producer != nullptr ? LinkOf(context_, *value->producer) : std::nullopt;
      if (own.has_value() && own->kind == part.kind) met.insert(value->producer);  // one of another kind begins a part of its own
    }
    if (part.consistent && !part.members.empty() && Solve(&part)) Write(&part, done);
  }
}

// --- which orders ---

bool ElementOrders::JoinsLink(const ElementPart& part, const OrderedTensor& tensor) const {
  const Value* const made = tensor.now[tensor.made_first ? 0 : 1];
  if (tensor.maker.has_value() || tensor.read[0] || tensor.read[1] || made == nullptr || made->producer == nullptr) return false;
  const Movement* const movement = context_.facts().MovementOf(made);
  const MovementKind same = part.kind.ones ? MovementKind::kKeepsOrder : MovementKind::kPermutes;
  return movement != nullptr && movement->kind == same && !made->producer->dead && made->producer->graph == made->graph;
}

// Costs of moving a tensor to another order, against 1 for each node that is computed in another order than before.
constexpr int64_t kLink = int64_t{2} << 20;
constexpr int64_t kJoinedLink = kLink / 2;

int64_t ElementOrders::CostOfLinks(const ElementPart& part, bool chosen) const {
  const auto order = [&](size_t member) { return chosen ? part.members[member].chosen : part.members[member].first; };
  int64_t cost = 0;
  for (const OrderedTensor& tensor : part.tensors) {
    const bool made_first = tensor.maker.has_value() ? order(*tensor.maker) : tensor.made_first;
    bool read = tensor.read[made_first ? 1 : 0];
    for (const size_t reader : tensor.readers) read = read || order(reader) != made_first;
    if (read) cost += tensor.joins ? kJoinedLink : kLink;
  }
  return cost;
}

bool ElementOrders::Solve(ElementPart* part) const {
  OrderGraph graph;
  const auto order = [](bool first) { return first ? Order::kFirst : Order::kSecond; };
  for (ElementNode& member : part->members) {
    member.choice = graph.AddChoice();
    graph.Charge(member.choice, Other(order(member.first)), 1);
  }
  for (OrderedTensor& tensor : part->tensors) {
    tensor.joins = JoinsLink(*part, tensor);
    std::vector<OrderGraph::Choice> choices;
    for (const size_t reader : tensor.readers) choices.push_back(part->members[reader].choice);
    for (const bool first : {true, false}) {
      if (tensor.read[first ? 0 : 1]) choices.push_back(OrderGraph::Fixed(order(first)));
    }
    if (choices.empty()) continue;
    const OrderGraph::Choice maker =
        tensor.maker.has_value() ? part->members[*tensor.maker].choice : OrderGraph::Fixed(order(tensor.made_first));
    const OrderGraph::Readers readers = graph.AddReaders(choices);
    for (const Order read : {Order::kFirst, Order::kSecond}) {
      graph.ChargeMoving(maker, readers, read, tensor.joins ? kJoinedLink : kLink);
    }
  }
  graph.Solve();
  for (ElementNode& member : part->members) member.chosen = graph.OrderOf(member.choice) == Order::kFirst;
  return CostOfLinks(*part, true) < CostOfLinks(*part, false);
}

// --- writing ---

void ElementOrders::Write(ElementPart* part, absl::FunctionRef<bool(const Node&)> done) {
  std::vector<ElementNode> turned;
  for (const ElementNode& member : part->members) {
    if (member.chosen != member.first) turned.push_back(member);
  }
  std::sort(turned.begin(), turned.end(),
            [](const ElementNode& a, const ElementNode& b) { return StandsBefore(*a.node, *b.node); });
  if (!done(*turned.front().node)) return;  // all of them or none
  for (size_t i = 1; i < turned.size(); ++i) done(*turned[i].node);
  for (const ElementNode& member : turned) WriteMember(part, member);
}

// The node in the other order; what is left of its result in the old one is linked to that.
void ElementOrders::WriteMember(ElementPart* part, const ElementNode& member) {
  const Node& node = *member.node;
  const Value* const before = node.output();
  NewNode plan = PlanOf(node);
  for (size_t i = 0; i < plan.inputs.size(); ++i) {
    if (plan.inputs[i] != nullptr) plan.inputs[i] = InOrder(part, plan.inputs[i], member.chosen, node);
  }
  const Node* const written =
      context_.workspace.rewriter().Insert(plan, 1, node.graph, fmt::format("{}_moved", ValueName(*before)));
  context_.workspace.rewriter().CopyNotes(node, written);
  context_.workspace.Refresh(written);
  OrderedTensor& tensor = part->tensors[part->places.at(before).tensor];
  // Who reads it in the chosen order by a link reads it itself.
  const Value*& linked = tensor.now[member.chosen ? 0 : 1];
  const Value* const other = linked;
  linked = written->output();
  if (other != nullptr && !other->is_graph_output) graph_.Reroute(other, linked);
  bool needed = before->is_graph_output;
  for (const Use& use : LiveUses(*before)) needed = needed || !use.user->dead;
  if (!needed) return;
  NodeInserter inserter(context_.workspace, node);
  const NewNode link = inserter.Plan(InOtherOrder(part->kind, Term::Of(linked), member.first));
  context_.workspace.Refresh(context_.workspace.rewriter().ReplaceValue(before, link));
}

const Value* ElementOrders::InOrder(ElementPart* part, const Value* operand, bool first, const Node& reader) {
  const auto place = part->places.find(operand);
  if (StaysConstant(context_, part->kind, *operand)) {
    const bool same = part->kind.ones || HasOneElement(context_, context_.facts().Of(operand));
    return same ? operand : ConstantIn(context_, part->kind, *operand, first, reader.graph);
  }
  OrderedTensor& tensor = part->tensors[place->second.tensor];
  const Value*& now = tensor.now[first ? 0 : 1];
  const bool there =
      now != nullptr && (now->producer == nullptr || (!now->producer->dead && StandsBefore(*now->producer, reader)));
  if (there) return now;
  NodeInserter inserter(context_.workspace, reader);
  const Value* const linked = inserter.Build(InOtherOrder(part->kind, Term::Of(operand), first));
  if (now == nullptr) now = linked;
  return linked;
}

}  // namespace ascend_fuse
