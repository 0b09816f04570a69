// Recursive descent, one function per production of onnx/onnx:docs/Syntax.md, straight into an
// onnx::ModelProto; its bytes then go through the one loader.
#include "ir/text/parser.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <limits>
#include <utility>
#include <vector>

#include "fmt/format.h"
#include "ir/data_type.h"
#include "ir/onnx/encode.h"
#include "ir/onnx/load.h"
#include "ir/status_macros.h"
#include "ir/text/lexer.h"
#include "proto/onnx.pb.h"

// The two statements a parser consists of.
#define AF_TRY(expression)         \
  do {                             \
    RETURN_IF_ERROR((expression)); \
  } while (false)
#define AF_JOIN2(a, b) a##b
#define AF_JOIN(a, b) AF_JOIN2(a, b)
#define AF_ASSIGN(target, expression) AF_ASSIGN_AS(AF_JOIN(maybe_, __LINE__), target, expression)
#define AF_ASSIGN_AS(maybe, target, expression) \
  auto maybe = (expression);                    \
  if (!maybe.ok()) return maybe.status();       \
  target = *std::move(maybe)

namespace ascend_fuse {
namespace {

using AttributeKind = onnx::AttributeProto::AttributeType;

// Bodies within bodies and types within types: three protobuf messages a level, of the 100 that protobuf
// reads.
constexpr int kMaxDepth = 24;
// Repeated elements make large tensors of a short text, but not absurd ones.
constexpr int64_t kMaxRepeatedBytes = int64_t{1} << 28;

struct KindName {
  std::string_view name;
  AttributeKind kind;
  AttributeKind single;  // the kind of an element; its own for a single value
};

constexpr KindName kKindNames[] = {
    {"float", onnx::AttributeProto::FLOAT, onnx::AttributeProto::FLOAT},
    {"int", onnx::AttributeProto::INT, onnx::AttributeProto::INT},
    {"string", onnx::AttributeProto::STRING, onnx::AttributeProto::STRING},
    {"tensor", onnx::AttributeProto::TENSOR, onnx::AttributeProto::TENSOR},
    {"graph", onnx::AttributeProto::GRAPH, onnx::AttributeProto::GRAPH},
    {"sparse_tensor", onnx::AttributeProto::SPARSE_TENSOR, onnx::AttributeProto::SPARSE_TENSOR},
    {"type_proto", onnx::AttributeProto::TYPE_PROTO, onnx::AttributeProto::TYPE_PROTO},
    {"floats", onnx::AttributeProto::FLOATS, onnx::AttributeProto::FLOAT},
    {"ints", onnx::AttributeProto::INTS, onnx::AttributeProto::INT},
    {"strings", onnx::AttributeProto::STRINGS, onnx::AttributeProto::STRING},
    {"tensors", onnx::AttributeProto::TENSORS, onnx::AttributeProto::TENSOR},
    {"graphs", onnx::AttributeProto::GRAPHS, onnx::AttributeProto::GRAPH},
    {"sparse_tensors", onnx::AttributeProto::SPARSE_TENSORS, onnx::AttributeProto::SPARSE_TENSOR},
    {"type_protos", onnx::AttributeProto::TYPE_PROTOS, onnx::AttributeProto::TYPE_PROTO},
};

const KindName* FindKind(AttributeKind kind) {
  for (const KindName& row : kKindNames) {
    if (row.kind == kind) return &row;
  }
  return nullptr;
}

bool IsTypeWord(const Token& token) {
  if (token.kind != TokenKind::kIdentifier) return false;
  return DataTypeFromName(token.text) != DataType::kUndefined || token.text == "undefined" || token.text == "seq" ||
         token.text == "map" || token.text == "optional" || token.text == "sparse_tensor" || token.text == "opaque";
}

template <typename T>
void AppendLittleEndian(T value, size_t bytes, std::string* to) {
  uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof(value));
  for (size_t i = 0; i < bytes; ++i) to->push_back(static_cast<char>(bits >> (8 * i)));
}

class ModelParser {
 public:
  explicit ModelParser(const std::vector<Token>& tokens) : in_(tokens) {}

  absl::Status Parse(onnx::ModelProto* model) {
    if (in_.Accept("<")) AF_TRY(ModelHeader(model));
    AF_TRY(Graph(model->mutable_graph()));
    while (!in_.AtEnd()) AF_TRY(Function(model->add_functions()));
    return absl::OkStatus();
  }

 private:
  absl::Status ModelHeader(onnx::ModelProto* model) {
    do {
      const Token key = in_.Peek();
      AF_TRY(in_.Identifier("a key such as ir_version or opset_import").status());
      AF_TRY(in_.Expect(":", fmt::format("after {}", key.text)));
      if (key.text == "ir_version") {
        AF_ASSIGN(const int64_t version, in_.Integer("an integer for ir_version"));
        model->set_ir_version(version);
      } else if (key.text == "opset_import") {
        AF_TRY(OpsetImports(model->mutable_opset_import()));
      } else if (key.text == "producer_name") {
        AF_ASSIGN(*model->mutable_producer_name(), in_.String("a string for producer_name"));
      } else if (key.text == "producer_version") {
        AF_ASSIGN(*model->mutable_producer_version(), in_.String("a string for producer_version"));
      } else if (key.text == "domain") {
        AF_ASSIGN(*model->mutable_domain(), in_.String("a string for domain"));
      } else if (key.text == "model_version") {
        AF_ASSIGN(const int64_t version, in_.Integer("an integer for model_version"));
        model->set_model_version(version);
      } else if (key.text == "doc_string") {
        AF_ASSIGN(*model->mutable_doc_string(), in_.String("a string for doc_string"));
      } else if (key.text == "metadata_props") {
        AF_TRY(StringPairs(model->mutable_metadata_props()));
      } else {
        return ErrorAt(key, fmt::format("'{}' is not a key of a model; expected ir_version, opset_import, "
                                        "producer_name, producer_version, domain, model_version, doc_string "
                                        "or metadata_props",
                                        key.text));
      }
    } while (in_.Accept(","));
    return in_.Expect(">", "after the model's header");
  }

  absl::Status OpsetImports(google::protobuf::RepeatedPtrField<onnx::OperatorSetIdProto>* imports) {
    AF_TRY(in_.Expect("[", "before the opset imports"));
    if (in_.Accept("]")) return absl::OkStatus();
    do {
      onnx::OperatorSetIdProto* import = imports->Add();
      AF_ASSIGN(*import->mutable_domain(), in_.String("a quoted domain"));
      AF_TRY(in_.Expect(":", "after the domain"));
      AF_ASSIGN(const int64_t version, in_.Integer("an opset version"));
      import->set_version(version);
    } while (in_.Accept(","));
    return in_.Expect("]", "after the opset imports");
  }

  absl::Status StringPairs(google::protobuf::RepeatedPtrField<onnx::StringStringEntryProto>* pairs) {
    AF_TRY(in_.Expect("[", "before the key and value strings"));
    if (in_.Accept("]")) return absl::OkStatus();
    do {
      onnx::StringStringEntryProto* pair = pairs->Add();
      AF_ASSIGN(*pair->mutable_key(), in_.String("a quoted key"));
      AF_TRY(in_.Expect(":", "after the key"));
      AF_ASSIGN(*pair->mutable_value(), in_.String("a quoted value"));
    } while (in_.Accept(","));
    return in_.Expect("]", "after the key and value strings");
  }

  // Depth of graphs and types; the error is the same for both.
  absl::Status Deeper() {
    if (depth_ >= kMaxDepth) {
      return ErrorAt(in_.Peek(), fmt::format("bodies or types nested more than {} deep", kMaxDepth));
    }
    ++depth_;
    return absl::OkStatus();
  }

  absl::Status Graph(onnx::GraphProto* graph) {
    AF_TRY(Deeper());
    AF_ASSIGN(*graph->mutable_name(), in_.QuotableIdentifier("the name of a graph"));
    AF_TRY(in_.Expect("(", "before the graph's inputs"));
    if (!in_.Accept(")")) {
      do {
        onnx::ValueInfoProto* input = graph->add_input();
        AF_TRY(ValueInfo(input));
        if (in_.Accept("=")) AF_TRY(Initializer(*input, graph->add_initializer()));
      } while (in_.Accept(","));
      AF_TRY(in_.Expect(")", "after the graph's inputs"));
    }
    AF_TRY(in_.Expect("=>", "between the graph's inputs and outputs"));
    AF_TRY(in_.Expect("(", "before the graph's outputs"));
    if (!in_.Accept(")")) {
      do {
        AF_TRY(ValueInfo(graph->add_output()));
      } while (in_.Accept(","));
      AF_TRY(in_.Expect(")", "after the graph's outputs"));
    }
    if (in_.Accept("<") && !in_.Accept(">")) {
      do {
        onnx::ValueInfoProto info;
        AF_TRY(ValueInfo(&info));
        if (in_.Accept("=")) {
          AF_TRY(Initializer(info, graph->add_initializer()));
        } else {
          *graph->add_value_info() = std::move(info);
        }
      } while (in_.Accept(","));
      AF_TRY(in_.Expect(">", "after the initializers and value infos"));
    }
    AF_TRY(Nodes(graph->mutable_node()));
    --depth_;
    return absl::OkStatus();
  }

  // A name of an input, output or value; the type may be left out.
  absl::Status ValueInfo(onnx::ValueInfoProto* info) {
    if (IsTypeWord(in_.Peek())) AF_TRY(Type(info->mutable_type()));
    AF_ASSIGN(*info->mutable_name(), in_.QuotableIdentifier("the name of a value"));
    return absl::OkStatus();
  }

  absl::Status Type(onnx::TypeProto* type) {
    AF_TRY(Deeper());
    const Token word = in_.Peek();
    if (!IsTypeWord(word)) return in_.Expected("a type such as float[N, 64]");
    in_.Next();
    if (word.text == "seq") {
      AF_TRY(in_.Expect("(", "after seq"));
      AF_TRY(Type(type->mutable_sequence_type()->mutable_elem_type()));
      AF_TRY(in_.Expect(")", "after the element type"));
    } else if (word.text == "optional") {
      AF_TRY(in_.Expect("(", "after optional"));
      AF_TRY(Type(type->mutable_optional_type()->mutable_elem_type()));
      AF_TRY(in_.Expect(")", "after the element type"));
    } else if (word.text == "map") {
      AF_TRY(in_.Expect("(", "after map"));
      AF_ASSIGN(const DataType key, ElementType());
      type->mutable_map_type()->set_key_type(static_cast<int32_t>(key));
      AF_TRY(in_.Expect(",", "after the key type"));
      AF_TRY(Type(type->mutable_map_type()->mutable_value_type()));
      AF_TRY(in_.Expect(")", "after the value type"));
    } else if (word.text == "sparse_tensor") {
      AF_TRY(in_.Expect("(", "after sparse_tensor"));
      AF_ASSIGN(const DataType element, ElementType());
      type->mutable_sparse_tensor_type()->set_elem_type(static_cast<int32_t>(element));
      AF_TRY(Shape(type->mutable_sparse_tensor_type()));
      AF_TRY(in_.Expect(")", "after the tensor type"));
    } else if (word.text == "opaque") {
      AF_TRY(Opaque(type->mutable_opaque_type()));
    } else {
      type->mutable_tensor_type()->set_elem_type(static_cast<int32_t>(DataTypeFromName(word.text)));
      AF_TRY(Shape(type->mutable_tensor_type()));
    }
    --depth_;
    return absl::OkStatus();
  }

  absl::StatusOr<DataType> ElementType() {
    const Token& word = in_.Peek();
    const DataType type = word.kind == TokenKind::kIdentifier ? DataTypeFromName(word.text) : DataType::kUndefined;
    if (type == DataType::kUndefined) return in_.Expected("an element type such as float or int64");
    in_.Next();
    return type;
  }

  // Nothing: a scalar. []: rank unknown. [...]: the dims.
  template <typename TensorType>
  absl::Status Shape(TensorType* type) {
    if (!in_.Accept("[")) {
      type->mutable_shape();
      return absl::OkStatus();
    }
    if (in_.Accept("]")) return absl::OkStatus();
    do {
      onnx::TensorShapeProto::Dimension* dim = type->mutable_shape()->add_dim();
      const Token& next = in_.Peek();
      if (in_.Accept("?")) continue;
      if (next.kind == TokenKind::kIdentifier || next.kind == TokenKind::kString) {
        AF_ASSIGN(*dim->mutable_dim_param(), in_.QuotableIdentifier("a dimension"));
      } else {
        AF_ASSIGN(const int64_t value, in_.Integer("a dimension (a number, a name or ?)"));
        dim->set_dim_value(value);
      }
    } while (in_.Accept(","));
    return in_.Expect("]", "after the dimensions");
  }

  absl::Status Opaque(onnx::TypeProto::Opaque* opaque) {
    AF_TRY(in_.Expect("(", "after opaque"));
    if (in_.Accept(")")) return absl::OkStatus();
    AF_ASSIGN(std::string name, QualifiedName("a name"));
    if (in_.Accept(",")) {
      opaque->set_domain(name);
      AF_ASSIGN(name, QualifiedName("a name"));
    }
    opaque->set_name(name);
    return in_.Expect(")", "after the opaque type");
  }

  absl::StatusOr<std::string> QualifiedName(std::string_view what) {
    AF_ASSIGN(std::string name, in_.QuotableIdentifier(what));
    while (in_.Accept(".")) {
      AF_ASSIGN(const std::string part, in_.QuotableIdentifier(what));
      name += "." + part;
    }
    return name;
  }

  absl::Status Initializer(const onnx::ValueInfoProto& info, onnx::TensorProto* tensor) {
    tensor->set_name(info.name());
    return TensorData(info.type(), tensor);
  }

  // The elements of a tensor of the given type.
  absl::Status TensorData(const onnx::TypeProto& type, onnx::TensorProto* tensor) {
    const Token at = in_.Peek();
    if (!type.has_tensor_type()) return ErrorAt(at, "a constant needs a tensor type before its name");
    if (!type.tensor_type().has_shape()) return ErrorAt(at, "a constant needs the dims in its type, not []");
    const auto element = static_cast<DataType>(type.tensor_type().elem_type());
    if (element == DataType::kUndefined) return ErrorAt(at, "a constant needs an element type");
    tensor->set_data_type(type.tensor_type().elem_type());
    int64_t count = 1;
    for (const onnx::TensorShapeProto::Dimension& dim : type.tensor_type().shape().dim()) {
      if (!dim.has_dim_value() || dim.dim_value() < 0) {
        return ErrorAt(at, "the dims of a constant must be numbers of 0 or more");
      }
      tensor->add_dims(dim.dim_value());
      // A zero dim makes the tensor empty whatever the others are.
      if (__builtin_mul_overflow(count, dim.dim_value(), &count)) {
        return ErrorAt(at, "this constant has more elements than 64 bits can count");
      }
    }
    if (in_.Peek().Is("[")) {
      tensor->set_data_location(onnx::TensorProto::EXTERNAL);
      return StringPairs(tensor->mutable_external_data());
    }
    AF_TRY(in_.Expect("{", "before the elements"));
    return Elements(element, count, tensor);
  }

  absl::Status Elements(DataType element, int64_t count, onnx::TensorProto* tensor) {
    const Token first = in_.Peek();
    if (in_.Accept("...")) {  // elements not given, perhaps with their hash
      if (in_.Peek().kind == TokenKind::kString) in_.Next();
      return in_.Expect("}", "after '...'");
    }
    const bool complex = element == DataType::kComplex64 || element == DataType::kComplex128;
    const int bits = BitWidth(element);
    // Elements as written: complex numbers are two floats, sub-byte integers come packed, as in int32_data.
    if (complex && __builtin_mul_overflow(count, 2, &count)) return ErrorAt(first, "this constant is too large");
    if (bits > 0 && bits < 8) {
      const int64_t per_byte = 8 / bits;
      count = count / per_byte + (count % per_byte != 0);
    }
    std::string raw;
    int64_t written = 0;
    size_t last = 0;  // where the last element starts in raw
    if (!in_.Accept("}")) {
      do {
        if (written > 0 && in_.Accept("...")) {
          AF_TRY(RepeatLast(first, element, count - written, last, &raw, tensor));
          written = std::max(written, count);
          break;
        }
        last = raw.size();
        AF_TRY(Element(element, &raw, tensor));
        ++written;
      } while (in_.Accept(","));
      AF_TRY(in_.Expect("}", "after the elements"));
    }
    if (written != count) {
      return ErrorAt(first, fmt::format("expected {} elements for these dims, found {}", count, written));
    }
    if (element != DataType::kString) tensor->set_raw_data(std::move(raw));
    return absl::OkStatus();
  }

  absl::Status RepeatLast(const Token& at, DataType element, int64_t times, size_t last, std::string* raw,
                          onnx::TensorProto* tensor) {
    if (times <= 0) return absl::OkStatus();
    const bool string = element == DataType::kString;
    const std::string unit = string ? tensor->string_data(tensor->string_data_size() - 1) : raw->substr(last);
    // 32 bytes: about what an element of string_data takes in memory at least.
    const auto bytes = static_cast<int64_t>(unit.size() + (string ? 32 : 0));
    if (times > repeat_budget_ / bytes) {
      return ErrorAt(at, fmt::format("repeated elements may fill {} bytes of a model at most", kMaxRepeatedBytes));
    }
    repeat_budget_ -= times * bytes;
    raw->reserve(raw->size() + (string ? 0 : times * unit.size()));
    for (int64_t i = 0; i < times; ++i) {
      if (string) {
        tensor->add_string_data(unit);
      } else {
        raw->append(unit);
      }
    }
    return absl::OkStatus();
  }

  absl::Status Element(DataType element, std::string* raw, onnx::TensorProto* tensor) {
    const Token at = in_.Peek();
    switch (element) {
      case DataType::kString: {
        AF_ASSIGN(*tensor->add_string_data(), in_.String("a string"));
        return absl::OkStatus();
      }
      case DataType::kFloat:
      case DataType::kComplex64: {
        AF_ASSIGN(const float value, in_.Float("a number"));
        AppendLittleEndian(value, 4, raw);
        return absl::OkStatus();
      }
      case DataType::kDouble:
      case DataType::kComplex128: {
        AF_ASSIGN(const double value, in_.Double("a number"));
        AppendLittleEndian(value, 8, raw);
        return absl::OkStatus();
      }
      case DataType::kUint32:
      case DataType::kUint64: {
        AF_ASSIGN(const uint64_t value, in_.Unsigned("an integer of 0 or more"));
        const bool narrow = element == DataType::kUint32;
        if (narrow && value > std::numeric_limits<uint32_t>::max()) return DoesNotFit(at, element);
        AppendLittleEndian(value, narrow ? 4 : 8, raw);
        return absl::OkStatus();
      }
      case DataType::kFloat16:
      case DataType::kBfloat16: {
        const Token& digits = in_.Peek(at.Is("-") ? 1 : 0);
        if (digits.kind == TokenKind::kInteger) break;  // a bit pattern
        AF_ASSIGN(const double value, in_.Double("a number"));
        raw->append(EncodeNumber(element, value));
        return absl::OkStatus();
      }
      default:
        break;
    }
    AF_ASSIGN(const int64_t value, in_.Integer("an integer"));
    const int bits = std::max(BitWidth(element), 8);
    const bool is_signed =
        element == DataType::kInt8 || element == DataType::kInt16 || element == DataType::kInt32 || element == DataType::kInt64;
    if (bits < 64) {
      const int64_t low = is_signed ? -(int64_t{1} << (bits - 1)) : 0;
      const int64_t high = element == DataType::kBool ? 1 : (int64_t{1} << (is_signed ? bits - 1 : bits)) - 1;
      if (value < low || value > high) return DoesNotFit(at, element);
    }
    AppendLittleEndian(value, bits / 8, raw);
    return absl::OkStatus();
  }

  static absl::Status DoesNotFit(const Token& at, DataType element) {
    return ErrorAt(at, fmt::format("this element does not fit {}", DataTypeName(element)));
  }

  absl::Status Nodes(google::protobuf::RepeatedPtrField<onnx::NodeProto>* nodes) {
    AF_TRY(in_.Expect("{", "before the nodes"));
    while (!in_.Accept("}")) AF_TRY(Node(nodes->Add()));
    return absl::OkStatus();
  }

  absl::Status Node(onnx::NodeProto* node) {
    if (in_.Accept("[")) {
      if (!in_.Peek().Is("]")) {
        AF_ASSIGN(*node->mutable_name(), in_.QuotableIdentifier("the name of a node"));
      }
      AF_TRY(in_.Expect("]", "after the node's name"));
    }
    AF_TRY(Names(node->mutable_output()));
    if (!in_.Accept("=")) {
      return in_.Expected(node->output_size() > 0 ? "'=' after the node's outputs" : "a node or '}'");
    }
    AF_ASSIGN(std::string name, in_.QuotableIdentifier("an operator"));
    std::string domain;
    while (in_.Accept(".")) {
      domain += (domain.empty() ? "" : ".") + name;
      AF_ASSIGN(name, in_.QuotableIdentifier("an operator after its domain"));
    }
    node->set_op_type(std::move(name));
    if (!domain.empty()) node->set_domain(std::move(domain));
    if (in_.Accept(":")) {
      AF_ASSIGN(*node->mutable_overload(), in_.QuotableIdentifier("the overload's name"));
    }
    AF_TRY(Attributes(node->mutable_attribute()));
    AF_TRY(in_.Expect("(", "before the node's inputs"));
    AF_TRY(Names(node->mutable_input()));
    AF_TRY(in_.Expect(")", "after the node's inputs"));
    // Attributes come before or after the inputs.
    if (node->attribute_size() == 0) AF_TRY(Attributes(node->mutable_attribute()));
    return absl::OkStatus();
  }

  // Names between commas; nothing or "" stands for an absent one, and a comma at the end adds nothing.
  absl::Status Names(google::protobuf::RepeatedPtrField<std::string>* names) {
    while (true) {
      const Token& next = in_.Peek();
      if (next.kind == TokenKind::kIdentifier || next.kind == TokenKind::kString) {
        AF_ASSIGN(*names->Add(), in_.QuotableIdentifier("a name"));
      } else if (next.Is(",")) {
        names->Add();
      } else {
        return absl::OkStatus();
      }
      if (!in_.Accept(",")) return absl::OkStatus();
    }
  }

  absl::Status Attributes(google::protobuf::RepeatedPtrField<onnx::AttributeProto>* attributes) {
    if (!in_.Accept("<")) return absl::OkStatus();
    do {
      AF_ASSIGN(const std::string name, in_.QuotableIdentifier("the name of an attribute"));
      AF_TRY(Attribute(name, attributes->Add()));
    } while (in_.Accept(","));
    return in_.Expect(">", "after the attributes");
  }

  // What follows the attribute's name.
  absl::Status Attribute(std::string_view name, onnx::AttributeProto* attribute) {
    attribute->set_name(std::string(name));
    const KindName* declared = nullptr;
    if (in_.Accept(":")) {
      const Token word = in_.Peek();
      AF_TRY(in_.Identifier("an attribute type such as int or floats").status());
      for (const KindName& row : kKindNames) {
        if (row.name == word.text) declared = &row;
      }
      if (declared == nullptr) return ErrorAt(word, fmt::format("'{}' is not an attribute type", word.text));
    }
    AF_TRY(in_.Expect("=", fmt::format("after the attribute's name '{}'", name)));
    const Token at = in_.Peek();
    if (!in_.Accept("[")) {
      AF_TRY(AttributeValue(declared == nullptr ? onnx::AttributeProto::UNDEFINED : declared->kind, attribute));
      if (declared != nullptr) attribute->set_type(declared->kind);  // also of an @reference
      return absl::OkStatus();
    }
    if (declared != nullptr && declared->kind == declared->single) {
      return ErrorAt(at, fmt::format("expected one {} for '{}', found a list", declared->name, name));
    }
    std::vector<onnx::AttributeProto> values;
    if (!in_.Accept("]")) {
      do {
        AF_TRY(AttributeValue(declared == nullptr ? onnx::AttributeProto::UNDEFINED : declared->single, &values.emplace_back()));
      } while (in_.Accept(","));
      AF_TRY(in_.Expect("]", "after the list"));
    }
    return AttributeList(at, declared, values, attribute);
  }

  absl::Status AttributeList(const Token& at, const KindName* declared, std::vector<onnx::AttributeProto>& values,
                             onnx::AttributeProto* attribute) {
    if (values.empty() && declared == nullptr) {
      return ErrorAt(at, fmt::format("an empty list needs its type: {} : ints = []", attribute->name()));
    }
    AttributeKind single = declared != nullptr ? declared->single : values[0].type();
    for (const onnx::AttributeProto& value : values) {  // [1, 2.5] are floats
      if (single == onnx::AttributeProto::INT && value.type() == onnx::AttributeProto::FLOAT) single = value.type();
    }
    for (onnx::AttributeProto& value : values) {
      const bool widened = single == onnx::AttributeProto::FLOAT && value.type() == onnx::AttributeProto::INT;
      if (widened) value.set_f(static_cast<float>(value.i()));
      if (value.has_ref_attr_name() || (!widened && value.type() != single)) {
        return ErrorAt(at, fmt::format("the elements of '{}' are of different types", attribute->name()));
      }
      switch (single) {
        case onnx::AttributeProto::INT:
          attribute->add_ints(value.i());
          break;
        case onnx::AttributeProto::FLOAT:
          attribute->add_floats(value.f());
          break;
        case onnx::AttributeProto::STRING:
          attribute->add_strings(value.s());
          break;
        case onnx::AttributeProto::TENSOR:
          *attribute->add_tensors() = std::move(*value.mutable_t());
          break;
        case onnx::AttributeProto::GRAPH:
          *attribute->add_graphs() = std::move(*value.mutable_g());
          break;
        default:  // a type: sparse tensors have no syntax
          *attribute->add_type_protos() = std::move(*value.mutable_tp());
          break;
      }
    }
    for (const KindName& row : kKindNames) {
      if (row.single == single && row.kind != single) attribute->set_type(row.kind);
    }
    return absl::OkStatus();
  }

  // One value. `expected` is UNDEFINED where no type was written.
  absl::Status AttributeValue(AttributeKind expected, onnx::AttributeProto* attribute) {
    const Token at = in_.Peek();
    if (in_.Accept("@")) {
      AF_ASSIGN(*attribute->mutable_ref_attr_name(), in_.QuotableIdentifier("the function's attribute after '@'"));
      return absl::OkStatus();
    }
    if (IsTypeWord(at)) {
      AF_TRY(TensorOrType(attribute));
    } else if (at.kind == TokenKind::kString && !in_.Peek(1).Is("(")) {
      attribute->set_type(onnx::AttributeProto::STRING);
      AF_ASSIGN(*attribute->mutable_s(), in_.String("a string"));
    } else if (at.kind == TokenKind::kString || (at.kind == TokenKind::kIdentifier && !IsFloatWord(at.text))) {
      attribute->set_type(onnx::AttributeProto::GRAPH);
      AF_TRY(Graph(attribute->mutable_g()));
    } else if (in_.Peek(at.Is("-") ? 1 : 0).kind == TokenKind::kInteger && expected != onnx::AttributeProto::FLOAT) {
      attribute->set_type(onnx::AttributeProto::INT);
      AF_ASSIGN(const int64_t value, in_.Integer("an integer"));
      attribute->set_i(value);
    } else {
      attribute->set_type(onnx::AttributeProto::FLOAT);
      AF_ASSIGN(const float value,
                in_.Float("a value: a number, a string, a tensor such as int64[2] {1, 2}, a type, a graph or @name"));
      attribute->set_f(value);
    }
    if (expected != onnx::AttributeProto::UNDEFINED && expected != attribute->type()) {
      return ErrorAt(at, fmt::format("expected a value of type {}, found one of type {}", FindKind(expected)->name,
                                     FindKind(attribute->type())->name));
    }
    return absl::OkStatus();
  }

  // float[2] {1, 2} is a tensor, float[N] alone a type.
  absl::Status TensorOrType(onnx::AttributeProto* attribute) {
    onnx::TypeProto type;
    AF_TRY(Type(&type));
    const Token& next = in_.Peek();
    const bool named = next.kind == TokenKind::kIdentifier || next.kind == TokenKind::kString;
    if (!named && !next.Is("{") && !next.Is("=")) {
      attribute->set_type(onnx::AttributeProto::TYPE_PROTO);
      *attribute->mutable_tp() = std::move(type);
      return absl::OkStatus();
    }
    attribute->set_type(onnx::AttributeProto::TENSOR);
    if (named) {
      AF_ASSIGN(*attribute->mutable_t()->mutable_name(), in_.QuotableIdentifier("the tensor's name"));
    }
    in_.Accept("=");
    return TensorData(type, attribute->mutable_t());
  }

  absl::Status Function(onnx::FunctionProto* function) {
    if (in_.Accept("<")) AF_TRY(FunctionHeader(function));
    AF_ASSIGN(*function->mutable_name(), in_.QuotableIdentifier("the name of a function"));
    if (in_.Accept("<") && !in_.Accept(">")) {
      do {  // an attribute's name, or a name with its default
        AF_ASSIGN(const std::string name, in_.QuotableIdentifier("the name of an attribute"));
        if (in_.Peek().Is(":") || in_.Peek().Is("=")) {
          AF_TRY(Attribute(name, function->add_attribute_proto()));
        } else {
          function->add_attribute(name);
        }
      } while (in_.Accept(","));
      AF_TRY(in_.Expect(">", "after the function's attributes"));
    }
    AF_TRY(FunctionValues("input", function->mutable_input(), function->mutable_value_info()));
    AF_TRY(in_.Expect("=>", "between the function's inputs and outputs"));
    AF_TRY(FunctionValues("output", function->mutable_output(), function->mutable_value_info()));
    if (in_.Accept("<") && !in_.Accept(">")) {
      do {
        AF_TRY(ValueInfo(function->add_value_info()));
      } while (in_.Accept(","));
      AF_TRY(in_.Expect(">", "after the value infos"));
    }
    return Nodes(function->mutable_node());
  }

  absl::Status FunctionHeader(onnx::FunctionProto* function) {
    do {
      const Token key = in_.Peek();
      AF_TRY(in_.Identifier("a key such as domain or opset_import").status());
      AF_TRY(in_.Expect(":", fmt::format("after {}", key.text)));
      if (key.text == "opset_import") {
        AF_TRY(OpsetImports(function->mutable_opset_import()));
      } else if (key.text == "domain") {
        AF_ASSIGN(*function->mutable_domain(), in_.String("a string for domain"));
      } else if (key.text == "overload") {
        AF_ASSIGN(*function->mutable_overload(), in_.String("a string for overload"));
      } else if (key.text == "doc_string") {
        AF_ASSIGN(*function->mutable_doc_string(), in_.String("a string for doc_string"));
      } else {
        return ErrorAt(key, fmt::format("'{}' is not a key of a function; expected domain, opset_import, overload "
                                        "or doc_string",
                                        key.text));
      }
    } while (in_.Accept(","));
    return in_.Expect(">", "after the function's header");
  }

  // Names; those with a type also go to the value infos.
  absl::Status FunctionValues(std::string_view what, google::protobuf::RepeatedPtrField<std::string>* names,
                              google::protobuf::RepeatedPtrField<onnx::ValueInfoProto>* infos) {
    AF_TRY(in_.Expect("(", fmt::format("before the function's {}s", what)));
    if (in_.Accept(")")) return absl::OkStatus();
    do {
      onnx::ValueInfoProto info;
      AF_TRY(ValueInfo(&info));
      *names->Add() = info.name();
      if (info.has_type()) *infos->Add() = std::move(info);
    } while (in_.Accept(","));
    return in_.Expect(")", fmt::format("after the function's {}s", what));
  }

  TokenReader in_;
  int depth_ = 0;
  int64_t repeat_budget_ = kMaxRepeatedBytes;
};

}  // namespace

absl::StatusOr<std::string> EncodeModelText(std::string_view text) {
  AF_ASSIGN(const std::vector<Token> tokens, Lex(text));
  onnx::ModelProto model;
  AF_TRY(ModelParser(tokens).Parse(&model));
  // 2 GB is what protobuf can write.
  if (model.ByteSizeLong() > static_cast<size_t>(std::numeric_limits<int32_t>::max())) {
    return absl::InvalidArgumentError("the model's constants exceed 2 GB");
  }
  return model.SerializeAsString();
}

absl::StatusOr<std::unique_ptr<Model>> ParseModelText(std::string_view text) {
  AF_ASSIGN(const std::string bytes, EncodeModelText(text));
  return LoadModelFromBytes(bytes);
}

}  // namespace ascend_fuse
