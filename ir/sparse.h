// Sparse tensors of attributes, decoded when asked for.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "ir/graph.h"
#include "ir/tensor.h"

namespace ascend_fuse {

// Some values [n], their places (int64, [n] in row-major order or [n, rank]), and the dims of the whole.
struct SparseTensor {
  Tensor values;
  Tensor indices;
  std::vector<int64_t> dims;
};

// The sparse tensor of the attribute of that name, or nullopt. Implemented in ir/onnx/attribute.cc.
std::optional<SparseTensor> SparseAttribute(const Node& node, std::string_view name);

}  // namespace ascend_fuse
