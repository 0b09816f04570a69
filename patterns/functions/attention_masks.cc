#include "patterns/functions/attention_masks.h"

#include <utility>

#include "patterns/analysis/mask.h"
#include "patterns/analysis/mask_form.h"

namespace ascend_fuse {
namespace {

// The mode that computes what the form says: its clauses are edges of one diagonal and nothing else.
KernelPlan PlanOf(const MaskForm& form, const MaskForms::Scores& scores, DimTable& dims) {
  KernelPlan plan;
  if (!form.understood || form.bias || form.nothing) return plan;
  if (form.clauses.empty()) {
    plan.masks = false;
    return plan;
  }
  const MaskClause* right = form.Find(MaskClause::Kind::kUpTo);
  const MaskClause* left = form.Find(MaskClause::Kind::kFrom);
  const size_t edges = (right != nullptr ? 1 : 0) + (left != nullptr ? 1 : 0);
  if (right == nullptr || edges != form.clauses.size() || right->one_query || (left != nullptr && left->one_query)) {
    return plan;
  }
  const Dim queries = scores[2];
  const Dim keys = scores[3];
  if (!queries.known() || !keys.known()) return plan;
  // Rows without a key are another matter: every query must have one.
  const bool to_the_end = dims.Equal(right->offset, dims.Sub(keys, queries)) && dims.AtLeast(keys, queries);
  if (left == nullptr) {
    if (to_the_end) plan.mode = kRightDownCausal;
    if (!to_the_end && dims.Equal(right->offset, Dim::Of(0))) plan.mode = kLeftUpCausal;
    return plan;
  }
  const Dim width = dims.Sub(right->offset, left->offset);
  if (!to_the_end || !width.is_number() || width.number() < 0 || width.number() >= kEveryToken) return plan;
  plan.mode = kBand;
  plan.pre_tokens = width.number();
  plan.next_tokens = 0;
  return plan;
}

// Zeros that are added to the scores: what a torch.baddbmm with beta 0 leaves of its input.
bool IsNothing(const FunctionContext& context, const Value* mask, const Value* query) {
  const PossibleValues set = ValuesOf(context, mask);
  const bool zeros = set.known && set.values == std::vector<double>{0} && IsFloat(context.facts->Of(mask).type);
  return zeros && CheckMaskFits(context, mask, query).ok();
}

// What is done to the scores: masks and biases, told apart where a bias is among them.
absl::StatusOr<ScoreParts> PartsOf(const FunctionContext& context, const Value* q, const Value* k,
                                   const std::vector<MaskOperand>& given) {
  ScoreParts parts;
  for (const MaskOperand& mask : given) {
    if (mask.has_value()) parts.masks.push_back(*mask);
  }
  if (parts.masks.empty() || context.masks == nullptr) return parts;
  const std::vector<const Value*> masks(parts.masks.begin(), parts.masks.end());
  if (!context.masks->Together(masks, ScoresOf(*context.facts, q, k)).bias) return parts;
  std::vector<const Value*> added;
  for (const Value* mask : parts.masks) {
    if (!IsNothing(context, mask, q)) added.push_back(mask);
  }
  return SplitScores(context, added);
}

// `sentences`: what the plan takes for granted.
KernelPlan PlanFor(const FunctionContext& context, const Value* q, const Value* k, const ScoreParts& parts,
                   std::vector<std::string>* sentences) {
  KernelPlan plan;
  plan.masks = !parts.masks.empty() || !parts.drops.empty();
  if (!plan.masks || !parts.drops.empty() || context.masks == nullptr) return plan;
  for (const Value* mask : parts.masks) {
    if (!CheckMaskFits(context, mask, q).ok()) return plan;
  }
  const MaskForms::Scores scores = ScoresOf(*context.facts, q, k);
  const MaskForm& form = context.masks->Together(std::vector<const Value*>(parts.masks.begin(), parts.masks.end()), scores);
  plan = PlanOf(form, scores, *context.dims);
  const bool whole = plan.masks && plan.mode == kWholeMask;
  if (!whole) *sentences = form.assumptions;
  return plan;
}

AttentionMasks Find(const FunctionContext& context, const Value* q, const Value* k, const std::vector<MaskOperand>& given) {
  AttentionMasks masks{PartsOf(context, q, k, given), {}, {}};
  if (masks.parts.ok()) masks.plan = PlanFor(context, q, k, *masks.parts, &masks.assumptions);
  return masks;
}

}  // namespace

std::shared_ptr<const AttentionMasks> AttentionMemo::Of(const FunctionContext& context, const Value* q, const Value* k,
                                                        const std::vector<MaskOperand>& masks) {
  Asked asked{{q, k}, {}};
  for (const Dim dim : ScoresOf(*context.facts, q, k)) asked.dims.push_back(context.dims->Resolve(dim));
  for (const MaskOperand& mask : masks) asked.values.push_back(mask.value_or(nullptr));
  if (found_ == nullptr || !(asked == asked_)) {
    found_ = std::make_shared<AttentionMasks>(Find(context, q, k, masks));
    asked_ = std::move(asked);
  }
  return found_;
}

std::shared_ptr<const AttentionMasks> MasksOf(const FunctionContext& context, const Value* q, const Value* k,
                                              const std::vector<MaskOperand>& masks) {
  if (context.attention != nullptr) return context.attention->Of(context, q, k, masks);
  return std::make_shared<AttentionMasks>(Find(context, q, k, masks));
}

void NoteAssumptions(const FunctionContext& context, const AttentionMasks& masks) {
  if (context.assumptions == nullptr) return;
  context.assumptions->insert(context.assumptions->end(), masks.assumptions.begin(), masks.assumptions.end());
}

}  // namespace ascend_fuse
