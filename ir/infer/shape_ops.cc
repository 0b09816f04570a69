// Operators that move elements or compute shapes: Shape, Reshape, Slice, Gather, Concat, Expand ... Here the
// shape programs of exporters turn into algebra.
#include <algorithm>
#include <cmath>
#include <limits>

#include "ir/infer/pick.h"

namespace ascend_fuse::infer {
namespace {

constexpr DataType kInt64 = DataType::kInt64;

void CopyTypeAndShape(NodeContext& c) {
  c.SetType(0, c.type(0));
  if (c.in(0).has_rank) c.SetShape(0, c.in(0).shape);
}

// The data of input 0 in another shape.
void CopyData(NodeContext& c) { c.CopyElements(0, c.in(0)); }

// --- shapes as values ---

void ShapeOf(NodeContext& c) {
  c.SetType(0, kInt64);
  const Fact& in = c.in(0);
  if (!in.has_rank) {
    c.SetRank(0, 1);
    return;
  }
  const int64_t rank = in.rank();
  int64_t start = c.Int("start", 0);
  int64_t end = c.Int("end", rank);
  if (start < 0) start += rank;
  if (end < 0) end += rank;
  start = std::clamp<int64_t>(start, 0, rank);
  end = std::clamp<int64_t>(end, start, rank);
  const absl::Span<const Dim> part = in.shape.subspan(static_cast<size_t>(start), static_cast<size_t>(end - start));
  c.SetShape(0, {Dim::Of(end - start)});
  c.SetIntegers(0, part);
}

void Size(NodeContext& c) {
  c.Set(0, kInt64, {});
  if (c.in(0).has_rank) c.SetIntegers(0, {c.Product(c.in(0).shape)});
}

void Constant(NodeContext& c) {
  if (const std::optional<Attribute> value = FindAttribute(c.node(), "value"); value.has_value()) {
    if (value->type == AttributeType::kTensor) c.out(0) = ConstantFact(c.model(), value->tensor, &c.facts());
    return;
  }
  if (const auto value = IntAttribute(c.node(), "value_int"); value.has_value()) {
    c.Set(0, kInt64, {});
    c.SetIntegers(0, {Dim::Of(*value)});
  } else if (const auto number = FloatAttribute(c.node(), "value_float"); number.has_value()) {
    c.Set(0, DataType::kFloat, {});
    c.SetFloats(0, {static_cast<double>(*number)});
  } else if (const auto ints = c.Ints("value_ints"); ints.has_value()) {
    c.Set(0, kInt64, {Dim::Of(static_cast<int64_t>(ints->size()))});
    Dims elements;
    for (int64_t entry : *ints) elements.push_back(Dim::Of(entry));
    c.SetIntegers(0, elements);
  } else if (const auto floats = FindAttribute(c.node(), "value_floats"); floats.has_value()) {
    c.Set(0, DataType::kFloat, {Dim::Of(static_cast<int64_t>(floats->floats.size()))});
    std::vector<double> elements(floats->floats.begin(), floats->floats.end());
    c.SetFloats(0, elements);
  } else if (StringAttribute(c.node(), "value_string").has_value()) {
    c.Set(0, DataType::kString, {});
  } else if (const auto strings = FindAttribute(c.node(), "value_strings"); strings.has_value()) {
    c.Set(0, DataType::kString, {Dim::Of(static_cast<int64_t>(strings->strings.size()))});
  }
}

// The shape that the elements of input i stand for; false if not even its rank is known.
bool ShapeFromElements(NodeContext& c, size_t i, Shape* shape) {
  absl::Span<const Dim> elements;
  if (c.Integers(i, &elements)) {
    shape->assign(elements.begin(), elements.end());
    for (Dim& dim : *shape) dim = c.dims().Resolve(dim);
    return true;
  }
  const Fact& fact = c.in(i);
  if (fact.rank() != 1) return false;
  const Dim length = c.dims().Resolve(fact.shape[0]);
  if (!length.is_number() || length.number() < 0 || length.number() > 64) return false;
  shape->assign(static_cast<size_t>(length.number()), Dim());
  return true;
}

void ConstantOfShape(NodeContext& c) {
  DataType type = DataType::kFloat;
  double value = 0;
  bool known = true;
  if (const std::optional<Attribute> attribute = FindAttribute(c.node(), "value"); attribute.has_value()) {
    const Fact fact = ConstantFact(c.model(), attribute->tensor, &c.facts());
    type = fact.type;
    known = fact.is_splat;
    value = fact.splat;
  }
  c.SetType(0, type);
  Shape shape;
  if (!ShapeFromElements(c, 0, &shape)) {
    if (known) c.SetSplat(0, value);
    return;
  }
  for (Dim& dim : shape) {
    if (dim.is_number() && dim.number() < 0) dim = Dim();
  }
  c.SetShape(0, shape);
  if (known) c.SetSplat(0, value);
}

void Range(NodeContext& c) {
  const DataType type = c.type(0);
  c.SetType(0, type);
  c.SetRank(0, 1);
  if (IsFloat(type)) {
    const auto start = c.FloatScalar(0);
    const auto limit = c.FloatScalar(1);
    const auto delta = c.FloatScalar(2);
    if (!start || !limit || !delta || *delta == 0) return;
    const double count = std::max(0.0, std::ceil((*limit - *start) / *delta));
    if (!(count < 1e15)) return;
    c.SetShape(0, {Dim::Of(static_cast<int64_t>(count))});
    if (count > static_cast<double>(Facts::kMaxElements)) return;
    std::vector<double> values;
    for (int64_t i = 0; i < static_cast<int64_t>(count); ++i) {
      values.push_back(RoundTo(type, *start + static_cast<double>(i) * *delta));
    }
    c.SetFloats(0, values);
    return;
  }
  DimTable& d = c.dims();
  const Dim start = c.Scalar(0);
  const Dim limit = c.Scalar(1);
  const Dim delta = c.Scalar(2);
  if (!start.known() || !limit.known() || !delta.is_number() || delta.number() == 0) return;
  // ceil((limit - start) / delta) = -floor((start - limit) / delta)
  const Dim steps = d.Sub(Dim::Of(0), d.FloorDiv(d.Sub(start, limit), delta));
  const Dim count = d.Max(Dim::Of(0), steps);
  if (!count.known()) return;
  c.SetShape(0, {count});
  if (!count.is_number() || count.number() > Facts::kMaxElements) return;
  Dims values;
  Dim value = start;
  for (int64_t i = 0; i < count.number(); ++i) {
    values.push_back(value);
    value = d.Add(value, delta);
  }
  c.SetIntegers(0, values);
}

// --- the same elements in another shape ---

void Reshape(NodeContext& c) {
  c.SetType(0, c.type(0));
  DimTable& d = c.dims();
  const Fact& in = c.in(0);
  Shape shape;
  if (c.opset() < 5) {
    const auto attribute = c.Ints("shape");
    if (!attribute.has_value()) return;
    for (int64_t entry : *attribute) shape.push_back(Dim::Of(entry));
  } else if (!ShapeFromElements(c, 1, &shape)) {
    return;
  }
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
  if (in.has_rank) {
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
  c.SetShape(0, shape);
  CopyData(c);
}

void Flatten(NodeContext& c) {
  c.SetType(0, c.type(0));
  c.SetRank(0, 2);
  if (!c.in(0).has_rank) return;
  const int64_t rank = c.rank(0);
  int64_t axis = c.Int("axis", 1);
  if (axis < 0) axis += rank;
  if (axis < 0 || axis > rank) return;
  const absl::Span<const Dim> in = c.in(0).shape;
  c.SetShape(0, {c.Product(in.subspan(0, static_cast<size_t>(axis))), c.Product(in.subspan(static_cast<size_t>(axis)))});
  CopyData(c);
}

void Squeeze(NodeContext& c) {
  c.SetType(0, c.type(0));
  bool given = false;
  const auto axes = c.IntsOrInput("axes", 1, &given);
  if (!c.in(0).has_rank) return;
  const Shape in = c.shape(0);
  std::vector<bool> removed(in.size(), false);
  if (given) {
    if (!axes.has_value()) {
      // The number of axes gives the rank.
      const Fact& fact = c.in(1);
      if (fact.rank() == 1 && fact.shape[0].is_number() && fact.shape[0].number() >= 0 && fact.shape[0].number() <= c.rank(0)) {
        c.SetRank(0, in.size() - static_cast<size_t>(fact.shape[0].number()));
      }
      return;
    }
    for (int64_t axis : *axes) {
      axis = NormalizeAxis(axis, c.rank(0));
      if (axis < 0) return;
      removed[static_cast<size_t>(axis)] = true;
      c.Require(in[static_cast<size_t>(axis)], Dim::Of(1));
    }
  } else {
    for (size_t i = 0; i < in.size(); ++i) {
      if (c.dims().Equal(in[i], Dim::Of(1))) {
        removed[i] = true;
      } else if (!c.dims().NotEqual(in[i], Dim::Of(1))) {
        return;  // may be 1
      }
    }
  }
  Shape shape;
  for (size_t i = 0; i < in.size(); ++i) {
    if (!removed[i]) shape.push_back(in[i]);
  }
  c.SetShape(0, shape);
  CopyData(c);
}

void Unsqueeze(NodeContext& c) {
  c.SetType(0, c.type(0));
  bool given = false;
  const auto axes = c.IntsOrInput("axes", 1, &given);
  if (!c.in(0).has_rank || !axes.has_value()) return;
  const Shape in = c.shape(0);
  const size_t rank = in.size() + axes->size();
  std::vector<bool> added(rank, false);
  for (int64_t axis : *axes) {
    axis = NormalizeAxis(axis, static_cast<int64_t>(rank));
    if (axis < 0 || added[static_cast<size_t>(axis)]) return;
    added[static_cast<size_t>(axis)] = true;
  }
  Shape shape;
  size_t next = 0;
  for (size_t i = 0; i < rank; ++i) shape.push_back(added[i] ? Dim::Of(1) : in[next++]);
  c.SetShape(0, shape);
  CopyData(c);
}

// --- elements picked by position ---

void Transpose(NodeContext& c) {
  c.SetType(0, c.type(0));
  if (!c.in(0).has_rank) {
    if (const auto perm = c.Ints("perm"); perm.has_value()) c.SetRank(0, perm->size());
    return;
  }
  const Shape in = c.shape(0);
  std::vector<int64_t> perm;
  if (const auto attribute = c.Ints("perm"); attribute.has_value()) {
    perm = *attribute;
  } else {
    for (size_t i = in.size(); i-- > 0;) perm.push_back(static_cast<int64_t>(i));
  }
  if (perm.size() != in.size()) return;
  Shape shape;
  for (int64_t axis : perm) {
    axis = NormalizeAxis(axis, c.rank(0));
    if (axis < 0) return;
    shape.push_back(in[static_cast<size_t>(axis)]);
  }
  c.SetShape(0, shape);
  if (c.in(0).elements == nullptr || !NodeContext::SmallCountOf(c.in(0)).has_value()) return Splat(c);
  const std::vector<int64_t> strides = StridesOf(in);
  std::vector<int64_t> permuted;
  for (int64_t axis : perm) permuted.push_back(strides[static_cast<size_t>(NormalizeAxis(axis, c.rank(0)))]);
  PickElements(c, Strided(shape, permuted, 0));
}

void Gather(NodeContext& c) {
  c.SetType(0, c.type(0));
  const Fact& data = c.in(0);
  const Fact& indices = c.in(1);
  if (!data.has_rank) return Splat(c);
  const int64_t axis = NormalizeAxis(c.Int("axis", 0), data.rank());
  if (axis < 0 || !indices.has_rank) return Splat(c);
  Shape shape;
  for (int64_t i = 0; i < axis; ++i) shape.push_back(data.shape[static_cast<size_t>(i)]);
  for (Dim dim : indices.shape) shape.push_back(dim);
  for (size_t i = static_cast<size_t>(axis) + 1; i < data.shape.size(); ++i) shape.push_back(data.shape[i]);
  c.SetShape(0, shape);
  if (data.elements == nullptr || !NodeContext::SmallCountOf(data).has_value()) return Splat(c);
  const auto numbers = c.Numbers(1);
  if (!numbers.has_value()) return Splat(c);
  const int64_t extent = data.shape[static_cast<size_t>(axis)].number();
  const std::vector<int64_t> strides = StridesOf(data.shape);
  const int64_t inner = strides[static_cast<size_t>(axis)];
  const int64_t picked = static_cast<int64_t>(numbers->size());
  PickElements(c, [&](int64_t k) -> int64_t {
    const int64_t within = k % inner;
    const int64_t which = (k / inner) % picked;
    const int64_t outer = k / inner / picked;
    int64_t index = (*numbers)[static_cast<size_t>(which)];
    if (index < 0) index += extent;
    if (index < 0 || index >= extent) return -1;
    return (outer * extent + index) * inner + within;
  });
}

void GatherElements(NodeContext& c) {
  c.SetType(0, c.type(0));
  if (c.in(1).has_rank) c.SetShape(0, c.in(1).shape);
  Splat(c);
}

void GatherNd(NodeContext& c) {
  c.SetType(0, c.type(0));
  const Fact& data = c.in(0);
  const Fact& indices = c.in(1);
  if (!data.has_rank || !indices.has_rank || indices.shape.empty()) return;
  const int64_t batch = c.Int("batch_dims", 0);
  const Dim last = c.dims().Resolve(indices.shape.back());
  if (!last.is_number() || batch < 0 || last.number() < 0 || batch + last.number() > data.rank()) return;
  Shape shape(indices.shape.begin(), indices.shape.end() - 1);
  for (size_t i = static_cast<size_t>(batch + last.number()); i < data.shape.size(); ++i) {
    shape.push_back(data.shape[i]);
  }
  c.SetShape(0, shape);
  Splat(c);
}

// ScatterND, ScatterElements, TensorScatter: the shape of the data.
void Scatter(NodeContext& c) {
  CopyTypeAndShape(c);
  const Fact& data = c.in(0);
  const Fact& updates = c.in(2);
  if (data.is_splat && updates.is_splat && data.splat == updates.splat && c.String("reduction", "none") == "none" &&
      c.op_type() != "TensorScatter") {
    c.SetSplat(0, data.splat);
  }
}

// --- joining and splitting ---

void Concat(NodeContext& c) {
  const size_t count = c.input_count();
  if (count == 0) return;
  int rank = -1;
  for (size_t i = 0; i < count; ++i) {
    if (c.type(i) != DataType::kUndefined) c.SetType(0, c.type(i));
    if (c.in(i).has_rank) rank = c.rank(i);
  }
  if (rank < 0) return;
  const int64_t axis = NormalizeAxis(c.Int("axis", c.opset() < 4 ? 1 : 0), rank);
  if (axis < 0) return;
  Shape shape(static_cast<size_t>(rank));
  Dim along = Dim::Of(0);
  Dim same;  // of the last inputs, and how many of them: every sum that is made is kept
  int64_t times = 0;
  const auto add = [&] {
    if (times > 0) along = c.dims().Add(along, times == 1 ? same : c.dims().Mul(same, Dim::Of(times)));
  };
  for (size_t i = 0; i < count; ++i) {
    const Fact& in = c.in(i);
    if (!in.has_rank || in.rank() != rank) {
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
  c.SetShape(0, shape);
  bool all_splat = true;
  bool elements = c.SmallCount(0).has_value();
  for (size_t i = 0; i < count; ++i) {
    all_splat = all_splat && c.in(i).is_splat && c.in(i).splat == c.in(0).splat;
    elements = elements && NodeContext::SmallCountOf(c.in(i)).has_value();
  }
  if (all_splat) return c.SetSplat(0, c.in(0).splat);
  if (!elements) return;
  int64_t outer = 1;
  for (int64_t i = 0; i < axis; ++i) outer *= shape[static_cast<size_t>(i)].number();
  const bool floats = IsFloat(c.out(0).type);
  Dims integers;
  std::vector<double> numbers;
  for (int64_t row = 0; row < outer; ++row) {
    for (size_t i = 0; i < count; ++i) {
      const Fact& in = c.in(i);
      const int64_t chunk = outer == 0 ? 0 : *NodeContext::SmallCountOf(in) / outer;
      for (int64_t k = row * chunk; k < (row + 1) * chunk; ++k) {
        const size_t index = static_cast<size_t>(k);
        if (floats) {
          if (in.elements == nullptr || index >= in.elements->floats.size()) return;
          numbers.push_back(in.elements->floats[index]);
        } else {
          // An entry that is not known leaves the others known.
          integers.push_back(in.elements != nullptr && index < in.elements->integers.size() ? in.elements->integers[index]
                                                                                            : Dim());
        }
      }
    }
  }
  if (floats) {
    c.SetFloats(0, numbers);
  } else {
    c.SetIntegers(0, integers);
  }
}

void Split(NodeContext& c) {
  const size_t outputs = c.output_count();
  for (size_t i = 0; i < outputs; ++i) c.SetType(i, c.type(0));
  const Fact& in = c.in(0);
  if (!in.has_rank || outputs == 0) return;
  const int64_t axis = NormalizeAxis(c.Int("axis", 0), in.rank());
  if (axis < 0) return;
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
  for (Dim size : sizes) sum = d.Add(sum, size);
  if (sum.known()) c.Require(whole, sum);
  int64_t start = 0;
  const std::vector<int64_t> strides = NodeContext::SmallCountOf(in).has_value() ? StridesOf(in.shape) : std::vector<int64_t>();
  for (size_t i = 0; i < outputs; ++i) {
    Shape shape(in.shape.begin(), in.shape.end());
    shape[a] = d.Resolve(sizes[i]);
    c.SetShape(i, shape);
    if (in.is_splat) c.SetSplat(i, in.splat);
    const std::optional<int64_t> count = c.SmallCount(i);
    if (in.elements == nullptr || strides.empty() || !count.has_value() || !shape[a].is_number()) continue;
    const Strided at(shape, strides, start * strides[a]);
    start += shape[a].number();
    Dims integers;
    std::vector<double> floats;
    for (int64_t k = 0; k < *count; ++k) {
      const size_t index = static_cast<size_t>(at(k));
      if (index < in.elements->integers.size()) integers.push_back(in.elements->integers[index]);
      if (index < in.elements->floats.size()) floats.push_back(in.elements->floats[index]);
    }
    c.SetIntegers(i, integers);
    c.SetFloats(i, floats);
  }
}

void Expand(NodeContext& c) {
  c.SetType(0, c.type(0));
  Shape target;
  if (!c.in(0).has_rank || !ShapeFromElements(c, 1, &target)) return Splat(c);
  for (Dim& dim : target) {
    if (dim.is_number() && dim.number() < 0) dim = Dim();
  }
  c.SetShape(0, c.Broadcast(c.in(0).shape, target));
  Splat(c);
  const std::optional<int64_t> count = c.SmallCount(0);
  if (!count.has_value() || c.in(0).elements == nullptr || !NodeContext::SmallCountOf(c.in(0))) return;
  std::vector<int64_t> strides(c.out(0).shape.size(), 0);
  const std::vector<int64_t> own = StridesOf(c.in(0).shape);
  const size_t skip = strides.size() - own.size();
  for (size_t i = 0; i < own.size(); ++i) strides[skip + i] = c.in(0).shape[i].is(1) ? 0 : own[i];
  PickElements(c, Strided(c.out(0).shape, strides, 0));
}

void Tile(NodeContext& c) {
  c.SetType(0, c.type(0));
  if (!c.in(0).has_rank) return;
  Shape repeats;
  if (!ShapeFromElements(c, 1, &repeats)) repeats.clear();
  repeats.resize(c.in(0).shape.size());
  Shape shape;
  for (size_t i = 0; i < repeats.size(); ++i) shape.push_back(c.dims().Mul(c.in(0).shape[i], repeats[i]));
  c.SetShape(0, shape);
  Splat(c);
  if (c.rank(0) == 1 && c.in(0).elements != nullptr && c.in(0).shape[0].is_number()) {
    const int64_t period = c.in(0).shape[0].number();
    if (period > 0) PickElements(c, [period](int64_t k) { return k % period; });
  }
}

// The elements of a padded vector of integers, as shapes are.
void PadVector(NodeContext& c, absl::Span<const Dim> pads) {
  const Fact& in = c.in(0);
  const std::optional<int64_t> count = c.SmallCount(0);
  absl::Span<const Dim> elements;
  if (in.rank() != 1 || pads.size() != 2 || !count.has_value() || !c.Integers(0, &elements)) return;
  if (!pads[0].is_number() || !pads[1].is_number() || c.String("mode", "constant") != "constant") return;
  const Dim fill = c.has(2) ? c.Scalar(2) : Dim::Of(static_cast<int64_t>(c.Float("value", 0)));
  Dims padded;
  for (int64_t i = -pads[0].number(); i < *count - pads[0].number(); ++i) {
    const bool inside = i >= 0 && i < static_cast<int64_t>(elements.size());
    padded.push_back(inside ? elements[static_cast<size_t>(i)] : fill);
  }
  c.SetIntegers(0, padded);
}

void Pad(NodeContext& c) {
  c.SetType(0, c.type(0));
  const Fact& in = c.in(0);
  if (!in.has_rank) return;
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
    if (!given.has_value()) return;
    axes = *given;
  } else {
    for (size_t i = 0; i < rank; ++i) axes.push_back(static_cast<int64_t>(i));
  }
  if (pads.size() != 2 * axes.size()) return;
  Shape shape(in.shape.begin(), in.shape.end());
  for (size_t i = 0; i < axes.size(); ++i) {
    const int64_t axis = NormalizeAxis(axes[i], static_cast<int64_t>(rank));
    if (axis < 0) return;
    Dim& dim = shape[static_cast<size_t>(axis)];
    dim = c.dims().Add(dim, c.dims().Add(pads[i], pads[i + axes.size()]));
  }
  c.SetShape(0, shape);
  bool nothing = true;
  for (Dim pad : pads) nothing = nothing && pad.is(0);
  if (nothing) return CopyData(c);
  PadVector(c, pads);
}

// --- the rest ---

void Trilu(NodeContext& c) {
  CopyTypeAndShape(c);
  if (c.in(0).is_splat && c.in(0).splat == 0) return c.SetSplat(0, 0);
  const Fact& in = c.in(0);
  const std::optional<int64_t> count = c.SmallCount(0);
  const Dim diagonal = c.has(1) ? c.Scalar(1) : Dim::Of(0);
  if (!count.has_value() || in.elements == nullptr || in.rank() < 2 || !diagonal.is_number()) return;
  const bool upper = c.Int("upper", 1) != 0;
  const int64_t columns = in.shape[in.shape.size() - 1].number();
  const int64_t rows = in.shape[in.shape.size() - 2].number();
  std::vector<double> floats(in.elements->floats.begin(), in.elements->floats.end());
  Dims integers(in.elements->integers.begin(), in.elements->integers.end());
  for (int64_t k = 0; k < *count; ++k) {
    const int64_t column = k % columns;
    const int64_t row = k / columns % rows;
    if (upper ? column - row >= diagonal.number() : column - row <= diagonal.number()) continue;
    if (static_cast<size_t>(k) < floats.size()) floats[static_cast<size_t>(k)] = 0;
    if (static_cast<size_t>(k) < integers.size()) integers[static_cast<size_t>(k)] = Dim::Of(0);
  }
  c.SetIntegers(0, integers);
  c.SetFloats(0, floats);
}

void NonZero(NodeContext& c) {
  c.SetType(0, kInt64);
  if (c.in(0).has_rank) {
    c.SetShape(0, {Dim::Of(std::max(c.rank(0), 1)), Dim()});
  } else {
    c.SetRank(0, 2);
  }
}

void CumSum(NodeContext& c) {
  CopyTypeAndShape(c);
  const Fact& in = c.in(0);
  if (in.rank() != 1 || in.elements == nullptr || IsFloat(in.type)) return;
  const bool exclusive = c.Int("exclusive", 0) != 0;
  if (c.Int("reverse", 0) != 0) return;
  Dims result;
  Dim sum = Dim::Of(0);
  for (Dim element : in.elements->integers) {
    const Dim next = c.dims().Add(sum, element);
    result.push_back(exclusive ? sum : next);
    sum = next;
  }
  c.SetIntegers(0, result);
}

void OneHot(NodeContext& c) {
  c.SetType(0, c.type(2));
  if (!c.in(0).has_rank) return;
  const int64_t axis = NormalizeAxis(c.Int("axis", -1), c.rank(0) + 1);
  if (axis < 0) return;
  Shape shape = c.shape(0);
  Dim depth = c.Scalar(1);
  if (const auto number = c.FloatScalar(1); number.has_value() && *number >= 0 && *number < 1e15) {
    depth = Dim::Of(static_cast<int64_t>(*number));
  }
  shape.insert(shape.begin() + static_cast<std::ptrdiff_t>(axis), depth);
  c.SetShape(0, shape);
}

void TopK(NodeContext& c) {
  c.SetType(0, c.type(0));
  c.SetType(1, kInt64);
  if (!c.in(0).has_rank) return;
  const int64_t axis = NormalizeAxis(c.Int("axis", -1), c.rank(0));
  if (axis < 0) return;
  Shape shape = c.shape(0);
  shape[static_cast<size_t>(axis)] = c.opset() < 10 ? Dim::Of(c.Int("k", 0)) : c.Scalar(1);
  if (!shape[static_cast<size_t>(axis)].known()) shape[static_cast<size_t>(axis)] = c.Fresh(0, static_cast<size_t>(axis));
  c.SetShape(0, shape);
  c.SetShape(1, shape);
}

void DepthToSpace(NodeContext& c) {
  c.SetType(0, c.type(0));
  if (c.rank(0) != 4) return;
  DimTable& d = c.dims();
  const Dim block = Dim::Of(c.Int("blocksize", 1));
  const Dim square = d.Mul(block, block);
  const Shape in = c.shape(0);
  if (c.op_type() == "DepthToSpace") {
    c.SetShape(0, {in[0], d.FloorDiv(in[1], square), d.Mul(in[2], block), d.Mul(in[3], block)});
  } else {
    c.SetShape(0, {in[0], d.Mul(in[1], square), d.FloorDiv(in[2], block), d.FloorDiv(in[3], block)});
  }
}

void EyeLike(NodeContext& c) {
  const int64_t type = c.Int("dtype", 0);
  c.SetType(0, type != 0 ? static_cast<DataType>(type) : c.type(0));
  if (c.in(0).has_rank) c.SetShape(0, c.in(0).shape);
}

void RandomLike(NodeContext& c) { EyeLike(c); }

void Random(NodeContext& c) {
  c.SetType(0, static_cast<DataType>(c.Int("dtype", 1)));
  const auto shape = c.Ints("shape");
  if (!shape.has_value()) return;
  Shape dims;
  for (int64_t dim : *shape) dims.push_back(Dim::Of(dim));
  c.SetShape(0, dims);
}

void Multinomial(NodeContext& c) {  // [batch, classes] -> [batch, samples]
  c.SetType(0, static_cast<DataType>(c.Int("dtype", 6)));
  c.SetShape(0, {c.rank(0) == 2 ? c.in(0).shape[0] : Dim(), Dim::Of(c.Int("sample_size", 1))});
}

void Resize(NodeContext& c) {
  c.SetType(0, c.type(0));
  const Fact& in = c.in(0);
  if (!in.has_rank) return;
  const size_t rank = in.shape.size();
  c.SetRank(0, rank);
  const bool old = c.op_type() == "Upsample" || c.opset() < 11;
  const size_t scales_at = old ? 1 : 2;
  Shape sizes;
  std::vector<int64_t> axes;
  if (const auto given = c.Ints("axes"); given.has_value()) {
    axes = *given;
  } else {
    for (size_t i = 0; i < rank; ++i) axes.push_back(static_cast<int64_t>(i));
  }
  Shape shape(in.shape.begin(), in.shape.end());
  if (!old && c.has(3) && ShapeFromElements(c, 3, &sizes) && sizes.size() == axes.size()) {
    const std::string_view policy = c.String("keep_aspect_ratio_policy", "stretch");
    if (policy != "stretch") {  // one scale for all: the smallest or the largest that the sizes ask for
      double scale = 0;
      for (size_t i = 0; i < axes.size(); ++i) {
        const int64_t axis = NormalizeAxis(axes[i], static_cast<int64_t>(rank));
        if (axis < 0) return;
        const Dim from = shape[static_cast<size_t>(axis)];
        if (!from.is_number() || from.number() <= 0 || !sizes[i].is_number()) scale = std::nan("");
        const double own =
            std::isnan(scale) ? scale : static_cast<double>(sizes[i].number()) / static_cast<double>(from.number());
        if (i == 0 || std::isnan(own)) {
          scale = own;
        } else {
          scale = policy == "not_larger" ? std::min(scale, own) : std::max(scale, own);
        }
        if (std::isnan(scale)) break;
      }
      for (size_t i = 0; i < axes.size(); ++i) {
        const int64_t axis = NormalizeAxis(axes[i], static_cast<int64_t>(rank));
        if (axis < 0) return;
        Dim& dim = shape[static_cast<size_t>(axis)];
        const double size = std::isnan(scale) ? -1 : std::floor(scale * static_cast<double>(dim.number()) + 0.5);
        dim = size >= 0 && size < 1e15 ? Dim::Of(static_cast<int64_t>(size)) : Dim();
      }
      c.SetShape(0, shape);
      return;
    }
    for (size_t i = 0; i < axes.size(); ++i) {
      const int64_t axis = NormalizeAxis(axes[i], static_cast<int64_t>(rank));
      if (axis < 0) return;
      shape[static_cast<size_t>(axis)] = sizes[i];
    }
    c.SetShape(0, shape);
    return;
  }
  const Fact& scales = c.in(scales_at);
  if (scales.elements == nullptr || scales.elements->floats.size() != axes.size()) return;
  for (size_t i = 0; i < axes.size(); ++i) {
    const int64_t axis = NormalizeAxis(axes[i], static_cast<int64_t>(rank));
    if (axis < 0) return;
    const double scale = scales.elements->floats[i];
    Dim& dim = shape[static_cast<size_t>(axis)];
    if (scale == std::floor(scale) && scale >= 1 && scale < 1e6) {
      dim = c.dims().Mul(dim, Dim::Of(static_cast<int64_t>(scale)));
    } else if (dim.is_number()) {
      // Computed in float32 by the runtimes.
      const double size = std::floor(static_cast<float>(dim.number()) * static_cast<float>(scale));
      dim = size >= 0 && size < 1e15 ? Dim::Of(static_cast<int64_t>(size)) : Dim();
    } else {
      dim = Dim();
    }
  }
  c.SetShape(0, shape);
}

void Compress(NodeContext& c) {
  c.SetType(0, c.type(0));
  if (!FindAttribute(c.node(), "axis").has_value()) return c.SetRank(0, 1);
  if (!c.in(0).has_rank) return;
  const int64_t axis = NormalizeAxis(c.Int("axis", 0), c.rank(0));
  if (axis < 0) return;
  Shape shape = c.shape(0);
  shape[static_cast<size_t>(axis)] = Dim();
  c.SetShape(0, shape);
}

void Unique(NodeContext& c) {  // values, then the places they were seen, inverse places, counts
  c.SetType(0, c.type(0));
  for (size_t i = 1; i < c.output_count(); ++i) {
    c.SetType(i, kInt64);
    c.SetRank(i, 1);
  }
  if (!FindAttribute(c.node(), "axis").has_value()) {
    c.SetRank(0, 1);
    if (c.in(0).has_rank) c.SetShape(2, {c.Product(c.in(0).shape)});
    return;
  }
  const int64_t axis = NormalizeAxis(c.Int("axis", 0), c.rank(0));
  if (!c.in(0).has_rank || axis < 0) return;
  Shape shape = c.shape(0);
  c.SetShape(2, {shape[static_cast<size_t>(axis)]});
  shape[static_cast<size_t>(axis)] = Dim();
  c.SetShape(0, shape);
}

constexpr Entry kOps[] = {
    {"", "Shape", ShapeOf},
    {"", "Size", Size},
    {"", "Constant", Constant},
    {"", "ConstantOfShape", ConstantOfShape},
    {"", "Range", Range},
    {"", "Reshape", Reshape},
    {"", "Flatten", Flatten},
    {"", "Squeeze", Squeeze},
    {"", "Unsqueeze", Unsqueeze},
    {"", "Transpose", Transpose},
    {"", "Gather", Gather},
    {"", "GatherElements", GatherElements},
    {"", "GatherND", GatherNd},
    {"", "ScatterND", Scatter},
    {"", "ScatterElements", Scatter},
    {"", "Scatter", Scatter},
    {"", "TensorScatter", Scatter},
    {"", "Concat", Concat},
    {"", "Split", Split},
    {"", "Expand", Expand},
    {"", "Tile", Tile},
    {"", "Pad", Pad},
    {"", "Trilu", Trilu},
    {"", "NonZero", NonZero},
    {"", "CumSum", CumSum},
    {"", "OneHot", OneHot},
    {"", "TopK", TopK},
    {"", "DepthToSpace", DepthToSpace},
    {"", "SpaceToDepth", DepthToSpace},
    {"", "EyeLike", EyeLike},
    {"", "RandomNormalLike", RandomLike},
    {"", "RandomUniformLike", RandomLike},
    {"", "Bernoulli", RandomLike},
    {"", "RandomNormal", Random},
    {"", "RandomUniform", Random},
    {"", "Resize", Resize},
    {"", "Upsample", Resize},
    {"", "Compress", Compress},
    {"", "Unique", Unique},
    {"", "ReverseSequence", CopyTypeAndShape},
    {"", "CumProd", CopyTypeAndShape},
    {"", "Multinomial", Multinomial},
    {"com.microsoft", "GatherND", GatherNd},
    {"com.microsoft", "Pad", Pad},
    {"com.microsoft", "Range", Range},
    {"com.microsoft", "Trilu", Trilu},
    {"com.microsoft", "Unique", Unique},
};

}  // namespace

absl::Span<const Entry> ShapeOps() { return kOps; }

}  // namespace ascend_fuse::infer
