// Functions of rules about the mask that an attention kernel is given: none, the template of a compressed mode, or an
// explicit one.
#include <array>
#include <optional>
#include <vector>

#include "fmt/format.h"
#include "patterns/analysis/mask.h"
#include "patterns/analysis/mask_form.h"
#include "patterns/functions/constructs.h"
#include "patterns/functions/node_builder.h"
#include "patterns/functions/refusal.h"

namespace ascend_fuse {
namespace {

using Mask = std::optional<Value*>;

// What sparse_mode says (mirror-cann/ops-transformer:docs/zh/context/sparse_mode.md).
constexpr int64_t kWholeMask = 0;
constexpr int64_t kLeftUpCausal = 2;     // j <= i
constexpr int64_t kRightDownCausal = 3;  // j <= i + keys - queries
constexpr int64_t kBand = 4;             // i + keys - queries - pre_tokens <= j <= i + keys - queries + next_tokens
constexpr int64_t kEveryToken = 2147483647;
constexpr int64_t kTemplate = 2048;

// How a kernel masks: `masks` false is without a mask.
struct Plan {
  bool masks = true;
  int64_t mode = kWholeMask;
  int64_t pre_tokens = kEveryToken;
  int64_t next_tokens = kEveryToken;
};

// The mode that computes what the form says: its clauses are edges of one diagonal and nothing else.
Plan PlanOf(const MaskForm& form, const MaskForms::Scores& scores, DimTable& dims) {
  Plan plan;
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

// `sentences`: what the plan takes for granted; may be null.
Plan PlanFor(const FunctionContext& context, Value* q, Value* k, const std::vector<Mask>& given,
             std::vector<std::string>* sentences) {
  Plan plan;
  std::vector<const Value*> masks;
  for (const Mask& mask : given) {
    if (mask.has_value()) masks.push_back(*mask);
  }
  plan.masks = !masks.empty();
  if (masks.empty() || context.masks == nullptr) return plan;
  for (const Value* mask : masks) {
    if (!CheckMaskFits(context, mask, q).ok()) return plan;
  }
  const MaskForms::Scores scores = ScoresOf(*context.facts, q, k);
  const MaskForm& form = context.masks->Together(masks, scores);
  plan = PlanOf(form, scores, *context.dims);
  const bool whole = plan.masks && plan.mode == kWholeMask;
  if (!whole && sentences != nullptr) {
    sentences->insert(sentences->end(), form.assumptions.begin(), form.assumptions.end());
  }
  return plan;
}

void NoteEmptyRows(const FunctionContext& context, Value* mask, bool guarded) {
  // -inf rows are NaN after the softmax and 0 after the guard: what the kernel's row correction gives too.
  const bool zero = guarded && (context.facts->Of(mask).type == DataType::kBool || MasksWithInfinity(context, mask));
  if (zero || context.assumptions == nullptr) return;
  context.assumptions->push_back(
      "rows with no allowed key (queries that are padding themselves) are don't-care: the kernel gives 0 there");
}

absl::StatusOr<Term> JoinedMask(const FunctionContext& context, Value* q, Value* k, Mask mask, Mask keep, Mask bias,
                                int64_t guard) {
  // A key is masked where any of them says so. A guard of the network speaks of its only mask.
  const int count = (mask.has_value() ? 1 : 0) + (keep.has_value() ? 1 : 0) + (bias.has_value() ? 1 : 0);
  Term masked = Term::Absent();
  for (const Mask& one : {keep, bias, mask}) {
    if (!one.has_value()) continue;
    absl::StatusOr<Term> part = ExplicitMask(context, *one, q, k);
    if (!part.ok()) return part.status();
    masked = masked.kind == Term::Kind::kAbsent ? *part : build::Op("Or", {masked, *part});
  }
  for (const Mask& one : {mask, keep, bias}) {
    if (one.has_value()) NoteEmptyRows(context, *one, guard != 0 && one == mask && count == 1);
  }
  return masked;
}

absl::StatusOr<Term> KernelMask(const FunctionContext& context, Value* q, Value* k, Mask mask, Mask keep, Mask bias,
                                int64_t guard) {
  const Plan plan = PlanFor(context, q, k, {mask, keep, bias}, context.assumptions);
  if (!plan.masks) return Term::Absent();
  if (plan.mode != kWholeMask) return build::AboveDiagonal(kTemplate, kTemplate);
  return JoinedMask(context, q, k, mask, keep, bias, guard);
}

absl::StatusOr<Term> WholeMask(const FunctionContext& context, Value* q, Value* k, Mask mask, Mask keep, Mask bias,
                               int64_t guard) {
  const Plan plan = PlanFor(context, q, k, {mask, keep, bias}, nullptr);
  if (!plan.masks) return Refuse("nothing is masked here, so that the stock node takes it");
  return JoinedMask(context, q, k, mask, keep, bias, guard);
}

int64_t SparseMode(const FunctionContext& context, Value* q, Value* k, Mask mask, Mask keep, Mask bias) {
  return PlanFor(context, q, k, {mask, keep, bias}, nullptr).mode;
}

int64_t PreTokens(const FunctionContext& context, Value* q, Value* k, Mask mask, Mask keep, Mask bias) {
  return PlanFor(context, q, k, {mask, keep, bias}, nullptr).pre_tokens;
}

int64_t NextTokens(const FunctionContext& context, Value* q, Value* k, Mask mask, Mask keep, Mask bias) {
  return PlanFor(context, q, k, {mask, keep, bias}, nullptr).next_tokens;
}

// 2 corrects rows without a key, and is for masks of the user's. 0 keeps the softmax in float32 too.
int64_t InnerPrecise(const FunctionContext& context, Value* q, Value* k, Mask mask, Mask keep, Mask bias) {
  const Plan plan = PlanFor(context, q, k, {mask, keep, bias}, nullptr);
  return plan.masks && plan.mode == kWholeMask ? 2 : 0;
}

constexpr std::array kRows = {
    Function<"explicit_mask (mask, q, k)", ExplicitMask>(
        "The mask as bool [S, T] or [B or 1, 1, S, T], true = masked, built for a query and a key."),
    Function<"kernel_mask (q, k, mask, keep, bias, guard)", KernelMask>(
        "What a kernel is given as mask: no value where nothing is masked, the template of a compressed mode, or the explicit mask."),
    Function<"whole_mask (q, k, mask, keep, bias, guard)", WholeMask>(
        "The explicit mask, also where a compressed mode would do."),
    Function<"sparse_mode (q, k, mask, keep, bias)", SparseMode>(
        "The attribute sparse_mode: 2, 3 or 4 where the masks say no more than that mode, else 0."),
    Function<"pre_tokens (q, k, mask, keep, bias)", PreTokens>("The attribute pre_tokens beside that sparse_mode."),
    Function<"next_tokens (q, k, mask, keep, bias)", NextTokens>("The attribute next_tokens beside that sparse_mode."),
    Function<"inner_precise (q, k, mask, keep, bias)", InnerPrecise>(
        "The attribute inner_precise: 2, which corrects rows without a key, with an explicit mask, else 0."),
};

}  // namespace

absl::Span<const FunctionRow> MaskFunctions() { return kRows; }

}  // namespace ascend_fuse
