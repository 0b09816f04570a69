// Attentions whose layout is a choice, and what layouts and Transposes cost by the cost model, as whole numbers for MinimumCut.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "absl/types/span.h"
#include "ir/infer/facts.h"
#include "patterns/cost/cost_model.h"

namespace ascend_fuse {

inline constexpr size_t kAttentionOperands = 3;  // query, key, value

// Costs are in units of a millionth of a microsecond. Of two choices of one cost the one that reshapes less is taken, and then
// the one that changes less.
inline constexpr int64_t kReshapeCost = 100;
inline constexpr int64_t kChangeCost = 1;

// Whether the node is an attention as rules emit it, query, key, value and result [B, N, S, D]: another one was chosen a
// layout before.
bool IsAttentionToArrange(const Node& node, const Facts& facts);

// Times on one chip, of kernels of a graph that is on the device, in half precision.
class LayoutCosts {
 public:
  explicit LayoutCosts(std::string_view chip) : model_(chip, LaunchMode::kStatic) {}

  // What a Transpose of a tensor of this shape costs.
  int64_t OfTranspose(absl::Span<const Dim> shape, const DimTable& dims) const;
  // What the attention takes longer with the heads after the tokens.
  int64_t OfTokensFirst(const Node& attention, const Facts& facts) const;

 private:
  CostModel model_;
};

}  // namespace ascend_fuse
