// Operators that are a whole attention (ONNX's own, those of ONNX Runtime), taken apart into heads, cache, products, masks
// and softmax as their documents say, whatever is made of the parts afterwards.
#include <array>
#include <utility>
#include <vector>

#include "fmt/format.h"
#include "ir/status_macros.h"
#include "patterns/functions/constructs.h"
#include "patterns/functions/ready_made_operator.h"
#include "patterns/terms/refusal.h"

namespace ascend_fuse {
namespace {

absl::StatusOr<TakenApart> Apart(const FunctionContext& context, const Node& node) {
  if (IsOp(node, "Attention")) return OnnxAttentionApart(context, node);
  if (node.domain == NameId::kEmpty || Domain(node) != "com.microsoft") return NotTakenApart("no operator that is an attention");
  if (OpType(node) == "GroupQueryAttention") return GroupQueryAttentionApart(context, node);
  return RuntimeAttentionApart(context, node);
}

absl::StatusOr<std::vector<Term>> AttentionApart(const FunctionContext& context, const Value* y, int64_t plain) {
  if (y->producer == nullptr) return NotTakenApart("nothing computes it");
  ASSIGN_OR_RETURN(TakenApart apart, Apart(context, *y->producer));
  if (plain == 0 && apart.plain) return NotTakenApart("a rule of the library takes it as it is");
  return std::move(apart.outputs);
}

Holds MaskOfAllKeys(const FunctionContext& context, const Term& mask, Dim keys) {
  if (!IsGiven(mask) || context.model->OpsetVersion() < kPadsMasks) return absl::OkStatus();
  const Fact& fact = context.facts->Of(mask.value);
  if (fact.rank() > 0 && context.dims->Equal(fact.shape[static_cast<size_t>(fact.rank()) - 1], keys)) return absl::OkStatus();
  return Refuse(fmt::format("whether the mask {} is as long as the keys is not known", ValueName(*mask.value)), "mask-shape");
}

constexpr std::array kRows = {
    Function<"mask_of_all_keys (mask, keys)", MaskOfAllKeys>(
        "Holds where an Attention of ONNX broadcasts its mask and does not pad it to the number of keys."),
    Function<"attention_apart (y, plain)", AttentionApart>(
        "The outputs of the operator that computes y, an attention as a whole, from its parts; those without a cache or a mask "
        "of its own making where plain is 1 only."),
};

}  // namespace

absl::Span<const FunctionRow> ReadyMadeAttentionFunctions() { return kRows; }

}  // namespace ascend_fuse
