// What an operator that moves elements and computes nothing does to positions: for every place of its result, which element
// of which operand stands there. It is decoded once, when the node is inferred (ir/infer/moves.cc), kept beside the facts
// (Facts::MovementOf), and is all that inference, value numbering and the analyses know of such operators.
#pragma once

#include <cstddef>
#include <cstdint>

#include "absl/types/span.h"
#include "ir/dim.h"

namespace ascend_fuse {

struct Node;

enum class MovementKind : uint8_t {
  kNone,        // it computes, or nothing is known of it
  kKeepsOrder,  // Identity, Reshape, Squeeze, Unsqueeze, Flatten: the same elements in the same row-major order
  kPermutes,    // Transpose, DepthToSpace, SpaceToDepth: the same elements along exchanged axes
  kPicks,       // Slice, Split, Gather, GatherND, GatherElements: some of the elements, each any number of times
  kCopies,      // Expand, Tile: all elements, repeated along axes
  kJoins,       // Concat: the elements of all operands, one after another along an axis
  kPads,        // Pad: the elements with a number around them
  kWrites,      // ScatterND, ScatterElements: elements, some of which others replace
};

// Where along one axis of an operand the element stands that is at a place of the result.
struct AxisSource {
  enum class Kind : uint8_t {
    kPlace,      // at start + step * place along `axis` of the result
    kFixed,      // at start
    kBroadcast,  // at the place along `axis`, or at 0 where the operand has one element there: not known which
    kWrapped,    // at the place along `axis`, modulo the extent of the operand's axis
    kRead,       // at what `operand` holds at the places along `axis` and those after it; a negative number counts from the end
  };
  Kind kind = Kind::kPlace;
  int axis = 0;
  int64_t step = 1;    // 0: not known
  Dim start;           // unknown where it is not known
  size_t operand = 0;  // kRead
  int component = -1;  // kRead: which element of the last axis of `operand`; -1: it is not read by components

  static AxisSource Place(int axis, Dim start = Dim::Of(0), int64_t step = 1) { return {Kind::kPlace, axis, step, start, 0, -1}; }
  static AxisSource Fixed(Dim start) { return {Kind::kFixed, 0, 1, start, 0, -1}; }
  static AxisSource Broadcast(int axis) { return {Kind::kBroadcast, axis, 1, Dim(), 0, -1}; }
  static AxisSource Wrapped(int axis) { return {Kind::kWrapped, axis, 1, Dim(), 0, -1}; }
  static AxisSource Read(size_t operand, int axis, int component = -1) {
    return {Kind::kRead, axis, 1, Dim(), operand, component};
  }

  // The place itself.
  bool IsPlace(int of) const { return kind == Kind::kPlace && axis == of && step == 1 && start.is(0); }
  bool IsOneElement() const { return kind == Kind::kFixed; }
};

// The places begin, begin + step ... along one axis of the result, `count` of them. They may lie beyond its ends.
struct PlaceWindow {
  int axis = 0;
  Dim begin;
  Dim count;
  int64_t step = 1;
};

// The elements of one operand.
struct MovedPart {
  size_t operand = 0;
  // Where in the result they stand; no window: everywhere. Along an axis with a window, places are counted in it.
  absl::Span<const PlaceWindow> windows;
  bool known = true;  // false: which of its elements stand where is not known; then nothing else of this is, but the next
  // The operand that says at which places of the first axes of the result its rows stand, one component after another along its
  // last axis; 0: none does. Where two rows stand at one place, it is not known which one does.
  uint8_t placed_by = 0;
  // By axis of the operand or, where there is a view, of the view: the operand's elements in row-major order as a tensor of
  // these dims. Of kKeepsOrder, which views its operand in the shape of the result, there are none.
  absl::Span<const AxisSource> axes;
  absl::Span<const Dim> view;

  bool viewed() const { return !view.empty(); }
};

struct Movement {
  MovementKind kind = MovementKind::kNone;
  const Node* node = nullptr;
  // Where two parts stand at one place, the later one does.
  absl::Span<const MovedPart> parts;
  // The result in row-major order is a tensor of these dims, along which places are counted; none: its own.
  absl::Span<const Dim> places;
  // kPads, where no part stands: operand `fill_operand`, or the number where that is 0.
  size_t fill_operand = 0;
  double fill = 0;

  // The only part; nullptr where there are more.
  const MovedPart* only() const { return parts.size() == 1 ? parts.data() : nullptr; }
};

}  // namespace ascend_fuse
