// Lets a value be a copy of another one.
#pragma once

#include <string>

#include "passes/core/workspace.h"

namespace ascend_fuse {

// An Identity of `source` takes the place of what computes the value; what reads the value stays as it is. `source` stands before
// all of these. Returns the Identity, which is named after the value where no `name` is given.
const Node* BecomeCopy(Workspace& workspace, const Value* value, const Value* source, std::string name = "");

}  // namespace ascend_fuse
