// Operators that move elements and compute nothing, and what each does to the axes of what it moves: the one list
// that the analyses share.
#pragma once

#include <string_view>

#include "ir/graph.h"

namespace ascend_fuse {

enum class Movement {
  kNone,        // it computes, or is not of the default domain
  kKeepsOrder,  // Identity, Reshape, Squeeze, Unsqueeze, Flatten: the same elements in the same row-major order
  kPermutes,    // Transpose: the same elements along exchanged axes
  kPicks,       // Slice, Split, Gather, GatherND, GatherElements: some of the elements, each any number of times
  kCopies,      // Expand, Tile: all elements, repeated along axes
  kJoins,       // Concat: the elements of all inputs, one after another along an axis
};

// The elements that move are those of input 0, of every input where it joins. Inputs that say how (shape, axes,
// indices) are not among them.
inline Movement MovementOf(const Node& node) {
  if (node.domain != NameId::kEmpty) return Movement::kNone;
  const std::string_view op = OpType(node);
  if (op == "Reshape" || op == "Unsqueeze" || op == "Squeeze" || op == "Flatten" || op == "Identity") {
    return Movement::kKeepsOrder;
  }
  if (op == "Transpose") return Movement::kPermutes;
  if (op == "Slice" || op == "Split" || op == "Gather" || op == "GatherND" || op == "GatherElements") {
    return Movement::kPicks;
  }
  if (op == "Expand" || op == "Tile") return Movement::kCopies;
  return op == "Concat" ? Movement::kJoins : Movement::kNone;
}

inline bool KeepsOrder(const Node& node) { return MovementOf(node) == Movement::kKeepsOrder; }

}  // namespace ascend_fuse
