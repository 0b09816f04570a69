// How far a run is, and who is told of it.
#pragma once

#include <cstddef>
#include <functional>
#include <string_view>

namespace ascend_fuse {

// How far a run has come.
struct Progress {
  std::string_view pass;  // the name of the pass that runs
  size_t number = 0;      // of that pass: 0, 1 ... count - 1
  size_t count = 0;       // of all passes of the run
};

// Told how far a run has come; false ends the run with CANCELLED.
using ProgressCallback = std::function<bool(const Progress&)>;

}  // namespace ascend_fuse
