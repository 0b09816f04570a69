#include "ir/model.h"

#include <algorithm>

#include "ir/onnx/model_file.h"

namespace ascend_fuse {

Model::Model() = default;
Model::~Model() = default;

int64_t Model::OpsetVersion(NameId domain) const {
  for (const OpsetImport& import : opset_imports_) {
    if (import.domain == domain) return import.version;
  }
  return 0;
}

absl::Span<const int64_t> Model::InternDims(absl::Span<const int64_t> dims) {
  if (dims.empty()) return {};
  if (dims_count_ * 2 >= dims_slots_.size()) {
    std::vector<absl::Span<const int64_t>> old = std::move(dims_slots_);
    dims_slots_.assign(std::max<size_t>(64, old.size() * 2), {});
    dims_count_ = 0;
    for (const auto& entry : old) {
      if (!entry.empty()) *DimsSlot(entry) = entry, ++dims_count_;
    }
  }
  absl::Span<const int64_t>* slot = DimsSlot(dims);
  if (slot->empty()) {
    *slot = arena_.Copy(dims);
    ++dims_count_;
  }
  return *slot;
}

absl::Span<const int64_t>* Model::DimsSlot(absl::Span<const int64_t> dims) {
  uint64_t hash = dims.size();
  for (int64_t dim : dims) hash = (hash ^ static_cast<uint64_t>(dim)) * 0x9E3779B97F4A7C15ull, hash ^= hash >> 29;
  const size_t mask = dims_slots_.size() - 1;
  for (size_t at = hash & mask;; at = (at + 1) & mask) {
    if (dims_slots_[at].empty() || dims_slots_[at] == dims) return &dims_slots_[at];
  }
}

Graph* GraphBuilder::NewGraph(const Node* owner, NameId name, const EncodedSpan& encoded) {
  model_->graphs_.push_back(std::make_unique<Graph>(model_, owner));
  Graph* graph = model_->graphs_.back().get();
  graph->name_ = name;
  graph->encoded_ = encoded;
  if (owner == nullptr) model_->graph_ = graph;
  return graph;
}

Value* GraphBuilder::NewValue(const Graph* graph, NameId name) {
  Value* value = model_->arena_.New<Value>();
  value->name = name;
  value->graph = graph;
  value->id = model_->value_count_++;
  return value;
}

Node* GraphBuilder::NewNode(const Graph* graph, size_t inputs, size_t outputs, size_t subgraphs) {
  Node* node = model_->arena_.New<Node>();
  node->graph = graph;
  node->id = model_->node_count_++;
  Use* const uses = model_->arena_.NewArray<Use>(inputs);
  node->inputs_begin = uses;
  node->input_count = static_cast<uint32_t>(inputs);
  for (size_t i = 0; i < inputs; ++i) {
    uses[i].user = node;
    uses[i].index = static_cast<uint32_t>(i);
  }
  node->outputs_begin = model_->arena_.NewArray<const Value*>(outputs);
  node->output_count = static_cast<uint32_t>(outputs);
  node->subgraphs_begin = model_->arena_.NewArray<const Graph*>(subgraphs);
  node->subgraph_count = static_cast<uint32_t>(subgraphs);
  // Room between two original nodes for those that a Rewriter inserts (see Rewriter::Insert).
  node->order = static_cast<uint64_t>(graph->nodes_.size() + 1) << 20;
  GraphKey::Mutable(graph)->nodes_.push_back(node);
  return node;
}

void GraphBuilder::SetInput(const Node* node, size_t index, const Value* value) {
  Use* use = GraphKey::Mutable(&node->inputs_begin[index]);
  if (use->value != nullptr) {  // unlink
    *use->previous = use->next;
    if (use->next != nullptr) GraphKey::Mutable(use->next)->previous = use->previous;
  }
  use->value = value;
  use->next = nullptr;
  use->previous = nullptr;
  if (value == nullptr) return;
  use->next = value->uses;
  if (use->next != nullptr) GraphKey::Mutable(use->next)->previous = &use->next;
  const Use*& first = GraphKey::Mutable(value)->uses;
  use->previous = &first;
  first = use;
}

void GraphBuilder::SetOutput(const Node* node, size_t index, const Value* value) {
  *GraphKey::Mutable(&node->outputs_begin[index]) = value;
  if (value == nullptr) return;
  GraphKey::Mutable(value)->producer = node;
  GraphKey::Mutable(value)->output_index = static_cast<uint32_t>(index);
}

void GraphBuilder::SetSubgraph(const Node* node, size_t index, const Graph* body) {
  *GraphKey::Mutable(&node->subgraphs_begin[index]) = body;
}

void GraphBuilder::AddInput(const Graph* graph, const Value* value) {
  GraphKey::Mutable(value)->is_graph_input = true;
  GraphKey::Mutable(graph)->inputs_.push_back(value);
}

void GraphBuilder::AddOutput(const Graph* graph, const Value* value) {
  GraphKey::Mutable(value)->is_graph_output = true;
  GraphKey::Mutable(graph)->outputs_.push_back(value);
}

void GraphBuilder::AddInitializer(const Graph* graph, const Value* value, const Tensor* tensor) {
  GraphKey::Mutable(value)->initializer = tensor;
  GraphKey::Mutable(graph)->initializers_.push_back(value);
}

void GraphBuilder::AddValueInfo(const Graph* graph, const Value* value) { GraphKey::Mutable(graph)->declared_.push_back(value); }

void GraphBuilder::SetNodes(const Graph* graph, std::vector<const Node*> nodes, bool sorted) {
  for (size_t i = 0; i < nodes.size(); ++i) GraphKey::Mutable(nodes[i])->order = static_cast<uint64_t>(i + 1) << 20;
  GraphKey::Mutable(graph)->nodes_ = std::move(nodes);
  if (sorted) GraphKey::Mutable(graph)->reordered_ = true;
}

void GraphBuilder::SetGraphName(const Graph* graph, NameId name) { GraphKey::Mutable(graph)->name_ = name; }

void GraphBuilder::SetHeader(int64_t ir_version, std::string_view producer_name, std::string_view producer_version) {
  model_->ir_version_ = ir_version;
  model_->producer_name_ = producer_name;
  model_->producer_version_ = producer_version;
}

void GraphBuilder::AddOpsetImport(OpsetImport import) { model_->opset_imports_.push_back(import); }

void GraphBuilder::AddFunction(const LocalFunction& function) { model_->functions_.push_back(function); }

void GraphBuilder::AddExternalLocation(std::string_view location) {
  auto& known = model_->external_locations_;
  // Almost always the one that was named last.
  if (!known.empty() && known.back() == location) return;
  if (std::find(known.begin(), known.end(), location) == known.end()) known.emplace_back(location);
}

void GraphBuilder::SetSource(std::string path, std::unique_ptr<ModelFile> model_file) {
  model_->path_ = std::move(path);
  model_->model_file_ = std::move(model_file);
}

}  // namespace ascend_fuse
