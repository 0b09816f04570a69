// Functions of rules about attention: masks, scales and numbers of heads.
#include <array>
#include <cmath>
#include <vector>

#include "fmt/format.h"
#include "ir/status_macros.h"
#include "patterns/analysis/attention.h"
#include "patterns/analysis/mask.h"
#include "patterns/functions/constructs.h"
#include "patterns/functions/tensor.h"
#include "patterns/terms/node_builder.h"
#include "patterns/terms/refusal.h"

namespace ascend_fuse {
namespace {

absl::StatusOr<int64_t> KeyValueHeads(const FunctionContext& context, Dim heads, Dim key_heads) {
  if (!heads.is_number() || !key_heads.is_number()) {
    return Refuse(fmt::format("the numbers of heads {} and {} must be known", context.dims->ToString(heads),
                              context.dims->ToString(key_heads)),
                  "needs-dim");
  }
  return heads.number() == key_heads.number() ? 0 : key_heads.number();
}

absl::StatusOr<double> AttentionScale(const FunctionContext& context, std::optional<double> scale, Dim width) {
  if (scale.has_value()) {
    // ONNX Runtime takes a scale of 0 for one that is left out; the definition of the operator does not.
    if (*scale == 0) return Refuse("its scale is written as 0", "scale-is-zero");
    return *scale;
  }
  if (!width.is_number() || width.number() < 1) {
    return Refuse(fmt::format("the scale is 1 / sqrt(head_dim), and the head_dim {} is not known", context.dims->ToString(width)),
                  "needs-dim");
  }
  return 1 / std::sqrt(static_cast<double>(width.number()));
}

absl::StatusOr<std::vector<Term>> AttentionParts(const FunctionContext& context, const Value* y) {
  ASSIGN_OR_RETURN(const AttentionView view, FollowAttention(context, y));
  return std::vector<Term>{view.query,
                           view.key,
                           view.value,
                           view.mask,
                           view.keep,
                           view.bias,
                           Term::Number(view.scale),
                           Term::Integer(view.guard ? 1 : 0),
                           view.softcap == 0 ? Term::Absent() : Term::Number(view.softcap)};
}

// Elements first to last - 1 of a vector that has no others than a rule asks for.
absl::StatusOr<Term> Segment(const FunctionContext& context, const Value* w, Dim first, Dim last) {
  if (!first.is_number() || !last.is_number() || context.facts->Of(w).rank() != 1) {
    return Refuse(fmt::format("{} is not cut at known places", ValueName(*w)), "shape-not-known");
  }
  return build::Slice(Term::Of(w), first.number(), last.number(), 0);
}

absl::StatusOr<Term> KeyPadding(const FunctionContext& context, const Value* pad, std::optional<double> fill) {
  const Fact& fact = context.facts->Of(pad);
  if (!IsInteger(fact.type) || (fact.rank() != 2 && fact.rank() != 3)) {
    // Lengths of a known batch are taken apart before.
    return Refuse(
        fmt::format("{} gives lengths, and whether it is one or two of them for each batch is not known", ValueName(*pad)),
        "operator-differs");
  }
  if (!(fill.value_or(kRuntimeMaskFill) <= kMaskThreshold)) {
    return Refuse(fmt::format("mask_filter_value {} is added to the scores of keys that {} masks, which takes none out",
                              fill.value_or(kRuntimeMaskFill), ValueName(*pad)),
                  "mask-is-bias");
  }
  std::vector<int64_t> axes = {1};
  if (fact.rank() == 2) axes.push_back(2);
  return build::Unsqueeze(build::Cast(Term::Of(pad), DataType::kBool), axes);
}

// The places [0, 1, ... n - 1] along axis 1 of x, with an axis of 1 added.
Term Places(const Value* x, int64_t added) {
  const Term length = build::Squeeze(build::Gather(build::Shape(Term::Of(x)), build::Numbers({1}), 0), {0});
  const Term zero = build::Squeeze(build::Constant(DataType::kInt64, {1}, 0), {0});
  const Term one = build::Squeeze(build::Constant(DataType::kInt64, {1}, 1), {0});
  return build::Unsqueeze(build::Op("Range", {zero, length, one}), {added});
}

absl::StatusOr<Term> CausalMask(const FunctionContext& context, const Value* q, const Value* k,
                                std::optional<int64_t> unidirectional) {
  if (unidirectional.value_or(0) == 0) return Term::Absent();
  ASSIGN_OR_RETURN(const Dim queries, DimAt(context, Term::Of(q), 1));
  ASSIGN_OR_RETURN(const Dim keys, DimAt(context, Term::Of(k), 1));
  if (!context.dims->AtLeast(queries, keys)) {
    return Refuse(fmt::format("ONNX Runtime lets the last of {} queries attend to all of {} keys, which may be more",
                              context.dims->ToString(queries), context.dims->ToString(keys)),
                  "operator-differs");
  }
  return build::Op("Not", {build::Op("Greater", {Places(k, 0), Places(q, 1)})});
}

// Heads that share a key stand one after another, so that no element moves.
absl::StatusOr<Term> WithHeads(const FunctionContext& context, const Term& x, Dim to, Dim from) {
  if (context.dims->Equal(to, from)) return x;
  if (!to.is_number() || !from.is_number()) {
    return Refuse(
        fmt::format("the numbers of heads {} and {} must be known", context.dims->ToString(to), context.dims->ToString(from)),
        "needs-dim");
  }
  return build::Reshape(x, {0, to.number(), -1, 0});
}

absl::StatusOr<Term> AttentionOutputAs(const FunctionContext& context, const Term& node, const Value* y) {
  return AttentionOutput(context, y, node);
}

// Whether the node makes weights of scores: a softmax, or the sum of exponentials.
bool BeginsWeights(const FunctionContext&, const Node& node) {
  if (!IsOp(node, "ReduceSum")) return true;
  const Node* exponentials = node.input(0) != nullptr ? node.input(0)->producer : nullptr;
  return exponentials != nullptr && IsOp(*exponentials, "Exp");
}

constexpr std::array kRows = {
    Function<"attention_parts (y)", AttentionParts>(
        "What an attention y is made of: query, key and value with the axes [B, H, S, D], [B, G, T, D] and [B, G, T, E], "
        "mask, keep, bias, scale, guard and softcap.",
        "Softmax LogSoftmax ReduceSum", BeginsWeights),
    Function<"attention_output (node, y)", AttentionOutputAs>(
        "The node, an attention of the parts of y, with the axes and the type of y."),
    Function<"segment (w, first, last)", Segment>("The elements of a vector from first to before last."),
    Function<"key_padding (pad, fill)", KeyPadding>(
        "The padding mask [B, T] or [B, S, T] of integers, 1 where a key is attended to, as a boolean for the scores; the fill "
        "of ONNX Runtime must take the others out."),
    Function<"causal_mask (q, k, u)", CausalMask>("Where u is 1, the boolean [S, T] that is true up to the diagonal, for a query "
                                                  "[B, S, ...] and a key [B, T, ...], T no more than S."),
    Function<"kv_heads (heads, key_heads)", KeyValueHeads>(
        "The attribute num_key_value_heads: 0 where there are as many as heads."),
    Function<"with_heads (x, n, m)", WithHeads>("x [B, m, S, D] as [B, n, m S / n, D]: the queries of heads that share a key one "
                                                "after another, or such queries as heads."),
    Function<"attention_scale (scale, D)", AttentionScale>("The scale, or 1 / sqrt(D) where the operator leaves it out."),
};

}  // namespace

absl::Span<const FunctionRow> AttentionFunctions() { return kRows; }

}  // namespace ascend_fuse
