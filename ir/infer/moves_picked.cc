// Operators that take some of the elements: Slice, Split and the Gathers.
#include <algorithm>
#include <utility>
#include <vector>

#include "ir/infer/move.h"
#include "ir/model.h"

namespace ascend_fuse::infer {
namespace {

class Slicer {
 public:
  explicit Slicer(NodeContext& c) : c_(c), d_(c.dims()) {}

  void Run() {
    c_.SetType(0, c_.type(0));
    const Fact& in = c_.in(0);
    if (!in.has_rank) return SomeOf(c_, MovementKind::kPicks);
    const Shape original = c_.shape(0);
    Shape shape = original;
    if (!ReadParameters()) {
      c_.SetRank(0, shape.size());
      return SomeOf(c_, MovementKind::kPicks);
    }
    Sources sources = Places(shape.size());
    for (size_t k = 0; k < starts_.size(); ++k) {
      const int64_t axis = NormalizeAxis(axes_[k], c_.rank(0));
      if (axis < 0) {
        c_.SetRank(0, shape.size());
        return SomeOf(c_, MovementKind::kPicks);
      }
      const size_t a = static_cast<size_t>(axis);
      const Dim dim = original[a];
      Dim start;
      if (steps_[k] != 0 && dim.is_number() && starts_[k].is_number() && ends_[k].is_number()) {
        const SliceRange range = RangeOfSlice(starts_[k].number(), ends_[k].number(), steps_[k], dim.number());
        shape[a] = Dim::Of(range.count);
        start = Dim::Of(range.start);
      } else {
        shape[a] = SymbolicLength(k, dim);
        start = SymbolicStart(k, dim, shape[a]);
      }
      sources[a] = AxisSource::Place(static_cast<int>(axis), start, steps_[k]);
    }
    c_.SetShape(0, shape);
    MoveFirst(c_, MovementKind::kPicks, sources);
  }

 private:
  // The elements of input i; unknown ones, as many as it has, where they are not known.
  void ReadList(size_t i, Dims* list) {
    absl::Span<const Dim> elements;
    if (c_.Integers(i, &elements)) {
      list->assign(elements.begin(), elements.end());
      for (Dim& dim : *list) dim = d_.Resolve(dim);
    } else if (c_.in(i).rank() == 1 && c_.in(i).shape[0].is_number()) {
      constexpr int64_t kMostAxes = 64;
      const int64_t count = c_.in(i).shape[0].number();
      if (count >= 0 && count <= kMostAxes) list->assign(static_cast<size_t>(count), Dim());
    }
  }

  // Attributes before opset 10, then inputs. False where it is not known which axes are cut, or none is.
  bool ReadParameters() {
    bool axes_known = true;
    if (c_.opset() < 10) {
      for (int64_t value : c_.Ints("starts").value_or(std::vector<int64_t>())) starts_.push_back(Dim::Of(value));
      for (int64_t value : c_.Ints("ends").value_or(std::vector<int64_t>())) ends_.push_back(Dim::Of(value));
      if (const auto given = c_.Ints("axes"); given.has_value()) axes_ = *given;
    } else {
      ReadList(1, &starts_);
      ReadList(2, &ends_);
      if (c_.has(3)) {
        const auto given = c_.Numbers(3);
        axes_known = given.has_value();
        if (axes_known) axes_ = *given;
      }
      // 0: not known.
      if (c_.has(4)) steps_ = c_.Numbers(4).value_or(std::vector<int64_t>(starts_.size(), 0));
    }
    const size_t count = std::max(starts_.size(), ends_.size());
    if (!axes_known || count == 0) return false;
    starts_.resize(count);
    ends_.resize(count);
    if (axes_.empty()) {
      for (size_t i = 0; i < count; ++i) axes_.push_back(static_cast<int64_t>(i));
    }
    steps_.resize(count, 1);
    axes_.resize(count, -1);
    return true;
  }

  // The length of slice k of an axis of `dim` elements where not all are numbers; unknown where nothing can be said.
  Dim SymbolicLength(size_t k, Dim dim) {
    const Dim zero = Dim::Of(0);
    const int64_t step = steps_[k];
    const Dim start = starts_[k];
    const Dim end = ends_[k];
    if (step == -1 && start.is(-1) && end.is_number() && end.number() <= -kLongest) return dim;  // reversed
    if (step <= 0 || !start.known() || !end.known()) return Dim();
    // Where a bound lies in [0, dim]; unknown when its sign is not known.
    const auto place = [&](Dim at) {
      if (at.is_number() && at.number() >= kLongest) return dim;
      if (at.is_number() && at.number() <= -kLongest) return zero;
      if (d_.Add(dim, at).is(0)) return zero;  // -n of n elements, of none as well
      if (d_.AtLeast(at, zero)) return d_.Min(at, dim);
      if (d_.AtLeast(Dim::Of(-1), at)) return d_.Max(zero, d_.Add(dim, at));
      return Dim();
    };
    Dim length;
    if (start.is_number() && start.number() < 0 && start.number() > -kLongest && place(end) == dim) {
      length = d_.Min(dim, Dim::Of(-start.number()));  // the last rows
    } else {
      const Dim from = place(start);
      const Dim to = place(end);
      length = d_.Sub(to, from);
      // Both ends are clamped by the same dim, so their order is that of the bounds as given.
      const bool ordered = (d_.AtLeast(start, zero) && d_.AtLeast(end, start)) || from.is(0);
      if (!ordered) length = d_.Max(zero, length);
    }
    if (step > 1) length = d_.Sub(zero, d_.FloorDiv(d_.Sub(zero, length), Dim::Of(step)));
    return length;
  }

  // The first element of slice k; unknown where it is not proved. One after the end takes nothing, whatever is said of it.
  Dim SymbolicStart(size_t k, Dim dim, Dim length) {
    const Dim start = starts_[k];
    if (!start.known() || steps_[k] == 0) return Dim();
    if (steps_[k] < 0) {  // from the last element on
      const bool last = start.is(-1) || (start.is_number() && start.number() >= kLongest);
      return last ? d_.Sub(dim, Dim::Of(1)) : Dim();
    }
    if (start.is_number() && start.number() <= -kLongest) return Dim::Of(0);
    if (d_.Add(dim, start).is(0)) return Dim::Of(0);
    if (d_.AtLeast(start, Dim::Of(0))) return start;
    if (!d_.AtLeast(Dim::Of(-1), start)) return Dim();
    const Dim from_end = d_.Add(dim, start);
    if (from_end.known() && d_.AtLeast(from_end, Dim::Of(0))) return from_end;
    const bool to_the_end = ends_[k].is_number() && ends_[k].number() >= kLongest;
    return to_the_end && steps_[k] == 1 ? d_.Sub(dim, length) : Dim();
  }

  NodeContext& c_;
  DimTable& d_;
  Dims starts_;
  Dims ends_;
  std::vector<int64_t> axes_;
  std::vector<int64_t> steps_;
};

}  // namespace

void Slice(NodeContext& c) { Slicer(c).Run(); }

std::optional<Progression> ProgressionOf(NodeContext& c, size_t i, Dim extent) {
  auto numbers = c.Numbers(i);
  const Value* given = c.node().input(i);
  if (!numbers.has_value() && given != nullptr && given->IsConstant()) {  // more elements than facts list
    constexpr int64_t kMostPositions = int64_t{1} << 22;
    auto read = ReadIntegers(c.model(), *given->initializer, kMostPositions);
    if (read.ok()) numbers = *std::move(read);
  }
  if (!numbers.has_value() || numbers->empty()) return std::nullopt;
  std::vector<int64_t> places = *std::move(numbers);
  bool from_end = false;
  if (extent.is_number()) {
    for (int64_t& place : places) {
      place = NormalizePosition(place, extent.number());
      if (place < 0) return std::nullopt;
    }
  } else {
    from_end = places[0] < 0;
    for (const int64_t place : places) {
      if ((place < 0) != from_end) return std::nullopt;
    }
  }
  const int64_t step = places.size() > 1 ? places[1] - places[0] : 1;
  for (size_t k = 1; k < places.size(); ++k) {
    if (places[k] - places[k - 1] != step) return std::nullopt;
  }
  if (step == 0) return std::nullopt;
  const Dim start = Dim::Of(places[0]);
  return Progression{from_end ? c.dims().Add(extent, start) : start, step};
}

void Gather(NodeContext& c) {
  c.SetType(0, c.type(0));
  const Fact& data = c.in(0);
  const Fact& indices = c.in(1);
  if (!data.has_rank) return SomeOf(c, MovementKind::kPicks);
  const int64_t axis = NormalizeAxis(c.Int("axis", 0), data.rank());
  if (axis < 0 || !indices.has_rank) return SomeOf(c, MovementKind::kPicks);
  Shape shape;
  Sources sources;
  for (int64_t i = 0; i < axis; ++i) {
    sources.push_back(AxisSource::Place(static_cast<int>(i)));
    shape.push_back(data.shape[static_cast<size_t>(i)]);
  }
  const int own = static_cast<int>(axis);
  const auto picked = indices.rank() <= 1 ? ProgressionOf(c, 1, data.shape[static_cast<size_t>(axis)]) : std::nullopt;
  if (!picked.has_value()) {
    sources.push_back(AxisSource::Read(1, own));
  } else if (indices.rank() == 0) {
    sources.push_back(AxisSource::Fixed(picked->start));
  } else {
    sources.push_back(AxisSource::Place(own, picked->start, picked->step));
  }
  for (Dim dim : indices.shape) shape.push_back(dim);
  FollowAxes(data, static_cast<size_t>(axis) + 1, &sources, &shape);
  c.SetShape(0, shape);
  MoveFirst(c, MovementKind::kPicks, sources);
}

void GatherElements(NodeContext& c) {
  c.SetType(0, c.type(0));
  if (c.in(1).has_rank) c.SetShape(0, c.in(1).shape);
  const int64_t axis = NormalizeAxis(c.Int("axis", 0), c.rank(0));
  if (axis < 0 || c.rank(0) != c.rank(1)) return SomeOf(c, MovementKind::kPicks);
  Sources sources = Places(static_cast<size_t>(c.rank(0)));
  sources[static_cast<size_t>(axis)] = AxisSource::Read(1, 0);
  MoveFirst(c, MovementKind::kPicks, sources);
}

void GatherNd(NodeContext& c) {
  c.SetType(0, c.type(0));
  const Fact& data = c.in(0);
  const Fact& indices = c.in(1);
  if (!data.has_rank || !indices.has_rank || indices.shape.empty()) return SomeOf(c, MovementKind::kPicks);
  const int64_t batch = c.Int("batch_dims", 0);
  const Dim last = c.dims().Resolve(indices.shape.back());
  if (!last.is_number() || batch < 0 || last.number() < 0 || batch + last.number() > data.rank() || batch >= indices.rank()) {
    return SomeOf(c, MovementKind::kPicks);
  }
  Shape shape(indices.shape.begin(), indices.shape.end() - 1);
  Sources sources = Places(static_cast<size_t>(batch));
  for (int component = 0; component < last.number(); ++component) sources.push_back(AxisSource::Read(1, 0, component));
  // Indices [n, 1] are those of a Gather on axis 0.
  const bool of_rows = batch == 0 && last.is(1) && indices.rank() == 2;
  const auto rows = of_rows ? ProgressionOf(c, 1, data.shape[0]) : std::nullopt;
  if (rows.has_value()) sources[0] = AxisSource::Place(0, rows->start, rows->step);
  FollowAxes(data, static_cast<size_t>(batch + last.number()), &sources, &shape);
  c.SetShape(0, shape);
  MoveFirst(c, MovementKind::kPicks, sources);
}

void Split(NodeContext& c) {
  const size_t outputs = c.output_count();
  for (size_t i = 0; i < outputs; ++i) c.SetType(i, c.type(0));
  const Fact& in = c.in(0);
  if (!in.has_rank || outputs == 0) return SomeOf(c, MovementKind::kPicks);
  const int64_t axis = NormalizeAxis(c.Int("axis", 0), in.rank());
  if (axis < 0) return SomeOf(c, MovementKind::kPicks);
  DimTable& d = c.dims();
  const size_t a = static_cast<size_t>(axis);
  const Dim whole = in.shape[a];
  Dims sizes(outputs);
  absl::Span<const Dim> elements;
  if (const auto attribute = c.Ints("split"); attribute.has_value()) {
    for (size_t i = 0; i < std::min(outputs, attribute->size()); ++i) sizes[i] = Dim::Of((*attribute)[i]);
  } else if (c.has(1)) {
    if (c.Integers(1, &elements)) {
      for (size_t i = 0; i < std::min(outputs, elements.size()); ++i) sizes[i] = elements[i];
    }
  } else {
    const Dim parts = Dim::Of(static_cast<int64_t>(outputs));
    Dim each = d.ExactDiv(whole, parts);
    if (!each.known() || c.opset() >= 18) {  // the last may be smaller
      each = d.Sub(Dim::Of(0), d.FloorDiv(d.Sub(Dim::Of(0), whole), parts));
    }
    for (Dim& size : sizes) size = each;
    sizes.back() = d.Sub(whole, d.Mul(each, Dim::Of(static_cast<int64_t>(outputs) - 1)));
  }
  Dim sum = Dim::Of(0);
  std::vector<Dim> starts;
  for (Dim size : sizes) {
    starts.push_back(sum);
    sum = d.Add(sum, size);
  }
  if (sum.known()) c.Require(whole, sum);
  Sources sources = Places(in.shape.size());
  for (size_t i = 0; i < outputs; ++i) {
    Shape shape(in.shape.begin(), in.shape.end());
    shape[a] = d.Resolve(sizes[i]);
    c.SetShape(i, shape);
    if (outputs > kMostMovedParts) continue;
    sources[a] = AxisSource::Place(static_cast<int>(axis), starts[i]);
    MoveFirst(c, MovementKind::kPicks, sources, i);
  }
}

}  // namespace ascend_fuse::infer
