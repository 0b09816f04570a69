// Attentions that no kernel computes, by what they do besides: a sink that takes part in the softmax without being a key, and
// heads that are mixed before or after it.
#pragma once

#include <optional>
#include <vector>

#include "patterns/analysis/axis_map.h"
#include "patterns/terms/function_context.h"

namespace ascend_fuse {

// A value without the first or the last element of one axis.
struct CutColumn {
  const Value* whole = nullptr;
  size_t axis = 0;
  bool first = false;
};

std::optional<CutColumn> FindCutColumn(const FunctionContext& context, const Value* value);

// Scores and one element more, joined along an axis.
struct JoinedColumn {
  const Value* scores = nullptr;
  const Value* column = nullptr;  // nullptr: a Pad joins a number
  std::vector<const Node*> nodes;
};

// What was joined along the axis where `cut` takes it off again: before copies, casts and the subtraction of a maximum.
std::optional<JoinedColumn> FindJoinedColumn(const FunctionContext& context, const Value* value, const CutColumn& cut);

// Whether this may be the weights of a linear over heads, or its bias: a constant, moved or not.
bool IsMixer(const FunctionContext& context, const Value* value);

// What a linear or a Conv over heads mixes.
struct MixedHeads {
  const Value* source = nullptr;
  const Value* weights = nullptr;
};

// Whether view->value, with these axes, is a product with a constant that makes an axis of `leading` atoms, which batch and heads
// are made of.
std::optional<MixedHeads> FindMixedHeads(const FunctionContext& context, const AtomTable& atoms, const AxisView& view,
                                         const Atoms& leading);

}  // namespace ascend_fuse
