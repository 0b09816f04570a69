// Sequences and optionals. Such a value has no tensor fact of its own; what its elements have in common is
// found from the operators that made it.
#include <algorithm>

#include "ir/infer/context.h"

namespace ascend_fuse::infer {
namespace {

// Bounds of the walk back from a use, so that many uses of long chains stay linear.
constexpr int kMaxSteps = 8;
constexpr size_t kMaxItems = 16;

struct Items {
  DataType type = DataType::kUndefined;
  bool has_rank = false;
  std::vector<Dim> shape;
};

Items Of(const Fact& fact) {
  Items items;
  items.type = fact.type;
  items.has_rank = fact.has_rank;
  items.shape.assign(fact.shape.begin(), fact.shape.end());
  return items;
}

// What holds for both; the type is one for all elements of a sequence.
void Join(const Items& other, const DimTable& dims, Items* items) {
  if (items->type == DataType::kUndefined) items->type = other.type;
  if (!items->has_rank || !other.has_rank || items->shape.size() != other.shape.size()) {
    items->has_rank = false;
    items->shape.clear();
    return;
  }
  for (size_t i = 0; i < items->shape.size(); ++i) {
    if (!dims.Equal(items->shape[i], other.shape[i])) items->shape[i] = Dim();
  }
}

Items ItemsOf(const Value* value, Facts* facts, int steps) {
  if (value == nullptr || steps <= 0) return {};
  const Node* node = value->producer;
  if (node == nullptr) return Of(DeclaredItems(*value, facts));
  if (!Domain(*node).empty()) return {};
  const std::string_view op = OpType(*node);
  if (op == "SequenceConstruct") {
    if (node->input_count == 0 || node->input_count > kMaxItems) {
      Items items;
      items.type = facts->Of(node->input(0)).type;
      return items;
    }
    Items items = Of(facts->Of(node->input(0)));
    for (size_t i = 1; i < node->input_count; ++i) Join(Of(facts->Of(node->input(i))), facts->dims(), &items);
    return items;
  }
  if (op == "SequenceEmpty") {
    Items items;
    items.type = static_cast<DataType>(IntAttribute(*node, "dtype").value_or(1));
    return items;
  }
  if (op == "SequenceErase" || op == "Identity" || op == "Optional" || op == "OptionalGetElement") {
    return ItemsOf(node->input(0), facts, steps - 1);
  }
  if (op == "SequenceInsert") {
    Items items = ItemsOf(node->input(0), facts, steps - 1);
    Join(Of(facts->Of(node->input(1))), facts->dims(), &items);
    return items;
  }
  if (op == "SplitToSequence") {
    Items items = Of(facts->Of(node->input(0)));
    if (!items.has_rank) return items;
    const int64_t axis = NormalizeAxis(IntAttribute(*node, "axis").value_or(0), static_cast<int64_t>(items.shape.size()));
    if (axis < 0) return {items.type, false, {}};
    if (node->input(1) != nullptr) {
      items.shape[static_cast<size_t>(axis)] = Dim();
    } else if (IntAttribute(*node, "keepdims").value_or(1) != 0) {
      items.shape[static_cast<size_t>(axis)] = Dim::Of(1);
    } else {
      items.shape.erase(items.shape.begin() + static_cast<std::ptrdiff_t>(axis));
    }
    return items;
  }
  return Of(DeclaredItems(*value, facts));
}

Items ItemsOf(NodeContext& c, size_t i) { return ItemsOf(c.node().input(i), &c.facts(), kMaxSteps); }

void SetItems(NodeContext& c, const Items& items) {
  c.SetType(0, items.type);
  if (items.has_rank) c.SetShape(0, items.shape);
}

void SequenceAt(NodeContext& c) {
  const Value* sequence = c.node().input(0);
  if (sequence != nullptr && sequence->producer != nullptr && OpType(*sequence->producer) == "SequenceConstruct") {
    const Node& made = *sequence->producer;
    const Dim at = c.Scalar(1);
    const int64_t count = static_cast<int64_t>(made.input_count);
    const int64_t index = at.is_number() ? NormalizePosition(at.number(), count) : -1;
    if (index >= 0) {
      const Fact& fact = c.facts().Of(made.input(static_cast<size_t>(index)));
      SetItems(c, Of(fact));
      c.CopyElements(0, fact);
      return;
    }
  }
  SetItems(c, ItemsOf(c, 0));
}

void ConcatFromSequence(NodeContext& c) {
  Items items = ItemsOf(c, 0);
  const bool new_axis = c.Int("new_axis", 0) != 0;
  if (items.has_rank) {
    const int64_t rank = static_cast<int64_t>(items.shape.size()) + (new_axis ? 1 : 0);
    const int64_t axis = NormalizeAxis(c.Int("axis", 0), rank);
    if (axis < 0) {
      items.has_rank = false;
    } else if (new_axis) {
      items.shape.insert(items.shape.begin() + static_cast<std::ptrdiff_t>(axis), Dim());
    } else {
      items.shape[static_cast<size_t>(axis)] = Dim();
    }
  }
  SetItems(c, items);
}

void SequenceLength(NodeContext& c) {
  c.Set(0, DataType::kInt64, {});
  const Value* sequence = c.node().input(0);
  if (sequence != nullptr && sequence->producer != nullptr && OpType(*sequence->producer) == "SequenceConstruct") {
    c.SetIntegers(0, {Dim::Of(static_cast<int64_t>(sequence->producer->input_count))});
  }
}

void OptionalHasElement(NodeContext& c) { c.Set(0, DataType::kBool, {}); }

void OptionalGetElement(NodeContext& c) {
  const Value* value = c.node().input(0);
  if (value == nullptr) return;
  // A tensor is an optional that has its element; of a sequence in an optional there is nothing to say.
  const Value* inner = value;
  if (value->producer != nullptr && OpType(*value->producer) == "Optional") inner = value->producer->input(0);
  if (inner == nullptr) return;
  if (const Fact& fact = c.facts().Of(inner); fact.type != DataType::kUndefined || fact.has_rank) {
    SetItems(c, Of(fact));
    c.CopyElements(0, fact);
  } else if (value->producer == nullptr && DeclaresOptionalTensor(*value)) {
    SetItems(c, Of(DeclaredItems(*value, &c.facts())));
  }
}

// The body maps elements to elements.
void SequenceMap(NodeContext& c) {
  if (c.node().subgraph_count == 0 || c.node().subgraphs()[0] == nullptr) return;
  const Graph& body = *c.node().subgraphs()[0];
  for (size_t i = 0; i < std::min(body.inputs().size(), c.input_count()); ++i) {
    const Fact& earlier = c.facts().Of(body.inputs()[i]);
    if (earlier.type != DataType::kUndefined || earlier.has_rank) continue;
    const Fact& tensor = c.in(i);
    Fact fact;
    fact.type = tensor.type != DataType::kUndefined ? tensor.type : ItemsOf(c, i).type;
    c.facts().Set(body.inputs()[i], fact);
  }
  InferGraph(body, &c.facts());
}

void Nothing(NodeContext&) {}

constexpr Entry kOps[] = {
    {"", "SequenceAt", SequenceAt},
    {"", "ConcatFromSequence", ConcatFromSequence},
    {"", "SequenceLength", SequenceLength},
    {"", "SequenceConstruct", Nothing},
    {"", "SequenceEmpty", Nothing},
    {"", "SequenceErase", Nothing},
    {"", "SequenceInsert", Nothing},
    {"", "SplitToSequence", Nothing},
    {"", "SequenceMap", SequenceMap},
    {"", "Optional", Nothing},
    {"", "OptionalHasElement", OptionalHasElement},
    {"", "OptionalGetElement", OptionalGetElement},
};

}  // namespace

absl::Span<const Entry> SequenceOps() { return kOps; }

}  // namespace ascend_fuse::infer
