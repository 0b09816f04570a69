#include "ir/infer/call.h"

#include <algorithm>
#include <utility>

#include "ir/onnx/load.h"
#include "ir/onnx/skeleton.h"
#include "proto/onnx.pb.h"

namespace ascend_fuse::infer {
namespace {

std::string Key(std::string_view domain, std::string_view name) {
  std::string key(domain);
  key.push_back('\0');
  key.append(name);
  return key;
}

using Attributes = absl::flat_hash_map<std::string, onnx::AttributeProto>;

// Replaces references to the function's attributes, and names of inputs that the call leaves out.
class Substitution {
 public:
  Substitution(const Attributes& attributes, std::vector<std::string> absent)
      : attributes_(attributes), absent_(std::move(absent)) {}

  void Apply(onnx::NodeProto* node, int depth = 0) const {
    for (std::string& input : *node->mutable_input()) {
      if (std::find(absent_.begin(), absent_.end(), input) != absent_.end()) input.clear();
    }
    auto& list = *node->mutable_attribute();
    int kept = 0;
    for (int i = 0; i < list.size(); ++i) {
      onnx::AttributeProto& attribute = list[i];
      if (!attribute.ref_attr_name().empty()) {
        const auto found = attributes_.find(attribute.ref_attr_name());
        if (found == attributes_.end()) continue;
        const std::string name = attribute.name();
        attribute = found->second;
        attribute.set_name(name);
      } else if (depth < 100) {
        if (attribute.has_g()) Apply(attribute.mutable_g(), depth);
        for (onnx::GraphProto& graph : *attribute.mutable_graphs()) Apply(&graph, depth);
      }
      list.SwapElements(kept++, i);
    }
    list.DeleteSubrange(kept, list.size() - kept);
  }

 private:
  void Apply(onnx::GraphProto* graph, int depth) const {
    for (onnx::NodeProto& node : *graph->mutable_node()) Apply(&node, depth + 1);
  }

  const Attributes& attributes_;
  std::vector<std::string> absent_;
};

}  // namespace

Calls::~Calls() = default;

Calls::Calls(const Model& model) : model_(model) {
  for (const LocalFunction& function : model.functions()) {
    const auto [at, added] =
        functions_.try_emplace(Key(model.Text(function.domain), model.Text(function.name)));
    at->second.source = &function;
    at->second.ambiguous = !added;
  }
}

bool Calls::IsCall(const Node& node) const {
  return !functions_.empty() && functions_.contains(Key(Domain(node), OpType(node)));
}

const onnx::FunctionProto* Calls::Decode(Function* function) {
  if (function->decoded || function->ambiguous) return function->proto.get();
  function->decoded = true;
  const EncodedSpan& span = function->source->encoded;
  bytes_ += span.file.size;
  if (bytes_ > kMaxFunctionBytes) return nullptr;
  std::string bytes;
  if (span.file.offset >= 0 && model_.skeleton() != nullptr) {
    bytes.resize(static_cast<size_t>(span.file.size));
    if (!model_.skeleton()->Copy(span.file.offset, span.file.size, bytes.data()).ok()) return nullptr;
  } else {
    bytes.assign(reinterpret_cast<const char*>(span.data), static_cast<size_t>(span.file.size));
  }
  auto proto = std::make_unique<onnx::FunctionProto>();
  if (proto->ParseFromString(bytes)) function->proto = std::move(proto);
  return function->proto.get();
}

const Model* Calls::BodyFor(Function* function, const Node& call) {
  const onnx::FunctionProto* proto = Decode(function);
  if (proto == nullptr) return nullptr;
  std::string key = Key(proto->domain(), proto->name());
  std::vector<std::string> absent;
  for (int i = 0; i < proto->input_size(); ++i) {
    const bool given = call.input(static_cast<size_t>(i)) != nullptr;
    key.push_back(given ? '1' : '0');
    if (!given) absent.push_back(proto->input(i));
  }
  const std::vector<Attribute> given = ReadAttributes(call);
  for (const Attribute& attribute : given) {
    key += std::to_string(attribute.encoded.size()) + ":";
    key.append(attribute.encoded);
  }
  const auto found = bodies_.find(key);
  if (found != bodies_.end()) return found->second.get();
  if (bodies_.size() >= kMaxBodies || bytes_ > kMaxFunctionBytes) return nullptr;
  bytes_ += static_cast<int64_t>(proto->ByteSizeLong()) / 16;
  std::unique_ptr<Model>& body = bodies_[key];

  Attributes attributes;
  for (const onnx::AttributeProto& attribute : proto->attribute_proto())
    attributes[attribute.name()] = attribute;
  for (const Attribute& attribute : given) {
    onnx::AttributeProto parsed;
    // A payload that is not in memory leaves bytes that do not parse: the call is not understood then.
    if (!parsed.ParseFromArray(attribute.encoded.data(), static_cast<int>(attribute.encoded.size())))
      return nullptr;
    attributes[parsed.name()] = std::move(parsed);
  }
  onnx::ModelProto model;
  model.set_ir_version(10);
  if (proto->opset_import_size() > 0) {
    *model.mutable_opset_import() = proto->opset_import();
  } else {
    for (const OpsetImport& import : model_.opset_imports()) {
      onnx::OperatorSetIdProto* to = model.add_opset_import();
      to->set_domain(std::string(model_.Text(import.domain)));
      to->set_version(import.version);
    }
  }
  onnx::GraphProto* graph = model.mutable_graph();
  graph->set_name(proto->name());
  for (const std::string& name : proto->input()) {
    if (std::find(absent.begin(), absent.end(), name) == absent.end()) graph->add_input()->set_name(name);
  }
  for (const std::string& name : proto->output()) graph->add_output()->set_name(name);
  *graph->mutable_value_info() = proto->value_info();
  *graph->mutable_node() = proto->node();
  const Substitution substitution(attributes, std::move(absent));
  for (onnx::NodeProto& node : *graph->mutable_node()) substitution.Apply(&node);
  absl::StatusOr<std::unique_ptr<Model>> loaded = LoadModelFromBytes(model.SerializeAsString());
  if (loaded.ok()) body = *std::move(loaded);
  return body.get();
}

void Calls::Infer(NodeContext& c) {
  const auto found = functions_.find(Key(Domain(c.node()), OpType(c.node())));
  if (found == functions_.end() || depth_ >= kMaxDepth || exhausted()) return;
  const Model* body = BodyFor(&found->second, c.node());
  if (body == nullptr) return;
  const Graph& graph = body->graph();
  ++depth_;
  nodes_ += static_cast<int64_t>(graph.initializers().size()) + 1;
  Facts& facts = c.facts();
  std::vector<Fact> inputs;
  for (size_t i = 0; i < c.input_count(); ++i) {
    if (c.has(i)) inputs.push_back(c.in(i));
  }
  const uint64_t scope = std::exchange(scope_, c.dims().SetScope(0));
  c.dims().SetScope(scope_);
  const uint64_t frame = std::exchange(frame_, ++frames_);
  Facts::Values outer = facts.SwapValues({});
  for (size_t i = 0; i < std::min(inputs.size(), graph.inputs().size()); ++i)
    facts.Set(graph.inputs()[i], inputs[i]);
  InferGraph(graph, &facts);
  std::vector<Fact> results;
  for (const Value* value : graph.outputs()) results.push_back(facts.Of(value));
  facts.SwapValues(std::move(outer));
  frame_ = frame;
  scope_ = scope;
  --depth_;
  for (size_t i = 0; i < std::min(results.size(), c.output_count()); ++i) c.out(i) = results[i];
}

}  // namespace ascend_fuse::infer
