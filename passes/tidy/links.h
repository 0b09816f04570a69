// What only exchanges or adds axes: a Transpose, or an Unsqueeze, a Squeeze or a Reshape that differ by axes of 1. Each is a link
// between two orders of one tensor, and what is computed element by element may be computed in either.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "passes/tidy/kinds.h"

namespace ascend_fuse {

// All links between the same two orders: those of Transposes by one list of axes and by the one that undoes it, or of one list of
// axes of 1. In the first order a tensor has the axes of 1, or is the Transpose.
struct LinkKind {
  bool ones = false;
  std::vector<int64_t> axes;  // of 1, or as `perm` has them
  int rank = 0;               // in the first order

  int RankIn(bool first) const { return ones && !first ? rank - static_cast<int>(axes.size()) : rank; }
  friend bool operator==(const LinkKind&, const LinkKind&) = default;
  template <typename H>
  friend H AbslHashValue(H h, const LinkKind& kind) {
    return H::combine(std::move(h), kind.ones, kind.axes, kind.rank);
  }
};

struct Link {
  LinkKind kind;
  bool to_first = false;  // what it reads has the second order
  // Whether it leads from the first order to the second one as well: a Transpose that undoes itself.
  bool both_ways = false;
};

// nullopt of every other node.
std::optional<Link> LinkOf(const TidyContext& context, const Node& node);

// `x` of one order in the other one.
Term InOtherOrder(const LinkKind& kind, const Term& x, bool to_first);

// The axes of the operand of a Transpose as its result has them; empty where they are not known.
std::vector<int64_t> PermOf(const TidyContext& context, const Node& node);

}  // namespace ascend_fuse
