#include "passes/core/call_of.h"

#include <utility>

#include "ir/schema.h"
#include "passes/core/float_attribute.h"

namespace ascend_fuse {

Call CallOf(const Node& node, const Facts& facts, std::string op) {
  Call call;
  call.op = std::move(op);
  for (const Use& use : node.inputs()) {
    CallInput input;
    if (use.value != nullptr) {
      const Fact& fact = facts.Of(use.value);
      input.present = true;
      input.type = fact.type;
      input.has_rank = fact.has_rank;
      input.shape.assign(fact.shape.begin(), fact.shape.end());
    }
    call.inputs.push_back(std::move(input));
  }
  call.in_branch = IsBranchOfIf(*node.graph);
  call.attributes = ReadAttributes(node);
  const DeclaredOperator* declared = FindDeclaredOperator("npu", OpType(node));
  for (Attribute& attribute : call.attributes) attribute = AsDeclared(declared, attribute);
  return call;
}

bool IsBranchOfIf(const Graph& graph) { return graph.owner() != nullptr && IsOp(*graph.owner(), "If"); }

}  // namespace ascend_fuse
