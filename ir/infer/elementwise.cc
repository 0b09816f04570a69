// Operators whose output element depends on the input elements at the same place: arithmetic, comparison,
// logic, activations, casts. Small integer tensors are computed as Dims, small floating-point ones as
// numbers.
#include <cmath>
#include <limits>

#include "ir/infer/context.h"
#include "ir/rounding.h"

namespace ascend_fuse::infer {
namespace {

// --- element access under broadcasting
// -----------------------------------------------------------------------

// For every element of a tensor of shape `to` (numbers), the index of the element of `from` that is broadcast
// there. Empty when that is not possible.
std::vector<uint32_t> BroadcastIndices(absl::Span<const Dim> from, absl::Span<const Dim> to, int64_t count) {
  std::vector<uint32_t> indices;
  if (from.size() > to.size()) return indices;
  const size_t skip = to.size() - from.size();
  absl::InlinedVector<int64_t, 6> strides(to.size(), 0);
  int64_t stride = 1;
  for (size_t i = from.size(); i-- > 0;) {
    if (!from[i].is_number()) return indices;
    if (from[i].number() != 1 && from[i] != to[skip + i]) return indices;
    strides[skip + i] = from[i].number() == 1 ? 0 : stride;
    stride *= from[i].number();
  }
  indices.resize(static_cast<size_t>(count));
  absl::InlinedVector<int64_t, 6> at(to.size(), 0);
  int64_t index = 0;
  for (uint32_t& result : indices) {
    result = static_cast<uint32_t>(index);
    for (size_t axis = to.size(); axis-- > 0;) {
      index += strides[axis];
      if (++at[axis] < to[axis].number()) break;
      index -= strides[axis] * at[axis];
      at[axis] = 0;
    }
  }
  return indices;
}

Dim IntegerOf(double value) {
  if (!std::isfinite(value) || std::abs(value) >= 9.2e18) return Dim();
  return Dim::Of(static_cast<int64_t>(value));
}

// The integer elements of input i broadcast to the shape of output 0.
bool BroadcastIntegers(NodeContext& c, size_t i, int64_t count, Dims* result) {
  const Fact& fact = c.in(i);
  if (IsFloat(fact.type)) return false;
  if (fact.elements == nullptr) {
    if (!fact.is_splat || !(std::abs(fact.splat) <= 9e15)) return false;
    result->assign(static_cast<size_t>(count), Dim::Of(static_cast<int64_t>(fact.splat)));
    return true;
  }
  const std::vector<uint32_t> indices = BroadcastIndices(fact.shape, c.out(0).shape, count);
  if (static_cast<int64_t>(indices.size()) != count) return false;
  for (uint32_t index : indices) {
    if (index >= fact.elements->integers.size()) return false;
    result->push_back(fact.elements->integers[index]);
  }
  return true;
}

bool BroadcastFloats(NodeContext& c, size_t i, int64_t count, std::vector<double>* result) {
  const Fact& fact = c.in(i);
  if (!IsFloat(fact.type)) return false;
  if (fact.elements == nullptr) {
    if (!fact.is_splat) return false;
    result->assign(static_cast<size_t>(count), fact.splat);
    return true;
  }
  const std::vector<uint32_t> indices = BroadcastIndices(fact.shape, c.out(0).shape, count);
  if (static_cast<int64_t>(indices.size()) != count) return false;
  for (uint32_t index : indices) {
    if (index >= fact.elements->floats.size()) return false;
    result->push_back(fact.elements->floats[index]);
  }
  return true;
}

// Shape and type of the broadcast of inputs [0, count). False when some rank is not known.
bool BroadcastInputs(NodeContext& c, size_t count, DataType type) {
  c.SetType(0, type);
  for (size_t i = 0; i < count; ++i) {
    if (!c.in(i).has_rank) return false;
  }
  // The common case without a copy: one shape is the other's.
  const Fact& first = c.in(0);
  bool same = true;
  for (size_t i = 1; i < count; ++i) same = same && c.in(i).shape == first.shape;
  if (same) {
    c.SetShape(0, first.shape);
    return true;
  }
  Shape shape = c.shape(0);
  for (size_t i = 1; i < count; ++i) shape = c.Broadcast(shape, c.in(i).shape);
  c.SetShape(0, shape);
  return true;
}

// A number outside the element type would wrap around: not followed.
Dim Fit(DataType type, Dim dim) {
  if (!dim.is_number() || type == DataType::kInt64 || type == DataType::kUint64) return dim;
  const int bits = BitWidth(type);
  if (bits == 0 || bits > 32) return Dim();
  const bool is_signed = type == DataType::kInt32 || type == DataType::kInt16 || type == DataType::kInt8 ||
                         type == DataType::kInt4 || type == DataType::kInt2;
  const int64_t low = is_signed ? -(int64_t{1} << (bits - 1)) : 0;
  const int64_t high = type == DataType::kBool ? 1 : is_signed ? (int64_t{1} << (bits - 1)) - 1 : (int64_t{1} << bits) - 1;
  return dim.number() >= low && dim.number() <= high ? dim : Dim();
}

// --- arithmetic ------------------------------------------------------------------------------------------

using IntegerFunction = Dim (*)(DimTable&, Dim, Dim);
using FloatFunction = double (*)(double, double);
using UnaryFunction = double (*)(double);

DataType FirstType(NodeContext& c) {
  for (size_t i = 0; i < c.input_count(); ++i) {
    if (c.type(i) != DataType::kUndefined) return c.type(i);
  }
  return DataType::kUndefined;
}

// Folds all inputs from the left.
void Fold(NodeContext& c, IntegerFunction of_integers, FloatFunction of_floats) {
  const size_t inputs = c.input_count();
  if (inputs == 0) return;
  const DataType type = FirstType(c);
  if (!BroadcastInputs(c, inputs, type)) return;
  const std::optional<int64_t> count = c.SmallCount(0);
  bool all_splat = true;
  for (size_t i = 0; i < inputs; ++i) all_splat = all_splat && c.in(i).is_splat;
  if (IsFloat(type)) {
    if (of_floats == nullptr) return;
    if (!count.has_value() || all_splat) {
      if (!all_splat) return;
      double value = c.in(0).splat;
      for (size_t i = 1; i < inputs; ++i) value = RoundTo(type, of_floats(value, c.in(i).splat));
      c.SetSplat(0, value);
      return;
    }
    std::vector<double> values;
    if (!BroadcastFloats(c, 0, *count, &values)) return;
    for (size_t i = 1; i < inputs; ++i) {
      std::vector<double> others;
      if (!BroadcastFloats(c, i, *count, &others)) return;
      for (size_t k = 0; k < values.size(); ++k) values[k] = RoundTo(type, of_floats(values[k], others[k]));
    }
    c.SetFloats(0, values);
    return;
  }
  if (of_integers == nullptr || (!IsInteger(type) && type != DataType::kBool)) return;
  if (!count.has_value()) {
    if (!all_splat) return;
    Dim value = IntegerOf(c.in(0).splat);
    for (size_t i = 1; i < inputs; ++i) {
      value = of_integers(c.dims(), value, IntegerOf(c.in(i).splat));
    }
    value = Fit(type, value);
    if (value.is_number()) c.SetSplat(0, static_cast<double>(value.number()));
    return;
  }
  Dims values;
  if (!BroadcastIntegers(c, 0, *count, &values)) return;
  for (size_t i = 1; i < inputs; ++i) {
    Dims others;
    if (!BroadcastIntegers(c, i, *count, &others)) return;
    for (size_t k = 0; k < values.size(); ++k) {
      values[k] = Fit(type, of_integers(c.dims(), values[k], others[k]));
    }
  }
  c.SetIntegers(0, values);
}

Dim AddDims(DimTable& d, Dim a, Dim b) { return d.Add(a, b); }
Dim SubDims(DimTable& d, Dim a, Dim b) { return d.Sub(a, b); }
Dim MulDims(DimTable& d, Dim a, Dim b) {
  if (a.is(0) || b.is(0)) return Dim::Of(0);
  return d.Mul(a, b);
}
// ONNX integer division rounds toward zero.
Dim DivDims(DimTable& d, Dim a, Dim b) {
  if (a.is_number() && b.is_number()) {
    if (b.number() == 0 || (b.number() == -1 && a.number() == std::numeric_limits<int64_t>::min())) return Dim();
    return Dim::Of(a.number() / b.number());
  }
  const Dim zero = Dim::Of(0);
  if (!d.AtLeast(a, zero) || !d.AtLeast(b, zero)) return Dim();
  return d.FloorDiv(a, b);
}
Dim ModDims(DimTable& d, Dim a, Dim b) { return d.Mod(a, b); }
Dim FmodDims(DimTable& d, Dim a, Dim b) {
  const Dim zero = Dim::Of(0);
  return d.AtLeast(a, zero) && d.AtLeast(b, zero) ? d.Mod(a, b) : Dim();
}
Dim MinDims(DimTable& d, Dim a, Dim b) { return d.Min(a, b); }
Dim MaxDims(DimTable& d, Dim a, Dim b) { return d.Max(a, b); }
Dim PowDims(DimTable& d, Dim a, Dim b) {
  if (!b.is_number() || b.number() < 0 || b.number() > 8) return Dim();
  Dim result = Dim::Of(1);
  for (int64_t i = 0; i < b.number(); ++i) result = d.Mul(result, a);
  return result;
}
// Booleans are 0 and 1.
Dim AndDims(DimTable&, Dim a, Dim b) {
  if (a.is(0) || b.is(0)) return Dim::Of(0);
  return a.is(1) && b.is(1) ? Dim::Of(1) : Dim();
}
Dim OrDims(DimTable&, Dim a, Dim b) {
  if (a.is(1) || b.is(1)) return Dim::Of(1);
  return a.is(0) && b.is(0) ? Dim::Of(0) : Dim();
}
Dim XorDims(DimTable&, Dim a, Dim b) {
  return a.is_number() && b.is_number() ? Dim::Of(a.number() != b.number() ? 1 : 0) : Dim();
}

double AddFloats(double a, double b) { return a + b; }
double SubFloats(double a, double b) { return a - b; }
double MulFloats(double a, double b) { return a * b; }
double DivFloats(double a, double b) { return a / b; }
double PowFloats(double a, double b) { return std::pow(a, b); }
double MinFloats(double a, double b) { return std::isnan(a) || std::isnan(b) ? std::nan("") : std::min(a, b); }
double MaxFloats(double a, double b) { return std::isnan(a) || std::isnan(b) ? std::nan("") : std::max(a, b); }

template <IntegerFunction kIntegers, FloatFunction kFloats>
void Arithmetic(NodeContext& c) {
  Fold(c, kIntegers, kFloats);
}

void Mod(NodeContext& c) {
  const bool fmod = c.Int("fmod", 0) != 0;
  Fold(c, fmod ? FmodDims : ModDims, fmod ? static_cast<FloatFunction>(std::fmod) : nullptr);
}

void Pow(NodeContext& c) {
  const DataType type = c.type(0);
  if (type == c.type(1)) return Fold(c, PowDims, PowFloats);
  if (c.input_count() < 2 || !BroadcastInputs(c, 2, type)) return;
  // The exponent may be of another type; the result has that of the base.
  if (!IsFloat(type) || !c.in(0).is_splat || !c.in(1).is_splat) return;
  c.SetSplat(0, RoundTo(type, std::pow(c.in(0).splat, c.in(1).splat)));
}

void Mean(NodeContext& c) {
  if (c.input_count() > 0) BroadcastInputs(c, c.input_count(), FirstType(c));
}

// --- comparison ------------------------------------------------------------------------------------------

Dim EqualDims(DimTable& d, Dim a, Dim b) {
  if (d.Equal(a, b)) return Dim::Of(1);
  return d.NotEqual(a, b) ? Dim::Of(0) : Dim();
}
Dim GreaterOrEqualDims(DimTable& d, Dim a, Dim b) {
  if (!a.known() || !b.known()) return Dim();
  if (d.AtLeast(a, b)) return Dim::Of(1);
  return d.AtLeast(d.Sub(b, Dim::Of(1)), a) ? Dim::Of(0) : Dim();
}
Dim NotDim(Dim a) { return a.is_number() ? Dim::Of(a.number() == 0 ? 1 : 0) : Dim(); }
Dim LessDims(DimTable& d, Dim a, Dim b) { return NotDim(GreaterOrEqualDims(d, a, b)); }
Dim GreaterDims(DimTable& d, Dim a, Dim b) { return LessDims(d, b, a); }
Dim LessOrEqualDims(DimTable& d, Dim a, Dim b) { return GreaterOrEqualDims(d, b, a); }
double EqualFloats(double a, double b) { return a == b; }
double LessFloats(double a, double b) { return a < b; }
double GreaterFloats(double a, double b) { return a > b; }
double LessOrEqualFloats(double a, double b) { return a <= b; }
double GreaterOrEqualFloats(double a, double b) { return a >= b; }

template <IntegerFunction kIntegers, FloatFunction kFloats>
void Compare(NodeContext& c) {
  if (c.input_count() < 2 || !BroadcastInputs(c, 2, DataType::kBool)) return;
  const std::optional<int64_t> count = c.SmallCount(0);
  const bool floats = IsFloat(c.type(0)) && IsFloat(c.type(1));
  if (!count.has_value()) {
    if (!c.in(0).is_splat || !c.in(1).is_splat) return;
    c.SetSplat(0, kFloats(c.in(0).splat, c.in(1).splat));
    return;
  }
  Dims result;
  if (floats) {
    std::vector<double> a;
    std::vector<double> b;
    if (!BroadcastFloats(c, 0, *count, &a) || !BroadcastFloats(c, 1, *count, &b)) return;
    for (size_t i = 0; i < a.size(); ++i) result.push_back(Dim::Of(kFloats(a[i], b[i]) != 0 ? 1 : 0));
  } else {
    Dims a;
    Dims b;
    if (!BroadcastIntegers(c, 0, *count, &a) || !BroadcastIntegers(c, 1, *count, &b)) return;
    for (size_t i = 0; i < a.size(); ++i) result.push_back(kIntegers(c.dims(), a[i], b[i]));
  }
  c.SetIntegers(0, result);
}

// --- unary -----------------------------------------------------------------------------------------------

void SameAsInput(NodeContext& c) {
  c.SetType(0, c.type(0));
  if (c.in(0).has_rank) c.SetShape(0, c.in(0).shape);
}

template <UnaryFunction kFloat>
void Unary(NodeContext& c) {
  SameAsInput(c);
  const Fact& in = c.in(0);
  if (!IsFloat(in.type)) return;
  if (in.elements != nullptr) {
    std::vector<double> result;
    for (double element : in.elements->floats) result.push_back(RoundTo(in.type, kFloat(element)));
    c.SetFloats(0, result);
  } else if (in.is_splat) {
    c.SetSplat(0, RoundTo(in.type, kFloat(in.splat)));
  }
}

// The same for operators that integers have, too.
template <UnaryFunction kFloat, Dim (*kInteger)(DimTable&, Dim)>
void UnaryOfBoth(NodeContext& c) {
  Unary<kFloat>(c);
  const Fact& in = c.in(0);
  if (IsFloat(in.type) || in.elements == nullptr) return;
  Dims result;
  for (Dim element : in.elements->integers) result.push_back(Fit(in.type, kInteger(c.dims(), element)));
  c.SetIntegers(0, result);
}

double NegFloat(double x) { return -x; }
double AbsFloat(double x) { return std::fabs(x); }
double SignFloat(double x) { return x > 0 ? 1 : x < 0 ? -1 : x; }
double ReciprocalFloat(double x) { return 1 / x; }
double SqrtFloat(double x) { return std::sqrt(x); }
double ExpFloat(double x) { return std::exp(x); }
double LogFloat(double x) { return std::log(x); }
double FloorFloat(double x) { return std::floor(x); }
double CeilFloat(double x) { return std::ceil(x); }
double RoundFloat(double x) { return std::nearbyint(x); }
double ReluFloat(double x) { return std::isnan(x) ? x : std::max(x, 0.0); }
double TanhFloat(double x) { return std::tanh(x); }
double SinFloat(double x) { return std::sin(x); }
double CosFloat(double x) { return std::cos(x); }
Dim NegDim(DimTable& d, Dim x) { return d.Sub(Dim::Of(0), x); }
Dim AbsDim(DimTable& d, Dim x) {
  if (d.AtLeast(x, Dim::Of(0))) return x;
  return d.AtLeast(Dim::Of(0), x) ? NegDim(d, x) : Dim();
}
Dim SignDim(DimTable& d, Dim x) {
  if (x.is_number()) return Dim::Of(x.number() > 0 ? 1 : x.number() < 0 ? -1 : 0);
  return d.AtLeast(x, Dim::Of(1)) ? Dim::Of(1) : Dim();
}
Dim ReluDim(DimTable& d, Dim x) { return d.Max(x, Dim::Of(0)); }
Dim SameDim(DimTable&, Dim x) { return x; }

void Not(NodeContext& c) {
  c.SetType(0, DataType::kBool);
  if (c.in(0).has_rank) c.SetShape(0, c.in(0).shape);
  const Fact& in = c.in(0);
  if (in.elements != nullptr) {
    Dims result;
    for (Dim element : in.elements->integers) result.push_back(NotDim(element));
    c.SetIntegers(0, result);
  } else if (in.is_splat) {
    c.SetSplat(0, in.splat == 0 ? 1 : 0);
  }
}

// IsNaN, IsInf.
void Classify(NodeContext& c) {
  c.SetType(0, DataType::kBool);
  if (c.in(0).has_rank) c.SetShape(0, c.in(0).shape);
  const Fact& in = c.in(0);
  const bool nan = c.op_type() == "IsNaN";
  const bool positive = c.Int("detect_positive", 1) != 0;
  const bool negative = c.Int("detect_negative", 1) != 0;
  const auto test = [&](double x) { return nan ? std::isnan(x) : std::isinf(x) && ((x > 0 && positive) || (x < 0 && negative)); };
  if (in.elements != nullptr && IsFloat(in.type)) {
    Dims result;
    for (double element : in.elements->floats) result.push_back(Dim::Of(test(element) ? 1 : 0));
    c.SetIntegers(0, result);
  } else if (in.is_splat && IsFloat(in.type)) {
    c.SetSplat(0, test(in.splat) ? 1 : 0);
  }
}

void Clip(NodeContext& c) {
  SameAsInput(c);
  const Fact& in = c.in(0);
  if (c.opset() < 11 || in.elements == nullptr) return;
  if (IsFloat(in.type)) {
    if ((c.has(1) && !c.FloatScalar(1)) || (c.has(2) && !c.FloatScalar(2))) return;
    std::vector<double> result;
    for (double element : in.elements->floats) {
      if (c.has(1)) element = MaxFloats(element, *c.FloatScalar(1));
      if (c.has(2)) element = MinFloats(element, *c.FloatScalar(2));
      result.push_back(element);
    }
    c.SetFloats(0, result);
    return;
  }
  Dims result;
  for (Dim element : in.elements->integers) {
    if (c.has(1)) element = c.dims().Max(element, c.Scalar(1));
    if (c.has(2)) element = c.dims().Min(element, c.Scalar(2));
    result.push_back(element);
  }
  c.SetIntegers(0, result);
}

// --- casts, selection ------------------------------------------------------------------------------------

// The integers that the float numbers of `value` are, broadcast to `shape`: those of a Cast, and constant ones.
bool IntegersAsFloats(NodeContext& c, const Value& value, absl::Span<const Dim> shape, int64_t count, Dims* result) {
  const Fact& fact = c.facts().Of(&value);
  const std::vector<uint32_t> indices = BroadcastIndices(fact.shape, shape, count);
  if (!fact.has_rank || static_cast<int64_t>(indices.size()) != count) return false;
  const Node* cast = value.producer;
  const bool is_cast = cast != nullptr && IsOp(*cast, "Cast") && cast->input(0) != nullptr;
  const Fact& source = is_cast ? c.facts().Of(cast->input(0)) : fact;
  for (const uint32_t index : indices) {
    Dim element;
    if (source.elements != nullptr && !IsFloat(source.type) && index < source.elements->integers.size()) {
      element = source.elements->integers[index];
    } else if (fact.elements != nullptr && index < fact.elements->floats.size()) {
      const double number = fact.elements->floats[index];
      element = number == std::floor(number) ? IntegerOf(number) : Dim();
    } else if (fact.is_splat && fact.splat == std::floor(fact.splat)) {
      element = IntegerOf(fact.splat);
    }
    result->push_back(element);
  }
  return true;
}

// What a Cast to integers makes of a Max or Min of integers that were cast to float32: tf2onnx writes those of dims so, which
// float32 holds.
bool IntegersByWayOfFloats(NodeContext& c, DataType to) {
  const Node* node = c.node().input(0) != nullptr ? c.node().input(0)->producer : nullptr;
  const bool least = node != nullptr && IsOp(*node, "Min");
  if (node == nullptr || (!least && !IsOp(*node, "Max")) || node->input_count == 0) return false;
  if (c.type(0) != DataType::kFloat && c.type(0) != DataType::kDouble) return false;
  const std::optional<int64_t> count = c.in(0).has_rank ? NodeContext::SmallCountOf(c.in(0)) : std::nullopt;
  if (!count.has_value()) return false;
  Dims result;
  for (size_t i = 0; i < node->input_count; ++i) {
    Dims elements;
    if (node->input(i) == nullptr || !IntegersAsFloats(c, *node->input(i), c.in(0).shape, *count, &elements)) return false;
    for (size_t k = 0; k < elements.size(); ++k) {
      if (i == 0) {
        result.push_back(elements[k]);
      } else {
        result[k] = least ? c.dims().Min(result[k], elements[k]) : c.dims().Max(result[k], elements[k]);
      }
    }
  }
  for (Dim& element : result) element = Fit(to, element);
  c.SetIntegers(0, result);
  return true;
}

void CastTo(NodeContext& c, DataType to) {
  c.SetType(0, to);
  const Fact& in = c.in(0);
  if (in.has_rank) c.SetShape(0, in.shape);
  const bool to_float = IsFloat(to);
  const bool to_bool = to == DataType::kBool;
  if (!to_float && !to_bool && !IsInteger(to)) return;
  const bool from_float = IsFloat(in.type);
  if (!from_float && !IsInteger(in.type) && in.type != DataType::kBool) return;
  if (in.elements == nullptr) {
    if (!in.is_splat && IsInteger(to) && BitWidth(to) >= 32 && from_float && IntegersByWayOfFloats(c, to)) return;
    if (!in.is_splat) return;
    if (to_float) {
      c.SetSplat(0, RoundTo(to, in.splat));
    } else if (to_bool) {
      c.SetSplat(0, in.splat != 0 ? 1 : 0);
    } else {
      const Dim value = Fit(to, IntegerOf(in.splat));
      if (value.is_number()) c.SetSplat(0, static_cast<double>(value.number()));
    }
    return;
  }
  if (to_float) {
    std::vector<double> result;
    if (from_float) {
      for (double element : in.elements->floats) result.push_back(RoundTo(to, element));
    } else {
      for (Dim element : in.elements->integers) {
        const Dim resolved = c.dims().Resolve(element);
        if (!resolved.is_number()) return;
        result.push_back(RoundTo(to, static_cast<double>(resolved.number())));
      }
    }
    c.SetFloats(0, result);
    return;
  }
  Dims result;
  if (from_float) {
    for (double element : in.elements->floats) {
      result.push_back(to_bool ? Dim::Of(element != 0 ? 1 : 0) : Fit(to, IntegerOf(element)));
    }
  } else {
    for (Dim element : in.elements->integers) {
      if (to_bool) {
        if (element.is_number()) {
          element = Dim::Of(element.number() != 0 ? 1 : 0);
        } else {
          element = c.dims().AtLeast(element, Dim::Of(1)) ? Dim::Of(1) : Dim();
        }
      } else {
        element = Fit(to, element);
        if (!element.is_number() && BitWidth(to) < 32) element = Dim();
      }
      result.push_back(element);
    }
  }
  c.SetIntegers(0, result);
}

void Cast(NodeContext& c) { CastTo(c, static_cast<DataType>(c.Int("to", 0))); }

void BitCast(NodeContext& c) {  // the same number of bits an element
  c.SetType(0, static_cast<DataType>(c.Int("to", 0)));
  if (c.in(0).has_rank) c.SetShape(0, c.in(0).shape);
}

void CastLike(NodeContext& c) {
  if (c.type(1) != DataType::kUndefined) return CastTo(c, c.type(1));
  if (c.in(0).has_rank) c.SetShape(0, c.in(0).shape);
}

void Where(NodeContext& c) {
  if (c.input_count() < 3) return;
  const DataType type = c.type(1) != DataType::kUndefined ? c.type(1) : c.type(2);
  if (!BroadcastInputs(c, 3, type)) return;
  const Fact& condition = c.in(0);
  const Fact& yes = c.in(1);
  const Fact& no = c.in(2);
  if (condition.is_splat && (condition.splat != 0 ? yes : no).is_splat) {
    c.SetSplat(0, (condition.splat != 0 ? yes : no).splat);
    return;
  }
  if (yes.is_splat && no.is_splat && yes.splat == no.splat) {
    c.SetSplat(0, yes.splat);
    return;
  }
  const std::optional<int64_t> count = c.SmallCount(0);
  if (!count.has_value()) return;
  Dims conditions;
  if (!BroadcastIntegers(c, 0, *count, &conditions)) {
    conditions.assign(static_cast<size_t>(*count), Dim());
  }
  if (IsFloat(type)) {
    std::vector<double> a;
    std::vector<double> b;
    const bool has_yes = BroadcastFloats(c, 1, *count, &a);
    const bool has_no = BroadcastFloats(c, 2, *count, &b);
    std::vector<double> result;
    for (size_t i = 0; i < conditions.size(); ++i) {
      const Dim condition_here = conditions[i];
      if (condition_here.is_number() && condition_here.number() != 0 && has_yes) {
        result.push_back(a[i]);
      } else if (condition_here.is(0) && has_no) {
        result.push_back(b[i]);
      } else if (has_yes && has_no && a[i] == b[i]) {
        result.push_back(a[i]);
      } else {
        return;
      }
    }
    c.SetFloats(0, result);
    return;
  }
  Dims a;
  Dims b;
  if (!BroadcastIntegers(c, 1, *count, &a)) a.assign(static_cast<size_t>(*count), Dim());
  if (!BroadcastIntegers(c, 2, *count, &b)) b.assign(static_cast<size_t>(*count), Dim());
  Dims result;
  for (size_t i = 0; i < conditions.size(); ++i) {
    if (conditions[i].is_number()) {
      result.push_back(conditions[i].number() != 0 ? a[i] : b[i]);
    } else {
      result.push_back(c.dims().Equal(a[i], b[i]) ? a[i] : Dim());
    }
  }
  c.SetIntegers(0, result);
}

void PRelu(NodeContext& c) {
  c.SetType(0, c.type(0));
  if (c.in(0).has_rank) c.SetShape(0, c.in(0).shape);  // the slope is broadcast one way
}

void BroadcastFirstType(NodeContext& c) {
  if (c.input_count() > 0) BroadcastInputs(c, c.input_count(), FirstType(c));
}

void PassThrough(NodeContext& c) {
  SameAsInput(c);
  if (c.in(0).elements != nullptr) c.out(0).elements = c.in(0).elements;
  c.out(0).is_splat = c.in(0).is_splat;
  c.out(0).splat = c.in(0).splat;
}

void Dropout(NodeContext& c) {
  // Without training mode the output is the input.
  const Dim training = c.opset() >= 12 && c.has(2) ? c.Scalar(2) : Dim::Of(0);
  if (training.is(0)) {
    PassThrough(c);
  } else {
    SameAsInput(c);
  }
  c.SetType(1, c.opset() >= 10 ? DataType::kBool : c.type(0));
  if (c.in(0).has_rank) c.SetShape(1, c.in(0).shape);
}

void Quantize(NodeContext& c) {
  // QuantizeLinear, DequantizeLinear and the like: the shape of the input.
  if (c.in(0).has_rank) c.SetShape(0, c.in(0).shape);
  const std::string_view op = c.op_type();
  if (op == "DequantizeLinear") {
    const int64_t to = c.Int("output_dtype", 0);
    c.SetType(0, to != 0 ? static_cast<DataType>(to) : c.type(1));
  } else {
    const int64_t to = c.Int("output_dtype", 0);
    c.SetType(0, c.has(2) ? c.type(2) : to != 0 ? static_cast<DataType>(to) : DataType::kUint8);
  }
}

void DynamicQuantize(NodeContext& c) {
  c.SetType(0, DataType::kUint8);
  if (c.in(0).has_rank) c.SetShape(0, c.in(0).shape);
  c.Set(1, DataType::kFloat, {});
  c.Set(2, DataType::kUint8, {});
}

constexpr Entry kOps[] = {
    {"", "Add", Arithmetic<AddDims, AddFloats>},
    {"", "Sub", Arithmetic<SubDims, SubFloats>},
    {"", "Mul", Arithmetic<MulDims, MulFloats>},
    {"", "Div", Arithmetic<DivDims, DivFloats>},
    {"", "Min", Arithmetic<MinDims, MinFloats>},
    {"", "Max", Arithmetic<MaxDims, MaxFloats>},
    {"", "Sum", Arithmetic<AddDims, AddFloats>},
    {"", "Mod", Mod},
    {"", "Pow", Pow},
    {"", "Mean", Mean},
    {"", "And", Arithmetic<AndDims, nullptr>},
    {"", "Or", Arithmetic<OrDims, nullptr>},
    {"", "Xor", Arithmetic<XorDims, nullptr>},
    {"", "BitwiseAnd", BroadcastFirstType},
    {"", "BitwiseOr", BroadcastFirstType},
    {"", "BitwiseXor", BroadcastFirstType},
    {"", "BitShift", BroadcastFirstType},
    {"", "BitwiseNot", SameAsInput},
    {"", "Equal", Compare<EqualDims, EqualFloats>},
    {"", "Less", Compare<LessDims, LessFloats>},
    {"", "Greater", Compare<GreaterDims, GreaterFloats>},
    {"", "LessOrEqual", Compare<LessOrEqualDims, LessOrEqualFloats>},
    {"", "GreaterOrEqual", Compare<GreaterOrEqualDims, GreaterOrEqualFloats>},
    {"", "Not", Not},
    {"", "IsNaN", Classify},
    {"", "IsInf", Classify},
    {"", "Neg", UnaryOfBoth<NegFloat, NegDim>},
    {"", "Abs", UnaryOfBoth<AbsFloat, AbsDim>},
    {"", "Sign", UnaryOfBoth<SignFloat, SignDim>},
    {"", "Relu", UnaryOfBoth<ReluFloat, ReluDim>},
    {"", "Floor", UnaryOfBoth<FloorFloat, SameDim>},
    {"", "Ceil", UnaryOfBoth<CeilFloat, SameDim>},
    {"", "Round", Unary<RoundFloat>},
    {"", "Sqrt", Unary<SqrtFloat>},
    {"", "Exp", Unary<ExpFloat>},
    {"", "Log", Unary<LogFloat>},
    {"", "Reciprocal", Unary<ReciprocalFloat>},
    {"", "Tanh", Unary<TanhFloat>},
    {"", "Sin", Unary<SinFloat>},
    {"", "Cos", Unary<CosFloat>},
    {"", "Clip", Clip},
    {"", "Cast", Cast},
    {"", "CastLike", CastLike},
    {"", "Where", Where},
    {"", "PRelu", PRelu},
    {"", "Dropout", Dropout},
    {"", "QuantizeLinear", Quantize},
    {"", "DequantizeLinear", Quantize},
    {"", "DynamicQuantizeLinear", DynamicQuantize},
    {"", "Acos", SameAsInput},
    {"", "Acosh", SameAsInput},
    {"", "Asin", SameAsInput},
    {"", "Asinh", SameAsInput},
    {"", "Atan", SameAsInput},
    {"", "Atanh", SameAsInput},
    {"", "Celu", SameAsInput},
    {"", "Cosh", SameAsInput},
    {"", "Elu", SameAsInput},
    {"", "Erf", SameAsInput},
    {"", "Gelu", SameAsInput},
    {"", "HardSigmoid", SameAsInput},
    {"", "HardSwish", SameAsInput},
    {"", "LeakyRelu", SameAsInput},
    {"", "Mish", SameAsInput},
    {"", "Selu", SameAsInput},
    {"", "Shrink", SameAsInput},
    {"", "Sigmoid", SameAsInput},
    {"", "Sinh", SameAsInput},
    {"", "Softplus", SameAsInput},
    {"", "Softsign", SameAsInput},
    {"", "SwiGLU", SameAsInput},
    {"", "Swish", SameAsInput},
    {"", "Tan", SameAsInput},
    {"", "ThresholdedRelu", SameAsInput},
    {"", "BitCast", BitCast},
    {"com.microsoft", "QuantizeLinear", Quantize},
    {"com.microsoft", "DequantizeLinear", Quantize},
    {"com.microsoft", "Gelu", SameAsInput},
    {"com.microsoft", "FastGelu", SameAsInput},
    {"com.microsoft", "QuickGelu", SameAsInput},
    {"com.microsoft", "BiasGelu", SameAsInput},
};

}  // namespace

absl::Span<const Entry> ElementwiseOps() { return kOps; }

}  // namespace ascend_fuse::infer
