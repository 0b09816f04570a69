// How many bytes the weights of a model have, and how many of them one run reads.
#pragma once

#include <cstdint>
#include <string_view>
#include <tuple>

#include "absl/functional/function_ref.h"
#include "ir/model.h"
#include "passes/core/records.h"

namespace ascend_fuse {

// Bytes of the elements of a tensor as a file has them; 0 for dims that say nothing.
double BytesOf(const Tensor& tensor);

// Where the bytes of the tensor of a value are, so that one place counts once; what is in memory is the value's own.
using TensorPlace = std::tuple<std::string_view, int64_t, int64_t, const Value*>;
TensorPlace PlaceOf(const Value& value, const Tensor& tensor);

// Calls `of` with each weight and the value that holds it: initializers, and tensors of Constant nodes with more than a few
// numbers. Linear in the number of constants.
void ForEachWeight(const Model& model, absl::FunctionRef<void(const Value&, const Tensor&)> of);

// The bytes of weights that a live node reads or that are outputs; one place counts once. Linear in the number of constants and
// their uses.
WeightBytes CountWeights(const Model& model);

}  // namespace ascend_fuse
