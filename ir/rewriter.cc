#include "ir/rewriter.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <queue>

#include "fmt/format.h"
#include "ir/onnx/encode.h"

namespace ascend_fuse {

Rewriter::Rewriter(Model* model) : model_(model) {}

void Rewriter::MarkChanged(Graph* graph) {
  ++change_count_;
  for (; graph != nullptr; graph = graph->owner_ != nullptr ? graph->owner_->graph : nullptr) {
    if (graph->changed_) return;
    graph->changed_ = true;
  }
}

NameId Rewriter::UniqueName(std::string_view base) {
  if (taken_.empty()) {
    for (const auto& graph : model_->graphs()) {
      for (const Value* value : graph->inputs()) taken_.insert(value->name);
      for (const Value* value : graph->initializers()) taken_.insert(value->name);
      for (const Node* node : graph->nodes()) {
        taken_.insert(node->name);
        for (const Value* value : node->outputs()) {
          if (value != nullptr) taken_.insert(value->name);
        }
      }
    }
  }
  NameId id = model_->names().InternCopy(base);
  if (id != NameId::kEmpty && taken_.insert(id).second) return id;
  uint32_t& suffix = next_suffix_[std::string(base)];
  do {
    id = model_->names().InternCopy(fmt::format("{}_{}", base, ++suffix));
  } while (!taken_.insert(id).second);
  return id;
}

Value* Rewriter::CreateValue(Graph* graph, std::string_view name) {
  return GraphBuilder(model_).NewValue(graph, UniqueName(name));
}

Node* Rewriter::Create(const NewNode& spec, Graph* graph, size_t output_count, uint64_t order) {
  GraphBuilder builder(model_);
  Node* node = builder.NewNode(graph, spec.inputs.size(), output_count, 0);
  node->op_type = model_->names().InternCopy(spec.op_type);
  node->domain = model_->names().InternCopy(spec.domain);
  if (!spec.name.empty()) {
    node->name = spec.keep_name ? model_->names().InternCopy(spec.name) : UniqueName(spec.name);
  }
  node->order = order;
  node->is_new = true;
  std::string attributes = EncodeAttributes(*model_, spec.attributes);
  std::string_view kept = model_->arena().Copy(std::string_view(attributes));
  node->encoded.data = reinterpret_cast<const uint8_t*>(kept.data());
  node->encoded.file = {-1, static_cast<int64_t>(kept.size())};
  for (size_t i = 0; i < spec.inputs.size(); ++i) {
    builder.SetInput(node, i, spec.inputs[i]);
    if (spec.inputs[i] != nullptr) Revive(spec.inputs[i]->producer);
  }
  MarkChanged(graph);
  return node;
}

Node* Rewriter::Insert(const NewNode& spec, size_t output_count, Graph* graph, std::string_view value_name) {
  // Ties are broken by id, so the node sorts behind producers of the same order.
  uint64_t order = 0;
  for (const Value* value : spec.inputs) {
    if (value != nullptr && value->producer != nullptr && value->graph == graph) {
      order = std::max(order, value->producer->order);
    }
  }
  Node* node = Create(spec, graph, output_count, order);
  GraphBuilder builder(model_);
  for (size_t i = 0; i < output_count; ++i) {
    builder.SetOutput(node, i, CreateValue(graph, value_name.empty() ? spec.op_type : value_name));
  }
  return node;
}

void Rewriter::Discard(Node* node) { KillIfUnused(node); }

void Rewriter::KillIfUnused(Node* first) {
  // An explicit stack: chains of dead nodes can be as long as the model. The nodes of the bodies of a dead
  // node die whatever reads them.
  std::vector<std::pair<Node*, bool>> stack = {{first, false}};
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
    node->dead = true;
    for (const Use& use : node->inputs()) {
      if (use.value != nullptr) stack.push_back({use.value->producer, false});
    }
    // Values that a body captures are uses of the outer value by nodes of the body.
    for (Graph* body : node->subgraphs()) {
      if (body == nullptr) continue;
      body->changed_ = true;
      for (Node* inner : body->nodes_) stack.push_back({inner, true});
    }
  }
}

void Rewriter::Revive(Node* first) {
  std::vector<Node*> stack = {first};
  while (!stack.empty()) {
    Node* node = stack.back();
    stack.pop_back();
    if (node == nullptr || !node->dead) continue;
    node->dead = false;
    for (const Use& use : node->inputs()) {
      if (use.value != nullptr) stack.push_back(use.value->producer);
    }
    for (Graph* body : node->subgraphs()) {
      if (body == nullptr) continue;
      for (Node* inner : body->nodes_) {
        // Not those that were replaced inside the body before.
        for (const Value* value : inner->outputs()) {
          if (value != nullptr && value->producer == inner) {
            stack.push_back(inner);
            break;
          }
        }
      }
    }
  }
}

Node* Rewriter::Replace(absl::Span<Value* const> outputs, const NewNode& spec) {
  Graph* graph = nullptr;
  uint64_t order = 0;
  std::string_view base;
  for (const Value* value : outputs) {
    if (value == nullptr) continue;
    if (value->producer != nullptr && value->producer->order >= order) {
      order = value->producer->order;
      graph = value->graph;
    }
    if (base.empty()) base = ValueName(*value);
  }
  const std::string base_name(base);
  Node* node = Create(spec, graph, outputs.size(), order);
  if (undo_.size() <= node->id) undo_.resize(node->id + 1);
  GraphBuilder builder(model_);
  std::vector<Node*> old;
  for (size_t i = 0; i < outputs.size(); ++i) {
    Value* value = outputs[i];
    if (value == nullptr) {
      builder.SetOutput(node, i, CreateValue(graph, fmt::format("{}_{}", base_name, spec.op_type)));
      continue;
    }
    undo_[node->id].push_back({value, value->producer, value->output_index});
    old.push_back(value->producer);
    builder.SetOutput(node, i, value);
  }
  for (Node* producer : old) KillIfUnused(producer);
  return node;
}

void Rewriter::Restore(Node* replacement) {
  if (replacement->id >= undo_.size()) return;
  std::vector<Undo> undo = std::move(undo_[replacement->id]);
  undo_[replacement->id].clear();
  for (const Undo& entry : undo) {
    entry.value->producer = entry.producer;
    entry.value->output_index = entry.output_index;
    Revive(entry.producer);
  }
  KillIfUnused(replacement);
  MarkChanged(replacement->graph);
}

void Rewriter::SetInput(Node* node, size_t index, Value* value) {
  Value* old = node->input(index);
  if (old == value) return;
  GraphBuilder(model_).SetInput(node, index, value);
  if (!node->is_new) node->rewired = true;
  if (value != nullptr) Revive(value->producer);
  if (old != nullptr) KillIfUnused(old->producer);
  MarkChanged(node->graph);
}

Value* Rewriter::Constant(Graph* graph, DataType type, absl::Span<const int64_t> dims, std::string_view bytes,
                          std::string_view name) {
  std::string key =
      fmt::format("{}:{}:{}:", static_cast<const void*>(graph), static_cast<int>(type), fmt::join(dims, ","));
  key.append(bytes.data(), bytes.size());
  auto [entry, inserted] = constants_.try_emplace(std::move(key), nullptr);
  if (!inserted) return entry->second;
  Tensor* tensor = model_->arena().New<Tensor>();
  tensor->type = type;
  tensor->storage = Storage::kMemory;
  tensor->dims = model_->arena().Copy(dims);
  tensor->memory = model_->arena().Copy(bytes);
  Value* value = CreateValue(graph, name);
  tensor->name = value->name;
  GraphBuilder(model_).AddInitializer(graph, value, tensor);
  entry->second = value;
  MarkChanged(graph);
  return value;
}

absl::StatusOr<Value*> Rewriter::Join(absl::Span<Value* const> constants, int64_t axis, std::string_view name) {
  auto no = [](const Value* value, std::string_view why) {
    return absl::InvalidArgumentError(fmt::format("{} cannot be part of a merged constant: {}", ValueName(*value), why));
  };
  std::vector<int64_t> dims;
  int64_t along = 0;
  std::vector<const Tensor*> parts;
  Arena& arena = model_->arena();
  for (const Value* value : constants) {
    if (!value->IsConstant()) return no(value, "it is not an initializer");
    const Tensor* tensor = value->initializer;
    if (axis < 0 || axis >= static_cast<int64_t>(tensor->dims.size())) return no(value, "it has too few dims");
    std::vector<int64_t> own(tensor->dims.begin(), tensor->dims.end());
    along += own[static_cast<size_t>(axis)];
    own[static_cast<size_t>(axis)] = 0;
    if (parts.empty()) dims = own;
    if (dims != own || tensor->type != constants[0]->initializer->type) return no(value, "type or dims differ");
    const int64_t count = tensor->ElementCount();
    const int bits = BitWidth(tensor->type);
    constexpr int64_t kMost = std::numeric_limits<int64_t>::max() / 64;
    if (count <= 0 || count > kMost || bits == 0 || bits % 8 != 0) return no(value, "it has no whole bytes");
    const int64_t bytes = count * bits / 8;
    if (tensor->storage == Storage::kTyped) {
      // Typed fields are for small tensors; packed here once.
      constexpr int64_t kLargestTyped = int64_t{1} << 24;
      absl::StatusOr<std::string> packed = ReadBytes(*model_, *tensor, kLargestTyped);
      if (!packed.ok()) return packed.status();
      Tensor* copy = arena.New<Tensor>();
      copy->type = tensor->type;
      copy->storage = Storage::kMemory;
      copy->dims = tensor->dims;
      copy->memory = arena.Copy(std::string_view(*packed));
      tensor = copy;
    }
    const bool complete = tensor->storage == Storage::kMemory   ? static_cast<int64_t>(tensor->memory.size()) == bytes
                          : tensor->storage == Storage::kFile     ? tensor->file.size == bytes
                          : tensor->storage == Storage::kExternal ? tensor->file.size < 0 || tensor->file.size == bytes
                                                                  : false;
    if (!complete) return no(value, "its elements are not all there");
    parts.push_back(tensor);
  }
  if (parts.empty()) return absl::InvalidArgumentError("nothing to merge");
  Tensor* tensor = arena.New<Tensor>();
  tensor->type = parts[0]->type;
  tensor->storage = Storage::kJoined;
  tensor->parts = arena.Copy(absl::Span<const Tensor* const>(parts));
  tensor->rows = 1;
  for (int64_t i = 0; i < axis; ++i) tensor->rows *= dims[static_cast<size_t>(i)];
  dims[static_cast<size_t>(axis)] = along;
  tensor->dims = arena.Copy(absl::Span<const int64_t>(dims));
  Graph* graph = constants[0]->graph;
  Value* value = CreateValue(graph, name);
  tensor->name = value->name;
  GraphBuilder(model_).AddInitializer(graph, value, tensor);
  MarkChanged(graph);
  return value;
}

Value* Rewriter::NumberConstant(Graph* graph, DataType type, double value, std::string_view name) {
  const std::string bytes = EncodeNumber(type, value);
  return bytes.empty() ? nullptr : Constant(graph, type, {}, bytes, name);
}

Value* Rewriter::Int64Constant(Graph* graph, absl::Span<const int64_t> values, std::string_view name) {
  const int64_t count = static_cast<int64_t>(values.size());
  return Constant(graph, DataType::kInt64, {count},
                  {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(int64_t)}, name);
}

void Rewriter::SetOpsetImport(std::string_view domain, int64_t version) {
  const NameId id = model_->names().InternCopy(domain);
  auto& imports = model_->opset_imports_;
  auto found = std::find_if(imports.begin(), imports.end(),
                            [&](const OpsetImport& import) { return import.domain == id; });
  if (found != imports.end() && found->version == version) return;
  model_->opset_imports_changed_ = true;
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
  model_->default_domain_ = spelling;
  model_->opset_imports_changed_ = true;
  for (const auto& graph : model_->graphs()) MarkChanged(graph.get());
}

void Rewriter::Rename(Node* node, std::string_view domain, std::string_view op_type) {
  node->domain = model_->names().InternCopy(domain);
  node->op_type = model_->names().InternCopy(op_type);
  if (!node->is_new) node->rewired = true;
  MarkChanged(node->graph);
}

namespace {

// Sorts by order; where a rewrite has moved a producer behind a reader, a stable topological sort mends it
// and the nodes get new orders. True if it had to.
bool SortNodes(std::vector<Node*>* nodes) {
  std::sort(nodes->begin(), nodes->end(), [](const Node* a, const Node* b) {
    return a->order != b->order ? a->order < b->order : a->id < b->id;
  });
  absl::flat_hash_map<const Node*, uint32_t> place;
  place.reserve(nodes->size());
  for (size_t i = 0; i < nodes->size(); ++i) place[(*nodes)[i]] = static_cast<uint32_t>(i);
  // What a node waits for: producers of its inputs, and of what its bodies capture, in the same graph.
  std::vector<std::vector<uint32_t>> readers(nodes->size());
  std::vector<uint32_t> waiting(nodes->size(), 0);
  bool sorted = true;
  for (size_t i = 0; i < nodes->size(); ++i) {
    std::vector<const Node*> stack = {(*nodes)[i]};
    while (!stack.empty()) {
      const Node* node = stack.back();
      stack.pop_back();
      for (const Use& use : node->inputs()) {
        if (use.value == nullptr || use.value->producer == nullptr) continue;
        auto found = place.find(use.value->producer);
        if (found == place.end() || found->second == i) continue;
        readers[found->second].push_back(static_cast<uint32_t>(i));
        ++waiting[i];
        sorted = sorted && found->second < i;
      }
      for (const Graph* body : node->subgraphs()) {
        for (const Node* inner : body->nodes()) stack.push_back(inner);
      }
    }
  }
  if (sorted) return false;
  std::priority_queue<uint32_t, std::vector<uint32_t>, std::greater<uint32_t>> ready;
  for (size_t i = 0; i < nodes->size(); ++i) {
    if (waiting[i] == 0) ready.push(static_cast<uint32_t>(i));
  }
  std::vector<Node*> result;
  result.reserve(nodes->size());
  while (!ready.empty()) {
    const uint32_t next = ready.top();
    ready.pop();
    result.push_back((*nodes)[next]);
    for (uint32_t reader : readers[next]) {
      if (--waiting[reader] == 0) ready.push(reader);
    }
  }
  if (result.size() != nodes->size()) return false;  // a cycle: Verify says so
  *nodes = std::move(result);
  for (size_t i = 0; i < nodes->size(); ++i) (*nodes)[i]->order = static_cast<uint64_t>(i + 1) << 20;
  return true;
}

}  // namespace

void Rewriter::Sweep() {
  GraphBuilder builder(model_);
  for (const auto& graph : model_->graphs_) {
    if (!graph->changed_) continue;
    auto& nodes = graph->nodes_;
    std::vector<Value*> loose;  // values that lost a use here
    for (Node* node : nodes) {
      if (!node->dead) continue;
      for (size_t i = 0; i < node->input_count; ++i) {
        if (Value* value = node->inputs_begin[i].value) {
          if (value->initializer != nullptr) loose.push_back(value);
          builder.SetInput(node, i, nullptr);
        }
      }
    }
    nodes.erase(std::remove_if(nodes.begin(), nodes.end(), [](const Node* node) { return node->dead; }),
                nodes.end());
    if (SortNodes(&nodes)) graph->reordered_ = true;
    absl::flat_hash_set<Value*> unused;
    for (Value* value : loose) {
      if (value->uses == nullptr && !value->is_graph_output && !value->is_graph_input) unused.insert(value);
    }
    if (unused.empty()) continue;
    for (auto entry = constants_.begin();
         entry != constants_.end();) {  // a removed one must not be found again
      auto next = std::next(entry);
      if (unused.contains(entry->second)) constants_.erase(entry);
      entry = next;
    }
    for (const auto& owner : model_->graphs_) {  // a body may have used an outer initializer
      auto& initializers = owner->initializers_;
      const size_t before = initializers.size();
      initializers.erase(std::remove_if(initializers.begin(), initializers.end(),
                                        [&](Value* value) { return unused.contains(value); }),
                         initializers.end());
      if (initializers.size() != before) MarkChanged(owner.get());
    }
  }
}

}  // namespace ascend_fuse
