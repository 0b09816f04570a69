// Inference of the operators that patterns/operators.txtpb declares: what ir does not know, in the form in which it asks.
#pragma once

#include "ir/infer/facts.h"

namespace ascend_fuse {

// Types and shapes from the rows of signatures. Lives as long as the process.
const OperatorInference* DeclaredInference();

// The options with which a model that may hold these operators is inferred:
// Infer(model, WithDeclaredOperators(options)).
InferOptions WithDeclaredOperators(InferOptions options = {});

}  // namespace ascend_fuse
