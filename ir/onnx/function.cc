#include "ir/onnx/function.h"

#include <algorithm>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "fmt/format.h"
#include "ir/onnx/encode.h"
#include "ir/onnx/load.h"
#include "ir/onnx/model_file.h"
#include "ir/status_macros.h"
#include "proto/onnx.pb.h"

namespace ascend_fuse {
namespace {

using onnx::AttributeProto;
using onnx::FunctionProto;
using onnx::NodeProto;
using onnx::TensorProto;

using Attributes = absl::flat_hash_map<std::string, AttributeProto>;
using Names = absl::flat_hash_set<std::string>;

// Replaces references to the function's attributes, and names of inputs that the call leaves out.
class Substitution {
 public:
  explicit Substitution(const Attributes& attributes) : attributes_(attributes) {}

  void Apply(const Names& absent, NodeProto* node) const {
    for (std::string& input : *node->mutable_input()) {
      if (absent.contains(input)) input.clear();
    }
    auto& list = *node->mutable_attribute();
    int kept = 0;
    for (int i = 0; i < list.size(); ++i) {
      AttributeProto& attribute = list[i];
      if (!attribute.ref_attr_name().empty()) {
        // Without a value for it the node has no such attribute: its operator's default holds.
        const auto found = attributes_.find(attribute.ref_attr_name());
        if (found == attributes_.end()) continue;
        const std::string name = attribute.name();
        attribute = found->second;
        attribute.set_name(name);
      } else {
        if (attribute.has_g()) Apply(absent, attribute.mutable_g());
        for (onnx::GraphProto& graph : *attribute.mutable_graphs()) Apply(absent, &graph);
      }
      list.SwapElements(kept++, i);
    }
    list.DeleteSubrange(kept, list.size() - kept);
  }

 private:
  // Graphs are nested at most as deep as protobuf reads them.
  void Apply(const Names& outer, onnx::GraphProto* graph) const {
    Names own;  // a name that the graph gives to a value of its own means that one
    const Names* absent = &outer;
    if (!outer.empty()) {
      own = outer;
      for (const onnx::ValueInfoProto& input : graph->input()) own.erase(input.name());
      for (const TensorProto& initializer : graph->initializer()) own.erase(initializer.name());
      for (const NodeProto& node : graph->node()) {
        for (const std::string& output : node.output()) own.erase(output);
      }
      absent = &own;
    }
    for (NodeProto& node : *graph->mutable_node()) Apply(*absent, &node);
  }

  const Attributes& attributes_;
};

// A call's name, or that of what it computes: exporters need not name nodes.
std::string_view Label(const Node& call) {
  if (call.name != NameId::kEmpty || call.output(0) == nullptr) return NodeName(call);
  return ValueName(*call.output(0));
}

std::string_view CanonicalDomain(std::string_view domain) { return domain == "ai.onnx" ? std::string_view() : domain; }

// Elements that were left in the file: `value` of a Constant. False for every other node.
bool ReadFileConstant(const wire::Field& message, FunctionBody::FileConstant* constant) {
  if (!message.has_hole()) return false;
  wire::Cursor node(message);
  wire::Field field;
  wire::Field attribute;
  std::string_view op_type;
  std::string_view domain;
  int outputs = 0;
  int attributes = 0;
  while (node.Next(&field)) {
    if (field.type != wire::kBytes) continue;
    if (field.number == NodeProto::kOpTypeFieldNumber) op_type = field.text();
    if (field.number == NodeProto::kDomainFieldNumber) domain = field.text();
    if (field.number == NodeProto::kOutputFieldNumber) {
      constant->name = std::string(field.text());
      ++outputs;
    }
    if (field.number == NodeProto::kAttributeFieldNumber) {
      attribute = field;
      ++attributes;
    }
  }
  if (op_type != "Constant" || !CanonicalDomain(domain).empty() || outputs != 1 || attributes != 1 || constant->name.empty()) {
    return false;
  }
  wire::Cursor parts(attribute);
  wire::Field tensor;
  while (parts.Next(&field)) {
    if (field.number == AttributeProto::kTFieldNumber && field.type == wire::kBytes) tensor = field;
  }
  if (tensor.data == nullptr) return false;
  wire::Cursor cursor(tensor);
  while (cursor.Next(&field)) {
    switch (field.number) {
      case TensorProto::kDimsFieldNumber:
        if (field.type == wire::kVarint) {
          constant->dims.push_back(static_cast<int64_t>(field.value));
        } else {
          wire::Cursor packed(field);
          uint64_t value = 0;
          while (!packed.AtEnd() && packed.Varint(&value)) constant->dims.push_back(static_cast<int64_t>(value));
        }
        break;
      case TensorProto::kDataTypeFieldNumber:
        constant->type = static_cast<DataType>(static_cast<int32_t>(field.value));
        break;
      case TensorProto::kRawDataFieldNumber:
        if (field.is_hole()) constant->elements = {field.position, field.size};
        break;
      default:
        break;
    }
  }
  Tensor whole;
  whole.dims = constant->dims;
  const int64_t count = whole.ElementCount();
  const int bits = BitWidth(constant->type);
  return cursor.error() == nullptr && constant->elements.offset >= 0 && bits > 0 && count >= 0 &&
         (count * bits + 7) / 8 == constant->elements.size;
}

void CountNodes(const NodeProto& node, std::vector<const NodeProto*>* all) {
  all->push_back(&node);
  for (const AttributeProto& attribute : node.attribute()) {
    for (const NodeProto& inner : attribute.g().node()) CountNodes(inner, all);
    for (const onnx::GraphProto& graph : attribute.graphs()) {
      for (const NodeProto& inner : graph.node()) CountNodes(inner, all);
    }
  }
}

}  // namespace

LocalFunctions::~LocalFunctions() = default;

LocalFunctions::LocalFunctions(const Model& model) : model_(model) {
  functions_.resize(model.functions().size());
  for (size_t i = 0; i < functions_.size(); ++i) {
    const LocalFunction& source = model.functions()[i];
    functions_[i].source = &source;
    std::vector<size_t>& same = by_domain_and_name_[model.Text(source.domain)][model.Text(source.name)];
    for (const size_t other : same) {
      if (functions_[other].source->overload != source.overload) continue;
      functions_[other].twice = functions_[i].twice = true;
    }
    same.push_back(i);
  }
}

std::string LocalFunctions::Describe(size_t index) const {
  const LocalFunction& source = *functions_[index].source;
  std::string text = fmt::format("{}.{}", model_.Text(source.domain), model_.Text(source.name));
  if (source.overload != NameId::kEmpty) text += fmt::format(":{}", model_.Text(source.overload));
  return text;
}

int64_t LocalFunctions::Find(std::string_view domain, std::string_view name, std::string_view overload) const {
  const auto names = by_domain_and_name_.find(domain);
  if (names == by_domain_and_name_.end()) return -1;
  const auto found = names->second.find(name);
  if (found == names->second.end()) return -1;
  for (const size_t index : found->second) {
    if (model_.Text(functions_[index].source->overload) == overload) return static_cast<int64_t>(index);
  }
  return -1;
}

int64_t LocalFunctions::Find(const Node& node) const {
  const auto names = by_domain_and_name_.find(Domain(node));
  if (names == by_domain_and_name_.end() || !names->second.contains(OpType(node))) return -1;
  return Find(Domain(node), OpType(node), NodeOverload(node));
}

absl::Status LocalFunctions::Decode(Function* function) {
  if (function->decoded) return function->error;
  function->decoded = true;
  auto refuse = [function](absl::Status status) { return function->error = std::move(status); };
  if (function->twice) return refuse(absl::InvalidArgumentError("the model has two functions of that name"));
  const EncodedSpan& span = function->source->encoded;
  const ModelFile* model_file = model_.model_file();
  wire::Cursor cursor =
      model_file != nullptr ? model_file->Open(span) : wire::Cursor(span.data, 0, span.file.size, &wire::kNoHoles);
  std::string bytes;
  wire::Field field;
  while (cursor.Next(&field)) {
    if (field.number == FunctionProto::kNodeFieldNumber && field.type == wire::kBytes) {
      FunctionBody::FileConstant constant;
      if (ReadFileConstant(field, &constant)) {
        function->constants.push_back(std::move(constant));
        continue;
      }
    }
    const int64_t size = cursor.position() - field.start;
    bytes_ += size;
    if (bytes_ > kMaxBytes) {
      return refuse(absl::ResourceExhaustedError(
          fmt::format("the local functions have more than {} MB besides large constants", kMaxBytes >> 20)));
    }
    const size_t at = bytes.size();
    bytes.resize(at + static_cast<size_t>(size));
    if (model_file == nullptr || span.file.offset < 0) {
      std::copy_n(reinterpret_cast<const char*>(span.data) + field.start, size, bytes.data() + at);
    } else if (absl::Status status = model_file->Copy(field.start, size, bytes.data() + at); !status.ok()) {
      return refuse(status);
    }
  }
  auto proto = std::make_unique<FunctionProto>();
  if (cursor.error() != nullptr || !proto->ParseFromString(bytes)) {
    return refuse(absl::InvalidArgumentError("its bytes are not a FunctionProto"));
  }
  function->proto = std::move(proto);
  return absl::OkStatus();
}

absl::StatusOr<LocalFunctions::Size> LocalFunctions::SizeOf(size_t index) {
  Function& function = functions_[index];
  RETURN_IF_ERROR(Decode(&function));
  std::vector<const NodeProto*> nodes;
  for (const NodeProto& node : function.proto->node()) CountNodes(node, &nodes);
  Size size;
  size.nodes = static_cast<int64_t>(nodes.size());
  size.bytes = static_cast<int64_t>(function.proto->ByteSizeLong());
  for (const NodeProto* node : nodes) {
    const int64_t callee = Find(CanonicalDomain(node->domain()), node->op_type(), node->overload());
    if (callee >= 0) size.calls.push_back(static_cast<size_t>(callee));
  }
  return size;
}

std::string LocalFunctions::KeyOf(size_t index, const Node& call) const {
  // What BodyFor compares with the function is part of it: of two calls that differ in it, one may not fit.
  std::string key = fmt::format("{}:{}:{}:", index, call.output_count, call.subgraph_count);
  for (const Use& use : call.inputs()) key.push_back(use.value != nullptr ? '1' : '0');
  key += ":" + EncodeAttributes(call.graph->model(), ReadAttributes(call));
  return key;
}

absl::StatusOr<FunctionBody> LocalFunctions::BodyFor(size_t index, const Node& call) {
  Function& function = functions_[index];
  RETURN_IF_ERROR(Decode(&function));
  const FunctionProto& proto = *function.proto;
  if (call.input_count > static_cast<uint32_t>(proto.input_size()) ||
      call.output_count > static_cast<uint32_t>(proto.output_size())) {
    return absl::InvalidArgumentError(fmt::format("the call '{}' has {} inputs and {} outputs, the function {} and {}",
                                                  Label(call), call.input_count, call.output_count, proto.input_size(),
                                                  proto.output_size()));
  }
  if (call.subgraph_count > 0) {
    return absl::InvalidArgumentError(fmt::format("the call '{}' gives a graph to the function", Label(call)));
  }
  Attributes attributes;
  for (const AttributeProto& attribute : proto.attribute_proto()) attributes[attribute.name()] = attribute;
  NodeProto given;
  if (!given.ParseFromString(EncodeAttributes(call.graph->model(), ReadAttributes(call)))) {
    return absl::InvalidArgumentError(fmt::format("the attributes of the call '{}' cannot be read", Label(call)));
  }
  for (AttributeProto& attribute : *given.mutable_attribute()) {
    attributes[attribute.name()] = std::move(attribute);
  }

  onnx::ModelProto model;
  model.set_ir_version(10);
  if (proto.opset_import_size() > 0) {
    *model.mutable_opset_import() = proto.opset_import();
  } else {
    for (const OpsetImport& import : model_.opset_imports()) {
      onnx::OperatorSetIdProto* to = model.add_opset_import();
      to->set_domain(std::string(model_.Text(import.domain)));
      to->set_version(import.version);
    }
  }
  FunctionBody body;
  onnx::GraphProto* graph = model.mutable_graph();
  graph->set_name(proto.name());
  Names absent;
  for (int i = 0; i < proto.input_size(); ++i) {
    if (call.input(static_cast<size_t>(i)) == nullptr) {
      absent.insert(proto.input(i));
    } else {
      graph->add_input()->set_name(proto.input(i));
      ++body.given;
    }
  }
  for (const FunctionBody::FileConstant& constant : function.constants) {
    onnx::ValueInfoProto* input = graph->add_input();
    input->set_name(constant.name);
    onnx::TypeProto::Tensor* type = input->mutable_type()->mutable_tensor_type();
    type->set_elem_type(static_cast<int32_t>(constant.type));
    type->mutable_shape();
    for (const int64_t dim : constant.dims) type->mutable_shape()->add_dim()->set_dim_value(dim);
  }
  body.constants = function.constants;
  for (const std::string& name : proto.output()) graph->add_output()->set_name(name);
  *graph->mutable_value_info() = proto.value_info();
  *graph->mutable_node() = proto.node();
  const Substitution substitution(attributes);
  for (NodeProto& node : *graph->mutable_node()) substitution.Apply(absent, &node);
  absl::StatusOr<std::unique_ptr<Model>> loaded = LoadModelFromBytes(model.SerializeAsString());
  if (!loaded.ok()) {
    return absl::InvalidArgumentError(
        fmt::format("its body is not a valid graph for the call '{}' ({})", Label(call), std::string(loaded.status().message())));
  }
  body.model = *std::move(loaded);
  return body;
}

}  // namespace ascend_fuse
