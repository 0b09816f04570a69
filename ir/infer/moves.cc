// Operators that move elements and compute nothing: Reshape, Transpose, Slice, Gather, Concat, Expand, Pad ... One function for
// each says the shape of the result and what it does to positions (ir/movement/movement.h). All that is known of such an
// operator anywhere follows from that; shapes as values turn into algebra by it. Here are those that keep all elements, and the
// table.
#include <vector>

#include "ir/infer/move.h"

namespace ascend_fuse::infer {

// Elements of the first operand, and it is not known which.
void SomeOf(NodeContext& c, MovementKind kind) {
  for (size_t i = 0; i < c.output_count(); ++i) {
    Move move(c, kind, i);
    move.Part(0, {}).known = false;
    move.Done();
  }
}

namespace {

void KeepOrder(NodeContext& c) {
  Move move(c, MovementKind::kKeepsOrder);
  move.Part(0, {});
  move.Done();
}

// --- the same elements in another shape ---

void Identity(NodeContext& c) {
  c.SetType(0, c.type(0));
  if (c.in(0).has_rank) c.SetShape(0, c.in(0).shape);
  KeepOrder(c);
}

// The dims that a Reshape writes: 0 for one that it takes over, one -1 for what is left.
void SolveReshape(NodeContext& c, Shape* dims) {
  DimTable& d = c.dims();
  const Fact& in = c.in(0);
  Shape& shape = *dims;
  const bool allow_zero = c.Int("allowzero", 0) != 0;
  int inferred = -1;  // the entry -1
  int unknown = -1;
  int unknown_count = 0;
  for (size_t i = 0; i < shape.size(); ++i) {
    if (shape[i].is(0) && !allow_zero) {
      shape[i] = in.has_rank && i < in.shape.size() ? in.shape[i] : Dim();
    } else if (shape[i].is(-1)) {
      inferred = static_cast<int>(i);
      shape[i] = Dim();
      continue;
    } else if (shape[i].is_number() && shape[i].number() < 0) {
      shape[i] = Dim();
    }
    if (!shape[i].known()) {
      unknown = static_cast<int>(i);
      ++unknown_count;
    }
  }
  if (!in.has_rank) return;
  const Dim total = c.Product(in.shape);
  const int solve = inferred >= 0 ? (unknown_count == 0 ? inferred : -1) : (unknown_count == 1 ? unknown : -1);
  if (solve >= 0) {
    Dim others = Dim::Of(1);
    for (size_t i = 0; i < shape.size(); ++i) {
      if (static_cast<int>(i) != solve) others = d.Mul(others, shape[i]);
    }
    Dim entry = d.ExactDiv(total, others);
    // The division is exact in every run; where it cannot be carried out, floor stands for it.
    if (!entry.known() && (inferred >= 0 || others.is_number())) entry = d.FloorDiv(total, others);
    shape[static_cast<size_t>(solve)] = entry;
  } else if (inferred < 0 && unknown_count == 0) {
    c.Require(total, c.Product(shape));
    for (Dim& dim : shape) dim = d.Resolve(dim);
  }
}

void Reshape(NodeContext& c) {
  c.SetType(0, c.type(0));
  Shape shape;
  if (c.opset() < 5) {
    const auto attribute = c.Ints("shape");
    if (!attribute.has_value()) return KeepOrder(c);
    for (int64_t entry : *attribute) shape.push_back(Dim::Of(entry));
  } else if (!ShapeFromElements(c, 1, &shape)) {
    return KeepOrder(c);
  }
  SolveReshape(c, &shape);
  c.SetShape(0, shape);
  KeepOrder(c);
}

void Flatten(NodeContext& c) {
  c.SetType(0, c.type(0));
  c.SetRank(0, 2);
  const int64_t rank = c.rank(0);
  int64_t axis = c.Int("axis", 1);
  if (axis != rank) axis = NormalizeAxis(axis, rank);
  if (c.in(0).has_rank && axis >= 0) {
    const absl::Span<const Dim> in = c.in(0).shape;
    c.SetShape(0, {c.Product(in.subspan(0, static_cast<size_t>(axis))), c.Product(in.subspan(static_cast<size_t>(axis)))});
  }
  KeepOrder(c);
}

// The shape without the axes that go; false where it is not known which.
bool SqueezedShape(NodeContext& c, Shape* shape) {
  bool given = false;
  const auto axes = c.IntsOrInput("axes", 1, &given);
  if (!c.in(0).has_rank) return false;
  const Shape in = c.shape(0);
  std::vector<bool> removed(in.size(), false);
  if (given) {
    if (!axes.has_value()) {
      // The number of axes gives the rank.
      const Fact& fact = c.in(1);
      if (fact.rank() == 1 && fact.shape[0].is_number() && fact.shape[0].number() >= 0 && fact.shape[0].number() <= c.rank(0)) {
        c.SetRank(0, in.size() - static_cast<size_t>(fact.shape[0].number()));
      }
      return false;
    }
    for (int64_t axis : *axes) {
      axis = NormalizeAxis(axis, c.rank(0));
      if (axis < 0) return false;
      removed[static_cast<size_t>(axis)] = true;
      c.Require(in[static_cast<size_t>(axis)], Dim::Of(1));
    }
  } else {
    for (size_t i = 0; i < in.size(); ++i) {
      if (c.dims().Equal(in[i], Dim::Of(1))) {
        removed[i] = true;
      } else if (!c.dims().NotEqual(in[i], Dim::Of(1))) {
        return false;  // may be 1
      }
    }
  }
  for (size_t i = 0; i < in.size(); ++i) {
    if (!removed[i]) shape->push_back(in[i]);
  }
  return true;
}

void Squeeze(NodeContext& c) {
  c.SetType(0, c.type(0));
  Shape shape;
  if (SqueezedShape(c, &shape)) c.SetShape(0, shape);
  KeepOrder(c);
}

// The shape with axes of 1 put in; false where it is not known where.
bool UnsqueezedShape(NodeContext& c, Shape* shape) {
  bool given = false;
  const auto axes = c.IntsOrInput("axes", 1, &given);
  if (!c.in(0).has_rank || !axes.has_value()) return false;
  const Shape in = c.shape(0);
  const size_t rank = in.size() + axes->size();
  std::vector<bool> added(rank, false);
  for (int64_t axis : *axes) {
    axis = NormalizeAxis(axis, static_cast<int64_t>(rank));
    if (axis < 0 || added[static_cast<size_t>(axis)]) return false;
    added[static_cast<size_t>(axis)] = true;
  }
  size_t next = 0;
  for (size_t i = 0; i < rank; ++i) shape->push_back(added[i] ? Dim::Of(1) : in[next++]);
  return true;
}

void Unsqueeze(NodeContext& c) {
  c.SetType(0, c.type(0));
  Shape shape;
  if (UnsqueezedShape(c, &shape)) c.SetShape(0, shape);
  KeepOrder(c);
}

// --- the same elements along other axes ---

void Transpose(NodeContext& c) {
  c.SetType(0, c.type(0));
  if (!c.in(0).has_rank) {
    if (const auto perm = c.Ints("perm"); perm.has_value()) c.SetRank(0, perm->size());
    return SomeOf(c, MovementKind::kPermutes);
  }
  const Shape in = c.shape(0);
  std::vector<int64_t> perm;
  if (const auto attribute = c.Ints("perm"); attribute.has_value()) {
    perm = *attribute;
  } else {
    for (size_t i = in.size(); i-- > 0;) perm.push_back(static_cast<int64_t>(i));
  }
  if (perm.size() != in.size()) return SomeOf(c, MovementKind::kPermutes);
  Shape shape;
  Sources sources(in.size(), AxisSource::Fixed(Dim()));
  for (size_t i = 0; i < perm.size(); ++i) {
    const int64_t axis = NormalizeAxis(perm[i], c.rank(0));
    if (axis < 0 || !sources[static_cast<size_t>(axis)].IsOneElement()) return SomeOf(c, MovementKind::kPermutes);
    sources[static_cast<size_t>(axis)] = AxisSource::Place(static_cast<int>(i));
    shape.push_back(in[static_cast<size_t>(axis)]);
  }
  c.SetShape(0, shape);
  MoveFirst(c, MovementKind::kPermutes, sources);
}

// Blocks of channels become blocks of pixels: [N, b, b, C, H, W] as [N, C, H, b, W, b], or with CRD [N, C, b, b, H, W].
void DepthToSpace(NodeContext& c) {
  c.SetType(0, c.type(0));
  if (c.rank(0) != 4) return SomeOf(c, MovementKind::kPermutes);
  DimTable& d = c.dims();
  const Dim block = Dim::Of(c.Int("blocksize", 1));
  const Shape in = c.shape(0);
  const Dim channels = d.FloorDiv(in[1], d.Mul(block, block));
  c.SetShape(0, {in[0], channels, d.Mul(in[2], block), d.Mul(in[3], block)});
  Move move(c, MovementKind::kPermutes);
  const auto place = [](int axis) { return AxisSource::Place(axis); };
  if (c.String("mode", "DCR") == "CRD") {
    move.Part(0, {place(0), place(1), place(3), place(5), place(2), place(4)});
    move.View({in[0], channels, block, block, in[2], in[3]}, {in[0], channels, in[2], block, in[3], block});
  } else {
    move.Part(0, {place(0), place(3), place(5), place(1), place(2), place(4)});
    move.View({in[0], block, block, channels, in[2], in[3]}, {in[0], channels, in[2], block, in[3], block});
  }
  move.Done();
}

// Blocks of pixels become channels: [N, C, H, b, W, b] as [N, b, b, C, H, W] or, in the mode CRD, as [N, C, b, b, H, W].
void SpaceToDepth(NodeContext& c) {
  c.SetType(0, c.type(0));
  if (c.rank(0) != 4) return SomeOf(c, MovementKind::kPermutes);
  DimTable& d = c.dims();
  const Dim block = Dim::Of(c.Int("blocksize", 1));
  const Shape in = c.shape(0);
  const Dim height = d.FloorDiv(in[2], block);
  const Dim width = d.FloorDiv(in[3], block);
  c.SetShape(0, {in[0], d.Mul(in[1], d.Mul(block, block)), height, width});
  Move move(c, MovementKind::kPermutes);
  const auto place = [](int axis) { return AxisSource::Place(axis); };
  if (c.String("mode", "DCR") == "CRD") {
    move.Part(0, {place(0), place(1), place(4), place(2), place(5), place(3)});
    move.View({in[0], in[1], height, block, width, block}, {in[0], in[1], block, block, height, width});
  } else {
    move.Part(0, {place(0), place(3), place(4), place(1), place(5), place(2)});
    move.View({in[0], in[1], height, block, width, block}, {in[0], block, block, in[1], height, width});
  }
  move.Done();
}

constexpr Entry kOps[] = {
    {"", "Identity", Identity},
    {"", "Reshape", Reshape},
    {"", "Flatten", Flatten},
    {"", "Squeeze", Squeeze},
    {"", "Unsqueeze", Unsqueeze},
    {"", "Transpose", Transpose},
    {"", "DepthToSpace", DepthToSpace},
    {"", "SpaceToDepth", SpaceToDepth},
    {"", "Slice", Slice},
    {"", "Split", Split},
    {"", "Gather", Gather},
    {"", "GatherElements", GatherElements},
    {"", "GatherND", GatherNd},
    {"com.microsoft", "GatherND", GatherNd},
    {"", "Concat", Concat},
    {"", "ScatterND", Scatter},
    {"", "ScatterElements", Scatter},
    {"", "Scatter", Scatter},
    {"", "TensorScatter", Scatter},
    {"", "Expand", Expand},
    {"", "Tile", Tile},
    {"", "Pad", Pad},
    {"com.microsoft", "Pad", Pad},
    {"", "CenterCropPad", CenterCropPad},
};

}  // namespace

absl::Span<const Entry> MoveOps() { return kOps; }

}  // namespace ascend_fuse::infer
