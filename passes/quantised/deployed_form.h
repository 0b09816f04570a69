// A product of codes as AMCT writes it: AscendQuant, the operator on int8, AscendDequant, of which GE makes one product of
// integers. It is the only form that convolutions have, and linears of chips without a product of int8 of their own.
#pragma once

#include "passes/quantised/int8_kernel.h"

namespace ascend_fuse {

// What computes the product of `node` in that form, of the type of x's scale. `node` is a Conv or a QLinearConv where `conv`
// holds, whose weight is [O, I, ...] and whose attributes stay. nullptr where the target does not take it, which CodeWriter::told
// has then, or where --quantised does not ask for it.
const Value* InDeployedForm(CodeWriter& writer, const Node* node, const Int8Product& product, bool conv);

}  // namespace ascend_fuse
