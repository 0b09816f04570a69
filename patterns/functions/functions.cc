#include "patterns/functions/functions.h"

#include <algorithm>
#include <cmath>

#include "fmt/format.h"
#include "patterns/analysis/channels.h"
#include "patterns/analysis/halves.h"
#include "patterns/analysis/island.h"
#include "patterns/analysis/linear.h"
#include "patterns/analysis/mask.h"
#include "patterns/target/target.h"

namespace ascend_fuse {
namespace {

absl::StatusOr<Value*> ValueArgument(const FunctionContext& context, const Term& term) {
  if (term.kind == Term::Kind::kValue) return term.value;
  return absl::InvalidArgumentError(
      fmt::format("{} is not a value of the graph", DescribeTerm(context, term)));
}

std::optional<int64_t> IntegerArgument(const Term& term) {
  if (term.kind == Term::Kind::kNumber && term.number == std::floor(term.number)) {
    return static_cast<int64_t>(term.number);
  }
  if (term.kind == Term::Kind::kDim && term.dim.is_number()) return term.dim.number();
  return std::nullopt;
}

Term TermOfDim(Dim dim) { return dim.is_number() ? Term::Integer(dim.number()) : Term::Of(dim); }

Dim DimOfTerm(const Term& term) {
  if (term.kind == Term::Kind::kDim) return term.dim;
  if (const auto number = IntegerArgument(term); number.has_value()) return Dim::Of(*number);
  return Dim();
}

// shape (x): the dims of a value, or of a Transpose of one that is not built yet.
absl::StatusOr<Term> Shape(const FunctionContext& context, absl::Span<const Term> arguments) {
  const Term& term = arguments[0];
  if (term.kind == Term::Kind::kNode && term.node->op_type == "Transpose" && term.node->domain.empty() &&
      term.node->attributes.size() == 1 && term.node->attributes[0].second.kind == Term::Kind::kList) {
    absl::StatusOr<Term> inner = Shape(context, {term.node->inputs[0]});
    if (!inner.ok()) return inner;
    std::vector<Term> dims;
    for (const Term& axis : *term.node->attributes[0].second.list) {
      const size_t index = static_cast<size_t>(axis.number);
      if (index >= inner->list->size()) return absl::InvalidArgumentError("perm does not fit the rank");
      dims.push_back((*inner->list)[index]);
    }
    return Term::List(std::move(dims));
  }
  absl::StatusOr<Value*> value = ValueArgument(context, term);
  if (!value.ok()) return value.status();
  const Fact& fact = context.facts->Of(*value);
  if (!fact.has_rank) {
    return absl::FailedPreconditionError(fmt::format("the shape of {} is not known", ValueName(**value)));
  }
  std::vector<Term> dims;
  for (Dim dim : fact.shape) dims.push_back(TermOfDim(context.facts->dims().Resolve(dim)));
  return Term::List(std::move(dims));
}

absl::StatusOr<Term> DimOf(const FunctionContext& context, absl::Span<const Term> arguments) {
  absl::StatusOr<Term> shape = Shape(context, arguments.subspan(0, 1));
  if (!shape.ok()) return shape;
  auto axis = IntegerArgument(arguments[1]);
  if (!axis.has_value()) return absl::InvalidArgumentError("the axis is not a number");
  const int64_t rank = static_cast<int64_t>(shape->list->size());
  if (*axis < 0) *axis += rank;
  if (*axis < 0 || *axis >= rank) return absl::InvalidArgumentError("the axis is beyond the rank");
  return (*shape->list)[*axis];
}

absl::StatusOr<Term> Rank(const FunctionContext& context, absl::Span<const Term> arguments) {
  absl::StatusOr<Term> shape = Shape(context, arguments);
  if (!shape.ok()) return shape;
  return Term::Integer(static_cast<int64_t>(shape->list->size()));
}

absl::StatusOr<Term> TypeOf(const FunctionContext& context, absl::Span<const Term> arguments) {
  if (arguments[0].kind == Term::Kind::kNode && !arguments[0].node->inputs.empty()) {
    return TypeOf(context, {arguments[0].node->inputs[0]});
  }
  absl::StatusOr<Value*> value = ValueArgument(context, arguments[0]);
  if (!value.ok()) return value.status();
  const DataType type = context.facts->Of(*value).type;
  if (type == DataType::kUndefined) {
    return absl::FailedPreconditionError(fmt::format("the type of {} is not known", ValueName(**value)));
  }
  return Term::Of(type);
}

// value (x): the number of a constant with one element (or equal elements) that broadcasts as a scalar.
absl::StatusOr<Term> NumberOf(const FunctionContext& context, absl::Span<const Term> arguments) {
  if (arguments[0].kind == Term::Kind::kNumber) return arguments[0];
  absl::StatusOr<Value*> value = ValueArgument(context, arguments[0]);
  if (!value.ok()) return value.status();
  double number = 0;
  const Fact& fact = context.facts->Of(*value);
  const bool scalar =
      fact.has_rank && std::all_of(fact.shape.begin(), fact.shape.end(), [](Dim dim) { return dim.is(1); });
  if (!(arguments[0].like_scalar || (scalar && fact.rank() <= 1)) || !ConstantNumber(*context.facts, *value, &number)) {
    return absl::FailedPreconditionError(
        fmt::format("{} ({}) is not a constant number", ValueName(**value), context.facts->Describe(*value)));
  }
  return Term::Number(number);
}

absl::StatusOr<Term> SquareRoot(const FunctionContext&, absl::Span<const Term> arguments) {
  if (arguments[0].kind != Term::Kind::kNumber || arguments[0].number < 0) {
    return absl::InvalidArgumentError("the square root of no number");
  }
  return Term::Number(std::sqrt(arguments[0].number));
}

// half (x): 0 if x is the first half of the last axis of the value it is cut from, 1 if it is the second.
absl::StatusOr<Term> Half(const FunctionContext& context, absl::Span<const Term> arguments) {
  absl::StatusOr<Value*> part = ValueArgument(context, arguments[0]);
  if (!part.ok()) return part.status();
  absl::StatusOr<HalfOf> half = FindHalf(context, *part);
  if (!half.ok()) return half.status();
  if (half->axis != context.facts->Of(half->whole).rank() - 1) {
    return absl::FailedPreconditionError(
        fmt::format("{} is cut along axis {}, not along the last", ValueName(**part), half->axis));
  }
  if (half->strided) {
    return absl::FailedPreconditionError(
        fmt::format("{} is every other element, not one block", ValueName(**part)));
  }
  return Term::Integer(half->index);
}

// gate_pair (a, b): holds when a and b are made to be multiplied: the two halves of one tensor along any axis,
// or two linears of one input.
absl::StatusOr<Term> GatePair(const FunctionContext& context, absl::Span<const Term> arguments) {
  absl::StatusOr<Value*> a = ValueArgument(context, arguments[0]);
  if (!a.ok()) return a.status();
  absl::StatusOr<Value*> b = ValueArgument(context, arguments[1]);
  if (!b.ok()) return b.status();
  const absl::StatusOr<HalfOf> first = FindHalf(context, *a);
  const absl::StatusOr<HalfOf> second = FindHalf(context, *b);
  if (first.ok() && second.ok() && context.numbering->Same(first->whole, second->whole) &&
      first->axis == second->axis && first->strided == second->strided && first->index != second->index) {
    return Term::Integer(1);
  }
  const absl::StatusOr<LinearView> gate = FindLinear(context, *a);
  const absl::StatusOr<LinearView> up = FindLinear(context, *b);
  if (gate.ok() && up.ok() && context.numbering->Same(gate->x, up->x)) return Term::Integer(1);
  return absl::FailedPreconditionError(
      fmt::format("{} and {} are neither the halves of one tensor nor linears of one input", ValueName(**a),
                  ValueName(**b)));
}

// linear (y): holds when y is the output of a linear layer in any spelling.
absl::StatusOr<Term> Linear(const FunctionContext& context, absl::Span<const Term> arguments) {
  absl::StatusOr<Value*> value = ValueArgument(context, arguments[0]);
  if (!value.ok()) return value.status();
  const absl::StatusOr<LinearView> view = FindLinear(context, *value);
  if (!view.ok()) return view.status();
  return Term::Integer(1);
}

// both_linear (a, b): 1 when both are outputs of linears, else 0.
absl::StatusOr<Term> BothLinear(const FunctionContext& context, absl::Span<const Term> arguments) {
  for (const Term& argument : arguments) {
    absl::StatusOr<Value*> value = ValueArgument(context, argument);
    if (!value.ok()) return value.status();
    if (!FindLinear(context, *value).ok()) return Term::Integer(0);
  }
  return Term::Integer(1);
}

absl::StatusOr<MergedView> MergedOf(const FunctionContext& context, absl::Span<const Term> arguments) {
  absl::StatusOr<Value*> a = ValueArgument(context, arguments[0]);
  if (!a.ok()) return a.status();
  absl::StatusOr<Value*> b = ValueArgument(context, arguments[1]);
  if (!b.ok()) return b.status();
  return MergedLinear(context, *a, *b);
}

// The transpose of a matrix, to be built.
Term Transposed(Term matrix) {
  return Term::Node({"",
                     "Transpose",
                     {{"perm", Term::List({Term::Integer(1), Term::Integer(0)})}},
                     {std::move(matrix)},
                     1});
}

// merged_linear (a, b): one linear to be built in place of two of the same input, [a | b] along the last axis.
absl::StatusOr<Term> Merged(const FunctionContext& context, absl::Span<const Term> arguments) {
  const absl::StatusOr<MergedView> merged = MergedOf(context, arguments);
  if (!merged.ok()) return merged.status();
  const bool biased = merged->bias.kind != Term::Kind::kAbsent;
  if (merged->gemm) {
    DeferredNode node{"", "Gemm", {}, {Term::Of(merged->x), merged->weight}, 1};
    if (merged->transposed) node.attributes.emplace_back("transB", Term::Integer(1));
    if (biased) node.inputs.push_back(merged->bias);
    return Term::Node(std::move(node));
  }
  const Term matrix = merged->transposed ? Transposed(merged->weight) : merged->weight;
  Term product = Term::Node({"", "MatMul", {}, {Term::Of(merged->x), matrix}, 1});
  if (!biased) return product;
  return Term::Node({"", "Add", {}, {std::move(product), merged->bias}, 1});
}

// merged_input (a, b): what both linears multiply.
absl::StatusOr<Term> MergedInput(const FunctionContext& context, absl::Span<const Term> arguments) {
  const absl::StatusOr<MergedView> merged = MergedOf(context, arguments);
  if (!merged.ok()) return merged.status();
  return Term::Of(merged->x);
}

// merged_weight (a, b): the weights of two linears side by side, [K, 2 N].
absl::StatusOr<Term> MergedWeight(const FunctionContext& context, absl::Span<const Term> arguments) {
  const absl::StatusOr<MergedView> merged = MergedOf(context, arguments);
  if (!merged.ok()) return merged.status();
  return merged->transposed ? Transposed(merged->weight) : merged->weight;
}

// merged_bias (a, b): their biases one behind the other, [2 N], or no value.
absl::StatusOr<Term> MergedBias(const FunctionContext& context, absl::Span<const Term> arguments) {
  const absl::StatusOr<MergedView> merged = MergedOf(context, arguments);
  if (!merged.ok()) return merged.status();
  return merged->bias;
}

// The linear behind `argument`, if a node may take its place. Who else reads the argument itself is the rule's
// question: where it is inside what is replaced, read_by_one.
absl::StatusOr<LinearView> OwnLinear(const FunctionContext& context, const Term& argument) {
  absl::StatusOr<Value*> value = ValueArgument(context, argument);
  if (!value.ok()) return value.status();
  absl::StatusOr<LinearView> view = FindLinear(context, *value);
  if (!view.ok()) return view.status();
  if (!view->plain) {
    return absl::FailedPreconditionError(
        fmt::format("the linear that gives {} cannot be taken into a node: {}", ValueName(**value), view->why_not_plain));
  }
  for (const Value* inner : view->chain) {
    if (inner == *value) continue;
    if (std::string why = OtherReader(inner); !why.empty() && !inner->IsConstant()) {
      return absl::FailedPreconditionError(why);
    }
  }
  return view;
}

// linear_input (y): what the linear that computes y multiplies, as a matrix [rows, K].
absl::StatusOr<Term> LinearInput(const FunctionContext& context, absl::Span<const Term> arguments) {
  const absl::StatusOr<LinearView> view = OwnLinear(context, arguments[0]);
  if (!view.ok()) return view.status();
  const Fact& x = context.facts->Of(view->x);
  if (x.rank() == 2) return Term::Of(view->x);
  if (x.rank() < 2 || !x.shape.back().is_number()) {
    return absl::FailedPreconditionError(fmt::format("the shape of {} is not known", ValueName(*view->x)));
  }
  return Term::Node({"",
                     "Reshape",
                     {},
                     {Term::Of(view->x), Term::List({Term::Integer(-1), Term::Integer(x.shape.back().number())})},
                     1});
}

// linear_weight (y): its weight as a matrix [K, N].
absl::StatusOr<Term> LinearWeight(const FunctionContext& context, absl::Span<const Term> arguments) {
  const absl::StatusOr<LinearView> view = OwnLinear(context, arguments[0]);
  if (!view.ok()) return view.status();
  return view->transposed ? Transposed(Term::Of(view->weight)) : Term::Of(view->weight);
}

// linear_bias (y): its bias [N], or no value.
absl::StatusOr<Term> LinearBias(const FunctionContext& context, absl::Span<const Term> arguments) {
  const absl::StatusOr<LinearView> view = OwnLinear(context, arguments[0]);
  if (!view.ok()) return view.status();
  if (view->bias == nullptr) return Term::Absent();
  if (context.facts->Of(view->bias).rank() != 1) {
    return absl::FailedPreconditionError(fmt::format("the bias {} has not one dim", ValueName(*view->bias)));
  }
  return Term::Of(view->bias);
}

// float_bias (y): the same, and in float32 where the linear is in bfloat16: what kernels add to such products.
absl::StatusOr<Term> FloatBias(const FunctionContext& context, absl::Span<const Term> arguments) {
  absl::StatusOr<Term> bias = LinearBias(context, arguments);
  if (!bias.ok() || bias->kind != Term::Kind::kValue) return bias;
  if (context.facts->Of(bias->value).type != DataType::kBfloat16) return bias;
  return Term::Node({"", "Cast", {{"to", Term::Of(DataType::kFloat)}}, {*bias}, 1});
}

// without_bias (y): holds for a linear without a bias.
absl::StatusOr<Term> WithoutBias(const FunctionContext& context, absl::Span<const Term> arguments) {
  const absl::StatusOr<LinearView> view = OwnLinear(context, arguments[0]);
  if (!view.ok()) return view.status();
  if (view->bias == nullptr) return Term::Integer(1);
  return absl::FailedPreconditionError(
      fmt::format("the linear has a bias ({}), which the kernel does not take with this activation",
                  ValueName(*view->bias)));
}

// rows_as (node, y): a matrix [rows, N] in the shape of y, the output of a linear.
absl::StatusOr<Term> RowsAs(const FunctionContext& context, absl::Span<const Term> arguments) {
  absl::StatusOr<Value*> value = ValueArgument(context, arguments[1]);
  if (!value.ok()) return value.status();
  const Fact& fact = context.facts->Of(*value);
  if (fact.rank() == 2) return arguments[0];
  std::vector<Term> dims;
  int symbolic = 0;
  for (Dim dim : fact.shape) {
    dims.push_back(Term::Integer(dim.is_number() ? dim.number() : -1));
    symbolic += dim.is_number() ? 0 : 1;
  }
  if (fact.rank() < 1 || dims.back().number < 0) {
    return absl::FailedPreconditionError(fmt::format("the shape of {} is not known", ValueName(**value)));
  }
  if (symbolic <= 1) return Term::Node({"", "Reshape", {}, {arguments[0], Term::List(std::move(dims))}, 1});
  const absl::StatusOr<LinearView> view = FindLinear(context, *value);
  if (!view.ok()) return view.status();
  // All dims of the input but the last, which is N here.
  const auto one = [](int64_t number) { return Term::List({Term::Integer(number)}); };
  const Term shape = Term::Node({"", "Shape", {}, {Term::Of(view->x)}, 1});
  const Term leading = Term::Node({"", "Slice", {}, {shape, one(0), one(fact.rank() - 1), one(0)}, 1});
  const Term target =
      Term::Node({"", "Concat", {{"axis", Term::Integer(0)}}, {leading, one(static_cast<int64_t>(dims.back().number))}, 1});
  return Term::Node({"", "Reshape", {}, {arguments[0], target}, 1});
}

// no_gate (y): holds unless y is multiplied by a value that is computed, as a gate is.
absl::StatusOr<Term> NoGate(const FunctionContext& context, absl::Span<const Term> arguments) {
  absl::StatusOr<Value*> value = ValueArgument(context, arguments[0]);
  if (!value.ok()) return value.status();
  for (const Use& use : LiveUses(**value)) {
    const bool gated = Domain(*use.user) == "ascend_fuse" && OpType(*use.user) == "Glu";
    if (!gated && !IsOp(*use.user, "Mul")) continue;
    const Value* other = use.user->input(1 - std::min<uint32_t>(use.index, 1));
    if (other == nullptr || other == *value || other->IsConstant()) continue;
    if (!gated && context.facts->Of(other).elements != nullptr) continue;
    return absl::FailedPreconditionError(
        fmt::format("{} is a gate: it is multiplied by {}", ValueName(**value), ValueName(*other)));
  }
  return Term::Integer(1);
}

// mask_fill (x): holds for a constant so negative that the softmax makes it zero.
absl::StatusOr<Term> MaskFill(const FunctionContext& context, absl::Span<const Term> arguments) {
  absl::StatusOr<Value*> value = ValueArgument(context, arguments[0]);
  if (!value.ok()) return value.status();
  double number = 0;
  if (!ConstantNumber(*context.facts, *value, &number) || number > kMaskThreshold) {
    return absl::FailedPreconditionError(
        fmt::format("{} is not minus infinity or a number at most {}", ValueName(**value), kMaskThreshold));
  }
  return Term::Integer(1);
}

absl::StatusOr<Term> MaskArgument(const FunctionContext& context, absl::Span<const Term> arguments) {
  Value* values[3];
  for (int i = 0; i < 3; ++i) {
    absl::StatusOr<Value*> value = ValueArgument(context, arguments[i]);
    if (!value.ok()) return value.status();
    values[i] = *value;
  }
  return ExplicitMask(context, values[0], values[1], values[2]);
}

// in_one_type (x, a, b): x in the type that x, a and b can have in one kernel (patterns/analysis/island.h). A node to be
// built counts as what it moves.
absl::StatusOr<Term> OneType(const FunctionContext& context, absl::Span<const Term> arguments) {
  std::vector<Value*> values;
  for (const Term& argument : arguments) {
    const bool moved = argument.kind == Term::Kind::kNode && !argument.node->inputs.empty();
    absl::StatusOr<Value*> value = ValueArgument(context, moved ? argument.node->inputs[0] : argument);
    if (!value.ok()) return value.status();
    values.push_back(*value);
  }
  Term term = InOneType(context, values[0], values);
  if (arguments[0].kind != Term::Kind::kNode) return term;
  DeferredNode node = *arguments[0].node;
  node.inputs[0] = std::move(term);
  return Term::Node(std::move(node));
}

// empty_rows (mask, guard): notes what happens to a row of the softmax in which every key is masked.
absl::StatusOr<Term> EmptyRows(const FunctionContext& context, absl::Span<const Term> arguments) {
  absl::StatusOr<Value*> mask = ValueArgument(context, arguments[0]);
  if (!mask.ok()) return mask.status();
  const bool guarded = IntegerArgument(arguments[1]).value_or(0) != 0;
  // -inf rows are NaN behind the softmax and 0 behind the guard: what the kernel's row correction gives too.
  const bool zero =
      guarded && (context.facts->Of(*mask).type == DataType::kBool || MasksWithInfinity(context, *mask));
  if (!zero && context.assumptions != nullptr) {
    context.assumptions->push_back(
        "rows with no allowed key (queries that are padding themselves) are don't-care: the kernel gives 0 "
        "there");
  }
  return Term::Integer(1);
}

// empty (type): a constant without elements, ATC's way to say that an input in the middle is absent
// (ascend-contract.md 0.3).
absl::StatusOr<Term> Empty(const FunctionContext&, absl::Span<const Term> arguments) {
  return Term::Node(
      {"", "@Constant", {{"type", arguments[0]}, {"dims", Term::List({Term::Integer(0)})}}, {}, 1});
}

absl::StatusOr<Term> PlainNumber(const FunctionContext& context, absl::Span<const Term> arguments);
absl::StatusOr<Term> BroadcastsTo(const FunctionContext& context, absl::Span<const Term> arguments);

// The items of a list, or what is no list as the only one.
std::vector<Term> ItemsOf(const Term& term) {
  return term.kind == Term::Kind::kList ? *term.list : std::vector<Term>{term};
}

// filled (dims, number, type): a constant of these dims (a list, or one) all of whose elements are the number.
absl::StatusOr<Term> Filled(const FunctionContext& context, absl::Span<const Term> arguments) {
  std::vector<Term> dims = ItemsOf(arguments[0]);
  int64_t count = 1;
  for (Term& dim : dims) {
    const auto number = IntegerArgument(dim);
    if (!number.has_value() || *number < 1 || *number > (int64_t{1} << 24) / count) {
      return absl::FailedPreconditionError(fmt::format(
          "a constant with the dims {} cannot be made", DescribeTerm(context, arguments[0])));
    }
    count *= *number;
    dim = Term::Integer(*number);
  }
  return Term::Node({"",
                     "@Constant",
                     {{"type", arguments[2]}, {"dims", Term::List(std::move(dims))}, {"fill", arguments[1]}},
                     {},
                     1});
}

// ones (n, type): a constant [n] of ones.
absl::StatusOr<Term> Ones(const FunctionContext& context, absl::Span<const Term> arguments) {
  return Filled(context, {arguments[0], Term::Number(1), arguments[1]});
}

// last (axes): -k if the axes, counted from the end, are the last k ones.
absl::StatusOr<Term> LastAxes(const FunctionContext& context, absl::Span<const Term> arguments) {
  const std::vector<Term> axes = ItemsOf(arguments[0]);
  const int64_t count = static_cast<int64_t>(axes.size());
  for (int64_t i = 0; i < count; ++i) {
    const auto axis = IntegerArgument(axes[i]);
    if (!axis.has_value() || *axis != i - count) {
      return absl::FailedPreconditionError(
          fmt::format("the mean is taken over the axes {}, which are not the last ones",
                      DescribeTerm(context, arguments[0])));
    }
  }
  if (count == 0) return absl::FailedPreconditionError("the mean is taken over no axis");
  return Term::Integer(-count);
}

// last_axes (k): the last k axes, [-k, ..., -1].
absl::StatusOr<Term> LastAxesOf(const FunctionContext&, absl::Span<const Term> arguments) {
  const auto count = IntegerArgument(arguments[0]);
  if (!count.has_value() || *count < 1) return absl::InvalidArgumentError("the number of axes is not known");
  std::vector<Term> axes;
  for (int64_t axis = -*count; axis < 0; ++axis) axes.push_back(Term::Integer(axis));
  return Term::List(std::move(axes));
}

// size (x, axes): how many elements of x lie along these axes.
absl::StatusOr<Term> SizeOf(const FunctionContext& context, absl::Span<const Term> arguments) {
  const std::vector<Term> axes = ItemsOf(arguments[1]);
  int64_t size = 1;
  for (const Term& axis : axes) {
    absl::StatusOr<Term> dim = DimOf(context, {arguments[0], axis});
    if (!dim.ok()) return dim;
    const auto number = IntegerArgument(*dim);
    if (!number.has_value() || *number < 1 || size > (int64_t{1} << 40) / *number) {
      return absl::FailedPreconditionError(
          fmt::format("the dim {} must be a number in the graph", DescribeTerm(context, *dim)));
    }
    size *= *number;
  }
  return Term::Integer(size);
}

// reduced (r, x, axes): holds when r has the shape of x with 1 in place of these axes.
absl::StatusOr<Term> Reduced(const FunctionContext& context, absl::Span<const Term> arguments) {
  absl::StatusOr<Term> own = Shape(context, arguments.subspan(0, 1));
  if (!own.ok()) return own;
  absl::StatusOr<Term> shape = Shape(context, arguments.subspan(1, 1));
  if (!shape.ok()) return shape;
  std::vector<Term> wanted = *shape->list;
  const std::vector<Term> axes = ItemsOf(arguments[2]);
  for (const Term& term : axes) {
    const auto axis = IntegerArgument(term);
    const int64_t rank = static_cast<int64_t>(wanted.size());
    if (!axis.has_value() || *axis < -rank || *axis >= rank) return absl::InvalidArgumentError("the axes are not known");
    wanted[static_cast<size_t>(*axis < 0 ? *axis + rank : *axis)] = Term::Integer(1);
  }
  if (EqualTerms(context, *own, Term::List(wanted))) return Term::Integer(1);
  return absl::FailedPreconditionError(fmt::format("the shape {} is not {}", DescribeTerm(context, *own),
                                                   DescribeTerm(context, Term::List(std::move(wanted)))));
}

// weight (w, x, axis, fill): the weight of a norm of x over the dims from `axis` on, with exactly these dims. Dims
// of 1 in front are dropped; a weight that is not there, and a constant that is one number, become constants.
absl::StatusOr<Term> NormWeight(const FunctionContext& context, absl::Span<const Term> arguments) {
  absl::StatusOr<Term> shape = Shape(context, arguments.subspan(1, 1));
  if (!shape.ok()) return shape;
  const auto axis = IntegerArgument(arguments[2]);
  const int64_t rank = static_cast<int64_t>(shape->list->size());
  if (!axis.has_value() || *axis >= 0 || -*axis > rank) return absl::InvalidArgumentError("the axis is not known");
  const std::vector<Term> tail(shape->list->end() + *axis, shape->list->end());
  if (arguments[0].kind == Term::Kind::kAbsent) {
    absl::StatusOr<Term> type = TypeOf(context, arguments.subspan(1, 1));
    if (!type.ok()) return type;
    return Filled(context, {Term::List(tail), arguments[3], *type});
  }
  absl::StatusOr<Term> own = Shape(context, arguments.subspan(0, 1));
  if (!own.ok()) return own;
  if (EqualTerms(context, *own, Term::List(tail))) return arguments[0];
  absl::StatusOr<Value*> value = ValueArgument(context, arguments[0]);
  if (!value.ok()) return value.status();
  const std::vector<Term>& dims = *own->list;
  const int64_t own_rank = static_cast<int64_t>(dims.size());
  double number = 0;
  bool fits = own_rank > -*axis && own_rank <= rank;
  for (int64_t i = 0; fits && i < own_rank; ++i) {
    const int64_t from_end = i - own_rank;
    fits = from_end < *axis ? DimOfTerm(dims[i]).is(1)
                            : EqualTerms(context, dims[i], tail[static_cast<size_t>(from_end - *axis)]);
  }
  if (!fits) {
    // A factor that exporters spread over all of x (torch, for a weight that is not there).
    absl::StatusOr<Term> spread = BroadcastsTo(context, arguments.subspan(0, 2));
    if (spread.ok() && ConstantNumber(*context.facts, *value, &number)) {
      return Filled(context, {Term::List(tail), Term::Number(number), Term::Of(context.facts->Of(*value).type)});
    }
    return absl::FailedPreconditionError(fmt::format(
        "the weight {} has the dims {}, not {} as a norm over these axes has",
        ValueName(**value), DescribeTerm(context, *own), DescribeTerm(context, Term::List(tail))));
  }
  for (const Term& dim : tail) {
    if (!IntegerArgument(dim).has_value()) {
      return absl::FailedPreconditionError(
          fmt::format("the dim {} must be a number in the graph", DescribeTerm(context, dim)));
    }
  }
  return Term::Node({"", "Reshape", {}, {arguments[0], Term::List(tail)}, 1});
}

// per_channel (w, x): holds for a weight [C] of x [N, C, ...].
absl::StatusOr<Term> PerChannel(const FunctionContext& context, absl::Span<const Term> arguments) {
  absl::StatusOr<Term> channels = DimOf(context, {arguments[1], Term::Integer(1)});
  if (!channels.ok()) return channels;
  absl::StatusOr<Term> own = Shape(context, arguments.subspan(0, 1));
  if (!own.ok()) return own;
  if (own->list->size() == 1 && EqualTerms(context, (*own->list)[0], *channels)) return Term::Integer(1);
  return absl::CancelledError(fmt::format(
      "the weight {} has the dims {}: one element for each group, as in opset 18, where the kernel takes one for each of "
      "{} channels",
      DescribeTerm(context, arguments[0]), DescribeTerm(context, *own), DescribeTerm(context, *channels)));
}

// channels (w, x, fill): the weight of a norm of x [N, C, ...] for each channel, as [C]. It is written [C, 1, 1],
// or with more dims of 1 in front; one that is not there becomes a constant.
absl::StatusOr<Term> ChannelWeight(const FunctionContext& context, absl::Span<const Term> arguments) {
  absl::StatusOr<Term> shape = Shape(context, arguments.subspan(1, 1));
  if (!shape.ok()) return shape;
  const int64_t rank = static_cast<int64_t>(shape->list->size());
  if (rank < 2) return absl::FailedPreconditionError("a value without channels");
  const Term& channels = (*shape->list)[1];
  if (arguments[0].kind == Term::Kind::kAbsent) {
    absl::StatusOr<Term> type = TypeOf(context, arguments.subspan(1, 1));
    if (!type.ok()) return type;
    return Filled(context, {channels, arguments[2], *type});
  }
  absl::StatusOr<Term> own = Shape(context, arguments.subspan(0, 1));
  if (!own.ok()) return own;
  absl::StatusOr<Value*> value = ValueArgument(context, arguments[0]);
  if (!value.ok()) return value.status();
  const std::vector<Term>& dims = *own->list;
  const int64_t own_rank = static_cast<int64_t>(dims.size());
  bool fits = own_rank >= rank - 1 && own_rank <= rank;
  for (int64_t i = 0; fits && i < own_rank; ++i) {
    const bool channel = i - own_rank == 1 - rank;
    fits = channel ? EqualTerms(context, dims[i], channels) : DimOfTerm(dims[i]).is(1);
  }
  if (!fits) {
    return absl::FailedPreconditionError(
        fmt::format("the weight {} has the dims {}, not one element for each of {} channels",
                    ValueName(**value), DescribeTerm(context, *own), DescribeTerm(context, channels)));
  }
  if (own_rank == 1) return arguments[0];
  const auto count = IntegerArgument(channels);
  if (!count.has_value()) {
    return absl::FailedPreconditionError(
        fmt::format("the number of channels {} must be a number in the graph", DescribeTerm(context, channels)));
  }
  return Term::Node({"", "Reshape", {}, {arguments[0], Term::List({Term::Integer(*count)})}, 1});
}

// channels_last (x), channels_first (x): the perm of a Transpose that moves axis 1 behind the others, and the one
// that moves it back.
absl::StatusOr<Term> ChannelPerm(const FunctionContext& context, absl::Span<const Term> arguments, bool to_last) {
  absl::StatusOr<Term> rank = Rank(context, arguments);
  if (!rank.ok()) return rank;
  const int64_t count = static_cast<int64_t>(rank->number);
  if (count < 2) return absl::FailedPreconditionError("a value without channels");
  std::vector<Term> perm = {Term::Integer(0)};
  if (!to_last) perm.push_back(Term::Integer(count - 1));
  for (int64_t i = to_last ? 2 : 1; i < count - (to_last ? 0 : 1); ++i) perm.push_back(Term::Integer(i));
  if (to_last) perm.push_back(Term::Integer(1));
  return Term::List(std::move(perm));
}

absl::StatusOr<Term> ChannelsLast(const FunctionContext& context, absl::Span<const Term> arguments) {
  return ChannelPerm(context, arguments, true);
}

absl::StatusOr<Term> ChannelsFirst(const FunctionContext& context, absl::Span<const Term> arguments) {
  return ChannelPerm(context, arguments, false);
}

// channel_dims (x): [C, 1, 1]: as a weight [C] broadcasts over x [N, C, H, W].
absl::StatusOr<Term> ChannelDims(const FunctionContext& context, absl::Span<const Term> arguments) {
  absl::StatusOr<Term> shape = Shape(context, arguments);
  if (!shape.ok()) return shape;
  if (shape->list->size() < 2) return absl::FailedPreconditionError("a value without channels");
  absl::StatusOr<Term> channels = PlainNumber(context, absl::Span<const Term>(*shape->list).subspan(1, 1));
  if (!channels.ok()) return channels;
  std::vector<Term> dims(shape->list->size() - 1, Term::Integer(1));
  dims[0] = *channels;
  return Term::List(std::move(dims));
}

// multiple_of (d, n): holds when the dim d is provably a multiple of the number n.
absl::StatusOr<Term> MultipleOf(const FunctionContext& context, absl::Span<const Term> arguments) {
  const auto divisor = IntegerArgument(arguments[1]);
  const Dim dim = DimOfTerm(arguments[0]);
  if (divisor.has_value() && *divisor > 0 && dim.known()) {
    if (dim.is_number() ? dim.number() % *divisor == 0
                        : context.facts->dims().ExactDiv(dim, Dim::Of(*divisor)).known()) {
      return Term::Integer(1);
    }
  }
  return absl::FailedPreconditionError(fmt::format("{} is not a multiple of {}", DescribeTerm(context, arguments[0]),
                                                   DescribeTerm(context, arguments[1])));
}

// all_are (x, n): holds for a constant all of whose elements are the number n.
absl::StatusOr<Term> AllAre(const FunctionContext& context, absl::Span<const Term> arguments) {
  absl::StatusOr<Value*> value = ValueArgument(context, arguments[0]);
  if (!value.ok()) return value.status();
  double number = 0;
  if (ConstantNumber(*context.facts, *value, &number) && number == arguments[1].number) return Term::Integer(1);
  return absl::FailedPreconditionError(fmt::format("not all elements of {} are {}", ValueName(**value),
                                                   DescribeTerm(context, arguments[1])));
}

// floating (x): holds for a value of a floating-point type.
absl::StatusOr<Term> Floating(const FunctionContext& context, absl::Span<const Term> arguments) {
  absl::StatusOr<Term> type = TypeOf(context, arguments);
  if (!type.ok()) return type;
  if (IsFloat(type->type)) return Term::Integer(1);
  return absl::FailedPreconditionError(
      fmt::format("{} holds no floating-point numbers", DescribeTerm(context, arguments[0])));
}

// constant (x): holds for a value that no input of the graph changes.
absl::StatusOr<Term> ConstantValue(const FunctionContext& context, absl::Span<const Term> arguments) {
  absl::StatusOr<Value*> value = ValueArgument(context, arguments[0]);
  if (!value.ok()) return value.status();
  if ((*value)->IsConstant() || context.facts->Of(*value).elements != nullptr) return Term::Integer(1);
  return absl::FailedPreconditionError(fmt::format("{} is not a constant", ValueName(**value)));
}

// readers (x): how many inputs of nodes read x; an output of the graph counts as one more.
absl::StatusOr<Term> Readers(const FunctionContext& context, absl::Span<const Term> arguments) {
  absl::StatusOr<Value*> value = ValueArgument(context, arguments[0]);
  if (!value.ok()) return value.status();
  return Term::Integer(CountReaders(**value));
}

// negative_axes (x): holds when the operator that computes x was written with axes that count from the end.
absl::StatusOr<Term> NegativeAxes(const FunctionContext& context, absl::Span<const Term> arguments) {
  absl::StatusOr<Value*> value = ValueArgument(context, arguments[0]);
  if (!value.ok()) return value.status();
  const Node* node = (*value)->producer;
  const auto axes = node == nullptr ? std::nullopt : IntsAttribute(*node, "axes");
  if (axes.has_value() && std::all_of(axes->begin(), axes->end(), [](int64_t axis) { return axis < 0; })) {
    return Term::Integer(1);
  }
  return absl::FailedPreconditionError(
      fmt::format("the axes of {} are not an attribute that counts from the end", ValueName(**value)));
}

// recognised (x): holds when a rule made the operator that computes x; not for operators that the model has.
absl::StatusOr<Term> Recognised(const FunctionContext& context, absl::Span<const Term> arguments) {
  absl::StatusOr<Value*> value = ValueArgument(context, arguments[0]);
  if (!value.ok()) return value.status();
  if ((*value)->producer != nullptr && (*value)->producer->is_new) return Term::Integer(1);
  return absl::FailedPreconditionError(fmt::format("{} is an operator of the model", ValueName(**value)));
}

// absent (): no value, for a weight that is not there.
absl::StatusOr<Term> AbsentValue(const FunctionContext&, absl::Span<const Term>) { return Term::Absent(); }

// with_layer_normalization (): holds where LayerNormalization may be written: from opset 17 on.
absl::StatusOr<Term> WithLayerNormalization(const FunctionContext& context, absl::Span<const Term>) {
  const int64_t opset = context.model->OpsetVersion();
  if (opset >= 17) return Term::Integer(1);
  return absl::CancelledError(fmt::format(
      "LayerNormalization exists from opset 17 on and the model has opset {}; of LayerNormONNXFusionPass another form is "
      "known (one type, one Sub, Pow by 2, Div by Sqrt, last axes that count from the end, constant weights)",
      opset));
}

// opset_from (n): holds where the model imports opset n of the default domain or a later one.
absl::StatusOr<Term> OpsetFrom(const FunctionContext& context, absl::Span<const Term> arguments) {
  const int64_t opset = context.model->OpsetVersion();
  if (arguments[0].kind == Term::Kind::kNumber && opset >= arguments[0].number) return Term::Integer(1);
  return absl::FailedPreconditionError(fmt::format("the model imports opset {}", opset));
}

// opset_before (n): holds where the model imports an older one.
absl::StatusOr<Term> OpsetBefore(const FunctionContext& context, absl::Span<const Term> arguments) {
  const int64_t opset = context.model->OpsetVersion();
  if (arguments[0].kind == Term::Kind::kNumber && opset < arguments[0].number) return Term::Integer(1);
  return absl::FailedPreconditionError(fmt::format("the model imports opset {}", opset));
}

// unread (x): holds for an output that is not there or that nothing reads.
absl::StatusOr<Term> Unread(const FunctionContext& context, absl::Span<const Term> arguments) {
  if (arguments[0].kind == Term::Kind::kAbsent) return Term::Integer(1);
  absl::StatusOr<Value*> value = ValueArgument(context, arguments[0]);
  if (!value.ok()) return value.status();
  if (!(*value)->is_graph_output && CountReaders(**value) == 0) return Term::Integer(1);
  return absl::FailedPreconditionError(fmt::format("{} is needed", ValueName(**value)));
}

// place_rows (t, p, ids): the rows p of the table t; without p the first rows, as many as ids [B, S] has columns.
absl::StatusOr<Term> PlaceRows(const FunctionContext&, absl::Span<const Term> arguments) {
  if (arguments[1].kind != Term::Kind::kAbsent) {
    return Term::Node({"", "Gather", {{"axis", Term::Integer(0)}}, {arguments[0], arguments[1]}, 1});
  }
  const auto one = [](int64_t number) { return Term::List({Term::Integer(number)}); };
  const Term shape = Term::Node({"", "Shape", {}, {arguments[2]}, 1});
  const Term length = Term::Node({"", "Gather", {{"axis", Term::Integer(0)}}, {shape, one(1)}, 1});
  return Term::Node({"", "Slice", {}, {arguments[0], one(0), length, one(0)}, 1});
}

// rescalable (x, epsilon): holds where x may be multiplied by c = sqrt(1e-6 / epsilon) so that a norm that adds 1e-6 gives
// what one with epsilon gives. With the exponents of float32 always. In float16 for c from 1/4 to 1: nothing overflows, the
// product is rounded once more, and what is lost of elements below 2^-12, at most 2^-25 each, is divided by a root of at
// least 1e-3 and so stays below 3e-5 in a result whose mean square is up to 1.
absl::StatusOr<Term> Rescalable(const FunctionContext& context, absl::Span<const Term> arguments) {
  absl::StatusOr<Term> type = TypeOf(context, arguments.subspan(0, 1));
  if (!type.ok()) return type;
  const bool wide = type->type == DataType::kFloat || type->type == DataType::kBfloat16;
  if (wide && context.target != nullptr && context.target->KeepsRange()) return Term::Integer(1);
  const double epsilon = arguments[1].number;
  if (arguments[1].kind == Term::Kind::kNumber && epsilon >= 1e-6 && epsilon <= 16e-6) return Term::Integer(1);
  return absl::CancelledError(fmt::format(
      "the kernel adds 1e-6 whatever the attribute says; an epsilon of {} would need {} times {}, which may be computed in "
      "float16, whose range is too small for that",
      fmt::format("{:.7g}", epsilon), DescribeTerm(context, arguments[0]),
      fmt::format("{:.3g}", std::sqrt(1e-6 / epsilon))));
}

// never (sentence): does not hold. For what only looks like the construct: the sentence says why it is not.
absl::StatusOr<Term> Never(const FunctionContext&, absl::Span<const Term> arguments) {
  return absl::CancelledError(arguments[0].text);
}

// single (n, type): a constant [1] that holds a number.
absl::StatusOr<Term> Single(const FunctionContext& context, absl::Span<const Term> arguments) {
  const auto number = IntegerArgument(arguments[0]);
  if (!number.has_value()) return PlainNumber(context, arguments.subspan(0, 1));
  return Term::Node({"",
                     "@Constant",
                     {{"type", arguments[1]},
                      {"dims", Term::List({Term::Integer(1)})},
                      {"fill", Term::Number(static_cast<double>(*number))}},
                     {},
                     1});
}

// number (d): a dim that must be a plain number, for attributes of nodes.
absl::StatusOr<Term> PlainNumber(const FunctionContext& context, absl::Span<const Term> arguments) {
  const auto number = IntegerArgument(arguments[0]);
  if (!number.has_value()) {
    return absl::FailedPreconditionError(fmt::format(
        "{} must be a number in the graph; bind the dim with --dim", DescribeTerm(context, arguments[0])));
  }
  return Term::Integer(*number);
}

// kv_heads (heads, key_heads): the attribute num_key_value_heads; 0 says "as many as num_heads".
absl::StatusOr<Term> KeyValueHeads(const FunctionContext& context, absl::Span<const Term> arguments) {
  const auto heads = IntegerArgument(arguments[0]);
  const auto key_heads = IntegerArgument(arguments[1]);
  if (!heads.has_value() || !key_heads.has_value()) {
    return absl::FailedPreconditionError(fmt::format("the numbers of heads {} and {} must be known",
                                                     DescribeTerm(context, arguments[0]),
                                                     DescribeTerm(context, arguments[1])));
  }
  return Term::Integer(*heads == *key_heads ? 0 : *key_heads);
}

// attention_scale (s, D): s, or 1 / sqrt(D) where the operator leaves it out.
absl::StatusOr<Term> AttentionScale(const FunctionContext& context, absl::Span<const Term> arguments) {
  if (arguments[0].kind == Term::Kind::kNumber) {
    // ONNX Runtime takes a scale of 0 for one that is left out; the definition of the operator does not.
    if (arguments[0].number == 0) return absl::FailedPreconditionError("its scale is written as 0");
    return arguments[0];
  }
  const auto head_dim = IntegerArgument(arguments[1]);
  if (!head_dim.has_value() || *head_dim < 1) {
    return absl::FailedPreconditionError(
        fmt::format("the scale is 1 / sqrt(head_dim), and the head_dim {} is not known",
                    DescribeTerm(context, arguments[1])));
  }
  return Term::Number(1 / std::sqrt(static_cast<double>(*head_dim)));
}

// same_shape (a, b): holds when two values provably have one shape.
absl::StatusOr<Term> SameShapes(const FunctionContext& context, absl::Span<const Term> arguments) {
  absl::StatusOr<Term> a = Shape(context, arguments.subspan(0, 1));
  if (!a.ok()) return a;
  absl::StatusOr<Term> b = Shape(context, arguments.subspan(1, 1));
  if (!b.ok()) return b;
  if (EqualTerms(context, *a, *b)) return Term::Integer(1);
  return absl::FailedPreconditionError(fmt::format("the shapes {} and {} are not the same",
                                                   DescribeTerm(context, *a), DescribeTerm(context, *b)));
}

// broadcasts_to (a, b): a has no more dims than b, and each is 1 or b's: a op b has b's shape.
absl::StatusOr<Term> BroadcastsTo(const FunctionContext& context, absl::Span<const Term> arguments) {
  absl::StatusOr<Term> a = Shape(context, arguments.subspan(0, 1));
  if (!a.ok()) return a;
  absl::StatusOr<Term> b = Shape(context, arguments.subspan(1, 1));
  if (!b.ok()) return b;
  bool fits = a->list->size() <= b->list->size();
  for (size_t i = 0; fits && i < a->list->size(); ++i) {
    const Dim dim = DimOfTerm((*a->list)[a->list->size() - 1 - i]);
    fits = dim.is(1) || context.facts->dims().Equal(dim, DimOfTerm((*b->list)[b->list->size() - 1 - i]));
  }
  if (fits) return Term::Integer(1);
  return absl::FailedPreconditionError(fmt::format("the shape {} does not broadcast to {}",
                                                   DescribeTerm(context, *a), DescribeTerm(context, *b)));
}

// converted (node, from, to): the node, with a Cast behind it where the types differ.
absl::StatusOr<Term> Converted(const FunctionContext&, absl::Span<const Term> arguments) {
  if (arguments[1].type == arguments[2].type) return arguments[0];
  return Term::Node({"", "Cast", {{"to", arguments[2]}}, {arguments[0]}, 1});
}

// product (list) of dims.
absl::StatusOr<Term> Product(const FunctionContext& context, absl::Span<const Term> arguments) {
  if (arguments[0].kind != Term::Kind::kList) return absl::InvalidArgumentError("product takes a list");
  Dim product = Dim::Of(1);
  for (const Term& item : *arguments[0].list) product = context.facts->dims().Mul(product, DimOfTerm(item));
  if (!product.known()) return absl::FailedPreconditionError("the product of the dims is not known");
  return TermOfDim(product);
}

absl::StatusOr<std::vector<Value*>> ValueArguments(const FunctionContext& context,
                                                   absl::Span<const Term> arguments, size_t count) {
  std::vector<Value*> values;
  for (size_t i = 0; i < count; ++i) {
    absl::StatusOr<Value*> value = ValueArgument(context, arguments[i]);
    if (!value.ok()) return value.status();
    values.push_back(*value);
  }
  return values;
}

// rotation (r, x, sign, signs): the mode in which r, times sign and channel by channel times the constant signs, is x
// turned by a quarter.
absl::StatusOr<Term> Rotation(const FunctionContext& context, absl::Span<const Term> arguments) {
  const auto values = ValueArguments(context, arguments, 2);
  if (!values.ok()) return values.status();
  const int sign = arguments[2].number < 0 ? -1 : 1;
  const Value* signs = arguments.size() > 3 && arguments[3].kind == Term::Kind::kValue ? arguments[3].value : nullptr;
  absl::StatusOr<std::string> mode = RotationMode(context, (*values)[0], (*values)[1], sign, signs);
  if (!mode.ok()) return mode.status();
  if (*mode == "half" && DeinterleavedSource(context, (*values)[1]).ok()) return Term::Text("interleave_half");
  return Term::Text(*std::move(mode));
}

// part_rotation (a, x1, x2): the same where a and its partner stand side by side among others.
absl::StatusOr<Term> PartRotation(const FunctionContext& context, absl::Span<const Term> arguments) {
  const auto values = ValueArguments(context, arguments, 3);
  if (!values.ok()) return values.status();
  const absl::StatusOr<Cut> cut = CutSource(context, (*values)[1], (*values)[2], (*values)[0], 2);
  if (!cut.ok()) return cut.status();
  return Term::Text(cut->mode == "half" ? "half" : "interleave_half");
}

// part_whole (a, x1, x2): the value that is rotated then.
absl::StatusOr<Term> PartWhole(const FunctionContext& context, absl::Span<const Term> arguments) {
  const auto values = ValueArguments(context, arguments, 3);
  if (!values.ok()) return values.status();
  const absl::StatusOr<Cut> cut = CutSource(context, (*values)[1], (*values)[2], (*values)[0], 2);
  if (!cut.ok()) return cut.status();
  return cut->whole;
}

// sign_vector (s): holds for a constant of signs, some of either kind.
absl::StatusOr<Term> SignVector(const FunctionContext& context, absl::Span<const Term> arguments) {
  absl::StatusOr<Value*> value = ValueArgument(context, arguments[0]);
  if (!value.ok()) return value.status();
  const Elements* elements = context.facts->Of(*value).elements;
  bool plus = false;
  bool minus = false;
  bool other = elements == nullptr;
  if (elements != nullptr) {
    for (double number : elements->floats) {
      plus = plus || number == 1;
      minus = minus || number == -1;
      other = other || (number != 1 && number != -1);
    }
  }
  if (plus && minus && !other) return Term::Integer(1);
  return absl::FailedPreconditionError(fmt::format("{} holds no signs", ValueName(**value)));
}

// rotation_source (x, mode): what the kernel gets: x, or the value that it takes pairs out of.
absl::StatusOr<Term> RotationSource(const FunctionContext& context, absl::Span<const Term> arguments) {
  if (arguments[1].text != "interleave_half") return arguments[0];
  absl::StatusOr<Value*> value = ValueArgument(context, arguments[0]);
  if (!value.ok()) return value.status();
  absl::StatusOr<Value*> source = DeinterleavedSource(context, *value);
  if (!source.ok()) return source.status();
  return Term::Of(*source);
}

// pair_rotation (y, a, b, x1, x2): the mode of a rotation y of which a and b are the parts, computed from the parts
// x1 and x2 of one value.
absl::StatusOr<Term> PairRotation(const FunctionContext& context, absl::Span<const Term> arguments) {
  const auto values = ValueArguments(context, arguments, 5);
  if (!values.ok()) return values.status();
  const absl::StatusOr<std::string> join = JoinMode(context, (*values)[0], (*values)[1], (*values)[2]);
  if (!join.ok()) return join.status();
  const absl::StatusOr<Cut> cut = CutSource(context, (*values)[3], (*values)[4], (*values)[0]);
  if (!cut.ok()) return cut.status();
  if (cut->mode == *join) return Term::Text(cut->mode);
  if (cut->mode == "interleaved") return Term::Text("interleave_half");
  return absl::FailedPreconditionError("the parts are cut as halves and joined as pairs");
}

// written_rotation (y, p, i, j, x1, x2): the mode of a rotation whose parts were written to the rows i and j [D/2, 1] of a
// tensor that the perm p turns into y [..., D]: p exchanges the first and the last axis.
absl::StatusOr<Term> WrittenRotation(const FunctionContext& context, absl::Span<const Term> arguments) {
  absl::StatusOr<Value*> y = ValueArgument(context, arguments[0]);
  if (!y.ok()) return y.status();
  const Fact& fact = context.facts->Of(*y);
  const int64_t rank = fact.rank();
  bool exchanges = rank >= 2 && arguments[1].list != nullptr && static_cast<int64_t>(arguments[1].list->size()) == rank;
  for (int64_t i = 0; exchanges && i < rank; ++i) {
    const double wanted = i == 0 ? static_cast<double>(rank - 1) : i == rank - 1 ? 0 : static_cast<double>(i);
    exchanges = (*arguments[1].list)[static_cast<size_t>(i)].number == wanted;
  }
  if (!exchanges) return absl::FailedPreconditionError("the parts are not written along the last axis");
  if (!fact.shape.back().is_number() || fact.shape.back().number() % 2 != 0) {
    return absl::FailedPreconditionError(fmt::format("the width of {} is no even number", ValueName(**y)));
  }
  const int64_t half = fact.shape.back().number() / 2;
  // The rows: first, first + step, ...
  auto are = [&](const Term& term, int64_t first, int64_t step) {
    const Elements* elements = term.kind == Term::Kind::kValue ? context.facts->Of(term.value).elements : nullptr;
    if (elements == nullptr || static_cast<int64_t>(elements->integers.size()) != half) return false;
    const Fact& rows = context.facts->Of(term.value);
    if (rows.rank() != 2 || !rows.shape[1].is(1)) return false;
    for (int64_t i = 0; i < half; ++i) {
      if (!elements->integers[static_cast<size_t>(i)].is(first + i * step)) return false;
    }
    return true;
  };
  const bool halves = are(arguments[2], 0, 1) && are(arguments[3], half, 1);
  const bool pairs = are(arguments[2], 0, 2) && are(arguments[3], 1, 2);
  if (!halves && !pairs) {
    return absl::FailedPreconditionError("the parts are written neither to the halves of the last axis nor to its pairs");
  }
  absl::StatusOr<Value*> x1 = ValueArgument(context, arguments[4]);
  if (!x1.ok()) return x1.status();
  absl::StatusOr<Value*> x2 = ValueArgument(context, arguments[5]);
  if (!x2.ok()) return x2.status();
  const absl::StatusOr<Cut> cut = CutSource(context, *x1, *x2, *y);
  if (!cut.ok()) return cut.status();
  if (cut->mode == (halves ? "half" : "interleaved")) return Term::Text(cut->mode);
  if (halves) return Term::Text("interleave_half");
  return absl::FailedPreconditionError("the parts are cut as halves and written as pairs");
}

// whole (a, b, y, mode): the value in the shape of y of whose last axis a and b are the halves (mode "half"), or the
// even and the odd channels ("interleaved").
absl::StatusOr<Term> WholeOf(const FunctionContext& context, absl::Span<const Term> arguments) {
  const auto values = ValueArguments(context, arguments, 3);
  if (!values.ok()) return values.status();
  const absl::StatusOr<Cut> cut = CutSource(context, (*values)[0], (*values)[1], (*values)[2]);
  if (!cut.ok()) return cut.status();
  if (arguments.size() > 3 && arguments[3].text != cut->mode) {
    return absl::FailedPreconditionError(
        fmt::format("the parts are {}, not {}", cut->mode == "half" ? "halves" : "pairs",
                    arguments[3].text == "half" ? "halves" : "pairs"));
  }
  return cut->whole;
}

Term Build(std::string op, std::vector<std::pair<std::string, Term>> attributes, std::vector<Term> inputs) {
  return Term::Node({"", std::move(op), std::move(attributes), std::move(inputs), 1});
}

Term Axes(std::vector<int64_t> axes) {
  std::vector<Term> items;
  for (int64_t axis : axes) items.push_back(Term::Integer(axis));
  return Term::List(std::move(items));
}

// Two tables of rank `rank` side by side, or channel by channel.
Term Join(const Term& a, const Term& b, int rank, int64_t width, bool interleaved) {
  const Term last = Term::Integer(-1);
  if (!interleaved) return Build("Concat", {{"axis", last}}, {a, b});
  const Term pairs = Build("Concat", {{"axis", last}},
                           {Build("Unsqueeze", {{"axes", Axes({rank})}}, {a}),
                            Build("Unsqueeze", {{"axes", Axes({rank})}}, {b})});
  std::vector<int64_t> dims(static_cast<size_t>(rank) - 1, 0);  // 0: as it was
  dims.push_back(width);
  return Build("Reshape", {}, {pairs, Axes(dims)});
}

// table (a, b, x1, mode): factors a of the first and b of the second channels of every pair, made for the part x1 of
// a value, as one table for all channels of that value in the order of the mode.
absl::StatusOr<Term> Table(const FunctionContext& context, absl::Span<const Term> arguments) {
  const auto values = ValueArguments(context, arguments, 3);
  if (!values.ok()) return values.status();
  Value* a = (*values)[0];
  Value* b = (*values)[1];
  const Facts& facts = *context.facts;
  const Fact& part = facts.Of((*values)[2]);
  const Fact& table = facts.Of(a);
  if (!part.has_rank || table.rank() < 1) {
    return absl::FailedPreconditionError(fmt::format("the shape of {} is not known", ValueName(*a)));
  }
  absl::StatusOr<Term> same = SameShapes(context, arguments.subspan(0, 2));
  if (!same.ok()) return same;
  if (part.rank() < 1) return absl::FailedPreconditionError("the rank of the part is 0");
  // The part may have an axis of 1 behind its channels, and then so have its factors.
  const bool unit = part.rank() > 1 && part.shape.back().is(1) && table.shape.back().is(1) && table.rank() > 1;
  const Dim channels = unit ? part.shape[static_cast<size_t>(part.rank()) - 2] : part.shape.back();
  const Dim factors = unit ? table.shape[static_cast<size_t>(table.rank()) - 2] : table.shape.back();
  if (!channels.is_number() || !facts.dims().Equal(factors, channels)) {
    return absl::FailedPreconditionError(fmt::format("{} has {} factors for {} channels",
                                                     context.facts->Describe(a), facts.dims().ToString(factors),
                                                     facts.dims().ToString(channels)));
  }
  const bool interleaved = arguments[3].text == "interleaved";
  if (!unit && a != b) {
    const absl::StatusOr<Cut> cut = CutSource(context, a, b);
    if (cut.ok() && cut->mode == (interleaved ? "interleaved" : "half") &&
        facts.Of(cut->source).rank() == table.rank() && facts.Of(cut->source).shape.back().is(2 * channels.number())) {
      return Term::Of(cut->source);
    }
  }
  if (unit && interleaved) {
    std::vector<int64_t> dims(static_cast<size_t>(table.rank()) - 2, 0);
    dims.push_back(2 * channels.number());
    return Build("Reshape", {}, {Build("Concat", {{"axis", Term::Integer(-1)}}, {Term::Of(a), Term::Of(b)}), Axes(dims)});
  }
  auto flat = [&](Value* value) {
    if (!unit) return Term::Of(value);
    return Build("Squeeze", {{"axes", Axes({table.rank() - 1})}}, {Term::Of(value)});
  };
  return Join(flat(a), flat(b), table.rank() - (unit ? 1 : 0), 2 * channels.number(), interleaved);
}

// matrix_table (f, g, name): of y = f * x[even] + g * x[odd], with f and g [..., D/2, 2], the table of a name: "cos" is
// f[0], g[1] of every pair and "sin" -g[0], f[1].
absl::StatusOr<Term> MatrixTable(const FunctionContext& context, absl::Span<const Term> arguments) {
  const auto values = ValueArguments(context, arguments, 2);
  if (!values.ok()) return values.status();
  absl::StatusOr<Term> same = SameShapes(context, arguments.subspan(0, 2));
  if (!same.ok()) return same;
  const Fact& fact = context.facts->Of((*values)[0]);
  if (fact.rank() < 2 || !fact.shape.back().is(2) || !fact.shape[static_cast<size_t>(fact.rank()) - 2].is_number()) {
    return absl::FailedPreconditionError(
        fmt::format("{} are no columns of 2 x 2 matrices", context.facts->Describe((*values)[0])));
  }
  auto take = [](const Term& from, int64_t i) {
    return Build("Slice", {{"starts", Axes({i})}, {"ends", Axes({i + 1})}, {"axes", Axes({-1})}}, {from});
  };
  const Term& f = arguments[0];
  const Term& g = arguments[1];
  const Term pairs = arguments[2].text == "cos"
                         ? Build("Concat", {{"axis", Term::Integer(-1)}}, {take(f, 0), take(g, 1)})
                         : Build("Concat", {{"axis", Term::Integer(-1)}}, {Build("Neg", {}, {take(g, 0)}), take(f, 1)});
  std::vector<int64_t> dims(static_cast<size_t>(fact.rank()) - 2, 0);
  dims.push_back(2 * fact.shape[static_cast<size_t>(fact.rank()) - 2].number());
  return Build("Reshape", {}, {pairs, Axes(dims)});
}

// unset (attribute, number, name): holds for an attribute that is not written or has the number that means the same.
absl::StatusOr<Term> Unset(const FunctionContext& context, absl::Span<const Term> arguments) {
  if (arguments[0].kind == Term::Kind::kAbsent || EqualTerms(context, arguments[0], arguments[1])) {
    return Term::Integer(1);
  }
  return absl::FailedPreconditionError(fmt::format("{} is {}, which no kernel knows", arguments[2].text,
                                                   DescribeTerm(context, arguments[0])));
}

// rotary_mode (interleaved): of the operators RotaryEmbedding.
absl::StatusOr<Term> RotaryModeOf(const FunctionContext& context, absl::Span<const Term> arguments) {
  const int64_t interleaved = IntegerArgument(arguments[0]).value_or(0);
  if (interleaved != 0 && interleaved != 1) {
    return absl::FailedPreconditionError(
        fmt::format("interleaved is {}, neither 0 nor 1", DescribeTerm(context, arguments[0])));
  }
  return Term::Text(interleaved == 1 ? "interleaved" : "half");
}

// The dims of a RotaryEmbedding: its heads, the width of one, and how much of that turns.
struct RotaryDims {
  int rank = 0;
  int64_t heads = 0;
  int64_t width = 0;
  int64_t turned = 0;
};

absl::StatusOr<RotaryDims> RotaryDimsOf(const FunctionContext& context, const Term& x, const Term& cache,
                                        const Term& heads, const Term& turned) {
  const auto values = ValueArguments(context, std::vector<Term>{x, cache}, 2);
  if (!values.ok()) return values.status();
  const Fact& data = context.facts->Of((*values)[0]);
  const Fact& table = context.facts->Of((*values)[1]);
  RotaryDims dims;
  dims.rank = data.rank();
  if ((dims.rank != 3 && dims.rank != 4) || !data.shape.back().is_number()) {
    return absl::FailedPreconditionError(
        fmt::format("{} is neither [B, N, S, D] nor [B, S, N * D]", context.facts->Describe((*values)[0])));
  }
  if (table.rank() < 2 || !table.shape.back().is_number()) {
    return absl::FailedPreconditionError(
        fmt::format("the width of the table {} is not known", context.facts->Describe((*values)[1])));
  }
  dims.turned = IntegerArgument(turned).value_or(0);
  dims.heads = IntegerArgument(heads).value_or(0);
  const int64_t last = data.shape.back().number();
  if (dims.rank == 4) {
    dims.width = last;
  } else if (dims.heads > 0) {
    dims.width = last % dims.heads == 0 ? last / dims.heads : 0;
  } else {
    dims.width = 2 * table.shape.back().number();  // com.microsoft: a head is as wide as the table says
    dims.heads = dims.width > 0 ? last / dims.width : 0;
  }
  if (dims.turned == 0) dims.turned = dims.width;
  if (dims.width < 2 || dims.turned > dims.width || dims.turned % 2 != 0 ||
      (dims.rank == 3 && dims.heads * dims.width != last) || !table.shape.back().is(dims.turned / 2)) {
    return absl::FailedPreconditionError(fmt::format(
        "{} with {} heads and a table of {} factors does not fit a rotation of {} channels",
        context.facts->Describe((*values)[0]), dims.heads, context.facts->dims().ToString(table.shape.back()),
        dims.turned));
  }
  return dims;
}

// x with an axis of its own for the heads.
Term HeadsApart(const Term& x, const RotaryDims& dims) {
  return dims.rank == 4 ? x : Build("Reshape", {}, {x, Axes({0, 0, dims.heads, dims.width})});
}

Term Channels(const Term& x, int64_t first, int64_t last) {
  return Build("Slice", {{"starts", Axes({first})}, {"ends", Axes({last})}, {"axes", Axes({3})}}, {x});
}

// turned_part (x, cache, heads, width): of the data of a RotaryEmbedding, what turns: [B, N, S, r] or, of data in
// which heads are side by side, [B, S, N, r].
absl::StatusOr<Term> TurnedPart(const FunctionContext& context, absl::Span<const Term> arguments) {
  const auto dims = RotaryDimsOf(context, arguments[0], arguments[1], arguments[2], arguments[3]);
  if (!dims.ok()) return dims.status();
  const Term x = HeadsApart(arguments[0], *dims);
  return dims->turned == dims->width ? x : Channels(x, 0, dims->turned);
}

// turned_whole (y, x, cache, heads, width): the turned part y with the rest of x behind it, in the shape of x.
absl::StatusOr<Term> TurnedWhole(const FunctionContext& context, absl::Span<const Term> arguments) {
  const auto dims = RotaryDimsOf(context, arguments[1], arguments[2], arguments[3], arguments[4]);
  if (!dims.ok()) return dims.status();
  Term y = arguments[0];
  if (dims->turned != dims->width) {
    const Term rest = Channels(HeadsApart(arguments[1], *dims), dims->turned, dims->width);
    y = Build("Concat", {{"axis", Term::Integer(3)}}, {y, rest});
  }
  return dims->rank == 4 ? y : Build("Reshape", {}, {y, Axes({0, 0, dims->heads * dims->width})});
}

// cached_table (cache, positions, x, mode): rows of a half-wide table, as wide as a head, against the data of a
// RotaryEmbedding. Without positions the rows are there already: [B, S, r/2].
absl::StatusOr<Term> CachedTable(const FunctionContext& context, absl::Span<const Term> arguments) {
  const auto values = ValueArguments(context, std::vector<Term>{arguments[0], arguments[2]}, 2);
  if (!values.ok()) return values.status();
  const Fact& cache = context.facts->Of((*values)[0]);
  const int rank = context.facts->Of((*values)[1]).rank();
  const bool positions = arguments[1].kind == Term::Kind::kValue;
  if (cache.rank() != (positions ? 2 : 3) || !cache.shape.back().is_number() || rank < 3) {
    return absl::FailedPreconditionError(
        fmt::format("the table {} is neither [B, S, r / 2] nor, with positions, [P, r / 2]",
                    context.facts->Describe((*values)[0])));
  }
  Term table = Join(arguments[0], arguments[0], cache.rank(), 2 * cache.shape.back().number(),
                    arguments[3].text == "interleaved");
  const std::string& gather = "Gather";
  std::vector<int64_t> axes = {rank == 4 ? 1 : 2};  // the heads
  if (positions) {
    const Fact& index = context.facts->Of(arguments[1].value);
    if (index.rank() == 2) {
      table = Build(gather, {{"axis", Term::Integer(0)}}, {table, arguments[1]});
    } else if (index.rank() == 1 && index.shape[0].is(1)) {
      // com.microsoft: the position of the first of the S tokens.
      const Term shape = Build("Shape", {}, {arguments[2]});
      const Term length = Build("Gather", {{"axis", Term::Integer(0)}}, {shape, Term::Integer(rank == 4 ? 2 : 1)});
      const Term steps = Build("Range", {}, {Term::Integer(0), length, Term::Integer(1)});
      table = Build(gather, {{"axis", Term::Integer(0)}}, {table, Build("Add", {}, {arguments[1], steps})});
      axes = rank == 4 ? std::vector<int64_t>{0, 1} : std::vector<int64_t>{0, 2};
    } else {
      return absl::FailedPreconditionError(
          fmt::format("the positions {} are neither [B, S] nor one number", context.facts->Describe(arguments[1].value)));
    }
  }
  return Build("Unsqueeze", {{"axes", Axes(axes)}}, {table});
}

// rank4 (t, x): t brought to the rank 4 of the kernels, by axes of 1 in front, as x is.
absl::StatusOr<Term> RankFour(const FunctionContext& context, absl::Span<const Term> arguments) {
  // A node to be built has the rank of x.
  const Term& t = arguments[arguments[0].kind == Term::Kind::kNode ? 1 : 0];
  const auto values = ValueArguments(context, std::vector<Term>{t, arguments[1]}, 2);
  if (!values.ok()) return values.status();
  const int data = context.facts->Of((*values)[1]).rank();
  const int rank = context.facts->Of((*values)[0]).rank();
  if (rank < 1 || data < 1) {
    return absl::FailedPreconditionError(fmt::format("the rank of {} is not known", ValueName(*(*values)[0])));
  }
  if (data > 4 || rank > 4) {
    return absl::FailedPreconditionError(fmt::format("{} has {} axes, and the kernel takes 4",
                                                     context.facts->Describe((*values)[1]), std::max(rank, data)));
  }
  if (rank == 4) return arguments[0];
  std::vector<int64_t> axes;
  for (int i = 0; i < 4 - rank; ++i) axes.push_back(i);
  return Build("Unsqueeze", {{"axes", Axes(axes)}}, {arguments[0]});
}

// rank_of (y, x): the node y, which has rank 4, without the axes that rank4 put in front of x.
absl::StatusOr<Term> RankBack(const FunctionContext& context, absl::Span<const Term> arguments) {
  absl::StatusOr<Value*> value = ValueArgument(context, arguments[1]);
  if (!value.ok()) return value.status();
  const int rank = context.facts->Of(*value).rank();
  if (rank < 1 || rank > 4) return absl::FailedPreconditionError("the rank is not known");
  if (rank == 4) return arguments[0];
  std::vector<int64_t> axes;
  for (int i = 0; i < 4 - rank; ++i) axes.push_back(i);
  return Build("Squeeze", {{"axes", Axes(axes)}}, {arguments[0]});
}

// deinterleaved (x): nodes that give the even channels of x [..., D] and then the odd ones.
absl::StatusOr<Term> Deinterleave(const FunctionContext& context, absl::Span<const Term> arguments) {
  absl::StatusOr<Value*> value = ValueArgument(context, arguments[0]);
  if (!value.ok()) return value.status();
  const Fact& fact = context.facts->Of(*value);
  if (fact.rank() < 1 || !fact.shape.back().is_number() || fact.shape.back().number() % 2 != 0) {
    return absl::FailedPreconditionError(fmt::format("{} has no pairs of channels", context.facts->Describe(*value)));
  }
  const int64_t width = fact.shape.back().number();
  const size_t leading = static_cast<size_t>(fact.rank()) - 1;
  std::vector<int64_t> pairs(leading, 0);
  std::vector<int64_t> flat(leading, 0);
  std::vector<int64_t> perm;
  for (size_t i = 0; i < leading; ++i) perm.push_back(static_cast<int64_t>(i));
  perm.insert(perm.end(), {fact.rank(), fact.rank() - 1});
  pairs.insert(pairs.end(), {width / 2, 2});
  flat.push_back(width);
  const Term apart = Build("Transpose", {{"perm", Axes(perm)}}, {Build("Reshape", {}, {arguments[0], Axes(pairs)})});
  return Build("Reshape", {}, {apart, Axes(flat)});
}

// read_once (x): holds when one node reads x and x is no output of the graph: a kernel may write where it was.
absl::StatusOr<Term> ReadOnce(const FunctionContext& context, absl::Span<const Term> arguments) {
  absl::StatusOr<Value*> value = ValueArgument(context, arguments[0]);
  if (!value.ok()) return value.status();
  const bool ours = !(*value)->is_graph_output && (*value)->producer != nullptr;
  if (ours && CountReaders(**value) <= 1) return Term::Integer(1);
  return absl::FailedPreconditionError(
      fmt::format("{} is also needed elsewhere, and the kernel writes its result in its place", ValueName(**value)));
}

// swapped (x, t): x, or x with its last two dims swapped where t is 1.
absl::StatusOr<Term> Swapped(const FunctionContext& context, absl::Span<const Term> arguments) {
  absl::StatusOr<Value*> value = ValueArgument(context, arguments[0]);
  if (!value.ok()) return value.status();
  if (arguments[1].kind != Term::Kind::kNumber) return absl::FailedPreconditionError("swapped wants a number");
  if (arguments[1].number == 0) return arguments[0];
  const int rank = context.facts->Of(*value).rank();
  if (rank < 2) return absl::FailedPreconditionError(fmt::format("{} is no matrix", ValueName(**value)));
  std::vector<Term> perm;
  for (int64_t i = 0; i < rank - 2; ++i) perm.push_back(Term::Integer(i));
  perm.push_back(Term::Integer(rank - 1));
  perm.push_back(Term::Integer(rank - 2));
  return Term::Node({"", "Transpose", {{"perm", Term::List(std::move(perm))}}, {arguments[0]}, 1});
}

// times_number (n, f): a node times the number f; the node itself where f is 1.
absl::StatusOr<Term> TimesNumber(const FunctionContext&, absl::Span<const Term> arguments) {
  if (arguments[1].kind != Term::Kind::kNumber) return absl::FailedPreconditionError("times_number wants a number");
  if (arguments[1].number == 1) return arguments[0];
  return Term::Node({"", "Mul", {}, {arguments[0], arguments[1]}, 1});
}

// plus_value (n, z): a node plus z; the node itself where z is absent.
absl::StatusOr<Term> PlusValue(const FunctionContext&, absl::Span<const Term> arguments) {
  if (arguments[1].kind == Term::Kind::kAbsent) return arguments[0];
  return Term::Node({"", "Add", {}, {arguments[0], arguments[1]}, 1});
}

// read_by_one (x): holds when one node reads x, which is no output of the graph.
absl::StatusOr<Term> ReadByOne(const FunctionContext& context, absl::Span<const Term> arguments) {
  absl::StatusOr<Value*> value = ValueArgument(context, arguments[0]);
  if (!value.ok()) return value.status();
  if (std::string why = OtherReader(*value); !why.empty()) return absl::FailedPreconditionError(why);
  return Term::Integer(1);
}

constexpr FunctionRow kFunctions[] = {
    {"shape", 1, 1, Shape, "The list of dims of a value."},
    {"dim", 2, 2, DimOf, "One dim of a value; negative axes count from the end."},
    {"rank", 1, 1, Rank, "The number of dims of a value."},
    {"dtype", 1, 1, TypeOf, "The element type of a value."},
    {"value", 1, 1, NumberOf, "The number of a constant that broadcasts as a scalar."},
    {"sqrt", 1, 1, SquareRoot, "The square root of a number."},
    {"half", 1, 1, Half, "0 or 1: which half of the last axis a Slice, Split or Gather gives."},
    {"gate_pair", 2, 2, GatePair, "Holds for the halves of one tensor, and for two linears of one input."},
    {"linear", 1, 1, Linear, "Holds for the output of a linear layer in any spelling."},
    {"linear_input", 1, 1, LinearInput, "What a linear multiplies, as a matrix [rows, K]."},
    {"linear_weight", 1, 1, LinearWeight, "The weight of a linear as a matrix [K, N]."},
    {"linear_bias", 1, 1, LinearBias, "The bias [N] of a linear, or no value."},
    {"float_bias", 1, 1, FloatBias, "The same, and in float32 where the linear is in bfloat16."},
    {"without_bias", 1, 1, WithoutBias, "Holds for a linear without a bias."},
    {"rows_as", 2, 2, RowsAs, "A matrix [rows, N] in the shape of a linear's output."},
    {"both_linear", 2, 2, BothLinear, "Holds when both values are outputs of linear layers."},
    {"merged_linear", 2, 2, Merged, "One linear in place of two of the same input: [a | b] along the last axis."},
    {"merged_input", 2, 2, MergedInput, "What two linears of the same input multiply."},
    {"merged_weight", 2, 2, MergedWeight, "The weights of two linears of the same input side by side, [K, 2 N]."},
    {"merged_bias", 2, 2, MergedBias, "The biases of two linears one behind the other, or no value."},
    {"no_gate", 1, 1, NoGate, "Holds unless a value is multiplied by one that is computed."},
    {"mask_fill", 1, 1, MaskFill, "Holds for a constant that takes a key out of a softmax."},
    {"in_one_type", 3, 3, OneType, "A value in the type that three operands of one kernel can have."},
    {"explicit_mask", 3, 3, MaskArgument,
     "A mask as bool [B or 1, 1, S, T], true = masked, for a query and a key."},
    {"empty_rows", 2, 2, EmptyRows, "Notes what happens to rows in which every key is masked."},
    {"empty", 1, 1, Empty, "A constant of shape [0]: an absent input in the middle, for ATC."},
    {"ones", 2, 2, Ones, "A constant [n] of ones of a type."},
    {"filled", 3, 3, Filled, "A constant of dims, all of whose elements are one number, of a type."},
    {"last", 1, 1, LastAxes, "-k if these axes are the last k ones."},
    {"last_axes", 1, 1, LastAxesOf, "The last k axes, [-k, ..., -1]."},
    {"size", 2, 2, SizeOf, "The number of elements along some axes of a value."},
    {"reduced", 3, 3, Reduced, "Holds when a value has the shape of another with 1 in place of some axes."},
    {"weight", 4, 4, NormWeight, "The weight of a norm over the dims from an axis on, with exactly these dims."},
    {"per_channel", 2, 2, PerChannel, "Holds for a weight that has one element for each channel."},
    {"channels", 3, 3, ChannelWeight, "The weight of a norm for each channel, as [C]."},
    {"channels_last", 1, 1, ChannelsLast, "The perm of a Transpose that moves axis 1 behind the others."},
    {"channels_first", 1, 1, ChannelsFirst, "The perm of a Transpose that moves the last axis to place 1."},
    {"channel_dims", 1, 1, ChannelDims, "[C, 1, 1]: the dims of a weight that broadcasts over [N, C, H, W]."},
    {"multiple_of", 2, 2, MultipleOf, "Holds when a dim is provably a multiple of a number."},
    {"all_are", 2, 2, AllAre, "Holds for a constant all of whose elements are a number."},
    {"floating", 1, 1, Floating, "Holds for a value of a floating-point type."},
    {"constant", 1, 1, ConstantValue, "Holds for a constant."},
    {"readers", 1, 1, Readers, "How many inputs of nodes, and outputs of the graph, a value is."},
    {"negative_axes", 1, 1, NegativeAxes, "Holds when the axes were written as an attribute that counts from the end."},
    {"recognised", 1, 1, Recognised, "Holds for what a rule made, not for an operator that the model has."},
    {"absent", 0, 0, AbsentValue, "No value: a weight that is not there."},
    {"with_layer_normalization", 0, 0, WithLayerNormalization, "Holds from opset 17 on, which has LayerNormalization."},
    {"opset_from", 1, 1, OpsetFrom, "Holds from this opset of the default domain on."},
    {"opset_before", 1, 1, OpsetBefore, "Holds before this opset of the default domain."},
    {"unread", 1, 1, Unread, "Holds for an output that is not there or that nothing reads."},
    {"place_rows", 3, 3, PlaceRows, "Rows of a table, or the first rows, as many as ids have columns."},
    {"rescalable", 2, 2, Rescalable, "Holds where a value may be scaled so that a norm's epsilon becomes 1e-6."},
    {"never", 1, 1, Never, "Does not hold; says why what looks like the construct is not it."},
    {"single", 2, 2, Single, "A constant [1] of a number, of a type."},
    {"number", 1, 1, PlainNumber, "A dim that must be a plain number."},
    {"kv_heads", 2, 2, KeyValueHeads, "num_key_value_heads: 0 when there are as many as heads."},
    {"attention_scale", 2, 2, AttentionScale, "A scale, or 1 / sqrt(head_dim) where it is left out."},
    {"same_shape", 2, 2, SameShapes, "Holds when two values provably have one shape."},
    {"broadcasts_to", 2, 2, BroadcastsTo, "Holds when combining a with b gives b's shape."},
    {"converted", 3, 3, Converted, "A node, with a Cast behind it where its type is not the one wanted."},
    {"product", 1, 1, Product, "The product of a list of dims."},
    {"rotation", 3, 4, Rotation,
     "How a value is another one turned: \"half\", \"interleaved\" or \"quarter\".", "Neg"},
    {"sign_vector", 1, 1, SignVector, "Holds for a constant of numbers 1 and -1, not all the same."},
    {"pair_rotation", 5, 5, PairRotation, "The mode of a rotation computed part by part.", "Sub"},
    {"written_rotation", 6, 6, WrittenRotation, "The same where the parts are written to rows of a tensor.", "Sub"},
    {"part_rotation", 3, 3, PartRotation, "The same where the parts stand side by side among others.", "Sub"},
    {"part_whole", 3, 3, PartWhole, "The value that is rotated then."},
    {"whole", 3, 4, WholeOf, "The value of which two others are the halves or the even and odd channels."},
    {"rotation_source", 2, 2, RotationSource, "What a rotation of x in a mode takes: x, or what x was taken apart from."},
    {"deinterleaved", 1, 1, Deinterleave, "The even channels of a value and then the odd ones, as nodes to be built."},
    {"table", 4, 4, Table, "The factors of both channels of a pair as one table."},
    {"matrix_table", 3, 3, MatrixTable, "cos or sin of 2 x 2 matrices, as one table of pairs."},
    {"unset", 3, 3, Unset, "Holds for an attribute that is not written, or has the number given."},
    {"rotary_mode", 1, 1, RotaryModeOf, "The mode that an attribute `interleaved` means."},
    {"turned_part", 4, 4, TurnedPart, "What turns of the data of a RotaryEmbedding."},
    {"turned_whole", 5, 5, TurnedWhole, "A turned part with the rest of the data of a RotaryEmbedding."},
    {"cached_table", 4, 4, CachedTable, "Rows of a half-wide table, as wide as a head."},
    {"rank4", 2, 2, RankFour, "A value with axes of 1 in front up to rank 4."},
    {"rank_of", 2, 2, RankBack, "A node of rank 4 without the axes that rank4 put in front."},
    {"read_once", 1, 1, ReadOnce, "Holds when one node reads a value that is computed and no output of the graph."},
    {"swapped", 2, 2, Swapped, "A value, with its last two dims swapped where the number is 1."},
    {"times_number", 2, 2, TimesNumber, "A node times a number; the node itself where that is 1."},
    {"plus_value", 2, 2, PlusValue, "A node plus a value; the node itself where that is absent."},
    {"read_by_one", 1, 1, ReadByOne, "Holds when one node reads a value that is no output of the graph."},
};

}  // namespace

absl::Span<const FunctionRow> Functions() { return kFunctions; }

int FindFunction(std::string_view name) {
  for (size_t i = 0; i < std::size(kFunctions); ++i) {
    if (kFunctions[i].name == name) return static_cast<int>(i);
  }
  return -1;
}

std::optional<std::vector<Dim>> ListParameter(const Facts& facts, const Node& node, std::string_view name,
                                              size_t input) {
  std::vector<Dim> list;
  if (const auto attribute = IntsAttribute(node, name); attribute.has_value()) {
    for (int64_t number : *attribute) list.push_back(Dim::Of(number));
    return list;
  }
  const Value* value = node.input(input);
  if (value == nullptr || facts.Of(value).elements == nullptr) return std::nullopt;
  const auto& elements = facts.Of(value).elements->integers;
  list.assign(elements.begin(), elements.end());
  return list;
}

std::optional<std::vector<int64_t>> IntsParameter(const Facts& facts, const Node& node, std::string_view name,
                                                  size_t input) {
  const auto list = ListParameter(facts, node, name, input);
  if (!list.has_value()) return std::nullopt;
  std::vector<int64_t> numbers;
  for (Dim element : *list) {
    if (!element.is_number()) return std::nullopt;
    numbers.push_back(element.number());
  }
  return numbers;
}

bool ConstantNumber(const Facts& facts, const Value* value, double* number) {
  const Fact& fact = facts.Of(value);
  if (fact.is_splat) {
    *number = fact.splat;
    return true;
  }
  if (fact.elements == nullptr) return false;
  const auto& floats = fact.elements->floats;
  const auto& integers = fact.elements->integers;
  if (!floats.empty()) {
    if (!std::all_of(floats.begin(), floats.end(), [&](double f) { return f == floats[0]; })) return false;
    *number = floats[0];
    return true;
  }
  if (integers.empty() || !integers[0].is_number()) return false;
  if (!std::all_of(integers.begin(), integers.end(), [&](Dim i) { return i == integers[0]; })) return false;
  *number = static_cast<double>(integers[0].number());
  return true;
}

std::string DescribeTerm(const FunctionContext& context, const Term& term) {
  switch (term.kind) {
    case Term::Kind::kUnbound:
      return "nothing";
    case Term::Kind::kAbsent:
      return "no value";
    case Term::Kind::kValue: {
      double number = 0;
      if (ConstantNumber(*context.facts, term.value, &number)) {
        return fmt::format("{} = {}", ValueName(*term.value), static_cast<float>(number));
      }
      return fmt::format("{} ({})", ValueName(*term.value), context.facts->Describe(term.value));
    }
    case Term::Kind::kNumber:
      return term.is_integer ? fmt::format("{}", static_cast<int64_t>(term.number))
                             : fmt::format("{}", term.number);
    case Term::Kind::kDim:
      return context.facts->dims().ToString(term.dim);
    case Term::Kind::kList: {
      std::string text = "[";
      for (const Term& item : *term.list) {
        if (text.size() > 1) text += ", ";
        text += DescribeTerm(context, item);
      }
      return text + "]";
    }
    case Term::Kind::kType:
      return std::string(DataTypeName(term.type));
    case Term::Kind::kText:
      return fmt::format("\"{}\"", term.text);
    case Term::Kind::kNode:
      return fmt::format("a {} to be built", term.node->op_type);
  }
  return "?";
}

bool EqualTerms(const FunctionContext& context, const Term& a, const Term& b) {
  if (a.kind == Term::Kind::kList || b.kind == Term::Kind::kList) {
    // [x] and x are the same list of axes.
    if (a.kind != b.kind) {
      const Term& list = a.kind == Term::Kind::kList ? a : b;
      const Term& item = a.kind == Term::Kind::kList ? b : a;
      return list.list->size() == 1 && item.kind != Term::Kind::kList &&
             EqualTerms(context, (*list.list)[0], item);
    }
    if (a.list->size() != b.list->size()) return false;
    for (size_t i = 0; i < a.list->size(); ++i) {
      if (!EqualTerms(context, (*a.list)[i], (*b.list)[i])) return false;
    }
    return true;
  }
  const bool a_dim = a.kind == Term::Kind::kDim;
  const bool b_dim = b.kind == Term::Kind::kDim;
  if (a_dim || b_dim) return context.facts->dims().Equal(DimOfTerm(a), DimOfTerm(b));
  // A type is written as its number in attributes (Cast's `to`).
  if (a.kind == Term::Kind::kType && b.kind == Term::Kind::kNumber)
    return static_cast<double>(a.type) == b.number;
  if (b.kind == Term::Kind::kType && a.kind == Term::Kind::kNumber)
    return static_cast<double>(b.type) == a.number;
  if (a.kind != b.kind) return false;
  switch (a.kind) {
    case Term::Kind::kValue:
      return context.numbering->Same(a.value, b.value);
    case Term::Kind::kNumber:
      // Attributes are float: 1e-06 read back is 9.99999997e-07.
      return a.number == b.number || std::fabs(a.number - b.number) <= 1e-6 * std::fabs(a.number);
    case Term::Kind::kType:
      return a.type == b.type;
    case Term::Kind::kText:
      return a.text == b.text;
    case Term::Kind::kNode:
      return a.node == b.node && a.output == b.output;
    case Term::Kind::kAbsent:
      return true;
    default:
      return false;
  }
}

}  // namespace ascend_fuse
