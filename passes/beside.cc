#include "passes/beside.h"

#include "fmt/format.h"

namespace ascend_fuse {

Value* Beside::Op(std::string op_type, std::vector<Value*> inputs, std::vector<Attribute> attributes) {
  NewNode plan;
  plan.op_type = std::move(op_type);
  plan.name = fmt::format("{}_{}", name_, plan.op_type);
  plan.inputs = std::move(inputs);
  plan.attributes = std::move(attributes);
  Node* node = workspace_.rewriter().Insert(plan, 1, graph_, plan.name);
  workspace_.Know(node);
  return node->output();
}

Value* Beside::Numbers(const std::vector<int64_t>& numbers) {
  Value* value = workspace_.rewriter().Int64Constant(graph_, numbers, name_ + "_constant");
  InferConstant(value, &workspace_.facts());
  return value;
}

// From opset 13 on the axes are an input.
Value* Beside::AlongAxes(std::string op_type, Value* x, const std::vector<int64_t>& axes) {
  if (workspace_.model().OpsetVersion() >= 13) return Op(std::move(op_type), {x, Numbers(axes)});
  return Op(std::move(op_type), {x}, {Attribute::Ints("axes", axes)});
}

}  // namespace ascend_fuse
