// Between which numbers all elements of an integer value lie, from constants, from dims and from what operators give.
#pragma once

#include <cstdint>
#include <optional>

#include "absl/functional/function_ref.h"
#include "ir/graph.h"
#include "ir/infer/facts.h"

namespace ascend_fuse {

// A bound that is not known is absent. Of a value without elements every bound holds.
struct IntegerBounds {
  std::optional<int64_t> low;
  std::optional<int64_t> high;

  bool NotNegative() const { return low.has_value() && *low >= 0; }
};

// Bounds of an integer or bool value of an error-free run. Looks at a bounded number of nodes.
IntegerBounds BoundsOf(const Value& value, const Facts& facts);
// The same where lengths of tensors, of which `is_length` says whether a dim is one, are below 2^31.
IntegerBounds BoundsOf(const Value& value, const Facts& facts, absl::FunctionRef<bool(Dim)> is_length);

}  // namespace ascend_fuse
