// Padding across a Reshape: the same elements in axes that are grouped otherwise.
#pragma once

#include <optional>

#include "absl/types/span.h"
#include "ir/infer/facts.h"
#include "passes/layout/zero_padding.h"

namespace ascend_fuse {

// The places along the axes of `to`, a shape that holds the elements of one of the shape `from` in row-major order, whose axes
// are padded so. nullopt where the zeros are not those of axes of `to`, or dims are not known enough.
std::optional<ZeroPadding> RegroupPadding(DimTable& dims, absl::Span<const Dim> from, const ZeroPadding& padding,
                                          absl::Span<const Dim> to);

}  // namespace ascend_fuse
