// Codes of a tensor whose scale and zero point are computed of it, as DynamicQuantizeLinear defines them.
#pragma once

#include "passes/quantised/code_writer.h"

namespace ascend_fuse {

// All float32: the codes 0 to 255, their scale and their zero point.
struct DynamicCodes {
  const Value* raw;
  const Value* scale;
  const Value* zero;
};

// The range of x with 0 in it, in 255 steps; the same as ONNX Runtime has it.
DynamicCodes QuantizeByRange(CodeWriter& writer, const Node& at, const Value* x);

}  // namespace ascend_fuse
