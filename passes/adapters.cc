// Adapters that a rule cannot say: Split and Sum have any number of outputs and inputs, Constant holds a tensor, If has
// bodies. Each is for the forms of one code (patterns/targets) and exact.
#include <algorithm>
#include <string>

#include "fmt/format.h"
#include "ir/onnx/encode.h"
#include "passes/adapt.h"

namespace ascend_fuse {
namespace {

// Inserts nodes beside a node, in its graph, and tells the workspace of them.
class Beside {
 public:
  Beside(Workspace& workspace, const Node& node)
      : workspace_(workspace), graph_(node.graph), name_(Label(node)) {}

  Value* Op(std::string op_type, std::vector<Value*> inputs, std::vector<Attribute> attributes = {}) {
    NewNode plan;
    plan.op_type = std::move(op_type);
    plan.name = fmt::format("{}_{}", name_, plan.op_type);
    plan.inputs = std::move(inputs);
    plan.attributes = std::move(attributes);
    Node* node = workspace_.rewriter().Insert(plan, 1, graph_, plan.name);
    workspace_.Know(node);
    return node->output();
  }

  // A list of numbers, [n].
  Value* Numbers(const std::vector<int64_t>& numbers) {
    Value* value = workspace_.rewriter().Int64Constant(graph_, numbers, name_ + "_constant");
    InferConstant(value, &workspace_.facts());
    return value;
  }

  Value* Squeeze(Value* x, const std::vector<int64_t>& axes) {
    if (workspace_.model().OpsetVersion() >= 13) return Op("Squeeze", {x, Numbers(axes)});
    return Op("Squeeze", {x}, {Attribute::Ints("axes", axes)});
  }

 private:
  Workspace& workspace_;
  Graph* graph_;
  std::string name_;
};

// The node with other inputs and attributes in its place.
void Rewrite(Workspace& workspace, Node* node, std::string op_type, std::vector<Value*> inputs, std::vector<Attribute> attributes) {
  NewNode plan;
  plan.op_type = std::move(op_type);
  plan.name = std::string(NodeName(*node));
  plan.keep_name = !plan.name.empty();
  plan.inputs = std::move(inputs);
  plan.attributes = std::move(attributes);
  const std::vector<Value*> outputs(node->outputs().begin(), node->outputs().end());
  workspace.Know(workspace.rewriter().Replace(outputs, plan));
}

// The sizes of the parts of an axis of length d: n of ceil (d / n), and the last one has what is left.
Value* PartSizes(Workspace& workspace, const Node& node, int64_t axis, int64_t n) {
  Beside beside(workspace, node);
  const Dim d = workspace.facts().Of(node.input(0)).shape[static_cast<size_t>(axis)];
  if (d.is_number()) {
    const int64_t part = (d.number() + n - 1) / n;
    std::vector<int64_t> sizes(static_cast<size_t>(n), part);
    sizes.back() = d.number() - part * (n - 1);
    return sizes.back() < 0 ? nullptr : beside.Numbers(sizes);
  }
  const bool even = workspace.facts().dims().ExactDiv(d, Dim::Of(n)).known();
  Value* const count = beside.Numbers({n});
  Value* const length = beside.Op("Gather", {beside.Op("Shape", {node.input(0)}), beside.Numbers({axis})});
  Value* const part = even ? beside.Op("Div", {length, count})
                           : beside.Op("Div", {beside.Op("Add", {length, beside.Numbers({n - 1})}), count});
  std::vector<Value*> sizes(static_cast<size_t>(n), part);
  if (!even) sizes.back() = beside.Op("Sub", {length, beside.Op("Mul", {part, beside.Numbers({n - 1})})});
  return beside.Op("Concat", sizes, {Attribute::Int("axis", 0)});
}

// Split (x) <num_outputs>: the sizes written out. Where no size stands, ATC looks for the number of outputs in a shape that
// it does not have yet.
bool WriteSplitSizes(Workspace& workspace, Node* node) {
  const Fact& x = workspace.facts().Of(node->input(0));
  const int64_t axis = IntAttribute(*node, "axis").value_or(0);
  const int64_t n = IntAttribute(*node, "num_outputs").value_or(0);
  const int64_t place = axis < 0 ? axis + x.rank() : axis;
  if (!x.has_rank || place < 0 || place >= x.rank() || node->input(1) != nullptr) return false;
  if (n < 1 || n != static_cast<int64_t>(node->output_count)) return false;
  if (!x.shape[static_cast<size_t>(place)].known()) return false;
  Value* sizes = PartSizes(workspace, *node, place, n);
  if (sizes == nullptr) return false;
  Rewrite(workspace, node, "Split", {node->input(0), sizes}, {Attribute::Int("axis", axis)});
  return true;
}

// Sum (a, b, c): Add (Add (a, b), c), which broadcasts.
bool WriteSumAsAdds(Workspace& workspace, Node* node) {
  if (node->input_count < 2) return false;
  Value* sum = node->input(0);
  Beside beside(workspace, *node);
  for (size_t i = 1; i + 1 < node->input_count; ++i) sum = beside.Op("Add", {sum, node->input(i)});
  Rewrite(workspace, node, "Add", {sum, node->input(node->input_count - 1)}, {});
  return true;
}

// Constant <value_float> and its like: the same as a tensor. Texts and sparse tensors stay.
bool WriteConstantAsTensor(Workspace& workspace, Node* node) {
  const std::vector<Attribute> attributes = ReadAttributes(*node);
  if (attributes.size() != 1) return false;
  const Attribute& given = attributes[0];
  const auto integers = [](const int64_t* first, size_t count) {
    return std::string(reinterpret_cast<const char*>(first), count * sizeof(int64_t));
  };
  const auto floats = [](const float* first, size_t count) {
    return std::string(reinterpret_cast<const char*>(first), count * sizeof(float));
  };
  std::string bytes;
  std::vector<int64_t> dims;
  Tensor tensor;
  tensor.storage = Storage::kMemory;
  tensor.type = DataType::kInt64;
  if (given.name == "value_int") {
    bytes = integers(&given.i, 1);
  } else if (given.name == "value_ints") {
    bytes = integers(given.ints.data(), given.ints.size());
    dims = {static_cast<int64_t>(given.ints.size())};
  } else if (given.name == "value_float") {
    tensor.type = DataType::kFloat;
    bytes = floats(&given.f, 1);
  } else if (given.name == "value_floats") {
    tensor.type = DataType::kFloat;
    bytes = floats(given.floats.data(), given.floats.size());
    dims = {static_cast<int64_t>(given.floats.size())};
  } else {
    return false;
  }
  tensor.memory = bytes;
  tensor.dims = dims;
  Rewrite(workspace, node, "Constant", {}, {Attribute::OfTensor("value", tensor)});
  return true;
}

// If (cond) with a cond of shape [1]: ATC takes the number of its elements for it, and with it always the first branch.
bool WriteScalarCondition(Workspace& workspace, Node* node) {
  const Fact& condition = workspace.facts().Of(node->input(0));
  if (!condition.has_rank || condition.rank() == 0) return false;
  std::vector<int64_t> axes;
  for (size_t i = 0; i < condition.shape.size(); ++i) {
    if (!condition.shape[i].is(1)) return false;
    axes.push_back(static_cast<int64_t>(i));
  }
  workspace.rewriter().SetInput(node, 0, Beside(workspace, *node).Squeeze(node->input(0), axes));
  return true;
}

}  // namespace

const std::vector<Adapter>& Adapters() {
  static const auto* const kAdapters = new std::vector<Adapter>{
      {"split-num-outputs", "Split", WriteSplitSizes},
      {"sum-broadcast", "Sum", WriteSumAsAdds},
      {"sum-type", "Sum", WriteSumAsAdds},
      {"constant-value-form", "Constant", WriteConstantAsTensor},
      {"if-condition-rank", "If", WriteScalarCondition},
  };
  return *kAdapters;
}

}  // namespace ascend_fuse
