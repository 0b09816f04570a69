// The operator MoE of ONNX Runtime, a mixture of experts, from standard operators: every expert computes every token, and
// what the router did not choose counts as 0. Definition: onnxruntime/contrib_ops/cpu/moe/moe_cpu.cc.
#include <array>
#include <cmath>
#include <string>
#include <vector>

#include "fmt/format.h"
#include "ir/status_macros.h"
#include "patterns/functions/constructs.h"
#include "patterns/terms/node_builder.h"
#include "patterns/terms/refusal.h"

namespace ascend_fuse {
namespace {

struct MixtureDims {
  int64_t experts = 0;  // E
  int64_t hidden = 0;   // H
  int64_t inner = 0;    // I, what the second linear reads
  bool gated = false;   // the first linear gives 2 I
};

absl::StatusOr<MixtureDims> DimsOf(const FunctionContext& context, const Value* x, const Value* first, const Value* second,
                                   std::string_view activation) {
  const Fact& data = context.facts->Of(x);
  const Fact& one = context.facts->Of(first);
  const Fact& two = context.facts->Of(second);
  for (const Fact* weight : {&one, &two}) {
    if (weight->rank() != 3 || !weight->shape[0].is_number() || !weight->shape[1].is_number() || !weight->shape[2].is_number()) {
      return Refuse("the shapes of the experts' weights are not known");
    }
  }
  if ((data.rank() != 2 && data.rank() != 3) || !data.shape.back().is_number() || data.shape.back().number() <= 0) {
    return Refuse(fmt::format("{} is neither [T, H] nor [B, S, H]", context.facts->Describe(x)));
  }
  MixtureDims dims;
  dims.experts = one.shape[0].number();
  dims.hidden = data.shape.back().number();
  dims.inner = two.shape[1].number() * two.shape[2].number() / dims.hidden;
  dims.gated = activation == "swiglu";
  const int64_t width = dims.inner * (dims.gated ? 2 : 1);
  if (dims.experts < 1 || dims.inner < 1 || !two.shape[0].is(dims.experts) ||
      one.shape[1].number() * one.shape[2].number() != width * dims.hidden ||
      two.shape[1].number() * two.shape[2].number() != dims.inner * dims.hidden) {
    return Refuse(fmt::format("the experts' weights {} and {} do not fit", context.facts->Describe(first),
                              context.facts->Describe(second)));
  }
  return dims;
}

Term Times(const Term& a, const Term& b) { return build::Op("Mul", {a, b}); }
Term Plus(const Term& a, const Term& b) { return build::Op("Add", {a, b}); }
Term Sigmoid(const Term& x) { return build::Op("Sigmoid", {x}); }

// Half of a gate and what it is multiplied with, [E, T, 2 I]: neighbours, or one half of the channels after the other.
Term GatePart(const Term& x, int64_t part, int64_t inner, int64_t fusion) {
  if (fusion == 2) return build::Slice(x, part * inner, (part + 1) * inner, 2);
  return build::Slice(x, part, 2 * inner, 2, 2);
}

struct Activation {
  std::string_view name;
  int64_t fusion;
  double alpha;
  double beta;
  std::optional<double> limit;
};

absl::StatusOr<Term> Activated(const Term& x, const Activation& how, int64_t inner) {
  if (how.name == "identity") return x;
  if (how.name == "relu") return build::Op("Relu", {x});
  if (how.name == "silu") return Times(x, Sigmoid(x));
  if (how.name == "gelu") {  // by tanh
    const Term cube = build::Op("Pow", {x, Term::Number(3)});
    const Term inside = Times(Plus(x, Times(cube, Term::Number(0.044715))), Term::Number(std::sqrt(2 / std::acos(-1.0))));
    return Times(Times(x, Plus(build::Op("Tanh", {inside}), Term::Number(1))), Term::Number(0.5));
  }
  if (how.name != "swiglu" || (how.fusion != 1 && how.fusion != 2)) {
    return Refuse(fmt::format("activation_type {} with swiglu_fusion {} is not one that is known", how.name, how.fusion),
                  "attribute-not-supported");
  }
  Term gate = GatePart(x, 0, inner, how.fusion);
  Term linear = GatePart(x, 1, inner, how.fusion);
  if (how.limit.has_value()) {
    gate = build::Op("Min", {gate, Term::Number(*how.limit)});
    linear = build::Op("Max", {build::Op("Min", {linear, Term::Number(*how.limit)}), Term::Number(-*how.limit)});
  }
  if (how.beta != 0) linear = Plus(linear, Term::Number(how.beta));
  return Times(Times(gate, Sigmoid(how.alpha == 1 ? gate : Times(gate, Term::Number(how.alpha)))), linear);
}

// x [..., K] by the experts' weights, which lie as [E, N, K] whatever their dims are called; bias [E, N].
Term Linear(const FunctionContext& context, const Term& x, const Value* weight, const Term& bias, int64_t experts, int64_t n,
            int64_t k) {
  Term rows = Term::Of(weight);
  if (!context.facts->Of(weight).shape[1].is(n)) rows = build::Reshape(rows, {experts, n, k});
  const Term y = build::Op("MatMul", {x, build::Transpose(rows, {0, 2, 1})});
  return bias.kind == Term::Kind::kAbsent ? y : Plus(y, build::Unsqueeze(bias, {1}));
}

// How much each expert counts for each token, [T, E]: the softmax of the router where it is one of the k largest, else 0. Of
// equal ones the later expert is chosen, as by ONNX Runtime.
Term Shares(const Value* router, int64_t experts, int64_t k, bool normalized) {
  std::vector<int64_t> from_the_end;
  for (int64_t i = experts - 1; i >= 0; --i) from_the_end.push_back(i);
  const Term places = build::Elements(DataType::kInt64, {experts}, from_the_end);
  const Term all = build::Op("Softmax", {Term::Of(router)}, {{"axis", Term::Integer(-1)}});
  const Term largest = Term::Node({"",
                                   "TopK",
                                   {{"axis", Term::Integer(-1)}, {"largest", Term::Integer(1)}, {"sorted", Term::Integer(1)}},
                                   {build::Gather(all, places, 1), build::Numbers({k})},
                                   2});
  Term indices = largest;
  indices.output = 1;
  const Term values = normalized ? build::Op("Div", {largest, build::ReduceSum(largest, {1}, 1)}) : largest;
  const Term chosen = build::Cast(build::Op("Equal", {build::Unsqueeze(indices, {2}), places}), DataType::kFloat);
  return build::ReduceSum(Times(chosen, build::Unsqueeze(values, {2})), {1}, 0);
}

absl::StatusOr<Term> MixtureOfExperts(const FunctionContext& context, const Value* x, const Value* router, const Value* first,
                                      const Term& first_bias, const Value* second, const Term& second_bias, int64_t k,
                                      int64_t normalized, std::string_view activation, int64_t fusion, double alpha, double beta,
                                      std::optional<double> limit) {
  const Fact& data = context.facts->Of(x);
  if (data.type != DataType::kFloat) return Refuse(fmt::format("{} is not float32", context.facts->Describe(x)));
  ASSIGN_OR_RETURN(const MixtureDims dims, DimsOf(context, x, first, second, activation));
  const Fact& logits = context.facts->Of(router);
  if (logits.rank() != 2 || !logits.shape[1].is(dims.experts) || k < 1 || k > dims.experts) {
    return Refuse(fmt::format("{} does not choose {} of {} experts", context.facts->Describe(router), k, dims.experts));
  }
  const Term rows = data.rank() == 2 ? Term::Of(x) : build::Reshape(Term::Of(x), {-1, dims.hidden});
  const Term hidden = Linear(context, rows, first, first_bias, dims.experts, dims.inner * (dims.gated ? 2 : 1), dims.hidden);
  ASSIGN_OR_RETURN(const Term activated, Activated(hidden, {activation, fusion, alpha, beta, limit}, dims.inner));
  const Term each = Linear(context, activated, second, second_bias, dims.experts, dims.hidden, dims.inner);
  const Term shares = build::Unsqueeze(build::Transpose(Shares(router, dims.experts, k, normalized != 0), {1, 0}), {2});
  // Not only times 0: an expert that was not chosen may be infinite in half precision.
  const Term taken = build::Op("Where", {build::Op("Greater", {shares, Term::Number(0)}), Times(each, shares), Term::Number(0)});
  const Term sum = build::ReduceSum(taken, {0}, 0);
  return data.rank() == 2 ? sum : build::Reshape(sum, build::Shape(Term::Of(x)));
}

constexpr std::array kRows = {
    Function<"mixture_of_experts (x, router, w1, b1, w2, b2, k, normalized, activation, fusion, alpha, beta, limit)",
             MixtureOfExperts>(
        "The operator MoE on x [T, H] or [B, S, H] with logits [T, E] of the router, weights [E, I, H] and [E, H, I], biases "
        "or no value, and the attributes of that operator."),
};

}  // namespace

absl::Span<const FunctionRow> MixtureFunctions() { return kRows; }

}  // namespace ascend_fuse
