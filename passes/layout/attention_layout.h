// Attentions whose layout is a choice, and what layouts and Transposes cost: the numbers of `layout` in
// patterns/operators.txtpb, as whole numbers for MinimumCut.
#pragma once

#include <cstddef>
#include <cstdint>

#include "absl/types/span.h"
#include "ir/infer/facts.h"
#include "patterns/operators/layout_cost.h"

namespace ascend_fuse {

inline constexpr size_t kAttentionOperands = 3;  // query, key, value

// Costs are in units of a millionth of a microsecond. Of two choices of one cost the one that reshapes less is taken, and then
// the one that changes less.
inline constexpr int64_t kReshapeCost = 100;
inline constexpr int64_t kChangeCost = 1;

// Whether the node is an attention as rules emit it, query, key, value and result [B, N, S, D]: another one was chosen a
// layout before.
bool IsAttentionToArrange(const Node& node, const Facts& facts);

// Of an attention that IsAttentionToArrange.
const LayoutCost& LayoutCostOf(const Node& attention);

// What a Transpose of a tensor of this shape costs.
int64_t CostOfTranspose(const LayoutCost& cost, absl::Span<const Dim> shape, const DimTable& dims);

// What the attention takes longer with the heads after the tokens.
int64_t CostOfTokensFirst(const Node& attention, const Facts& facts);

}  // namespace ascend_fuse
