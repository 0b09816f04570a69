// Functions of rules about norms: their weights in the shape that the operators and kernels take, and their epsilon.
#include <array>
#include <cmath>

#include "fmt/format.h"
#include "ir/infer/movement_of.h"
#include "ir/rounding.h"
#include "ir/status_macros.h"
#include "patterns/functions/constructs.h"
#include "patterns/functions/nodes.h"
#include "patterns/functions/tensor.h"
#include "patterns/target/target.h"
#include "patterns/terms/node_builder.h"
#include "patterns/terms/refusal.h"

namespace ascend_fuse {
namespace {

using Weight = AnyOf<kValueTerm | kNodeTerm | kAbsentTerm>;

// Whether a weight with the dims `own` lies along the last dims `tail` of x [rank dims]: 1 before them, and the same.
bool HasTail(const FunctionContext& context, List own, List tail, size_t rank) {
  if (own.size() <= tail.size() || own.size() > rank) return false;
  const size_t leading = own.size() - tail.size();
  for (size_t i = 0; i < leading; ++i) {
    if (!DimOf(own[i]).is(1)) return false;
  }
  return EqualLists(context, own.subspan(leading), tail);
}

// What was spread over rows of a value with the dims `shape`, which it does not make larger.
Term BeforeExpand(const FunctionContext& context, Term w, List shape) {
  while (w.kind == Term::Kind::kValue && IsBroadcast(*context.facts, w.value)) {
    const auto own = ShapeOf(context, w);
    if (!own.ok() || !Broadcasts(context, *own, shape)) break;
    w = Term::Of(w.value->producer->input(0));
  }
  return w;
}

// What was cast to a type that holds every number of the type of x: kernels multiply in float32, so the weight as it was before
// is the same weight, and one that every kernel takes. A weight of ones of such a type is not there.
absl::StatusOr<Term> BeforeWidening(const FunctionContext& context, Weight w, Shaped x) {
  ASSIGN_OR_RETURN(const auto type, TypeOf(context, x.term));
  if (w.term.kind != Term::Kind::kValue) return w.term;
  const DataType own = context.facts->Of(w.term.value).type;
  if (own == type || !HoldsAllOf(own, type)) return w.term;
  double number = 0;
  if (ConstantNumber(*context.facts, w.term.value, &number) && number == 1) return Term::Absent();
  const Node* const cast = w.term.value->producer;
  const bool widens =
      cast != nullptr && IsOp(*cast, "Cast") && cast->input(0) != nullptr && context.facts->Of(cast->input(0)).type == type;
  return widens ? Term::Of(cast->input(0)) : w.term;
}

// Dims of 1 in front are dropped; a weight that is not there, and a constant that is one number, become constants.
absl::StatusOr<Term> NormWeight(const FunctionContext& context, Weight w, Shaped x, int64_t axis, double fill) {
  ASSIGN_OR_RETURN(const auto shape, ShapeOf(context, x.term));
  const int64_t rank = static_cast<int64_t>(shape.size());
  if (axis >= 0 || -axis > rank) return absl::InvalidArgumentError("the axis is not known");
  const List tail = List(shape).subspan(static_cast<size_t>(rank + axis));
  if (w.term.kind == Term::Kind::kAbsent) {
    ASSIGN_OR_RETURN(const auto type, TypeOf(context, x.term));
    return Filled(context, tail, fill, type);
  }
  const Term weight = BeforeExpand(context, w.term, shape);
  ASSIGN_OR_RETURN(const auto own, ShapeOf(context, weight));
  if (EqualLists(context, own, tail)) return weight;
  if (!HasTail(context, own, tail, shape.size())) {
    // A factor that exporters spread over all of x (torch, for a weight that is not there).
    double number = 0;
    if (weight.kind == Term::Kind::kValue && Broadcasts(context, own, shape) &&
        ConstantNumber(*context.facts, weight.value, &number)) {
      return Filled(context, tail, number, context.facts->Of(weight.value).type);
    }
    return Refuse(fmt::format("the weight {} has the dims {}, not {} as a norm over these axes has", NameOfTerm(context, weight),
                              DescribeList(context, own), DescribeList(context, tail)),
                  "weight-shape");
  }
  for (const Term& dim : tail) {
    if (!IntegerOf(dim).has_value()) {
      return Refuse(fmt::format("the dim {} must be a number in the graph", DescribeTerm(context, dim)), "needs-dim");
    }
  }
  return build::Reshape(weight, Term::List({tail.begin(), tail.end()}));
}

Holds PerChannel(const FunctionContext& context, Shaped w, Shaped x) {
  ASSIGN_OR_RETURN(const auto channels, DimAt(context, x.term, 1));
  ASSIGN_OR_RETURN(const auto own, ShapeOf(context, w.term));
  if (own.size() == 1 && EqualTerms(context, own[0], TermOfDim(channels))) return absl::OkStatus();
  return FinalWord(
      fmt::format("the weight {} has the dims {}: one element for each group, as in opset 18, where the kernel takes one for "
                  "each of {} channels",
                  DescribeTerm(context, w.term), DescribeList(context, own), context.dims->ToString(channels)),
      "weight-shape");
}

// The weight is written [C, 1, 1], or with more dims of 1 in front.
absl::StatusOr<Term> ChannelWeight(const FunctionContext& context, Weight w, Shaped x, double fill) {
  ASSIGN_OR_RETURN(const auto shape, ShapeOf(context, x.term));
  const size_t rank = shape.size();
  if (rank < 2) return Refuse("a value without channels");
  const Term& channels = shape[1];
  if (w.term.kind == Term::Kind::kAbsent) {
    ASSIGN_OR_RETURN(const auto type, TypeOf(context, x.term));
    return Filled(context, {&channels, 1}, fill, type);
  }
  ASSIGN_OR_RETURN(const auto own, ShapeOf(context, w.term));
  bool fits = own.size() == rank || own.size() + 1 == rank;
  for (size_t i = 0; fits && i < own.size(); ++i) {
    const bool channel = own.size() - i == rank - 1;
    fits = channel ? EqualTerms(context, own[i], channels) : DimOf(own[i]).is(1);
  }
  if (!fits) {
    return Refuse(fmt::format("the weight {} has the dims {}, not one element for each of {} channels",
                              NameOfTerm(context, w.term), DescribeList(context, own), DescribeTerm(context, channels)),
                  "weight-shape");
  }
  if (own.size() == 1) return w.term;
  const auto count = IntegerOf(channels);
  if (!count.has_value()) {
    return Refuse(fmt::format("the number of channels {} must be a number in the graph", DescribeTerm(context, channels)),
                  "needs-dim");
  }
  return build::Reshape(w.term, {*count});
}

// c = sqrt(1e-6 / epsilon). With the exponents of float32 always. In float16 for c from 1/4 to 1: nothing overflows,
// the product is rounded once more, and what is lost of elements below 2^-12, at most 2^-25 each, is divided by a root
// of at least 1e-3 and so stays below 3e-5 in a result whose mean square is up to 1.
Holds RescalableAs(const FunctionContext& context, const Term& x, DataType type, double epsilon) {
  const bool wide = type == DataType::kFloat || type == DataType::kBfloat16;
  if (wide && context.target != nullptr && context.target->KeepsRange()) return absl::OkStatus();
  if (epsilon >= 1e-6 && epsilon <= 16e-6) return absl::OkStatus();
  return FinalWord(
      fmt::format(
          "the kernel adds 1e-6 whatever the attribute says; an epsilon of {:.7g} would need {} times {:.3g}, which may be "
          "computed in float16, whose range is too small for that",
          epsilon, DescribeTerm(context, x), std::sqrt(1e-6 / epsilon)),
      "epsilon-not-scalable");
}

Holds Rescalable(const FunctionContext& context, Shaped x, double epsilon) {
  ASSIGN_OR_RETURN(const auto type, TypeOf(context, x.term));
  return RescalableAs(context, x.term, type, epsilon);
}

Holds RescalableInFloat(const FunctionContext& context, Shaped x, double epsilon) {
  return RescalableAs(context, x.term, DataType::kFloat, epsilon);
}

Holds HalfPrecision(const FunctionContext& context, Shaped x) {
  ASSIGN_OR_RETURN(const auto type, TypeOf(context, x.term));
  if (type == DataType::kFloat16 || type == DataType::kBfloat16) return absl::OkStatus();
  return Refuse(fmt::format("{} is {}, not float16 or bfloat16", DescribeTerm(context, x.term), DataTypeName(type)));
}

Holds NotDouble(const FunctionContext& context, Shaped x) {
  ASSIGN_OR_RETURN(const auto type, TypeOf(context, x.term));
  if (type != DataType::kDouble) return absl::OkStatus();
  return FinalWord("no kernel of a norm computes doubles", "types-refused");
}

Holds HasWeights(const FunctionContext& context, const Value* gain, const Value* shift) {
  double factor = 0;
  double zero = 1;
  const bool weighs_nothing =
      ConstantNumber(*context.facts, gain, &factor) && ConstantNumber(*context.facts, shift, &zero) && zero == 0;
  return weighs_nothing ? Refuse("the norm has no weights") : absl::OkStatus();
}

constexpr std::array kRows = {
    Function<"norm_weight (w, x, axis, n)", NormWeight>(
        "The weight w of a norm of x over the dims from the axis on, with exactly these dims; n where it is absent."),
    Function<"before_widening (w, x)", BeforeWidening>(
        "The weight w of a norm of x as it was before a Cast from the type of x to one that holds all its numbers; absent where "
        "it is ones of such a type; else w."),
    Function<"channel_weight (w, x, n)", ChannelWeight>("The weight w [C] of a norm of x [N, C, ...]; n where it is absent."),
    Function<"per_channel (w, x)", PerChannel>("Holds for a weight w that is [C] already, for x [N, C, ...]."),
    Function<"half_precision (x)", HalfPrecision>("Holds for x of float16 or bfloat16."),
    Function<"has_weights (gain, shift)", HasWeights>("Holds unless the elements of gain are all one number and shift is zeros."),
    Function<"not_double (x)", NotDouble>("Holds for x of another type than double."),
    Function<"rescalable (x, epsilon)", Rescalable>(
        "Holds where x may be multiplied by sqrt(1e-6 / epsilon), for a norm whose kernel adds 1e-6: with the "
        "exponents of float32, or for an epsilon from 1e-6 to 1.6e-5."),
    Function<"rescalable_in_float (x, epsilon)", RescalableInFloat>("The same of x after a Cast to float32."),
};

}  // namespace

absl::Span<const FunctionRow> NormFunctions() { return kRows; }

}  // namespace ascend_fuse
