// Two sources, one layout: the graph (through ir/ types, so weights stay in the file) and, for local
// functions, which a Model keeps as bytes, the protobuf messages. Both are brought into NodeParts and element
// bytes.
#include "ir/text/printer.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>
#include <string_view>
#include <utility>
#include <vector>

#include "fmt/format.h"
#include "ir/data_type.h"
#include "ir/onnx/encode.h"
#include "ir/text/lexer.h"
#include "proto/onnx.pb.h"

namespace ascend_fuse {
namespace {

constexpr std::string_view kElided = "{...}";

// A name where the syntax takes quoted ones. Type words are quoted because a type may stand before a name.
std::string Name(std::string_view name) {
  const bool plain = IsIdentifier(name) && DataTypeFromName(name) == DataType::kUndefined && name != "undefined" &&
                     name != "seq" && name != "map" && name != "optional" && name != "sparse_tensor" && name != "opaque" &&
                     !IsFloatWord(name);
  return plain ? std::string(name) : Quote(name);
}

std::string Word(std::string_view word) { return IsIdentifier(word) ? std::string(word) : Quote(word); }

// What stands between points, each by itself: "a.b", a."1".
std::string Dotted(std::string_view name) {
  std::string text;
  for (size_t dot = name.find('.'); dot != std::string_view::npos; dot = name.find('.')) {
    text += Word(name.substr(0, dot)) + '.';
    name.remove_prefix(dot + 1);
  }
  return text + Word(name);
}

std::string Qualified(std::string_view domain, std::string_view op_type) {
  return domain.empty() ? Word(op_type) : Dotted(domain) + '.' + Word(op_type);
}

template <typename T>
std::string FormatReal(T value) {
  if (std::isnan(value)) return std::signbit(value) ? "-nan" : "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  std::array<char, 40> buffer;
  const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value, std::chars_format::scientific);
  std::string_view text(buffer.data(), end.ptr - buffer.data());
  std::string out;
  if (text[0] == '-') {
    out = "-";
    text.remove_prefix(1);
  }
  const size_t e = text.find('e');
  int exponent = 0;
  const size_t sign = text[e + 1] == '+' ? 2 : 1;
  std::from_chars(text.data() + e + sign, text.data() + text.size(), exponent);
  std::string digits(1, text[0]);
  if (e > 2) digits += text.substr(2, e - 2);
  const int count = static_cast<int>(digits.size());
  // Where people write positions rather than exponents (the limits are those of JavaScript, almost).
  if (exponent < -6 || exponent > 15) {
    out += digits[0];
    if (count > 1) out.append(".").append(digits, 1);
    return out + fmt::format("e{}", exponent);
  }
  if (exponent < 0) return fmt::format("{}0.{}{}", out, std::string(-exponent - 1, '0'), digits);
  if (count <= exponent + 1) return out + digits + std::string(exponent + 1 - count, '0') + ".0";
  return fmt::format("{}{}.{}", out, digits.substr(0, exponent + 1), digits.substr(exponent + 1));
}

template <typename T>
T LittleEndian(const char* bytes) {
  uint64_t bits = 0;
  for (size_t i = 0; i < sizeof(T); ++i) bits |= static_cast<uint64_t>(static_cast<unsigned char>(bytes[i])) << (8 * i);
  T value;
  if constexpr (sizeof(T) == 8) {
    std::memcpy(&value, &bits, sizeof(T));
  } else if constexpr (sizeof(T) == 4) {
    const auto narrow = static_cast<uint32_t>(bits);
    std::memcpy(&value, &narrow, sizeof(T));
  } else {
    value = static_cast<T>(bits);
  }
  return value;
}

double HalfToDouble(uint16_t bits) {
  const double sign = (bits & 0x8000) != 0 ? -1 : 1;
  const int exponent = (bits >> 10) & 31;
  const int fraction = bits & 1023;
  if (exponent == 31) return fraction != 0 ? std::nan("") : sign * HUGE_VAL;
  return exponent == 0 ? sign * std::ldexp(fraction, -24) : sign * std::ldexp(fraction + 1024, exponent - 25);
}

// The shortest decimal that EncodeNumber brings back to the same bits.
std::string FormatHalf(DataType type, std::string_view bytes) {
  const auto bits = LittleEndian<uint16_t>(bytes.data());
  double value = HalfToDouble(bits);
  if (type == DataType::kBfloat16) {
    const uint32_t wide = static_cast<uint32_t>(bits) << 16;
    float single;
    std::memcpy(&single, &wide, sizeof(single));
    value = single;
  }
  if (!std::isfinite(value)) return FormatReal(value);
  for (int digits = 1; digits < 9; ++digits) {
    const std::string text = fmt::format("{:.{}g}", value, digits);
    double rounded = 0;
    std::from_chars(text.data(), text.data() + text.size(), rounded);
    if (EncodeNumber(type, rounded) == bytes) return FormatReal(rounded);
  }
  return FormatReal(value);
}

// Bytes that one written element stands for: half of a complex number; all sub-byte elements of a byte.
size_t WrittenBytes(DataType type) {
  if (type == DataType::kComplex64) return 4;
  if (type == DataType::kComplex128) return 8;
  return static_cast<size_t>(std::max(BitWidth(type), 8)) / 8;
}

std::string Element(DataType type, std::string_view bytes, const PrintOptions& options) {
  const char* data = bytes.data();
  switch (type) {
    case DataType::kFloat:
    case DataType::kComplex64:
      return FormatReal(LittleEndian<float>(data));
    case DataType::kDouble:
    case DataType::kComplex128:
      return FormatReal(LittleEndian<double>(data));
    case DataType::kInt8:
      return fmt::format("{}", LittleEndian<int8_t>(data));
    case DataType::kInt16:
      return fmt::format("{}", LittleEndian<int16_t>(data));
    case DataType::kInt32:
      return fmt::format("{}", LittleEndian<int32_t>(data));
    case DataType::kInt64:
      return fmt::format("{}", LittleEndian<int64_t>(data));
    case DataType::kUint32:
      return fmt::format("{}", LittleEndian<uint32_t>(data));
    case DataType::kUint64:
      return fmt::format("{}", LittleEndian<uint64_t>(data));
    case DataType::kFloat16:
    case DataType::kBfloat16:
      if (options.half_as_number) return FormatHalf(type, bytes);
      return fmt::format("{}", LittleEndian<uint16_t>(data));
    case DataType::kUint16:
      return fmt::format("{}", LittleEndian<uint16_t>(data));
    default:  // bool, 8-bit floats and packed types as their bytes
      return fmt::format("{}", LittleEndian<uint8_t>(data));
  }
}

// FNV-1a, folded: enough to see that two weights differ.
std::string ShortHash(std::string_view bytes) {
  uint64_t hash = 0xcbf29ce484222325;
  for (char c : bytes) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return fmt::format("{:08x}", static_cast<uint32_t>(hash ^ (hash >> 32)));
}

// {1.0, 2.0} or an elided form; `bytes` are all elements, little-endian packed.
std::string Elements(DataType type, int64_t count, std::string_view bytes, const PrintOptions& options) {
  const size_t unit = WrittenBytes(type);
  if (bytes.size() % unit != 0) return std::string(kElided);
  if (options.max_elements >= 0 && count > options.max_elements) {
    // Equal elements: the bytes are equal to themselves shifted by one element.
    const bool uniform = bytes.size() > unit && bytes.substr(unit) == bytes.substr(0, bytes.size() - unit);
    if (uniform) return fmt::format("{{{}, ...}}", Element(type, bytes.substr(0, unit), options));
    return fmt::format("{{... \"{}\"}}", ShortHash(bytes));
  }
  std::string text = "{";
  for (size_t at = 0; at < bytes.size(); at += unit) {
    if (at > 0) text += ", ";
    text += Element(type, bytes.substr(at, unit), options);
  }
  return text + "}";
}

std::string StringElements(const onnx::TensorProto& tensor, const PrintOptions& options) {
  std::string text = "{";
  for (int i = 0; i < tensor.string_data_size(); ++i) {
    if (options.max_elements >= 0 && i >= options.max_elements) return std::string(kElided);
    text += fmt::format("{}{}", i > 0 ? ", " : "", Quote(tensor.string_data(i)));
  }
  return text + "}";
}

// float[2,3], float for a scalar.
template <typename Dims>
std::string TensorType(DataType type, const Dims& dims) {
  std::string text(DataTypeName(type));
  for (auto i = dims.begin(); i != dims.end(); ++i) text += fmt::format("{}{}", i == dims.begin() ? "[" : ", ", *i);
  return dims.begin() == dims.end() ? text : text + "]";
}

template <typename Type>
std::string ShapedType(const Type& type) {
  std::string text(DataTypeName(static_cast<DataType>(type.elem_type())));
  if (!type.has_shape()) return text + "[]";
  if (type.shape().dim_size() == 0) return text;
  text += "[";
  for (int i = 0; i < type.shape().dim_size(); ++i) {
    const onnx::TensorShapeProto::Dimension& dim = type.shape().dim(i);
    if (i > 0) text += ", ";
    if (dim.has_dim_value()) {
      text += fmt::format("{}", dim.dim_value());
    } else if (!dim.dim_param().empty()) {
      text += Name(dim.dim_param());
    } else {
      text += "?";
    }
  }
  return text + "]";
}

std::string TypeText(const onnx::TypeProto& type) {
  switch (type.value_case()) {
    case onnx::TypeProto::kTensorType:
      return ShapedType(type.tensor_type());
    case onnx::TypeProto::kSparseTensorType:
      return fmt::format("sparse_tensor({})", ShapedType(type.sparse_tensor_type()));
    case onnx::TypeProto::kSequenceType:
      return fmt::format("seq({})", TypeText(type.sequence_type().elem_type()));
    case onnx::TypeProto::kOptionalType:
      return fmt::format("optional({})", TypeText(type.optional_type().elem_type()));
    case onnx::TypeProto::kMapType:
      return fmt::format("map({}, {})", DataTypeName(static_cast<DataType>(type.map_type().key_type())),
                         TypeText(type.map_type().value_type()));
    case onnx::TypeProto::kOpaqueType: {
      const onnx::TypeProto::Opaque& opaque = type.opaque_type();
      if (opaque.domain().empty()) return fmt::format("opaque({})", opaque.name().empty() ? "" : Dotted(opaque.name()));
      return fmt::format("opaque({}, {})", Dotted(opaque.domain()), Dotted(opaque.name()));
    }
    default:
      return "";
  }
}

std::string TypedName(const std::string& type, std::string_view name) {
  return type.empty() ? Name(name) : fmt::format("{} {}", type, Name(name));
}

template <typename Items, typename Text>
std::string Joined(const Items& items, const Text& text) {
  std::string out;
  for (const auto& item : items) {
    if (!out.empty()) out += ", ";
    out += text(item);
  }
  return out;
}

std::string_view KindName(AttributeType type) {
  constexpr std::array<std::string_view, 15> kNames = {
      "undefined", "float",   "int",    "string",        "tensor",         "graph",      "floats",     "ints",
      "strings",   "tensors", "graphs", "sparse_tensor", "sparse_tensors", "type_proto", "type_protos"};
  const auto index = static_cast<size_t>(type);
  return index < kNames.size() ? kNames[index] : kNames[0];
}

// A tensor as the value of an attribute. External data need the = lest their [ be taken for dims.
std::string TensorValue(const std::string& type, std::string_view name, const std::string& elements) {
  return fmt::format("{} {}{}{}", type, name.empty() ? "" : Name(name), name.empty() ? "" : " ",
                     fmt::format("{}{}", elements[0] == '[' ? "= " : "", elements));
}

// A list, with its type when the values do not tell it.
template <typename Values, typename Text>
std::string ListAttribute(std::string_view name, AttributeType type, const Values& values, const Text& text) {
  if (values.empty()) return fmt::format("{} : {} = []", Word(name), KindName(type));
  return fmt::format("{} = [{}]", Word(name), Joined(values, text));
}

std::string Reference(std::string_view name, AttributeType type, std::string_view to) {
  if (type == AttributeType::kUndefined) return fmt::format("{} = @{}", Word(name), Word(to));
  return fmt::format("{} : {} = @{}", Word(name), KindName(type), Word(to));
}

// A node, wherever it comes from, ready to be laid out.
struct NodeParts {
  std::string label;
  std::string outputs;
  std::string op;
  std::vector<std::string> attributes;
  std::string inputs;
  bool has_body = false;  // then the attributes follow the inputs
};

std::string Line(const NodeParts& node) {
  std::string attributes;
  if (!node.attributes.empty()) {
    attributes = fmt::format("<{}>", Joined(node.attributes, [](const std::string& text) { return text; }));
  }
  std::string line = node.label.empty() ? "" : fmt::format("[{}] ", node.label);
  line += fmt::format("{}{}= {} ", node.outputs, node.outputs.empty() ? "" : " ", node.op);
  if (!node.has_body && !attributes.empty()) line += attributes + " ";
  line += fmt::format("({})", node.inputs);
  if (node.has_body && !attributes.empty()) line.append(" ").append(attributes);
  return line;
}

// A graph, wherever it comes from. Lines of `declared` and `nodes` are complete.
struct GraphParts {
  std::string name;
  std::string inputs;
  std::string outputs;
  std::vector<std::string> declared;  // initializers and value infos
  std::vector<std::string> nodes;
};

std::string Block(const GraphParts& graph, int indent) {
  const std::string margin(indent, ' ');
  std::string text = fmt::format("{} ({}) => ({}) ", graph.name, graph.inputs, graph.outputs);
  if (!graph.declared.empty()) {
    text += "<\n";
    for (size_t i = 0; i < graph.declared.size(); ++i) {
      text += fmt::format("{}  {}{}\n", margin, graph.declared[i], i + 1 < graph.declared.size() ? "," : "");
    }
    text += margin + "> ";
  }
  text += "{\n";
  for (const std::string& node : graph.nodes) text += fmt::format("{}  {}\n", margin, node);
  return text + margin + "}";
}

// The elements of tensors, of the model and of messages.
class ElementsPrinter {
 public:
  ElementsPrinter(const Model& model, const PrintOptions& options) : model_(model), options_(options) {}

  std::string Text(const Tensor& tensor) const {
    if (tensor.storage == Storage::kExternal) return ExternalData(tensor);
    const int64_t count = tensor.ElementCount();
    if (count < 0) return std::string(kElided);
    if (tensor.type == DataType::kString) {
      onnx::TensorProto proto;
      if (tensor.proto_bytes == nullptr || !proto.ParseFromArray(tensor.proto_bytes, static_cast<int>(tensor.proto.size))) {
        return std::string(kElided);
      }
      return StringElements(proto, options_);
    }
    if (count == 0) return "{}";
    if (tensor.storage == Storage::kNone) return std::string(kElided);
    const bool all = options_.max_elements < 0 || count <= options_.max_elements;
    const absl::StatusOr<std::string> bytes =
        ReadBytes(model_, tensor, all ? std::numeric_limits<int64_t>::max() : options_.hash_bytes);
    if (!bytes.ok()) return std::string(kElided);
    return Elements(tensor.type, count, *bytes, options_);
  }

  std::string Text(const onnx::TensorProto& tensor) const {
    if (tensor.data_location() == onnx::TensorProto::EXTERNAL) return ExternalData(tensor);
    const auto type = static_cast<DataType>(tensor.data_type());
    if (type == DataType::kString) return StringElements(tensor, options_);
    int64_t count = 1;
    for (int64_t dim : tensor.dims()) {
      if (dim < 0 || __builtin_mul_overflow(count, dim, &count)) return std::string(kElided);
    }
    if (count == 0) return "{}";
    std::string bytes = tensor.raw_data();
    const auto append = [&bytes](auto value, size_t size) {
      uint64_t bits = 0;
      std::memcpy(&bits, &value, sizeof(value));
      for (size_t i = 0; i < size; ++i) bytes.push_back(static_cast<char>(bits >> (8 * i)));
    };
    if (!tensor.has_raw_data()) {
      for (float value : tensor.float_data()) append(value, 4);
      for (double value : tensor.double_data()) append(value, 8);
      for (int64_t value : tensor.int64_data()) append(value, 8);
      for (int32_t value : tensor.int32_data()) append(value, WrittenBytes(type));
      for (uint64_t value : tensor.uint64_data()) append(value, WrittenBytes(type));
    }
    if (bytes.empty()) return std::string(kElided);
    return Elements(type, count, bytes, options_);
  }

 private:
  std::string ExternalData(const Tensor& tensor) const {
    onnx::TensorProto proto;
    if (tensor.proto_bytes != nullptr && proto.ParseFromArray(tensor.proto_bytes, static_cast<int>(tensor.proto.size)) &&
        proto.external_data_size() > 0) {
      return ExternalData(proto);
    }
    std::string text = fmt::format("[\"location\" : {}", Quote(tensor.location));
    if (tensor.file.offset > 0) text += fmt::format(", \"offset\" : \"{}\"", tensor.file.offset);
    return text + fmt::format(", \"length\" : \"{}\"]", tensor.file.size);
  }

  static std::string ExternalData(const onnx::TensorProto& tensor) {
    return fmt::format("[{}]", Joined(tensor.external_data(), [](const onnx::StringStringEntryProto& pair) {
                         return fmt::format("{} : {}", Quote(pair.key()), Quote(pair.value()));
                       }));
  }

  const Model& model_;
  const PrintOptions& options_;
};

class Printer {
 public:
  Printer(const Model& model, const PrintOptions& options) : model_(model), options_(options), elements_(model, options) {}

  std::string ModelText() const {
    std::vector<std::string> header;
    if (model_.ir_version() != 0) header.push_back(fmt::format("ir_version: {}", model_.ir_version()));
    if (!model_.opset_imports().empty()) {
      const std::string imports = Joined(model_.opset_imports(), [this](const OpsetImport& import) {
        return fmt::format("{} : {}", Quote(model_.Text(import.domain)), import.version);
      });
      header.push_back(fmt::format("opset_import: [{}]", imports));
    }
    if (!model_.producer_name().empty()) {
      header.push_back(fmt::format("producer_name: {}", Quote(model_.producer_name())));
    }
    if (!model_.producer_version().empty()) {
      header.push_back(fmt::format("producer_version: {}", Quote(model_.producer_version())));
    }
    std::string text;
    for (const std::string& line : header) text += fmt::format("{}{}", text.empty() ? "<\n  " : ",\n  ", line);
    if (!text.empty()) text += "\n>\n";
    text += GraphText(model_.graph(), 0) + "\n";
    for (const LocalFunction& function : model_.functions()) text += fmt::format("\n{}", FunctionText(function));
    return text;
  }

  std::string NodeText(const Node& node, int indent, bool one_line) const {
    NodeParts parts;
    if (options_.node_names && !one_line && node.name != NameId::kEmpty) parts.label = Name(NodeName(node));
    parts.outputs =
        Joined(node.outputs(), [](const Value* value) { return value == nullptr ? Quote("") : Name(ValueName(*value)); });
    parts.inputs =
        Joined(node.inputs(), [](const Use& use) { return use.value == nullptr ? Quote("") : Name(ValueName(*use.value)); });
    parts.op = Qualified(Domain(node), OpType(node)) + Overload(node);
    const std::vector<Attribute> attributes = ReadAttributes(node);
    size_t bodies_left = node.subgraph_count;  // for the kGraphs list: what later single bodies do not take
    size_t later = 0;
    for (const Attribute& attribute : attributes) later += attribute.type == AttributeType::kGraph;
    for (const Attribute& attribute : attributes) {
      const bool single = attribute.type == AttributeType::kGraph && attribute.ref_attr_name.empty();
      size_t bodies = 0;
      if (single) {
        --later;
        bodies = std::min<size_t>(bodies_left, 1);
      } else if (attribute.type == AttributeType::kGraphs && attribute.ref_attr_name.empty()) {
        bodies = bodies_left - std::min(later, bodies_left);
      }
      const absl::Span<const Graph* const> graphs = node.subgraphs().subspan(node.subgraph_count - bodies_left, bodies);
      bodies_left -= bodies;
      parts.has_body |= bodies > 0;
      parts.attributes.push_back(AttributeText(attribute, graphs, indent, one_line));
    }
    return Line(parts);
  }

 private:
  std::string GraphText(const Graph& graph, int indent) const {
    const auto typed = [](const Value* value) { return TypedName(PrintDeclaredType(*value), ValueName(*value)); };
    GraphParts parts;
    parts.name = Name(model_.Text(graph.name()));
    parts.inputs = Joined(graph.inputs(), typed);
    parts.outputs = Joined(graph.outputs(), typed);
    for (const Value* value : graph.initializers()) {
      if (value->initializer == nullptr) continue;
      parts.declared.push_back(fmt::format("{} {} = {}", TensorType(value->initializer->type, value->initializer->dims),
                                           Name(ValueName(*value)), elements_.Text(*value->initializer)));
    }
    std::vector<const Node*> nodes;
    for (const Node* node : graph.nodes()) {
      if (!node->dead) nodes.push_back(node);
    }
    std::stable_sort(nodes.begin(), nodes.end(), [](const Node* a, const Node* b) { return a->order < b->order; });
    const auto declare = [&parts, &typed](const Value* value) {
      if (value != nullptr && value->value_info >= 0 && value->declared_type.data() != nullptr) {
        parts.declared.push_back(typed(value));
      }
    };
    if (options_.value_infos) {
      for (const Value* value : graph.inputs()) declare(value);
      for (const Value* value : graph.initializers()) {
        if (!value->is_graph_input) declare(value);
      }
      for (const Node* node : nodes) {
        for (const Value* value : node->outputs()) declare(value);
      }
    }
    for (const Node* node : nodes) parts.nodes.push_back(NodeText(*node, indent + 2, /*one_line=*/false));
    return Block(parts, indent);
  }

  // ":name" of the overload that a call of a local function chooses.
  std::string Overload(const Node& node) const {
    const std::string_view overload = NodeOverload(node);
    return overload.empty() ? "" : fmt::format(":{}", Name(overload));
  }

  std::string AttributeText(const Attribute& attribute, absl::Span<const Graph* const> bodies, int indent, bool one_line) const {
    const std::string_view name = attribute.name;
    if (!attribute.ref_attr_name.empty()) return Reference(name, attribute.type, attribute.ref_attr_name);
    const auto body = [&](const Graph* graph) {
      return one_line ? fmt::format("{{{} {}}}", graph->nodes().size(), graph->nodes().size() == 1 ? "node" : "nodes")
                      : GraphText(*graph, indent);
    };
    switch (attribute.type) {
      case AttributeType::kInt:
        return fmt::format("{} = {}", Word(name), attribute.i);
      case AttributeType::kFloat:
        return fmt::format("{} = {}", Word(name), FormatFloat(attribute.f));
      case AttributeType::kString:
        return fmt::format("{} = {}", Word(name), Quote(attribute.s));
      case AttributeType::kInts:
        return ListAttribute(name, attribute.type, attribute.ints, [](int64_t i) { return fmt::format("{}", i); });
      case AttributeType::kFloats:
        return ListAttribute(name, attribute.type, attribute.floats, FormatFloat);
      case AttributeType::kStrings:
        return ListAttribute(name, attribute.type, attribute.strings, Quote);
      case AttributeType::kTensor: {
        return fmt::format("{} = {}", Word(name),
                           TensorValue(TensorType(attribute.tensor.type, attribute.tensor.dims),
                                       model_.Text(attribute.tensor.name), elements_.Text(attribute.tensor)));
      }
      case AttributeType::kGraph:
        if (bodies.size() == 1) return fmt::format("{} = {}", Word(name), body(bodies[0]));
        break;
      case AttributeType::kGraphs:
        if (!bodies.empty()) return ListAttribute(name, attribute.type, bodies, body);
        break;
      default:
        break;
    }
    onnx::AttributeProto proto;
    if (proto.ParseFromArray(attribute.encoded.data(), static_cast<int>(attribute.encoded.size()))) {
      return AttributeText(proto, indent);
    }
    return fmt::format("{} : {} = []", Word(name), KindName(attribute.type));
  }

  // From here on protobuf messages: local functions, and attributes without a form in ir/.

  std::string TensorText(const onnx::TensorProto& tensor) const {
    return TensorValue(TensorType(static_cast<DataType>(tensor.data_type()), tensor.dims()), tensor.name(),
                       elements_.Text(tensor));
  }

  std::string AttributeText(const onnx::AttributeProto& attribute, int indent) const {
    const std::string& name = attribute.name();
    const auto type = static_cast<AttributeType>(attribute.type());
    if (!attribute.ref_attr_name().empty()) return Reference(name, type, attribute.ref_attr_name());
    const auto single = [&name](const std::string& value) { return fmt::format("{} = {}", Word(name), value); };
    switch (attribute.type()) {
      case onnx::AttributeProto::INT:
        return single(fmt::format("{}", attribute.i()));
      case onnx::AttributeProto::FLOAT:
        return single(FormatFloat(attribute.f()));
      case onnx::AttributeProto::STRING:
        return single(Quote(attribute.s()));
      case onnx::AttributeProto::TENSOR:
        return single(TensorText(attribute.t()));
      case onnx::AttributeProto::GRAPH:
        return single(GraphText(attribute.g(), indent));
      case onnx::AttributeProto::TYPE_PROTO:
        return single(TypeText(attribute.tp()));
      case onnx::AttributeProto::INTS:
        return ListAttribute(name, type, attribute.ints(), [](int64_t i) { return fmt::format("{}", i); });
      case onnx::AttributeProto::FLOATS:
        return ListAttribute(name, type, attribute.floats(), FormatFloat);
      case onnx::AttributeProto::STRINGS:
        return ListAttribute(name, type, attribute.strings(), Quote);
      case onnx::AttributeProto::TENSORS:
        return ListAttribute(name, type, attribute.tensors(),
                             [this](const onnx::TensorProto& tensor) { return TensorText(tensor); });
      case onnx::AttributeProto::GRAPHS:
        return ListAttribute(name, type, attribute.graphs(),
                             [this, indent](const onnx::GraphProto& graph) { return GraphText(graph, indent); });
      case onnx::AttributeProto::TYPE_PROTOS:
        return ListAttribute(name, type, attribute.type_protos(), TypeText);
      default:  // sparse tensors have no syntax
        return fmt::format("{} : {} = []", Word(name), KindName(type));
    }
  }

  std::string NodeText(const onnx::NodeProto& node, int indent) const {
    NodeParts parts;
    if (options_.node_names && !node.name().empty()) parts.label = Name(node.name());
    parts.outputs = Joined(node.output(), Name);
    parts.inputs = Joined(node.input(), Name);
    parts.op = Qualified(node.domain(), node.op_type());
    if (!node.overload().empty()) parts.op += fmt::format(":{}", Name(node.overload()));
    for (const onnx::AttributeProto& attribute : node.attribute()) {
      parts.attributes.push_back(AttributeText(attribute, indent));
      parts.has_body |= attribute.has_g() || attribute.graphs_size() > 0;
    }
    return Line(parts);
  }

  static std::string ValueText(const onnx::ValueInfoProto& value) { return TypedName(TypeText(value.type()), value.name()); }

  std::string GraphText(const onnx::GraphProto& graph, int indent) const {
    GraphParts parts;
    parts.name = Name(graph.name());
    parts.inputs = Joined(graph.input(), ValueText);
    parts.outputs = Joined(graph.output(), ValueText);
    for (const onnx::TensorProto& tensor : graph.initializer()) {
      parts.declared.push_back(fmt::format("{} {} = {}", TensorType(static_cast<DataType>(tensor.data_type()), tensor.dims()),
                                           Name(tensor.name()), elements_.Text(tensor)));
    }
    if (options_.value_infos) {
      for (const onnx::ValueInfoProto& value : graph.value_info()) parts.declared.push_back(ValueText(value));
    }
    for (const onnx::NodeProto& node : graph.node()) parts.nodes.push_back(NodeText(node, indent + 2));
    return Block(parts, indent);
  }

  std::string FunctionText(const LocalFunction& function) const {
    onnx::FunctionProto proto;
    if (function.encoded.data == nullptr ||
        !proto.ParseFromArray(function.encoded.data, static_cast<int>(function.encoded.file.size))) {
      return fmt::format("# function {}.{} is not shown: its constants are not in memory\n", model_.Text(function.domain),
                         model_.Text(function.name));
    }
    std::string text = fmt::format("<\n  domain: {},\n", Quote(proto.domain()));
    if (!proto.overload().empty()) text += fmt::format("  overload: {},\n", Quote(proto.overload()));
    if (!proto.doc_string().empty()) text += fmt::format("  doc_string: {},\n", Quote(proto.doc_string()));
    text += fmt::format("  opset_import: [{}]\n>\n", Joined(proto.opset_import(), [](const onnx::OperatorSetIdProto& import) {
                          return fmt::format("{} : {}", Quote(import.domain()), import.version());
                        }));
    text += Name(proto.name()) + " ";
    std::vector<std::string> attributes;
    for (const std::string& attribute : proto.attribute()) attributes.push_back(Word(attribute));
    for (const onnx::AttributeProto& attribute : proto.attribute_proto()) {
      attributes.push_back(AttributeText(attribute, 0));
    }
    if (!attributes.empty()) {
      text += fmt::format("<{}> ", Joined(attributes, [](const std::string& attribute) { return attribute; }));
    }
    text += fmt::format("({}) => ({}) ", Joined(proto.input(), Name), Joined(proto.output(), Name));
    if (options_.value_infos && proto.value_info_size() > 0) {
      text += fmt::format("<{}> ", Joined(proto.value_info(), ValueText));
    }
    text += "{\n";
    for (const onnx::NodeProto& node : proto.node()) text += fmt::format("  {}\n", NodeText(node, 2));
    return text + "}\n";
  }

  const Model& model_;
  const PrintOptions& options_;
  const ElementsPrinter elements_;
};

}  // namespace

std::string PrintModelText(const Model& model, const PrintOptions& options) { return Printer(model, options).ModelText(); }

std::string PrintNode(const Node& node) {
  PrintOptions options;
  options.half_as_number = true;
  return Printer(node.graph->model(), options).NodeText(node, 0, /*one_line=*/true);
}

std::string PrintDeclaredType(const Value& value) {
  onnx::TypeProto type;
  const std::string_view encoded = value.declared_type;
  if (encoded.data() == nullptr) return "";
  if (!type.ParseFromArray(encoded.data(), static_cast<int>(encoded.size()))) return "";
  return TypeText(type);
}

std::string FormatFloat(float value) { return FormatReal(value); }
std::string FormatDouble(double value) { return FormatReal(value); }

}  // namespace ascend_fuse
