// The edge of the library: what goes on inside may throw std::bad_alloc, as new and containers do; no exception leaves it.
#pragma once

#include <exception>
#include <new>
#include <stdexcept>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace ascend_fuse {

// RESOURCE_EXHAUSTED with a sentence; without one where there is no memory even for that.
inline absl::Status OutOfMemory() noexcept {
  try {
    return absl::ResourceExhaustedError("there is not enough memory. Close other programs, or run it on a machine that has more");
  } catch (const std::exception&) {
    return absl::Status(absl::StatusCode::kResourceExhausted, "");
  }
}

// What `run` returns, a Status or StatusOr; RESOURCE_EXHAUSTED where memory ran out.
template <typename Run>
auto WithinMemory(Run run) -> decltype(run()) {
  try {
    return run();
  } catch (const std::bad_alloc&) {
    return OutOfMemory();
  } catch (const std::length_error&) {  // a string or a vector longer than can be
    return OutOfMemory();
  }
}

}  // namespace ascend_fuse
