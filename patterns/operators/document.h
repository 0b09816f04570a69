// docs/operators.md, written from the declarations.
#pragma once

#include <string>
#include <string_view>

#include "absl/functional/function_ref.h"

namespace ascend_fuse {

// The whole document as Markdown. `ascend-fuse rules --operators` prints it, and a test compares it with the file. `speed`: what
// is known of the speed of a node, as paragraphs; patterns/cost has it.
std::string OperatorsDocument(absl::FunctionRef<std::string(std::string_view op_type)> speed);

}  // namespace ascend_fuse
