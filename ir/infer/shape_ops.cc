// Operators that make tensors out of shapes and positions, or whose results depend on them: Shape, Range, ConstantOfShape,
// Resize, TopK ... Those that only move elements are in moves.cc.
#include <algorithm>
#include <cmath>
#include <limits>

#include "ir/infer/pick.h"
#include "ir/rounding.h"

namespace ascend_fuse::infer {
namespace {

constexpr DataType kInt64 = DataType::kInt64;

void CopyTypeAndShape(NodeContext& c) {
  c.SetType(0, c.type(0));
  if (c.in(0).has_rank) c.SetShape(0, c.in(0).shape);
}

// --- shapes as values ---

void ShapeOf(NodeContext& c) {
  c.SetType(0, kInt64);
  const Fact& in = c.in(0);
  if (!in.has_rank) {
    c.SetRank(0, 1);
    return;
  }
  const int64_t rank = in.rank();
  const int64_t start = ClampBound(c.Int("start", 0), rank);
  const int64_t end = std::max(start, ClampBound(c.Int("end", rank), rank));
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

// The integer scalar that a Cast of input i made floating; unknown where none did. TensorFlow counts positions as floats, which
// hold every count of elements that an axis has in practice, but for those of half precision.
Dim CastScalar(NodeContext& c, size_t i) {
  const Value* value = c.node().input(i);
  const Node* cast = value != nullptr ? value->producer : nullptr;
  if (cast == nullptr || !IsOp(*cast, "Cast") || cast->input(0) == nullptr) return Dim();
  const Fact& whole = c.facts().Of(cast->input(0));
  if (IsFloat(whole.type) || whole.elements == nullptr || whole.elements->integers.size() != 1) return Dim();
  return c.dims().Resolve(whole.elements->integers[0]);
}

void Range(NodeContext& c) {
  const DataType type = c.type(0);
  c.SetType(0, type);
  c.SetRank(0, 1);
  if (IsFloat(type)) {
    const auto start = c.FloatScalar(0);
    const auto limit = c.FloatScalar(1);
    const auto delta = c.FloatScalar(2);
    if (start == 0.0 && delta == 1.0 && !limit && (type == DataType::kFloat || type == DataType::kDouble)) {
      if (const Dim count = CastScalar(c, 1); count.known()) c.SetShape(0, {c.dims().Max(Dim::Of(0), count)});
      return;
    }
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
    {"", "Trilu", Trilu},
    {"", "NonZero", NonZero},
    {"", "CumSum", CumSum},
    {"", "OneHot", OneHot},
    {"", "TopK", TopK},
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
    {"com.microsoft", "Range", Range},
    {"com.microsoft", "Trilu", Trilu},
    {"com.microsoft", "Unique", Unique},
};

}  // namespace

absl::Span<const Entry> ShapeOps() { return kOps; }

}  // namespace ascend_fuse::infer
