// Handles of nodes and values for Python. A handle knows the pass it belongs to and is refused when that has ended, and what
// would break the graph in a way that Verify cannot tell of is refused before it is done: Python may be wrong, and does not
// crash.
#include "tools/python/core/graph_view.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "fmt/format.h"
#include "ir/text/printer.h"

namespace nb = nanobind;

namespace ascend_fuse::python {
namespace {

// One call of one pass.
struct Session {
  Workspace* workspace = nullptr;                       // nullptr when the pass has ended
  absl::flat_hash_map<const Node*, std::string> sites;  // the kind of the site that a node stands for
};
using SessionPointer = std::shared_ptr<Session>;

Workspace& Of(const SessionPointer& session) {
  if (session->workspace != nullptr) return *session->workspace;
  throw std::runtime_error("the pass has ended: what it was given cannot be used any more");
}

struct ValueHandle {
  SessionPointer session;
  const Value* value;
};

struct NodeHandle {
  SessionPointer session;
  const Node* node;
};

std::optional<ValueHandle> Handle(const SessionPointer& session, const Value* value) {
  if (value == nullptr) return std::nullopt;
  return ValueHandle{session, value};
}

std::optional<NodeHandle> Handle(const SessionPointer& session, const Node* node) {
  if (node == nullptr || node->dead) return std::nullopt;
  return NodeHandle{session, node};
}

// --- reading ---

struct GraphView {
  SessionPointer session;

  std::vector<NodeHandle> Nodes(const std::optional<std::string>& op_type, const std::string& domain) const {
    std::vector<NodeHandle> nodes;
    for (const auto& graph : Of(session).model().graphs()) {
      for (const Node* node : graph->nodes()) {
        if (node->dead || (op_type.has_value() && (OpType(*node) != *op_type || Domain(*node) != domain))) continue;
        nodes.push_back({session, node});
      }
    }
    return nodes;
  }

  std::vector<ValueHandle> Values(const std::vector<const Value*>& of_graph) const {
    std::vector<ValueHandle> values;
    for (const Value* value : of_graph) values.push_back({session, value});
    return values;
  }
  std::vector<ValueHandle> Inputs() const { return Values(Of(session).model().graph().inputs()); }
  std::vector<ValueHandle> Outputs() const { return Values(Of(session).model().graph().outputs()); }
  int64_t Opset() const { return Of(session).model().OpsetVersion(); }
};

nb::object AttributeValue(const Attribute& attribute) {
  switch (attribute.type) {
    case AttributeType::kInt:
      return nb::int_(attribute.i);
    case AttributeType::kFloat:
      return nb::float_(attribute.f);
    case AttributeType::kString:
      return nb::bytes(attribute.s.data(), attribute.s.size());
    case AttributeType::kInts: {
      nb::list list;
      for (const int64_t i : attribute.ints) list.append(i);
      return list;
    }
    case AttributeType::kFloats: {
      nb::list list;
      for (const float f : attribute.floats) list.append(f);
      return list;
    }
    default:  // tensors, graphs, types: there, and not read
      return nb::none();
  }
}

nb::dict Attributes(const NodeHandle& handle) {
  Of(handle.session);
  nb::dict attributes;
  for (const Attribute& attribute : ReadAttributes(*handle.node)) {
    attributes[nb::str(attribute.name.data(), attribute.name.size())] = AttributeValue(attribute);
  }
  return attributes;
}

// A number, the text of an expression, or None.
nb::object DimValue(const DimTable& dims, Dim dim) {
  if (dim.is_number()) return nb::int_(dim.number());
  if (!dim.known()) return nb::none();
  const std::string text = dims.ToString(dim);
  return nb::str(text.c_str(), text.size());
}

const Fact& FactOf(const ValueHandle& handle) { return Of(handle.session).facts().Of(handle.value); }

nb::object Shape(const ValueHandle& handle) {
  const Fact& fact = FactOf(handle);
  if (!fact.has_rank) return nb::none();
  nb::list shape;
  for (const Dim dim : fact.shape) shape.append(DimValue(handle.session->workspace->facts().dims(), dim));
  return nb::tuple(shape);
}

nb::object Dtype(const ValueHandle& handle) {
  const DataType type = FactOf(handle).type;
  if (type == DataType::kUndefined) return nb::none();
  const std::string_view name = DataTypeName(type);
  return nb::str(name.data(), name.size());
}

nb::object ElementsOf(const ValueHandle& handle) {
  const Fact& fact = FactOf(handle);
  if (fact.elements == nullptr) return nb::none();
  nb::list list;
  for (const Dim dim : fact.elements->integers) list.append(DimValue(handle.session->workspace->facts().dims(), dim));
  for (const double number : fact.elements->floats) list.append(number);
  return list;
}

nb::object Splat(const ValueHandle& handle) {
  const Fact& fact = FactOf(handle);
  return fact.is_splat ? nb::object(nb::float_(fact.splat)) : nb::object(nb::none());
}

// Each once, in the order of the graph; readers in bodies after those around them.
std::vector<NodeHandle> Consumers(const ValueHandle& handle) {
  Of(handle.session);
  std::vector<const Node*> users;
  for (const Use& use : LiveUses(*handle.value)) users.push_back(use.user);
  absl::flat_hash_map<const Graph*, size_t> place;
  for (const auto& graph : handle.session->workspace->model().graphs()) place.emplace(graph.get(), place.size());
  std::sort(users.begin(), users.end(), [&place](const Node* a, const Node* b) {
    return a->graph != b->graph ? place[a->graph] < place[b->graph] : StandsBefore(*a, *b);
  });
  users.erase(std::unique(users.begin(), users.end()), users.end());
  std::vector<NodeHandle> nodes;
  for (const Node* user : users) nodes.push_back({handle.session, user});
  return nodes;
}

// --- changing ---

Attribute MakeAttribute(const std::string& name, nb::handle value, std::vector<std::string>* texts) {
  if (nb::isinstance<nb::bool_>(value) || nb::isinstance<nb::int_>(value)) return Attribute::Int(name, nb::cast<int64_t>(value));
  if (nb::isinstance<nb::float_>(value)) return Attribute::Float(name, nb::cast<float>(value));
  if (nb::isinstance<nb::str>(value) || nb::isinstance<nb::bytes>(value)) {
    if (nb::isinstance<nb::str>(value)) {
      texts->push_back(nb::cast<std::string>(value));
    } else {
      const auto bytes = nb::cast<nb::bytes>(value);
      texts->emplace_back(bytes.c_str(), bytes.size());
    }
    return Attribute::String(name, texts->back());
  }
  if (nb::isinstance<nb::sequence>(value)) {
    std::vector<int64_t> integers;
    if (nb::try_cast(value, integers)) return Attribute::Ints(name, integers);
    std::vector<float> floats;
    if (nb::try_cast(value, floats)) return Attribute::Floats(name, floats);
  }
  throw nb::type_error(fmt::format("attribute {}: expected a number, a text or a list of numbers", name).c_str());
}

struct RewriterHandle {
  SessionPointer session;

  const Value* Checked(const std::optional<ValueHandle>& handle) const {
    if (!handle.has_value()) return nullptr;
    if (handle->session != session) throw nb::value_error("a value of another pass");
    return handle->value;
  }

  // Calls `make` with the description of a node; the texts of its attributes live as long as that takes.
  template <typename Make>
  NodeHandle Made(const std::string& op_type, const std::vector<std::optional<ValueHandle>>& inputs, const nb::dict& attributes,
                  const std::string& domain, const std::string& name, Make make) const {
    Workspace& workspace = Of(session);
    if (op_type.empty()) throw nb::value_error("a node needs an op_type");
    NewNode node;
    node.op_type = op_type;
    node.domain = domain;
    node.name = name;
    node.keep_name = !name.empty();
    for (const auto& input : inputs) node.inputs.push_back(Checked(input));
    std::vector<std::string> names, texts;
    names.reserve(attributes.size());
    texts.reserve(attributes.size());
    for (const auto [key, value] : attributes) {
      names.push_back(nb::cast<std::string>(key));
      node.attributes.push_back(MakeAttribute(names.back(), value, &texts));
    }
    const Node* made = make(workspace.rewriter(), node);
    workspace.Refresh(made);
    return {session, made};
  }

  NodeHandle Replace(const std::vector<ValueHandle>& outputs, const std::string& op_type,
                     const std::vector<std::optional<ValueHandle>>& inputs, const nb::dict& attributes, const std::string& domain,
                     const std::string& name) const {
    std::vector<TakenOutput> values;
    for (const ValueHandle& output : outputs) {
      const Value* value = Checked(output);
      if (value->producer == nullptr || value->producer->dead) {
        throw nb::value_error(
            fmt::format("{} is computed by no node, so nothing can be put in its place", ValueName(*value)).c_str());
      }
      if (!values.empty() && values.front().value->graph != value->graph) throw nb::value_error("outputs of different graphs");
      const bool twice =
          std::any_of(values.begin(), values.end(), [&](const TakenOutput& taken) { return taken.value == value; });
      if (twice) throw nb::value_error("one output twice");
      values.push_back({values.size(), value});
    }
    if (values.empty()) throw nb::value_error("a node needs an output");
    return Made(op_type, inputs, attributes, domain, name,
                [&](Rewriter& rewriter, const NewNode& node) { return rewriter.Replace(values, values.size(), node); });
  }

  NodeHandle Insert(const std::string& op_type, const std::vector<std::optional<ValueHandle>>& inputs, const nb::dict& attributes,
                    const std::string& domain, const std::string& name, size_t outputs) const {
    if (outputs == 0 || outputs > 1000) throw nb::value_error("a node has from 1 to 1000 outputs");
    // The innermost graph of the inputs: from there all of them can be seen.
    const Graph* graph = &Of(session).model().graph();
    int depth = 0;
    for (const auto& input : inputs) {
      const Value* value = Checked(input);
      if (value == nullptr) continue;
      int own = 0;
      for (const Node* owner = value->graph->owner(); owner != nullptr; owner = owner->graph->owner()) ++own;
      if (own > depth) std::tie(graph, depth) = std::pair(value->graph, own);
    }
    return Made(op_type, inputs, attributes, domain, name,
                [&](Rewriter& rewriter, const NewNode& node) { return rewriter.Insert(node, outputs, graph, name); });
  }

  void SetInput(const NodeHandle& handle, size_t index, const std::optional<ValueHandle>& value) const {
    Workspace& workspace = Of(session);
    if (handle.session != session || handle.node->dead) throw nb::value_error("the node is not in the graph any more");
    if (index >= handle.node->input_count) throw nb::index_error("the node has no such input");
    workspace.rewriter().SetInput(handle.node, index, Checked(value));
    if (!handle.node->dead) workspace.Refresh(handle.node);
  }

  ValueHandle Constant(const nb::bytes& bytes, const std::string& dtype, const std::vector<int64_t>& shape,
                       const std::string& name) const {
    Workspace& workspace = Of(session);
    const DataType type = DataTypeFromName(dtype);
    const int bits = BitWidth(type);
    if (bits == 0) throw nb::value_error(fmt::format("{} is not a type of numbers", dtype).c_str());
    int64_t count = 1;
    for (const int64_t dim : shape) {
      if (dim < 0 || __builtin_mul_overflow(count, dim, &count)) throw nb::value_error("the shape is not valid");
    }
    if (count > (int64_t{1} << 40) || (count * bits + 7) / 8 != static_cast<int64_t>(bytes.size())) {
      throw nb::value_error(fmt::format("{} bytes are not {} elements of {}", bytes.size(), count, dtype).c_str());
    }
    const Value* value = workspace.rewriter().Constant(
        &workspace.model().graph(), type, shape, std::string_view(bytes.c_str(), bytes.size()), name.empty() ? "constant" : name);
    InferConstant(value, &workspace.facts());
    return {session, value};
  }
};

template <typename Class, typename Handle, typename Member>
void AddIdentity(Class& of, Member Handle::*member) {
  of.def(
      "__eq__",
      [member](const Handle& a, const nb::object& b) {
        return nb::isinstance<Handle>(b) && a.*member == nb::cast<Handle&>(b).*member;
      },
      nb::arg("other").none());
  of.def("__hash__", [member](const Handle& a) { return reinterpret_cast<intptr_t>(a.*member) >> 4; });
}

void AddValueClass(nb::module_& module) {
  nb::class_<ValueHandle> value(module, "Value", "An edge of the graph. Equal handles are the same value.");
  AddIdentity(value, &ValueHandle::value);
  value.def_prop_ro(
           "name", [](const ValueHandle& v) { return Of(v.session), std::string(ValueName(*v.value)); }, "Its name.")
      .def_prop_ro("dtype", &Dtype, "\"float\", \"float16\", \"int64\" ...; None where it is not known, and before `infer`.")
      .def_prop_ro("shape", &Shape,
                   "A dim is a number, an expression in symbols (\"2*seq\"), or None; None where the rank is not known.")
      .def_prop_ro("elements", &ElementsOf, "The elements of a small tensor, row by row, where they are known.")
      .def_prop_ro("splat", &Splat, "The one number that all elements are, or None.")
      .def_prop_ro(
          "producer", [](const ValueHandle& v) { return Of(v.session), Handle(v.session, v.value->producer); },
          "The node that computes it; None for inputs and constants.")
      .def_prop_ro("consumers", &Consumers, "The nodes that read it.")
      .def_prop_ro(
          "is_input", [](const ValueHandle& v) { return Of(v.session), v.value->is_graph_input; },
          "Whether the model has it as an input.")
      .def_prop_ro(
          "is_output", [](const ValueHandle& v) { return Of(v.session), v.value->is_graph_output; },
          "Whether the model has it as an output.")
      .def_prop_ro(
          "is_constant", [](const ValueHandle& v) { return Of(v.session), v.value->IsConstant(); },
          "Whether it is a constant of the model.")
      .def("__repr__", [](const ValueHandle& v) {
        return v.session->workspace == nullptr
                   ? std::string("<Value of a pass that has ended>")
                   : fmt::format("<Value {}: {}>", ValueName(*v.value), v.session->workspace->facts().Describe(v.value));
      });
}

void AddNodeClass(nb::module_& module) {
  nb::class_<NodeHandle> node(module, "Node", "A node of the graph. Equal handles are the same node.");
  AddIdentity(node, &NodeHandle::node);
  node.def_prop_ro(
          "op_type", [](const NodeHandle& n) { return Of(n.session), std::string(OpType(*n.node)); }, "The operator.")
      .def_prop_ro(
          "domain", [](const NodeHandle& n) { return Of(n.session), std::string(Domain(*n.node)); },
          "The domain of the operator; \"\" for the default one.")
      .def_prop_ro(
          "name", [](const NodeHandle& n) { return Of(n.session), std::string(NodeName(*n.node)); },
          "Its name; \"\" where it has none.")
      .def_prop_ro(
          "inputs",
          [](const NodeHandle& n) {
            Of(n.session);
            std::vector<std::optional<ValueHandle>> inputs;
            for (const Use& use : n.node->inputs()) inputs.push_back(Handle(n.session, use.value));
            return inputs;
          },
          "None: an optional input that is left out.")
      .def_prop_ro(
          "outputs",
          [](const NodeHandle& n) {
            Of(n.session);
            std::vector<std::optional<ValueHandle>> outputs;
            for (const Value* value : n.node->outputs()) outputs.push_back(Handle(n.session, value));
            return outputs;
          },
          "None: an output that is left out.")
      .def_prop_ro("attributes", &Attributes, "By name: numbers, bytes and lists; None stands for a tensor, a graph or a type.")
      .def_prop_ro(
          "alive", [](const NodeHandle& n) { return Of(n.session), !n.node->dead; },
          "False once it was replaced and nothing reads it.")
      .def_prop_ro(
          "site",
          [](const NodeHandle& n) {
            Of(n.session);
            const auto found = n.session->sites.find(n.node);
            return found == n.session->sites.end() ? std::optional<std::string>() : found->second;
          },
          "The kind of the construct that it was made for: such a node belongs to `lower` and `restore`, leave it alone.")
      .def("__repr__", [](const NodeHandle& n) {
        return n.session->workspace == nullptr ? std::string("<Node of a pass that has ended>")
                                               : fmt::format("<Node {}>", PrintNode(*n.node));
      });
}

}  // namespace

void AddGraphClasses(nb::module_& module) {
  AddValueClass(module);
  AddNodeClass(module);
  nb::class_<GraphView>(module, "Graph", "The whole model, to be read; it changes through the rewriter only.")
      .def("nodes", &GraphView::Nodes, nb::arg("op_type") = nb::none(), nb::arg("domain") = "",
           "The nodes that are alive, those of one operator or all; bodies of If, Loop and Scan after the graph around them.")
      .def_prop_ro("inputs", &GraphView::Inputs, "The inputs of the model.")
      .def_prop_ro("outputs", &GraphView::Outputs, "The outputs of the model.")
      .def_prop_ro("opset", &GraphView::Opset, "The opset of the default domain.");
  nb::class_<RewriterHandle>(module, "Rewriter",
                             "The only way to change a graph. Every change can be taken back, and is when the run is a dry one.")
      .def("replace", &RewriterHandle::Replace, nb::arg("outputs"), nb::arg("op_type"), nb::arg("inputs"),
           nb::arg("attributes") = nb::dict(), nb::arg("domain") = "", nb::arg("name") = "",
           "A new node that computes these values, in the place of the nodes that did. Their names and readers stay.")
      .def("insert", &RewriterHandle::Insert, nb::arg("op_type"), nb::arg("inputs"), nb::arg("attributes") = nb::dict(),
           nb::arg("domain") = "", nb::arg("name") = "", nb::arg("outputs") = 1,
           "A new node with new values, after the nodes that compute its inputs.")
      .def("set_input", &RewriterHandle::SetInput, nb::arg("node"), nb::arg("index"), nb::arg("value").none(),
           "Makes that input of the node read another value; None leaves it out.")
      .def("constant", &RewriterHandle::Constant, nb::arg("elements"), nb::arg("dtype"), nb::arg("shape"), nb::arg("name") = "",
           "A constant: elements packed little-endian, as of `numpy.ndarray.tobytes`.");
}

void CallPass(const nb::object& function, Workspace& workspace) {
  const auto session = std::make_shared<Session>();
  session->workspace = &workspace;
  for (const Site& site : workspace.sites) {
    for (const Node* node : site.made) session->sites.emplace(node, site.record.kind);
  }
  // Also when the function raises.
  const std::shared_ptr<Session> end(session.get(), [session](Session* s) { s->workspace = nullptr; });
  function(GraphView{session}, RewriterHandle{session});
}

}  // namespace ascend_fuse::python
