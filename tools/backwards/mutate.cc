// What is put on edges without changing a number (AddNoise), and the ways in which a graph is changed in one
// place (Mutate).
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <set>
#include <utility>

#include "fmt/format.h"
#include "ir/schema.h"
#include "tools/backwards/generator.h"

namespace ascend_fuse::backwards {
namespace {

std::string Fresh(const onnx::GraphProto& graph, const std::string& base) {
  std::set<std::string> taken;
  for (const auto& node : graph.node()) taken.insert(node.output().begin(), node.output().end());
  for (const auto& tensor : graph.initializer()) taken.insert(tensor.name());
  for (const auto& input : graph.input()) taken.insert(input.name());
  std::string name = base;
  for (int i = 1; taken.count(name) > 0; ++i) name = fmt::format("{}_{}", base, i);
  return name;
}

void Insert(onnx::GraphProto* graph, int place, const std::vector<onnx::NodeProto>& nodes) {
  onnx::GraphProto old = *graph;
  graph->clear_node();
  for (int i = 0; i <= old.node_size(); ++i) {
    if (i == place) {
      for (const auto& node : nodes) *graph->add_node() = node;
    }
    if (i < old.node_size()) *graph->add_node() = old.node(i);
  }
}

onnx::NodeProto MakeNode(const std::string& op, const std::vector<std::string>& inputs, const std::string& output) {
  onnx::NodeProto node;
  node.set_op_type(op);
  node.set_name("n_" + output);
  for (const std::string& input : inputs) node.add_input(input);
  node.add_output(output);
  return node;
}

onnx::AttributeProto* AddInt(onnx::NodeProto* node, const std::string& name, int64_t value) {
  auto* attribute = node->add_attribute();
  attribute->set_name(name);
  attribute->set_type(onnx::AttributeProto::INT);
  attribute->set_i(value);
  return attribute;
}

void AddInts(onnx::NodeProto* node, const std::string& name, const std::vector<int64_t>& values) {
  auto* attribute = node->add_attribute();
  attribute->set_name(name);
  attribute->set_type(onnx::AttributeProto::INTS);
  for (int64_t value : values) attribute->add_ints(value);
}

bool IsFloatValue(const Specimen& specimen, const std::string& name) {
  const auto found = specimen.values.find(name);
  return found != specimen.values.end() && IsFloat(found->second.type);
}

bool Dynamic(const Specimen& specimen) { return !specimen.bindings.empty() && !specimen.bindings[0].empty(); }

// What an edge can get without a change of any number. Each kind returns its name, or "" where it does not fit this edge.
class EdgeNoise {
 public:
  EdgeNoise(Specimen* specimen, Random* random, std::string value)
      : specimen_(*specimen),
        random_(*random),
        graph_(specimen->model.mutable_graph()),
        value_(std::move(value)),
        info_(specimen->values[value_]),
        rank_(static_cast<int64_t>(info_.dims.size())),
        name_(Fresh(*graph_, value_ + "_copy")) {}

  // `place`: of the node that reads the edge.
  std::string Make(int place) {
    switch (random_.Below(10)) {
      case 0:
        return One("Identity", "Identity", {value_});
      case 1:
        One("Cast", "Cast", {value_});
        AddInt(&made_[0], "to", static_cast<int64_t>(info_.type));
        return "Cast";
      case 2:
        return Slice();
      case 3:
        if (Dynamic(specimen_) || rank_ == 0) return "";
        return One("Reshape", "Reshape", {value_, Integers("same", info_.dims)});
      case 4:
        return One("Mul 1", "Mul", {value_, Scalar(1)});
      case 5:
        return One("Add 0", "Add", {Scalar(0), value_});
      case 6:
        return Transposes();
      case 7:
        if (rank_ == 0) return "";
        One("Concat of one", "Concat", {value_});
        AddInt(&made_[0], "axis", random_.Below(static_cast<int>(rank_)));
        return "Concat of one";
      case 8:
        return One("Dropout", "Dropout", {value_});
      default:
        return Repeated(place);
    }
  }

  const std::string& name() const { return name_; }
  const ValueInfo& info() const { return info_; }
  const std::vector<onnx::NodeProto>& made() const { return made_; }

 private:
  std::string One(const std::string& kind, const std::string& op, const std::vector<std::string>& inputs) {
    made_.push_back(MakeNode(op, inputs, name_));
    return kind;
  }

  std::string Integers(const std::string& base, const std::vector<int64_t>& numbers) {
    const std::string tensor = Fresh(*graph_, base);
    *graph_->add_initializer() = IntTensor(tensor, {static_cast<int64_t>(numbers.size())}, numbers);
    return tensor;
  }

  std::string Scalar(double number) {
    const std::string tensor = Fresh(*graph_, "neutral");
    *graph_->add_initializer() = FloatTensor(tensor, info_.type, {}, {number});
    return tensor;
  }

  std::string Slice() {
    if (rank_ == 0) return "";
    const std::string starts = Integers("starts", {0});
    const std::string ends = Integers("ends", {std::numeric_limits<int64_t>::max()});
    const std::string axes = Integers("axes", {random_.Below(static_cast<int>(rank_))});
    return One("Slice", "Slice", {value_, starts, ends, axes});
  }

  std::string Transposes() {
    if (rank_ < 2) return "";
    std::vector<int64_t> perm;
    for (int64_t i = 0; i < rank_; ++i) perm.push_back(i);
    for (size_t i = perm.size() - 1; i > 0; --i) {
      std::swap(perm[i], perm[static_cast<size_t>(random_.Below(static_cast<int>(i) + 1))]);
    }
    std::vector<int64_t> back(perm.size());
    for (size_t i = 0; i < perm.size(); ++i) back[static_cast<size_t>(perm[i])] = static_cast<int64_t>(i);
    const std::string between = Fresh(*graph_, value_ + "_turned");
    made_.push_back(MakeNode("Transpose", {value_}, between));
    AddInts(&made_[0], "perm", perm);
    made_.push_back(MakeNode("Transpose", {between}, name_));
    AddInts(&made_[1], "perm", back);
    std::vector<int64_t> dims;
    for (int64_t axis : perm) dims.push_back(info_.dims[static_cast<size_t>(axis)]);
    specimen_.values[between] = {info_.type, dims};
    return "Transposes";
  }

  // The same computed again, as exporters write shared parts.
  std::string Repeated(int place) {
    int producer = -1;
    for (int i = 0; i < place; ++i) {
      if (graph_->node(i).output_size() == 1 && graph_->node(i).output(0) == value_) producer = i;
    }
    if (producer < 0 || graph_->node(producer).op_type() == "Constant") return "";
    made_.push_back(graph_->node(producer));
    made_[0].set_output(0, name_);
    made_[0].set_name("n_" + name_);
    return "repeated";
  }

  Specimen& specimen_;
  Random& random_;
  onnx::GraphProto* graph_;
  const std::string value_;
  const ValueInfo info_;
  const int64_t rank_;
  const std::string name_;  // of the copy
  std::vector<onnx::NodeProto> made_;
};

}  // namespace

std::vector<std::string> AddNoise(Specimen* specimen, Random* random, int count) {
  std::vector<std::string> kinds;
  for (int n = 0; n < count; ++n) {
    onnx::GraphProto* graph = specimen->model.mutable_graph();
    std::vector<std::pair<int, int>> edges;
    for (int i = 0; i < graph->node_size(); ++i) {
      for (int k = 0; k < graph->node(i).input_size(); ++k) {
        if (IsFloatValue(*specimen, graph->node(i).input(k))) edges.emplace_back(i, k);
      }
    }
    if (edges.empty()) return kinds;
    const auto [place, operand] = random->Pick(edges);
    EdgeNoise noise(specimen, random, graph->node(place).input(operand));
    const std::string kind = noise.Make(place);
    if (kind.empty()) continue;
    specimen->values[noise.name()] = noise.info();
    graph->mutable_node(place)->set_input(operand, noise.name());
    Insert(graph, place, noise.made());
    kinds.push_back(kind);
  }
  return kinds;
}

namespace {

class Mutator {
 public:
  Mutator(const Specimen& specimen, Random* random) : specimen_(specimen), random_(*random) {}

  std::vector<Mutant> Run() {
    const onnx::GraphProto& graph = specimen_.model.graph();
    for (int i = 0; i < graph.initializer_size(); ++i) {
      Constants(graph.initializer(i), [i](onnx::GraphProto* g) { return g->mutable_initializer(i); });
    }
    for (int i = 0; i < graph.node_size(); ++i) {
      const onnx::NodeProto& node = graph.node(i);
      if (node.op_type() == "Constant") {
        Constants(node.attribute(0).t(),
                  [i](onnx::GraphProto* g) { return g->mutable_node(i)->mutable_attribute(0)->mutable_t(); });
        continue;
      }
      Attributes(i);
      Operands(i);
      Operator(i);
      Outputs(i);
    }
    return std::move(mutants_);
  }

 private:
  onnx::GraphProto* Add(const std::string& description) {
    mutants_.push_back({specimen_.model, description});
    return mutants_.back().model.mutable_graph();
  }

  template <typename Find>
  void Constants(const onnx::TensorProto& tensor, Find find) {
    const DataType type = static_cast<DataType>(tensor.data_type());
    const std::vector<int64_t> dims(tensor.dims().begin(), tensor.dims().end());
    int64_t count = 1;
    for (int64_t dim : dims) count *= dim;
    if (type == DataType::kInt64) {
      std::vector<int64_t> numbers(static_cast<size_t>(count));
      std::memcpy(numbers.data(), tensor.raw_data().data(), numbers.size() * 8);
      for (size_t i = 0; i < numbers.size(); ++i) {
        for (int64_t step : {int64_t{1}, int64_t{-1}}) {
          if (step > 0 && numbers[i] == std::numeric_limits<int64_t>::max()) continue;
          std::vector<int64_t> changed = numbers;
          changed[i] += step;
          *find(Add(fmt::format("{}[{}] {} -> {}", tensor.name(), i, numbers[i], changed[i]))) =
              IntTensor(tensor.name(), dims, changed);
        }
        if (i > 0 && numbers[i] != numbers[i - 1]) {
          std::vector<int64_t> changed = numbers;
          std::swap(changed[i], changed[i - 1]);
          *find(Add(fmt::format("{}: elements {} and {} exchanged", tensor.name(), i - 1, i))) =
              IntTensor(tensor.name(), dims, changed);
        }
      }
      return;
    }
    if (count != 1 || (type != DataType::kFloat && type != DataType::kFloat16)) return;
    double number = 0;
    if (type == DataType::kFloat) {
      float value = 0;
      std::memcpy(&value, tensor.raw_data().data(), sizeof value);
      number = static_cast<double>(value);
    } else {
      number = Half(tensor.raw_data());
    }
    // By little more than what matching forgives (1e-4 in float32, 1e-3 in float16), by much, in sign.
    const double little = type == DataType::kFloat ? 3e-4 : 3e-3;
    for (double changed :
         {number * (1 + little), number * (1 - little), number * 1.5 + 0.1, number * 0.5, -number, number + 1, 0.0}) {
      if (changed == number || !std::isfinite(changed)) continue;
      if (changed == 0 && Divides(tensor.name())) continue;  // nothing is right there
      *find(Add(fmt::format("{} {} -> {}", tensor.name(), number, changed))) = FloatTensor(tensor.name(), type, dims, {changed});
    }
    for (const std::vector<int64_t>& shape :
         {std::vector<int64_t>{}, std::vector<int64_t>{1}, std::vector<int64_t>{1, 1}, std::vector<int64_t>{1, 1, 1, 1, 1}}) {
      if (shape == dims) continue;
      *find(Add(fmt::format("{} of rank {}", tensor.name(), shape.size()))) = FloatTensor(tensor.name(), type, shape, {number});
    }
  }

  bool Divides(const std::string& name) const {
    const auto& nodes = specimen_.model.graph().node();
    return std::any_of(nodes.begin(), nodes.end(), [&](const onnx::NodeProto& node) {
      return node.op_type() == "Div" && node.input_size() == 2 && node.input(1) == name;
    });
  }

  // What fills masks: as a factor it makes scores that no fill is below.
  bool IsFill(const std::string& name) const {
    for (const auto& tensor : specimen_.model.graph().initializer()) {
      if (tensor.name() != name || tensor.dims_size() > 1) continue;
      if (tensor.data_type() == onnx::TensorProto::FLOAT && tensor.raw_data().size() == 4) {
        float number = 0;
        std::memcpy(&number, tensor.raw_data().data(), sizeof number);
        return std::fabs(number) > 1000;
      }
      if (tensor.data_type() == onnx::TensorProto::FLOAT16 && tensor.raw_data().size() == 2) {
        return std::fabs(Half(tensor.raw_data())) > 1000;
      }
    }
    for (const auto& node : specimen_.model.graph().node()) {
      if (node.op_type() == "Constant" && node.output(0) == name) return true;
    }
    return false;
  }

  static double Half(const std::string& bytes) {
    const uint16_t bits = static_cast<uint16_t>(static_cast<uint8_t>(bytes[0]) | (static_cast<uint8_t>(bytes[1]) << 8));
    const int exponent = (bits >> 10) & 31;
    const int fraction = bits & 1023;
    const double sign = (bits & 0x8000) != 0 ? -1 : 1;
    if (exponent == 31) return sign * std::numeric_limits<double>::infinity();
    return sign * (exponent == 0 ? std::ldexp(fraction, -24) : std::ldexp(1024 + fraction, exponent - 25));
  }

  void Attributes(int index) {
    const onnx::NodeProto& node = specimen_.model.graph().node(index);
    auto change = [&](int a, const std::string& to) {
      return Add(fmt::format("{} {}: {} -> {}", node.op_type(), node.name(), node.attribute(a).name(), to))
          ->mutable_node(index)
          ->mutable_attribute(a);
    };
    for (int a = 0; a < node.attribute_size(); ++a) {
      const onnx::AttributeProto& attribute = node.attribute(a);
      if (attribute.type() == onnx::AttributeProto::INT) {
        if (attribute.name() == "to") {
          for (DataType type : {DataType::kFloat, DataType::kFloat16, DataType::kInt32, DataType::kDouble}) {
            if (static_cast<int64_t>(type) == attribute.i()) continue;
            change(a, std::string(DataTypeName(type)))->set_i(static_cast<int64_t>(type));
          }
          continue;
        }
        for (int64_t number : {attribute.i() + 1, attribute.i() - 1, int64_t{0}}) {
          // ONNX Runtime aborts on a Split into fewer parts than it has outputs.
          if (attribute.name() == "num_outputs" && number < node.output_size()) continue;
          if (number != attribute.i()) change(a, std::to_string(number))->set_i(number);
        }
      } else if (attribute.type() == onnx::AttributeProto::FLOAT) {
        for (float number : {attribute.f() * 1.001F, attribute.f() * 3 + 0.1F, -attribute.f(), 0.0F}) {
          if (number != attribute.f()) change(a, std::to_string(number))->set_f(number);
        }
      } else if (attribute.type() == onnx::AttributeProto::INTS) {
        for (int i = 0; i < attribute.ints_size(); ++i) {
          if (attribute.name() != "perm") {
            change(a, fmt::format("[{}] + 1", i))->set_ints(i, attribute.ints(i) + 1);
            change(a, fmt::format("[{}] - 1", i))->set_ints(i, attribute.ints(i) - 1);
          }
          for (int k = 0; k < i; ++k) {
            auto* changed = change(a, fmt::format("{} and {} exchanged", k, i));
            const int64_t first = changed->ints(k);
            changed->set_ints(k, changed->ints(i));
            changed->set_ints(i, first);
          }
        }
      } else if (attribute.type() == onnx::AttributeProto::STRING) {
        for (const char* text : {"none", "tanh"}) {
          if (attribute.s() != text) change(a, text)->set_s(text);
        }
      }
    }
    // Attributes that are not there.
    for (int a = 0; a < node.attribute_size(); ++a) {
      Add(fmt::format("{} {}: without {}", node.op_type(), node.name(), node.attribute(a).name()))
          ->mutable_node(index)
          ->mutable_attribute()
          ->DeleteSubrange(a, 1);
    }
    const Schema* schema = FindSchema(node.domain(), node.op_type(), specimen_.opset);
    if (schema == nullptr) return;
    for (const SchemaAttribute& row : schema->attributes) {
      const bool given = std::any_of(node.attribute().begin(), node.attribute().end(),
                                     [&](const onnx::AttributeProto& a) { return a.name() == row.name; });
      // Split into fewer parts than outputs aborts ONNX Runtime; what only float8 has makes it leave any other output unwritten.
      if (given || row.type != AttributeType::kInt || row.name == "saturate" || row.name == "num_outputs") continue;
      auto* changed = Add(fmt::format("{} {}: {} = {}", node.op_type(), node.name(), row.name,
                                      (row.has_default ? row.default_value.i : 0) + 1))
                          ->mutable_node(index);
      AddInt(changed, std::string(row.name), (row.has_default ? row.default_value.i : 0) + 1);
    }
  }

  void Operands(int index) {
    const onnx::GraphProto& graph = specimen_.model.graph();
    const onnx::NodeProto& node = graph.node(index);
    const Schema* schema = FindSchema(node.domain(), node.op_type(), specimen_.opset);
    // Exchanged, where the order counts. (Where it does not, generated graphs have both.)
    // A number divided by scores near 0 is larger than what fills a mask.
    const bool scores = node.op_type() == "Div" && std::any_of(graph.node().begin(), graph.node().end(),
                                                               [](const auto& other) { return other.op_type() == "Softmax"; });
    if ((schema == nullptr || !schema->commutative) && !scores) {
      for (int i = 1; i < node.input_size(); ++i) {
        if (node.input(i).empty() || node.input(i - 1).empty() || node.input(i) == node.input(i - 1)) continue;
        if (node.op_type() == "Slice" && i == 2) continue;  // from the end to the start: nothing, which ORT's Concat skips
        auto* changed =
            Add(fmt::format("{} {}: operands {} and {} exchanged", node.op_type(), node.name(), i - 1, i))->mutable_node(index);
        changed->set_input(i - 1, node.input(i));
        changed->set_input(i, node.input(i - 1));
      }
    }
    std::vector<std::string> before;
    for (const auto& input : graph.input()) before.push_back(input.name());
    for (const auto& tensor : graph.initializer()) before.push_back(tensor.name());
    for (int i = 0; i < index; ++i) before.insert(before.end(), graph.node(i).output().begin(), graph.node(i).output().end());
    for (int i = 0; i < node.input_size(); ++i) {
      const auto own = specimen_.values.find(node.input(i));
      if (own == specimen_.values.end()) continue;
      // Another value of the same type and shape.
      std::vector<std::string> others;
      for (const std::string& name : before) {
        const auto found = specimen_.values.find(name);
        if (name == node.input(i) || found == specimen_.values.end()) continue;
        if (found->second.type != own->second.type || found->second.dims != own->second.dims) continue;
        if (own->second.dims.size() < 2 && (IsFill(name) || (i == 1 && node.op_type() == "Div"))) continue;
        others.push_back(name);
      }
      for (int n = 0; n < 2 && !others.empty(); ++n) {
        const std::string other = random_.Pick(others);
        Add(fmt::format("{} {}: operand {} {} -> {}", node.op_type(), node.name(), i, node.input(i), other))
            ->mutable_node(index)
            ->set_input(i, other);
      }
      if (!IsFloat(own->second.type)) continue;
      // Another input of the graph.
      for (const auto& input : graph.input()) {
        if (input.name() != node.input(i)) continue;
        auto* changed = Add(fmt::format("{} {}: operand {} {} -> a new input", node.op_type(), node.name(), i, node.input(i)));
        auto* added = changed->add_input();
        *added = input;
        added->set_name(Fresh(graph, "other"));
        changed->mutable_node(index)->set_input(i, added->name());
      }
      ChangedCopies(index, i, own->second);
    }
  }

  // An operand that is not the same any more: rounded to half precision and back, negated, turned, cut and shifted.
  void ChangedCopies(int index, int i, const ValueInfo& own) {
    const onnx::GraphProto& graph = specimen_.model.graph();
    const onnx::NodeProto& node = graph.node(index);
    const std::string copy = Fresh(graph, node.input(i) + "_changed");
    auto through = [&](const std::string& what, const std::vector<onnx::NodeProto>& nodes) {
      auto* changed = Add(fmt::format("{} {}: operand {} {} {}", node.op_type(), node.name(), i, node.input(i), what));
      changed->mutable_node(index)->set_input(i, nodes.back().output(0));
      Insert(changed, index, nodes);
      return changed;
    };
    std::vector<onnx::NodeProto> casts = {MakeNode("Cast", {node.input(i)}, copy + "_half"),
                                          MakeNode("Cast", {copy + "_half"}, copy)};
    AddInt(&casts[0], "to", static_cast<int64_t>(own.type == DataType::kFloat ? DataType::kFloat16 : DataType::kFloat));
    AddInt(&casts[1], "to", static_cast<int64_t>(own.type));
    through("to another precision and back", casts);
    casts.pop_back();
    through("of another precision", casts);
    if (random_.Chance(50)) through("negated", {MakeNode("Neg", {node.input(i)}, copy)});
    if (random_.Chance(30)) through("made positive", {MakeNode("Abs", {node.input(i)}, copy)});
    const std::vector<int64_t>& dims = own.dims;
    if (dims.size() >= 2) {
      std::vector<int64_t> perm;
      for (size_t k = 0; k < dims.size(); ++k) perm.push_back(static_cast<int64_t>(k));
      const size_t a = static_cast<size_t>(random_.Below(static_cast<int>(dims.size())));
      const size_t b = (a + 1) % dims.size();
      std::swap(perm[a], perm[b]);
      std::vector<onnx::NodeProto> turned = {MakeNode("Transpose", {node.input(i)}, copy)};
      AddInts(&turned[0], "perm", perm);
      through("transposed", turned);
      if (!Dynamic(specimen_) && dims[a] != dims[b]) {
        // The same shape, other places.
        auto* changed =
            through("transposed and reshaped back", {turned[0], MakeNode("Reshape", {copy, copy + "_dims"}, copy + "_back")});
        *changed->add_initializer() = IntTensor(copy + "_dims", {static_cast<int64_t>(dims.size())}, dims);
      }
    }
    if (!dims.empty() && random_.Chance(40)) {
      auto* changed =
          through("reversed", {MakeNode("Slice", {node.input(i), copy + "_s", copy + "_e", copy + "_a", copy + "_t"}, copy)});
      *changed->add_initializer() = IntTensor(copy + "_s", {1}, {-1});
      *changed->add_initializer() = IntTensor(copy + "_e", {1}, {std::numeric_limits<int64_t>::min()});
      *changed->add_initializer() = IntTensor(copy + "_a", {1}, {random_.Below(static_cast<int>(dims.size()))});
      *changed->add_initializer() = IntTensor(copy + "_t", {1}, {-1});
    }
  }

  // Another operator with the same operands, or none.
  void Operator(int index) {
    const onnx::NodeProto& node = specimen_.model.graph().node(index);
    static const std::vector<std::pair<std::string, std::vector<std::string>>> kOthers = {
        {"Add", {"Sub", "Mul", "Max"}},
        {"Sub", {"Add"}},
        {"Mul", {"Div", "Add"}},
        {"Div", {"Mul"}},
        {"Erf", {"Tanh", "Sigmoid"}},
        {"Tanh", {"Erf", "Sigmoid"}},
        {"Sigmoid", {"Tanh", "HardSigmoid"}},
        {"Sqrt", {"Abs"}},
        {"Reciprocal", {"Neg"}},
        {"Neg", {"Abs", "Identity"}},
        {"ReduceMean", {"ReduceSum", "ReduceMax"}},
        {"Softmax", {"LogSoftmax", "Hardmax"}},
        {"Exp", {"Softplus"}},
        {"Where", {}},
        {"IsNaN", {"IsInf"}},
        {"Pow", {"Mul"}},
        {"LayerNormalization", {}},
    };
    for (const auto& [op, others] : kOthers) {
      if (op != node.op_type() || !node.domain().empty()) continue;
      for (const std::string& other : others) {
        Add(fmt::format("{} {} -> {}", op, node.name(), other))->mutable_node(index)->set_op_type(other);
      }
    }
    // Left out: its readers take its operand.
    for (int i = 0; i < node.input_size(); ++i) {
      const auto in = specimen_.values.find(node.input(i));
      const auto out = specimen_.values.find(node.output(0));
      if (in == specimen_.values.end() || out == specimen_.values.end()) continue;
      if (in->second.type != out->second.type || in->second.dims != out->second.dims) continue;
      auto* changed = Add(fmt::format("{} {}: left out for operand {}", node.op_type(), node.name(), i));
      onnx::NodeProto bypass = MakeNode("Identity", {node.input(i)}, node.output(0));
      if (node.output_size() == 1)
        *changed->mutable_node(index) = bypass;
      else
        mutants_.pop_back();
    }
  }

  // An interior value that something else needs.
  void Outputs(int index) {
    const onnx::NodeProto& node = specimen_.model.graph().node(index);
    for (const std::string& output : node.output()) {
      const auto found = specimen_.values.find(output);
      if (found == specimen_.values.end()) continue;
      const bool is_output = std::any_of(specimen_.model.graph().output().begin(), specimen_.model.graph().output().end(),
                                         [&](const auto& info) { return info.name() == output; });
      auto declare = [&](onnx::GraphProto* graph, const std::string& name) {
        auto* info = graph->add_output();
        info->set_name(name);
        info->mutable_type()->mutable_tensor_type()->set_elem_type(static_cast<int>(found->second.type));
      };
      if (!is_output) declare(Add(fmt::format("{} as an output", output)), output);
      auto* graph = Add(fmt::format("{} with another reader", output));
      const std::string name = Fresh(specimen_.model.graph(), "read");
      *graph->add_node() = MakeNode(found->second.type == DataType::kBool ? "Not" : "Neg", {output}, name);
      declare(graph, name);
    }
  }

  const Specimen& specimen_;
  Random& random_;
  std::vector<Mutant> mutants_;
};

}  // namespace

std::vector<Mutant> Mutate(const Specimen& specimen, Random* random) { return Mutator(specimen, random).Run(); }

}  // namespace ascend_fuse::backwards
