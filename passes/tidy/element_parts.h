// What stands together around links between two orders: tensors that exist in one order or both, and the nodes that compute them
// element by element, which could do so in the other order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "passes/layout/order_graph.h"
#include "passes/tidy/links.h"
#include "passes/tidy/tidy_graph.h"

namespace ascend_fuse {

// One tensor in one or both orders.
struct OrderedTensor {
  const Value* now[2] = {nullptr, nullptr};  // [0]: in the first order
  std::optional<size_t> maker;               // a node of the part; else it is made in `made_first`
  bool made_first = true;
  std::vector<size_t> readers;    // nodes of the part
  bool read[2] = {false, false};  // by others
  // A link to the other order is one with the node before.
  bool joins = false;
};
struct OrderedPlace {
  size_t tensor = 0;
  bool first = false;
};
// A node that is computed element by element.
struct ElementNode {
  const Node* node = nullptr;
  bool first = false;  // as it is
  OrderGraph::Choice choice = 0;
  bool chosen = false;
};
struct ElementPart {  // what one link is joined with
  LinkKind kind;
  std::vector<OrderedTensor> tensors;
  absl::flat_hash_map<const Value*, OrderedPlace> places;
  std::vector<ElementNode> members;
  absl::flat_hash_map<const Node*, size_t> member_of;
  std::vector<const Value*> open;
  bool consistent = true;
};

// Whether an operand is the same in both orders, or a constant of which a copy is: it is not one of the tensors.
bool StaysConstant(const TidyContext& context, const LinkKind& kind, const Value& value);
bool HasOneElement(const TidyContext& context, const Fact& fact);
// The only axis of a constant that is longer than 1, from the front of a tensor of `rank`; nullopt where there are more.
std::optional<int> LongAxis(const Tensor& tensor, int rank);
constexpr int64_t kMostConstantBytes = int64_t{64} << 10;  // of a constant that is written in another order

class ElementParts {
 public:
  ElementParts(const TidyContext& context, const TidyGraph& graph) : context_(context), graph_(graph) {}

  // The part that a link stands in.
  ElementPart Grow(const Node& link, const Link& of) const;

 private:
  bool Leads(const ElementPart& part, const Node& node, const Graph* graph, bool first, bool into) const;
  void Meet(ElementPart* part, const Value* value, bool first) const;
  void LookAround(ElementPart* part, const Value* value) const;
  void Join(ElementPart* part, const Node* node, bool first) const;
  bool IsMember(const LinkKind& kind, const Node& node, bool first) const;

  const TidyContext& context_;
  const TidyGraph& graph_;
};

}  // namespace ascend_fuse
