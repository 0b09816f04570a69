// How an operator that moves elements is described: one function for each, in moves.cc, moves_picked.cc and moves_joined.cc.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "absl/types/span.h"
#include "ir/infer/context.h"
#include "ir/infer/moved_elements.h"
#include "ir/infer/pick.h"

namespace ascend_fuse::infer {

// One result that is being described.
class Move {
 public:
  Move(NodeContext& c, MovementKind kind, size_t output = 0) : c_(c), output_(output) { movement_.kind = kind; }

  // The operand's elements, axis by axis.
  MovedPart& Part(size_t operand, absl::Span<const AxisSource> axes, absl::Span<const PlaceWindow> windows = {}) {
    MovedPart part;
    part.operand = operand;
    part.axes = c_.facts().arena().Copy(axes);
    part.windows = c_.facts().arena().Copy(windows);
    parts_.push_back(part);
    return parts_.back();
  }
  // The operand is regrouped as `view` before, and the result of dims `places` as its own shape after.
  void View(absl::Span<const Dim> view, absl::Span<const Dim> places) {
    parts_.back().view = c_.facts().arena().Copy(view);
    movement_.places = c_.facts().arena().Copy(places);
  }
  void Fill(size_t operand, double number) {
    movement_.fill_operand = operand;
    movement_.fill = number;
  }

  // Hands it over, with the elements that follow.
  void Done() {
    movement_.parts = c_.facts().arena().Copy(absl::Span<const MovedPart>(parts_));
    SetMovedElements(c_, output_, movement_);
    c_.Move(output_, movement_);
  }

 private:
  NodeContext& c_;
  const size_t output_;
  Movement movement_;
  absl::InlinedVector<MovedPart, 4> parts_;
};

using Sources = absl::InlinedVector<AxisSource, 6>;

// Every axis as it was.
inline Sources Places(size_t rank) {
  Sources sources;
  for (size_t axis = 0; axis < rank; ++axis) sources.push_back(AxisSource::Place(static_cast<int>(axis)));
  return sources;
}

// Operands of a Concat and results of a Split whose places are kept: more would take more memory than the model.
inline constexpr size_t kMostMovedParts = size_t{1} << 14;

// The result is of the first operand alone.
inline void MoveFirst(NodeContext& c, MovementKind kind, absl::Span<const AxisSource> axes, size_t output = 0) {
  Move move(c, kind, output);
  move.Part(0, axes);
  move.Done();
}

// The axes of the first operand from `first` on follow those that the result has so far.
inline void FollowAxes(const Fact& operand, size_t first, Sources* sources, Shape* shape) {
  for (size_t i = first; i < operand.shape.size(); ++i) {
    sources->push_back(AxisSource::Place(static_cast<int>(shape->size())));
    shape->push_back(operand.shape[i]);
  }
}

// Positions that are one after another in equal steps.
struct Progression {
  Dim start;
  int64_t step = 1;
};

// The elements of input i, positions along an axis of `extent` elements, as a progression.
std::optional<Progression> ProgressionOf(NodeContext& c, size_t i, Dim extent);

// Elements of the first operand, and it is not known which.
void SomeOf(NodeContext& c, MovementKind kind);

void Slice(NodeContext& c);
void Gather(NodeContext& c);
void GatherElements(NodeContext& c);
void GatherNd(NodeContext& c);
void Split(NodeContext& c);
void Concat(NodeContext& c);
void Scatter(NodeContext& c);
void Expand(NodeContext& c);
void Tile(NodeContext& c);
void Pad(NodeContext& c);
void CenterCropPad(NodeContext& c);

}  // namespace ascend_fuse::infer
