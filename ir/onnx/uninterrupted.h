// System calls that a signal may end before they did anything.
#pragma once

#include <cerrno>

namespace ascend_fuse {

// What the call returns, which is made again where a signal came in between.
template <typename Call>
auto Uninterrupted(Call call) {
  for (;;) {
    const auto result = call();
    if (result >= 0 || errno != EINTR) return result;
  }
}

}  // namespace ascend_fuse
