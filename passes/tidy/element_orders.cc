#include "passes/tidy/element_orders.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "fmt/format.h"
#include "ir/constant_tensor.h"
#include "ir/movement/movement.h"
#include "ir/schema.h"
#include "passes/core/node_inserter.h"

namespace ascend_fuse {
namespace {

constexpr int64_t kMostConstantBytes = int64_t{64} << 10;  // of a constant that is written in another order
constexpr size_t kMostMembers = 4096;                      // of one part

bool HasOneElement(const TidyContext& context, const Fact& fact) {
  return fact.has_rank &&
         std::all_of(fact.shape.begin(), fact.shape.end(), [&](Dim dim) { return context.dims().Resolve(dim).is(1); });
}

// Computes with one element of each operand at a time, wherever these stand.
bool ComputesElements(const Node& node) {
  static constexpr std::string_view kOthers[] = {"BitCast", "CastLike", "Dropout", "Identity"};
  return IsElementwise(node) &&
         std::none_of(std::begin(kOthers), std::end(kOthers), [&](std::string_view op) { return IsOp(node, op); });
}

// The only axis of a constant that is longer than 1, from the front of a tensor of `rank`; nullopt where there are more.
std::optional<int> LongAxis(const Tensor& tensor, int rank) {
  std::optional<int> found;
  for (size_t i = 0; i < tensor.dims.size(); ++i) {
    if (tensor.dims[i] == 1) continue;
    if (found.has_value()) return std::nullopt;
    found = static_cast<int>(i) + rank - static_cast<int>(tensor.dims.size());
  }
  return found;
}

// Whether an operand is the same in both orders, or a constant of which a copy is: it is not one of the tensors.
bool StaysConstant(const TidyContext& context, const LinkKind& kind, const Value& value) {
  const Fact& fact = context.facts().Of(&value);
  if (HasOneElement(context, fact) && fact.rank() <= kind.RankIn(false)) return true;
  const auto tensor = ConstantTensor(value);
  if (!tensor.has_value() || !fact.has_rank) return false;
  if (kind.ones) return fact.rank() < kind.rank - kind.axes.back();
  return LongAxis(*tensor, kind.rank).has_value() &&
         std::any_of(fact.shape.begin(), fact.shape.end(), [](Dim dim) { return dim.is_number() && dim.number() > 1; }) &&
         ReadBytes(context.workspace.model(), *tensor, kMostConstantBytes).ok();
}

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
    Part part = Grow(*node, *link);
    for (const auto& [value, place] : part.places) {
      const auto own = value->producer != nullptr ? LinkOf(context_, *value->producer) : std::nullopt;
      if (own.has_value() && own->kind == part.kind) met.insert(value->producer);  // one of another kind begins a part of its own
    }
    if (part.consistent && !part.members.empty() && Solve(&part)) Write(&part, done);
  }
}

// --- what is joined ---

ElementOrders::Part ElementOrders::Grow(const Node& link, const Link& of) const {
  Part part;
  part.kind = of.kind;
  Meet(&part, link.output(), of.to_first);
  while (!part.open.empty() && part.consistent) {
    const Value* const value = part.open.back();
    part.open.pop_back();
    LookAround(&part, value);
  }
  return part;
}

// Whether a node is a link of the part that comes into `first`, or goes out of it.
bool ElementOrders::Leads(const Part& part, const Node& node, const Graph* graph, bool first, bool into) const {
  const auto link = node.graph == graph && !graph_.IsOfGe(node) ? LinkOf(context_, node) : std::nullopt;
  return link.has_value() && link->kind == part.kind && (link->both_ways || link->to_first == (into == first));
}

// A tensor is met with all values that it is in either order: which of them is met first must not matter.
void ElementOrders::Meet(Part* part, const Value* value, bool first) const {
  if (const auto place = part->places.find(value); place != part->places.end()) {
    part->consistent = part->consistent && place->second.first == first;
    return;
  }
  const size_t tensor = part->tensors.size();
  part->tensors.emplace_back();
  std::vector<std::pair<const Value*, bool>> linked = {{value, first}};
  while (!linked.empty()) {
    const auto [next, in_first] = linked.back();
    linked.pop_back();
    const auto [place, fresh] = part->places.try_emplace(next, Place{tensor, in_first});
    if (!fresh) {
      part->consistent = part->consistent && place->second.tensor == tensor && place->second.first == in_first;
      continue;
    }
    const Value*& now = part->tensors[tensor].now[in_first ? 0 : 1];
    if (now != nullptr) part->consistent = false;  // twice in one order: equal values are joined first
    now = next;
    part->open.push_back(next);
    const Node* const producer = next->producer;
    if (producer != nullptr && !producer->dead && Leads(*part, *producer, next->graph, in_first, true)) {
      linked.emplace_back(producer->input(0), !in_first);
    }
    for (const Use& use : LiveUses(*next)) {
      if (use.index == 0 && Leads(*part, *use.user, next->graph, in_first, false)) {
        linked.emplace_back(use.user->output(), !in_first);
      }
    }
  }
}

// Who makes a value of the part and who reads it, but for links.
void ElementOrders::LookAround(Part* part, const Value* value) const {
  const Place place = part->places.at(value);
  const Node* const producer = value->producer;
  const bool of_link = producer != nullptr && !producer->dead && Leads(*part, *producer, value->graph, place.first, true);
  if (!of_link && producer != nullptr && producer->graph == value->graph && IsMember(part->kind, *producer, place.first)) {
    Join(part, producer, place.first);
    part->tensors[place.tensor].maker = part->member_of.at(producer);
  } else if (!of_link) {
    part->tensors[place.tensor].made_first = place.first;
  }
  if (value->is_graph_output) part->tensors[place.tensor].read[place.first ? 0 : 1] = true;
  for (const Use& use : LiveUses(*value)) {
    if (use.index == 0 && Leads(*part, *use.user, value->graph, place.first, false)) continue;
    if (use.user->graph == value->graph && IsMember(part->kind, *use.user, place.first) &&
        !StaysConstant(context_, part->kind, *value)) {
      Join(part, use.user, place.first);
      part->tensors[place.tensor].readers.push_back(part->member_of.at(use.user));
    } else {
      part->tensors[place.tensor].read[place.first ? 0 : 1] = true;
    }
  }
  part->consistent = part->consistent && part->members.size() <= kMostMembers;
}

void ElementOrders::Join(Part* part, const Node* node, bool first) const {
  const auto [at, fresh] = part->member_of.try_emplace(node, part->members.size());
  if (!fresh) {
    part->consistent = part->consistent && part->members[at->second].first == first;
    return;
  }
  part->members.push_back({node, first, 0, first});
  Meet(part, node->output(), first);
  for (const Use& use : node->inputs()) {
    if (use.value != nullptr && !StaysConstant(context_, part->kind, *use.value)) Meet(part, use.value, first);
  }
}

bool ElementOrders::IsMember(const LinkKind& kind, const Node& node, bool first) const {
  if (node.dead || !ComputesElements(node) || graph_.IsOfGe(node)) return false;
  if (CountReaders(*node.output()) == 0) return false;  // it would stay beside the one in its place
  const Fact& result = context_.facts().Of(node.output());
  const int rank = kind.RankIn(first);
  if (!result.has_rank || result.rank() != rank) return false;
  for (const int64_t axis : kind.axes) {
    if (kind.ones && first && !context_.dims().Resolve(result.shape[static_cast<size_t>(axis)]).is(1)) return false;
  }
  bool moved = false;
  for (const Use& use : node.inputs()) {
    if (use.value == nullptr || StaysConstant(context_, kind, *use.value)) continue;
    const Fact& fact = context_.facts().Of(use.value);
    if (fact.rank() != rank || use.value->graph != node.graph) return false;
    if (!kind.ones && !context_.dims().Equal(fact.shape, result.shape)) return false;
    moved = true;
  }
  return moved;
}

// --- which orders ---

bool ElementOrders::JoinsLink(const Part& part, const Tensor& tensor) const {
  const Value* const made = tensor.now[tensor.made_first ? 0 : 1];
  if (tensor.maker.has_value() || tensor.read[0] || tensor.read[1] || made == nullptr || made->producer == nullptr) return false;
  const Movement* const movement = context_.facts().MovementOf(made);
  const MovementKind same = part.kind.ones ? MovementKind::kKeepsOrder : MovementKind::kPermutes;
  return movement != nullptr && movement->kind == same && !made->producer->dead && made->producer->graph == made->graph;
}

// Costs of moving a tensor to another order, against 1 for each node that is computed in another order than before.
constexpr int64_t kLink = int64_t{2} << 20;
constexpr int64_t kJoinedLink = kLink / 2;

int64_t ElementOrders::CostOfLinks(const Part& part, bool chosen) const {
  const auto order = [&](size_t member) { return chosen ? part.members[member].chosen : part.members[member].first; };
  int64_t cost = 0;
  for (const Tensor& tensor : part.tensors) {
    const bool made_first = tensor.maker.has_value() ? order(*tensor.maker) : tensor.made_first;
    bool read = tensor.read[made_first ? 1 : 0];
    for (const size_t reader : tensor.readers) read = read || order(reader) != made_first;
    if (read) cost += tensor.joins ? kJoinedLink : kLink;
  }
  return cost;
}

bool ElementOrders::Solve(Part* part) const {
  OrderGraph graph;
  const auto order = [](bool first) { return first ? Order::kFirst : Order::kSecond; };
  for (Member& member : part->members) {
    member.choice = graph.AddChoice();
    graph.Charge(member.choice, Other(order(member.first)), 1);
  }
  for (Tensor& tensor : part->tensors) {
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
  for (Member& member : part->members) member.chosen = graph.OrderOf(member.choice) == Order::kFirst;
  return CostOfLinks(*part, true) < CostOfLinks(*part, false);
}

// --- writing ---

void ElementOrders::Write(Part* part, absl::FunctionRef<bool(const Node&)> done) {
  std::vector<Member> turned;
  for (const Member& member : part->members) {
    if (member.chosen != member.first) turned.push_back(member);
  }
  std::sort(turned.begin(), turned.end(), [](const Member& a, const Member& b) { return StandsBefore(*a.node, *b.node); });
  if (!done(*turned.front().node)) return;  // all of them or none
  for (size_t i = 1; i < turned.size(); ++i) done(*turned[i].node);
  for (const Member& member : turned) WriteMember(part, member);
}

// The node in the other order; what is left of its result in the old one is linked to that.
void ElementOrders::WriteMember(Part* part, const Member& member) {
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
  Tensor& tensor = part->tensors[part->places.at(before).tensor];
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

const Value* ElementOrders::InOrder(Part* part, const Value* operand, bool first, const Node& reader) {
  const auto place = part->places.find(operand);
  if (StaysConstant(context_, part->kind, *operand)) {
    const bool same = part->kind.ones || HasOneElement(context_, context_.facts().Of(operand));
    return same ? operand : ConstantIn(context_, part->kind, *operand, first, reader.graph);
  }
  Tensor& tensor = part->tensors[place->second.tensor];
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
