// Operators that join elements of several operands, repeat them, or put others around or among them: Concat, the Scatters,
// Expand, Tile, Pad, CenterCropPad.
#include <vector>

#include "ir/infer/move.h"

namespace ascend_fuse::infer {
namespace {

// The dims that all parts of a Concat have, and their sum along the axis.
Shape JoinedShape(NodeContext& c, size_t rank, int64_t axis) {
  Shape shape(rank);
  Dim along = Dim::Of(0);
  Dim same;  // of the last inputs, and how many of them: every sum that is made is kept
  int64_t times = 0;
  const auto add = [&] {
    if (times > 0) along = c.dims().Add(along, times == 1 ? same : c.dims().Mul(same, Dim::Of(times)));
  };
  for (size_t i = 0; i < c.input_count(); ++i) {
    const Fact& in = c.in(i);
    if (!in.has_rank || in.shape.size() != rank) {
      along = Dim();
      continue;
    }
    if (times > 0 && in.shape[static_cast<size_t>(axis)] == same) {
      ++times;
    } else {
      add();
      same = in.shape[static_cast<size_t>(axis)];
      times = 1;
    }
    for (size_t k = 0; k < shape.size(); ++k) {
      if (static_cast<int64_t>(k) == axis) continue;
      if (!shape[k].known()) {
        shape[k] = in.shape[k];
      } else {
        c.Require(shape[k], in.shape[k]);
        if (!shape[k].is_number()) shape[k] = c.dims().Resolve(shape[k]);
      }
    }
  }
  add();
  shape[static_cast<size_t>(axis)] = along;
  return shape;
}

}  // namespace

void Concat(NodeContext& c) {
  const size_t count = c.input_count();
  if (count == 0) return;
  int rank = -1;
  for (size_t i = 0; i < count; ++i) {
    if (c.type(i) != DataType::kUndefined) c.SetType(0, c.type(i));
    if (c.in(i).has_rank) rank = c.rank(i);
  }
  const auto some_of_all = [&] {
    Move move(c, MovementKind::kJoins);
    for (size_t i = 0; i < count; ++i) move.Part(i, {}).known = false;
    move.Done();
  };
  if (rank < 0) return some_of_all();
  const int64_t axis = NormalizeAxis(c.Int("axis", c.opset() < 4 ? 1 : 0), rank);
  if (axis < 0) return some_of_all();
  c.SetShape(0, JoinedShape(c, static_cast<size_t>(rank), axis));
  if (count > kMostMovedParts) return;
  // Every sum that is made is kept: where one of many symbols begins is not said.
  constexpr size_t kMostSums = 32;
  Move move(c, MovementKind::kJoins);
  const Sources sources = Places(static_cast<size_t>(rank));
  Dim begin = Dim::Of(0);
  for (size_t i = 0; i < count; ++i) {
    const Fact& in = c.in(i);
    if (in.rank() != rank) return some_of_all();
    const Dim length = in.shape[static_cast<size_t>(axis)];
    move.Part(i, sources, {PlaceWindow{static_cast<int>(axis), begin, length, 1}});
    if (!begin.is_number() && i > kMostSums) begin = Dim();
    begin = begin.known() ? c.dims().Add(begin, length) : Dim();
  }
  move.Done();
}

// Elements that others replace. Rows that are written one after another are a window.
void Scatter(NodeContext& c) {
  c.SetType(0, c.type(0));
  const Fact& data = c.in(0);
  if (data.has_rank) c.SetShape(0, data.shape);
  if (c.String("reduction", "none") != "none") return;
  const size_t updates = c.op_type() == "TensorScatter" ? 1 : 2;
  const Fact& written = c.in(updates);
  const Fact& indices = c.in(c.op_type() == "TensorScatter" ? 2 : 1);
  Move move(c, MovementKind::kWrites);
  move.Part(0, Places(data.shape.size())).known = data.has_rank;
  const bool of_rows = c.op_type() == "ScatterND" && indices.rank() == 2 && indices.shape[1].is(1) && data.rank() >= 1 &&
                       written.rank() == data.rank();
  const auto rows = of_rows ? ProgressionOf(c, 1, data.shape[0]) : std::nullopt;
  MovedPart& part = rows.has_value() ? move.Part(updates, Places(data.shape.size()),
                                                 {PlaceWindow{0, rows->start, indices.shape[0], rows->step}})
                                     : move.Part(updates, {});
  part.known = rows.has_value();
  if (c.op_type() == "ScatterND") part.placed_by = 1;
  move.Done();
}

void Expand(NodeContext& c) {
  c.SetType(0, c.type(0));
  Shape target;
  if (!c.in(0).has_rank || !ShapeFromElements(c, 1, &target)) return SomeOf(c, MovementKind::kCopies);
  for (Dim& dim : target) {
    if (dim.is_number() && dim.number() < 0) dim = Dim();
  }
  const Shape in = c.shape(0);
  const Shape shape = c.Broadcast(in, target);
  c.SetShape(0, shape);
  const size_t added = shape.size() - in.size();
  Sources sources;
  for (size_t i = 0; i < in.size(); ++i) {
    const int axis = static_cast<int>(added + i);
    const bool one = in[i].is(1);
    const bool same = !one && c.dims().Equal(in[i], shape[added + i]);
    sources.push_back(one ? AxisSource::Fixed(Dim::Of(0)) : same ? AxisSource::Place(axis) : AxisSource::Broadcast(axis));
  }
  MoveFirst(c, MovementKind::kCopies, sources);
}

void Tile(NodeContext& c) {
  c.SetType(0, c.type(0));
  if (!c.in(0).has_rank || c.opset() < 6) return SomeOf(c, MovementKind::kCopies);
  const Shape in = c.shape(0);
  Shape repeats;
  if (!ShapeFromElements(c, 1, &repeats)) repeats.clear();
  repeats.resize(in.size());
  Shape shape;
  Sources sources;
  for (size_t i = 0; i < repeats.size(); ++i) {
    shape.push_back(c.dims().Mul(in[i], repeats[i]));
    const int axis = static_cast<int>(i);
    sources.push_back(repeats[i].is(1) ? AxisSource::Place(axis)
                      : in[i].is(1)    ? AxisSource::Fixed(Dim::Of(0))
                                       : AxisSource::Wrapped(axis));
  }
  c.SetShape(0, shape);
  MoveFirst(c, MovementKind::kCopies, sources);
}

void Pad(NodeContext& c) {
  c.SetType(0, c.type(0));
  const Fact& in = c.in(0);
  // Other modes repeat elements at the ends.
  const bool constant = c.String("mode", "constant") == "constant";
  Move move(c, constant ? MovementKind::kPads : MovementKind::kPicks);
  move.Fill(c.has(2) ? 2 : 0, c.Float("value", 0));
  const auto somewhere = [&] {
    move.Part(0, {}).known = false;
    move.Done();
  };
  if (!in.has_rank) return somewhere();
  const size_t rank = in.shape.size();
  c.SetRank(0, rank);
  Dims pads;
  if (const auto attribute = c.Ints("pads"); attribute.has_value()) {
    for (int64_t pad : *attribute) pads.push_back(Dim::Of(pad));
  } else if (absl::Span<const Dim> elements; c.Integers(1, &elements)) {
    pads.assign(elements.begin(), elements.end());
  }
  std::vector<int64_t> axes;
  if (c.has(3)) {
    const auto given = c.Numbers(3);
    if (!given.has_value()) return somewhere();
    axes = *given;
  } else {
    for (size_t i = 0; i < rank; ++i) axes.push_back(static_cast<int64_t>(i));
  }
  if (pads.size() != 2 * axes.size()) return somewhere();
  Shape shape(in.shape.begin(), in.shape.end());
  absl::InlinedVector<PlaceWindow, 6> windows;
  for (size_t i = 0; i < axes.size(); ++i) {
    const int64_t axis = NormalizeAxis(axes[i], static_cast<int64_t>(rank));
    if (axis < 0) return somewhere();
    Dim& dim = shape[static_cast<size_t>(axis)];
    if (!pads[i].is(0) || !pads[i + axes.size()].is(0)) windows.push_back({static_cast<int>(axis), pads[i], dim, 1});
    dim = c.dims().Add(dim, c.dims().Add(pads[i], pads[i + axes.size()]));
  }
  c.SetShape(0, shape);
  if (!windows.empty() && !constant) return somewhere();
  move.Part(0, Places(rank), windows);
  move.Done();
}

// The middle of an axis that is longer than is wanted; zeros on both sides of one that is shorter.
void CenterCropPad(NodeContext& c) {
  c.SetType(0, c.type(0));
  if (!c.in(0).has_rank) return SomeOf(c, MovementKind::kPads);
  Shape shape = c.shape(0);
  Sources sources = Places(shape.size());
  std::vector<PlaceWindow> windows;
  std::vector<int64_t> axes = c.Ints("axes").value_or(std::vector<int64_t>());
  for (size_t i = 0; i < shape.size() && !FindAttribute(c.node(), "axes").has_value(); ++i)
    axes.push_back(static_cast<int64_t>(i));
  absl::Span<const Dim> size;
  const bool given = c.Integers(1, &size) && size.size() == axes.size();
  bool known = given;
  for (size_t i = 0; i < axes.size(); ++i) {
    const int64_t axis = NormalizeAxis(axes[i], c.rank(0));
    if (axis < 0) return c.SetRank(0, shape.size());
    Dim& dim = shape[static_cast<size_t>(axis)];
    const Dim wanted = given ? c.dims().Resolve(size[i]) : Dim();
    if (!c.dims().Equal(dim, wanted)) {
      const bool numbers = dim.is_number() && wanted.is_number();
      const int64_t more = numbers ? dim.number() - wanted.number() : 0;
      if (more > 0) sources[static_cast<size_t>(axis)] = AxisSource::Place(static_cast<int>(axis), Dim::Of(more / 2));
      if (more < 0) windows.push_back({static_cast<int>(axis), Dim::Of(-more / 2), dim, 1});
      known = known && numbers;
    }
    dim = wanted;
  }
  c.SetShape(0, shape);
  Move move(c, known && windows.empty() ? MovementKind::kPicks : MovementKind::kPads);
  move.Part(0, sources, windows).known = known;
  move.Done();
}

}  // namespace ascend_fuse::infer
