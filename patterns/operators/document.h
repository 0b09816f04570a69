// docs/operators.md, written from the declarations.
#pragma once

#include <string>

namespace ascend_fuse {

// The whole document as Markdown. `ascend-fuse rules --operators` prints it, and a test compares it with the file.
std::string OperatorsDocument();

}  // namespace ascend_fuse
