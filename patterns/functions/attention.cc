// Functions of rules about attention: masks, scales and numbers of heads.
#include <vector>
#include <algorithm>
#include <array>
#include <cmath>

#include "fmt/format.h"
#include "patterns/analysis/island.h"
#include "patterns/analysis/mask.h"
#include "patterns/functions/constructs.h"
#include "patterns/functions/refusal.h"

namespace ascend_fuse {
namespace {

Holds MaskFill(const FunctionContext& context, Value* x) {
  double number = 0;
  if (ConstantNumber(*context.facts, x, &number) && number <= kMaskThreshold) return absl::OkStatus();
  return Refuse(fmt::format("{} is not minus infinity or a number at most {}", ValueName(*x), kMaskThreshold),
                "mask-is-bias");
}

Holds EmptyRows(const FunctionContext& context, Value* mask, std::optional<int64_t> guard) {
  // -inf rows are NaN after the softmax and 0 after the guard: what the kernel's row correction gives too.
  const bool zero = guard.value_or(0) != 0 && (context.facts->Of(mask).type == DataType::kBool ||
                                               MasksWithInfinity(context, mask));
  if (!zero && context.assumptions != nullptr) {
    context.assumptions->push_back(
        "rows with no allowed key (queries that are padding themselves) are don't-care: the kernel gives 0 "
        "there");
  }
  return absl::OkStatus();
}

absl::StatusOr<int64_t> KeyValueHeads(const FunctionContext& context, Dim heads, Dim key_heads) {
  if (!heads.is_number() || !key_heads.is_number()) {
    return Refuse(fmt::format("the numbers of heads {} and {} must be known", context.dims->ToString(heads),
                              context.dims->ToString(key_heads)), "needs-dim");
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
    return Refuse(fmt::format("the scale is 1 / sqrt(head_dim), and the head_dim {} is not known",
                              context.dims->ToString(width)), "needs-dim");
  }
  return 1 / std::sqrt(static_cast<double>(width.number()));
}

// A node to be built counts as what it moves.
Term OneType(const FunctionContext& context, Shaped x, Shaped a, Shaped b) {
  const auto moved = [](const Term& term) -> Value* {
    if (term.kind == Term::Kind::kValue) return term.value;
    return term.node->inputs.empty() ? nullptr : term.node->inputs[0].value;
  };
  const std::vector<Value*> operands = {moved(x.term), moved(a.term), moved(b.term)};
  if (std::find(operands.begin(), operands.end(), nullptr) != operands.end()) return x.term;
  Term term = InOneType(context, operands[0], operands);
  if (x.term.kind == Term::Kind::kValue) return term;
  DeferredNode node = *x.term.node;
  node.inputs[0] = std::move(term);
  return Term::Node(std::move(node));
}

constexpr std::array kRows = {
    Function<"mask_fill (x)", MaskFill>("Holds for a constant x that takes a key out of a softmax."),
    Function<"in_one_type (x, a, b)", OneType>(
        "x in the type that x, a and b can have in one kernel: that of before the Casts in front, or the wider one."),
    Function<"explicit_mask (mask, q, k)", ExplicitMask>(
        "The mask as bool [B or 1, 1, S, T], true = masked, built for a query and a key."),
    Function<"empty_rows (mask, guard)", EmptyRows>(
        "Holds, and notes in the report what happens to rows in which every key is masked."),
    Function<"kv_heads (heads, key_heads)", KeyValueHeads>(
        "The attribute num_key_value_heads: 0 where there are as many as heads."),
    Function<"attention_scale (scale, D)", AttentionScale>(
        "The scale, or 1 / sqrt(D) where the operator leaves it out."),
};

}  // namespace

absl::Span<const FunctionRow> AttentionFunctions() { return kRows; }

}  // namespace ascend_fuse
