// Attentions whose layout is a choice: data of patterns/operators.txtpb. What a layout costs, the cost model says.
#pragma once

#include <string_view>

namespace ascend_fuse {

// Of an Ascend node, by its type ("NPUPromptFlashAttention").
bool ChoosesLayout(std::string_view op_type);

}  // namespace ascend_fuse
