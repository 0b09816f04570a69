// Writes what a Builder has decided as an ONNX model.
#include <algorithm>
#include <cmath>
#include <limits>

#include "fmt/format.h"
#include "tools/backwards/builder.h"

namespace ascend_fuse::backwards {

class Writer {
 public:
  explicit Writer(Builder* builder) : b_(*builder), random_(builder->random_) {}

  std::optional<Specimen> Run(Frame* frame) {
    specimen_.type = b_.type_;
    specimen_.opset = b_.opset_;
    specimen_.model.set_ir_version(b_.opset_ > 20 ? 10 : 8);
    auto* import = specimen_.model.add_opset_import();
    import->set_domain("");
    import->set_version(b_.opset_);
    graph_ = specimen_.model.mutable_graph();
    graph_->set_name("specimen");
    std::set<std::string> taken;
    b_.values_.reserve(b_.values_.size() + 64);
    // Names of the rule stand for its values.
    for (Frame& of : b_.frames_) {
      for (size_t i = 0; i < of.slots.size(); ++i) {
        if (of.slots[i].kind != Slot::Kind::kValue || names_.count(of.slots[i].value) > 0) continue;
        const std::string& name = of.scope->names[i];
        if (name != "result" && taken.insert(name).second) names_[of.slots[i].value] = name;
      }
    }
    for (size_t i = 0; i < b_.values_.size(); ++i) {
      std::string& name = names_[static_cast<int>(i)];
      if (!name.empty()) continue;
      name = b_.values_[i].name;
      while (!taken.insert(name).second) name += "_" + std::to_string(i);
    }
    int64_t elements = 0;
    for (const GraphValue& value : b_.values_) {
      int64_t count = 1;
      for (int dim : value.dims) count *= b_.NumberOfDim(dim);
      elements = std::max(elements, count);
    }
    if (elements > 300000) return Fail("too many elements");
    ChooseSymbols(frame);
    for (const std::string& name : frame->rule->outputs) {
      const Slot& slot = frame->slots[static_cast<size_t>(frame->scope->Find(name))];
      if (slot.kind != Slot::Kind::kValue) continue;
      if (!Emit(slot.value)) return std::nullopt;
      specimen_.outputs.push_back(names_[slot.value]);
      Declare(slot.value, graph_->add_output());
    }
    for (const auto& [name, made] : specimen_.values) {
      if (made.type == DataType::kUndefined) return Fail("a value without type");
    }
    if (graph_->input_size() == 0) return Fail("no input");
    if (!symbols_.empty()) {
      specimen_.bindings.resize(2);
      for (const auto& [root, name] : symbols_) {
        const int64_t number = b_.NumberOfDim(root);
        specimen_.bindings[0][name] = number;
        specimen_.bindings[1][name] = number == 1 ? 3 : number - 1;
      }
    } else {
      specimen_.bindings.resize(1);
    }
    return specimen_;
  }

 private:
  std::optional<Specimen> Fail(const std::string& why) {
    b_.Fail(why);
    return std::nullopt;
  }
  bool No(const std::string& why) {
    b_.Fail(why);
    return false;
  }

  DataType TypeOf(int value) const { return b_.known_types_[static_cast<size_t>(b_.TypeRoot(value))]; }
  std::vector<int64_t> Numbers(int value) const {
    std::vector<int64_t> numbers;
    for (int dim : b_.values_[static_cast<size_t>(value)].dims) numbers.push_back(b_.NumberOfDim(dim));
    return numbers;
  }
  bool Symbolic(int dim) const { return symbols_.count(b_.Root(dim)) > 0; }
  bool AnySymbolic(int value) const {
    const auto& dims = b_.values_[static_cast<size_t>(value)].dims;
    return std::any_of(dims.begin(), dims.end(), [&](int dim) { return Symbolic(dim); });
  }

  // Dims that no equation holds may differ from run to run: batch, sequence.
  void ChooseSymbols(Frame* frame) {
    if (!random_.Chance(45)) return;
    std::set<int> candidates;
    for (size_t i = 0; i < frame->slots.size(); ++i) {
      const Slot& slot = frame->slots[i];
      if (slot.kind != Slot::Kind::kValue) continue;
      const GraphValue& value = b_.values_[static_cast<size_t>(slot.value)];
      for (size_t k = 0; k + 1 < value.dims.size(); ++k) candidates.insert(b_.Root(value.dims[k]));
    }
    int count = 0;
    for (int root : candidates) {
      const auto& dim = b_.dims_[static_cast<size_t>(root)];
      if (dim.locked || dim.number == 1 || !random_.Chance(60)) continue;
      symbols_[root] = fmt::format("s{}", count++);
    }
  }

  void Declare(int value, onnx::ValueInfoProto* info) {
    info->set_name(names_[value]);
    auto* tensor = info->mutable_type()->mutable_tensor_type();
    tensor->set_elem_type(static_cast<int>(TypeOf(value)));
    auto* shape = tensor->mutable_shape();
    for (int dim : b_.values_[static_cast<size_t>(value)].dims) {
      auto* entry = shape->add_dim();
      if (Symbolic(dim)) {
        entry->set_dim_param(symbols_[b_.Root(dim)]);
      } else {
        entry->set_dim_value(b_.NumberOfDim(dim));
      }
    }
  }

  bool Read(int value) const {
    for (const GraphNode& node : b_.nodes_) {
      if (std::find(node.inputs.begin(), node.inputs.end(), value) != node.inputs.end()) return true;
    }
    for (const Frame& frame : b_.frames_) {
      for (const Slot& slot : frame.slots) {
        if (slot.kind == Slot::Kind::kValue && slot.value == value) return true;
      }
    }
    return false;
  }

  bool Emit(int value) {
    if (!emitted_.insert(value).second) return true;
    const GraphValue& of = b_.values_[static_cast<size_t>(value)];
    if (of.node == kUnknown) return EmitLeaf(value);
    const GraphNode& node = b_.nodes_[static_cast<size_t>(of.node)];
    if (node.ghost) return No("a value that is only thought of");
    for (int output : node.outputs) emitted_.insert(output);
    std::vector<std::string> inputs;
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      const int input = node.inputs[i];
      if (input == kUnknown) {
        inputs.emplace_back();
      } else if (b_.values_[static_cast<size_t>(input)].target) {
        std::string target;
        if (!Target(node, &target)) return false;
        inputs.push_back(target);
      } else {
        if (!Emit(input)) return false;
        inputs.push_back(names_[input]);
      }
    }
    if (inputs.size() == 2 && node.schema != nullptr && node.schema->commutative && random_.Chance(50)) {
      std::swap(inputs[0], inputs[1]);
    }
    onnx::NodeProto made;
    made.set_op_type(node.op);
    made.set_domain(node.domain);
    made.set_name("n_" + names_[node.outputs[0]]);
    for (int output : node.outputs) {
      // An optional output that nothing reads.
      if (node.outputs.size() > 2 && node.op != "Split" && !Read(output)) {
        made.add_output("");
        continue;
      }
      made.add_output(names_[output]);
      specimen_.values[names_[output]] = {TypeOf(output), Numbers(output)};
    }
    if (!Parameters(node, &made, &inputs)) return false;
    while (!inputs.empty() && inputs.back().empty()) inputs.pop_back();
    for (const std::string& input : inputs) made.add_input(input);
    *graph_->add_node() = made;
    return true;
  }

  bool Parameters(const GraphNode& node, onnx::NodeProto* made, std::vector<std::string>* inputs) {
    for (const Parameter& parameter : node.parameters) {
      const SchemaAttribute* row = node.schema->FindAttribute(parameter.name);
      if (parameter.kind == Parameter::Kind::kFree) continue;
      std::vector<int64_t> ints = parameter.ints;
      if (parameter.kind == Parameter::Kind::kNumber) ints = {static_cast<int64_t>(parameter.number)};
      // Axes count from either end.
      if ((parameter.name == "axes" || parameter.name == "axis") && !node.inputs.empty() && node.inputs[0] != kUnknown &&
          !node.axes_from_end && random_.Chance(40)) {
        const int of = node.op == "Unsqueeze" ? node.outputs[0] : node.inputs[0];
        const int64_t rank = static_cast<int64_t>(b_.values_[static_cast<size_t>(of)].dims.size());
        for (int64_t& axis : ints) {
          if (rank > 0) axis = axis < 0 ? axis + rank : axis - rank;
        }
      }
      if (row == nullptr && (parameter.name == "min" || parameter.name == "max")) {
        const size_t index = static_cast<size_t>(std::max(0, node.schema->FindInput(parameter.name)));
        if (inputs->size() <= index) inputs->resize(index + 1);
        (*inputs)[index] = Scalar(fmt::format("{}_{}", parameter.name, ++count_), TypeOf(node.outputs[0]), parameter.number);
        continue;
      }
      if (row == nullptr) {
        if (!Put(node, parameter.name, ints, inputs)) return false;
        continue;
      }
      // What is the default may be left out.
      if (row->has_default && random_.Chance(50)) {
        if (row->type == AttributeType::kInt && ints.size() == 1 && ints[0] == row->default_value.i) continue;
        if (row->type == AttributeType::kString && parameter.text == row->default_value.s) continue;
      }
      SetAttribute(*row, parameter, ints, made);
    }
    const bool has_to = std::any_of(made->attribute().begin(), made->attribute().end(),
                                    [](const onnx::AttributeProto& a) { return a.name() == "to"; });
    if (node.op == "Cast" && !has_to) {
      auto* attribute = made->add_attribute();
      attribute->set_name("to");
      attribute->set_type(onnx::AttributeProto::INT);
      attribute->set_i(static_cast<int64_t>(TypeOf(node.outputs[0])));
    }
    return node.half == kUnknown || HalfParameters(node, made, inputs);
  }

  // Parameters that are operands at this opset.
  bool Put(const GraphNode& node, const std::string& name, const std::vector<int64_t>& numbers,
           std::vector<std::string>* inputs) {
    const int index = node.schema->FindInput(name);
    if (index < 0) return No(fmt::format("{} has no parameter {}", node.op, name));
    if (inputs->size() <= static_cast<size_t>(index)) inputs->resize(static_cast<size_t>(index) + 1);
    (*inputs)[static_cast<size_t>(index)] = Integers(name, numbers);
    return true;
  }

  static void SetAttribute(const SchemaAttribute& row, const Parameter& parameter, const std::vector<int64_t>& ints,
                           onnx::NodeProto* made) {
    auto* attribute = made->add_attribute();
    attribute->set_name(parameter.name);
    switch (row.type) {
      case AttributeType::kInt:
        attribute->set_type(onnx::AttributeProto::INT);
        attribute->set_i(parameter.kind == Parameter::Kind::kType ? static_cast<int64_t>(parameter.type)
                         : ints.empty()                           ? 0
                                                                  : ints[0]);
        break;
      case AttributeType::kFloat:
        attribute->set_type(onnx::AttributeProto::FLOAT);
        attribute->set_f(static_cast<float>(parameter.number));
        break;
      case AttributeType::kString:
        attribute->set_type(onnx::AttributeProto::STRING);
        attribute->set_s(parameter.text);
        break;
      default:
        attribute->set_type(onnx::AttributeProto::INTS);
        for (int64_t number : ints) attribute->add_ints(number);
    }
  }

  // Those of a node that gives a part of its operand.
  bool HalfParameters(const GraphNode& node, onnx::NodeProto* made, std::vector<std::string>* inputs) {
    const std::vector<int64_t> whole = Numbers(node.inputs[0]);
    const int64_t size = whole.back() / node.parts;
    const int64_t last = random_.Chance(60) ? -1 : static_cast<int64_t>(whole.size()) - 1;
    auto add = [&](const std::string& name, int64_t number) {
      auto* attribute = made->add_attribute();
      attribute->set_name(name);
      attribute->set_type(onnx::AttributeProto::INT);
      attribute->set_i(number);
    };
    if (node.op == "Gather") {
      add("axis", last);
    } else if (node.op == "Slice") {
      static const std::vector<int64_t> kEnds = {std::numeric_limits<int64_t>::max(), std::numeric_limits<int32_t>::max()};
      const bool at_end = node.strided || node.half == node.parts - 1;
      int64_t start = node.strided ? node.half : node.half * size;
      int64_t end = !at_end ? start + size : random_.Chance(50) ? whole.back() : random_.Pick(kEnds);
      if (start > 0 && random_.Chance(30)) start -= whole.back();
      if (!at_end && random_.Chance(20)) end -= whole.back();
      if (!Put(node, "starts", {start}, inputs) || !Put(node, "ends", {end}, inputs) || !Put(node, "axes", {last}, inputs))
        return false;
      if (node.strided) return Put(node, "steps", {node.parts}, inputs);
      return !random_.Chance(60) || Put(node, "steps", {1}, inputs);
    } else if (node.op == "Split") {
      if (last != 0 || whole.size() > 1) add("axis", last);
      if (random_.Chance(50)) return Put(node, "split", std::vector<int64_t>(static_cast<size_t>(node.parts), size), inputs);
      if (node.schema->FindAttribute("num_outputs") != nullptr) add("num_outputs", node.parts);
    }
    return true;
  }

  std::string Integers(const std::string& base, const std::vector<int64_t>& numbers) {
    const std::string name = fmt::format("{}_{}", base, ++count_);
    *graph_->add_initializer() = IntTensor(name, {static_cast<int64_t>(numbers.size())}, numbers);
    specimen_.values[name] = {DataType::kInt64, {static_cast<int64_t>(numbers.size())}};
    return name;
  }

  // The shape operand of Reshape and Expand: numbers, -1 and 0 for what may differ from run to run.
  bool Target(const GraphNode& node, std::string* name) {
    const std::vector<int> out = b_.values_[static_cast<size_t>(node.outputs[0])].dims;
    const std::vector<int> in = b_.values_[static_cast<size_t>(node.inputs[0])].dims;
    std::vector<int64_t> numbers;
    bool inferred = false;
    for (size_t i = 0; i < out.size(); ++i) {
      if (!Symbolic(out[i])) {
        numbers.push_back(b_.NumberOfDim(out[i]));
      } else if (node.op == "Expand") {
        numbers.push_back(1);
      } else if (i < in.size() && b_.Root(in[i]) == b_.Root(out[i]) && (inferred || random_.Chance(60))) {
        numbers.push_back(0);
      } else if (!inferred) {
        inferred = true;
        numbers.push_back(-1);
      } else {
        return No("two dims of a Reshape differ from run to run");
      }
    }
    if (node.op == "Reshape" && !inferred && !numbers.empty() && random_.Chance(30)) {
      numbers[static_cast<size_t>(random_.Below(static_cast<int>(numbers.size())))] = -1;
    }
    *name = Integers("dims", numbers);
    return true;
  }

  void Constant(const std::string& name, const onnx::TensorProto& tensor) {
    if (random_.Chance(75)) {
      *graph_->add_initializer() = tensor;
      return;
    }
    auto* node = graph_->add_node();
    node->set_op_type("Constant");
    node->set_name("n_" + name);
    node->add_output(name);
    auto* attribute = node->add_attribute();
    attribute->set_name("value");
    attribute->set_type(onnx::AttributeProto::TENSOR);
    *attribute->mutable_t() = tensor;
  }

  // Whether a node reads it beside a value without axes, which one axis more would change.
  bool MeetsAScalar(int value) {
    const auto has_no_axes = [&](int other) {
      return other >= 0 && other != value && b_.Shaped(other) && b_.DimsOf(other).empty();
    };
    return std::any_of(b_.nodes_.begin(), b_.nodes_.end(), [&](const GraphNode& node) {
      return std::find(node.inputs.begin(), node.inputs.end(), value) != node.inputs.end() &&
             std::any_of(node.inputs.begin(), node.inputs.end(), has_no_axes);
    });
  }

  bool EmitLeaf(int value) {
    const GraphValue& of = b_.values_[static_cast<size_t>(value)];
    const std::string name = names_[value];
    const DataType type = TypeOf(value);
    if (of.scalar) {
      if (!IsFloat(type)) return No("a constant that is not a float");
      std::vector<int64_t> dims;
      if (!MeetsAScalar(value) && random_.Chance(30)) dims = {1};
      Constant(name, FloatTensor(name, type, dims, {b_.NumberOf(value)}));
      specimen_.values[name] = {type, dims};
      return true;
    }
    if (!of.shaped) return No(fmt::format("the shape of {} is not known", name));
    specimen_.values[name] = {type, Numbers(value)};
    if (of.constant) return EmitConstant(value);
    if (of.mask && IsFloat(type)) return EmitMask(value);
    // A weight, where the graph has an input already.
    if (IsFloat(type) && !AnySymbolic(value) && graph_->input_size() > 0 && random_.Chance(of.dims.size() == 1 ? 70 : 15)) {
      int64_t count = 1;
      for (int64_t dim : Numbers(value)) count *= dim;
      std::vector<double> elements(static_cast<size_t>(count));
      for (double& element : elements) element = random_.Normal();
      *graph_->add_initializer() = FloatTensor(name, type, Numbers(value), elements);
      return true;
    }
    Declare(value, graph_->add_input());
    return true;
  }

  // A weight, or numbers that a hint gave.
  bool EmitConstant(int value) {
    const GraphValue& of = b_.values_[static_cast<size_t>(value)];
    const std::vector<int64_t> dims = Numbers(value);
    int64_t count = 1;
    for (int64_t dim : dims) count *= dim;
    const double deviation = of.fan_in == kUnknown ? 1 : 1 / std::sqrt(static_cast<double>(b_.NumberOfDim(of.fan_in)));
    std::vector<double> elements(static_cast<size_t>(count));
    for (int64_t i = 0; i < count; ++i) {
      elements[static_cast<size_t>(i)] = of.element ? of.element(i, count) : deviation * random_.Normal();
    }
    if (IsFloat(TypeOf(value))) {
      *graph_->add_initializer() = FloatTensor(names_[value], TypeOf(value), dims, elements);
      return true;
    }
    if (TypeOf(value) != DataType::kInt64) return No("a constant of another type");
    *graph_->add_initializer() = IntTensor(names_[value], dims, std::vector<int64_t>(elements.begin(), elements.end()));
    return true;
  }

  void Node(const std::string& op, const std::vector<std::string>& inputs, const std::string& output, const ValueInfo& info,
            std::optional<int64_t> to = std::nullopt) {
    auto* node = graph_->add_node();
    node->set_op_type(op);
    node->set_name("n_" + output);
    for (const std::string& input : inputs) node->add_input(input);
    node->add_output(output);
    if (to.has_value()) {
      auto* attribute = node->add_attribute();
      attribute->set_name("to");
      attribute->set_type(onnx::AttributeProto::INT);
      attribute->set_i(*to);
    }
    specimen_.values[output] = info;
  }

  std::string Scalar(const std::string& name, DataType type, double number) {
    *graph_->add_initializer() = FloatTensor(name, type, {}, {number});
    specimen_.values[name] = {type, {}};
    return name;
  }

  // An additive mask from booleans or from the 0 and 1 of a tokenizer.
  bool EmitMask(int value) {
    const std::string name = names_[value];
    const DataType type = TypeOf(value);
    const std::vector<int64_t> dims = Numbers(value);
    // Below every score that the random factors of a graph can make: -1e4 is not.
    static const std::vector<double> kFills = {-std::numeric_limits<double>::infinity(), -65504};
    static const std::vector<double> kWideFills = {-std::numeric_limits<double>::infinity(), -1e9,
                                                   std::numeric_limits<float>::lowest()};
    const double fill = random_.Pick(type == DataType::kFloat ? kWideFills : kFills);
    const int form = random_.Below(4);
    auto* input = graph_->add_input();
    Declare(value, input);
    input->set_name(name + "_keep");
    const bool integers = form == 3;
    input->mutable_type()->mutable_tensor_type()->set_elem_type(integers ? onnx::TensorProto::INT64 : onnx::TensorProto::BOOL);
    specimen_.values[input->name()] = {integers ? DataType::kInt64 : DataType::kBool, dims};
    switch (form) {
      case 0:
        Node("Where", {name + "_keep", Scalar(name + "_zero", type, 0), Scalar(name + "_fill", type, fill)}, name, {type, dims});
        break;
      case 1:
        Node("Not", {name + "_keep"}, name + "_masked", {DataType::kBool, dims});
        Node("Where", {name + "_masked", Scalar(name + "_fill", type, fill), Scalar(name + "_zero", type, 0)}, name,
             {type, dims});
        break;
      default: {
        // (1 - keep) * a large negative number
        Node("Cast", {name + "_keep"}, name + "_number", {type, dims}, static_cast<int64_t>(type));
        Node("Sub", {Scalar(name + "_one", type, 1), name + "_number"}, name + "_inverted", {type, dims});
        Node("Mul", {name + "_inverted", Scalar(name + "_fill", type, fill < -65504 ? -65504 : fill)}, name, {type, dims});
      }
    }
    return true;
  }

  Builder& b_;
  Random& random_;
  Specimen specimen_;
  onnx::GraphProto* graph_ = nullptr;
  std::map<int, std::string> names_;
  std::map<int, std::string> symbols_;  // by root
  std::set<int> emitted_;
  int count_ = 0;
};

std::optional<Specimen> Builder::Write(Frame* frame) { return Writer(this).Run(frame); }

}  // namespace ascend_fuse::backwards
