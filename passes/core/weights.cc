#include "passes/core/weights.h"

#include "absl/container/flat_hash_set.h"

namespace ascend_fuse {
namespace {

bool TakesRows(const Use& use) {
  return use.index == 0 && (IsOp(*use.user, "Gather") || IsOp(*use.user, "GatherND") || IsOp(*use.user, "GatherElements"));
}

}  // namespace

double BytesOf(const Tensor& tensor) {
  const int64_t elements = tensor.ElementCount();
  return elements <= 0 ? 0 : static_cast<double>(elements) * BitWidth(tensor.type) / 8;
}

TensorPlace PlaceOf(const Tensor& tensor) {
  const bool in_file = tensor.storage == Storage::kFile || tensor.storage == Storage::kExternal;
  if (in_file) return {tensor.location, tensor.file.offset, tensor.file.size, nullptr};
  return {"", 0, 0, &tensor};
}

WeightBytes CountWeights(const Model& model) {
  WeightBytes bytes;
  absl::flat_hash_set<TensorPlace> all, read;
  for (const auto& graph : model.graphs()) {
    for (const Value* value : graph->initializers()) {
      if (value->initializer == nullptr) continue;
      bool is_read = value->is_graph_output;
      bool is_read_whole = false;
      for (const Use& use : LiveUses(*value)) {
        is_read = true;
        is_read_whole = is_read_whole || !TakesRows(use);
      }
      const TensorPlace place = PlaceOf(*value->initializer);
      if (is_read && all.insert(place).second) bytes.all += BytesOf(*value->initializer);
      if (is_read_whole && read.insert(place).second) bytes.read += BytesOf(*value->initializer);
    }
  }
  return bytes;
}

}  // namespace ascend_fuse
