#include "ir/onnx/model_writer.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "ir/onnx/kept_fields.h"
#include "ir/onnx/model_file.h"
#include "ir/onnx/spelling.h"
#include "ir/onnx/weight_writer.h"
#include "proto/onnx.pb.h"

namespace ascend_fuse {
namespace {

std::string_view InMemory(const EncodedSpan& span) {
  return {reinterpret_cast<const char*>(span.data), static_cast<size_t>(span.file.size)};
}

}  // namespace

class ModelWriter::Layout {
 public:
  Layout(const Model& model, WeightPlaces places)
      : model_(model), model_file_(model.model_file()), places_(std::move(places)), weights_(model, places_, &out_) {}

  // What the file at WeightPlaces::data_file must hold.
  Pieces& data() { return weights_.data(); }

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
    return model_file_ != nullptr && !model_.graph_->changed_ && !model_.opset_imports_changed_ && !model_.functions_changed_ &&
           !places_.move_weights();
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
  using AttributeProto = onnx::AttributeProto;
  using GraphProto = onnx::GraphProto;
  using ModelProto = onnx::ModelProto;
  using NodeProto = onnx::NodeProto;
  using ValueInfoProto = onnx::ValueInfoProto;
  static constexpr std::string_view kDefaultDomain = "ai.onnx";

  std::string_view Text(NameId id) const { return model_.names_.Text(id); }
  wire::Cursor Open(const EncodedSpan& span) const { return OpenSpan(model_file_, span); }
  void Keep(const EncodedSpan& message, const wire::Field& field, const wire::Cursor& cursor) {
    KeepField(message, field, cursor, &out_);
  }
  void KeepBut(const Graph& graph, const wire::Field& field, const wire::Cursor& cursor, const std::vector<OtherField>& others) {
    KeepFieldBut(graph.encoded_, field, cursor, others, &out_);
  }

  void WriteModel() {
    const EncodedSpan span = {model_file_->data(), {0, model_file_->file_size()}};
    wire::Cursor cursor = Open(span);
    wire::Field field;
    bool imports_written = !model_.opset_imports_changed_;
    while (cursor.Next(&field)) {
      switch (field.number) {
        case ModelProto::kGraphFieldNumber:
          if (model_.graph_->changed_ || places_.move_weights()) {
            const Pieces::Mark mark = out_.Begin(ModelProto::kGraphFieldNumber);
            WriteGraph(*model_.graph_);
            out_.End(mark);
          } else {
            Keep(span, field, cursor);
          }
          break;
        case ModelProto::kIrVersionFieldNumber:
          if (NeedsOwnInitializers()) {
            out_.Int(ModelProto::kIrVersionFieldNumber, kWithOwnInitializers);
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

  // Before this version of the format every initializer is an input, too. Constants that we make are none.
  static constexpr int64_t kWithOwnInitializers = 4;
  bool NeedsOwnInitializers() const {
    const auto& initializers = model_.graph_->initializers();
    return model_.ir_version_ < kWithOwnInitializers &&
           std::any_of(initializers.begin(), initializers.end(), [](const Value* value) { return !value->is_graph_input; });
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
    if (!model_.producer_name_.empty()) out_.Bytes(ModelProto::kProducerNameFieldNumber, model_.producer_name_);
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
    auto before = [](const Node* a, const Node* b) { return a->order != b->order ? a->order < b->order : a->id < b->id; };
    if (!std::is_sorted(nodes.begin(), nodes.end(), before)) std::sort(nodes.begin(), nodes.end(), before);
    return nodes;
  }

  static bool IsLive(const Value& value, const absl::flat_hash_set<const Value*>& initializers) {
    if (value.is_graph_input || initializers.contains(&value)) return true;
    return value.producer != nullptr && !value.producer->dead && value.producer->output(value.output_index) == &value;
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
    const absl::flat_hash_set<const Value*> initializers(graph.initializers_.begin(), graph.initializers_.end());
    size_t next_initializer = 0;
    size_t next_declared = 0;
    size_t next_input = 0;
    size_t next_output = 0;

    wire::Cursor cursor = Open(graph.encoded_);
    wire::Field field;
    while (cursor.Next(&field)) {
      switch (field.number) {
        case GraphProto::kNodeFieldNumber:
          if (graph.reordered_) {
            while (next_node < nodes.size()) WriteNode(*nodes[next_node++], nullptr);
          } else if (next_original < nodes.size() && nodes[next_original]->encoded.file.offset == field.position) {
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
            const Tensor& tensor = *graph.initializers_[next_initializer]->initializer;
            // Weights of bodies stay where they are: readers differ on those.
            if (&graph != model_.graph_ || !weights_.WriteMoved(tensor)) WriteInitializer(graph, field, cursor, tensor);
          }
          break;
        case GraphProto::kInputFieldNumber:
          WritePort(graph, field, cursor, graph.inputs_, next_input++);
          break;
        case GraphProto::kOutputFieldNumber:
          WritePort(graph, field, cursor, graph.outputs_, next_output++);
          break;
        case GraphProto::kValueInfoFieldNumber:
          if (graph.value_info_dropped_) break;
          if (next_declared < graph.declared_.size() && graph.declared_[next_declared]->value_info == field.position) {
            const Value& value = *graph.declared_[next_declared++];
            const std::vector<OtherField> name = Name(graph, ValueInfoProto::kNameFieldNumber, value.name);
            if (IsLive(value, initializers)) KeepBut(graph, field, cursor, name);
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
      if (value->initializer->proto.offset < 0) weights_.Write(*value->initializer);
    }
  }

  // The name of a value of a graph of the file, where it may have another one than there.
  std::vector<OtherField> Name(const Graph& graph, int number, NameId name) const {
    if (!graph.renamed_) return {};
    return {{number, Text(name)}};
  }

  // An input or output of a graph of the file: as it stands there, unless it was declared anew or has another name.
  void WritePort(const Graph& graph, const wire::Field& field, const wire::Cursor& cursor,
                 const std::vector<const Value*>& values, size_t index) {
    if (index >= values.size()) return Keep(graph.encoded_, field, cursor);
    const char* const file = reinterpret_cast<const char*>(model_file_->data());
    const std::string_view type = values[index]->declared_type;
    const bool of_the_file = type.data() == nullptr || (type.data() >= file && type.data() < file + model_file_->file_size());
    std::vector<OtherField> others = Name(graph, ValueInfoProto::kNameFieldNumber, values[index]->name);
    if (!of_the_file) others.push_back({ValueInfoProto::kTypeFieldNumber, type});
    KeepBut(graph, field, cursor, others);
  }

  // An initializer of a graph of the file, dense or sparse, where its elements are.
  void WriteInitializer(const Graph& graph, const wire::Field& field, const wire::Cursor& cursor, const Tensor& tensor) {
    const std::vector<OtherField> name = Name(graph, onnx::TensorProto::kNameFieldNumber, tensor.name);
    if (name.empty() || field.number != GraphProto::kSparseInitializerFieldNumber) return KeepBut(graph, field, cursor, name);
    const Pieces::Mark mark = out_.Begin(static_cast<int>(field.number));
    wire::Cursor parts(field);
    wire::Field part;
    while (parts.Next(&part)) {  // the name of a sparse tensor is that of its values
      KeepBut(graph, part, parts, part.number == onnx::SparseTensorProto::kValuesFieldNumber ? name : std::vector<OtherField>());
    }
    out_.End(mark);
  }

  void WriteNewGraph(const Graph& graph, const std::vector<const Node*>& nodes) {
    for (const Node* node : nodes) WriteNode(*node, nullptr);
    out_.Bytes(GraphProto::kNameFieldNumber, Text(graph.name_));
    const absl::flat_hash_set<const Value*> initializers(graph.initializers_.begin(), graph.initializers_.end());
    for (const Value* value : graph.initializers_) weights_.Write(*value->initializer);
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
    for (size_t i = 0; i < node.output_count; ++i) out_.Bytes(NodeProto::kOutputFieldNumber, OutputText(node, i));
  }

  // A `node` field. `field`: where it stands in the file (for its tag); nullptr when it is moved or new.
  void WriteNode(const Node& node, const wire::Field* field) {
    if (!IsFromFile(node.encoded)) return WriteNewNode(node);
    bool body_changed = false;
    for (const Graph* body : node.subgraphs()) body_changed = body_changed || body->changed_;
    bool suspect = node.rewired || node.graph->renamed_ || model_.default_domain_ != DefaultDomain::kAsWritten;
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
          same_outputs = same_outputs && outputs < node.output_count && OutputText(node, outputs) == field.text();
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
      std::vector<int> fields;  // of its graphs, in order: one of another type may have any number in `graphs`
      while (cursor.Next(&field)) {
        if (field.number == AttributeProto::kTypeFieldNumber) type = static_cast<int64_t>(field.value);
        if (field.number == AttributeProto::kGFieldNumber || field.number == AttributeProto::kGraphsFieldNumber) {
          fields.push_back(static_cast<int>(field.number));
        }
      }
      if (fields.empty() && type == AttributeProto::GRAPH) fields = {AttributeProto::kGFieldNumber};
      if (fields.empty() && type == AttributeProto::GRAPHS) {
        fields.assign(node.subgraph_count - next_body, AttributeProto::kGraphsFieldNumber);
      }
      const Pieces::Mark mark = out_.Begin(NodeProto::kAttributeFieldNumber);
      cursor = wire::Cursor(attribute);
      while (cursor.Next(&field)) {
        if (field.number != AttributeProto::kGFieldNumber && field.number != AttributeProto::kGraphsFieldNumber) {
          Keep(node.encoded, field, cursor);
        }
      }
      for (const int number : fields) {
        if (next_body == node.subgraph_count) break;
        const Graph* const body = node.subgraphs_begin[next_body++];
        if (body == nullptr) continue;
        const Pieces::Mark inner = out_.Begin(number);
        WriteGraph(*body);
        out_.End(inner);
      }
      out_.End(mark);
    }
  }

  const Model& model_;
  const ModelFile* model_file_;
  const WeightPlaces places_;
  absl::flat_hash_set<int64_t> kept_functions_;  // offsets in the file; filled by HasFunction
  Pieces out_;
  WeightWriter weights_;
};

ModelWriter::ModelWriter(const Model& model, WeightPlaces places) : layout_(std::make_unique<Layout>(model, std::move(places))) {}
ModelWriter::~ModelWriter() = default;
bool ModelWriter::IsUnchanged() const { return layout_->IsUnchanged(); }
Pieces ModelWriter::Run() { return layout_->Run(); }
Pieces& ModelWriter::data() { return layout_->data(); }
std::vector<std::string> ModelWriter::Imports() const { return layout_->Imports(); }
std::string_view ModelWriter::Domain(const Node& node) const { return layout_->Domain(node); }

Spelling::Spelling(const Model& model) : writer_(std::make_unique<ModelWriter>(model)) {}
Spelling::~Spelling() = default;
std::vector<std::string> Spelling::Imports() const { return writer_->Imports(); }
std::string_view Spelling::DomainOf(const Node& node) const { return writer_->Domain(node); }

}  // namespace ascend_fuse
