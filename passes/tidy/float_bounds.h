// Between which numbers all elements of a tensor of floats lie, whatever the inputs of the model are. NaN is not told of.
#pragma once

#include <optional>

#include "passes/tidy/kinds.h"

namespace ascend_fuse {

struct FloatBounds {
  double low = 0;
  double high = 0;
};

// nullopt where nothing bounds them. Looks at a bounded number of nodes.
std::optional<FloatBounds> FloatBoundsOf(const TidyContext& context, const Value& value);

}  // namespace ascend_fuse
