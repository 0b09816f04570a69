// Functions of patterns/rules/adapt/shape.rule: dims, axes, pads and indices in the spelling that ATC reads.
#include <algorithm>
#include <array>
#include <numeric>

#include "fmt/format.h"
#include "ir/movement/axis.h"
#include "ir/status_macros.h"
#include "patterns/functions/adapt.h"
#include "patterns/functions/constructs.h"
#include "patterns/functions/tensor.h"
#include "patterns/terms/node_builder.h"
#include "patterns/terms/refusal.h"

namespace ascend_fuse {
namespace adapt {

// The place of a negative axis, counted from the front.
absl::StatusOr<int64_t> Place(int64_t axis, int64_t rank) {
  const int64_t place = NormalizeAxis(axis, rank);
  if (place >= 0) return place;
  return Refuse(fmt::format("there is no axis {} of {}", axis, rank));
}

absl::StatusOr<int64_t> RankOf(const FunctionContext& context, const Term& x) {
  ASSIGN_OR_RETURN(const auto shape, ShapeOf(context, x));
  return static_cast<int64_t>(shape.size());
}

// The length of an axis as a scalar, at run time.
Term LengthOf(const Term& x, int64_t place) { return build::Gather(build::Shape(x), Term::Integer(place), 0); }

}  // namespace adapt

namespace {

using adapt::LengthOf;
using adapt::Place;
using adapt::RankOf;

// The part [first, last) of the dims that start and end of a Shape name.
absl::StatusOr<std::pair<int64_t, int64_t>> DimRange(const FunctionContext& context, const Value* x, int64_t start,
                                                     std::optional<int64_t> end) {
  ASSIGN_OR_RETURN(const auto rank, RankOf(context, Term::Of(x)));
  const int64_t first = ClampBound(start, rank);
  return std::pair(first, std::max(first, ClampBound(end.value_or(rank), rank)));
}

absl::StatusOr<Term> DimsBetween(const FunctionContext& context, const Value* x, int64_t start, std::optional<int64_t> end) {
  ASSIGN_OR_RETURN(const auto range, DimRange(context, x, start, end));
  const auto [first, last] = range;
  const Term dims = build::Shape(Term::Of(x));
  if (last == first + 1) return build::Gather(dims, build::Numbers({first}), 0);
  return build::Slice(dims, first, last, 0);
}

absl::StatusOr<Term> OneDim(const FunctionContext& context, const Value* x, int64_t start, std::optional<int64_t> end) {
  ASSIGN_OR_RETURN(const auto range, DimRange(context, x, start, end));
  if (range.second != range.first + 1) return Refuse("the shape has more than one dim");
  return LengthOf(Term::Of(x), range.first);
}

absl::StatusOr<Term> ElementCount(const FunctionContext& context, const Value* x) {
  ASSIGN_OR_RETURN(const auto rank, RankOf(context, Term::Of(x)));
  if (rank == 0) return build::Constant(DataType::kInt64, {}, 1);
  Term count = LengthOf(Term::Of(x), 0);
  for (int64_t axis = 1; axis < rank; ++axis) count = build::Op("Mul", {count, LengthOf(Term::Of(x), axis)});
  return count;
}

absl::StatusOr<std::vector<Term>> ReversedAxes(const FunctionContext& context, const Value* x) {
  ASSIGN_OR_RETURN(const auto rank, RankOf(context, Term::Of(x)));
  std::vector<Term> perm;
  for (int64_t axis = rank - 1; axis >= 0; --axis) perm.push_back(Term::Integer(axis));
  return perm;
}

absl::StatusOr<std::vector<Term>> UnitAxes(const FunctionContext& context, const Value* x, const Value* y) {
  ASSIGN_OR_RETURN(const auto shape, ShapeOf(context, Term::Of(x)));
  std::vector<Term> axes;
  for (size_t axis = 0; axis < shape.size(); ++axis) {
    if (DimOf(shape[axis]).is(1)) axes.push_back(Term::Integer(static_cast<int64_t>(axis)));
  }
  // A dim that may be 1 in some run is one that ONNX may squeeze.
  ASSIGN_OR_RETURN(const auto rank, RankOf(context, Term::Of(y)));
  if (rank + static_cast<int64_t>(axes.size()) != static_cast<int64_t>(shape.size()) || axes.empty()) {
    return Refuse("which dims are 1 is not known");
  }
  return axes;
}

// The elements of a constant, in their order.
absl::StatusOr<std::vector<int64_t>> NumbersOf(const FunctionContext& context, const Value* value) {
  const Fact& fact = context.facts->Of(value);
  std::vector<int64_t> numbers;
  if (fact.elements != nullptr) {
    for (const Dim element : fact.elements->integers) {
      if (element.is_number()) numbers.push_back(element.number());
    }
  }
  if (fact.elements == nullptr || numbers.size() != fact.elements->integers.size()) {
    return Refuse(fmt::format("{} is not constant", ValueName(*value)), "not-constant");
  }
  return numbers;
}

// Where the pads or the axes are computed, the pads are written to their places among zeros.
absl::StatusOr<Term> FullPads(const FunctionContext& context, const Value* x, const Value* pads, const Value* axes) {
  ASSIGN_OR_RETURN(const auto rank, RankOf(context, Term::Of(x)));
  const auto some = NumbersOf(context, pads);
  const auto places = NumbersOf(context, axes);
  if (!some.ok() || !places.ok()) {
    const Term length = build::Elements(DataType::kInt64, {1}, {rank});
    const Term negative = build::Op("Less", {Term::Of(axes), Term::Integer(0)});
    const Term front = build::Op("Where", {negative, build::Op("Add", {Term::Of(axes), length}), Term::Of(axes)});
    const Term zeros = build::Constant(DataType::kInt64, {2 * rank}, 0);
    const DataType type = context.facts->Of(axes).type;
    if (type != DataType::kInt64) return Refuse("the axes are not int64");
    return build::Op("ScatterElements", {zeros, build::Concat({front, build::Op("Add", {front, length})}, 0), Term::Of(pads)},
                     {{"axis", Term::Integer(0)}});
  }
  const size_t count = places->size();
  if (some->size() != 2 * count) return Refuse("there are not two pads for each axis");
  std::vector<int64_t> full(static_cast<size_t>(2 * rank), 0);
  for (size_t i = 0; i < count; ++i) {
    ASSIGN_OR_RETURN(const auto place, Place((*places)[i], rank));
    full[static_cast<size_t>(place)] = (*some)[i];
    full[static_cast<size_t>(place + rank)] = (*some)[i + count];
  }
  return build::Numbers(full);
}

absl::StatusOr<Term> AxesFromEnd(const FunctionContext& context, const Value* axes, const Value* x) {
  ASSIGN_OR_RETURN(const auto rank, RankOf(context, Term::Of(x)));
  ASSIGN_OR_RETURN(auto numbers, NumbersOf(context, axes));
  for (int64_t& axis : numbers) {
    ASSIGN_OR_RETURN(const auto place, Place(axis, rank));
    axis = place - rank;
  }
  return build::Elements(context.facts->Of(axes).type, {static_cast<int64_t>(numbers.size())}, numbers);
}

// Constant indices of which some are negative; those of element i count along the axis first + i % depth of x. `lengths`
// are those of these axes at run time, for dims that are not numbers.
absl::StatusOr<Term> FromFront(const FunctionContext& context, const Value* indices, const Term& x, int64_t first, int64_t depth,
                               const Term& lengths) {
  const Fact& fact = context.facts->Of(indices);
  if (fact.elements == nullptr || !fact.has_rank || depth < 1) return Refuse("the indices are not constant", "not-constant");
  std::vector<int64_t> dims;
  for (const Dim dim : fact.shape) dims.push_back(dim.number());
  std::vector<int64_t> numbers;
  std::vector<int64_t> below;  // 1 where the length is to be added
  bool static_lengths = true;
  for (size_t i = 0; i < fact.elements->integers.size(); ++i) {
    const Dim index = fact.elements->integers[i];
    if (!index.is_number()) return Refuse("the indices are not constant", "not-constant");
    int64_t number = index.number();
    below.push_back(number < 0 ? 1 : 0);
    if (number < 0) {
      ASSIGN_OR_RETURN(const auto length, DimAt(context, x, first + static_cast<int64_t>(i) % depth));
      static_lengths = static_lengths && length.is_number();
      if (length.is_number()) number += length.number();
      if (length.is_number() && number < 0) return Refuse("an index lies before the first element");
    }
    numbers.push_back(number);
  }
  const auto negative = std::count(below.begin(), below.end(), 1);
  if (negative == 0) return Refuse("no index is negative");
  if (static_lengths) return build::Elements(fact.type, dims, numbers);
  if (fact.type != DataType::kInt64) return Refuse("the length of the axis is not known, and the indices are not int64");
  const bool all = static_cast<size_t>(negative) == below.size();
  const Term added = all ? lengths : build::Op("Mul", {build::Elements(fact.type, dims, below), lengths});
  const Term sum = build::Op("Add", {Term::Of(indices), added});
  // That none is negative must be seen; Max takes int64 from opset 12 on.
  return context.model->OpsetVersion() < 12 ? sum : build::Op("Max", {sum, Term::Integer(0)});
}

absl::StatusOr<Term> NdIndicesFromFront(const FunctionContext& context, const Value* indices, const Value* x) {
  ASSIGN_OR_RETURN(const auto depth, DimAt(context, Term::Of(indices), -1));
  if (!depth.is_number() || depth.number() > kMostAxes) return Refuse("how many axes the indices are of is not known");
  std::vector<int64_t> axes(static_cast<size_t>(depth.number()));
  std::iota(axes.begin(), axes.end(), 0);
  const Term lengths = build::Gather(build::Shape(Term::Of(x)), build::Numbers(axes), 0);
  if (NumbersOf(context, indices).ok()) return FromFront(context, indices, Term::Of(x), 0, depth.number(), lengths);
  if (context.model->OpsetVersion() < 12) return Refuse("Max takes no int64 before opset 12", "opset-too-low");
  const Term i = Term::Of(indices);
  const Term front = build::Op("Where", {build::Op("Less", {i, Term::Integer(0)}), build::Op("Add", {i, lengths}), i});
  return build::Op("Max", {front, Term::Integer(0)});
}

// 0, 1, ... in the place of the batch dims in front of the indices of a GatherND.
absl::StatusOr<Term> BatchedIndices(const FunctionContext& context, const Value* indices, int64_t batch_dims) {
  ASSIGN_OR_RETURN(const auto shape, ShapeOf(context, Term::Of(indices)));
  const int64_t rank = static_cast<int64_t>(shape.size());
  if (batch_dims < 1 || batch_dims >= rank) return Refuse("there are fewer axes of indices than batch_dims");
  int64_t count = batch_dims;
  std::vector<int64_t> dims;
  for (int64_t axis = 0; axis + 1 < rank; ++axis) {
    const Dim dim = DimOf(shape[static_cast<size_t>(axis)]);
    dims.push_back(dim.is_number() ? dim.number() : -1);
    count = dims.back() < 0 || count < 0 || dims.back() > Facts::kMaxElements ? -1 : count * dims.back();
  }
  std::vector<Term> parts;
  if (count > 0 && count <= Facts::kMaxElements) {
    std::vector<int64_t> places;
    const int64_t rows = count / batch_dims;
    for (int64_t row = 0; row < rows; ++row) {
      int64_t below = rows;
      for (size_t axis = 0; axis < static_cast<size_t>(batch_dims); ++axis) {
        below /= dims[axis];
        places.push_back(row / below % dims[axis]);
      }
    }
    dims.push_back(batch_dims);
    parts.push_back(build::Elements(DataType::kInt64, dims, places));
  } else {
    const Term i = Term::Of(indices);
    const Term lead = build::Concat({build::Slice(build::Shape(i), 0, rank - 1, 0), build::Numbers({1})}, 0);
    for (int64_t batch = 0; batch < batch_dims; ++batch) {
      std::vector<int64_t> others;
      for (int64_t axis = 0; axis < rank; ++axis) {
        if (axis != batch) others.push_back(axis);
      }
      const Term places = build::Op("Range", {Term::Integer(0), LengthOf(i, batch), Term::Integer(1)});
      parts.push_back(build::Op("Expand", {build::Unsqueeze(places, others), lead}));
    }
  }
  parts.push_back(Term::Of(indices));
  return build::Concat(std::move(parts), rank - 1);
}

absl::StatusOr<Term> IndicesFromFront(const FunctionContext& context, const Value* indices, const Value* x, int64_t axis) {
  ASSIGN_OR_RETURN(const auto rank, RankOf(context, Term::Of(x)));
  ASSIGN_OR_RETURN(const auto place, Place(axis, rank));
  return FromFront(context, indices, Term::Of(x), place, 1, LengthOf(Term::Of(x), place));
}

absl::StatusOr<Term> FullShape(const FunctionContext& context, const Value* shape, const Value* x) {
  ASSIGN_OR_RETURN(const auto rank, RankOf(context, Term::Of(x)));
  ASSIGN_OR_RETURN(const auto length, DimAt(context, Term::Of(shape), 0));
  if (!length.is_number() || length.number() >= rank) return Refuse("the shape is not shorter than the rank");
  const std::vector<int64_t> ones(static_cast<size_t>(rank - length.number()), 1);
  return build::Concat({build::Numbers(ones), Term::Of(shape)}, 0);
}

absl::StatusOr<Term> Banded(const FunctionContext& context, const Value* x, const Term& k, int64_t upper) {
  ASSIGN_OR_RETURN(const auto rank, RankOf(context, Term::Of(x)));
  ASSIGN_OR_RETURN(const auto type, TypeOf(context, Term::Of(x)));
  if (rank < 2) return Refuse("a value that is not a matrix");
  const auto numbers = [&](int64_t axis) -> absl::StatusOr<Term> {
    ASSIGN_OR_RETURN(const auto length, DimAt(context, Term::Of(x), axis));
    const Term limit = length.is_number() ? Term::Integer(length.number()) : LengthOf(Term::Of(x), axis);
    return build::Op("Range", {Term::Integer(0), limit, Term::Integer(1)});
  };
  ASSIGN_OR_RETURN(const auto rows, numbers(rank - 2));
  ASSIGN_OR_RETURN(const auto columns, numbers(rank - 1));
  Term diagonal = build::Unsqueeze(rows, {1});
  const auto number = IntegerOf(k);
  if (k.kind != Term::Kind::kAbsent && number != 0) diagonal = build::Op("Add", {diagonal, k});
  const Term inside = build::Op(upper != 0 ? "LessOrEqual" : "GreaterOrEqual", {diagonal, columns});
  if (type == DataType::kBool) return build::Op("And", {inside, Term::Of(x)});
  return build::Op("Where", {inside, Term::Of(x), Term::Integer(0)});
}

constexpr std::array kRows = {
    Function<"dims_between (x, start, end)", DimsBetween>("The dims of x that start and end of a Shape name, [n]."),
    Function<"one_dim (x, start, end)", OneDim>("The same as a scalar; they must name one dim."),
    Function<"element_count (x)", ElementCount>("The number of elements of x, a scalar."),
    Function<"reversed_axes (x)", ReversedAxes>("The axes of x from the last to the first."),
    Function<"unit_axes (x, y)", UnitAxes>("The axes of x of length 1, where y is x without them and without no other one."),
    Function<"full_pads (x, pads, axes)", FullPads>("The pads of some axes as pads of all axes of x."),
    Function<"axes_from_end (axes, x)", AxesFromEnd>("Constant axes of x, all negative, in their order and type."),
    Function<"nd_indices_from_front (indices, x)", NdIndicesFromFront>("The indices of GatherND, none of them negative."),
    Function<"batched_indices (indices, n)", BatchedIndices>(
        "The indices of a GatherND with n batch dims as those of one without."),
    Function<"indices_from_front (indices, x, axis)", IndicesFromFront>("The same of constant indices of Gather."),
    Function<"full_shape (shape, x)", FullShape>("A shape with as many dims of 1 in front as x has more dims."),
    Function<"banded (x, k, upper)", Banded>("x [..., M, N] with 0 below (upper 1) or above the diagonal k."),
};

}  // namespace

absl::Span<const FunctionRow> AdaptShapeFunctions() { return kRows; }

}  // namespace ascend_fuse
