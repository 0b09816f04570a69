// What a node does to positions, asked of the facts.
#pragma once

#include "ir/infer/facts.h"
#include "ir/movement/movement.h"

namespace ascend_fuse {

// What all outputs of the node are; kNone where it computes.
inline MovementKind KindOf(const Facts& facts, const Node& node) {
  for (const Value* output : node.outputs()) {
    if (output == nullptr) continue;
    const Movement* movement = facts.MovementOf(output);
    return movement != nullptr ? movement->kind : MovementKind::kNone;
  }
  return MovementKind::kNone;
}

inline bool KeepsOrder(const Facts& facts, const Node& node) { return KindOf(facts, node) == MovementKind::kKeepsOrder; }

// The elements of the result are those of input 0, wherever they stand, and no others.
inline bool IsOfOneOperand(MovementKind kind) {
  return kind == MovementKind::kKeepsOrder || kind == MovementKind::kPermutes || kind == MovementKind::kPicks ||
         kind == MovementKind::kCopies;
}

}  // namespace ascend_fuse
