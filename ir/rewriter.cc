#include "ir/rewriter.h"

#include <algorithm>
#include <limits>
#include <optional>

#include "fmt/format.h"
#include "ir/onnx/encode.h"
#include "ir/status_macros.h"
#include "ir/streamed_tensor.h"

namespace ascend_fuse {

// Nodes of the file stand 2^20 places apart (GraphBuilder::SetNodes).
constexpr int kOrderBits = 20;

// Calls `visit` for each reader of what the node computes. The node around a body stands for what is in it.
template <typename Visit>
void ForEachReader(const Node& node, const Visit& visit) {
  for (const Value* value : node.outputs()) {
    if (value == nullptr || value->producer != &node) continue;
    for (const Use& use : LiveUses(*value)) {
      const Node* reader = use.user;
      while (reader != nullptr && reader->graph != node.graph) reader = reader->graph->owner();
      if (reader != nullptr) visit(reader);
    }
  }
}

NewNode PlanOf(const Node& node) {
  NewNode plan;
  plan.op_type = std::string(OpType(node));
  plan.domain = std::string(Domain(node));
  plan.name = std::string(NodeName(node));
  plan.keep_name = !plan.name.empty();
  for (const Use& use : node.inputs()) plan.inputs.push_back(use.value);
  plan.attributes = ReadAttributes(node);
  return plan;
}

Rewriter::Rewriter(Model* model) : model_(model) {}

void Rewriter::MarkChanged(const Graph* graph) {
  ++change_count_;
  ++edits_;
  for (; graph != nullptr; graph = graph->owner_ != nullptr ? graph->owner_->graph : nullptr) {
    if (graph->changed_) return;
    Assign(&graph->changed_, true);
  }
}

void Rewriter::RollBack(const Mark& mark) {
  if (journal_.size() > mark.journal) ++edits_;
  while (journal_.size() > mark.journal) {
    journal_.back()();
    journal_.pop_back();
  }
  change_count_ = mark.changes;
}

void Rewriter::ReadNames() {
  if (!taken_.empty()) return;
  absl::flat_hash_set<NameId> nodes;
  for (const auto& graph : model_->graphs()) {
    for (const Value* value : graph->inputs()) taken_.insert(value->name);
    for (const Value* value : graph->initializers()) taken_.insert(value->name);
    for (const Node* node : graph->nodes()) {
      taken_.insert(node->name);
      if (!node->is_new && !nodes.insert(node->name).second) repeated_.insert(node->name);
      for (const Value* value : node->outputs()) {
        if (value != nullptr) taken_.insert(value->name);
      }
    }
  }
}

NameId Rewriter::UniqueName(std::string_view base) {
  ReadNames();
  NameId id = model_->names().InternCopy(base);
  if (id != NameId::kEmpty && taken_.insert(id).second) {
    Note([this, id] { taken_.erase(id); });
    return id;
  }
  std::string key(base);
  uint32_t& suffix = next_suffix_[key];
  const uint32_t before = suffix;
  do {
    id = model_->names().InternCopy(fmt::format("{}_{}", base, ++suffix));
  } while (!taken_.insert(id).second);
  Note([this, id, before, key = std::move(key)] {
    taken_.erase(id);
    next_suffix_[key] = before;
  });
  return id;
}

// Names that are made here are the only ones of the model (UniqueName), so that those of the file are all there is to look at.
void Rewriter::KeepSeen(const Value* value, const Graph* graph) {
  if (value == nullptr) return;
  while (const Value* own = names_of_bodies_.TakenForEachOther(*value, *graph)) {
    Assign(&own->name, UniqueName(ValueName(*own)));
    if (own->initializer != nullptr) Assign(&own->initializer->name, own->name);
    for (const Graph* other : GraphsThatName(*own)) {
      Assign(&other->renamed_, true);
      MarkChanged(other);
    }
  }
}

const Value* Rewriter::CreateValue(const Graph* graph, std::string_view name) {
  return GraphBuilder(model_).NewValue(graph, UniqueName(name));
}

const Node* Rewriter::Create(const NewNode& spec, const Graph* graph, size_t output_count, uint64_t order, bool waits) {
  GraphBuilder builder(model_);
  // After what it reads, wherever the values it computes stood.
  for (const Value* value : spec.inputs) {
    if (value != nullptr && value->producer != nullptr && value->producer->graph == graph) {
      order = std::max(order, value->producer->order);
    }
  }
  Node* node = builder.NewNode(graph, spec.inputs.size(), output_count, 0);
  Note([this, node, graph] {
    for (size_t i = 0; i < node->input_count; ++i) GraphBuilder(model_).SetInput(node, i, nullptr);
    node->dead = true;
    GraphKey::Mutable(graph)->nodes_.pop_back();
  });
  node->op_type = model_->names().InternCopy(spec.op_type);
  node->domain = model_->names().InternCopy(spec.domain);
  if (!spec.name.empty()) {
    ReadNames();
    node->name = model_->names().InternCopy(spec.name);
    if (!spec.keep_name || repeated_.contains(node->name)) node->name = UniqueName(spec.name);
  }
  node->order = order;
  node->is_new = true;
  node->dead = waits;
  std::string attributes = EncodeAttributes(*model_, spec.attributes);
  std::string_view kept = model_->arena().Copy(std::string_view(attributes));
  node->encoded.data = reinterpret_cast<const uint8_t*>(kept.data());
  node->encoded.file = {-1, static_cast<int64_t>(kept.size())};
  for (size_t i = 0; i < spec.inputs.size(); ++i) {
    builder.SetInput(node, i, spec.inputs[i]);
    KeepSeen(spec.inputs[i], graph);
    if (spec.inputs[i] == nullptr || waits) continue;
    Revive(spec.inputs[i]->producer);
    KeepBefore(spec.inputs[i], node);
  }
  MarkChanged(graph);
  return node;
}

const Node* Rewriter::Insert(const NewNode& spec, size_t output_count, const Graph* graph, std::string_view value_name,
                             const Node* after) {
  uint64_t order = 0;
  if (after != nullptr) {
    uint64_t& last = LastPlace(*after);
    if ((last + 1) % (uint64_t{1} << kOrderBits) != 0) ++last;
    order = last;
  }
  // Ties are broken by id, so the node sorts after producers of the same order.
  const Node* node = Create(spec, graph, output_count, order);
  GraphBuilder builder(model_);
  for (size_t i = 0; i < output_count; ++i) {
    builder.SetOutput(node, i, CreateValue(graph, value_name.empty() ? spec.op_type : value_name));
  }
  return node;
}

uint64_t& Rewriter::LastPlace(const Node& node) {
  const std::pair gap(node.graph, node.order >> kOrderBits << kOrderBits);
  uint64_t& last = last_place_.try_emplace(gap, node.order).first->second;
  last = std::max(last, node.order);
  Note([this, gap, before = last] { last_place_[gap] = before; });
  return last;
}

void Rewriter::SetProducer(const Value* value, const Node* producer, uint32_t output_index) {
  Assign(&value->producer, producer);
  Assign(&value->output_index, output_index);
}

// Readers of what `node` computes, and what reads their results, are moved to a place after it where they stood before
// it: a new node may stand where the last of the nodes stood that it replaces. Only the part of the graph between the
// two places is looked at (Pearce and Kelly, A Dynamic Topological Sort Algorithm for Directed Acyclic Graphs, 2006).
void Rewriter::KeepOrder(const Node* node) {
  bool right = true;
  ForEachReader(*node, [&](const Node* reader) { right = right && StandsBefore(*node, *reader); });
  if (right) return;
  uint64_t& last = LastPlace(*node);
  std::vector<const Node*> moved;
  absl::flat_hash_set<const Node*> seen;
  auto visit = [&](const Node* reader) {
    if (reader != node && reader->order <= last && seen.insert(reader).second) moved.push_back(reader);
  };
  ForEachReader(*node, visit);
  for (size_t i = 0; i < moved.size(); ++i) ForEachReader(*moved[i], visit);
  SortInOrder(&moved);
  for (const Node* reader : moved) {
    if (!reader->is_new) Assign(&node->graph->reordered_, true);
    Assign(&reader->order, ++last);
  }
}

void Rewriter::KillIfUnused(const Node* first) {
  // An explicit stack: chains of dead nodes can be as long as the model. The nodes of the bodies of a dead
  // node die whatever reads them.
  std::vector<std::pair<const Node*, bool>> stack = {{first, false}};
  while (!stack.empty()) {
    const auto [node, forced] = stack.back();
    stack.pop_back();
    if (node == nullptr || node->dead) continue;
    bool used = false;
    for (const Value* value : node->outputs()) {
      if (value == nullptr || value->producer != node) continue;
      if (value->is_graph_output || !LiveUses(*value).empty()) used = true;
    }
    if (used && !forced) continue;
    Assign(&node->dead, true);
    for (const Use& use : node->inputs()) {
      if (use.value != nullptr) stack.push_back({use.value->producer, false});
    }
    if (node->subgraph_count == 0) continue;
    std::vector<const Node*> with_it;
    // Values that a body captures are uses of the outer value by nodes of the body.
    for (const Graph* body : node->subgraphs()) {
      if (body == nullptr) continue;
      Assign(&body->changed_, true);
      for (const Node* inner : body->nodes_) {
        if (inner->dead) continue;  // replaced inside the body before
        with_it.push_back(inner);
        stack.push_back({inner, true});
      }
    }
    Note([this, node = node, before = died_with_[node]] { died_with_[node] = before; });
    died_with_[node] = std::move(with_it);
  }
}

void Rewriter::Revive(const Node* first) {
  std::vector<const Node*> stack = {first};
  while (!stack.empty()) {
    const Node* node = stack.back();
    stack.pop_back();
    if (node == nullptr || !node->dead) continue;
    Assign(&node->dead, false);
    PartNames(node);
    for (const Use& use : node->inputs()) {
      if (use.value == nullptr || use.value->producer == nullptr) continue;
      stack.push_back(use.value->producer);
      KeepBefore(use.value, node);
    }
    if (node->subgraph_count == 0) continue;
    const auto with_it = died_with_.find(node);
    if (with_it != died_with_.end()) stack.insert(stack.end(), with_it->second.begin(), with_it->second.end());
  }
}

// Moves `reader`, or the node around the body that it is in, after what computes `value`, where it stands before.
void Rewriter::KeepBefore(const Value* value, const Node* reader) {
  const Node* const producer = value->producer;
  if (producer == nullptr) return;
  while (reader != nullptr && reader->graph != producer->graph) reader = reader->graph->owner();
  if (reader != nullptr && reader != producer && !StandsBefore(*producer, *reader)) KeepOrder(producer);
}

// Notes that `node` has the name of some that it replaced, and gives it another one where such a node is still alive.
void Rewriter::ShareName(const Node* node, absl::Span<const Node* const> replaced) {
  if (node->name == NameId::kEmpty) return;
  std::vector<const Node*> sharing;
  for (const Node* producer : replaced) {
    if (producer->name == node->name) sharing.push_back(producer);
  }
  if (sharing.empty()) return;
  if (std::any_of(sharing.begin(), sharing.end(), [](const Node* other) { return !other->dead; })) {
    // Another of its outputs is still needed: then both stay, and the name is taken.
    Assign(&node->name, UniqueName(NodeName(*node)));
    return;
  }
  std::vector<const Node*>& all = sharing_[node->name];
  Note([this, name = node->name, before = all.size()] { sharing_[name].resize(before); });
  all.insert(all.end(), sharing.begin(), sharing.end());
  all.push_back(node);
}

// A node that is alive again may have the name of one that took it over: one that was made gets another name.
void Rewriter::PartNames(const Node* revived) {
  const auto found = sharing_.find(revived->name);
  if (found == sharing_.end()) return;
  for (const Node* other : found->second) {
    if (other == revived || other->dead || other->name != revived->name) continue;
    const Node* made = revived->is_new ? revived : other;
    if (made->is_new) Assign(&made->name, UniqueName(NodeName(*made)));
    if (made == revived) return;
  }
}

const Node* Rewriter::ReplaceValue(const Value* value, const NewNode& spec) {
  const TakenOutput taken = {0, value};
  return Replace(absl::MakeConstSpan(&taken, 1), 1, spec);
}

const Node* Rewriter::ReplaceNode(const Node& old, const NewNode& spec) {
  std::vector<TakenOutput> taken;
  for (size_t i = 0; i < old.output_count; ++i) {
    if (old.output(i) != nullptr && old.output(i)->producer == &old) taken.push_back({i, old.output(i)});
  }
  return Replace(taken, old.output_count, spec, &old);  // a Split of which nobody asks for a part has no output with a name
}

const Node* Rewriter::Replace(absl::Span<const TakenOutput> taken, size_t output_count, const NewNode& spec) {
  const Node* last = nullptr;
  for (const auto& [index, value] : taken) {
    if (value->producer != nullptr && (last == nullptr || value->producer->order >= last->order)) last = value->producer;
  }
  return Replace(taken, output_count, spec, last);
}

const Node* Rewriter::Replace(absl::Span<const TakenOutput> taken, size_t output_count, const NewNode& spec, const Node* last) {
  const Graph* const graph = last->graph;
  const std::string base = taken.empty() ? "" : fmt::format("{}_", ValueName(*taken[0].value));
  const Node* node = Create(spec, graph, output_count, last->order);
  if (undo_.size() <= node->id) undo_.resize(node->id + 1);
  Note([this, node] { undo_[node->id].clear(); });
  GraphBuilder builder(model_);
  std::vector<const Node*> old(taken.empty() ? 1 : 0, last);
  Note([this, before = replaced_.size()] { replaced_.resize(before); });
  for (const auto& [index, value] : taken) {
    undo_[node->id].push_back({value, value->producer, value->output_index});
    old.push_back(value->producer);
    *GraphKey::Mutable(&node->outputs_begin[index]) = value;
    SetProducer(value, node, static_cast<uint32_t>(index));
    replaced_.push_back(value);
  }
  for (size_t i = 0; i < output_count; ++i) {
    if (node->outputs_begin[i] != nullptr) continue;
    builder.SetOutput(node, i, CreateValue(graph, base + spec.op_type));
  }
  for (const Node* producer : old) KillIfUnused(producer);
  ShareName(node, old);
  KeepOrder(node);
  return node;
}

const Node* Rewriter::ReplaceMade(const Node& old, const NewNode& spec) {
  const Node* node = ReplaceNode(old, spec);
  std::vector<Undo> undo = undo_[old.id];
  std::swap(undo, undo_[node->id]);
  Note([this, id = node->id, undo = std::move(undo)] { undo_[id] = undo; });
  return node;
}

const Node* Rewriter::ReplaceWaiting(const Node& old, const NewNode& spec) {
  const Node* node = Create(spec, old.graph, old.output_count, old.order, true);
  for (size_t i = 0; i < old.output_count; ++i) {
    const Value* value = old.output(i);
    if (value == nullptr) continue;
    *GraphKey::Mutable(&node->outputs_begin[i]) = value;
    if (value->producer == &old) {
      SetProducer(value, node, static_cast<uint32_t>(i));
    } else {
      BringBackInstead(value, &old, node);
    }
  }
  if (const auto body = died_with_.find(old.graph->owner()); body != died_with_.end()) {
    Note([this, around = old.graph->owner(), before = body->second] { died_with_[around] = before; });
    std::replace(body->second.begin(), body->second.end(), &old, node);
  }
  const Node* const replaced[] = {&old};
  ShareName(node, replaced);
  return node;
}

void Rewriter::BringBackInstead(const Value* value, const Node* before, const Node* after) {
  for (const Node* producer = value->producer; producer != nullptr && producer->id < undo_.size();) {
    std::vector<Undo>& undo = undo_[producer->id];
    const auto entry = std::find_if(undo.begin(), undo.end(), [&](const Undo& one) { return one.value == value; });
    if (entry == undo.end()) return;
    if (entry->producer == before) {
      Note(
          [this, id = producer->id, at = entry - undo.begin(), before] { undo_[id][static_cast<size_t>(at)].producer = before; });
      entry->producer = after;
      return;
    }
    producer = entry->producer;
  }
}

void Rewriter::Restore(const Node* replacement) {
  if (replacement->id >= undo_.size()) return;
  std::vector<Undo> undo = std::move(undo_[replacement->id]);
  undo_[replacement->id].clear();
  for (const Undo& entry : undo) SetProducer(entry.value, entry.producer, entry.output_index);
  KillIfUnused(replacement);
  for (const Undo& entry : undo) {
    Revive(entry.producer);
    KeepOrder(entry.producer);
  }
  Note([this, id = replacement->id, undo = std::move(undo)] { undo_[id] = undo; });
  MarkChanged(replacement->graph);
}

void Rewriter::SetInput(const Node* node, size_t index, const Value* value) {
  const Value* old = node->input(index);
  if (old == value) return;
  Use* const use = GraphKey::Mutable(&node->inputs_begin[index]);
  const Use** const place = use->previous;
  GraphBuilder(model_).SetInput(node, index, value);
  Note([this, node, index, old, use, place] {
    GraphBuilder(model_).SetInput(node, index, nullptr);
    if (old == nullptr) return;
    *use = {old, node, *place, place, use->index};  // where it stood among the uses
    if (use->next != nullptr) GraphKey::Mutable(use->next)->previous = &use->next;
    *place = use;
  });
  if (!node->is_new) Assign(&node->rewired, true);
  KeepSeen(value, node->graph);
  if (value != nullptr && value->producer != nullptr) {
    Revive(value->producer);
    KeepOrder(value->producer);
  }
  if (old != nullptr) KillIfUnused(old->producer);
  MarkChanged(node->graph);
}

const Value* Rewriter::Constant(const Graph* graph, DataType type, absl::Span<const int64_t> dims, std::string_view bytes,
                                std::string_view name) {
  return KeptConstant(graph, type, dims, fmt::format(":{}", bytes), [bytes] { return bytes; }, name);
}

const Value* Rewriter::Constant(const Graph* graph, DataType type, absl::Span<const int64_t> dims, std::string_view words,
                                absl::FunctionRef<std::string()> bytes, std::string_view name) {
  std::string made;
  return KeptConstant(graph, type, dims, fmt::format("={}", words), [&]() -> std::string_view { return made = bytes(); }, name);
}

// `key` tells constants of one graph, type and dims apart.
const Value* Rewriter::KeptConstant(const Graph* graph, DataType type, absl::Span<const int64_t> dims, std::string key,
                                    absl::FunctionRef<std::string_view()> bytes, std::string_view name) {
  key = fmt::format("{}:{}:{}{}", static_cast<const void*>(graph), static_cast<int>(type), fmt::join(dims, ","), key);
  auto [entry, inserted] = constants_.try_emplace(key, nullptr);
  if (!inserted) return entry->second;
  Note([this, key = std::move(key)] { constants_.erase(key); });
  Tensor* tensor = model_->arena().New<Tensor>();
  tensor->type = type;
  tensor->storage = Storage::kMemory;
  tensor->dims = model_->arena().Copy(dims);
  tensor->memory = model_->arena().Copy(bytes());
  return entry->second = AddTensor(graph, tensor, name);
}

void Rewriter::AddInitializer(const Graph* graph, const Value* value, const Tensor* tensor) {
  GraphBuilder(model_).AddInitializer(graph, value, tensor);
  made_constants_.push_back(value);
  Note([this, graph] {
    GraphKey::Mutable(graph)->initializers_.pop_back();
    made_constants_.pop_back();
  });
  MarkChanged(graph);
}

absl::StatusOr<const Value*> Rewriter::Dequantized(const Graph* graph, DataType type, absl::Span<const int64_t> dims,
                                                   const Dequantization& how, std::string_view name) {
  std::string key = fmt::format("{}:{}", static_cast<const void*>(graph), DescribeDequantization(type, dims, how));
  if (const auto known = constants_.find(key); known != constants_.end()) return known->second;
  ASSIGN_OR_RETURN(Tensor * tensor, DequantizedTensor(model_, type, dims, how, name));
  if (IsSmall(*tensor)) {  // computed now, so that it can be looked at
    ASSIGN_OR_RETURN(const std::string bytes, ReadBytes(*model_, *tensor, kSmallBytes));
    return Constant(graph, type, dims, bytes, name);
  }
  Note([this, key] { constants_.erase(key); });
  return constants_.emplace(std::move(key), AddTensor(graph, tensor, name)).first->second;
}

const Value* Rewriter::AddTensor(const Graph* graph, Tensor* tensor, std::string_view name) {
  const Value* value = CreateValue(graph, name);
  tensor->name = value->name;
  AddInitializer(graph, value, tensor);
  return value;
}

absl::StatusOr<const Value*> Rewriter::Join(absl::Span<const Value* const> constants, int64_t axis, std::string_view name) {
  ASSIGN_OR_RETURN(Tensor * tensor, JoinedTensor(model_, constants, axis));
  return AddTensor(constants[0]->graph, tensor, name);
}

absl::StatusOr<const Value*> Rewriter::Reorder(const Value* constant, int64_t axis, absl::Span<const int64_t> order,
                                               std::string_view name) {
  ASSIGN_OR_RETURN(Tensor * tensor, ReorderedTensor(model_, *constant, axis, order));
  return AddTensor(constant->graph, tensor, name);
}

const Value* Rewriter::NumberConstant(const Graph* graph, DataType type, double value, std::string_view name) {
  const std::string bytes = EncodeNumber(type, value);
  return bytes.empty() ? nullptr : Constant(graph, type, {}, bytes, name);
}

const Value* Rewriter::Int64Constant(const Graph* graph, absl::Span<const int64_t> values, std::string_view name) {
  const int64_t count = static_cast<int64_t>(values.size());
  return Constant(graph, DataType::kInt64, {count},
                  {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(int64_t)}, name);
}

void Rewriter::SetOpsetImport(std::string_view domain, int64_t version) {
  const NameId id = model_->names().InternCopy(domain);
  auto& imports = model_->opset_imports_;
  auto found = std::find_if(imports.begin(), imports.end(), [&](const OpsetImport& import) { return import.domain == id; });
  if (found != imports.end() ? found->version == version : version == 0) return;
  Note([this, before = imports] { model_->opset_imports_ = before; });
  Assign(&model_->opset_imports_changed_, true);
  ++change_count_;
  if (version == 0) {
    if (found != imports.end()) imports.erase(found);
  } else if (found != imports.end()) {
    found->version = version;
  } else {
    imports.push_back({id, version});
  }
}

void Rewriter::SpellDefaultDomain(DefaultDomain spelling) {
  if (model_->default_domain_ == spelling) return;
  Assign(&model_->default_domain_, spelling);
  Assign(&model_->opset_imports_changed_, true);
  for (const auto& graph : model_->graphs()) MarkChanged(graph.get());
}

void Rewriter::Declare(const Value* value, std::string_view type) {
  Assign(&value->declared_type, model_->arena().Copy(type));
  MarkChanged(value->graph);
}

void Rewriter::DropValueInfo() {
  for (const auto& graph : model_->graphs()) {
    if (graph->value_info_dropped_) continue;
    Assign(&graph->value_info_dropped_, true);
    MarkChanged(graph.get());
  }
}

void Rewriter::CopyNotes(const Node& from, const Node* to) {
  const std::string notes = EncodedNotes(from);
  if (notes.empty()) return;
  const std::string_view before(reinterpret_cast<const char*>(to->encoded.data), static_cast<size_t>(to->encoded.file.size));
  const std::string_view all = model_->arena().Copy(std::string_view(fmt::format("{}{}", before, notes)));
  Assign(&to->encoded, {reinterpret_cast<const uint8_t*>(all.data()), {-1, static_cast<int64_t>(all.size())}});
}

void Rewriter::Rename(const Node* node, std::string_view domain, std::string_view op_type) {
  Assign(&node->domain, model_->names().InternCopy(domain));
  Assign(&node->op_type, model_->names().InternCopy(op_type));
  if (!node->is_new) Assign(&node->rewired, true);
  MarkChanged(node->graph);
}

// An output that another node computes now is written without a name. These operators have no output that may be left out
// (onnx/defs), and runtimes read past it: there the output gets a value of its own, which nothing reads.
void Rewriter::NameLostOutputs(const Node* node) {
  const bool needs_all = IsOp(*node, "Split") || IsOp(*node, "TopK");
  for (size_t i = 0; needs_all && i < node->output_count; ++i) {
    const Value* const value = node->output(i);
    if (value == nullptr || value->producer == node) continue;
    GraphBuilder(model_).SetOutput(node, i, CreateValue(node->graph, ValueName(*value)));
    Assign(&node->rewired, true);
  }
}

void Rewriter::DropUnread(uint32_t made_from) {
  for (const auto& graph : model_->graphs_) {
    if (!graph->changed_) continue;
    for (size_t i = graph->nodes_.size(); i-- > 0;) {
      const Node* const node = graph->nodes_[i];
      if (!node->is_new || node->dead) continue;
      const bool helps = std::all_of(node->outputs().begin(), node->outputs().end(),
                                     [made_from](const Value* value) { return value == nullptr || value->id >= made_from; });
      if (helps) KillIfUnused(node);
    }
  }
}

void Rewriter::DropIfUnread(const Node* node) {
  if (node->is_new) KillIfUnused(node);
}

void Rewriter::Sweep(uint32_t made_from) {
  GraphBuilder builder(model_);
  DropUnread(made_from);
  for (const auto& graph : model_->graphs_) {
    if (!graph->changed_) continue;
    ++edits_;
    auto& nodes = graph->nodes_;
    std::vector<const Value*> loose;  // values that lost a use here
    for (const Node* node : nodes) {
      if (!node->dead) continue;
      for (size_t i = 0; i < node->input_count; ++i) {
        if (const Value* value = node->inputs_begin[i].value) {
          if (value->initializer != nullptr) loose.push_back(value);
          builder.SetInput(node, i, nullptr);
        }
      }
    }
    std::erase_if(nodes, [](const Node* node) { return node->dead; });
    for (const Node* node : nodes) NameLostOutputs(node);
    SortInOrder(&nodes);
    absl::flat_hash_set<const Value*> unused;
    for (const Value* value : made_constants_) {
      if (value->graph == graph.get()) loose.push_back(value);
    }
    for (const Value* value : loose) {
      if (value->uses == nullptr && !value->is_graph_output && !value->is_graph_input) unused.insert(value);
    }
    if (unused.empty()) continue;
    // A removed one must not be found again.
    absl::erase_if(constants_, [&](const auto& entry) { return unused.contains(entry.second); });
    for (const auto& owner : model_->graphs_) {  // a body may have used an outer initializer
      const size_t gone = std::erase_if(owner->initializers_, [&](const Value* value) { return unused.contains(value); });
      if (gone > 0) MarkChanged(owner.get());
    }
  }
  made_constants_.clear();
  journal_.clear();
  undo_.clear();
  died_with_.clear();
  sharing_.clear();
}

}  // namespace ascend_fuse
