// libFuzzer: any bytes either give a sentence, or a model that libprotobuf reads as we do, that is written back to the bit, and
// that after a change can be written, read again and written to the same bytes.
#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "ir/onnx/load.h"
#include "ir/onnx/model_file.h"
#include "ir/onnx/save.h"
#include "ir/rewriter.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/mutate_model.h"
#include "tests/support/reads.h"

namespace ascend_fuse::fuzz {
namespace {

std::string_view NameOf(const Value* value) { return value == nullptr ? std::string_view() : ValueName(*value); }

void CompareTensor(const Tensor& ours, const onnx::TensorProto& theirs) {
  Require(static_cast<int32_t>(ours.type) == theirs.data_type(), "the type of a tensor");
  Require(std::equal(ours.dims.begin(), ours.dims.end(), theirs.dims().begin(), theirs.dims().end()), "the dims of a tensor");
}

void CompareAttributes(const Node& node, const onnx::NodeProto& theirs) {
  const std::vector<Attribute> ours = ReadAttributes(node);
  Require(ours.size() == static_cast<size_t>(theirs.attribute_size()), "the number of attributes");
  for (size_t i = 0; i < ours.size(); ++i) {
    const Attribute& a = ours[i];
    const onnx::AttributeProto& b = theirs.attribute(static_cast<int>(i));
    Require(a.name == b.name(), "the name of an attribute");
    if (b.type() != onnx::AttributeProto::UNDEFINED) {  // else it is that of the field that is there
      Require(static_cast<int>(a.type) == static_cast<int>(b.type()), "the type of an attribute");
    }
    if (a.type == AttributeType::kInt) Require(a.i == b.i(), "i");
    if (a.type == AttributeType::kString) Require(a.s == b.s(), "s");
    if (a.type == AttributeType::kInts)
      Require(std::equal(a.ints.begin(), a.ints.end(), b.ints().begin(), b.ints().end()), "ints");
    if (a.type == AttributeType::kFloats) Require(a.floats.size() == static_cast<size_t>(b.floats_size()), "floats");
    if (a.type == AttributeType::kStrings) {
      Require(std::equal(a.strings.begin(), a.strings.end(), b.strings().begin(), b.strings().end()), "strings");
    }
    if (a.type == AttributeType::kTensor && b.has_t()) CompareTensor(a.tensor, b.t());
  }
}

void CompareGraph(const Graph& ours, const onnx::GraphProto& theirs) {
  std::vector<const Node*> nodes(ours.nodes().begin(), ours.nodes().end());
  std::sort(nodes.begin(), nodes.end(),
            [](const Node* a, const Node* b) { return a->encoded.file.offset < b->encoded.file.offset; });
  Require(nodes.size() == static_cast<size_t>(theirs.node_size()), "the number of nodes");
  for (size_t i = 0; i < nodes.size(); ++i) {
    const Node& a = *nodes[i];
    const onnx::NodeProto& b = theirs.node(static_cast<int>(i));
    Require(OpType(a) == b.op_type() && NodeName(a) == b.name(), "operator and name of a node");
    Require(Domain(a) == (b.domain() == "ai.onnx" ? std::string() : b.domain()), "the domain of a node");
    Require(a.input_count == static_cast<uint32_t>(b.input_size()) && a.output_count == static_cast<uint32_t>(b.output_size()),
            "the number of inputs and outputs");
    for (int n = 0; n < b.input_size(); ++n) Require(NameOf(a.input(static_cast<size_t>(n))) == b.input(n), "an input");
    for (int n = 0; n < b.output_size(); ++n) Require(NameOf(a.output(static_cast<size_t>(n))) == b.output(n), "an output");
    CompareAttributes(a, b);
    // Bodies in both fields of one attribute stand in the order of the file, which libprotobuf does not tell.
    const auto in_both = [](const onnx::AttributeProto& attribute) { return attribute.has_g() && attribute.graphs_size() > 0; };
    if (std::any_of(b.attribute().begin(), b.attribute().end(), in_both)) continue;
    size_t body = 0;
    for (const onnx::AttributeProto& attribute : b.attribute()) {
      if (attribute.has_g()) CompareGraph(*a.subgraphs()[body++], attribute.g());
      for (const onnx::GraphProto& graph : attribute.graphs()) CompareGraph(*a.subgraphs()[body++], graph);
    }
  }
  Require(ours.inputs().size() == static_cast<size_t>(theirs.input_size()), "the number of graph inputs");
  Require(ours.outputs().size() == static_cast<size_t>(theirs.output_size()), "the number of graph outputs");
}

// Looks at everything that can be asked of a model.
void ReadAll(const Model& model) {
  for (const auto& graph : model.graphs()) {
    for (const Value* value : graph->initializers()) {
      (void)ReadIntegers(model, *value->initializer, 4096);
      (void)ReadFloats(model, *value->initializer, 4096);
    }
    for (const Node* node : graph->nodes()) {
      for (const Attribute& attribute : ReadAttributes(*node)) {
        if (attribute.type == AttributeType::kTensor) (void)ReadFloats(model, attribute.tensor, 4096);
        (void)FindAttribute(*node, attribute.name);
      }
    }
  }
}

// Nodes of bodies read what the main graph is given, of names that those bodies have themselves.
void ReadFromAround(const Model& model, Rewriter* rewriter) {
  if (model.graphs().size() == 1) return;
  absl::flat_hash_map<NameId, const Value*> around;
  for (const Value* value : model.graph().inputs()) around.emplace(value->name, value);
  for (const Value* value : model.graph().initializers()) around.emplace(value->name, value);
  for (const auto& body : model.graphs()) {
    if (body->owner() == nullptr || body->nodes().empty() || body->nodes()[0]->input_count == 0) continue;
    std::vector<const Value*> own = body->inputs();
    own.insert(own.end(), body->initializers().begin(), body->initializers().end());
    for (const Value* value : own) {
      const auto hidden = around.find(value->name);
      if (hidden != around.end()) rewriter->SetInput(body->nodes()[0], 0, hidden->second);
    }
  }
}

void Run(const std::string& bytes) {
  auto model = LoadModelFromBytes(bytes);
  if (!model.ok()) return Require(!model.status().message().empty(), "a refusal has a sentence");
  const onnx::ModelProto* parsed = ProtobufParses(bytes);
  Require(parsed != nullptr, "protobuf parses what was loaded");
  CompareGraph((*model)->graph(), parsed->graph());
  ReadAll(**model);
  auto same = SaveModelToBytes(**model);
  Require(same.ok() && *same == bytes, "an unchanged model is written as it was");
  Rewriter rewriter(model->get());
  rewriter.SpellDefaultDomain(DefaultDomain::kExplicit);
  ReadFromAround(**model, &rewriter);
  const auto& nodes = (*model)->graph().nodes();
  const auto found = std::find_if(nodes.begin(), nodes.end(), [](const Node* node) { return node->subgraph_count == 0; });
  if (found != nodes.end()) {
    const Node* first = *found;
    NewNode copy;
    copy.op_type = "Copy";
    copy.name = "copy";
    copy.attributes = ReadAttributes(*first);
    for (const Use& use : first->inputs()) copy.inputs.push_back(use.value);
    if (first->output() != nullptr) rewriter.ReplaceValue(first->output(), copy);
  }
  rewriter.Sweep();
  auto changed = SaveModelToBytes(**model);
  Require(changed.ok(), "a changed model is written");
  Require(ProtobufParses(*changed) != nullptr, "protobuf parses what was written");
  auto again = LoadModelFromBytes(*changed);
  Require(again.ok(), "what was written is read");
  if ((*model)->graphs().size() > 1) Require(testing::Reads(**again) == testing::Reads(**model), "by the same nodes");
  auto twice = SaveModelToBytes(**again);
  Require(twice.ok() && *twice == *changed, "and written to the same bytes");
}

}  // namespace
}  // namespace ascend_fuse::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  ascend_fuse::fuzz::Run(std::string(reinterpret_cast<const char*>(data), size));
  return 0;
}

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t most, unsigned seed) {
  return ascend_fuse::fuzz::MutateModel(data, size, most, seed, 2);
}

extern "C" size_t LLVMFuzzerCustomCrossOver(const uint8_t* a, size_t a_size, const uint8_t* b, size_t b_size, uint8_t* out,
                                            size_t most, unsigned seed) {
  return ascend_fuse::fuzz::CrossModels(a, a_size, b, b_size, out, most, seed);
}
