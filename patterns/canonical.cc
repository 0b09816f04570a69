#include "patterns/canonical.h"

#include <algorithm>
#include <cstring>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "ir/schema.h"

namespace ascend_fuse {
namespace {

bool SameShape(const Facts& facts, const Value* a, const Value* b) {
  const Fact& x = facts.Of(a);
  const Fact& y = facts.Of(b);
  if (!x.has_rank || !y.has_rank || x.shape.size() != y.shape.size()) return false;
  for (size_t i = 0; i < x.shape.size(); ++i) {
    if (!facts.dims().Equal(x.shape[i], y.shape[i])) return false;
  }
  return true;
}

bool SameType(const Facts& facts, const Value* a, const Value* b) {
  const DataType type = facts.Of(a).type;
  return type != DataType::kUndefined && type == facts.Of(b).type;
}

bool IsSplatOf(const Facts& facts, const Value* value, double number) {
  const Fact& fact = facts.Of(value);
  if (fact.is_splat) return fact.splat == number;
  if (fact.elements == nullptr) return false;
  if (!fact.elements->floats.empty()) {
    return std::all_of(fact.elements->floats.begin(), fact.elements->floats.end(),
                       [&](double element) { return element == number; });
  }
  if (fact.elements->integers.empty()) return false;
  return std::all_of(fact.elements->integers.begin(), fact.elements->integers.end(),
                     [&](Dim element) { return element.is(static_cast<int64_t>(number)); });
}

// Indices that name every row of the first dimension in order, so that ScatterND writes all of `data`
// (export-patterns.md X7): Unsqueeze (Range (0, dim 0 of data, 1), -1) or a constant iota.
bool IsFullIota(const Facts& facts, const Value* indices, const Value* data) {
  const Fact& shape = facts.Of(data);
  const Fact& index = facts.Of(indices);
  if (!shape.has_rank || shape.shape.empty() || !index.has_rank || index.shape.size() != 2 ||
      !index.shape[1].is(1) || !facts.dims().Equal(index.shape[0], shape.shape[0])) {
    return false;
  }
  if (index.elements != nullptr && !index.elements->integers.empty()) {
    for (size_t i = 0; i < index.elements->integers.size(); ++i) {
      if (!index.elements->integers[i].is(static_cast<int64_t>(i))) return false;
    }
    return true;
  }
  const Node* node = indices->producer;
  while (node != nullptr && (IsOp(*node, "Unsqueeze") || IsOp(*node, "Reshape") || IsOp(*node, "Cast"))) {
    node = node->input(0) != nullptr ? node->input(0)->producer : nullptr;
  }
  if (node == nullptr || !IsOp(*node, "Range")) return false;
  // The length is the row count, so start 0 and step 1 name every row once.
  return IsSplatOf(facts, node->input(0), 0) && IsSplatOf(facts, node->input(2), 1);
}

// The input that the node's first output merely copies, or nullptr.
Value* CopiedInput(const Node& node, const Facts& facts, std::string_view op) {
  Value* x = node.input(0);
  const Value* y = node.output(0);
  if (x == nullptr || y == nullptr) return nullptr;
  if (op == "Identity") return x;
  if (op == "Dropout") {
    // Before opset 7 Dropout trains unless is_test is set. From 12 on training_mode is the third input,
    // absent or false at inference.
    if (node.graph->model().OpsetVersion() < 7) return nullptr;
    const Value* training = node.input(2);
    if (training != nullptr && !IsSplatOf(facts, training, 0)) return nullptr;
    const Value* mask = node.output(1);
    if (mask != nullptr && (mask->is_graph_output || !LiveUses(*mask).empty())) return nullptr;
    return x;
  }
  if (op == "Cast") return SameType(facts, x, y) ? x : nullptr;
  if (op == "Concat") return node.input_count == 1 ? x : nullptr;
  if (op == "Reshape" || op == "Expand" || op == "Slice" || op == "Squeeze" || op == "Unsqueeze" ||
      op == "Flatten") {
    if (!SameShape(facts, x, y)) return nullptr;
    if (op == "Slice") {
      // A reversed slice has the same shape: every step must be 1.
      const Value* steps = node.input(4);
      if (steps != nullptr && !IsSplatOf(facts, steps, 1)) return nullptr;
    }
    return x;
  }
  if (op == "Transpose") {
    const auto perm = IntsAttribute(node, "perm");
    if (!perm.has_value()) return nullptr;
    bool identity = true;
    for (size_t i = 0; i < perm->size(); ++i) identity = identity && (*perm)[i] == static_cast<int64_t>(i);
    if (identity) return x;
    const Node* inner = x->producer;
    if (inner == nullptr || !IsOp(*inner, "Transpose")) return nullptr;
    const auto first = IntsAttribute(*inner, "perm");
    if (!first.has_value() || first->size() != perm->size()) return nullptr;
    for (size_t i = 0; i < perm->size(); ++i) {
      const int64_t middle = (*perm)[i];
      if (middle < 0 || middle >= static_cast<int64_t>(first->size()) ||
          (*first)[middle] != static_cast<int64_t>(i)) {
        return nullptr;
      }
    }
    return inner->input(0);
  }
  if (op == "Mul" || op == "Div" || op == "Add" || op == "Sub") {
    Value* other = node.input(1);
    if (other == nullptr || !SameType(facts, x, y)) return nullptr;
    const double neutral = op == "Mul" || op == "Div" ? 1 : 0;
    if (IsSplatOf(facts, other, neutral) && SameShape(facts, x, y)) return x;
    if ((op == "Mul" || op == "Add") && IsSplatOf(facts, x, neutral) && SameShape(facts, other, y)) {
      return other;
    }
    return nullptr;
  }
  if (op == "ScatterND") {
    const auto reduction = StringAttribute(node, "reduction");
    if (reduction.has_value() && *reduction != "none") return nullptr;
    Value* updates = node.input(2);
    if (updates == nullptr || node.input(1) == nullptr || !SameShape(facts, x, updates)) return nullptr;
    return IsFullIota(facts, node.input(1), x) ? updates : nullptr;
  }
  return nullptr;
}

}  // namespace

Canonical::Canonical(const Model& model, const Facts& facts) {
  numbers_.resize(model.value_count());
  sources_.resize(model.value_count(), nullptr);
  for (uint32_t i = 0; i < numbers_.size(); ++i) numbers_[i] = i;
  absl::flat_hash_map<std::string, uint32_t> known;  // constants
  absl::flat_hash_map<std::string, const Node*> known_nodes;
  std::string key;
  auto append = [&key](const void* data, size_t size) { key.append(static_cast<const char*>(data), size); };
  auto append_number = [&](uint64_t number) { append(&number, sizeof number); };

  // Small constants by content.
  auto number_constant = [&](const Value* value) {
    const Fact& fact = facts.Of(value);
    if (fact.elements == nullptr || !fact.has_rank) return;
    key.assign("constant");
    append_number(static_cast<uint64_t>(fact.type));
    for (Dim dim : fact.shape) {
      if (!dim.is_number()) return;
      append_number(static_cast<uint64_t>(dim.number()));
    }
    key += ':';
    for (Dim element : fact.elements->integers) {
      if (!element.is_number()) return;
      append_number(static_cast<uint64_t>(element.number()));
    }
    for (double element : fact.elements->floats) append(&element, sizeof element);
    numbers_[value->id] = known.try_emplace(key, value->id).first->second;
  };

  absl::flat_hash_map<uint64_t, bool> plain;  // operator -> may be numbered
  for (const auto& graph : model.graphs()) {
    for (const Value* value : graph->initializers()) {
      if (value->IsConstant()) number_constant(value);
    }
    for (const Node* node : graph->nodes()) {
      if (node->dead || node->output_count == 0) continue;
      const std::string_view op = OpType(*node);
      if (node->domain == NameId::kEmpty) {
        if (Value* source = CopiedInput(*node, facts, op); source != nullptr && node->output(0) != nullptr) {
          sources_[node->output(0)->id] = source;
          numbers_[node->output(0)->id] = numbers_[source->id];
          continue;
        }
      }
      if (node->output_count == 1 && node->output(0) != nullptr) {
        const uint32_t before = numbers_[node->output(0)->id];
        number_constant(node->output(0));
        if (facts.Of(node->output(0)).elements != nullptr &&
            (numbers_[node->output(0)->id] != before || node->input_count == 0)) {
          continue;
        }
      }
      const uint64_t op_key =
          (static_cast<uint64_t>(node->domain) << 32) | static_cast<uint64_t>(node->op_type);
      auto [entry, inserted] = plain.try_emplace(op_key, false);
      const Schema* schema = nullptr;
      if (inserted) {
        schema = SchemaOf(*node);
        entry->second = schema != nullptr && schema->deterministic;
      }
      if (!entry->second || node->subgraph_count != 0) continue;
      key.assign("node");
      append_number(op_key);
      std::vector<uint64_t> inputs;
      for (const Use& use : node->inputs()) {
        inputs.push_back(use.value == nullptr ? UINT64_MAX : numbers_[use.value->id]);
      }
      if (inputs.size() == 2) {
        if (schema == nullptr) schema = SchemaOf(*node);
        if (schema != nullptr && schema->commutative && inputs[0] > inputs[1])
          std::swap(inputs[0], inputs[1]);
      }
      for (uint64_t input : inputs) append_number(input);
      append_number(node->output_count);
      bool comparable = true;
      for (const Attribute& attribute : ReadAttributes(*node)) {
        // Long payloads are not among the bytes in memory: two weights of one shape would look equal.
        switch (attribute.type) {
          case AttributeType::kFloat:
          case AttributeType::kInt:
          case AttributeType::kString:
          case AttributeType::kFloats:
          case AttributeType::kInts:
          case AttributeType::kStrings:
            break;
          case AttributeType::kTensor:
            comparable = comparable && attribute.tensor.storage == Storage::kMemory;
            break;
          default:
            comparable = false;
        }
        append(attribute.encoded.data(), attribute.encoded.size());
        key += ';';
      }
      if (!comparable) continue;
      auto [same, fresh] = known_nodes.try_emplace(key, node);
      if (fresh) continue;
      for (size_t i = 0; i < node->output_count; ++i) {
        const Value* first = same->second->output(i);
        if (first != nullptr && node->output(i) != nullptr) {
          numbers_[node->output(i)->id] = numbers_[first->id];
        }
      }
    }
  }
}

}  // namespace ascend_fuse
