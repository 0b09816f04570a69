#include "passes/tidy/element_parts.h"

#include <algorithm>
#include <utility>

#include "ir/constant_tensor.h"
#include "ir/schema.h"

namespace ascend_fuse {
namespace {

constexpr size_t kMostMembers = 4096;  // of one part

// Computes with one element of each operand at a time, wherever these stand.
bool ComputesElements(const Node& node) {
  static constexpr std::string_view kOthers[] = {"BitCast", "CastLike", "Dropout", "Identity"};
  return IsElementwise(node) &&
         std::none_of(std::begin(kOthers), std::end(kOthers), [&](std::string_view op) { return IsOp(node, op); });
}

}  // namespace

bool HasOneElement(const TidyContext& context, const Fact& fact) {
  return fact.has_rank &&
         std::all_of(fact.shape.begin(), fact.shape.end(), [&](Dim dim) { return context.dims().Resolve(dim).is(1); });
}

std::optional<int> LongAxis(const Tensor& tensor, int rank) {
  std::optional<int> found;
  for (size_t i = 0; i < tensor.dims.size(); ++i) {
    if (tensor.dims[i] == 1) continue;
    if (found.has_value()) return std::nullopt;
    found = static_cast<int>(i) + rank - static_cast<int>(tensor.dims.size());
  }
  return found;
}

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

ElementPart ElementParts::Grow(const Node& link, const Link& of) const {
  ElementPart part;
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
bool ElementParts::Leads(const ElementPart& part, const Node& node, const Graph* graph, bool first, bool into) const {
  const auto link = node.graph == graph && !graph_.IsOfGe(node) ? LinkOf(context_, node) : std::nullopt;
  return link.has_value() && link->kind == part.kind && (link->both_ways || link->to_first == (into == first));
}

// A tensor is met with all values that it is in either order: which of them is met first must not matter.
void ElementParts::Meet(ElementPart* part, const Value* value, bool first) const {
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
    const auto [place, fresh] = part->places.try_emplace(next, OrderedPlace{tensor, in_first});
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
void ElementParts::LookAround(ElementPart* part, const Value* value) const {
  const OrderedPlace place = part->places.at(value);
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

void ElementParts::Join(ElementPart* part, const Node* node, bool first) const {
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

bool ElementParts::IsMember(const LinkKind& kind, const Node& node, bool first) const {
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

}  // namespace ascend_fuse
