// libFuzzer: any bytes either give a sentence or a model that is written back to the bit, and that after a
// change can be written, read again and written to the same bytes.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "ir/onnx/load.h"
#include "ir/onnx/save.h"
#include "ir/onnx/model_file.h"
#include "ir/rewriter.h"

namespace {

void Require(bool condition) {
  if (!condition) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace ascend_fuse;  // NOLINT
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  auto model = LoadModelFromBytes(bytes);
  if (!model.ok()) {
    Require(!model.status().message().empty());
    return 0;
  }
  for (const auto& graph : (*model)->graphs()) {
    for (const Value* value : graph->initializers()) {
      (void)ReadIntegers(**model, *value->initializer, 4096);
      (void)ReadFloats(**model, *value->initializer, 4096);
    }
    for (const Node* node : graph->nodes()) {
      for (const Attribute& attribute : ReadAttributes(*node)) {
        if (attribute.type == AttributeType::kTensor) (void)ReadFloats(**model, attribute.tensor, 4096);
        (void)FindAttribute(*node, attribute.name);
      }
    }
  }
  auto same = SaveModelToBytes(**model);
  Require(same.ok() && *same == bytes);
  Rewriter rewriter(model->get());
  rewriter.WriteDefaultDomain(true);
  if (!(*model)->graph().nodes().empty()) {
    Node* first = (*model)->graph().nodes()[0];
    NewNode copy;
    copy.op_type = "Copy";
    copy.name = "copy";
    copy.attributes = ReadAttributes(*first);
    for (const Use& use : first->inputs()) copy.inputs.push_back(use.value);
    if (first->output() != nullptr) rewriter.ReplaceValue(first->output(), copy);
  }
  rewriter.Sweep();
  auto changed = SaveModelToBytes(**model);
  Require(changed.ok());
  auto again = LoadModelFromBytes(*changed);
  Require(again.ok());
  auto twice = SaveModelToBytes(**again);
  Require(twice.ok() && *twice == *changed);
  return 0;
}
