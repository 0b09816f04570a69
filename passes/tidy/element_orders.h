// Orders of what is computed element by element: between Transposes, and between axes of 1 that are added and taken away, an
// operator that looks at one element at a time may be computed in either order. Those are chosen by one minimum cut for each part
// of the graph that such operators and links join, so that the fewest links are left.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/functional/function_ref.h"
#include "passes/layout/order_graph.h"
#include "passes/tidy/links.h"
#include "passes/tidy/tidy_graph.h"

namespace ascend_fuse {

class ElementOrders {
 public:
  ElementOrders(TidyContext& context, TidyGraph& graph) : context_(context), graph_(graph) {}

  // Calls `done` for each node that is turned.
  void Choose(const Graph& graph, absl::FunctionRef<bool(const Node&)> done);

 private:
  // One tensor in one or both orders.
  struct Tensor {
    const Value* now[2] = {nullptr, nullptr};  // [0]: in the first order
    std::optional<size_t> maker;               // a node of the part; else it is made in `made_first`
    bool made_first = true;
    std::vector<size_t> readers;    // nodes of the part
    bool read[2] = {false, false};  // by others
    // A link to the other order is one with the node before.
    bool joins = false;
  };
  struct Place {
    size_t tensor = 0;
    bool first = false;
  };
  // A node that is computed element by element.
  struct Member {
    const Node* node = nullptr;
    bool first = false;  // as it is
    OrderGraph::Choice choice = 0;
    bool chosen = false;
  };
  struct Part {  // what one link is joined with
    LinkKind kind;
    std::vector<Tensor> tensors;
    absl::flat_hash_map<const Value*, Place> places;
    std::vector<Member> members;
    absl::flat_hash_map<const Node*, size_t> member_of;
    std::vector<const Value*> open;
    bool consistent = true;
  };

  Part Grow(const Node& link, const Link& of) const;
  bool Leads(const Part& part, const Node& node, const Graph* graph, bool first, bool into) const;
  void Meet(Part* part, const Value* value, bool first) const;
  void LookAround(Part* part, const Value* value) const;
  void Join(Part* part, const Node* node, bool first) const;
  bool IsMember(const LinkKind& kind, const Node& node, bool first) const;
  bool JoinsLink(const Part& part, const Tensor& tensor) const;
  int64_t CostOfLinks(const Part& part, bool chosen) const;
  bool Solve(Part* part) const;
  void Write(Part* part, absl::FunctionRef<bool(const Node&)> done);
  void WriteMember(Part* part, const Member& member);
  const Value* InOrder(Part* part, const Value* operand, bool first, const Node& reader);

  TidyContext& context_;
  TidyGraph& graph_;
};

}  // namespace ascend_fuse
