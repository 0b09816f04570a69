// The flags of `ascend-fuse optimize` that change what is emitted, for tests that call the library: the RUN lines of
// golden files and the requests to pipeline_tool.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "passes/optimize.h"

namespace ascend_fuse::testing {

// Reads words such as "--target=ascend310p", "--dim=seq=1..2048", "--plugin" into `options`, as the command line does.
// A file of --rules, or of --target, is looked for in `folder`; it must be readable. INVALID_ARGUMENT names a word that is not
// understood, NOT_FOUND a rules file that cannot be read.
absl::Status ReadRunFlags(const std::vector<std::string>& words, const std::string& folder, OptimizeOptions* options);

}  // namespace ascend_fuse::testing
