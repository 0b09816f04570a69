// Functions of patterns/rules/adapt/math.rule: places, axes and conditions of operators that compute.
#include <algorithm>
#include <array>
#include <numeric>
#include <vector>

#include "fmt/format.h"
#include "ir/infer/integer_bounds.h"
#include "ir/status_macros.h"
#include "patterns/functions/adapt.h"
#include "patterns/functions/constructs.h"
#include "patterns/functions/tensor.h"
#include "patterns/terms/node_builder.h"
#include "patterns/terms/refusal.h"

namespace ascend_fuse {
namespace {

using adapt::LengthOf;
using adapt::Place;
using adapt::RankOf;

absl::StatusOr<std::vector<Term>> AllAxes(const FunctionContext& context, const Value* x) {
  ASSIGN_OR_RETURN(const auto rank, RankOf(context, Term::Of(x)));
  if (rank == 0) return Refuse("a scalar has no axes");
  std::vector<Term> axes;
  for (int64_t axis = 0; axis < rank; ++axis) axes.push_back(Term::Integer(axis));
  return axes;
}

// The length of an axis where it is known, else a node.
absl::StatusOr<Term> KnownLength(const FunctionContext& context, const Value* x, int64_t axis) {
  ASSIGN_OR_RETURN(const auto rank, RankOf(context, Term::Of(x)));
  ASSIGN_OR_RETURN(const auto place, Place(axis, rank));
  ASSIGN_OR_RETURN(const auto length, DimAt(context, Term::Of(x), place));
  return length.is_number() ? Term::Integer(length.number()) : LengthOf(Term::Of(x), place);
}

absl::StatusOr<Term> LastPlace(const FunctionContext& context, const Value* x, int64_t axis) {
  ASSIGN_OR_RETURN(const auto length, KnownLength(context, x, axis));
  const auto number = IntegerOf(length);
  if (number.has_value()) return build::Elements(DataType::kInt64, {}, {*number - 1});
  return build::Op("Sub", {length, Term::Integer(1)});
}

absl::StatusOr<Term> PlacesAlong(const FunctionContext& context, const Value* x, int64_t axis) {
  ASSIGN_OR_RETURN(const auto length, KnownLength(context, x, axis));
  ASSIGN_OR_RETURN(const auto rank, RankOf(context, Term::Of(x)));
  ASSIGN_OR_RETURN(const auto place, Place(axis, rank));
  const Term places = build::Op("Range", {Term::Integer(0), length, Term::Integer(1)});
  std::vector<int64_t> behind(static_cast<size_t>(rank - 1 - place));
  std::iota(behind.begin(), behind.end(), 1);
  return behind.empty() ? places : build::Unsqueeze(places, behind);
}

Term Turned(const Value* x, int64_t axis) { return build::Slice(Term::Of(x), -1, INT64_MIN, axis, -1); }

absl::StatusOr<std::vector<Term>> AxesButChannels(const FunctionContext& context, const Value* x) {
  ASSIGN_OR_RETURN(const auto rank, RankOf(context, Term::Of(x)));
  if (rank < 2) return Refuse("data without channels");
  std::vector<Term> axes = {Term::Integer(0)};
  for (int64_t axis = 2; axis < rank; ++axis) axes.push_back(Term::Integer(axis));
  return axes;
}

absl::StatusOr<Term> BatchColumn(const FunctionContext& context, const Term& n, const Value* x) {
  ASSIGN_OR_RETURN(const auto rank, RankOf(context, Term::Of(x)));
  std::vector<int64_t> axes(static_cast<size_t>(std::max<int64_t>(rank - 1, 0)));
  std::iota(axes.begin(), axes.end(), 1);
  return build::Unsqueeze(n, axes);
}

Holds Inference(const FunctionContext& context, const Term& mode) {
  if (mode.kind == Term::Kind::kAbsent || EqualTerms(context, mode, Term::Integer(0))) return absl::OkStatus();
  return Refuse("it may be in training");
}

// A Reshape to the dims of an empty x would take their 0 for a dim of what it reads; allowzero is not there before opset 14.
Holds HasElements(const FunctionContext& context, const Value* x) {
  const Fact& fact = context.facts->Of(x);
  const auto is_empty = [](Dim dim) { return dim.is(0); };
  if (!fact.has_rank || std::none_of(fact.shape.begin(), fact.shape.end(), is_empty)) return absl::OkStatus();
  return Refuse(fmt::format("{} has no elements", ValueName(*x)));
}

Holds Within(const FunctionContext& context, const Value* x, int64_t n) {
  const IntegerBounds bounds = BoundsOf(*x, *context.facts);
  if (bounds.low.has_value() && bounds.high.has_value() && *bounds.low >= -n && *bounds.high <= n) return absl::OkStatus();
  return Refuse(fmt::format("{} may have elements beyond {}", ValueName(*x), n));
}

constexpr std::array kRows = {
    Function<"all_axes (x)", AllAxes>("The axes of x."),
    Function<"turned_around (x, axis)", Turned>("x with the elements along the axis in reverse."),
    Function<"last_place (x, axis)", LastPlace>("The place of the last element of x along the axis, a scalar."),
    Function<"places_along (x, axis)", PlacesAlong>("0, 1, ... along the axis of x, to be broadcast to x."),
    Function<"axes_but_channels (x)", AxesButChannels>("The axes of x [N, C, ...] but the second one."),
    Function<"batch_column (n, x)", BatchColumn>("A number n [B] for each batch, to be broadcast to x [B, ...]."),
    Function<"inference (mode)", Inference>("Holds where the input training_mode is absent or constantly false."),
    Function<"has_elements (x)", HasElements>("Holds unless a dim of x is 0 in every run."),
    Function<"within (x, n)", Within>("Holds for integers x that are provably not below -n and not above n."),
};

}  // namespace

absl::Span<const FunctionRow> AdaptMathFunctions() { return kRows; }

}  // namespace ascend_fuse
