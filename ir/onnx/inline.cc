#include "ir/onnx/inline.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <utility>

#include "fmt/format.h"
#include "ir/onnx/model_file.h"
#include "ir/schema.h"
#include "proto/onnx.pb.h"

namespace ascend_fuse {
namespace {

// Bodies kept for further calls; more are made again. Each holds a file descriptor.
constexpr size_t kMaxBodies = 128;
// Names are made of those of all calls around; a longer one says no more.
constexpr size_t kMaxScope = 256;
// The newest opset that ir/ops.txtpb knows.
constexpr int64_t kNewestOpset = 24;

int64_t Saturated(int64_t a, int64_t b) {
  int64_t sum;
  return __builtin_add_overflow(a, b, &sum) ? std::numeric_limits<int64_t>::max() : sum;
}

std::string Named(const CallScope& scope, std::string_view name) {
  return fmt::format("{}{}{}{}", scope.path, scope.path.empty() ? "" : "/", scope.prefix, name);
}

void DropDimNames(onnx::TypeProto* type) {
  onnx::TensorShapeProto* shape = nullptr;
  switch (type->value_case()) {
    case onnx::TypeProto::kTensorType:
      if (type->tensor_type().has_shape()) shape = type->mutable_tensor_type()->mutable_shape();
      break;
    case onnx::TypeProto::kSparseTensorType:
      if (type->sparse_tensor_type().has_shape()) shape = type->mutable_sparse_tensor_type()->mutable_shape();
      break;
    case onnx::TypeProto::kSequenceType:
      return DropDimNames(type->mutable_sequence_type()->mutable_elem_type());
    case onnx::TypeProto::kOptionalType:
      return DropDimNames(type->mutable_optional_type()->mutable_elem_type());
    default:
      break;
  }
  if (shape == nullptr) return;
  for (onnx::TensorShapeProto::Dimension& dim : *shape->mutable_dim()) dim.clear_dim_param();
}

// A name of a dim in a function is the function's own: in the model it may stand for another dim.
std::string_view WithoutDimNames(std::string_view declared, Arena* arena) {
  onnx::TypeProto type;
  if (declared.data() == nullptr || !type.ParseFromArray(declared.data(), static_cast<int>(declared.size()))) {
    return {};
  }
  DropDimNames(&type);
  // Not null, also for a type without any field.
  const std::string_view kept = arena->Copy(std::string_view(type.SerializeAsString()));
  static constexpr char kNothing[] = "";
  return kept.data() == nullptr ? std::string_view(kNothing) : kept;
}

// Everything in a node but what a Node keeps in members of its own.
std::string_view CopyFields(const Node& node, Arena* arena) {
  const ModelFile* model_file = node.graph->model().model_file();
  wire::Cursor cursor = model_file->Open(node.encoded);
  wire::Field field;
  std::string bytes;
  while (cursor.Next(&field)) {
    switch (field.number) {
      case onnx::NodeProto::kInputFieldNumber:
      case onnx::NodeProto::kOutputFieldNumber:
      case onnx::NodeProto::kNameFieldNumber:
      case onnx::NodeProto::kOpTypeFieldNumber:
      case onnx::NodeProto::kDomainFieldNumber:
        break;
      default: {
        const size_t at = bytes.size();
        bytes.resize(at + static_cast<size_t>(cursor.position() - field.start));
        // A body is a file in memory, which nobody shortens.
        (void)model_file->Copy(field.start, cursor.position() - field.start, bytes.data() + at);
        break;
      }
    }
  }
  return arena->Copy(std::string_view(bytes));
}

// By id of a node: whether the outputs that are asked for, which are not nullptr in `outputs`, need it.
std::vector<bool> NeededNodes(const Model& model, const std::vector<const Value*>& outputs) {
  std::vector<bool> needed(model.node_count(), false);
  std::vector<const Node*> work;
  auto need = [&](const Value* value) {
    if (value == nullptr || value->producer == nullptr || needed[value->producer->id]) return;
    needed[value->producer->id] = true;
    work.push_back(value->producer);
  };
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (outputs[i] != nullptr) need(model.graph().outputs()[i]);
  }
  while (!work.empty()) {
    const Node* node = work.back();
    work.pop_back();
    for (const Use& use : node->inputs()) need(use.value);
    // All nodes of its bodies, which may read values around it.
    for (const Graph* inner : node->subgraphs()) {
      for (const Node* each : inner->nodes()) {
        if (!needed[each->id]) work.push_back(each);
        needed[each->id] = true;
      }
    }
  }
  return needed;
}

}  // namespace

// One call that is being inlined.
struct Inliner::Copy {
  CallScope scope;
  std::vector<const Value*> values;  // by Value::id of the body
};

// Every function that calls only functions that were measured before it can be measured; those that are never reached
// call themselves.
void Inliner::Measure() {
  const size_t count = functions_->size();
  totals_.resize(count);
  std::vector<std::vector<size_t>> callers(count);
  std::vector<size_t> waiting(count, 0);
  std::vector<size_t> ready;
  for (size_t i = 0; i < count; ++i) {
    const absl::StatusOr<LocalFunctions::Size> size = functions_->SizeOf(i);
    if (!size.ok()) {
      totals_[i].because = std::string(size.status().message());
      totals_[i].nodes = 1;
      ready.push_back(i);
      continue;
    }
    totals_[i].nodes = size->nodes;
    totals_[i].bytes = size->bytes;
    waiting[i] = size->calls.size();
    for (const size_t callee : size->calls) callers[callee].push_back(i);
    if (size->calls.empty()) ready.push_back(i);
  }
  std::vector<bool> measured(count, false);
  while (!ready.empty()) {
    const size_t i = ready.back();
    ready.pop_back();
    measured[i] = true;
    Total& total = totals_[i];
    if (total.because.empty() && total.depth >= kMaxDepth) {
      total.because = fmt::format("functions call each other more than {} deep", kMaxDepth);
    }
    // What stays a call is one node, whatever it calls.
    const bool stays = !total.because.empty();
    for (const size_t caller : callers[i]) {
      totals_[caller].nodes = Saturated(totals_[caller].nodes, stays ? 1 : total.nodes);
      totals_[caller].bytes = Saturated(totals_[caller].bytes, stays ? 0 : total.bytes);
      totals_[caller].depth = std::max(totals_[caller].depth, stays ? 0 : total.depth + 1);
      if (--waiting[caller] == 0) ready.push_back(caller);
    }
  }
  for (size_t i = 0; i < count; ++i) {
    if (!measured[i]) totals_[i].because = "it calls itself, or a function that does";
  }
}

void Inliner::Run(const ScopeOfCall& scope) {
  if (model_->functions().empty()) return;
  scope_ = scope;
  functions_ = std::make_unique<LocalFunctions>(*model_);
  Measure();
  graphs_before_ = model_->graphs().size();
  imports_before_ = model_->opset_imports_;
  functions_before_ = model_->functions_;
  // Bodies of the model's own nodes first come after their owners: graphs made here are not visited again.
  for (size_t i = 0; i < graphs_before_; ++i) InlineGraph(model_->graphs()[i].get());
  if (inlined_ > 0) {
    DropFunctions();
    DropImports();
  }
  functions_.reset();
  bodies_.clear();
}

void Inliner::InlineGraph(const Graph* graph) {
  std::vector<const Node*> nodes;
  bool changed = false;
  const std::vector<const Node*> before = graph->nodes();
  for (const Node* node : before) {
    if (functions_->Find(*node) < 0) {
      nodes.push_back(node);
      continue;
    }
    Call call = {node, {}, {}};
    for (const Use& use : node->inputs()) call.inputs.push_back(use.value);
    call.outputs.assign(node->outputs().begin(), node->outputs().end());
    if (!Inline(*node, call.inputs, call.outputs, graph, CallScope(), &nodes)) {
      nodes.push_back(node);
      continue;
    }
    changed = true;
    GraphBuilder builder(model_);
    for (size_t i = 0; i < call.inputs.size(); ++i) builder.SetInput(node, i, nullptr);
    GraphKey::Mutable(node)->dead = true;
    calls_.push_back(std::move(call));
  }
  if (!changed) return;
  before_.push_back({graph, before});
  GraphBuilder(model_).SetNodes(graph, std::move(nodes), false);
  for (const Graph* outer = graph; outer != nullptr; outer = outer->owner_ != nullptr ? outer->owner_->graph : nullptr) {
    GraphKey::Mutable(outer)->changed_ = true;
  }
}

const Inliner::Body& Inliner::BodyFor(size_t function, const Node& call) {
  std::string key = functions_->KeyOf(function, call);
  const auto found = bodies_.find(key);
  if (found != bodies_.end()) return found->second;
  if (bodies_.size() >= kMaxBodies) bodies_.clear();
  Body& body = bodies_[std::move(key)];
  absl::StatusOr<FunctionBody> made = functions_->BodyFor(function, call);
  if (!made.ok()) {
    body.because = std::string(made.status().message());
    return body;
  }
  body.because = WhyOtherOperators(*made->model);
  if (body.because.empty()) body.because = WhyNotCopied(*made->model);
  if (body.because.empty()) body.body = std::make_shared<const FunctionBody>(*std::move(made));
  return body;
}

// Initializers in bodies of a function, of a kind that no exporter writes there.
std::string Inliner::WhyNotCopied(const Model& body) const {
  for (const auto& graph : body.graphs()) {
    for (const Value* value : graph->initializers()) {
      const Tensor& tensor = *value->initializer;
      if (tensor.type != DataType::kUndefined && tensor.type != DataType::kString) continue;
      return fmt::format("a body in it has the initializer '{}', which is sparse or of text", ValueName(*value));
    }
  }
  return "";
}

// The nodes of a function mean what its imports say. In the model they mean the same if every one is of the same
// version there.
std::string Inliner::WhyOtherOperators(const Model& body) const {
  for (const auto& graph : body.graphs()) {
    for (const Node* node : graph->nodes()) {
      if (functions_->Find(*node) >= 0) continue;
      const std::string_view domain = Domain(*node);
      const int64_t own = body.OpsetVersion(node->domain);
      if (own == 0) {
        return fmt::format("it uses {} of a domain that it does not import",
                           domain.empty() ? std::string(OpType(*node)) : fmt::format("{}.{}", domain, OpType(*node)));
      }
      NameId id;
      const int64_t version = model_->names().Find(domain, &id) ? model_->OpsetVersion(id) : 0;
      if (version == 0 || version == own) continue;
      const bool known = !domain.empty() || std::max(version, own) <= kNewestOpset;
      const Schema* schema = FindSchema(domain, OpType(*node), own);
      if (known && schema != nullptr && schema == FindSchema(domain, OpType(*node), version)) continue;
      return fmt::format("it imports opset {} of {} and the model opset {}, where {} may be another operator", own,
                         domain.empty() ? "ai.onnx" : domain, version, OpType(*node));
    }
  }
  return "";
}

// Domains that the model does not import yet.
void Inliner::AddImports(const Model& body, bool calls) {
  for (const auto& graph : body.graphs()) {
    for (const Node* node : graph->nodes()) {
      if ((functions_->Find(*node) >= 0) != calls) continue;
      const NameId domain = model_->names().InternCopy(Domain(*node));
      const int64_t version = body.OpsetVersion(node->domain);
      if (model_->OpsetVersion(domain) == 0 && version != 0) rewriter_->SetOpsetImport(Domain(*node), version);
    }
  }
}

void Inliner::Leave(size_t function, const std::string& because) {
  const auto [at, added] = left_of_.try_emplace(fmt::format("{}:{}", function, because), left_.size());
  if (added) left_.push_back({functions_->Describe(function), 0, because});
  ++left_[at->second].count;
  still_called_.insert(function);
}

bool Inliner::Inline(const Node& call, const std::vector<const Value*>& inputs, const std::vector<const Value*>& outputs,
                     const Graph* graph, const CallScope& outer, std::vector<const Node*>* nodes) {
  const auto function = static_cast<size_t>(functions_->Find(call));
  const Total& total = totals_[function];
  if (!total.because.empty()) {
    Leave(function, total.because);
    return false;
  }
  // Counted with everything inside where no call is around it: a call inside was counted with it.
  const bool outermost = &call.graph->model() == model_;
  if (outermost && (total.nodes > kMaxNodes - nodes_ || total.bytes > kMaxBytes - bytes_)) {
    Leave(function, fmt::format("inlined, functions would come to more than {} nodes or {} MB", kMaxNodes, kMaxBytes >> 20));
    return false;
  }
  if (outermost) {  // whether it works out or not: looking takes as long
    nodes_ += total.nodes;
    bytes_ += total.bytes;
  }
  const Body& found = BodyFor(function, call);
  if (found.body == nullptr) {
    Leave(function, found.because);
    return false;
  }
  const std::shared_ptr<const FunctionBody> body = found.body;  // not forgotten while calls in it are inlined
  ++inlined_;
  AddImports(*body->model, /*calls=*/false);
  for (const std::string& location : body->model->external_locations()) {
    GraphBuilder(model_).AddExternalLocation(location);
  }

  Copy copy;
  copy.scope = scope_(call, outer);
  if (copy.scope.path.size() + copy.scope.prefix.size() > kMaxScope) {
    copy.scope.path.resize(std::min(copy.scope.path.size(), kMaxScope / 2));
    copy.scope.prefix.resize(std::min(copy.scope.prefix.size(), kMaxScope / 2));
  }
  copy.values.assign(body->model->value_count(), nullptr);
  const Graph& from = body->model->graph();
  size_t next = 0;
  for (const Value* input : inputs) {
    if (input != nullptr) copy.values[from.inputs()[next++]->id] = input;
  }
  for (size_t i = 0; i < body->constants.size(); ++i) {
    copy.values[from.inputs()[body->given + i]->id] = FileConstant(function, body->constants[i]);
  }
  // The call's outputs keep their names. One that another output or an input of the function gives is copied.
  std::vector<std::pair<const Value*, const Value*>> copied;
  for (size_t i = 0; i < outputs.size(); ++i) {
    const Value* inner = from.outputs()[i];
    if (outputs[i] == nullptr) continue;
    if (inner->producer != nullptr && copy.values[inner->id] == nullptr) {
      copy.values[inner->id] = outputs[i];
    } else {
      copied.emplace_back(inner, outputs[i]);
    }
  }

  const std::vector<bool> needed = NeededNodes(*body->model, outputs);
  for (const Node* node : from.nodes()) {
    if (needed[node->id]) CopyNode(*node, graph, &copy, nodes);
  }
  GraphBuilder builder(model_);
  for (const auto& [inner, output] : copied) {
    Node* node = builder.NewNode(graph, 1, 1, 0);
    node->op_type = model_->names().InternCopy("Identity");
    node->name = rewriter_->UniqueName(Named(copy.scope, "Identity"));
    node->encoded.data = reinterpret_cast<const uint8_t*>("");
    builder.SetInput(node, 0, copy.values[inner->id]);
    builder.SetOutput(node, 0, output);
    nodes->push_back(node);
    made_.push_back(node);
  }
  return true;
}

void Inliner::CopyNode(const Node& node, const Graph* graph, Copy* copy, std::vector<const Node*>* nodes) {
  std::vector<const Value*> inputs;
  for (const Use& use : node.inputs()) inputs.push_back(use.value == nullptr ? nullptr : copy->values[use.value->id]);
  std::vector<const Value*> outputs;
  GraphBuilder builder(model_);
  for (const Value* value : node.outputs()) {
    if (value != nullptr && copy->values[value->id] == nullptr) {
      copy->values[value->id] = builder.NewValue(graph, rewriter_->UniqueName(Named(copy->scope, ValueName(*value))));
    }
    outputs.push_back(value == nullptr ? nullptr : copy->values[value->id]);
  }
  if (functions_->Find(node) >= 0) {
    if (Inline(node, inputs, outputs, graph, copy->scope, nodes)) return;
    AddImports(node.graph->model(), /*calls=*/true);
  }
  Node* made = builder.NewNode(graph, inputs.size(), outputs.size(), node.subgraph_count);
  made->op_type = model_->names().InternCopy(OpType(node));
  made->domain = model_->names().InternCopy(Domain(node));
  made->name =
      rewriter_->UniqueName(Named(copy->scope, NodeName(node).empty() ? std::string(OpType(node)) : std::string(NodeName(node))));
  const std::string_view fields = CopyFields(node, &model_->arena());
  made->encoded.data = reinterpret_cast<const uint8_t*>(fields.data() != nullptr ? fields.data() : "");
  made->encoded.file = {-1, static_cast<int64_t>(fields.size())};
  for (size_t i = 0; i < inputs.size(); ++i) builder.SetInput(made, i, inputs[i]);
  for (size_t i = 0; i < outputs.size(); ++i) builder.SetOutput(made, i, outputs[i]);
  for (size_t i = 0; i < node.subgraph_count; ++i) {
    if (node.subgraphs()[i] != nullptr) builder.SetSubgraph(made, i, CopyGraph(*node.subgraphs()[i], made, copy));
  }
  nodes->push_back(made);
  made_.push_back(made);
}

const Graph* Inliner::CopyGraph(const Graph& from, const Node* owner, Copy* copy) {
  GraphBuilder builder(model_);
  Graph* graph = builder.NewGraph(owner, model_->names().InternCopy(from.model().Text(from.name())), EncodedSpan());
  graph->changed_ = true;
  auto value_of = [&](const Value* value) {
    const Value*& known = copy->values[value->id];
    if (known == nullptr) {
      Value* made = builder.NewValue(graph, rewriter_->UniqueName(Named(copy->scope, ValueName(*value))));
      made->declared_type = WithoutDimNames(value->declared_type, &model_->arena());
      known = made;
    }
    return known;
  };
  for (const Value* value : from.inputs()) builder.AddInput(graph, value_of(value));
  for (const Value* value : from.initializers()) {
    const Value* made = value_of(value);
    builder.AddInitializer(graph, made, CopyTensor(from.model(), *value->initializer, made->name));
  }
  std::vector<const Node*> nodes;
  for (const Node* node : from.nodes()) CopyNode(*node, graph, copy, &nodes);
  for (const Value* value : from.outputs()) {
    const Value* made = value_of(value);
    GraphKey::Mutable(made)->declared_type = WithoutDimNames(value->declared_type, &model_->arena());
    builder.AddOutput(graph, made);
  }
  return graph;
}

// A tensor of a body's initializer, its elements in memory.
const Tensor* Inliner::CopyTensor(const Model& from, const Tensor& tensor, NameId name) {
  Tensor* copy = model_->arena().New<Tensor>();
  copy->type = tensor.type;
  copy->name = name;
  copy->dims = model_->InternDims(tensor.dims);
  if (tensor.storage == Storage::kExternal) {
    copy->storage = Storage::kExternal;
    copy->location = model_->arena().Copy(tensor.location);
    copy->file = tensor.file;
  } else if (tensor.storage != Storage::kNone) {
    const absl::StatusOr<std::string> bytes = ReadBytes(from, tensor, LocalFunctions::kMaxBytes);
    copy->storage = Storage::kMemory;
    if (bytes.ok()) copy->memory = model_->arena().Copy(std::string_view(*bytes));
  }
  return copy;
}

const Value* Inliner::FileConstant(size_t function, const FunctionBody::FileConstant& constant) {
  const Value*& value = file_constants_[{function, constant.name}];
  if (value != nullptr) return value;
  Tensor* tensor = model_->arena().New<Tensor>();
  tensor->type = constant.type;
  tensor->storage = Storage::kFile;
  tensor->dims = model_->InternDims(constant.dims);
  tensor->file = constant.elements;
  GraphBuilder builder(model_);
  value = builder.NewValue(model_->graph_, rewriter_->UniqueName(constant.name));
  tensor->name = value->name;
  builder.AddInitializer(model_->graph_, value, tensor);
  model_->graph_->changed_ = true;
  return value;
}

// Keeps the functions that calls which are left call, and what those call.
void Inliner::DropFunctions() {
  std::vector<size_t> work(still_called_.begin(), still_called_.end());
  while (!work.empty()) {
    const size_t function = work.back();
    work.pop_back();
    const absl::StatusOr<LocalFunctions::Size> size = functions_->SizeOf(function);
    if (!size.ok()) {  // it may call any of them
      for (size_t i = 0; i < functions_->size(); ++i) still_called_.insert(i);
      break;
    }
    for (const size_t callee : size->calls) {
      if (still_called_.insert(callee).second) work.push_back(callee);
    }
  }
  std::vector<LocalFunction> kept;
  for (size_t i = 0; i < functions_before_.size(); ++i) {
    if (still_called_.contains(i)) kept.push_back(functions_before_[i]);
  }
  functions_.reset();  // it points to the functions
  model_->functions_ = std::move(kept);
  model_->functions_changed_ = model_->functions_.size() != functions_before_.size();
}

// A domain that had functions only is imported no longer.
void Inliner::DropImports() {
  absl::flat_hash_set<NameId> unused;
  for (const LocalFunction& function : functions_before_) {
    if (function.domain != NameId::kEmpty) unused.insert(function.domain);
  }
  for (const LocalFunction& function : model_->functions_) unused.erase(function.domain);
  for (const auto& graph : model_->graphs()) {
    for (const Node* node : graph->nodes()) unused.erase(node->domain);
  }
  auto& imports = model_->opset_imports_;
  const auto end =
      std::remove_if(imports.begin(), imports.end(), [&](const OpsetImport& import) { return unused.contains(import.domain); });
  if (end != imports.end()) model_->opset_imports_changed_ = true;
  imports.erase(end, imports.end());
}

void Inliner::Undo() {
  if (inlined_ == 0) return;
  GraphBuilder builder(model_);
  for (const Node* node : made_) {
    for (size_t i = 0; i < node->input_count; ++i) builder.SetInput(node, i, nullptr);
    GraphKey::Mutable(node)->dead = true;
  }
  for (const Call& call : calls_) {
    GraphKey::Mutable(call.node)->dead = false;
    for (size_t i = 0; i < call.inputs.size(); ++i) builder.SetInput(call.node, i, call.inputs[i]);
    for (size_t i = 0; i < call.outputs.size(); ++i) builder.SetOutput(call.node, i, call.outputs[i]);
  }
  for (Before& before : before_) builder.SetNodes(before.graph, std::move(before.nodes), false);
  auto& graphs = model_->graphs_;
  std::move(graphs.begin() + static_cast<ptrdiff_t>(graphs_before_), graphs.end(), std::back_inserter(retired_));
  graphs.resize(graphs_before_);
  auto& initializers = model_->graph_->initializers_;
  for (const auto& [key, value] : file_constants_) {
    initializers.erase(std::remove(initializers.begin(), initializers.end(), value), initializers.end());
  }
  for (const auto& graph : graphs) graph->changed_ = false;
  model_->opset_imports_ = imports_before_;
  model_->opset_imports_changed_ = false;
  model_->functions_ = functions_before_;
  model_->functions_changed_ = false;
  inlined_ = 0;
  made_.clear();
  calls_.clear();
  before_.clear();
}

}  // namespace ascend_fuse
