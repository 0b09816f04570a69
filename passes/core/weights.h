// How many bytes the weights of a model have, and how many of them one run reads.
#pragma once

#include <cstdint>
#include <string_view>
#include <tuple>

#include "ir/model.h"
#include "passes/core/records.h"

namespace ascend_fuse {

// Bytes of the elements of a tensor as a file has them; 0 for dims that say nothing.
double BytesOf(const Tensor& tensor);

// Where the bytes of a tensor are, so that one place counts once; a tensor in memory is its own.
using TensorPlace = std::tuple<std::string_view, int64_t, int64_t, const Tensor*>;
TensorPlace PlaceOf(const Tensor& tensor);

// Initializers and tensors of Constant nodes that a live node reads or that are outputs; one place counts once. Linear in the
// number of constants and their uses.
WeightBytes CountWeights(const Model& model);

}  // namespace ascend_fuse
