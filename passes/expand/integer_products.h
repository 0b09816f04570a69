// Products and convolutions of int8 as AMCT writes them: MatMul, Gemm and Conv, which ONNX defines for other types.
#pragma once

#include "absl/status/status.h"

namespace ascend_fuse {

class Workspace;

// Each becomes the operator of ONNX that multiplies integers, with the zero point that GE reads of the AscendQuant before it.
// Needs facts. FAILED_PRECONDITION names one that has no such operator.
absl::Status NameIntegerProducts(Workspace& workspace);

}  // namespace ascend_fuse
