// The dims that a Reshape is given, so that a run with a dim of 0 can tell them too.
#pragma once

#include "ir/infer/facts.h"
#include "ir/rewriter.h"
#include "patterns/terms/term.h"

namespace ascend_fuse {

// `dims`, of a Reshape of x, where 0 is the dim of x at that place and -1 what is left. Beside a dim of 0, such as a batch of
// none, there is nothing to tell -1 from, and ONNX Runtime refuses it. So unless every other dim is at least 1, -1 becomes a
// number, the dim of x at that place, or a product of dims of x that is computed; where it is not one of these, it stays.
Term ReshapeTarget(Facts& facts, const Value* x, const Term& dims);

// Whether a Reshape of x to computed dims says another thing in a run where one of them is 0: the dim of x at that place. None
// of them is 0 in every run, which is how the dim of x is asked for.
bool CopiesByMistake(Facts& facts, const Value* x, const Value* dims);

// Gives a Reshape that would copy by mistake the attribute allowzero, where its opset has one and it is not said already. Leaves
// every other node.
void AllowZeroDims(const Model& model, Facts& facts, NewNode* plan);

}  // namespace ascend_fuse
