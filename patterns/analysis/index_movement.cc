// Index functions of operators that move elements, and of those that make them out of places: the index is rewritten.
#include <algorithm>

#include "patterns/analysis/index_function.h"
#include "patterns/terms/term.h"

namespace ascend_fuse {
namespace {

// Axes from here on are those of a node that is looked into, not of the scores.
constexpr int kInnerAxes = 4;
constexpr int64_t kEndless = 0x7fffffff;

size_t NormalAxis(int64_t axis, size_t rank) { return static_cast<size_t>(axis < 0 ? axis + static_cast<int64_t>(rank) : axis); }

}  // namespace

// The same elements in the same row-major order: a place is the number of elements before it.
Decision IndexFunctions::KeepOrder(const Node& node, size_t output, const Indices& indices) {
  const Value* source = node.input(0);
  if (source == nullptr || !FactOf(source).has_rank) return kNoDecision;
  const absl::Span<const Dim> from = FactOf(source).shape;
  const absl::Span<const Dim> to = FactOf(node.output(output)).shape;
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
  if ((!out.empty() && out[0] == to.size()) || (!in.empty() && in[0] == from.size())) return kNoDecision;
  Indices inner(from.size(), sums_.Of(0));
  const bool same = in.size() == out.size() && [&] {
    for (size_t i = 0; i < in.size(); ++i) {
      if (!dims_.Equal(from[in[i]], to[out[i]])) return false;
    }
    return true;
  }();
  if (same) {
    for (size_t i = 0; i < in.size(); ++i) inner[in[i]] = indices[out[i]];
    return At(source, inner);
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
  return At(source, inner);
}

Decision IndexFunctions::Transpose(const Node& node, size_t, const Indices& indices) {
  const auto perm = IntsAttribute(node, "perm");
  Indices inner(indices.size());
  for (size_t i = 0; i < indices.size(); ++i) {
    const size_t from = perm.has_value() && i < perm->size() ? static_cast<size_t>((*perm)[i]) : indices.size() - 1 - i;
    if (from >= inner.size()) return kNoDecision;
    inner[from] = indices[i];
  }
  return At(node.input(0), inner);
}

Decision IndexFunctions::Expand(const Node& node, size_t output, const Indices& indices) {
  return At(node.input(0), OperandIndices(FactOf(node.input(0)), FactOf(node.output(output)), indices));
}

Decision IndexFunctions::Tile(const Node& node, size_t output, const Indices& indices) {
  const Fact& in = FactOf(node.input(0));
  const Fact& out = FactOf(node.output(output));
  if (!in.has_rank || !out.has_rank || in.rank() != out.rank()) return kNoDecision;
  Indices inner;
  for (size_t axis = 0; axis < indices.size(); ++axis) {
    if (dims_.Equal(in.shape[axis], out.shape[axis])) {
      inner.push_back(indices[axis]);
    } else {
      inner.push_back(sums_.DivMod(indices[axis], in.shape[axis]).second);
    }
  }
  return At(node.input(0), inner);
}

Decision IndexFunctions::Slice(const Node& node, size_t, const Indices& indices) {
  const Fact& in = FactOf(node.input(0));
  const auto starts = ListParameter(facts_, node, "starts", 1);
  if (in.rank() != static_cast<int>(indices.size()) || !starts.has_value()) return kNoDecision;
  auto axes = IntsParameter(facts_, node, "axes", 3);
  if (!axes.has_value() && node.input(3) != nullptr) return kNoDecision;
  if (!axes.has_value()) {
    axes.emplace();
    for (size_t i = 0; i < starts->size(); ++i) axes->push_back(static_cast<int64_t>(i));
  }
  std::vector<int64_t> steps(starts->size(), 1);
  if (node.input(4) != nullptr) {
    const auto given = IntsParameter(facts_, node, "steps", 4);
    if (!given.has_value()) return kNoDecision;
    steps = *given;
  }
  if (axes->size() != starts->size() || steps.size() != starts->size()) return kNoDecision;
  Indices inner = indices;
  for (size_t i = 0; i < starts->size(); ++i) {
    const size_t axis = NormalAxis((*axes)[i], indices.size());
    Dim start = (*starts)[i];
    if (axis >= indices.size() || !start.known()) return kNoDecision;
    const Dim extent = in.shape[axis];
    if (steps[i] < 0) {  // reversed from its last element on
      const bool whole = start.is(-1) || (start.is_number() && start.number() >= kEndless);
      if (!whole || !extent.known()) return kNoDecision;
      start = dims_.Sub(extent, Dim::Of(1));
    } else if (start.is_number() && start.number() <= -kEndless) {
      start = Dim::Of(0);
    } else if (dims_.AtLeast(Dim::Of(-1), start)) {  // from the end, and not before the first one
      start = dims_.Add(extent, start);
      if (!start.known() || !dims_.AtLeast(start, Dim::Of(0))) return kNoDecision;
    } else if (!dims_.AtLeast(start, Dim::Of(0))) {
      return kNoDecision;
    }
    // A start behind the end takes nothing, so no element is asked for.
    inner[axis] = sums_.Add(sums_.Of(start), sums_.Scale(indices[axis], Dim::Of(steps[i])));
  }
  return At(node.input(0), inner);
}

Decision IndexFunctions::Split(const Node& node, size_t output, const Indices& indices) {
  const size_t axis = NormalAxis(IntAttribute(node, "axis").value_or(0), indices.size());
  if (axis >= indices.size()) return kNoDecision;
  Indices inner = indices;
  for (size_t before = 0; before < output; ++before) {
    if (FactOf(node.output(before)).rank() != static_cast<int>(indices.size())) return kNoDecision;
    inner[axis] = sums_.Add(inner[axis], sums_.Of(FactOf(node.output(before)).shape[axis]));
  }
  return At(node.input(0), inner);
}

Decision IndexFunctions::Concat(const Node& node, size_t, const Indices& indices) {
  const size_t axis = NormalAxis(IntAttribute(node, "axis").value_or(0), indices.size());
  if (axis >= indices.size()) return kNoDecision;
  std::vector<IndexSum> starts = {sums_.Of(0)};
  for (const Use& use : node.inputs()) {
    if (FactOf(use.value).rank() != static_cast<int>(indices.size())) return kNoDecision;
    starts.push_back(sums_.Add(starts.back(), sums_.Of(FactOf(use.value).shape[axis])));
  }
  if (!Complete(starts)) return kNoDecision;
  Decision decision = kNoDecision;
  bool first = true;
  for (size_t i = node.input_count; i-- > 0;) {
    // Behind this part, or before it: such a place is none of its.
    const IndexSum own = sums_.Sub(indices[axis], starts[i]);
    if (own == kNoSum || sums_.AtMost(own, -1)) continue;
    const IndexSum last = sums_.Add(sums_.Sub(indices[axis], starts[i + 1]), sums_.Of(1));  // at most 0 within
    if (sums_.AtLeast(last, 1)) continue;
    Indices inner = indices;
    inner[axis] = own;
    const Decision part = At(node.input(i), inner);
    decision = first ? part : decisions_.If(decisions_.AtMostZero(last), part, decision);
    first = false;
    if (decision == kNoDecision) return kNoDecision;
  }
  return decision;
}

Decision IndexFunctions::Gather(const Node& node, size_t, const Indices& indices) {
  const Fact& data = FactOf(node.input(0));
  const Fact& places = FactOf(node.input(1));
  if (!data.has_rank || !places.has_rank) return kNoDecision;
  const size_t axis = NormalAxis(IntAttribute(node, "axis").value_or(0), static_cast<size_t>(data.rank()));
  const auto count = static_cast<size_t>(places.rank());
  if (axis >= static_cast<size_t>(data.rank()) || axis + count > indices.size()) return kNoDecision;
  const Indices at(indices.begin() + static_cast<std::ptrdiff_t>(axis),
                   indices.begin() + static_cast<std::ptrdiff_t>(axis + count));
  Indices inner(indices.begin(), indices.begin() + static_cast<std::ptrdiff_t>(axis));
  inner.push_back(FromTheEnd(SumAt(node.input(1), at), data.shape[axis]));
  inner.insert(inner.end(), indices.begin() + static_cast<std::ptrdiff_t>(axis + count), indices.end());
  return At(node.input(0), inner);
}

Decision IndexFunctions::GatherElements(const Node& node, size_t, const Indices& indices) {
  const Fact& data = FactOf(node.input(0));
  const size_t axis = NormalAxis(IntAttribute(node, "axis").value_or(0), indices.size());
  if (data.rank() != static_cast<int>(indices.size()) || axis >= indices.size()) return kNoDecision;
  Indices inner = indices;
  inner[axis] = FromTheEnd(SumAt(node.input(1), indices), data.shape[axis]);
  return At(node.input(0), inner);
}

Decision IndexFunctions::GatherNd(const Node& node, size_t, const Indices& indices) {
  const Fact& data = FactOf(node.input(0));
  const Fact& places = FactOf(node.input(1));
  if (!data.has_rank || !places.has_rank || places.rank() < 1) return kNoDecision;
  const auto batch = static_cast<size_t>(IntAttribute(node, "batch_dims").value_or(0));
  const auto leading = static_cast<size_t>(places.rank() - 1);
  const Dim width = places.shape[leading];
  if (!width.is_number() || width.number() < 0 || leading > indices.size() || batch > leading) return kNoDecision;
  const auto components = static_cast<size_t>(width.number());
  if (batch + components + (indices.size() - leading) != static_cast<size_t>(data.rank())) return kNoDecision;
  Indices inner(indices.begin(), indices.begin() + static_cast<std::ptrdiff_t>(batch));
  Indices at(indices.begin(), indices.begin() + static_cast<std::ptrdiff_t>(leading));
  at.push_back(kNoSum);
  for (size_t component = 0; component < components; ++component) {
    at.back() = sums_.Of(static_cast<int64_t>(component));
    inner.push_back(FromTheEnd(SumAt(node.input(1), at), data.shape[batch + component]));
  }
  inner.insert(inner.end(), indices.begin() + static_cast<std::ptrdiff_t>(leading), indices.end());
  return At(node.input(0), inner);
}

// Each component of a place that is written must be one index into the updates, moved by a number of rows: then the
// update that wrote an element is known.
Decision IndexFunctions::ScatterNd(const Node& node, size_t, const Indices& indices) {
  const Fact& places = FactOf(node.input(1));
  const auto reduction = StringAttribute(node, "reduction");
  if (reduction.has_value() && *reduction != "none") return kNoDecision;
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
    const int inner_axis = kInnerAxes + static_cast<int>(node.id * 8 + axis);
    at.push_back(sums_.Position(inner_axis, places.shape[axis]));
    found[axis] = sums_.NumberOf(at.back()) == 0;
  }
  at.push_back(kNoSum);
  Decision written = decisions_.OfBool(true);
  for (size_t component = 0; component < components; ++component) {
    at.back() = sums_.Of(static_cast<int64_t>(component));
    const IndexSum place = SumAt(node.input(1), at);
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
  return decisions_.If(written, At(node.input(2), update), old);
}

Decision IndexFunctions::Pad(const Node& node, size_t output, const Indices& indices) {
  const Fact& in = FactOf(node.input(0));
  const auto mode = StringAttribute(node, "mode");
  const auto pads = ListParameter(facts_, node, "pads", 1);
  if ((mode.has_value() && *mode != "constant") || node.input(3) != nullptr || !pads.has_value()) {
    return kNoDecision;
  }
  if (in.rank() != static_cast<int>(indices.size()) || pads->size() != 2 * indices.size()) return kNoDecision;
  const DataType type = FactOf(node.output(output)).type;
  Decision fill = Number(type, FloatAttribute(node, "value").value_or(0));
  if (const Value* value = node.input(2); value != nullptr) {
    if (!FactOf(value).has_rank) return kNoDecision;
    fill = At(value, Indices(static_cast<size_t>(FactOf(value).rank()), sums_.Of(0)));
  }
  Indices inner = indices;
  Decision inside = decisions_.OfBool(true);
  for (size_t axis = 0; axis < indices.size(); ++axis) {
    inner[axis] = sums_.Sub(indices[axis], sums_.Of((*pads)[axis]));
    const IndexSum behind = sums_.Add(sums_.Sub(inner[axis], sums_.Of(in.shape[axis])), sums_.Of(1));
    if (inner[axis] == kNoSum || behind == kNoSum) return kNoDecision;
    inside = decisions_.And(inside, decisions_.AtMostZero(sums_.Scale(inner[axis], Dim::Of(-1))));
    inside = decisions_.And(inside, decisions_.AtMostZero(behind));
  }
  return decisions_.If(inside, At(node.input(0), inner), fill);
}

Decision IndexFunctions::Trilu(const Node& node, size_t output, const Indices& indices) {
  if (indices.size() < 2) return kNoDecision;
  const IndexSum diagonal = node.input(1) == nullptr ? sums_.Of(0) : ScalarOf(node.input(1));
  const IndexSum right = sums_.Sub(sums_.Sub(indices.back(), indices[indices.size() - 2]), diagonal);
  const bool upper = IntAttribute(node, "upper").value_or(1) != 0;
  const Decision kept = decisions_.AtMostZero(upper ? sums_.Scale(right, Dim::Of(-1)) : right);
  return decisions_.If(kept, At(node.input(0), indices), Number(FactOf(node.output(output)).type, 0));
}

Decision IndexFunctions::Range(const Node& node, size_t output, const Indices& indices) {
  if (indices.size() != 1) return kNoDecision;
  const Dim step = sums_.DimOf(ScalarOf(node.input(2)));
  const IndexSum sum = sums_.Add(ScalarOf(node.input(0)), sums_.Scale(indices[0], step));
  const DataType type = FactOf(node.output(output)).type;
  return IsFloat(type) ? SafeSum(type, sum) : decisions_.OfSum(sum);
}

// Of equal numbers along the axis the sum counts places.
Decision IndexFunctions::CumSum(const Node& node, size_t output, const Indices& indices) {
  const Fact& in = FactOf(node.input(0));
  const auto given = sums_.NumberOf(ScalarOf(node.input(1)));
  if (!given.has_value() || in.rank() != static_cast<int>(indices.size())) return kNoDecision;
  const size_t axis = NormalAxis(*given, indices.size());
  if (axis >= indices.size()) return kNoDecision;
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
  return IsFloat(type) ? SafeSum(type, sum) : decisions_.OfSum(sum);
}

}  // namespace ascend_fuse
