// A product whose activation the model quantises by the range of the whole tensor, quantised by rows instead: another quantiser,
// finer in most models, which one kernel makes. It is done where --quantised per-token asks for it.
#pragma once

#include "passes/quantised/int8_kernel.h"

namespace ascend_fuse {

// What computes the product of `node` of an activation that was quantised so, of the type of x's scale. nullptr where that is not
// asked for or not taken; CodeWriter::told has the reason then, by `told`.
const Value* PerToken(CodeWriter& writer, const Node* node, const Int8Product& product, const Value* told);

}  // namespace ascend_fuse
