// Functions of rules about axes: which ones a reduction is taken over, and where the channels are.
#include <array>

#include "fmt/format.h"
#include "ir/movement/axis.h"
#include "ir/status_macros.h"
#include "patterns/functions/constructs.h"
#include "patterns/functions/tensor.h"
#include "patterns/terms/refusal.h"

namespace ascend_fuse {
namespace {

absl::StatusOr<int64_t> TrailingAxes(const FunctionContext& context, List axes) {
  const int64_t count = static_cast<int64_t>(axes.size());
  for (int64_t i = 0; i < count; ++i) {
    const auto axis = IntegerOf(axes[static_cast<size_t>(i)]);
    if (!axis.has_value() || *axis != i - count) {
      return Refuse(fmt::format("the mean is taken over the axes {}, which are not the last ones", DescribeList(context, axes)),
                    "axes-not-last");
    }
  }
  if (count == 0) return Refuse("the mean is taken over no axis", "axes-not-last");
  return -count;
}

absl::StatusOr<std::vector<Term>> LastAxes(int64_t k) {
  if (k < 1 || k > kMostAxes) return absl::InvalidArgumentError(fmt::format("there are no last {} axes", k));
  std::vector<Term> axes;
  for (int64_t axis = -k; axis < 0; ++axis) axes.push_back(Term::Integer(axis));
  return axes;
}

absl::StatusOr<int64_t> SizeAlong(const FunctionContext& context, Shaped x, List axes) {
  constexpr int64_t kLargest = int64_t{1} << 40;
  int64_t size = 1;
  for (const Term& axis : axes) {
    const auto index = IntegerOf(axis);
    if (!index.has_value()) return absl::InvalidArgumentError("the axis is not a number");
    ASSIGN_OR_RETURN(const auto dim, DimAt(context, x.term, *index));
    if (!dim.is_number() || dim.number() < 1 || size > kLargest / dim.number()) {
      return Refuse(fmt::format("the dim {} must be a number in the graph", context.dims->ToString(dim)), "needs-dim");
    }
    size *= dim.number();
  }
  return size;
}

// Whether a reduction names no axes: none is given, or an empty list. Axes that are computed may be some.
bool NamesNone(const Term& axes) {
  return axes.kind == Term::Kind::kAbsent || (axes.kind == Term::Kind::kList && axes.list->empty());
}

bool IsSet(const Term& flag) { return flag.kind != Term::Kind::kAbsent && IntegerOf(flag).value_or(1) != 0; }

Holds ReducesNothing(const Term& axes, const Term& noop) {
  if (NamesNone(axes) && IsSet(noop)) return absl::OkStatus();
  return Refuse("it reduces some axes");
}

absl::StatusOr<std::vector<Term>> ReducedAxes(const FunctionContext& context, Shaped x, const Term& axes, const Term& noop) {
  if (!NamesNone(axes)) {
    if (axes.kind == Term::Kind::kList) return *axes.list;
    if (IntegerOf(axes).has_value()) return std::vector<Term>{axes};
    return Refuse("the axes are not constant", "not-constant");
  }
  if (IsSet(noop)) return Refuse("it reduces no axis");
  ASSIGN_OR_RETURN(const auto shape, ShapeOf(context, x.term));
  std::vector<Term> all;
  for (int64_t axis = -static_cast<int64_t>(shape.size()); axis < 0; ++axis) all.push_back(Term::Integer(axis));
  return all;
}

Holds Reduced(const FunctionContext& context, Shaped r, Shaped x, List axes) {
  ASSIGN_OR_RETURN(const auto own, ShapeOf(context, r.term));
  ASSIGN_OR_RETURN(auto wanted, ShapeOf(context, x.term));
  const int64_t rank = static_cast<int64_t>(wanted.size());
  for (const Term& term : axes) {
    const auto axis = IntegerOf(term);
    const int64_t place = axis.has_value() ? NormalizeAxis(*axis, rank) : -1;
    if (place < 0) return absl::InvalidArgumentError("the axes are not known");
    wanted[static_cast<size_t>(place)] = Term::Integer(1);
  }
  if (EqualLists(context, own, wanted)) return absl::OkStatus();
  return Refuse(fmt::format("the shape {} is not {}", DescribeList(context, own), DescribeList(context, wanted)));
}

// The perm of a Transpose that moves axis 1 after the others, or the last axis to place 1.
absl::StatusOr<std::vector<Term>> ChannelPerm(const FunctionContext& context, const Term& x, bool to_last) {
  ASSIGN_OR_RETURN(const auto shape, ShapeOf(context, x));
  const int64_t rank = static_cast<int64_t>(shape.size());
  if (rank < 2) return Refuse("a value without channels");
  std::vector<Term> perm = {Term::Integer(0)};
  if (!to_last) perm.push_back(Term::Integer(rank - 1));
  for (int64_t i = to_last ? 2 : 1; i < rank - (to_last ? 0 : 1); ++i) perm.push_back(Term::Integer(i));
  if (to_last) perm.push_back(Term::Integer(1));
  return perm;
}

absl::StatusOr<std::vector<Term>> ChannelsLast(const FunctionContext& context, Shaped x) {
  return ChannelPerm(context, x.term, true);
}

absl::StatusOr<std::vector<Term>> ChannelsFirst(const FunctionContext& context, Shaped x) {
  return ChannelPerm(context, x.term, false);
}

absl::StatusOr<std::vector<Term>> PermBetween(const FunctionContext&, List p, List q) {
  std::vector<Term> between;
  for (const Term& axis : q) {
    const std::optional<int64_t> wanted = IntegerOf(axis);
    const auto at = std::find_if(p.begin(), p.end(), [&](const Term& one) { return IntegerOf(one) == wanted; });
    if (p.size() != q.size() || !wanted.has_value() || at == p.end()) return Refuse("the two perms are not of one rank");
    between.push_back(Term::Integer(at - p.begin()));
  }
  return between;
}

// How many groups the last axis of x [..., C] is cut into by r [..., groups, C / groups].
absl::StatusOr<int64_t> LastAxisCut(const FunctionContext& context, Shaped r, Shaped x) {
  ASSIGN_OR_RETURN(const auto cut, ShapeOf(context, r.term));
  ASSIGN_OR_RETURN(const auto whole, ShapeOf(context, x.term));
  if (whole.empty() || cut.size() != whole.size() + 1) return Refuse("the last axis is not cut in two");
  const List before = List(whole).first(whole.size() - 1);
  const std::optional<int64_t> groups = IntegerOf(cut[cut.size() - 2]);
  const std::optional<int64_t> each = IntegerOf(cut.back());
  const std::optional<int64_t> channels = IntegerOf(whole.back());
  if (!groups.has_value() || !each.has_value() || !channels.has_value() || *groups < 1 || *groups * *each != *channels ||
      !EqualLists(context, List(cut).first(before.size()), before)) {
    return Refuse(fmt::format("the dims {} are not {} with the last axis cut into groups", DescribeList(context, cut),
                              DescribeList(context, whole)));
  }
  return *groups;
}

// Of r [N, ..., groups, C]: all axes but the first and that of the groups, from the end.
std::vector<Term> AxesOfGroup(int64_t rank) {
  std::vector<Term> axes;
  for (int64_t axis = 1 - rank; axis < -2; ++axis) axes.push_back(Term::Integer(axis));
  axes.push_back(Term::Integer(-1));
  return axes;
}

absl::StatusOr<std::vector<Term>> GroupAxes(const FunctionContext& context, Shaped r) {
  ASSIGN_OR_RETURN(const auto shape, ShapeOf(context, r.term));
  if (shape.size() < 3) return Refuse("a value without groups of channels");
  return AxesOfGroup(static_cast<int64_t>(shape.size()));
}

absl::StatusOr<std::vector<Term>> ChannelDims(const FunctionContext& context, Shaped x) {
  ASSIGN_OR_RETURN(const auto shape, ShapeOf(context, x.term));
  if (shape.size() < 2) return Refuse("a value without channels");
  ASSIGN_OR_RETURN(const auto channels, PlainNumber(context, DimOf(shape[1])));
  std::vector<Term> dims(shape.size() - 1, Term::Integer(1));
  dims[0] = Term::Integer(channels);
  return dims;
}

constexpr std::array kRows = {
    Function<"trailing_axes (axes)", TrailingAxes>("-k if the axes, counted from the end, are the last k ones."),
    Function<"last_axes (k)", LastAxes>("The last k axes, [-k, ..., -1]."),
    Function<"last_axis_cut (r, x)", LastAxisCut>(
        "The number of groups that the last axis of x [..., C] is cut into by r [..., groups, C / groups]."),
    Function<"group_axes (r)", GroupAxes>(
        "The axes of r [N, ..., groups, C] that lie within one group: all but the first and the last but one."),
    Function<"size (x, axes)", SizeAlong>("The number of elements of x along the axes."),
    Function<"reduces_nothing (axes, noop)", ReducesNothing>(
        "Holds for a reduction that names no axes and whose noop_with_empty_axes is set."),
    Function<"reduced_axes (x, axes, noop)", ReducedAxes>(
        "The axes over which a reduction of x is taken: all of them where it names none."),
    Function<"reduced (r, x, axes)", Reduced>("Holds where r has the shape of x with 1 in place of the axes."),
    Function<"channels_last (x)", ChannelsLast>("The perm of a Transpose that moves axis 1 after the others."),
    Function<"channels_first (x)", ChannelsFirst>("The perm of a Transpose that moves the last axis to place 1."),
    Function<"perm_between (p, q)", PermBetween>("The perm that makes a tensor transposed by p one that is transposed by q."),
    Function<"channel_dims (x)", ChannelDims>("[C, 1, 1]: the dims of a weight that broadcasts over x [N, C, H, W]."),
};

}  // namespace

absl::Span<const FunctionRow> AxisFunctions() { return kRows; }

}  // namespace ascend_fuse
