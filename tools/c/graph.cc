// Passes in C, and in all languages that call it: a view of the graph and the changes of the Rewriter, while the pass runs. What
// would break the graph in a way that Verify cannot tell of is refused before it is done.
#include "tools/c/graph.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "fmt/format.h"
#include "ir/status_macros.h"
#include "ir/text/printer.h"
#include "tools/c/handles.h"
#include "tools/c/json.h"

using namespace ascend_fuse;
using namespace ascend_fuse::c;

namespace ascend_fuse::c {
namespace {

const Node* Of(const ascend_fuse_node* node) { return reinterpret_cast<const Node*>(node); }
const Value* Of(const ascend_fuse_value* value) { return reinterpret_cast<const Value*>(value); }
absl::Span<const Value* const> Of(const ascend_fuse_value* const* values, size_t count) {
  return absl::MakeConstSpan(reinterpret_cast<const Value* const*>(values), count);
}

// Gives the list that was made to the caller.
size_t Give(ascend_fuse_graph* graph, const ascend_fuse_node* const** nodes) {
  *nodes = reinterpret_cast<const ascend_fuse_node* const*>(graph->nodes.data());
  return graph->nodes.size();
}
size_t Give(ascend_fuse_graph* graph, const ascend_fuse_value* const** values) {
  *values = reinterpret_cast<const ascend_fuse_value* const*>(graph->values.data());
  return graph->values.size();
}

// A text of the graph; NULL without memory.
template <typename Make>
const char* Text(ascend_fuse_graph* graph, Make make) {
  const char* text = nullptr;
  Guarded([&] {
    graph->text = make();
    text = graph->text.c_str();
    return absl::OkStatus();
  });
  return text;
}

const Fact& FactOf(ascend_fuse_graph* graph, const ascend_fuse_value* value) { return graph->workspace->facts().Of(Of(value)); }

std::string DimJson(const ascend_fuse_graph* graph, Dim dim) {
  if (dim.is_number()) return fmt::format("{}", dim.number());
  return dim.known() ? JsonText(graph->workspace->facts().dims().ToString(dim)) : "null";
}

// Each once, in the order of the graph; readers in bodies after those around them.
std::vector<const Node*> ReadersOf(const Model& model, const Value& value) {
  std::vector<const Node*> users;
  for (const Use& use : LiveUses(value)) users.push_back(use.user);
  absl::flat_hash_map<const Graph*, size_t> place;
  for (const auto& graph : model.graphs()) place.emplace(graph.get(), place.size());
  std::sort(users.begin(), users.end(), [&place](const Node* a, const Node* b) {
    return a->graph != b->graph ? place[a->graph] < place[b->graph] : StandsBefore(*a, *b);
  });
  users.erase(std::unique(users.begin(), users.end()), users.end());
  return users;
}

// The node that a caller describes, with the attributes that are waiting.
absl::StatusOr<NewNode> Described(ascend_fuse_graph* graph, const char* op_type, absl::Span<const Value* const> inputs,
                                  const char* domain, const char* name) {
  if (op_type == nullptr || *op_type == '\0') return absl::InvalidArgumentError("a node needs an op_type");
  NewNode node;
  node.op_type = op_type;
  node.domain = domain == nullptr ? "" : domain;
  node.name = name == nullptr ? "" : name;
  node.keep_name = !node.name.empty();
  node.inputs.assign(inputs.begin(), inputs.end());
  node.attributes = graph->attributes;
  return node;
}

absl::StatusOr<std::vector<TakenOutput>> Taken(absl::Span<const Value* const> outputs) {
  if (outputs.empty()) return absl::InvalidArgumentError("a node needs an output");
  std::vector<TakenOutput> taken;
  for (const Value* value : outputs) {
    if (value == nullptr) return NeedNotNull("an output");
    if (value->producer == nullptr || value->producer->dead) {
      return absl::InvalidArgumentError(
          fmt::format("{} is computed by no node, so nothing can be put in its place", ValueName(*value)));
    }
    if (value->graph != outputs.front()->graph) return absl::InvalidArgumentError("outputs of different graphs");
    const bool twice = std::any_of(taken.begin(), taken.end(), [&](const TakenOutput& other) { return other.value == value; });
    if (twice) return absl::InvalidArgumentError("one output twice");
    taken.push_back({taken.size(), value});
  }
  return taken;
}

// The innermost graph of the inputs: from there all of them can be seen.
const Graph* InnermostOf(const Model& model, absl::Span<const Value* const> inputs) {
  const Graph* graph = &model.graph();
  int depth = 0;
  for (const Value* value : inputs) {
    if (value == nullptr) continue;
    int own = 0;
    for (const Node* owner = value->graph->owner(); owner != nullptr; owner = owner->graph->owner()) ++own;
    if (own > depth) std::tie(graph, depth) = std::pair(value->graph, own);
  }
  return graph;
}

// Makes a node, and forgets the attributes that were for it, also where that fails.
template <typename Make>
ascend_fuse_code Made(ascend_fuse_graph* graph, const ascend_fuse_node** made, Make make) {
  const ascend_fuse_code code = Guarded([&]() -> absl::Status {
    ASSIGN_OR_RETURN(const Node* node, make());
    graph->workspace->Refresh(node);
    if (made != nullptr) *made = reinterpret_cast<const ascend_fuse_node*>(node);
    return absl::OkStatus();
  });
  graph->attributes.clear();
  graph->attribute_texts.clear();
  return code;
}

ascend_fuse_code AddAttribute(ascend_fuse_graph* graph, const char* name,
                              Attribute (*make)(std::string_view, const void*, size_t), const void* data, size_t count) {
  return Guarded([&] {
    if (name == nullptr || (data == nullptr && count != 0)) return NeedNotNull("name or value");
    graph->attributes.push_back(make(graph->attribute_texts.emplace_back(name), data, count));
    return absl::OkStatus();
  });
}

absl::Status CheckConstant(const std::string& dtype, absl::Span<const int64_t> shape, size_t size) {
  const int bits = BitWidth(DataTypeFromName(dtype));
  if (bits == 0) return absl::InvalidArgumentError(fmt::format("{} is not a type of numbers", dtype));
  int64_t count = 1;
  for (const int64_t dim : shape) {
    if (dim < 0 || __builtin_mul_overflow(count, dim, &count)) return absl::InvalidArgumentError("the shape is not valid");
  }
  if (count > (int64_t{1} << 40) || (count * bits + 7) / 8 != static_cast<int64_t>(size)) {
    return absl::InvalidArgumentError(fmt::format("{} bytes are not {} elements of {}", size, count, dtype));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CallPass(int (*run)(ascend_fuse_graph* graph), void* user, Workspace& workspace) {
  ascend_fuse_graph graph;
  graph.workspace = &workspace;
  graph.user = user;
  for (const Site& site : workspace.sites) {
    for (const Node* node : site.made) graph.sites.emplace(node, site.record.kind);
  }
  return run(&graph) == 0 ? absl::OkStatus() : absl::CancelledError("cancelled by a pass");
}

}  // namespace ascend_fuse::c

// --- the graph ---

void* ascend_fuse_graph_user(const ascend_fuse_graph* graph) { return graph->user; }
int64_t ascend_fuse_graph_opset(ascend_fuse_graph* graph) { return graph->workspace->model().OpsetVersion(); }

size_t ascend_fuse_graph_nodes(ascend_fuse_graph* graph, const char* op_type, const char* domain,
                               const ascend_fuse_node* const** nodes) {
  graph->nodes.clear();
  Guarded([&] {
    const std::string_view of_domain = domain == nullptr ? "" : domain;
    for (const auto& part : graph->workspace->model().graphs()) {
      for (const Node* node : part->nodes()) {
        if (node->dead || (op_type != nullptr && (OpType(*node) != op_type || Domain(*node) != of_domain))) continue;
        graph->nodes.push_back(node);
      }
    }
    return absl::OkStatus();
  });
  return Give(graph, nodes);
}

size_t ascend_fuse_graph_inputs(ascend_fuse_graph* graph, const ascend_fuse_value* const** values) {
  graph->values = graph->workspace->model().graph().inputs();
  return Give(graph, values);
}

size_t ascend_fuse_graph_outputs(ascend_fuse_graph* graph, const ascend_fuse_value* const** values) {
  graph->values = graph->workspace->model().graph().outputs();
  return Give(graph, values);
}

// --- nodes ---

const char* ascend_fuse_node_op_type(ascend_fuse_graph* graph, const ascend_fuse_node* node) {
  return Text(graph, [&] { return OpType(*Of(node)); });
}
const char* ascend_fuse_node_domain(ascend_fuse_graph* graph, const ascend_fuse_node* node) {
  return Text(graph, [&] { return Domain(*Of(node)); });
}
const char* ascend_fuse_node_name(ascend_fuse_graph* graph, const ascend_fuse_node* node) {
  return Text(graph, [&] { return NodeName(*Of(node)); });
}
const char* ascend_fuse_node_text(ascend_fuse_graph* graph, const ascend_fuse_node* node) {
  return Text(graph, [&] { return PrintNode(*Of(node)); });
}

const char* ascend_fuse_node_site(ascend_fuse_graph* graph, const ascend_fuse_node* node) {
  const auto found = graph->sites.find(Of(node));
  return found == graph->sites.end() ? nullptr : found->second.c_str();
}

int ascend_fuse_node_alive(ascend_fuse_graph*, const ascend_fuse_node* node) { return Of(node)->dead ? 0 : 1; }

size_t ascend_fuse_node_inputs(ascend_fuse_graph* graph, const ascend_fuse_node* node, const ascend_fuse_value* const** values) {
  graph->values.clear();
  for (const Use& use : Of(node)->inputs()) graph->values.push_back(use.value);
  return Give(graph, values);
}

size_t ascend_fuse_node_outputs(ascend_fuse_graph* graph, const ascend_fuse_node* node, const ascend_fuse_value* const** values) {
  const auto outputs = Of(node)->outputs();
  graph->values.assign(outputs.begin(), outputs.end());
  return Give(graph, values);
}

const char* ascend_fuse_node_attributes(ascend_fuse_graph* graph, const ascend_fuse_node* node) {
  return Text(graph, [&] { return JsonObject(ReadAttributes(*Of(node))); });
}

// --- values ---

const char* ascend_fuse_value_name(ascend_fuse_graph* graph, const ascend_fuse_value* value) {
  return Text(graph, [&] { return ValueName(*Of(value)); });
}
const char* ascend_fuse_value_text(ascend_fuse_graph* graph, const ascend_fuse_value* value) {
  return Text(graph, [&] { return fmt::format("{}: {}", ValueName(*Of(value)), graph->workspace->facts().Describe(Of(value))); });
}

const char* ascend_fuse_value_dtype(ascend_fuse_graph* graph, const ascend_fuse_value* value) {
  const DataType type = FactOf(graph, value).type;
  return type == DataType::kUndefined ? nullptr : Text(graph, [&] { return DataTypeName(type); });
}

const char* ascend_fuse_value_shape(ascend_fuse_graph* graph, const ascend_fuse_value* value) {
  return Text(graph, [&]() -> std::string {
    const Fact& fact = FactOf(graph, value);
    return fact.has_rank ? JsonList(fact.shape, [&](Dim dim) { return DimJson(graph, dim); }) : "null";
  });
}

const char* ascend_fuse_value_elements(ascend_fuse_graph* graph, const ascend_fuse_value* value) {
  return Text(graph, [&]() -> std::string {
    const auto& elements = FactOf(graph, value).elements;
    if (elements == nullptr) return "null";
    return elements->floats.empty() ? JsonList(elements->integers, [&](Dim dim) { return DimJson(graph, dim); })
                                    : JsonList(elements->floats, [](double number) { return JsonFloat(number); });
  });
}

int ascend_fuse_value_splat(ascend_fuse_graph* graph, const ascend_fuse_value* value, double* number) {
  const Fact& fact = FactOf(graph, value);
  if (fact.is_splat && number != nullptr) *number = fact.splat;
  return fact.is_splat ? 1 : 0;
}

const ascend_fuse_node* ascend_fuse_value_producer(ascend_fuse_graph*, const ascend_fuse_value* value) {
  const Node* producer = Of(value)->producer;
  return producer == nullptr || producer->dead ? nullptr : reinterpret_cast<const ascend_fuse_node*>(producer);
}

size_t ascend_fuse_value_consumers(ascend_fuse_graph* graph, const ascend_fuse_value* value,
                                   const ascend_fuse_node* const** nodes) {
  graph->nodes.clear();
  Guarded([&] {
    graph->nodes = ReadersOf(graph->workspace->model(), *Of(value));
    return absl::OkStatus();
  });
  return Give(graph, nodes);
}

int ascend_fuse_value_is_input(ascend_fuse_graph*, const ascend_fuse_value* value) { return Of(value)->is_graph_input; }
int ascend_fuse_value_is_output(ascend_fuse_graph*, const ascend_fuse_value* value) { return Of(value)->is_graph_output; }
int ascend_fuse_value_is_constant(ascend_fuse_graph*, const ascend_fuse_value* value) { return Of(value)->IsConstant(); }

// --- changes ---

ascend_fuse_code ascend_fuse_attribute_int(ascend_fuse_graph* graph, const char* name, int64_t number) {
  const auto make = [](std::string_view of, const void* data, size_t) {
    return Attribute::Int(of, *static_cast<const int64_t*>(data));
  };
  return AddAttribute(graph, name, make, &number, 1);
}

ascend_fuse_code ascend_fuse_attribute_float(ascend_fuse_graph* graph, const char* name, float number) {
  const auto make = [](std::string_view of, const void* data, size_t) {
    return Attribute::Float(of, *static_cast<const float*>(data));
  };
  return AddAttribute(graph, name, make, &number, 1);
}

ascend_fuse_code ascend_fuse_attribute_text(ascend_fuse_graph* graph, const char* name, const char* bytes, size_t size) {
  return Guarded([&] {
    if (name == nullptr || (bytes == nullptr && size != 0)) return NeedNotNull("name or bytes");
    const std::string& key = graph->attribute_texts.emplace_back(name);
    graph->attributes.push_back(Attribute::String(key, graph->attribute_texts.emplace_back(bytes, size)));
    return absl::OkStatus();
  });
}

ascend_fuse_code ascend_fuse_attribute_ints(ascend_fuse_graph* graph, const char* name, const int64_t* numbers, size_t count) {
  const auto make = [](std::string_view of, const void* data, size_t size) {
    return Attribute::Ints(of, absl::MakeConstSpan(static_cast<const int64_t*>(data), size));
  };
  return AddAttribute(graph, name, make, numbers, count);
}

ascend_fuse_code ascend_fuse_attribute_floats(ascend_fuse_graph* graph, const char* name, const float* numbers, size_t count) {
  const auto make = [](std::string_view of, const void* data, size_t size) {
    return Attribute::Floats(of, absl::MakeConstSpan(static_cast<const float*>(data), size));
  };
  return AddAttribute(graph, name, make, numbers, count);
}

ascend_fuse_code ascend_fuse_replace(ascend_fuse_graph* graph, const ascend_fuse_value* const* outputs, size_t output_count,
                                     const char* op_type, const ascend_fuse_value* const* inputs, size_t input_count,
                                     const char* domain, const char* name, const ascend_fuse_node** made) {
  return Made(graph, made, [&]() -> absl::StatusOr<const Node*> {
    ASSIGN_OR_RETURN(const std::vector<TakenOutput> taken, Taken(Of(outputs, output_count)));
    ASSIGN_OR_RETURN(const NewNode node, Described(graph, op_type, Of(inputs, input_count), domain, name));
    return graph->workspace->rewriter().Replace(taken, taken.size(), node);
  });
}

ascend_fuse_code ascend_fuse_insert(ascend_fuse_graph* graph, const char* op_type, const ascend_fuse_value* const* inputs,
                                    size_t input_count, const char* domain, const char* name, size_t output_count,
                                    const ascend_fuse_node** made) {
  return Made(graph, made, [&]() -> absl::StatusOr<const Node*> {
    if (output_count == 0 || output_count > 1000) return absl::InvalidArgumentError("a node has from 1 to 1000 outputs");
    ASSIGN_OR_RETURN(const NewNode node, Described(graph, op_type, Of(inputs, input_count), domain, name));
    Workspace& workspace = *graph->workspace;
    return workspace.rewriter().Insert(node, output_count, InnermostOf(workspace.model(), node.inputs), node.name);
  });
}

ascend_fuse_code ascend_fuse_set_input(ascend_fuse_graph* graph, const ascend_fuse_node* node, size_t index,
                                       const ascend_fuse_value* value) {
  return Guarded([&]() -> absl::Status {
    if (node == nullptr) return NeedNotNull("node");
    if (Of(node)->dead) return absl::InvalidArgumentError("the node is not in the graph any more");
    if (index >= Of(node)->input_count) return absl::NotFoundError("the node has no such input");
    graph->workspace->rewriter().SetInput(Of(node), index, Of(value));
    if (!Of(node)->dead) graph->workspace->Refresh(Of(node));
    return absl::OkStatus();
  });
}

ascend_fuse_code ascend_fuse_constant(ascend_fuse_graph* graph, const void* elements, size_t size, const char* dtype,
                                      const int64_t* shape, size_t rank, const char* name, const ascend_fuse_value** made) {
  return Guarded([&]() -> absl::Status {
    if (dtype == nullptr || made == nullptr || (elements == nullptr && size != 0) || (shape == nullptr && rank != 0)) {
      return NeedNotNull("elements, dtype, shape or made");
    }
    const absl::Span<const int64_t> dims = absl::MakeConstSpan(shape, rank);
    RETURN_IF_ERROR(CheckConstant(dtype, dims, size));
    Workspace& workspace = *graph->workspace;
    const std::string_view bytes(static_cast<const char*>(elements), size);
    const Value* value = workspace.rewriter().Constant(&workspace.model().graph(), DataTypeFromName(dtype), dims, bytes,
                                                       name == nullptr || *name == '\0' ? "constant" : name);
    InferConstant(value, &workspace.facts());
    *made = reinterpret_cast<const ascend_fuse_value*>(value);
    return absl::OkStatus();
  });
}
