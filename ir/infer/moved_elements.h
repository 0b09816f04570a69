// The elements of what an operator moves, where those of its operands are known.
#pragma once

#include <cstddef>

#include "ir/infer/context.h"

namespace ascend_fuse::infer {

// Elements of output i, whose type and shape are set, as the movement says. Equal ones of any number.
void SetMovedElements(NodeContext& c, size_t i, const Movement& movement);

}  // namespace ascend_fuse::infer
