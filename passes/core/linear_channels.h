// Whether a factor or a summand of each channel can go into the weight or the bias of the linear or the convolution before it:
// asked of types and dims, no element is read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "ir/infer/facts.h"
#include "ir/model.h"

namespace ascend_fuse {

// Where the output channels of a linear or a convolution are.
struct LinearChannels {
  int from_end = 0;    // among the axes of the result
  size_t axis = 0;     // of the weight
  int64_t groups = 1;  // of channels, along the axis before it
  bool has_bias = false;
  int64_t count = 0;
};

// The tensor of a constant of float32 with at least one element and at most 4 M, which are held while the model is optimized.
std::optional<Tensor> SmallFloats(const Value* value);

// The channels of `linear` (Conv, ConvTranspose, Gemm without alpha and beta, MatMul with a matrix), where `node`, a Mul or an
// Add, takes its result as input `side` and one constant number for each channel, or one for all, as the other; nothing else
// says what may not. An Add needs a linear that has a place for a bias, which is empty or a constant of one number for each
// channel.
std::optional<LinearChannels> ChannelsFor(const Facts& facts, const Node& node, size_t side, const Node& linear);

// The linear or the convolution that can take `node` along, a Mul or an Add as above, where nothing else reads its result;
// also after some others that it takes along. nullptr where there is none.
const Node* LinearThatTakes(const Facts& facts, const Node& node, int most_between = 3);

}  // namespace ascend_fuse
