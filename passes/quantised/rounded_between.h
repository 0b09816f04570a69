// Attentions that rounding keeps apart.
#pragma once

namespace ascend_fuse {

class Workspace;

// A site for each softmax between two products of activations whose result is rounded to codes before the second one: no kernel
// of attention rounds there. Nothing is changed.
void FindRoundedBetween(Workspace& workspace);

}  // namespace ascend_fuse
