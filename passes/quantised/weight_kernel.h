// A product with a weight that stays in integers, on the kernel of Ascend that dequantises it while it multiplies: a fourth of
// the bytes of float16 for 4 bits, and half of them for 8.
#pragma once

#include "passes/quantised/code_writer.h"

namespace ascend_fuse {

// A weight of integers. `how` says how it is dequantised: as rows [N, K] in a layout of outer, length and inner, or all at once.
struct IntegerWeight {
  Dequantization how;
  int64_t k = 0;
  int64_t n = 0;
  int64_t block = 0;    // places along K that share a scale
  bool by_rows = true;  // [N, K]; else [K, N], with scales [blocks of K, N], [N] or one for all
  // Where it is [K, N] and some columns of a wider one: the first of them, and how many that has.
  int64_t first = 0;
  int64_t wide = 0;
};

// Puts the kernel, and what fits it to the graph, in the place of the node, the product of its first input [..., K] and the
// weight. `bias` [N] is added afterwards. Where the target has no such kernel, or it does not take these operands, nothing is
// changed.
KernelTry TryWeightKernel(CodeWriter& writer, const Node* node, const IntegerWeight& weight, const Value* bias);

}  // namespace ascend_fuse
