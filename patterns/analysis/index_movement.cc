// Index functions of what moves elements, read from its movement, and of operators that make elements out of places: the index
// is rewritten.
#include <algorithm>

#include "ir/movement/axis.h"
#include "ir/movement/movement.h"
#include "patterns/analysis/index_function.h"
#include "patterns/terms/term.h"

namespace ascend_fuse {
namespace {

// Axes from here on are those of a node that is looked into, not of the scores.
constexpr int kInnerAxes = 4;

}  // namespace

// The same element in the same row-major order: a place is the number of elements before it. No indices where dims are not known.
IndexFunctions::Indices IndexFunctions::Regroup(absl::Span<const Dim> to, absl::Span<const Dim> from, const Indices& indices) {
  const auto wide = [&](absl::Span<const Dim> shape) {
    std::vector<size_t> axes;
    for (size_t axis = 0; axis < shape.size(); ++axis) {
      if (!shape[axis].known()) return std::vector<size_t>(1, shape.size());
      if (!dims_.Equal(shape[axis], Dim::Of(1))) axes.push_back(axis);
    }
    return axes;
  };
  const std::vector<size_t> out = wide(to);
  const std::vector<size_t> in = wide(from);
  if ((!out.empty() && out[0] == to.size()) || (!in.empty() && in[0] == from.size())) return {kNoSum};
  Indices inner(from.size(), sums_.Of(0));
  const bool same = std::equal(in.begin(), in.end(), out.begin(), out.end(),
                               [&](size_t own, size_t other) { return dims_.Equal(from[own], to[other]); });
  if (same) {
    for (size_t i = 0; i < in.size(); ++i) inner[in[i]] = indices[out[i]];
    return inner;
  }
  IndexSum place = sums_.Of(0);
  for (size_t axis : out) place = sums_.Add(sums_.Scale(place, to[axis]), indices[axis]);
  for (size_t i = in.size(); i-- > 0;) {
    if (i == 0) {
      inner[in[i]] = place;
      break;
    }
    const auto [quotient, rest] = sums_.DivMod(place, from[in[i]]);
    inner[in[i]] = rest;
    place = quotient;
  }
  return inner;
}

// The element that a node which moves elements has at a place.
Decision IndexFunctions::Move(const Movement& movement, const Node& node, size_t output, const Indices& indices) {
  const Fact& result = FactOf(node.output(output));
  if (movement.kind == MovementKind::kKeepsOrder) {
    const Fact& from = FactOf(node.input(0));
    return from.has_rank ? At(node.input(0), Regroup(result.shape, from.shape, indices)) : kNoDecision;
  }
  const Indices places = movement.places.empty() ? indices : Regroup(result.shape, movement.places, indices);
  if (!Complete(places)) return kNoDecision;
  switch (movement.kind) {
    case MovementKind::kJoins:
      return Joined(movement, node, places);
    case MovementKind::kPads:
      return Padded(movement, node, output, places);
    case MovementKind::kWrites:
      return Written(movement, node, places);
    default:
      return movement.parts.size() == 1 ? AtPart(movement.parts[0], node, output, places) : kNoDecision;
  }
}

// The element of one operand that stands at these places, which are counted in the windows of the part.
Decision IndexFunctions::AtPart(const MovedPart& part, const Node& node, size_t output, const Indices& places) {
  const Fact& operand = FactOf(node.input(part.operand));
  if (!operand.has_rank || !part.known) return kNoDecision;
  const absl::Span<const Dim> dims = part.viewed() ? part.view : operand.shape;
  if (dims.size() != part.axes.size()) return kNoDecision;
  Indices inner;
  for (size_t axis = 0; axis < dims.size(); ++axis) {
    inner.push_back(SourceIndex(part.axes[axis], dims[axis], node, output, places));
    if (inner.back() == kNoSum) return kNoDecision;
  }
  return At(node.input(part.operand), part.viewed() ? Regroup(dims, operand.shape, inner) : inner);
}

IndexSum IndexFunctions::SourceIndex(const AxisSource& source, Dim extent, const Node& node, size_t output,
                                     const Indices& places) {
  const auto at = static_cast<size_t>(source.axis);
  if (at >= places.size() && source.kind != AxisSource::Kind::kFixed && source.kind != AxisSource::Kind::kRead) return kNoSum;
  switch (source.kind) {
    case AxisSource::Kind::kPlace:
      if (source.step == 1 && source.start.is(0)) return places[at];
      if (!source.start.known() || source.step == 0) return kNoSum;
      return sums_.Add(sums_.Of(source.start), sums_.Scale(places[at], Dim::Of(source.step)));
    case AxisSource::Kind::kFixed:
      return sums_.Of(source.start);
    case AxisSource::Kind::kBroadcast:
      return BroadcastIndex(places[at], extent, FactOf(node.output(output)).shape[at]);
    case AxisSource::Kind::kWrapped:
      return sums_.DivMod(places[at], extent).second;
    case AxisSource::Kind::kRead:
      break;
  }
  const Fact& table = FactOf(node.input(source.operand));
  const size_t read = static_cast<size_t>(std::max(table.rank(), 0)) - (source.component >= 0 ? 1 : 0);
  if (!table.has_rank || at + read > places.size()) return kNoSum;
  Indices place(places.begin() + source.axis, places.begin() + source.axis + static_cast<std::ptrdiff_t>(read));
  if (source.component >= 0) place.push_back(sums_.Of(source.component));
  return FromTheEnd(SumAt(node.input(source.operand), place), extent);
}

Decision IndexFunctions::Joined(const Movement& movement, const Node& node, const Indices& places) {
  Decision decision = kNoDecision;
  bool first = true;
  for (size_t i = movement.parts.size(); i-- > 0;) {
    const MovedPart& part = movement.parts[i];
    if (!part.known) return kNoDecision;
    const PlaceWindow& window = part.windows[0];
    // Behind this part, or before it: the place is not in it.
    const IndexSum own = sums_.Sub(places[static_cast<size_t>(window.axis)], sums_.Of(window.begin));
    if (own == kNoSum) return kNoDecision;
    if (sums_.AtMost(own, -1)) continue;
    const IndexSum last = sums_.Add(sums_.Sub(own, sums_.Of(window.count)), sums_.Of(1));  // at most 0 within
    if (last == kNoSum) return kNoDecision;
    if (sums_.AtLeast(last, 1)) continue;
    Indices inner = places;
    inner[static_cast<size_t>(window.axis)] = own;
    const Decision element = AtPart(part, node, 0, inner);
    decision = first ? element : decisions_.If(decisions_.AtMostZero(last), element, decision);
    first = false;
    if (decision == kNoDecision) return kNoDecision;
  }
  return decision;
}

// Whether places are those of the windows, which then are counted in them. kNoDecision where that is not known.
Decision IndexFunctions::Inside(const MovedPart& part, Indices* places) {
  Decision inside = decisions_.OfBool(true);
  for (const PlaceWindow& window : part.windows) {
    IndexSum& place = (*places)[static_cast<size_t>(window.axis)];
    if (window.step != 1) return kNoDecision;
    place = sums_.Sub(place, sums_.Of(window.begin));
    const IndexSum behind = sums_.Add(sums_.Sub(place, sums_.Of(window.count)), sums_.Of(1));
    if (place == kNoSum || behind == kNoSum) return kNoDecision;
    inside = decisions_.And(inside, decisions_.AtMostZero(sums_.Scale(place, Dim::Of(-1))));
    inside = decisions_.And(inside, decisions_.AtMostZero(behind));
  }
  return inside;
}

Decision IndexFunctions::Padded(const Movement& movement, const Node& node, size_t output, const Indices& places) {
  Decision fill = leaves_.Number(FactOf(node.output(output)).type, movement.fill);
  if (movement.fill_operand != 0) {
    const Value* value = node.input(movement.fill_operand);
    if (!FactOf(value).has_rank) return kNoDecision;
    fill = At(value, Indices(static_cast<size_t>(FactOf(value).rank()), sums_.Of(0)));
  }
  Indices inner = places;
  const Decision inside = movement.parts[0].known ? Inside(movement.parts[0], &inner) : kNoDecision;
  if (inside == kNoDecision) return kNoDecision;
  return decisions_.If(inside, AtPart(movement.parts[0], node, output, inner), fill);
}

// Rows that are one after another, or that stand where an operand says.
Decision IndexFunctions::Written(const Movement& movement, const Node& node, const Indices& places) {
  const MovedPart& updates = movement.parts.back();
  if (!updates.known || updates.windows[0].step != 1) {
    return updates.placed_by != 0 ? WrittenWhereSaid(updates, node, places) : kNoDecision;
  }
  Indices inner = places;
  const Decision inside = Inside(updates, &inner);
  const Decision old = At(node.input(0), places);
  return decisions_.If(inside, AtPart(updates, node, 0, inner), old);
}

// Each component of a place that is written must be one index into the updates, moved by a number of rows: then the
// update that wrote an element is known.
Decision IndexFunctions::WrittenWhereSaid(const MovedPart& updates, const Node& node, const Indices& indices) {
  const Value* said = node.input(updates.placed_by);
  const Fact& places = FactOf(said);
  if (!places.has_rank || places.rank() < 1) return kNoDecision;
  const auto leading = static_cast<size_t>(places.rank() - 1);
  const Dim width = places.shape[leading];
  if (!width.is_number() || width.number() < 0 || width.number() > static_cast<int64_t>(indices.size())) return kNoDecision;
  const auto components = static_cast<size_t>(width.number());
  Indices at;
  Indices update(leading, sums_.Of(0));
  std::vector<bool> found(leading, false);
  for (size_t axis = 0; axis < leading; ++axis) {
    // A number that no other node has.
    const int inner_axis = kInnerAxes + static_cast<int>(size_t{node.id} * 8 + axis);
    at.push_back(sums_.Position(inner_axis, places.shape[axis]));
    found[axis] = sums_.NumberOf(at.back()) == 0;
  }
  at.push_back(kNoSum);
  Decision written = decisions_.OfBool(true);
  for (size_t component = 0; component < components; ++component) {
    at.back() = sums_.Of(static_cast<int64_t>(component));
    const IndexSum place = SumAt(said, at);
    if (place == kNoSum || !sums_.AtLeast(place, 0)) return kNoDecision;
    IndexSum row = indices[component];
    IndexSum rest = place;
    for (size_t axis = 0; axis < leading; ++axis) {
      const IndexSum without = sums_.Sub(place, at[axis]);
      if (found[axis] || without == kNoSum || !sums_.DimOf(without).known()) continue;
      found[axis] = true;
      rest = without;
      row = sums_.Sub(indices[component], without);
      update[axis] = row;
      const IndexSum behind = sums_.Add(sums_.Sub(row, sums_.Of(places.shape[axis])), sums_.Of(1));
      written = decisions_.And(written, decisions_.AtMostZero(sums_.Scale(row, Dim::Of(-1))));
      written = decisions_.And(written, decisions_.AtMostZero(behind));
      break;
    }
    if (rest != place) continue;
    if (!sums_.DimOf(place).known()) return kNoDecision;
    written = decisions_.And(written, decisions_.IsZero(sums_.Sub(row, place)));
  }
  if (std::find(found.begin(), found.end(), false) != found.end()) return kNoDecision;
  update.insert(update.end(), indices.begin() + static_cast<std::ptrdiff_t>(components), indices.end());
  const Decision old = At(node.input(0), indices);
  return decisions_.If(written, At(node.input(updates.operand), update), old);
}

Decision IndexFunctions::Trilu(const Node& node, size_t output, const Indices& indices) {
  if (indices.size() < 2) return kNoDecision;
  const IndexSum diagonal = node.input(1) == nullptr ? sums_.Of(0) : ScalarOf(node.input(1));
  const IndexSum right = sums_.Sub(sums_.Sub(indices.back(), indices[indices.size() - 2]), diagonal);
  const bool upper = IntAttribute(node, "upper").value_or(1) != 0;
  const Decision kept = decisions_.AtMostZero(upper ? sums_.Scale(right, Dim::Of(-1)) : right);
  return decisions_.If(kept, At(node.input(0), indices), leaves_.Number(FactOf(node.output(output)).type, 0));
}

Decision IndexFunctions::Range(const Node& node, size_t output, const Indices& indices) {
  if (indices.size() != 1) return kNoDecision;
  const Dim step = sums_.DimOf(ScalarOf(node.input(2)));
  const IndexSum sum = sums_.Add(ScalarOf(node.input(0)), sums_.Scale(indices[0], step));
  const DataType type = FactOf(node.output(output)).type;
  return IsFloat(type) ? leaves_.SafeSum(type, sum) : decisions_.OfSum(sum);
}

// Of equal numbers along the axis the sum counts places.
Decision IndexFunctions::CumSum(const Node& node, size_t output, const Indices& indices) {
  const Fact& in = FactOf(node.input(0));
  const auto given = sums_.NumberOf(ScalarOf(node.input(1)));
  if (!given.has_value() || in.rank() != static_cast<int>(indices.size())) return kNoDecision;
  const int64_t along = NormalizeAxis(*given, in.rank());
  if (along < 0) return kNoDecision;
  const auto axis = static_cast<size_t>(along);
  Indices any = indices;
  any[axis] = sums_.Position(kInnerAxes + static_cast<int>(node.id * 8), in.shape[axis]);
  const auto each = sums_.NumberOf(SumAt(node.input(0), any));
  if (!each.has_value()) return kNoDecision;
  const int64_t own = IntAttribute(node, "exclusive").value_or(0) != 0 ? 0 : 1;
  IndexSum count = sums_.Add(indices[axis], sums_.Of(own));
  if (IntAttribute(node, "reverse").value_or(0) != 0) {
    count = sums_.Sub(sums_.Of(dims_.Add(in.shape[axis], Dim::Of(own - 1))), indices[axis]);
  }
  const IndexSum sum = sums_.Scale(count, Dim::Of(*each));
  const DataType type = FactOf(node.output(output)).type;
  return IsFloat(type) ? leaves_.SafeSum(type, sum) : decisions_.OfSum(sum);
}

}  // namespace ascend_fuse
