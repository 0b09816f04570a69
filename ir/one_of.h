// Whether a name is in a short list.
#pragma once

#include <algorithm>
#include <string_view>

#include "absl/types/span.h"

namespace ascend_fuse {

inline bool IsOneOf(std::string_view name, absl::Span<const std::string_view> names) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

}  // namespace ascend_fuse
