#include "passes/core/copy_value.h"

#include <utility>

namespace ascend_fuse {

const Node* BecomeCopy(Workspace& workspace, const Value* value, const Value* source, std::string name) {
  NewNode plan;
  plan.op_type = "Identity";
  plan.name = std::move(name);
  plan.inputs = {source};
  const Node* const copy = workspace.rewriter().ReplaceValue(value, plan);
  workspace.Refresh(copy);
  return copy;
}

}  // namespace ascend_fuse
