#include "passes/core/weights.h"

#include <optional>

#include "absl/container/flat_hash_set.h"
#include "ir/constant_tensor.h"

namespace ascend_fuse {
namespace {

// Attributes of fewer bytes hold a few numbers, of which there are thousands; a reference to a file of weights has more.
bool HoldsNumbers(const Node& constant) {
  constexpr uint32_t kNumbers = 64;
  return constant.attributes_end != Node::kToTheEnd && constant.attributes_end - constant.attributes_begin < kNumbers;
}

bool TakesRows(const Use& use) {
  return use.index == 0 && (IsOp(*use.user, "Gather") || IsOp(*use.user, "GatherND") || IsOp(*use.user, "GatherElements"));
}

}  // namespace

double BytesOf(const Tensor& tensor) {
  const int64_t elements = tensor.ElementCount();
  return elements <= 0 ? 0 : static_cast<double>(elements) * BitWidth(tensor.type) / 8;
}

TensorPlace PlaceOf(const Value& value, const Tensor& tensor) {
  const bool in_file = tensor.storage == Storage::kFile || tensor.storage == Storage::kExternal;
  if (in_file) return {tensor.location, tensor.file.offset, tensor.file.size, nullptr};
  return {"", 0, 0, &value};
}

void ForEachWeight(const Model& model, absl::FunctionRef<void(const Value&, const Tensor&)> of) {
  for (const auto& graph : model.graphs()) {
    for (const Value* value : graph->initializers()) {
      if (value->initializer != nullptr) of(*value, *value->initializer);
    }
    for (const Node* node : graph->nodes()) {  // Paddle's exporter writes all weights so
      if (node->dead || HoldsNumbers(*node) || !IsOp(*node, "Constant") || node->output() == nullptr) continue;
      if (const std::optional<Tensor> tensor = ConstantTensor(*node->output()); tensor.has_value()) of(*node->output(), *tensor);
    }
  }
}

WeightBytes CountWeights(const Model& model) {
  WeightBytes bytes;
  absl::flat_hash_set<TensorPlace> all, read;
  const auto count = [&](const Value& value, const Tensor& tensor) {
    bool is_read = value.is_graph_output;
    bool is_read_whole = false;
    for (const Use& use : LiveUses(value)) {
      is_read = true;
      is_read_whole = is_read_whole || !TakesRows(use);
    }
    const TensorPlace place = PlaceOf(value, tensor);
    if (is_read && all.insert(place).second) bytes.all += BytesOf(tensor);
    if (is_read_whole && read.insert(place).second) bytes.read += BytesOf(tensor);
  };
  ForEachWeight(model, count);
  return bytes;
}

}  // namespace ascend_fuse
