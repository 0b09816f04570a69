// The writer: first a list of pieces (ranges of the input file, bytes in memory) with its exact size, then
// one pass that copies them in full pages.
#include "ir/onnx/save.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <memory>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "fmt/format.h"
#include "ir/onnx/encode.h"
#include "ir/onnx/external_data.h"
#include "ir/onnx/model_file.h"
#include "ir/onnx/pieces.h"
#include "ir/onnx/spelling.h"
#include "ir/verify.h"
#include "proto/onnx.pb.h"

namespace ascend_fuse {
namespace {

using onnx::AttributeProto;
using onnx::GraphProto;
using onnx::ModelProto;
using onnx::NodeProto;
using onnx::TensorProto;
using onnx::ValueInfoProto;

constexpr int64_t kLargestModel = std::numeric_limits<int32_t>::max();
constexpr size_t kBlock = size_t{256} << 10;  // measured: see bench/README.md
constexpr std::string_view kDefaultDomain = "ai.onnx";

std::string_view InMemory(const EncodedSpan& span) {
  return {reinterpret_cast<const char*>(span.data), static_cast<size_t>(span.file.size)};
}

bool IsFromFile(const EncodedSpan& span) { return span.file.offset >= 0; }

// Where the parts of joined tensors lie decides where these go: what comes from external data stays external.
bool IsExternal(const Tensor& tensor) {
  if (tensor.storage == Storage::kExternal) return true;
  return tensor.storage == Storage::kJoined && std::any_of(tensor.parts.begin(), tensor.parts.end(),
                                                           [](const Tensor* part) { return IsExternal(*part); });
}

int64_t ByteSize(const Tensor& tensor) { return tensor.ElementCount() * BitWidth(tensor.type) / 8; }

}  // namespace

// Lays out the pieces of a model. Befriended by Graph and Model.
class ModelWriter {
 public:
  // `data_location`: the file beside the output for merged weights that come from external data; empty: they
  // become part of the model.
  explicit ModelWriter(const Model& model, std::string data_location = {})
      : model_(model), model_file_(model.model_file()), data_location_(std::move(data_location)) {}

  // What the file at `data_location` must hold.
  Pieces& data() { return data_; }

  // See ir/onnx/spelling.h.
  std::vector<std::string> Imports() const {
    const bool as_in_file = model_.default_domain_ == DefaultDomain::kAsWritten && !model_.opset_imports_changed_;
    std::vector<std::string> imports;
    if (model_file_ != nullptr && as_in_file) {
      wire::Cursor cursor = Open({model_file_->data(), {0, model_file_->file_size()}});
      wire::Field field;
      while (cursor.Next(&field)) {
        if (field.number == ModelProto::kOpsetImportFieldNumber) imports.emplace_back(DomainOfImport(field));
      }
    }
    if (!imports.empty()) return imports;
    for (const OpsetImport& import : model_.opset_imports_) imports.emplace_back(ImportText(import.domain));
    return imports;
  }
  std::string_view Domain(const Node& node) const {
    std::string_view written;
    if (model_.default_domain_ == DefaultDomain::kAsWritten && !node.is_new) {
      wire::Cursor cursor = Open(node.encoded);
      wire::Field field;
      while (cursor.Next(&field)) {
        if (field.number == NodeProto::kDomainFieldNumber) written = field.text();
      }
    }
    return DomainText(node, written);
  }

  bool IsUnchanged() const {
    return model_file_ != nullptr && !model_.graph_->changed_ && !model_.opset_imports_changed_ &&
           !model_.functions_changed_;
  }

  Pieces Run() {
    if (model_file_ == nullptr) {
      WriteNewModel();
    } else if (IsUnchanged()) {
      out_.File(0, model_file_->file_size());
    } else {
      WriteModel();
    }
    return std::move(out_);
  }

 private:
  std::string_view Text(NameId id) const { return model_.names_.Text(id); }
  wire::Cursor Open(const EncodedSpan& span) const {
    return model_file_ != nullptr ? model_file_->Open(span)
                                : wire::Cursor(span.data, 0, span.file.size, &wire::kNoHoles);
  }
  // A field as it is, tag included: `cursor` stands right behind it.
  void Keep(const EncodedSpan& message, const wire::Field& field, const wire::Cursor& cursor) {
    if (IsFromFile(message)) {
      out_.File(field.start, cursor.position() - field.start);
    } else {
      out_.View({reinterpret_cast<const char*>(message.data) + field.start,
                 static_cast<size_t>(cursor.position() - field.start)});
    }
  }

  void WriteModel() {
    const EncodedSpan span = {model_file_->data(), {0, model_file_->file_size()}};
    wire::Cursor cursor = Open(span);
    wire::Field field;
    bool imports_written = !model_.opset_imports_changed_;
    while (cursor.Next(&field)) {
      switch (field.number) {
        case ModelProto::kGraphFieldNumber:
          if (model_.graph_->changed_) {
            const Pieces::Mark mark = out_.Begin(ModelProto::kGraphFieldNumber);
            WriteGraph(*model_.graph_);
            out_.End(mark);
          } else {
            Keep(span, field, cursor);
          }
          break;
        case ModelProto::kOpsetImportFieldNumber:
          if (!model_.opset_imports_changed_) {
            Keep(span, field, cursor);
          } else if (!imports_written) {
            WriteOpsetImports();
            imports_written = true;
          }
          break;
        case ModelProto::kFunctionsFieldNumber:
          if (HasFunction(field)) Keep(span, field, cursor);
          break;
        default:
          Keep(span, field, cursor);
          break;
      }
    }
    if (!imports_written) WriteOpsetImports();
  }

  // Whether a function of the file is still one of the model.
  bool HasFunction(const wire::Field& field) {
    if (!model_.functions_changed_) return true;
    if (kept_functions_.empty()) {
      for (const LocalFunction& function : model_.functions_) kept_functions_.insert(function.encoded.file.offset);
      kept_functions_.insert(-1);
    }
    return kept_functions_.contains(field.position);
  }

  static std::string_view DomainOfImport(const wire::Field& import) {
    wire::Cursor cursor(import);
    wire::Field part;
    std::string_view domain;
    while (cursor.Next(&part)) {
      if (part.number == onnx::OperatorSetIdProto::kDomainFieldNumber) domain = part.text();
    }
    return domain;
  }

  // The text of a domain in opset_import: as the file spells it, if it does.
  std::string_view ImportText(NameId domain) const {
    if (domain != NameId::kEmpty) return Text(domain);
    if (model_.default_domain_ == DefaultDomain::kExplicit) return kDefaultDomain;
    if (model_file_ == nullptr || model_.default_domain_ == DefaultDomain::kEmpty) return {};
    wire::Cursor cursor = Open({model_file_->data(), {0, model_file_->file_size()}});
    wire::Field field;
    while (cursor.Next(&field)) {
      if (field.number != ModelProto::kOpsetImportFieldNumber) continue;
      if (DomainOfImport(field) == kDefaultDomain) return kDefaultDomain;
    }
    return {};
  }

  void WriteOpsetImports() {
    for (const OpsetImport& import : model_.opset_imports_) {
      const Pieces::Mark mark = out_.Begin(ModelProto::kOpsetImportFieldNumber);
      // An empty domain is written as well: exporters do, and some readers miss it otherwise.
      out_.Bytes(onnx::OperatorSetIdProto::kDomainFieldNumber, ImportText(import.domain));
      out_.Int(onnx::OperatorSetIdProto::kVersionFieldNumber, import.version);
      out_.End(mark);
    }
  }

  void WriteNewModel() {
    out_.Int(ModelProto::kIrVersionFieldNumber, model_.ir_version_);
    if (!model_.producer_name_.empty())
      out_.Bytes(ModelProto::kProducerNameFieldNumber, model_.producer_name_);
    if (!model_.producer_version_.empty()) {
      out_.Bytes(ModelProto::kProducerVersionFieldNumber, model_.producer_version_);
    }
    if (model_.graph_ != nullptr) {
      const Pieces::Mark mark = out_.Begin(ModelProto::kGraphFieldNumber);
      WriteGraph(*model_.graph_);
      out_.End(mark);
    }
    WriteOpsetImports();
    for (const LocalFunction& function : model_.functions_) {
      out_.Bytes(ModelProto::kFunctionsFieldNumber, InMemory(function.encoded));
    }
  }

  static std::vector<const Node*> LiveNodes(const Graph& graph) {
    std::vector<const Node*> nodes;
    nodes.reserve(graph.nodes_.size());
    for (const Node* node : graph.nodes_) {
      if (!node->dead) nodes.push_back(node);
    }
    auto before = [](const Node* a, const Node* b) {
      return a->order != b->order ? a->order < b->order : a->id < b->id;
    };
    if (!std::is_sorted(nodes.begin(), nodes.end(), before)) std::sort(nodes.begin(), nodes.end(), before);
    return nodes;
  }

  static bool IsLive(const Value& value, const absl::flat_hash_set<const Value*>& initializers) {
    if (value.is_graph_input || initializers.contains(&value)) return true;
    return value.producer != nullptr && !value.producer->dead &&
           value.producer->output(value.output_index) == &value;
  }

  // The body of a GraphProto.
  void WriteGraph(const Graph& graph) {
    const std::vector<const Node*> nodes = LiveNodes(graph);
    if (!IsFromFile(graph.encoded_)) return WriteNewGraph(graph, nodes);

    // The nodes of the file keep their places; a new node stands before the next node of the file. In a graph
    // that had to be sorted, all nodes are written at the place of the first.
    size_t next_node = 0;      // in `nodes`
    size_t next_original = 0;  // the first at or after next_node that is from the file
    auto find_original = [&] {
      while (next_original < nodes.size() && !IsFromFile(nodes[next_original]->encoded)) ++next_original;
    };
    find_original();
    const absl::flat_hash_set<const Value*> initializers(graph.initializers_.begin(),
                                                         graph.initializers_.end());
    size_t next_initializer = 0;
    size_t next_declared = 0;

    wire::Cursor cursor = Open(graph.encoded_);
    wire::Field field;
    while (cursor.Next(&field)) {
      switch (field.number) {
        case GraphProto::kNodeFieldNumber:
          if (graph.reordered_) {
            while (next_node < nodes.size()) WriteNode(*nodes[next_node++], nullptr);
          } else if (next_original < nodes.size() &&
                     nodes[next_original]->encoded.file.offset == field.position) {
            while (next_node < next_original) WriteNode(*nodes[next_node++], nullptr);
            WriteNode(*nodes[next_node++], &field);
            ++next_original;
            find_original();
          }
          if (next_original == nodes.size()) {
            while (next_node < nodes.size()) WriteNode(*nodes[next_node++], nullptr);
          }
          break;
        case GraphProto::kInitializerFieldNumber:
        case GraphProto::kSparseInitializerFieldNumber:
          while (next_initializer < graph.initializers_.size() &&
                 graph.initializers_[next_initializer]->initializer->proto.offset < field.position) {
            ++next_initializer;
          }
          if (next_initializer < graph.initializers_.size() &&
              graph.initializers_[next_initializer]->initializer->proto.offset == field.position) {
            Keep(graph.encoded_, field, cursor);
          }
          break;
        case GraphProto::kValueInfoFieldNumber:
          if (graph.value_info_dropped_) break;
          if (next_declared < graph.declared_.size() &&
              graph.declared_[next_declared]->value_info == field.position) {
            if (IsLive(*graph.declared_[next_declared++], initializers)) Keep(graph.encoded_, field, cursor);
          } else {
            Keep(graph.encoded_, field, cursor);
          }
          break;
        default:
          Keep(graph.encoded_, field, cursor);
          break;
      }
    }
    while (next_node < nodes.size()) WriteNode(*nodes[next_node++], nullptr);
    for (const Value* value : graph.initializers_) {
      if (value->initializer->proto.offset < 0) WriteInitializer(*value->initializer);
    }
  }

  void WriteNewGraph(const Graph& graph, const std::vector<const Node*>& nodes) {
    for (const Node* node : nodes) WriteNode(*node, nullptr);
    out_.Bytes(GraphProto::kNameFieldNumber, Text(graph.name_));
    const absl::flat_hash_set<const Value*> initializers(graph.initializers_.begin(),
                                                         graph.initializers_.end());
    for (const Value* value : graph.initializers_) WriteInitializer(*value->initializer);
    for (const Value* value : graph.inputs_) WriteValueInfo(GraphProto::kInputFieldNumber, *value);
    for (const Value* value : graph.outputs_) WriteValueInfo(GraphProto::kOutputFieldNumber, *value);
    for (const Value* value : graph.declared_) {
      if (graph.value_info_dropped_) break;
      if (IsLive(*value, initializers)) WriteValueInfo(GraphProto::kValueInfoFieldNumber, *value);
    }
  }

  void WriteValueInfo(int number, const Value& value) {
    const Pieces::Mark mark = out_.Begin(number);
    out_.Bytes(ValueInfoProto::kNameFieldNumber, Text(value.name));
    if (value.declared_type.data() != nullptr) {
      out_.Bytes(ValueInfoProto::kTypeFieldNumber, value.declared_type);
    }
    out_.End(mark);
  }

  void WriteInitializer(const Tensor& tensor) {
    const Pieces::Mark mark = out_.Begin(GraphProto::kInitializerFieldNumber);
    if (tensor.proto_bytes != nullptr || tensor.storage == Storage::kExternal) {
      out_.Copy(EncodeTensor(model_, tensor));
    } else {
      for (int64_t dim : tensor.dims) out_.Int(TensorProto::kDimsFieldNumber, dim);
      out_.Int(TensorProto::kDataTypeFieldNumber, static_cast<int64_t>(tensor.type));
      out_.Bytes(TensorProto::kNameFieldNumber, Text(tensor.name));
      if (tensor.storage == Storage::kFile) {
        out_.Header(TensorProto::kRawDataFieldNumber, tensor.file.size);
        out_.File(tensor.file.offset, tensor.file.size);
      } else if (tensor.storage == Storage::kJoined && !data_location_.empty() && IsExternal(tensor)) {
        WriteOutside(tensor);
      } else if (tensor.storage == Storage::kJoined) {
        out_.Header(TensorProto::kRawDataFieldNumber, ByteSize(tensor));
        out_.Joined(tensor, ByteSize(tensor));
      } else {
        out_.Bytes(TensorProto::kRawDataFieldNumber, tensor.memory);
      }
    }
    out_.End(mark);
  }

  // A reference to the data file, which gets the elements at the next page boundary, so that it can be mapped.
  void WriteOutside(const Tensor& tensor) {
    constexpr int64_t kPage = 4096;
    const int64_t size = ByteSize(tensor);
    const int64_t offset = (data_.total() + kPage - 1) / kPage * kPage;
    data_.Copy(std::string(static_cast<size_t>(offset - data_.total()), '\0'));
    data_.Joined(tensor, size);
    auto entry = [this](std::string_view key, std::string_view value) {
      const Pieces::Mark mark = out_.Begin(TensorProto::kExternalDataFieldNumber);
      out_.Bytes(onnx::StringStringEntryProto::kKeyFieldNumber, key);
      out_.Bytes(onnx::StringStringEntryProto::kValueFieldNumber, value);
      out_.End(mark);
    };
    entry("location", data_location_);
    entry("offset", std::to_string(offset));
    entry("length", std::to_string(size));
    out_.Int(TensorProto::kDataLocationFieldNumber, TensorProto::EXTERNAL);
  }

  // Names to be written.
  std::string_view InputText(const Node& node, size_t i) const {
    const Value* value = node.inputs_begin[i].value;
    return value == nullptr ? std::string_view() : Text(value->name);
  }
  // "" also for an output that another node computes now.
  std::string_view OutputText(const Node& node, size_t i) const {
    const Value* value = node.outputs_begin[i];
    return value == nullptr || value->producer != &node ? std::string_view() : Text(value->name);
  }
  std::string_view DomainText(const Node& node, std::string_view written) const {
    if (node.domain != NameId::kEmpty) return Text(node.domain);
    switch (model_.default_domain_) {
      case DefaultDomain::kExplicit:
        return kDefaultDomain;
      case DefaultDomain::kEmpty:
        return {};
      case DefaultDomain::kAsWritten:
        break;
    }
    return written == kDefaultDomain ? kDefaultDomain : std::string_view();
  }

  void WriteInputs(const Node& node) {
    size_t count = node.input_count;
    while (count > 0 && node.inputs_begin[count - 1].value == nullptr) --count;
    for (size_t i = 0; i < count; ++i) out_.Bytes(NodeProto::kInputFieldNumber, InputText(node, i));
  }
  void WriteOutputs(const Node& node) {
    for (size_t i = 0; i < node.output_count; ++i)
      out_.Bytes(NodeProto::kOutputFieldNumber, OutputText(node, i));
  }

  // A `node` field. `field`: where it stands in the file, for its tag; nullptr when it is moved or new.
  void WriteNode(const Node& node, const wire::Field* field) {
    if (!IsFromFile(node.encoded)) return WriteNewNode(node);
    bool body_changed = false;
    for (const Graph* body : node.subgraphs()) body_changed = body_changed || body->changed_;
    bool suspect = node.rewired || model_.default_domain_ != DefaultDomain::kAsWritten;
    for (size_t i = 0; i < node.output_count && !suspect; ++i) {
      const Value* value = node.outputs_begin[i];
      suspect = value != nullptr && value->producer != &node;
    }
    if (suspect || body_changed) {
      if (RewriteNode(node, body_changed)) return;
    }
    if (field != nullptr) {
      out_.File(field->start, field->end() - field->start);
    } else {
      out_.Header(GraphProto::kNodeFieldNumber, node.encoded.file.size);
      out_.File(node.encoded.file.offset, node.encoded.file.size);
    }
  }

  // Writes a node of the file with what differs from the file; false (and nothing written) when nothing does.
  bool RewriteNode(const Node& node, bool body_changed) {
    std::string_view domain;
    std::string_view op_type;
    size_t inputs = 0;
    size_t outputs = 0;
    bool same_inputs = true;
    bool same_outputs = true;
    wire::Cursor cursor = Open(node.encoded);
    wire::Field field;
    while (cursor.Next(&field)) {
      switch (field.number) {
        case NodeProto::kInputFieldNumber:
          same_inputs = same_inputs && inputs < node.input_count && InputText(node, inputs) == field.text();
          ++inputs;
          break;
        case NodeProto::kOutputFieldNumber:
          same_outputs =
              same_outputs && outputs < node.output_count && OutputText(node, outputs) == field.text();
          ++outputs;
          break;
        case NodeProto::kOpTypeFieldNumber:
          op_type = field.text();
          break;
        case NodeProto::kDomainFieldNumber:
          domain = field.text();
          break;
        default:
          break;
      }
    }
    same_inputs = same_inputs && inputs == node.input_count;
    same_outputs = same_outputs && outputs == node.output_count;
    const bool same_op = op_type == Text(node.op_type);
    const std::string_view new_domain = DomainText(node, domain);
    const bool same_domain = domain == new_domain;
    if (same_inputs && same_outputs && same_op && same_domain && !body_changed) return false;

    const Pieces::Mark mark = out_.Begin(GraphProto::kNodeFieldNumber);
    if (!same_inputs) WriteInputs(node);
    if (!same_outputs) WriteOutputs(node);
    if (!same_op) out_.Bytes(NodeProto::kOpTypeFieldNumber, Text(node.op_type));
    cursor = Open(node.encoded);
    while (cursor.Next(&field)) {
      switch (field.number) {
        case NodeProto::kInputFieldNumber:
          if (same_inputs) Keep(node.encoded, field, cursor);
          break;
        case NodeProto::kOutputFieldNumber:
          if (same_outputs) Keep(node.encoded, field, cursor);
          break;
        case NodeProto::kOpTypeFieldNumber:
          if (same_op) Keep(node.encoded, field, cursor);
          break;
        case NodeProto::kDomainFieldNumber:
          if (same_domain) Keep(node.encoded, field, cursor);
          break;
        case NodeProto::kAttributeFieldNumber:
          if (!body_changed || !RewriteBodies(node, field)) Keep(node.encoded, field, cursor);
          break;
        default:
          Keep(node.encoded, field, cursor);
          break;
      }
    }
    if (!same_domain) out_.Bytes(NodeProto::kDomainFieldNumber, new_domain);
    out_.End(mark);
    return true;
  }

  static const Graph* ChangedBody(const Node& node, const wire::Field& field) {
    if (field.number != AttributeProto::kGFieldNumber && field.number != AttributeProto::kGraphsFieldNumber) {
      return nullptr;
    }
    for (const Graph* body : node.subgraphs()) {
      if (body->changed_ && body->encoded_.file.offset == field.position) return body;
    }
    return nullptr;
  }

  // Writes an attribute with the changed bodies in it; false (and nothing written) when there is none.
  bool RewriteBodies(const Node& node, const wire::Field& attribute) {
    wire::Cursor cursor(attribute);
    wire::Field field;
    bool found = false;
    while (cursor.Next(&field)) found = found || ChangedBody(node, field) != nullptr;
    if (!found) return false;
    const Pieces::Mark mark = out_.Begin(NodeProto::kAttributeFieldNumber);
    cursor = wire::Cursor(attribute);
    while (cursor.Next(&field)) {
      if (const Graph* body = ChangedBody(node, field)) {
        const Pieces::Mark inner = out_.Begin(static_cast<int>(field.number));
        WriteGraph(*body);
        out_.End(inner);
      } else {
        Keep(node.encoded, field, cursor);
      }
    }
    out_.End(mark);
    return true;
  }

  void WriteNewNode(const Node& node) {
    const Pieces::Mark mark = out_.Begin(GraphProto::kNodeFieldNumber);
    WriteInputs(node);
    WriteOutputs(node);
    if (node.name != NameId::kEmpty) out_.Bytes(NodeProto::kNameFieldNumber, Text(node.name));
    out_.Bytes(NodeProto::kOpTypeFieldNumber, Text(node.op_type));
    if (node.subgraph_count == 0) {
      out_.View(InMemory(node.encoded));
    } else {
      WriteNewAttributes(node);
    }
    const std::string_view domain = DomainText(node, {});
    if (!domain.empty()) out_.Bytes(NodeProto::kDomainFieldNumber, domain);
    out_.End(mark);
  }

  // Attributes of a node in memory that has bodies: the graphs of its GRAPH and GRAPHS attributes are its
  // subgraphs in order, whether the encoding has a place for them (g, graphs) or not.
  void WriteNewAttributes(const Node& node) {
    size_t next_body = 0;
    wire::Cursor attributes(InMemory(node.encoded));
    wire::Field attribute;
    while (attributes.Next(&attribute)) {
      if (attribute.number != NodeProto::kAttributeFieldNumber) {
        Keep(node.encoded, attribute, attributes);
        continue;
      }
      wire::Cursor cursor(attribute);
      wire::Field field;
      int64_t type = AttributeProto::UNDEFINED;
      size_t graphs = 0;
      while (cursor.Next(&field)) {
        if (field.number == AttributeProto::kTypeFieldNumber) type = static_cast<int64_t>(field.value);
        if (field.number == AttributeProto::kGFieldNumber ||
            field.number == AttributeProto::kGraphsFieldNumber) {
          ++graphs;
        }
      }
      if (graphs == 0 && type == AttributeProto::GRAPH) graphs = 1;
      if (graphs == 0 && type == AttributeProto::GRAPHS) graphs = node.subgraph_count - next_body;
      const Pieces::Mark mark = out_.Begin(NodeProto::kAttributeFieldNumber);
      cursor = wire::Cursor(attribute);
      while (cursor.Next(&field)) {
        if (field.number != AttributeProto::kGFieldNumber &&
            field.number != AttributeProto::kGraphsFieldNumber) {
          Keep(node.encoded, field, cursor);
        }
      }
      const int number =
          type == AttributeProto::GRAPHS ? AttributeProto::kGraphsFieldNumber : AttributeProto::kGFieldNumber;
      for (; graphs > 0 && next_body < node.subgraph_count; --graphs, ++next_body) {
        if (node.subgraphs_begin[next_body] == nullptr) continue;
        const Pieces::Mark inner = out_.Begin(number);
        WriteGraph(*node.subgraphs_begin[next_body]);
        out_.End(inner);
      }
      out_.End(mark);
    }
  }

  const Model& model_;
  const ModelFile* model_file_;
  const std::string data_location_;
  absl::flat_hash_set<int64_t> kept_functions_;  // offsets in the file; filled by HasFunction
  Pieces out_;
  Pieces data_;
};

namespace {

absl::Status SystemError(const std::string& path, const char* what, int error) {
  const std::string sentence = fmt::format("{}: {}: {}", path, what, std::strerror(error));
  switch (error) {
    case ENOSPC:
    case EDQUOT:
    case EFBIG:
      return absl::ResourceExhaustedError(sentence + ". Free some space, or write to another disk");
    case EACCES:
    case EPERM:
    case EROFS:
      return absl::PermissionDeniedError(sentence);
    case ENOENT:
    case ENOTDIR:
      return absl::NotFoundError(sentence + ". Make the directory first");
    default:
      return absl::UnavailableError(sentence);
  }
}

// Collects bytes into full blocks and writes those, so that every write is whole pages at a page boundary.
class BlockWriter {
 public:
  BlockWriter(int fd, const std::string& path, int64_t total, const SaveOptions& options)
      : fd_(fd), path_(path), total_(total), options_(options) {}
  ~BlockWriter() { std::free(block_); }
  BlockWriter(const BlockWriter&) = delete;
  BlockWriter& operator=(const BlockWriter&) = delete;

  absl::Status Append(const ModelFile* model_file, int64_t offset, int64_t size) {
    return Fill(size, [&](char* to, int64_t done, int64_t count) {
      return model_file->Copy(offset + done, count, to);
    });
  }
  absl::Status Append(JoinedReader* reader, int64_t size) {
    return Fill(size, [&](char* to, int64_t, int64_t count) { return reader->Next(count, to); });
  }
  absl::Status Append(std::string_view bytes) {
    return Fill(static_cast<int64_t>(bytes.size()), [&](char* to, int64_t done, int64_t count) {
      std::memcpy(to, bytes.data() + done, static_cast<size_t>(count));
      return absl::OkStatus();
    });
  }

  absl::Status Flush() {
    size_t at = 0;
    while (at < used_) {
      const ssize_t put = write(fd_, block_ + at, used_ - at);
      if (put < 0 && errno == EINTR) continue;
      if (put <= 0) return SystemError(path_, "cannot write", put == 0 ? ENOSPC : errno);
      at += static_cast<size_t>(put);
    }
    written_ += static_cast<int64_t>(used_);
    used_ = 0;
    if (options_.progress && written_ >= next_report_) {
      options_.progress(written_, total_);
      next_report_ = written_ + (int64_t{16} << 20);
    }
    return absl::OkStatus();
  }

 private:
  template <typename Source>
  absl::Status Fill(int64_t size, Source source) {
    if (block_ == nullptr) block_ = static_cast<char*>(std::aligned_alloc(4096, kBlock));
    for (int64_t done = 0; done < size;) {
      const int64_t count = std::min(size - done, static_cast<int64_t>(kBlock - used_));
      if (absl::Status status = source(block_ + used_, done, count); !status.ok()) return status;
      used_ += static_cast<size_t>(count);
      done += count;
      if (used_ == kBlock) {
        if (absl::Status status = Flush(); !status.ok()) return status;
      }
    }
    return absl::OkStatus();
  }

  int fd_;
  const std::string& path_;
  int64_t total_;
  const SaveOptions& options_;
  char* block_ = nullptr;
  size_t used_ = 0;
  int64_t written_ = 0;
  int64_t next_report_ = 0;
};

// Pieces checked for size; `data`: those of the file for merged external weights.
absl::StatusOr<Pieces> LayOut(const Model& model, const std::string& shown, const std::string& data_location,
                              Pieces* data) {
  ModelWriter writer(model, data_location);
  if (!writer.IsUnchanged()) {
    if (absl::Status status = Verify(model); !status.ok()) return status;
  }
  Pieces pieces = writer.Run();
  *data = std::move(writer.data());
  if (model.model_file() != nullptr) {
    if (absl::Status status = model.model_file()->CheckUnchanged(); !status.ok()) return status;
  }
  if (pieces.total() > kLargestModel && !writer.IsUnchanged()) {
    return absl::OutOfRangeError(fmt::format(
        "{}: the model would have {} bytes in one file; protobuf, and with it every runtime and ATC, reads "
        "at "
        "most {}. Export it with external data (the weights in a file beside the model) and run again",
        shown, pieces.total(), kLargestModel));
  }
  return pieces;
}

// The data files that the model refers to must be found from where it is written.
absl::Status CheckExternalFiles(const Model& model, const std::string& path) {
  if (model.external_locations().empty() || model.path().empty()) return absl::OkStatus();
  const std::string from = DirectoryOf(model.path());
  const std::string to = DirectoryOf(path);
  struct stat target;
  const bool target_exists = stat(path.c_str(), &target) == 0;
  for (const std::string& location : model.external_locations()) {
    struct stat source;
    struct stat copy;
    const std::string source_path = from + "/" + location;
    if (stat(source_path.c_str(), &source) != 0) {
      return absl::FailedPreconditionError(fmt::format(
          "{}: the external data file '{}' is gone. Put it back and run again", path, source_path));
    }
    if (target_exists && source.st_dev == target.st_dev && source.st_ino == target.st_ino) {
      return absl::InvalidArgumentError(fmt::format(
          "{}: this is the file that holds the model's weights. Choose another name for the output", path));
    }
    const std::string copy_path = to + "/" + location;
    if (stat(copy_path.c_str(), &copy) == 0 && copy.st_size == source.st_size) continue;
    return absl::FailedPreconditionError(fmt::format(
        "{}: the model's weights are in '{}', which would not be found from there. Write the output to "
        "directory '{}', or copy the data file to '{}' first",
        path, source_path, from, copy_path));
  }
  return absl::OkStatus();
}

absl::Status WritePieces(const Model& model, const Pieces& pieces, int fd, const std::string& path,
                         const SaveOptions& options) {
  // The exact size in one go: faster, and a full disk is found before the first byte. File systems that
  // cannot do it (EOPNOTSUPP and others) go without.
  if (fallocate(fd, 0, 0, pieces.total()) != 0 && (errno == ENOSPC || errno == EDQUOT || errno == EFBIG)) {
    return SystemError(path, fmt::format("no room for {} bytes", pieces.total()).c_str(), errno);
  }
  BlockWriter writer(fd, path, pieces.total(), options);
  for (const Pieces::Piece& piece : pieces.pieces()) {
    absl::Status status;
    const auto size = static_cast<size_t>(piece.size);
    if (piece.kind == Pieces::kFile) {
      status = writer.Append(model.model_file(), piece.offset, piece.size);
    } else if (piece.kind == Pieces::kJoined) {
      JoinedReader reader(model, *piece.tensor);
      status = writer.Append(&reader, piece.size);
    } else if (piece.kind == Pieces::kBuffer) {
      status = writer.Append(pieces.buffer().substr(static_cast<size_t>(piece.offset), size));
    } else {
      status = writer.Append(std::string_view(piece.data, size));
    }
    if (!status.ok()) return status;
  }
  if (absl::Status status = writer.Flush(); !status.ok()) return status;
  if (model.model_file() != nullptr) {
    if (absl::Status status = model.model_file()->CheckUnchanged(); !status.ok()) return status;
  }
  if (options.progress) options.progress(pieces.total(), pieces.total());
  return absl::OkStatus();
}

// Writes the pieces to a new file beside `path`, so that a rename puts it in its place within one file system.
// On an error nothing is left behind.
absl::Status WriteTemporary(const Model& model, const Pieces& pieces, const std::string& path,
                            const SaveOptions& options, std::string* temporary) {
  static std::atomic<uint32_t> counter = 0;
  int fd = -1;
  for (int attempt = 0; attempt < 100 && fd < 0; ++attempt) {
    *temporary = fmt::format("{}/.ascend-fuse-{}-{}.tmp", DirectoryOf(path), getpid(), counter++);
    fd = open(temporary->c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd < 0 && errno != EEXIST) break;
  }
  if (fd < 0) {
    temporary->clear();
    return SystemError(path, "cannot create a file in that directory", errno);
  }
  absl::Status status = WritePieces(model, pieces, fd, path, options);
  if (close(fd) != 0 && status.ok()) status = SystemError(path, "cannot write", errno);
  if (!status.ok()) {
    unlink(temporary->c_str());
    temporary->clear();
  }
  return status;
}

absl::Status PutInPlace(const std::string& temporary, const std::string& path) {
  if (rename(temporary.c_str(), path.c_str()) == 0) return absl::OkStatus();
  return SystemError(path, "cannot put the finished file in its place", errno);
}

}  // namespace

absl::Status SaveModel(const Model& model, const std::string& path, const SaveOptions& options) {
  struct stat target;
  if (stat(path.c_str(), &target) == 0 && !S_ISREG(target.st_mode)) {
    return absl::InvalidArgumentError(
        fmt::format("{}: cannot write the model there: it is {}. Give the name of an .onnx file", path,
                    S_ISDIR(target.st_mode) ? "a directory" : "a device or a pipe"));
  }
  if (path.empty() || path.rfind("/dev/", 0) == 0 || path.rfind("/proc/", 0) == 0) {
    return absl::InvalidArgumentError(fmt::format(
        "{}: cannot write the model there. Give the name of an .onnx file", path.empty() ? "''" : path));
  }
  if (absl::Status status = CheckExternalFiles(model, path); !status.ok()) return status;
  // A name that no weight of the model lies in yet.
  const std::string base = path.substr(path.rfind('/') + 1) + ".merged.data";
  std::string data_location = base;
  const auto& taken = model.external_locations();
  for (int i = 1; std::find(taken.begin(), taken.end(), data_location) != taken.end(); ++i) {
    data_location = fmt::format("{}.{}", base, i);
  }
  Pieces data;
  absl::StatusOr<Pieces> pieces = LayOut(model, path, data_location, &data);
  if (!pieces.ok()) return pieces.status();

  // Both files are complete before either gets its name.
  std::string data_temporary;
  const std::string data_path = fmt::format("{}/{}", DirectoryOf(path), data_location);
  if (data.total() > 0) {
    if (absl::Status status = WriteTemporary(model, data, data_path, options, &data_temporary); !status.ok()) {
      return status;
    }
  }
  std::string temporary;
  absl::Status status = WriteTemporary(model, *pieces, path, options, &temporary);
  if (status.ok() && !data_temporary.empty()) status = PutInPlace(data_temporary, data_path);
  if (status.ok()) status = PutInPlace(temporary, path);
  if (!status.ok() && !data_temporary.empty()) unlink(data_temporary.c_str());
  if (!status.ok() && !temporary.empty()) unlink(temporary.c_str());
  return status;
}

absl::StatusOr<std::string> SaveModelToBytes(const Model& model) {
  Pieces data;  // none: there is no file to put it in
  absl::StatusOr<Pieces> pieces = LayOut(model, "the model in memory", "", &data);
  if (!pieces.ok()) return pieces.status();
  std::string bytes(static_cast<size_t>(pieces->total()), '\0');
  char* to = bytes.data();
  for (const Pieces::Piece& piece : pieces->pieces()) {
    const auto size = static_cast<size_t>(piece.size);
    if (piece.kind == Pieces::kFile) {
      if (absl::Status status = model.model_file()->Copy(piece.offset, piece.size, to); !status.ok())
        return status;
    } else if (piece.kind == Pieces::kJoined) {
      JoinedReader reader(model, *piece.tensor);
      if (absl::Status status = reader.Next(piece.size, to); !status.ok()) return status;
    } else if (piece.kind == Pieces::kBuffer) {
      std::memcpy(to, pieces->buffer().data() + piece.offset, size);
    } else {
      std::memcpy(to, piece.data, size);
    }
    to += size;
  }
  return bytes;
}

Spelling::Spelling(const Model& model) : writer_(std::make_unique<ModelWriter>(model)) {}
Spelling::~Spelling() = default;
std::vector<std::string> Spelling::Imports() const { return writer_->Imports(); }
std::string_view Spelling::DomainOf(const Node& node) const { return writer_->Domain(node); }

}  // namespace ascend_fuse
