#include "ir/infer/value_numbering.h"

#include <algorithm>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/inlined_vector.h"
#include "ir/infer/counts.h"
#include "ir/infer/movement_of.h"
#include "ir/rounding.h"
#include "ir/schema.h"

namespace ascend_fuse {
namespace {

bool SameShape(const Facts& facts, const Value* a, const Value* b) {
  const Fact& x = facts.Of(a);
  const Fact& y = facts.Of(b);
  return x.has_rank && y.has_rank && facts.dims().Equal(x.shape, y.shape);
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

// Nodes that do nothing, given the copies found so far: the pass goes in the order of the graph, so what a node
// reads has been looked at before.
class Noise {
 public:
  Noise(Facts& facts, const Copies& copies) : facts_(facts), copies_(copies) {}

  // The input, or an earlier value, that the node's first output merely copies, or nullptr.
  const Value* CopiedBy(const Node& node, std::string_view op) const {
    const Value* x = node.input(0);
    const Value* y = node.output(0);
    if (x == nullptr || y == nullptr) return nullptr;
    if (op == "Identity") return x;
    if (op == "Dropout") return IsInference(node) ? x : nullptr;
    if (op == "Cast" || op == "CastLike") return BeforeCasting(x, y);
    if (op == "Sum" || op == "Max" || op == "Min" || op == "Mean") return node.input_count == 1 ? x : nullptr;
    if (const Movement* movement = facts_.MovementOf(y); movement != nullptr) return Moved(*movement, node);
    if (op == "Mul" || op == "Div" || op == "Pow") return Combined(node, 1, op == "Mul");
    if (op == "Add" || op == "Sub") return Combined(node, 0, op == "Add");
    if (op == "And") return Combined(node, 1, true);
    if (op == "Or" || op == "Xor") return Combined(node, 0, true);
    return nullptr;
  }

 private:
  // Long chains of copies are followed only so far: the pass stays linear.
  static constexpr int kMaximumSteps = 16;

  // What `value` is a copy of, through everything that was found to be a copy.
  const Value* Through(const Value* value) const {
    for (int i = 0; i < kMaximumSteps && value != nullptr; ++i) {
      const Value* source = copies_.SourceOf(value);
      if (source == nullptr) break;
      value = source;
    }
    return value;
  }

  // What a node that moves elements copies.
  const Value* Moved(const Movement& movement, const Node& node) const {
    const Value* x = node.input(0);
    const Value* y = node.output(0);
    switch (movement.kind) {
      case MovementKind::kKeepsOrder:
        return BeforeReshaping(x, y);
      case MovementKind::kPermutes:
        return BeforeTransposing(movement);
      case MovementKind::kJoins:
        return node.input_count == 1 ? x : nullptr;
      case MovementKind::kWrites:
        return OverwrittenBy(movement, node);
      case MovementKind::kCopies:
        return SameShape(facts_, x, y) ? x : nullptr;
      default:
        return StaysInPlace(movement) && SameShape(facts_, x, y) ? x : nullptr;
    }
  }

  // Whether every element stands at its own place, given that all are there: a part in equal steps of one that has as many is
  // the whole.
  static bool StaysInPlace(const Movement& movement) {
    const MovedPart* part = movement.only();
    if (part == nullptr || !part->known || !part->windows.empty() || part->viewed()) return false;
    for (size_t axis = 0; axis < part->axes.size(); ++axis) {
      const AxisSource& source = part->axes[axis];
      const bool read = source.kind == AxisSource::Kind::kRead;
      const bool steps = source.kind == AxisSource::Kind::kPlace && source.step != 1;  // a reversed slice has the same shape
      const bool own = source.kind == AxisSource::Kind::kFixed || source.axis == static_cast<int>(axis);
      if (read || steps || !own) return false;
    }
    return true;
  }

  // The updates, where they overwrite everything (docs/sources/export-patterns.md X7).
  const Value* OverwrittenBy(const Movement& movement, const Node& node) const {
    const MovedPart& part = movement.parts.back();
    const Value* updates = node.input(part.operand);
    if (updates == nullptr || !SameShape(facts_, node.input(0), updates)) return nullptr;
    if (part.known) {
      const PlaceWindow& rows = part.windows[0];
      const bool all = rows.begin.is(0) && rows.step == 1 && facts_.dims().Equal(rows.count, facts_.Of(updates).shape[0]);
      return all ? updates : nullptr;
    }
    const Value* places = part.placed_by != 0 ? node.input(part.placed_by) : nullptr;
    return places != nullptr && NamesEveryPlace(*places, updates, node.graph->model()) ? updates : nullptr;
  }

  bool IsInference(const Node& node) const {
    // Before opset 7 Dropout trains unless is_test is set. From 12 on training_mode is the third input,
    // absent or false at inference.
    if (node.graph->model().OpsetVersion() < 7) return false;
    const Value* training = node.input(2);
    if (training != nullptr && !IsSplatOf(facts_, training, 0)) return false;
    const Value* mask = node.output(1);
    return mask == nullptr || (!mask->is_graph_output && LiveUses(*mask).empty());
  }

  // A Cast to the same type, or back from a type that holds every number of the first.
  const Value* BeforeCasting(const Value* x, const Value* y) const {
    if (SameType(facts_, x, y)) return x;
    const Value* wide = Through(x);
    const Node* inner = wide->producer;
    if (inner == nullptr || (!IsOp(*inner, "Cast") && !IsOp(*inner, "CastLike"))) return nullptr;
    const Value* first = inner->input(0);
    if (first == nullptr || !SameType(facts_, first, y)) return nullptr;
    return HoldsAllOf(facts_.Of(wide).type, facts_.Of(first).type) ? first : nullptr;
  }

  // y comes from x by keeping the order of the elements: a copy of whatever in the chain of such operators has
  // y's shape.
  const Value* BeforeReshaping(const Value* x, const Value* y) const {
    for (int i = 0; i < kMaximumSteps && x != nullptr; ++i) {
      if (SameShape(facts_, x, y)) return x;
      const Node* node = x->producer;
      if (const Value* source = copies_.SourceOf(x); source != nullptr) {
        x = source;
      } else if (node != nullptr && KeepsOrder(facts_, *node)) {
        x = node->input(0);
      } else {
        return nullptr;
      }
    }
    return nullptr;
  }

  const Value* BeforeTransposing(const Movement& movement) const {
    const PermutationOfAxes last = PermutedAxes(movement);
    if (last.empty()) return nullptr;
    if (std::is_sorted(last.begin(), last.end())) return movement.node->input(0);
    const Value* x = Through(movement.node->input(0));
    const Movement* inner = x != nullptr ? facts_.MovementOf(x) : nullptr;
    if (inner == nullptr) return nullptr;
    const PermutationOfAxes first = PermutedAxes(*inner);
    if (first.size() != last.size()) return nullptr;
    for (size_t i = 0; i < first.size(); ++i) {
      if (last[static_cast<size_t>(first[i])] != static_cast<int>(i)) return nullptr;
    }
    return inner->node->input(0);
  }

  // The operand that is left when the other one is all `neutral` and broadcasts nothing.
  const Value* Combined(const Node& node, double neutral, bool commutative) const {
    const Value* x = node.input(0);
    const Value* other = node.input(1);
    const Value* y = node.output(0);
    if (other == nullptr || node.input_count != 2) return nullptr;
    if (SameType(facts_, x, y) && IsSplatOf(facts_, other, neutral) && SameShape(facts_, x, y)) return x;
    if (commutative && SameType(facts_, other, y) && IsSplatOf(facts_, x, neutral) && SameShape(facts_, other, y)) {
      return other;
    }
    return nullptr;
  }

  // Whether indices of ScatterND name every place of the first axes of `data` in order: each component counts the places of its
  // own axis.
  bool NamesEveryPlace(const Value& indices, const Value* data, const Model& model) const {
    const Fact& shape = facts_.Of(data);
    const Fact& index = facts_.Of(&indices);
    if (!index.has_rank || index.rank() < 2 || index.rank() > shape.rank() + 1) return false;
    for (size_t axis = 0; axis + 1 < index.shape.size(); ++axis) {
      if (!facts_.dims().Equal(index.shape[axis], shape.shape[axis])) return false;
    }
    // No axis has more places than 32 bits number.
    const auto fits = [](const Value&) { return true; };
    const std::vector<Count> runs = RunsOf(CountContext{model, facts_, fits}, &indices);
    if (runs.size() + 1 != index.shape.size()) return false;
    for (size_t axis = 0; axis < runs.size(); ++axis) {
      const Count& run = runs[axis];
      const bool along =
          run.steps.empty() ? facts_.dims().Resolve(shape.shape[axis]).is(1) : run.steps[0].axis == static_cast<int>(axis);
      if (!along || !run.start.is(0)) return false;
    }
    return true;
  }

  Facts& facts_;
  const Copies& copies_;
};

// The key of an attribute by what it means: sorted by name, defaults left out, so that an attribute that is
// written out and one that is not are the same. False where the value is not at hand to compare.
bool AppendAttributes(const Node& node, const Schema* schema, std::string* key) {
  std::vector<Attribute> attributes = ReadAttributes(node);
  std::sort(attributes.begin(), attributes.end(), [](const Attribute& a, const Attribute& b) { return a.name < b.name; });
  auto append = [key](const auto& number) { key->append(reinterpret_cast<const char*>(&number), sizeof number); };
  auto text = [&](std::string_view bytes) {
    append(bytes.size());
    key->append(bytes);
  };
  auto value = [&](const Attribute& attribute) {
    append(attribute.type);
    switch (attribute.type) {
      case AttributeType::kFloat:
        append(attribute.f);
        return true;
      case AttributeType::kInt:
        append(attribute.i);
        return true;
      case AttributeType::kString:
        text(attribute.s);
        return true;
      case AttributeType::kFloats:
        append(attribute.floats.size());
        for (float number : attribute.floats) append(number);
        return true;
      case AttributeType::kInts:
        append(attribute.ints.size());
        for (int64_t number : attribute.ints) append(number);
        return true;
      case AttributeType::kStrings:
        append(attribute.strings.size());
        for (std::string_view item : attribute.strings) text(item);
        return true;
      case AttributeType::kTensor:
        // Long payloads are not among the bytes in memory: two weights of one shape would look equal.
        if (attribute.tensor.storage != Storage::kMemory) return false;
        append(attribute.tensor.type);
        append(attribute.tensor.dims.size());
        for (int64_t dim : attribute.tensor.dims) append(dim);
        text(attribute.tensor.memory);
        return true;
      default:
        return false;
    }
  };
  for (const Attribute& attribute : attributes) {
    const size_t start = key->size();
    text(attribute.name);
    const size_t after_name = key->size();
    if (!attribute.ref_attr_name.empty() || !value(attribute)) return false;
    const SchemaAttribute* row = schema->FindAttribute(attribute.name);
    if (row == nullptr || !row->has_default) continue;
    const std::string written = key->substr(after_name);
    key->resize(after_name);
    const bool is_default = value(row->default_value) && key->substr(after_name) == written;
    key->resize(is_default ? start : after_name);
    if (!is_default) key->append(written);
  }
  return true;
}

void AppendNumber(uint64_t number, std::string* key) { key->append(reinterpret_cast<const char*>(&number), sizeof number); }

}  // namespace

bool IsWeighting(const Node& node) { return IsOp(node, "Mul") || IsOp(node, "Div") || IsOp(node, "Add") || IsOp(node, "Sub"); }

ValueNumbering::ValueNumbering(const Model& model, Facts& facts) {
  numbers_.reserve(model.value_count());
  copies_.Reserve(model.value_count());
  std::vector<const Node*> nodes;
  for (const auto& graph : model.graphs()) {
    for (const Value* value : graph->initializers()) {
      if (value->IsConstant()) AddConstant(*value, facts);
    }
    // What was made stands at the end of the list, after what reads it: a copy of it would have a number of its own there.
    nodes.clear();
    std::copy_if(graph->nodes().begin(), graph->nodes().end(), std::back_inserter(nodes),
                 [](const Node* node) { return !node->dead; });
    SortInOrder(&nodes);
    for (const Node* node : nodes) Add(*node, facts);
  }
}

void ValueNumbering::AddConstant(const Value& value, const Facts& facts) {
  Grow(value);
  if (IsNumbered(value)) return;
  if (const uint32_t number = NumberOfElements(value, facts); number != kNoNumber && number != value.id) {
    Assign(value, number);
    return;
  }
  Assign(value, value.id);
  const Tensor& tensor = *value.initializer;
  if (tensor.storage != Storage::kExternal) return;
  // Two names of one range of bytes: tied weights.
  std::string key = "external";
  AppendNumber(static_cast<uint64_t>(tensor.type), &key);
  AppendNumber(static_cast<uint64_t>(tensor.file.offset), &key);
  AppendNumber(static_cast<uint64_t>(tensor.file.size), &key);
  AppendNumber(tensor.dims.size(), &key);
  for (int64_t dim : tensor.dims) AppendNumber(static_cast<uint64_t>(dim), &key);
  key.append(tensor.location);
  numbers_[value.id] = known_tensors_.try_emplace(std::move(key), value.id).first->second;
}

void ValueNumbering::Add(const Node& node, Facts& facts) {
  for (const Use& use : node.inputs()) {
    if (use.value != nullptr && use.value->IsConstant()) AddConstant(*use.value, facts);
  }
  for (const Value* value : node.outputs()) {
    if (value != nullptr) Grow(*value);
  }
  if (!NumberAsCopy(node, facts) && !NumberByElements(node, facts)) NumberByComputation(node);
  for (const Value* value : node.outputs()) {
    if (value != nullptr) Assign(*value, value->id);
  }
}

void ValueNumbering::Grow(const Value& value) {
  if (value.id < numbers_.size()) return;
  numbers_.resize(value.id + 1, kNoNumber);
  copies_.Resize(value.id + 1);
  firsts_.resize(value.id + 1, nullptr);
}

void ValueNumbering::Assign(const Value& value, uint32_t number) {
  if (IsNumbered(value)) return;
  numbers_[value.id] = number;
  if (number == value.id) firsts_[number] = &value;
}

const Value* ValueNumbering::First(const Value* value) const {
  while (const Value* source = Source(value)) value = source;
  const uint32_t number = Number(value);
  if (number == value->id || number >= firsts_.size() || firsts_[number] == nullptr) return value;
  return firsts_[number];
}

bool ValueNumbering::NumberAsCopy(const Node& node, Facts& facts) {
  const Value* copy = node.output(0);
  if (node.domain != NameId::kEmpty || copy == nullptr || IsNumbered(*copy)) return false;
  const Value* source = Noise(facts, copies_).CopiedBy(node, OpType(node));
  if (source == nullptr) return false;
  copies_.Set(*copy, source);
  Assign(*copy, Number(source));
  return true;
}

uint32_t ValueNumbering::NumberOfElements(const Value& value, const Facts& facts) {
  const Fact& fact = facts.Of(&value);
  if (fact.elements == nullptr || !fact.has_rank) return kNoNumber;
  std::string& key = key_;
  key = "elements";
  AppendNumber(static_cast<uint64_t>(fact.type), &key);
  for (Dim dim : fact.shape) {
    if (!dim.is_number()) return kNoNumber;
    AppendNumber(static_cast<uint64_t>(dim.number()), &key);
  }
  key += ':';
  for (Dim element : fact.elements->integers) {
    // A broadcast of two dims is one number, in whichever body it was met first.
    const Dim resolved = facts.dims().Outside(element);
    if (!resolved.known()) return kNoNumber;
    AppendNumber(resolved.is_number() ? 0 : 1, &key);
    AppendNumber(static_cast<uint64_t>(resolved.id()), &key);
  }
  for (double element : fact.elements->floats) {
    key.append(reinterpret_cast<const char*>(&element), sizeof element);
  }
  return known_tensors_.try_emplace(key, Number(&value)).first->second;
}

bool ValueNumbering::NumberByElements(const Node& node, const Facts& facts) {
  if (node.output_count != 1 || node.output(0) == nullptr) return false;
  const Value& value = *node.output(0);
  const uint32_t number = NumberOfElements(value, facts);
  if (number == kNoNumber || IsNumbered(value)) return false;
  // The first of its elements may still be what an earlier node computes.
  if (number == value.id && node.input_count != 0) return false;
  Assign(value, number);
  return true;
}

void ValueNumbering::NumberByComputation(const Node& node) {
  const Schema* schema = node.subgraph_count == 0 ? SchemaOf(node) : nullptr;
  if (schema == nullptr || !schema->deterministic) return;
  absl::InlinedVector<uint32_t, 8> inputs;
  for (const Use& use : node.inputs()) inputs.push_back(use.value == nullptr ? kNoNumber : Number(use.value));
  if (inputs.size() == 2 && schema->commutative && inputs[0] > inputs[1]) std::swap(inputs[0], inputs[1]);
  std::string& key = key_;
  key.clear();
  AppendNumber(static_cast<uint64_t>(node.domain) << 32 | static_cast<uint64_t>(node.op_type), &key);
  AppendNumber(inputs.size(), &key);
  for (uint32_t input : inputs) AppendNumber(input, &key);
  AppendNumber(node.output_count, &key);
  if (!AppendAttributes(node, schema, &key)) return;
  const auto [same, fresh] = known_computations_.try_emplace(key, computed_.size());
  for (size_t i = 0; i < node.output_count; ++i) {
    const Value* value = node.output(i);
    if (fresh) {
      computed_.push_back(value == nullptr ? kNoNumber : Number(value));
    } else if (value != nullptr && computed_[same->second + i] != kNoNumber) {
      Assign(*value, computed_[same->second + i]);
    }
  }
}

namespace {

constexpr int kMostNumberings = 4;  // dims that are equal make values equal, whose dims are equal then

// Whether dims were unified.
bool UnifyEqualValues(const Graph& graph, const ValueNumbering& numbering, Facts* facts) {
  const uint64_t version = facts->dims().version();
  for (const Node* node : graph.nodes()) {
    if (node->dead) continue;
    for (const Value* value : node->outputs()) {
      if (value == nullptr || numbering.Number(value) == value->id) continue;
      const Value* const first = numbering.First(value);
      if (first == value || first->graph != value->graph) continue;
      const Fact& a = facts->Of(value);
      const Fact& b = facts->Of(first);
      if (!a.has_rank || !b.has_rank || a.shape.size() != b.shape.size()) continue;
      for (size_t i = 0; i < a.shape.size(); ++i) {
        if (a.shape[i] != b.shape[i] && a.shape[i].known() && b.shape[i].known()) facts->dims().Unify(a.shape[i], b.shape[i]);
      }
    }
  }
  return facts->dims().version() != version;
}

}  // namespace

std::unique_ptr<ValueNumbering> NumberValues(const Model& model, Facts* facts) {
  auto numbering = std::make_unique<ValueNumbering>(model, *facts);
  for (int i = 1; i < kMostNumberings && UnifyEqualValues(model.graph(), *numbering, facts); ++i) {
    facts->ResolveDims(model);
    numbering = std::make_unique<ValueNumbering>(model, *facts);
  }
  return numbering;
}

}  // namespace ascend_fuse
