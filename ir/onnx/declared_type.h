// Types that a file declares of inputs and outputs, with other dims.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "absl/types/span.h"

namespace ascend_fuse {

// What a declared dim becomes: a number, else a text, else what it was.
struct NewDim {
  std::optional<int64_t> number;
  std::string text;
};

// An encoded TypeProto of a tensor with these dims, one for each that it declares. Empty for a type that declares no tensor
// of this rank, and where nothing changes.
std::string WithDims(std::string_view type, absl::Span<const NewDim> dims);
// The type of a tensor that declares no shape, with so many dims of which nothing is said. Empty for every other type.
std::string WithRank(std::string_view type, int rank);

}  // namespace ascend_fuse
