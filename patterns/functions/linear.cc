// Functions of rules about linear layers: their parts as kernels take them, and two of one input merged into one.
#include <array>

#include "fmt/format.h"
#include "ir/status_macros.h"
#include "patterns/analysis/halves.h"
#include "patterns/analysis/linear.h"
#include "patterns/functions/constructs.h"
#include "patterns/terms/node_builder.h"
#include "patterns/terms/refusal.h"

namespace ascend_fuse {
namespace {

Holds Linear(const FunctionContext& context, const Value* y) { return FindLinear(context, y).status(); }

absl::StatusOr<int64_t> BothLinear(const FunctionContext& context, const Value* a, const Value* b) {
  return FindLinear(context, a).ok() && FindLinear(context, b).ok() ? 1 : 0;
}

Holds GatePair(const FunctionContext& context, const Value* a, const Value* b) {
  const absl::StatusOr<HalfOf> first = FindHalf(context, a);
  const absl::StatusOr<HalfOf> second = FindHalf(context, b);
  if (first.ok() && second.ok() && context.numbering->Same(first->whole, second->whole) && first->axis == second->axis &&
      first->strided == second->strided && first->index != second->index) {
    return absl::OkStatus();
  }
  const absl::StatusOr<LinearView> gate = FindLinear(context, a);
  const absl::StatusOr<LinearView> up = FindLinear(context, b);
  if (gate.ok() && up.ok() && context.numbering->Same(gate->x, up->x)) return absl::OkStatus();
  return Refuse(
      fmt::format("{} and {} are neither the halves of one tensor nor linears of one input", ValueName(*a), ValueName(*b)),
      "gate-not-paired");
}

// A matrix [N, K] as [K, N] where it is transposed.
Term Upright(Term matrix, bool transposed) { return transposed ? build::Transpose(std::move(matrix), {1, 0}) : matrix; }

absl::StatusOr<Term> Merged(const FunctionContext& context, const Value* a, const Value* b) {
  ASSIGN_OR_RETURN(const MergedView merged, MergedLinear(context, a, b));
  const bool biased = merged.bias.kind != Term::Kind::kAbsent;
  const Term x = Term::Of(merged.x);
  if (merged.gemm) {
    std::vector<Term> inputs = {x, merged.weight};
    if (biased) inputs.push_back(merged.bias);
    return build::Op("Gemm", std::move(inputs), {{"transB", merged.transposed ? Term::Integer(1) : Term::Absent()}});
  }
  Term product = build::Op("MatMul", {x, Upright(merged.weight, merged.transposed)});
  return biased ? build::Op("Add", {std::move(product), merged.bias}) : product;
}

// The linear that computes y, if a node may take its place. Who else reads y itself is the rule's question: where y is
// inside what is replaced, single_reader.
absl::StatusOr<LinearView> OwnLinear(const FunctionContext& context, const Value* y) {
  ASSIGN_OR_RETURN(LinearView view, FindLinear(context, y));
  if (!view.plain) {
    return Refuse(fmt::format("the linear that gives {} cannot be taken into a node: {}", ValueName(*y), view.why_not_plain),
                  "linear-not-plain");
  }
  for (size_t i = 0; i + view.of_weight < view.chain.size(); ++i) {
    if (view.chain[i] == y) continue;
    if (const std::string why = OtherReader(view.chain[i]); !why.empty()) return Refuse(why, "value-shared");
  }
  return view;
}

absl::StatusOr<Term> LinearInput(const FunctionContext& context, const Value* y) {
  ASSIGN_OR_RETURN(const LinearView view, OwnLinear(context, y));
  const Fact& x = context.facts->Of(view.x);
  if (x.rank() == 2) return Term::Of(view.x);
  if (x.rank() < 2 || !x.shape.back().is_number()) {
    return Refuse(fmt::format("the shape of {} is not known", ValueName(*view.x)), "shape-not-known");
  }
  return build::Reshape(Term::Of(view.x), {-1, x.shape.back().number()});
}

absl::StatusOr<Term> LinearWeight(const FunctionContext& context, const Value* y) {
  ASSIGN_OR_RETURN(const LinearView view, OwnLinear(context, y));
  return Upright(Term::Of(view.weight), view.transposed);
}

absl::StatusOr<const Value*> LinearBias(const FunctionContext& context, const Value* y) {
  ASSIGN_OR_RETURN(const LinearView view, OwnLinear(context, y));
  if (view.bias != nullptr && context.facts->Of(view.bias).rank() != 1) {
    return Refuse(fmt::format("the bias {} has not one dim", ValueName(*view.bias)), "bias-not-taken");
  }
  return view.bias;
}

Holds WithoutBias(const FunctionContext& context, const Value* y) {
  ASSIGN_OR_RETURN(const LinearView view, OwnLinear(context, y));
  if (view.bias == nullptr) return absl::OkStatus();
  return Refuse(
      fmt::format("the linear has a bias ({}), which the kernel does not take with this activation", ValueName(*view.bias)),
      "bias-not-taken");
}

absl::StatusOr<Term> RowsAs(const FunctionContext& context, const Term& node, const Value* y) {
  const Fact& fact = context.facts->Of(y);
  if (fact.rank() == 2) return node;
  std::vector<int64_t> dims;
  int symbolic = 0;
  for (Dim dim : fact.shape) {
    dims.push_back(dim.is_number() ? dim.number() : -1);
    symbolic += dim.is_number() ? 0 : 1;
  }
  if (fact.rank() < 1 || dims.back() < 0) {
    return Refuse(fmt::format("the shape of {} is not known", ValueName(*y)), "shape-not-known");
  }
  if (symbolic <= 1) return build::Reshape(node, dims);
  ASSIGN_OR_RETURN(const LinearView view, FindLinear(context, y));
  // All dims of the input but the last, which is N here.
  const Term leading = build::Slice(build::Shape(Term::Of(view.x)), 0, fact.rank() - 1, 0);
  return build::Reshape(node, build::Concat({leading, build::Numbers({dims.back()})}, 0));
}

constexpr std::array kRows = {
    Function<"linear (y)", Linear>("Holds for the output y of a linear layer in any spelling."),
    Function<"linear_input (y)", LinearInput>("What the linear that computes y multiplies, as a matrix [rows, K]."),
    Function<"linear_weight (y)", LinearWeight>("Its weight as a matrix [K, N]."),
    Function<"linear_bias (y)", LinearBias>("Its bias [N], or no value."),
    Function<"without_bias (y)", WithoutBias>("Holds for a linear without a bias."),
    Function<"rows_as (node, y)", RowsAs>("The node, a matrix [rows, N], in the shape of y, a linear's output."),
    Function<"both_linear (a, b)", BothLinear>("1 where both are outputs of linear layers, else 0."),
    Function<"gate_pair (a, b)", GatePair>(
        "Holds for the two halves of one tensor, along any axis, and for two linears of one input."),
    Function<"merged_linear (a, b)", Merged>("One linear in place of two of the same input: [a | b] along the last axis."),
};

}  // namespace

absl::Span<const FunctionRow> LinearFunctions() { return kRows; }

}  // namespace ascend_fuse
