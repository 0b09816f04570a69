// The pass that tidies the rest of the graph: what no node was made of, written as an engineer would write it. The table of
// docs/passes.md says what it takes and gives, docs/tidy.md which kinds there are.
#pragma once

#include <string_view>
#include <vector>

#include "absl/status/status.h"

namespace ascend_fuse {

class Workspace;

absl::Status Tidy(Workspace& workspace);

// The kinds of --tidy.
std::vector<std::string_view> TidyWords();

}  // namespace ascend_fuse
