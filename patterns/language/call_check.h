// Whether the arguments that a rule writes in a call can be what the function takes: a text where a number is wanted is
// a mistake that is told when the rule is loaded.
#pragma once

#include <string>

#include "patterns/functions/registry.h"
#include "patterns/language/pattern.h"

namespace ascend_fuse {

// "half: part must be a value of the graph, found a text" for argument `index` of a call of this function; empty where
// it may fit. What a name of the rule stands for is known when it matches only.
std::string Misfit(const FunctionRow& row, size_t index, const Expression& argument);

}  // namespace ascend_fuse
