#include "passes/core/node_inserter.h"

#include <algorithm>

#include "fmt/format.h"
#include "ir/schema.h"
#include "passes/core/reshape_target.h"

namespace ascend_fuse {

namespace {

// A whole number, or a type as ONNX numbers them.
int64_t NumberOf(const Term& term) {
  return term.kind == Term::Kind::kType ? static_cast<int64_t>(term.type) : IntegerOf(term).value_or(0);
}

}  // namespace

NewNode NodeInserter::Planned(std::string op_type, std::vector<const Value*> inputs, std::vector<Attribute> attributes) const {
  NewNode plan;
  plan.op_type = std::move(op_type);
  plan.name = fmt::format("{}_{}", name_, plan.op_type);
  plan.inputs = std::move(inputs);
  plan.attributes = std::move(attributes);
  AllowZeroDims(workspace_.model(), workspace_.facts(), &plan);
  return plan;
}

const Value* NodeInserter::Insert(const NewNode& plan) {
  const Node* node = workspace_.rewriter().Insert(plan, 1, graph_, plan.name);
  workspace_.Refresh(node);
  return node->output();
}

const Value* NodeInserter::BuildOnce(const Term& term, Known* known) {
  known_ = known;
  const Value* value = Build(term);
  known_ = nullptr;
  return value;
}

const Value* NodeInserter::BuildNode(const Term& term) {
  const Rewriter::Mark before = workspace_.rewriter().Now();
  const Value* value = Insert(Plan(term));
  if (known_ == nullptr) return value;
  const Value*& known = (*known_)[workspace_.numbering().Number(value)];
  const bool there = known != nullptr && known->graph == graph_ && known->producer != nullptr && !known->producer->dead &&
                     StandsBefore(*known->producer, *value->producer);
  if (!there) return known = value;
  workspace_.rewriter().RollBack(before);  // with what was built for it
  return known;
}

const Value* NodeInserter::Op(std::string op_type, std::vector<const Value*> inputs, std::vector<Attribute> attributes) {
  return Insert(Planned(std::move(op_type), std::move(inputs), std::move(attributes)));
}

const Value* NodeInserter::Numbers(const std::vector<int64_t>& numbers) {
  const Value* value = workspace_.rewriter().Int64Constant(graph_, numbers, name_ + "_constant");
  InferConstant(value, &workspace_.facts());
  return value;
}

void NodeInserter::SetLengths(NewNode* split, const std::vector<int64_t>& lengths) {
  if (workspace_.model().OpsetVersion() >= 13) {  // an input from there on
    split->inputs.push_back(Numbers(lengths));
  } else {
    split->attributes.push_back(Attribute::Ints("split", lengths));
  }
}

const Value* NodeInserter::Build(const Term& term) {
  if (term.kind == Term::Kind::kValue) return term.value;
  if (term.kind == Term::Kind::kList) return Numbers(build::IntegersOf(*term.list));
  return BuildNode(term);
}

NewNode NodeInserter::Plan(const Term& term) {
  const DeferredNode& node = *term.node;
  std::vector<const Value*> inputs;
  for (const Term& input : node.inputs) {
    const bool target = node.op_type == "Reshape" && inputs.size() == 1 && input.kind == Term::Kind::kList;
    inputs.push_back(Build(target ? ReshapeTarget(workspace_.facts(), inputs[0], input) : input));
  }
  std::vector<Attribute> attributes;
  const Schema* schema = FindSchema("", node.op_type, workspace_.model().OpsetVersion());
  for (const auto& [name, value] : node.attributes) {
    const bool is_list = value.kind == Term::Kind::kList;
    // Many parameters are attributes in old opsets and inputs in new ones.
    const SchemaAttribute* row = schema != nullptr ? schema->FindAttribute(name) : nullptr;
    const int input = schema != nullptr && row == nullptr ? schema->FindInput(name) : -1;
    if (input >= 0) {
      inputs.resize(std::max(inputs.size(), static_cast<size_t>(input) + 1));
      inputs[static_cast<size_t>(input)] = Numbers(build::IntegersOf(is_list ? *value.list : std::vector<Term>{value}));
    } else {
      // The plan may outlive the term, and an attribute does not own its name.
      StringPool& names = workspace_.model().names();
      const std::string_view kept = row != nullptr ? row->name : names.Text(names.InternCopy(name));
      attributes.push_back(is_list ? Attribute::Ints(kept, build::IntegersOf(*value.list))
                                   : Attribute::Int(kept, NumberOf(value)));
    }
  }
  return Planned(node.op_type, std::move(inputs), std::move(attributes));
}

}  // namespace ascend_fuse
