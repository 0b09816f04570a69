// What a node does to positions, asked of the facts.
#pragma once

#include <algorithm>

#include "absl/container/inlined_vector.h"
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

using PermutationOfAxes = absl::InlinedVector<int, 6>;

// The axes of the result that the axes of its operand are, by those of the operand; none where nothing is known of them, or
// where blocks change places too.
inline PermutationOfAxes PermutedAxes(const Movement& movement) {
  PermutationOfAxes axes;
  const MovedPart* part = movement.only();
  if (movement.kind != MovementKind::kPermutes || part == nullptr || !part->known || part->viewed()) return axes;
  for (const AxisSource& source : part->axes) axes.push_back(source.axis);
  return axes;
}

inline PermutationOfAxes PermutedAxes(const Facts& facts, const Value* value) {
  const Movement* movement = facts.MovementOf(value);
  return movement != nullptr ? PermutedAxes(*movement) : PermutationOfAxes();
}

// The value that it reads, in another node.
inline bool IsCopy(const Facts& facts, const Node& node) {
  if (!KeepsOrder(facts, node) || node.output() == nullptr) return false;
  const Fact& from = facts.Of(node.input(0));
  const Fact& to = facts.Of(node.output());
  return from.has_rank && to.has_rank && facts.dims().Equal(from.shape, to.shape);
}

// What broadcasting would do to its operand: copies along axes where that has one element, or which it has not.
inline bool IsBroadcast(const Movement& movement) {
  const MovedPart* part = movement.only();
  if (movement.kind != MovementKind::kCopies || part == nullptr || !part->known) return false;
  return std::none_of(part->axes.begin(), part->axes.end(),
                      [](const AxisSource& source) { return source.kind == AxisSource::Kind::kWrapped; });
}

inline bool IsBroadcast(const Facts& facts, const Value* value) {
  const Movement* movement = facts.MovementOf(value);
  return movement != nullptr && IsBroadcast(*movement);
}

}  // namespace ascend_fuse
