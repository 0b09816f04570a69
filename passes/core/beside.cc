#include "passes/core/beside.h"

#include "fmt/format.h"

namespace ascend_fuse {

NewNode Beside::Planned(std::string op_type, std::vector<Value*> inputs, std::vector<Attribute> attributes) const {
  NewNode plan;
  plan.op_type = std::move(op_type);
  plan.name = fmt::format("{}_{}", name_, plan.op_type);
  plan.inputs = std::move(inputs);
  plan.attributes = std::move(attributes);
  return plan;
}

Value* Beside::Insert(const NewNode& plan) {
  Node* node = workspace_.rewriter().Insert(plan, 1, graph_, plan.name);
  workspace_.Know(node);
  return node->output();
}

Value* Beside::Op(std::string op_type, std::vector<Value*> inputs, std::vector<Attribute> attributes) {
  return Insert(Planned(std::move(op_type), std::move(inputs), std::move(attributes)));
}

Value* Beside::Numbers(const std::vector<int64_t>& numbers) {
  Value* value = workspace_.rewriter().Int64Constant(graph_, numbers, name_ + "_constant");
  InferConstant(value, &workspace_.facts());
  return value;
}

void Beside::SetLengths(NewNode* split, const std::vector<int64_t>& lengths) {
  if (workspace_.model().OpsetVersion() >= 13) {  // an input from there on
    split->inputs.push_back(Numbers(lengths));
  } else {
    split->attributes.push_back(Attribute::Ints("split", lengths));
  }
}

Value* Beside::Build(const Term& term) {
  if (term.kind == Term::Kind::kValue) return term.value;
  if (term.kind == Term::Kind::kList) return Numbers(build::IntegersOf(*term.list));
  return Insert(Plan(term));
}

NewNode Beside::Plan(const Term& term) {
  const DeferredNode& node = *term.node;
  std::vector<Value*> inputs;
  for (const Term& input : node.inputs) inputs.push_back(Build(input));
  std::vector<Attribute> attributes;
  const bool axes_are_input = workspace_.model().OpsetVersion() >= 13;
  for (const auto& [name, value] : node.attributes) {
    const bool is_list = value.kind == Term::Kind::kList;
    if (name == "axes" && axes_are_input) {  // from opset 13 on
      inputs.push_back(Numbers(build::IntegersOf(*value.list)));
    } else {
      attributes.push_back(is_list ? Attribute::Ints(name, build::IntegersOf(*value.list))
                                   : Attribute::Int(name, *IntegerOf(value)));
    }
  }
  return Planned(node.op_type, std::move(inputs), std::move(attributes));
}

}  // namespace ascend_fuse
