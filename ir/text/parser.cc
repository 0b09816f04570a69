// Recursive descent, one function per production of onnx/onnx:docs/Syntax.md, straight into an
// onnx::ModelProto; its bytes then go through the one loader.
#include "ir/text/parser.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "fmt/format.h"
#include "ir/data_type.h"
#include "ir/onnx/encode.h"
#include "ir/onnx/load.h"
#include "ir/status_macros.h"
#include "ir/text/element_parser.h"
#include "ir/text/lexer.h"
#include "proto/onnx.pb.h"

namespace ascend_fuse {
namespace {

using AttributeKind = onnx::AttributeProto::AttributeType;

// Bodies within bodies and types within types: three protobuf messages a level, of the 100 that protobuf
// reads.
constexpr int kMaxDepth = 24;
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

class ModelParser {
 public:
  explicit ModelParser(const std::vector<Token>& tokens) : in_(tokens) {}

  absl::Status Parse(onnx::ModelProto* model) {
    if (in_.Accept("<")) RETURN_IF_ERROR(ModelHeader(model));
    RETURN_IF_ERROR(Graph(model->mutable_graph()));
    while (!in_.AtEnd()) RETURN_IF_ERROR(Function(model->add_functions()));
    return absl::OkStatus();
  }

 private:
  absl::Status ModelHeader(onnx::ModelProto* model) {
    do {
      const Token key = in_.Peek();
      RETURN_IF_ERROR(in_.Identifier("a key such as ir_version or opset_import").status());
      RETURN_IF_ERROR(in_.Expect(":", fmt::format("after {}", key.text)));
      if (key.text == "ir_version") {
        ASSIGN_OR_RETURN(const int64_t version, in_.Integer("an integer for ir_version"));
        model->set_ir_version(version);
      } else if (key.text == "opset_import") {
        RETURN_IF_ERROR(OpsetImports(model->mutable_opset_import()));
      } else if (key.text == "producer_name") {
        ASSIGN_OR_RETURN(*model->mutable_producer_name(), in_.String("a string for producer_name"));
      } else if (key.text == "producer_version") {
        ASSIGN_OR_RETURN(*model->mutable_producer_version(), in_.String("a string for producer_version"));
      } else if (key.text == "domain") {
        ASSIGN_OR_RETURN(*model->mutable_domain(), in_.String("a string for domain"));
      } else if (key.text == "model_version") {
        ASSIGN_OR_RETURN(const int64_t version, in_.Integer("an integer for model_version"));
        model->set_model_version(version);
      } else if (key.text == "doc_string") {
        ASSIGN_OR_RETURN(*model->mutable_doc_string(), in_.String("a string for doc_string"));
      } else if (key.text == "metadata_props") {
        RETURN_IF_ERROR(StringPairs(model->mutable_metadata_props()));
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
    RETURN_IF_ERROR(in_.Expect("[", "before the opset imports"));
    if (in_.Accept("]")) return absl::OkStatus();
    do {
      onnx::OperatorSetIdProto* import = imports->Add();
      ASSIGN_OR_RETURN(*import->mutable_domain(), in_.String("a quoted domain"));
      RETURN_IF_ERROR(in_.Expect(":", "after the domain"));
      ASSIGN_OR_RETURN(const int64_t version, in_.Integer("an opset version"));
      import->set_version(version);
    } while (in_.Accept(","));
    return in_.Expect("]", "after the opset imports");
  }

  absl::Status StringPairs(google::protobuf::RepeatedPtrField<onnx::StringStringEntryProto>* pairs) {
    RETURN_IF_ERROR(in_.Expect("[", "before the key and value strings"));
    if (in_.Accept("]")) return absl::OkStatus();
    do {
      onnx::StringStringEntryProto* pair = pairs->Add();
      ASSIGN_OR_RETURN(*pair->mutable_key(), in_.String("a quoted key"));
      RETURN_IF_ERROR(in_.Expect(":", "after the key"));
      ASSIGN_OR_RETURN(*pair->mutable_value(), in_.String("a quoted value"));
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
    RETURN_IF_ERROR(Deeper());
    ASSIGN_OR_RETURN(*graph->mutable_name(), in_.QuotableIdentifier("the name of a graph"));
    RETURN_IF_ERROR(in_.Expect("(", "before the graph's inputs"));
    if (!in_.Accept(")")) {
      do {
        onnx::ValueInfoProto* input = graph->add_input();
        RETURN_IF_ERROR(ValueInfo(input));
        if (in_.Accept("=")) RETURN_IF_ERROR(Initializer(*input, graph->add_initializer()));
      } while (in_.Accept(","));
      RETURN_IF_ERROR(in_.Expect(")", "after the graph's inputs"));
    }
    RETURN_IF_ERROR(in_.Expect("=>", "between the graph's inputs and outputs"));
    RETURN_IF_ERROR(in_.Expect("(", "before the graph's outputs"));
    if (!in_.Accept(")")) {
      do {
        RETURN_IF_ERROR(ValueInfo(graph->add_output()));
      } while (in_.Accept(","));
      RETURN_IF_ERROR(in_.Expect(")", "after the graph's outputs"));
    }
    if (in_.Accept("<") && !in_.Accept(">")) {
      do {
        onnx::ValueInfoProto info;
        RETURN_IF_ERROR(ValueInfo(&info));
        if (in_.Accept("=")) {
          RETURN_IF_ERROR(Initializer(info, graph->add_initializer()));
        } else {
          *graph->add_value_info() = std::move(info);
        }
      } while (in_.Accept(","));
      RETURN_IF_ERROR(in_.Expect(">", "after the initializers and value infos"));
    }
    RETURN_IF_ERROR(Nodes(graph->mutable_node()));
    --depth_;
    return absl::OkStatus();
  }

  // A name of an input, output or value; the type may be left out.
  absl::Status ValueInfo(onnx::ValueInfoProto* info) {
    if (IsTypeWord(in_.Peek())) RETURN_IF_ERROR(Type(info->mutable_type()));
    ASSIGN_OR_RETURN(*info->mutable_name(), in_.QuotableIdentifier("the name of a value"));
    return absl::OkStatus();
  }

  absl::Status Type(onnx::TypeProto* type) {
    RETURN_IF_ERROR(Deeper());
    const Token word = in_.Peek();
    if (!IsTypeWord(word)) return in_.Expected("a type such as float[N, 64]");
    in_.Next();
    if (word.text == "seq") {
      RETURN_IF_ERROR(in_.Expect("(", "after seq"));
      RETURN_IF_ERROR(Type(type->mutable_sequence_type()->mutable_elem_type()));
      RETURN_IF_ERROR(in_.Expect(")", "after the element type"));
    } else if (word.text == "optional") {
      RETURN_IF_ERROR(in_.Expect("(", "after optional"));
      RETURN_IF_ERROR(Type(type->mutable_optional_type()->mutable_elem_type()));
      RETURN_IF_ERROR(in_.Expect(")", "after the element type"));
    } else if (word.text == "map") {
      RETURN_IF_ERROR(in_.Expect("(", "after map"));
      ASSIGN_OR_RETURN(const DataType key, ElementType());
      type->mutable_map_type()->set_key_type(static_cast<int32_t>(key));
      RETURN_IF_ERROR(in_.Expect(",", "after the key type"));
      RETURN_IF_ERROR(Type(type->mutable_map_type()->mutable_value_type()));
      RETURN_IF_ERROR(in_.Expect(")", "after the value type"));
    } else if (word.text == "sparse_tensor") {
      RETURN_IF_ERROR(in_.Expect("(", "after sparse_tensor"));
      ASSIGN_OR_RETURN(const DataType element, ElementType());
      type->mutable_sparse_tensor_type()->set_elem_type(static_cast<int32_t>(element));
      RETURN_IF_ERROR(Shape(type->mutable_sparse_tensor_type()));
      RETURN_IF_ERROR(in_.Expect(")", "after the tensor type"));
    } else if (word.text == "opaque") {
      RETURN_IF_ERROR(Opaque(type->mutable_opaque_type()));
    } else {
      type->mutable_tensor_type()->set_elem_type(static_cast<int32_t>(DataTypeFromName(word.text)));
      RETURN_IF_ERROR(Shape(type->mutable_tensor_type()));
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
        ASSIGN_OR_RETURN(*dim->mutable_dim_param(), in_.QuotableIdentifier("a dimension"));
      } else {
        ASSIGN_OR_RETURN(const int64_t value, in_.Integer("a dimension (a number, a name or ?)"));
        dim->set_dim_value(value);
      }
    } while (in_.Accept(","));
    return in_.Expect("]", "after the dimensions");
  }

  absl::Status Opaque(onnx::TypeProto::Opaque* opaque) {
    RETURN_IF_ERROR(in_.Expect("(", "after opaque"));
    if (in_.Accept(")")) return absl::OkStatus();
    ASSIGN_OR_RETURN(std::string name, QualifiedName("a name"));
    if (in_.Accept(",")) {
      opaque->set_domain(name);
      ASSIGN_OR_RETURN(name, QualifiedName("a name"));
    }
    opaque->set_name(name);
    return in_.Expect(")", "after the opaque type");
  }

  absl::StatusOr<std::string> QualifiedName(std::string_view what) {
    ASSIGN_OR_RETURN(std::string name, in_.QuotableIdentifier(what));
    while (in_.Accept(".")) {
      ASSIGN_OR_RETURN(const std::string part, in_.QuotableIdentifier(what));
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
    RETURN_IF_ERROR(in_.Expect("{", "before the elements"));
    return elements_.Parse(element, count, tensor);
  }

  absl::Status Nodes(google::protobuf::RepeatedPtrField<onnx::NodeProto>* nodes) {
    RETURN_IF_ERROR(in_.Expect("{", "before the nodes"));
    while (!in_.Accept("}")) RETURN_IF_ERROR(Node(nodes->Add()));
    return absl::OkStatus();
  }

  absl::Status Node(onnx::NodeProto* node) {
    if (in_.Accept("[")) {
      if (!in_.Peek().Is("]")) {
        ASSIGN_OR_RETURN(*node->mutable_name(), in_.QuotableIdentifier("the name of a node"));
      }
      RETURN_IF_ERROR(in_.Expect("]", "after the node's name"));
    }
    RETURN_IF_ERROR(Names(node->mutable_output()));
    if (!in_.Accept("=")) {
      return in_.Expected(node->output_size() > 0 ? "'=' after the node's outputs" : "a node or '}'");
    }
    ASSIGN_OR_RETURN(std::string name, in_.QuotableIdentifier("an operator"));
    std::optional<std::string> domain;
    while (in_.Accept(".")) {
      domain = domain.has_value() ? *domain + "." + name : name;
      ASSIGN_OR_RETURN(name, in_.QuotableIdentifier("an operator after its domain"));
    }
    node->set_op_type(std::move(name));
    if (domain.has_value() && !domain->empty()) node->set_domain(*std::move(domain));
    if (in_.Accept(":")) {
      ASSIGN_OR_RETURN(*node->mutable_overload(), in_.QuotableIdentifier("the overload's name"));
    }
    RETURN_IF_ERROR(Attributes(node->mutable_attribute()));
    RETURN_IF_ERROR(in_.Expect("(", "before the node's inputs"));
    RETURN_IF_ERROR(Names(node->mutable_input()));
    RETURN_IF_ERROR(in_.Expect(")", "after the node's inputs"));
    // Attributes come before or after the inputs.
    if (node->attribute_size() == 0) RETURN_IF_ERROR(Attributes(node->mutable_attribute()));
    return absl::OkStatus();
  }

  // Names between commas; nothing or "" stands for an absent one, and a comma at the end adds nothing.
  absl::Status Names(google::protobuf::RepeatedPtrField<std::string>* names) {
    while (true) {
      const Token& next = in_.Peek();
      if (next.kind == TokenKind::kIdentifier || next.kind == TokenKind::kString) {
        ASSIGN_OR_RETURN(*names->Add(), in_.QuotableIdentifier("a name"));
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
      ASSIGN_OR_RETURN(const std::string name, in_.QuotableIdentifier("the name of an attribute"));
      RETURN_IF_ERROR(Attribute(name, attributes->Add()));
    } while (in_.Accept(","));
    return in_.Expect(">", "after the attributes");
  }

  // What follows the attribute's name.
  absl::Status Attribute(std::string_view name, onnx::AttributeProto* attribute) {
    attribute->set_name(std::string(name));
    const KindName* declared = nullptr;
    if (in_.Accept(":")) {
      const Token word = in_.Peek();
      RETURN_IF_ERROR(in_.Identifier("an attribute type such as int or floats").status());
      for (const KindName& row : kKindNames) {
        if (row.name == word.text) declared = &row;
      }
      if (declared == nullptr) return ErrorAt(word, fmt::format("'{}' is not an attribute type", word.text));
    }
    RETURN_IF_ERROR(in_.Expect("=", fmt::format("after the attribute's name '{}'", name)));
    const Token at = in_.Peek();
    if (!in_.Accept("[")) {
      RETURN_IF_ERROR(AttributeValue(declared == nullptr ? onnx::AttributeProto::UNDEFINED : declared->kind, attribute));
      if (declared != nullptr) attribute->set_type(declared->kind);  // also of an @reference
      return absl::OkStatus();
    }
    if (declared != nullptr && declared->kind == declared->single) {
      return ErrorAt(at, fmt::format("expected one {} for '{}', found a list", declared->name, name));
    }
    std::vector<onnx::AttributeProto> values;
    if (!in_.Accept("]")) {
      do {
        RETURN_IF_ERROR(
            AttributeValue(declared == nullptr ? onnx::AttributeProto::UNDEFINED : declared->single, &values.emplace_back()));
      } while (in_.Accept(","));
      RETURN_IF_ERROR(in_.Expect("]", "after the list"));
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
      ASSIGN_OR_RETURN(*attribute->mutable_ref_attr_name(), in_.QuotableIdentifier("the function's attribute after '@'"));
      return absl::OkStatus();
    }
    if (IsTypeWord(at)) {
      RETURN_IF_ERROR(TensorOrType(attribute));
    } else if (at.kind == TokenKind::kString && !in_.Peek(1).Is("(")) {
      attribute->set_type(onnx::AttributeProto::STRING);
      ASSIGN_OR_RETURN(*attribute->mutable_s(), in_.String("a string"));
    } else if (at.kind == TokenKind::kString || (at.kind == TokenKind::kIdentifier && !IsFloatWord(at.text))) {
      attribute->set_type(onnx::AttributeProto::GRAPH);
      RETURN_IF_ERROR(Graph(attribute->mutable_g()));
    } else if (in_.Peek(at.Is("-") ? 1 : 0).kind == TokenKind::kInteger && expected != onnx::AttributeProto::FLOAT) {
      attribute->set_type(onnx::AttributeProto::INT);
      ASSIGN_OR_RETURN(const int64_t value, in_.Integer("an integer"));
      attribute->set_i(value);
    } else {
      attribute->set_type(onnx::AttributeProto::FLOAT);
      ASSIGN_OR_RETURN(const float value,
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
    RETURN_IF_ERROR(Type(&type));
    const Token& next = in_.Peek();
    const bool named = next.kind == TokenKind::kIdentifier || next.kind == TokenKind::kString;
    if (!named && !next.Is("{") && !next.Is("=")) {
      attribute->set_type(onnx::AttributeProto::TYPE_PROTO);
      *attribute->mutable_tp() = std::move(type);
      return absl::OkStatus();
    }
    attribute->set_type(onnx::AttributeProto::TENSOR);
    if (named) {
      ASSIGN_OR_RETURN(*attribute->mutable_t()->mutable_name(), in_.QuotableIdentifier("the tensor's name"));
    }
    in_.Accept("=");
    return TensorData(type, attribute->mutable_t());
  }

  absl::Status Function(onnx::FunctionProto* function) {
    if (in_.Accept("<")) RETURN_IF_ERROR(FunctionHeader(function));
    ASSIGN_OR_RETURN(*function->mutable_name(), in_.QuotableIdentifier("the name of a function"));
    if (in_.Accept("<") && !in_.Accept(">")) {
      do {  // an attribute's name, or a name with its default
        ASSIGN_OR_RETURN(const std::string name, in_.QuotableIdentifier("the name of an attribute"));
        if (in_.Peek().Is(":") || in_.Peek().Is("=")) {
          RETURN_IF_ERROR(Attribute(name, function->add_attribute_proto()));
        } else {
          function->add_attribute(name);
        }
      } while (in_.Accept(","));
      RETURN_IF_ERROR(in_.Expect(">", "after the function's attributes"));
    }
    RETURN_IF_ERROR(FunctionValues("input", function->mutable_input(), function->mutable_value_info()));
    RETURN_IF_ERROR(in_.Expect("=>", "between the function's inputs and outputs"));
    RETURN_IF_ERROR(FunctionValues("output", function->mutable_output(), function->mutable_value_info()));
    if (in_.Accept("<") && !in_.Accept(">")) {
      do {
        RETURN_IF_ERROR(ValueInfo(function->add_value_info()));
      } while (in_.Accept(","));
      RETURN_IF_ERROR(in_.Expect(">", "after the value infos"));
    }
    return Nodes(function->mutable_node());
  }

  absl::Status FunctionHeader(onnx::FunctionProto* function) {
    do {
      const Token key = in_.Peek();
      RETURN_IF_ERROR(in_.Identifier("a key such as domain or opset_import").status());
      RETURN_IF_ERROR(in_.Expect(":", fmt::format("after {}", key.text)));
      if (key.text == "opset_import") {
        RETURN_IF_ERROR(OpsetImports(function->mutable_opset_import()));
      } else if (key.text == "domain") {
        ASSIGN_OR_RETURN(*function->mutable_domain(), in_.String("a string for domain"));
      } else if (key.text == "overload") {
        ASSIGN_OR_RETURN(*function->mutable_overload(), in_.String("a string for overload"));
      } else if (key.text == "doc_string") {
        ASSIGN_OR_RETURN(*function->mutable_doc_string(), in_.String("a string for doc_string"));
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
    RETURN_IF_ERROR(in_.Expect("(", fmt::format("before the function's {}s", what)));
    if (in_.Accept(")")) return absl::OkStatus();
    do {
      onnx::ValueInfoProto info;
      RETURN_IF_ERROR(ValueInfo(&info));
      *names->Add() = info.name();
      if (info.has_type()) *infos->Add() = std::move(info);
    } while (in_.Accept(","));
    return in_.Expect(")", fmt::format("after the function's {}s", what));
  }

  TokenReader in_;
  int depth_ = 0;
  ElementParser elements_{&in_};
};

}  // namespace

absl::StatusOr<std::string> EncodeModelText(std::string_view text) {
  ASSIGN_OR_RETURN(const std::vector<Token> tokens, Lex(text));
  onnx::ModelProto model;
  RETURN_IF_ERROR(ModelParser(tokens).Parse(&model));
  // 2 GB is what protobuf can write.
  if (model.ByteSizeLong() > static_cast<size_t>(std::numeric_limits<int32_t>::max())) {
    return absl::InvalidArgumentError("the model's constants exceed 2 GB");
  }
  return model.SerializeAsString();
}

absl::StatusOr<std::unique_ptr<Model>> ParseModelText(std::string_view text) {
  ASSIGN_OR_RETURN(const std::string bytes, EncodeModelText(text));
  return LoadModelFromBytes(bytes);
}

}  // namespace ascend_fuse
