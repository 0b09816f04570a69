// The functions of each file of this folder; functions.cc puts them in one table.
#pragma once

#include "absl/types/span.h"
#include "patterns/functions/registry.h"

namespace ascend_fuse {

absl::Span<const FunctionRow> TensorFunctions();
absl::Span<const FunctionRow> AxisFunctions();
absl::Span<const FunctionRow> ReaderFunctions();
absl::Span<const FunctionRow> ModelFunctions();
absl::Span<const FunctionRow> NodeFunctions();
absl::Span<const FunctionRow> NormFunctions();
absl::Span<const FunctionRow> LinearFunctions();
absl::Span<const FunctionRow> AntiquantFunctions();
absl::Span<const FunctionRow> RotaryFunctions();
absl::Span<const FunctionRow> RotaryEmbeddingFunctions();
absl::Span<const FunctionRow> AttentionFunctions();
absl::Span<const FunctionRow> AdaptShapeFunctions();
absl::Span<const FunctionRow> AdaptMathFunctions();
absl::Span<const FunctionRow> EinsumFunctions();
absl::Span<const FunctionRow> MaskFunctions();
absl::Span<const FunctionRow> SoftcapFunctions();
absl::Span<const FunctionRow> ReadyMadeAttentionFunctions();
absl::Span<const FunctionRow> MixtureFunctions();

}  // namespace ascend_fuse
