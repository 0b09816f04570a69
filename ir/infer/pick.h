// What inference functions of several families do: equal elements stay equal, elements are a shape.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include "ir/infer/context.h"

namespace ascend_fuse::infer {

// The output has equal elements if the input has.
inline void Splat(NodeContext& c) {
  if (c.in(0).is_splat) c.SetSplat(0, c.in(0).splat);
}

// The shape that the elements of input i stand for; false if not even its rank is known.
inline bool ShapeFromElements(NodeContext& c, size_t i, Shape* shape) {
  absl::Span<const Dim> elements;
  if (c.Integers(i, &elements)) {
    shape->assign(elements.begin(), elements.end());
    for (Dim& dim : *shape) dim = c.dims().Resolve(dim);
    return true;
  }
  const Fact& fact = c.in(i);
  if (fact.rank() != 1) return false;
  const Dim length = c.dims().Resolve(fact.shape[0]);
  if (!length.is_number() || length.number() < 0 || length.number() > 64) return false;
  shape->assign(static_cast<size_t>(length.number()), Dim());
  return true;
}

}  // namespace ascend_fuse::infer
