// Orders of what is computed element by element: between Transposes, and between axes of 1 that are added and taken away, an
// operator that looks at one element at a time may be computed in either order. Those are chosen by one minimum cut for each part
// of the graph that such operators and links join, so that the fewest links are left.
#pragma once

#include <cstdint>

#include "absl/functional/function_ref.h"
#include "passes/tidy/element_parts.h"

namespace ascend_fuse {

class ElementOrders {
 public:
  ElementOrders(TidyContext& context, TidyGraph& graph) : context_(context), graph_(graph), parts_(context, graph) {}

  // Calls `done` for each node that is turned.
  void Choose(const Graph& graph, absl::FunctionRef<bool(const Node&)> done);

 private:
  bool JoinsLink(const ElementPart& part, const OrderedTensor& tensor) const;
  int64_t CostOfLinks(const ElementPart& part, bool chosen) const;
  bool Solve(ElementPart* part) const;
  void Write(ElementPart* part, absl::FunctionRef<bool(const Node&)> done);
  void WriteMember(ElementPart* part, const ElementNode& member);
  const Value* InOrder(ElementPart* part, const Value* operand, bool first, const Node& reader);

  TidyContext& context_;
  TidyGraph& graph_;
  const ElementParts parts_;
};

}  // namespace ascend_fuse
