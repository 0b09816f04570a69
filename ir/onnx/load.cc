// Builds the graphs of a Model from the structural bytes of its file, in one pass over the fields of each
// graph.
#include "ir/onnx/load.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/container/inlined_vector.h"
#include "fmt/format.h"
#include "ir/memory.h"
#include "ir/onnx/model_file.h"
#include "ir/onnx/tensor_check.h"
#include "ir/onnx/tensor_proto.h"
#include "ir/onnx/topological_order.h"
#include "ir/onnx/wire_check.h"
#include "ir/status_macros.h"
#include "proto/onnx.pb.h"

namespace ascend_fuse {
namespace {

using onnx::AttributeProto;
using onnx::GraphProto;
using onnx::ModelProto;
using onnx::NodeProto;
using onnx::ValueInfoProto;

// Messages from a graph down to the deepest in it that is neither a graph of an attribute nor a nested type: initializer, sparse
// tensor, external_data, ..., and groups in that.
constexpr int kLevelsOfGraph = 8 + wire::kMaxGroups;
// From a graph to one in an attribute of its nodes.
constexpr int kLevelsToBody = 3;

// Fields of GraphProto and NodeProto that are known are all length-delimited.
constexpr uint32_t Bits(std::initializer_list<int> numbers) {
  uint32_t bits = 0;
  for (int number : numbers) bits |= 1u << number;
  return bits;
}
constexpr uint32_t kGraphFields =
    Bits({GraphProto::kNodeFieldNumber, GraphProto::kNameFieldNumber, GraphProto::kInitializerFieldNumber,
          GraphProto::kSparseInitializerFieldNumber, GraphProto::kDocStringFieldNumber, GraphProto::kInputFieldNumber,
          GraphProto::kOutputFieldNumber, GraphProto::kValueInfoFieldNumber, GraphProto::kQuantizationAnnotationFieldNumber,
          GraphProto::kMetadataPropsFieldNumber});
constexpr uint32_t kNodeFields =
    Bits({NodeProto::kInputFieldNumber, NodeProto::kOutputFieldNumber, NodeProto::kNameFieldNumber, NodeProto::kOpTypeFieldNumber,
          NodeProto::kDomainFieldNumber, NodeProto::kOverloadFieldNumber, NodeProto::kAttributeFieldNumber,
          NodeProto::kDocStringFieldNumber, NodeProto::kMetadataPropsFieldNumber, NodeProto::kDeviceConfigurationsFieldNumber});

bool IsBadType(const wire::Field& field, uint32_t known_bytes_fields) {
  return field.type != wire::kBytes && field.number < 32 && (known_bytes_fields >> field.number & 1) != 0;
}

// Fetches the bytes of a graph from memory some way before they are read. The fields of a node are short
// steps of uneven length, which the processor does not foresee: of a model that left the caches, most of the
// time of parsing nodes was waiting.
class ReadAhead {
 public:
  explicit ReadAhead(const ModelFile& model_file) : end_(model_file.data() + model_file.structural_size()) {}

  void To(const wire::Field& field) {
    if (field.type != wire::kBytes) return;
    if (fetched_ < field.data) fetched_ = field.data;
    // A payload takes no place in memory, but all of its size in `field`.
    const int64_t size = std::min<int64_t>({field.size, kMost, end_ - field.data});
    const uint8_t* const wanted = field.data + size + kAhead;
    for (; fetched_ < wanted && fetched_ < end_; fetched_ += kLine) __builtin_prefetch(fetched_);
  }

 private:
  static constexpr int64_t kAhead = 4096;
  static constexpr int64_t kMost = 16384;
  static constexpr int64_t kLine = 64;
  const uint8_t* fetched_ = nullptr;
  const uint8_t* end_;
};

// Name and type of a ValueInfoProto of a graph at this level.
absl::Status ReadValueInfo(const wire::Field& message, int level, std::string_view* name, std::string_view* type) {
  wire::Cursor cursor(message);
  wire::Field field;
  while (cursor.Next(&field)) {
    switch (field.number) {
      case ValueInfoProto::kNameFieldNumber:
        if (field.type != wire::kBytes) return WireTypeError(field, "ValueInfoProto");
        if (name->data() != nullptr) {
          return absl::InvalidArgumentError(
              fmt::format("the ValueInfoProto at byte {} has two names. Export the model again", message.position));
        }
        *name = field.text();
        break;
      case ValueInfoProto::kTypeFieldNumber:
        if (field.type != wire::kBytes) return WireTypeError(field, "ValueInfoProto");
        if (type->data() != nullptr) {
          return absl::InvalidArgumentError(
              fmt::format("the ValueInfoProto at byte {} has two types. Export the model again", message.position));
        }
        *type = field.text();
        [[fallthrough]];
      case ValueInfoProto::kDocStringFieldNumber:
      case ValueInfoProto::kMetadataPropsFieldNumber:
        if (field.type != wire::kBytes) return WireTypeError(field, "ValueInfoProto");
        RETURN_IF_ERROR(CheckField(field, MessageKind::kValueInfo, level + 1));
        break;
      default:
        break;
    }
  }
  if (cursor.error() != nullptr) return WireError(cursor);
  return absl::OkStatus();
}

class Loader {
 public:
  Loader(Model* model, const ModelFile& model_file, const std::string& path)
      : model_(*model),
        builder_(model),
        model_file_(model_file),
        names_(model->names()),
        tensors_(model, path, [this](std::string_view location) { builder_.AddExternalLocation(location); }) {
    // A node names itself and one output; some have more. Tables of that size need no growing and are no
    // larger than they must be; what a file of empty nodes can claim is bounded by its size.
    const int64_t names =
        std::min(2 * model_file.node_fields() + model_file.initializer_fields(), model_file.structural_size() / 16);
    const size_t room = static_cast<size_t>(names + names / 64) + 256;
    names_.Reserve(room);
    scope_.reserve(room);
    default_domain_ = names_.Intern("ai.onnx");
  }

  absl::Status Run() {
    wire::Cursor cursor = model_file_.Open({model_file_.data(), {0, model_file_.file_size()}});
    wire::Field field;
    std::optional<wire::Field> graph;
    int64_t ir_version = 0;
    std::string_view producer_name;
    std::string_view producer_version;
    while (cursor.Next(&field)) {
      switch (field.number) {
        case ModelProto::kIrVersionFieldNumber:
          if (field.type != wire::kVarint) return WireTypeError(field, "ModelProto");
          ir_version = static_cast<int64_t>(field.value);
          break;
        case ModelProto::kModelVersionFieldNumber:
          if (field.type != wire::kVarint) return WireTypeError(field, "ModelProto");
          break;
        case ModelProto::kProducerNameFieldNumber:
        case ModelProto::kProducerVersionFieldNumber:
        case ModelProto::kDomainFieldNumber:
        case ModelProto::kDocStringFieldNumber:
          if (field.type != wire::kBytes) return WireTypeError(field, "ModelProto");
          RETURN_IF_ERROR(CheckField(field, MessageKind::kModel, 0));
          if (field.number == ModelProto::kProducerNameFieldNumber) producer_name = field.text();
          if (field.number == ModelProto::kProducerVersionFieldNumber) producer_version = field.text();
          break;
        case ModelProto::kOpsetImportFieldNumber:
          RETURN_IF_ERROR(ParseOpsetImport(field));
          break;
        case ModelProto::kFunctionsFieldNumber:
          RETURN_IF_ERROR(ParseFunction(field));
          break;
        case ModelProto::kGraphFieldNumber:
          if (field.type != wire::kBytes) return WireTypeError(field, "ModelProto");
          if (graph.has_value()) {
            return absl::InvalidArgumentError(
                fmt::format("the file has two graphs, at bytes {} and {} (two models written one after the other?). Give "
                            "a file with one model",
                            graph->start, field.start));
          }
          graph = field;
          break;
        case ModelProto::kMetadataPropsFieldNumber:
        case ModelProto::kTrainingInfoFieldNumber:
        case ModelProto::kConfigurationFieldNumber:
          if (field.type != wire::kBytes) return WireTypeError(field, "ModelProto");
          RETURN_IF_ERROR(CheckField(field, MessageKind::kModel, 0));
          break;
        default:
          break;
      }
    }
    if (cursor.error() != nullptr) return WireError(cursor);
    builder_.SetHeader(ir_version, producer_name, producer_version);
    if (!graph.has_value()) {
      return absl::InvalidArgumentError(
          "not an ONNX model: there is no graph in it. Give the .onnx file that the exporter wrote");
    }
    RETURN_IF_ERROR(ParseGraph(*graph, nullptr, 1, nullptr));
    return CheckNewNames();
  }

 private:
  struct Body {
    Node* node;
    uint32_t index;
    wire::Field field;
  };
  // A node whose bytes were read and whose names are on their way from memory.
  struct PendingNode {
    absl::InlinedVector<StringPool::Prepared, 4> inputs;
    absl::InlinedVector<StringPool::Prepared, 2> outputs;
    StringPool::Prepared op_type;
    StringPool::Prepared domain;
    StringPool::Prepared name;
    EncodedSpan encoded;
    size_t first_body = 0;
    size_t end_body = 0;
    int64_t attributes_begin = 0;  // file offsets; the end is 0 without attributes
    int64_t attributes_end = 0;
  };
  // A name that is fetched takes about as long as reading four nodes.
  static constexpr size_t kPending = 4;
  // A graph whose fields are being read.
  struct OpenGraph {
    std::vector<Body> bodies;
    std::vector<Value*> mentioned;  // read before they were defined
    std::vector<wire::Field> outputs;
    wire::Cursor value_info;  // at the first value_info that was put off
    int64_t last_value_info = -1;
    bool sorted = true;
    size_t parsed = 0;  // nodes
    size_t linked = 0;
  };
  struct Shadowed {
    NameId name;
    Value* value;
  };

  NameId CanonicalDomain(NameId domain) const { return domain == default_domain_ ? NameId::kEmpty : domain; }
  std::string_view Text(NameId id) const { return names_.Text(id); }
  absl::Status CheckName(std::string_view name) const {
    if (IsUtf8(name)) return absl::OkStatus();
    FileRange place;
    const int64_t at = model_file_.FindRange(name, &place) ? place.offset : 0;
    return absl::InvalidArgumentError(fmt::format(
        "damaged: the name at byte {} is not UTF-8 text, so that protobuf cannot read the file. Export the model again, or check "
        "the download",
        at));
  }
  // The names that are new since the last call: each once, however often the file has it, and while its bytes are at hand.
  absl::Status CheckNewNames() {
    for (; checked_names_ < names_.size(); ++checked_names_) {
      RETURN_IF_ERROR(CheckName(names_.Text(static_cast<NameId>(checked_names_))));
    }
    return absl::OkStatus();
  }

  absl::Status ParseOpsetImport(const wire::Field& message) {
    if (message.type != wire::kBytes) return WireTypeError(message, "ModelProto");
    wire::Cursor cursor(message);
    wire::Field field;
    OpsetImport import;
    while (cursor.Next(&field)) {
      if (field.number == onnx::OperatorSetIdProto::kDomainFieldNumber) {
        if (field.type != wire::kBytes) return WireTypeError(field, "OperatorSetIdProto");
        import.domain = CanonicalDomain(names_.Intern(field.text()));
      } else if (field.number == onnx::OperatorSetIdProto::kVersionFieldNumber) {
        if (field.type != wire::kVarint) return WireTypeError(field, "OperatorSetIdProto");
        import.version = static_cast<int64_t>(field.value);
      }
    }
    if (cursor.error() != nullptr) return WireError(cursor);
    for (const OpsetImport& known : model_.opset_imports()) {
      if (known.domain != import.domain) continue;
      if (known.version == import.version) return absl::OkStatus();
      return absl::InvalidArgumentError(
          fmt::format("opset_import at byte {}: domain '{}' is imported in versions {} and {}. Export the model again "
                      "with one version",
                      message.position, Text(import.domain), known.version, import.version));
    }
    builder_.AddOpsetImport(import);
    return absl::OkStatus();
  }

  absl::Status ParseFunction(const wire::Field& message) {
    if (message.type != wire::kBytes) return WireTypeError(message, "ModelProto");
    RETURN_IF_ERROR(CheckMessage(message, MessageKind::kFunction, 1));
    wire::Cursor cursor(message);
    wire::Field field;
    LocalFunction function;
    function.encoded = message.span();
    while (cursor.Next(&field)) {
      if (field.number == onnx::FunctionProto::kNameFieldNumber) {
        if (field.type != wire::kBytes) return WireTypeError(field, "FunctionProto");
        function.name = names_.Intern(field.text());
      } else if (field.number == onnx::FunctionProto::kDomainFieldNumber) {
        if (field.type != wire::kBytes) return WireTypeError(field, "FunctionProto");
        function.domain = CanonicalDomain(names_.Intern(field.text()));
      } else if (field.number == onnx::FunctionProto::kOverloadFieldNumber) {
        if (field.type != wire::kBytes) return WireTypeError(field, "FunctionProto");
        function.overload = names_.Intern(field.text());
      }
    }
    if (cursor.error() != nullptr) return WireError(cursor);
    builder_.AddFunction(function);
    return absl::OkStatus();
  }

  Value*& Slot(NameId name) {
    const size_t index = static_cast<size_t>(name);
    if (index >= scope_.size()) scope_.resize(std::max(index + 1, std::min(scope_.size() * 2, scope_.capacity())));
    return scope_[index];
  }

  // The value of that name in the graph that is being read; made when the name is new there.
  Value* Named(NameId name, bool* known) {
    Value*& slot = Slot(name);
    if (slot != nullptr && slot->graph == graph_) {
      *known = true;
      return slot;
    }
    *known = false;
    if (graph_->owner() != nullptr) shadowed_.push_back({name, slot});
    slot = builder_.NewValue(graph_, name);
    return slot;
  }

  static bool IsDefined(const Value& value) {
    return value.producer != nullptr || value.is_graph_input || value.initializer != nullptr;
  }

  absl::Status Twice(const Value& value, const std::string& second) const {
    const std::string first = value.producer != nullptr ? "computed by " + DescribeNode(*value.producer)
                              : value.is_graph_input    ? std::string("a graph input")
                                                        : std::string("an initializer");
    return absl::InvalidArgumentError(
        fmt::format("the name '{}' is given to two values: it is {} and also {}. Names must be unique; export the model "
                    "again",
                    ValueName(value), first, second));
  }

  // `level`: messages of the file that the graph stands in, itself included.
  absl::Status ParseGraph(const wire::Field& message, Node* owner, int level, Graph** result) {
    if (level + kLevelsOfGraph > kMaxLevel) {  // only here can a message be too deep
      RETURN_IF_ERROR(CheckMessage(message, MessageKind::kGraph, level));
    }
    Graph* const outer = graph_;
    const int outer_level = std::exchange(level_, level);
    Graph* const graph = builder_.NewGraph(owner, NameId::kEmpty, message.span());
    if (result != nullptr) *result = graph;
    graph_ = graph;
    const size_t shadowed_before = shadowed_.size();
    OpenGraph open;
    RETURN_IF_ERROR(ReadFields(message, &open));
    RETURN_IF_ERROR(LinkUntil(open.parsed, &open));
    for (const Value* value : open.mentioned) {
      if (!IsDefined(*value)) return Undefined(*value);
    }
    RETURN_IF_ERROR(LinkCaptured(graph, shadowed_before));
    RETURN_IF_ERROR(ReadWhatWaits(&open));
    for (const Body& body : open.bodies) {
      Graph* inner = nullptr;
      RETURN_IF_ERROR(ParseGraph(body.field, body.node, level + kLevelsToBody, &inner));
      builder_.SetSubgraph(body.node, body.index, inner);
    }
    if (!open.sorted || unsorted_.contains(graph)) {
      ASSIGN_OR_RETURN(std::vector<const Node*> order, TopologicalOrder(*graph));
      builder_.SetNodes(graph, std::move(order), true);
    }
    while (shadowed_.size() > shadowed_before) {
      Slot(shadowed_.back().name) = shadowed_.back().value;
      shadowed_.pop_back();
    }
    graph_ = outer;
    level_ = outer_level;
    return absl::OkStatus();
  }

  absl::Status ReadFields(const wire::Field& message, OpenGraph* open) {
    wire::Cursor cursor(message);
    wire::Field field;
    ReadAhead ahead(model_file_);
    while (cursor.Next(&field)) {
      ahead.To(field);
      // What is not a node finds all nodes before it linked.
      if (field.number != GraphProto::kNodeFieldNumber && open->linked < open->parsed) {
        RETURN_IF_ERROR(LinkUntil(open->parsed, open));
      }
      if (IsBadType(field, kGraphFields)) return WireTypeError(field, "GraphProto");
      if (field.number == GraphProto::kNodeFieldNumber) {
        if (open->parsed - open->linked == kPending) {
          RETURN_IF_ERROR(LinkUntil(open->linked + 1, open));
        }
        RETURN_IF_ERROR(ParseNode(field, &open->bodies, &pending_[open->parsed % kPending]));
        ++open->parsed;
        continue;
      }
      RETURN_IF_ERROR(ReadField(message, field, open));
    }
    return cursor.error() != nullptr ? WireError(cursor) : absl::OkStatus();
  }

  absl::Status LinkUntil(size_t end, OpenGraph* open) {
    while (open->linked < end) {
      RETURN_IF_ERROR(LinkNode(pending_[open->linked++ % kPending], &open->mentioned, &open->bodies, &open->sorted));
    }
    return absl::OkStatus();
  }

  // A field of a graph that is not a node.
  absl::Status ReadField(const wire::Field& message, const wire::Field& field, OpenGraph* open) {
    switch (field.number) {
      case GraphProto::kInitializerFieldNumber:
        return ParseInitializer(field);
      case GraphProto::kInputFieldNumber:
        return ParseInput(field);
      case GraphProto::kOutputFieldNumber:
        open->outputs.push_back(field);
        return absl::OkStatus();
      case GraphProto::kValueInfoFieldNumber: {
        // Writers put them after the nodes. Where one stands before the value it tells of, or tells of
        // nothing, it and those after it wait for the end: their order is that of the file.
        bool known = false;
        const bool first = open->last_value_info < 0;
        if (first) {
          RETURN_IF_ERROR(ParseValueInfo(field, &known));
        }
        if (known) return absl::OkStatus();
        if (first) {
          open->value_info =
              wire::Cursor(field.data - (field.position - field.start), field.start, message.end() - field.start, field.hole);
        }
        open->last_value_info = field.start;
        return absl::OkStatus();
      }
      case GraphProto::kSparseInitializerFieldNumber:
        return ParseSparseInitializer(field);
      case GraphProto::kNameFieldNumber:
        builder_.SetGraphName(graph_, names_.Intern(field.text()));
        return absl::OkStatus();
      case GraphProto::kDocStringFieldNumber:
      case GraphProto::kMetadataPropsFieldNumber:
      case GraphProto::kQuantizationAnnotationFieldNumber:
        return CheckField(field, MessageKind::kGraph, level_);
      default:
        return absl::OkStatus();
    }
  }

  // Outputs and the value_info that was put off, once all values are defined.
  absl::Status ReadWhatWaits(OpenGraph* open) {
    for (const wire::Field& output : open->outputs) {
      RETURN_IF_ERROR(ParseOutput(output));
    }
    wire::Field field;
    while (open->last_value_info >= 0 && open->value_info.position() <= open->last_value_info && open->value_info.Next(&field)) {
      if (field.number != GraphProto::kValueInfoFieldNumber) continue;
      bool known = false;
      RETURN_IF_ERROR(ParseValueInfo(field, &known));
    }
    return absl::OkStatus();
  }

  // Names of a body that stayed without a definition: those of an outer graph, or of nothing.
  absl::Status LinkCaptured(const Graph* graph, size_t shadowed_before) {
    for (size_t i = shadowed_before; i < shadowed_.size(); ++i) {
      Value* const value = Slot(shadowed_[i].name);
      Value* const captured = shadowed_[i].value;
      if (IsDefined(*value)) continue;
      if (captured == nullptr) return Undefined(*value);
      while (value->uses != nullptr) builder_.SetInput(value->uses->user, value->uses->index, captured);
      Slot(value->name) = captured;
      NoteCapture(*captured, graph);
    }
    return absl::OkStatus();
  }

  // A body of `graph` or deeper reads `value` of an outer graph: its producer must stand before the body's
  // owner.
  void NoteCapture(const Value& value, const Graph* graph) {
    if (value.producer == nullptr) return;
    const Node* owner = graph->owner();
    while (owner != nullptr && owner->graph != value.graph) owner = owner->graph->owner();
    if (owner != nullptr && value.producer->order >= owner->order) unsorted_.insert(value.graph);
  }

  absl::Status Undefined(const Value& value) const {
    const Use* first = value.uses;
    while (first != nullptr && first->next != nullptr) first = first->next;
    const std::string where = first != nullptr ? DescribeNode(*first->user) : std::string("a node");
    return absl::InvalidArgumentError(
        fmt::format("{} reads '{}', but no node computes it, and it is neither a graph input nor an "
                    "initializer. Export the model "
                    "again; if it was cut out of a larger model, make '{}' a graph input",
                    where, ValueName(value), ValueName(value)));
  }

  // Reads the fields of a node and has its names fetched; LinkNode makes the node some nodes later.
  absl::Status ParseNode(const wire::Field& message, std::vector<Body>* bodies, PendingNode* node) {
    node->inputs.clear();
    node->outputs.clear();
    node->name = node->op_type = node->domain = {};
    node->encoded = message.span();
    node->first_body = bodies->size();
    node->attributes_begin = node->attributes_end = 0;
    wire::Cursor cursor(message);
    wire::Field field;
    while (cursor.Next(&field)) {
      if (IsBadType(field, kNodeFields)) return WireTypeError(field, "NodeProto");
      switch (field.number) {
        case NodeProto::kInputFieldNumber:
          node->inputs.push_back(names_.Prepare(field.text()));
          break;
        case NodeProto::kOutputFieldNumber:
          node->outputs.push_back(names_.Prepare(field.text()));
          break;
        case NodeProto::kNameFieldNumber:
          RETURN_IF_ERROR(Take(field, &node->name));
          break;
        case NodeProto::kOpTypeFieldNumber:
          RETURN_IF_ERROR(Take(field, &node->op_type));
          break;
        case NodeProto::kDomainFieldNumber:
          RETURN_IF_ERROR(Take(field, &node->domain));
          break;
        case NodeProto::kOverloadFieldNumber:
        case NodeProto::kDocStringFieldNumber:
        case NodeProto::kMetadataPropsFieldNumber:
        case NodeProto::kDeviceConfigurationsFieldNumber:
          RETURN_IF_ERROR(CheckField(field, MessageKind::kNode, level_ + 1));
          break;
        case NodeProto::kAttributeFieldNumber:
          RETURN_IF_ERROR(ScanAttribute(field, bodies));
          if (node->attributes_end == 0) node->attributes_begin = field.start;
          node->attributes_end = field.end();
          break;
        default:
          break;
      }
    }
    node->end_body = bodies->size();
    return cursor.error() != nullptr ? WireError(cursor) : absl::OkStatus();
  }

  // A name of a node; the last one that is given counts, and CheckNewNames sees that one.
  absl::Status Take(const wire::Field& field, StringPool::Prepared* name) const {
    const std::string_view before = std::exchange(*name, names_.Prepare(field.text())).text;
    return before.empty() ? absl::OkStatus() : CheckName(before);
  }

  absl::Status LinkNode(const PendingNode& from, std::vector<Value*>* mentioned, std::vector<Body>* bodies, bool* sorted) {
    Node* node = builder_.NewNode(graph_, from.inputs.size(), from.outputs.size(), from.end_body - from.first_body);
    node->op_type = names_.Intern(from.op_type);
    node->domain = CanonicalDomain(names_.Intern(from.domain));
    node->name = names_.Intern(from.name);
    node->encoded = from.encoded;
    const int64_t start = from.encoded.file.offset;
    if (from.attributes_end == 0) {
      node->attributes_end = 0;
    } else if (from.attributes_end - start < Node::kToTheEnd) {
      node->attributes_begin = static_cast<uint32_t>(from.attributes_begin - start);
      node->attributes_end = static_cast<uint32_t>(from.attributes_end - start);
    }
    for (size_t i = from.first_body; i < from.end_body; ++i) {
      (*bodies)[i].node = node;
      (*bodies)[i].index = static_cast<uint32_t>(i - from.first_body);
    }
    for (size_t i = 0; i < from.inputs.size(); ++i) {
      if (from.inputs[i].text.empty()) continue;
      bool known;
      Value* value = Named(names_.Intern(from.inputs[i]), &known);
      // The names of a body are in shadowed_ with what they may stand for; memory for those of the main
      // graph, which are its weights, is held down.
      if (!known && graph_->owner() == nullptr) mentioned->push_back(value);
      builder_.SetInput(node, i, value);
    }
    for (size_t i = 0; i < from.outputs.size(); ++i) {
      if (from.outputs[i].text.empty()) continue;
      bool known;
      Value* value = Named(names_.Intern(from.outputs[i]), &known);
      if (known) {
        if (IsDefined(*value)) return Twice(*value, "computed by " + DescribeNode(*node));
        *sorted = false;
      }
      builder_.SetOutput(node, i, value);
    }
    return CheckNewNames();
  }

  // Looks into an attribute for graphs and external data; everything else is left to FindAttribute.
  absl::Status ScanAttribute(const wire::Field& message, std::vector<Body>* bodies) {
    const uint32_t* types = AttributeWireTypes();
    wire::Cursor cursor(message);
    wire::Field field;
    bool has_graph = false;
    bool has_tensor = false;
    bool has_name = false;
    const auto twice = [&message](const char* what) {
      return absl::InvalidArgumentError(
          fmt::format("the attribute at byte {} has two {}. Export the model again", message.position, what));
    };
    while (cursor.Next(&field)) {
      if (field.number >= 32 || types[field.number] == 0) continue;
      if ((types[field.number] >> field.type & 1) == 0) return WireTypeError(field, "AttributeProto");
      switch (field.number) {
        case AttributeProto::kGFieldNumber:
          if (std::exchange(has_graph, true)) return twice("graphs in field g");
          bodies->push_back({nullptr, 0, field});
          break;
        case AttributeProto::kGraphsFieldNumber:
          bodies->push_back({nullptr, 0, field});
          break;
        case AttributeProto::kTFieldNumber:
          if (std::exchange(has_tensor, true)) return twice("tensors in field t");
          RETURN_IF_ERROR(tensors_.Check(field));
          break;
        case AttributeProto::kTensorsFieldNumber:
          RETURN_IF_ERROR(tensors_.Check(field));
          break;
        case AttributeProto::kSparseTensorFieldNumber:
        case AttributeProto::kSparseTensorsFieldNumber:
          RETURN_IF_ERROR(tensors_.CheckSparse(field, nullptr));
          break;
        case AttributeProto::kTypeFieldNumber:
          // Readers of proto2 leave out a type that they do not know, those of proto3 take it.
          if (!onnx::AttributeProto_AttributeType_IsValid(static_cast<int>(static_cast<int32_t>(field.value)))) {
            return absl::InvalidArgumentError(
                fmt::format("the attribute at byte {} has type {}, which ONNX does not have. Export the model again",
                            message.position, static_cast<int32_t>(field.value)));
          }
          break;
        case AttributeProto::kNameFieldNumber:
          if (std::exchange(has_name, true)) return twice("names");
          [[fallthrough]];
        case AttributeProto::kRefAttrNameFieldNumber:
        case AttributeProto::kDocStringFieldNumber:
        case AttributeProto::kFloatsFieldNumber:
        case AttributeProto::kIntsFieldNumber:
        case AttributeProto::kTpFieldNumber:
        case AttributeProto::kTypeProtosFieldNumber:
          RETURN_IF_ERROR(CheckField(field, MessageKind::kAttribute, level_ + 2));
          break;
        default:
          break;
      }
    }
    if (cursor.error() != nullptr) return WireError(cursor);
    return absl::OkStatus();
  }

  absl::Status ParseInitializer(const wire::Field& message) {
    Tensor* tensor = model_.arena().New<Tensor>();
    RETURN_IF_ERROR(tensors_.Parse(message, tensor));
    return DefineInitializer(tensor, message);
  }

  // Kept as bytes; the IR sees a constant of unknown type and elements.
  absl::Status ParseSparseInitializer(const wire::Field& message) {
    Tensor* tensor = model_.arena().New<Tensor>();
    RETURN_IF_ERROR(tensors_.CheckSparse(message, &tensor->name));
    tensor->proto = {message.position, message.size};
    return DefineInitializer(tensor, message);
  }

  absl::Status DefineInitializer(const Tensor* tensor, const wire::Field& message) {
    if (tensor->name == NameId::kEmpty) {
      return absl::InvalidArgumentError(
          fmt::format("the initializer at byte {} has no name. Export the model again", message.position));
    }
    bool known;
    Value* value = Named(tensor->name, &known);
    if (value->producer != nullptr || value->initializer != nullptr) {
      return Twice(*value, fmt::format("an initializer at byte {}", message.position));
    }
    builder_.AddInitializer(graph_, value, tensor);
    return absl::OkStatus();
  }

  absl::Status ParseInput(const wire::Field& message) {
    std::string_view name;
    std::string_view type;
    RETURN_IF_ERROR(ReadValueInfo(message, level_, &name, &type));
    if (name.empty()) {
      return absl::InvalidArgumentError(
          fmt::format("the graph input at byte {} has no name. Export the model again", message.position));
    }
    bool known;
    Value* value = Named(names_.Intern(name), &known);
    if (value->producer != nullptr || value->is_graph_input) return Twice(*value, "a graph input");
    value->declared_type = type;
    builder_.AddInput(graph_, value);
    return absl::OkStatus();
  }

  absl::Status ParseOutput(const wire::Field& message) {
    std::string_view name;
    std::string_view type;
    RETURN_IF_ERROR(ReadValueInfo(message, level_, &name, &type));
    NameId id;
    Value* value = nullptr;
    if (!name.empty() && names_.Find(name, &id)) value = Slot(id);
    if (value == nullptr || !IsDefined(*value)) {
      return absl::InvalidArgumentError(
          fmt::format("the graph output '{}' at byte {} is computed by no node, and it is neither a graph input nor an "
                      "initializer. Export the model again",
                      name, message.position));
    }
    if (value->graph != graph_) {
      return absl::InvalidArgumentError(
          fmt::format("the output '{}' at byte {} of a body is a value of the enclosing graph, which no "
                      "runtime takes. Put "
                      "an Identity node into the body",
                      name, message.position));
    }
    // What the output says goes before what value_info says.
    const bool from_value_info = value->value_info >= 0 && !value->is_graph_input;
    if (value->declared_type.data() == nullptr || (from_value_info && !value->is_graph_output && type.data() != nullptr)) {
      value->declared_type = type;
    }
    builder_.AddOutput(graph_, value);
    return absl::OkStatus();
  }

  // `known` tells whether the name is that of a value defined by now.
  absl::Status ParseValueInfo(const wire::Field& message, bool* known) {
    std::string_view name;
    std::string_view type;
    RETURN_IF_ERROR(ReadValueInfo(message, level_, &name, &type));
    NameId id;
    if (name.empty() || !names_.FindNext(name, last_declared_, &id)) {
      return CheckName(name);  // it names nothing, and is written nevertheless
    }
    last_declared_ = id;
    Value* value = Slot(id);
    if (value == nullptr || value->graph != graph_ || !IsDefined(*value)) return absl::OkStatus();
    *known = true;
    if (value->value_info >= 0) return absl::OkStatus();
    value->value_info = message.position;
    if (value->declared_type.data() == nullptr) value->declared_type = type;
    builder_.AddValueInfo(graph_, value);
    return absl::OkStatus();
  }

  Model& model_;
  GraphBuilder builder_;
  const ModelFile& model_file_;
  StringPool& names_;
  size_t checked_names_ = 0;
  TensorCheck tensors_;
  NameId default_domain_;
  Graph* graph_ = nullptr;
  int level_ = 0;                                     // of graph_ among the messages of the file
  std::vector<Value*, PageAllocator<Value*>> scope_;  // by NameId: the innermost value of that name
  std::vector<Shadowed> shadowed_;                    // what scope_ held before the bodies being read
  NameId last_declared_ = NameId::kEmpty;             // by value_info
  absl::flat_hash_set<const Graph*> unsorted_;
  PendingNode pending_[kPending];  // a ring; empty while a body is entered
};

absl::StatusOr<std::unique_ptr<Model>> Load(absl::StatusOr<std::unique_ptr<ModelFile>> source, const std::string& path,
                                            const std::string& shown) {
  if (!source.ok()) return source.status();
  auto model = std::make_unique<Model>();
  const ModelFile& model_file = **source;
  GraphBuilder(model.get()).SetSource(path, *std::move(source));
  absl::Status status = Loader(model.get(), model_file, path).Run();
  if (!status.ok()) {
    return absl::Status(status.code(), fmt::format("{}: {}.", shown, std::string(status.message())));
  }
  return model;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Model>> LoadModel(const std::string& path) {
  return WithinMemory([&] { return Load(ModelFile::Read(path), path, path); });
}

absl::StatusOr<std::unique_ptr<Model>> LoadModelFromBytes(std::string_view bytes, const std::string& path) {
  return WithinMemory([&] {
    const std::string shown = path.empty() ? std::string("the model in memory") : path;
    return Load(ModelFile::FromBytes(bytes, shown), path, shown);
  });
}

}  // namespace ascend_fuse
