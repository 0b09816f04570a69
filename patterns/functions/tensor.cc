// Functions of rules about shapes, element types and constants.
#include "patterns/functions/tensor.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "fmt/format.h"
#include "ir/infer/facts.h"
#include "ir/movement/axis.h"
#include "ir/one_of.h"
#include "ir/rounding.h"
#include "ir/status_macros.h"
#include "patterns/functions/constructs.h"
#include "patterns/how_to_bind.h"
#include "patterns/terms/refusal.h"

namespace ascend_fuse {
namespace {

absl::StatusOr<const Value*> ValueOf(const FunctionContext& context, const Term& term) {
  if (term.kind == Term::Kind::kValue) return term.value;
  return absl::InvalidArgumentError(fmt::format("{} is not a value of the graph", DescribeTerm(context, term)));
}

const Term* FindAttribute(const DeferredNode& node, std::string_view name) {
  for (const auto& [key, term] : node.attributes) {
    if (key == name) return &term;
  }
  return nullptr;
}

// The operators whose result has the type of the data that they move or compute with, their first input.
constexpr std::string_view kTypeOfFirstInput[] = {"Abs",
                                                  "Add",
                                                  "Ceil",
                                                  "Clip",
                                                  "Concat",
                                                  "Conv",
                                                  "Cos",
                                                  "Div",
                                                  "Elu",
                                                  "Erf",
                                                  "Exp",
                                                  "Expand",
                                                  "Flatten",
                                                  "Floor",
                                                  "Gather",
                                                  "Gelu",
                                                  "Gemm",
                                                  "HardSigmoid",
                                                  "Identity",
                                                  "InstanceNormalization",
                                                  "LayerNormalization",
                                                  "LeakyRelu",
                                                  "Log",
                                                  "MatMul",
                                                  "Max",
                                                  "Min",
                                                  "Mod",
                                                  "Mul",
                                                  "Neg",
                                                  "Pad",
                                                  "Pow",
                                                  "Range",
                                                  "Reciprocal",
                                                  "ReduceL2",
                                                  "ReduceMax",
                                                  "ReduceMean",
                                                  "ReduceMin",
                                                  "ReduceProd",
                                                  "ReduceSum",
                                                  "ReduceSumSquare",
                                                  "Relu",
                                                  "Reshape",
                                                  "Round",
                                                  "Sigmoid",
                                                  "Sin",
                                                  "Slice",
                                                  "Softmax",
                                                  "Softplus",
                                                  "Split",
                                                  "Sqrt",
                                                  "Squeeze",
                                                  "Sub",
                                                  "Sum",
                                                  "Swish",
                                                  "Tanh",
                                                  "Tile",
                                                  "Transpose",
                                                  "Trilu",
                                                  "Unsqueeze"};
constexpr std::string_view kBool[] = {"And", "Equal", "Greater", "GreaterOrEqual", "IsInf", "IsNaN", "Less", "LessOrEqual",
                                      "Not", "Or",    "Xor"};
constexpr std::string_view kInt64[] = {"ArgMax", "ArgMin", "NonZero", "Shape", "Size"};

absl::StatusOr<DataType> TypeOfNode(const FunctionContext& context, const DeferredNode& node) {
  const auto unknown = [&] {
    return Refuse(fmt::format("the type of a {} to be built is not known", node.op_type), "type-not-known");
  };
  if (!node.domain.empty()) return unknown();
  const bool cast = node.op_type == "Cast";
  if (cast || node.op_type == "@Constant") {
    const Term* type = FindAttribute(node, cast ? "to" : "type");
    if (type == nullptr) return unknown();
    if (type->kind == Term::Kind::kType) return type->type;
    const auto number = IntegerOf(*type);  // as Cast writes it
    return number.has_value() ? absl::StatusOr<DataType>(static_cast<DataType>(*number)) : unknown();
  }
  if (IsOneOf(node.op_type, kBool)) return DataType::kBool;
  if (IsOneOf(node.op_type, kInt64)) return DataType::kInt64;
  const bool where = node.op_type == "Where";  // its first input is the condition
  if (!where && node.op_type != "@Join" && !IsOneOf(node.op_type, kTypeOfFirstInput)) return unknown();
  // Numbers among the inputs take the type of the others.
  for (size_t i = where ? 1 : 0; i < node.inputs.size(); ++i) {
    const Term& input = node.inputs[i];
    if (input.kind == Term::Kind::kValue || input.kind == Term::Kind::kNode) return TypeOf(context, input);
    if (input.kind != Term::Kind::kNumber) break;
  }
  return unknown();
}

absl::StatusOr<std::vector<Term>> Shape(const FunctionContext& context, Shaped x) { return ShapeOf(context, x.term); }

absl::StatusOr<Dim> DimOfAxis(const FunctionContext& context, Shaped x, int64_t axis) { return DimAt(context, x.term, axis); }

absl::StatusOr<int64_t> Rank(const FunctionContext& context, Shaped x) {
  ASSIGN_OR_RETURN(const auto shape, ShapeOf(context, x.term));
  return static_cast<int64_t>(shape.size());
}

absl::StatusOr<DataType> ElementType(const FunctionContext& context, Shaped x) { return TypeOf(context, x.term); }

absl::StatusOr<double> ScalarNumber(const FunctionContext& context, AnyOf<kValueTerm | kNumberTerm> x) {
  const Term& term = x.term;
  if (term.kind != Term::Kind::kValue) return registry::Argument<double>::Read(term);
  double number = 0;
  const Fact& fact = context.facts->Of(term.value);
  const bool scalar =
      fact.has_rank && fact.rank() <= 1 && std::all_of(fact.shape.begin(), fact.shape.end(), [](Dim dim) { return dim.is(1); });
  if (!(term.like_scalar || scalar) || !ConstantNumber(*context.facts, term.value, &number)) {
    return Refuse(fmt::format("{} ({}) is not a constant number", ValueName(*term.value), context.facts->Describe(term.value)),
                  "not-constant");
  }
  return number;
}

absl::StatusOr<double> SquareRoot(double n) {
  if (!(n >= 0)) return absl::InvalidArgumentError(fmt::format("{} has no square root", n));
  return std::sqrt(n);
}

Holds AllAre(const FunctionContext& context, const Value* x, double n) {
  double number = 0;
  if (ConstantNumber(*context.facts, x, &number) && number == n) return absl::OkStatus();
  return Refuse(fmt::format("not all elements of {} are {}", ValueName(*x), n));
}

Holds IsConstant(const FunctionContext& context, const Value* x) {
  if (x->IsConstant() || context.facts->Of(x).elements != nullptr) return absl::OkStatus();
  return Refuse(fmt::format("{} is not a constant", ValueName(*x)), "not-constant");
}

Holds Floating(const FunctionContext& context, Shaped x) {
  ASSIGN_OR_RETURN(const auto type, TypeOf(context, x.term));
  if (IsFloat(type)) return absl::OkStatus();
  return Refuse(fmt::format("{} holds no floating-point numbers", DescribeTerm(context, x.term)));
}

Holds Integral(const FunctionContext& context, Shaped x) {
  ASSIGN_OR_RETURN(const auto type, TypeOf(context, x.term));
  if (IsInteger(type)) return absl::OkStatus();
  return Refuse(fmt::format("{} holds no integers", DescribeTerm(context, x.term)));
}

absl::StatusOr<double> LargestNumber(const FunctionContext& context, Shaped x) {
  ASSIGN_OR_RETURN(const auto type, TypeOf(context, x.term));
  if (const std::optional<double> largest = LargestFinite(type); largest.has_value()) return *largest;
  return Refuse(fmt::format("{} holds no floating-point numbers", DescribeTerm(context, x.term)));
}

absl::StatusOr<DataType> AtLeastFloat(const FunctionContext& context, Shaped x) {
  ASSIGN_OR_RETURN(const auto type, TypeOf(context, x.term));
  return type == DataType::kDouble ? DataType::kDouble : DataType::kFloat;
}

Holds SameShape(const FunctionContext& context, Shaped a, Shaped b) {
  ASSIGN_OR_RETURN(const auto first, ShapeOf(context, a.term));
  ASSIGN_OR_RETURN(const auto second, ShapeOf(context, b.term));
  if (EqualLists(context, first, second)) return absl::OkStatus();
  return Refuse(fmt::format("the shapes {} and {} are not the same", DescribeList(context, first), DescribeList(context, second)),
                "shapes-differ");
}

// Whether a may be broadcast to b for some of what their dims can be.
bool MayBroadcast(const FunctionContext& context, List a, List b) {
  if (a.size() > b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i) {
    const Dim dim = DimOf(a[a.size() - 1 - i]);
    if (context.dims->NotEqual(dim, Dim::Of(1)) && context.dims->NotEqual(dim, DimOf(b[b.size() - 1 - i]))) return false;
  }
  return true;
}

Holds BroadcastsTo(const FunctionContext& context, Shaped a, Shaped b) {
  ASSIGN_OR_RETURN(const auto first, ShapeOf(context, a.term));
  ASSIGN_OR_RETURN(const auto second, ShapeOf(context, b.term));
  if (Broadcasts(context, first, second)) return absl::OkStatus();
  const std::string a_shape = DescribeList(context, first);
  const std::string b_shape = DescribeList(context, second);
  if (MayBroadcast(context, first, second)) {
    return Refuse(fmt::format("that the shape {} broadcasts to {} is not proved", a_shape, b_shape), "shapes-differ");
  }
  return Refuse(fmt::format("the shape {} does not broadcast to {}", a_shape, b_shape), "shapes-differ");
}

Holds MultipleOf(const FunctionContext& context, Dim d, Dim n) {
  if (n.is_number() && n.number() > 0 && d.known()) {
    const bool multiple = d.is_number() ? d.number() % n.number() == 0 : context.dims->ExactDiv(d, n).known();
    if (multiple) return absl::OkStatus();
  }
  return Refuse(fmt::format("{} is not a multiple of {}", context.dims->ToString(d), context.dims->ToString(n)),
                "not-a-multiple");
}

absl::StatusOr<Dim> Product(const FunctionContext& context, List dims) {
  Dim product = Dim::Of(1);
  for (const Term& item : dims) product = context.dims->Mul(product, DimOf(item));
  if (!product.known()) return Refuse("the product of the dims is not known", "shape-not-known");
  return product;
}

constexpr std::array kRows = {
    Function<"shape (x)", Shape>("The dims of x."),
    Function<"dim (x, axis)", DimOfAxis>("One dim of x; a negative axis counts from the end."),
    Function<"rank (x)", Rank>("The number of dims of x."),
    Function<"dtype (x)", ElementType>("The element type of x."),
    Function<"value (x)", ScalarNumber>("The number of a constant x that broadcasts as a scalar."),
    Function<"sqrt (n)", SquareRoot>("The square root of n."),
    Function<"number (d)", PlainNumber>("The dim d, which must be a number in the graph."),
    Function<"product (dims)", Product>("The product of a list of dims."),
    Function<"all_are (x, n)", AllAre>("Holds for a constant x all of whose elements are n."),
    Function<"constant (x)", IsConstant>("Holds for a value x that no input of the graph changes."),
    Function<"floating (x)", Floating>("Holds where x is of a floating-point type."),
    Function<"integral (x)", Integral>("Holds where x is of an integer type."),
    Function<"largest_number (x)", LargestNumber>("The largest finite number of the floating-point type of x."),
    Function<"at_least_float (x)", AtLeastFloat>("The type to compute with x in: double where x is of it, else float."),
    Function<"same_shape (a, b)", SameShape>("Holds where a and b provably have one shape."),
    Function<"broadcasts_to (a, b)", BroadcastsTo>("Holds where combining a with b gives b's shape."),
    Function<"multiple_of (d, n)", MultipleOf>("Holds where the dim d is provably a multiple of the number n."),
};

}  // namespace

absl::StatusOr<std::vector<Term>> ShapeOf(const FunctionContext& context, const Term& term) {
  if (term.kind == Term::Kind::kNode && term.node->op_type == "Transpose" && term.node->domain.empty() &&
      term.node->attributes.size() == 1 && term.node->attributes[0].second.kind == Term::Kind::kList) {
    const auto inner = ShapeOf(context, term.node->inputs[0]);
    if (!inner.ok()) return inner;
    std::vector<Term> dims;
    for (const Term& axis : *term.node->attributes[0].second.list) {
      const int64_t index = IntegerOf(axis).value_or(-1);
      if (index < 0 || index >= static_cast<int64_t>(inner->size())) {
        return absl::InvalidArgumentError("perm does not fit the rank");
      }
      dims.push_back((*inner)[static_cast<size_t>(index)]);
    }
    return dims;
  }
  ASSIGN_OR_RETURN(const Value* value, ValueOf(context, term));
  const Fact& fact = context.facts->Of(value);
  if (!fact.has_rank) {
    return Refuse(fmt::format("the shape of {} is not known", ValueName(*value)), "shape-not-known");
  }
  std::vector<Term> dims;
  for (Dim dim : fact.shape) dims.push_back(TermOfDim(context.dims->Resolve(dim)));
  return dims;
}

absl::StatusOr<Dim> DimAt(const FunctionContext& context, const Term& term, int64_t axis) {
  ASSIGN_OR_RETURN(const auto shape, ShapeOf(context, term));
  const int64_t index = NormalizeAxis(axis, static_cast<int64_t>(shape.size()));
  if (index < 0) return absl::InvalidArgumentError("the axis is beyond the rank");
  return DimOf(shape[static_cast<size_t>(index)]);
}

absl::StatusOr<DataType> TypeOf(const FunctionContext& context, const Term& term) {
  if (term.kind == Term::Kind::kNode) return TypeOfNode(context, *term.node);
  ASSIGN_OR_RETURN(const Value* value, ValueOf(context, term));
  const DataType type = context.facts->Of(value).type;
  if (type == DataType::kUndefined) {
    return Refuse(fmt::format("the type of {} is not known", ValueName(*value)), "type-not-known");
  }
  return type;
}

absl::StatusOr<int64_t> PlainNumber(const FunctionContext& context, Dim d) {
  if (d.is_number()) return d.number();
  return Refuse(fmt::format("{} must be a number in the graph; {}", context.dims->ToString(d), HowToBind(*context.dims, {d})),
                "needs-dim");
}

std::string NameOfTerm(const FunctionContext& context, const Term& term) {
  return term.kind == Term::Kind::kValue ? std::string(ValueName(*term.value)) : DescribeTerm(context, term);
}

std::string DescribeList(const FunctionContext& context, List items) {
  return DescribeTerm(context, Term::List({items.begin(), items.end()}));
}

bool EqualLists(const FunctionContext& context, List a, List b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [&](const Term& x, const Term& y) { return EqualTerms(context, x, y); });
}

bool Broadcasts(const FunctionContext& context, List a, List b) {
  if (a.size() > b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i) {
    const Dim dim = DimOf(a[a.size() - 1 - i]);
    if (!dim.is(1) && !context.dims->Equal(dim, DimOf(b[b.size() - 1 - i]))) return false;
  }
  return true;
}

absl::Span<const FunctionRow> TensorFunctions() { return kRows; }

}  // namespace ascend_fuse
