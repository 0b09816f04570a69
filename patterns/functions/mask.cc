// Functions of rules about the mask that an attention kernel is given: none, the template of a compressed mode, or an
// explicit one.
#include <algorithm>
#include <array>
#include <optional>
#include <string_view>
#include <vector>

#include "fmt/format.h"
#include "ir/status_macros.h"
#include "patterns/analysis/empty_rows.h"
#include "patterns/analysis/mask.h"
#include "patterns/analysis/mask_form.h"
#include "patterns/analysis/zero_rows.h"
#include "patterns/functions/attention_masks.h"
#include "patterns/functions/constructs.h"
#include "patterns/terms/node_builder.h"
#include "patterns/terms/refusal.h"

namespace ascend_fuse {
namespace {

using Mask = MaskOperand;

constexpr int64_t kTemplate = 2048;

constexpr std::string_view kZeroThere = "the kernel gives 0 there";
constexpr std::string_view kAverageThere = "the kernel gives an average there";

void NoteEmptyRows(const FunctionContext& context, std::string_view what) {
  if (context.assumptions == nullptr) return;
  context.assumptions->push_back(
      fmt::format("rows with no allowed key (queries that are padding themselves) are don't-care: {}", what));
}

// -inf rows are NaN after the softmax and 0 after the guard: what the kernel's row correction gives too.
bool IsZeroThere(const FunctionContext& context, const Value* mask) {
  return context.facts->Of(mask).type == DataType::kBool || MasksWithInfinity(context, mask);
}

// Refuses where a query keeps no key in any run: then it is not padding that nobody reads. `there`: what the kernel gives.
absl::Status CheckRows(const FunctionContext& context, const Value* q, const Value* k, const ScoreParts& parts,
                       std::string_view there) {
  const auto refuse = [&](const Value& mask, const std::string& query) {
    return FinalWord(
        fmt::format("{} of the mask {} keeps no key, whatever the inputs are, so that it is not padding: there the network "
                    "gives an average of masked values, NaN, or what it puts in place of NaN, and {}",
                    query, NameInModel(*context.facts, mask), there),
        "row-without-key");
  };
  if (const auto empty = FindEmptyRow(context, parts.masks, parts.drops); empty.has_value()) {
    return refuse(*empty->mask, fmt::format("query {}", empty->query));
  }
  if (parts.masks.empty() || context.masks == nullptr) return absl::OkStatus();
  DimTable& dims = *context.dims;
  const MaskForms::Scores scores = ScoresOf(*context.facts, q, k);
  const MaskForm& form = context.masks->Together(std::vector<const Value*>(parts.masks.begin(), parts.masks.end()), scores);
  if (!form.understood) return absl::OkStatus();
  if (form.nothing) return refuse(*parts.masks[0], "every query");
  // Queries that are padding are read by nobody where they are taken out as keys, too.
  if (form.Find(MaskClause::Kind::kQueries) != nullptr && form.Find(MaskClause::Kind::kKeys) == nullptr) {
    return FinalWord(
        fmt::format("the mask {} takes whole queries out and not the keys of the same places, so that others read what "
                    "becomes of them: there the network gives an average of values, and {}",
                    NameInModel(*context.facts, *parts.masks[0]), there),
        "row-without-key");
  }
  const MaskClause* right = form.Find(MaskClause::Kind::kUpTo);
  const MaskClause* left = form.Find(MaskClause::Kind::kFrom);
  if (right != nullptr && dims.AtLeast(Dim::Of(-1), right->offset)) return refuse(*parts.masks[0], "query 0");
  if (left != nullptr && !left->one_query && scores[2].known() && scores[3].known() &&
      dims.AtLeast(dims.Add(dims.Sub(scores[2], Dim::Of(1)), left->offset), scores[3])) {
    return refuse(*parts.masks[0], "the last query");
  }
  return absl::OkStatus();
}

// Refuses where something after the attention divides by rows of zeros: NaN of queries that are padding reaches all others in
// the next attention, whatever its mask takes out.
absl::Status CheckZeros(const FunctionContext& context, const Value* q, const Value* k) {
  for (const Use& use : LiveUses(*q)) {
    const Node& attention = *use.user;
    if (Domain(attention) != "ascend_fuse" || OpType(attention) != "Attention") continue;
    if (attention.input(0) != q || attention.input(1) != k) continue;
    const auto division = FindZeroDivision(context, *attention.output(0));
    if (!division.has_value()) continue;
    return FinalWord(
        fmt::format("queries that keep no key are 0 after the kernel, and {}, computed by {}, {}: rows of zeros become "
                    "infinity or NaN there, which all queries read in the next attention",
                    ValueName(*division->node->output(0)), OpType(*division->node), division->how),
        "zero-rows-divided");
  }
  return absl::OkStatus();
}

// A key is masked where any of the masks says so.
absl::StatusOr<Term> AnyMasks(const FunctionContext& context, const Value* q, const Value* k, const ScoreParts& parts) {
  Term masked = Term::Absent();
  const auto add = [&](const absl::StatusOr<Term>& part) {
    if (!part.ok()) return part.status();
    masked = masked.kind == Term::Kind::kAbsent ? *part : build::Op("Or", {masked, *part});
    return absl::OkStatus();
  };
  for (const Value* mask : parts.masks) {
    RETURN_IF_ERROR(add(ExplicitMask(context, mask, q, k)));
  }
  for (const Value* drop : parts.drops) {
    RETURN_IF_ERROR(add(ExplicitDrop(context, drop, q, k)));
  }
  return masked;
}

// The mask in full. `mask`: the one that a guard of the network speaks of, where it is the only one.
absl::StatusOr<Term> WholeMaskOf(const FunctionContext& context, const Value* q, const Value* k, const ScoreParts& parts,
                                 Mask mask, int64_t guard) {
  ASSIGN_OR_RETURN(Term masked, AnyMasks(context, q, k, parts));
  const bool only = parts.masks.size() == 1 && parts.drops.empty() && parts.biases.empty();
  if (guard != 0 && only && mask == parts.masks[0] && IsZeroThere(context, parts.masks[0])) return masked;
  RETURN_IF_ERROR(CheckRows(context, q, k, parts, kZeroThere));
  RETURN_IF_ERROR(CheckZeros(context, q, k));
  for (size_t i = 0; i < parts.masks.size() + parts.drops.size(); ++i) NoteEmptyRows(context, kZeroThere);
  return masked;
}

// What a kernel is given as mask: no value, the template of a compressed mode, or the explicit mask.
absl::StatusOr<Term> KernelMask(const FunctionContext& context, const Value* q, const Value* k, const AttentionMasks& masks,
                                Mask mask, int64_t guard) {
  NoteAssumptions(context, masks);
  if (!masks.plan.masks) return Term::Absent();
  if (masks.plan.mode != kWholeMask) return build::AboveDiagonal(kTemplate, kTemplate);
  return WholeMaskOf(context, q, k, *masks.parts, mask, guard);
}

absl::StatusOr<std::vector<Term>> AttentionPlan(const FunctionContext& context, const Value* q, const Value* k, Mask mask,
                                                Mask keep, Mask bias, int64_t guard) {
  const auto masks = MasksOf(context, q, k, {keep, bias, mask});
  if (!masks->parts.ok()) return masks->parts.status();
  ASSIGN_OR_RETURN(const Term masked, KernelMask(context, q, k, *masks, mask, guard));
  ASSIGN_OR_RETURN(const Term added, WholeBias(context, *masks->parts, q, k));
  const KernelPlan& plan = masks->plan;
  // 2 corrects rows without a key, and is for masks of the user's. 0 keeps the softmax in float32 too.
  const int64_t inner_precise = plan.masks && plan.mode == kWholeMask ? 2 : 0;
  std::vector<Term> told = {masked, added};
  for (const int64_t number : {plan.mode, plan.pre_tokens, plan.next_tokens, inner_precise})
    told.push_back(Term::Integer(number));
  return told;
}

absl::StatusOr<Term> WholeMask(const FunctionContext& context, const Value* q, const Value* k, Mask mask, Mask keep, Mask bias,
                               int64_t guard) {
  const auto masks = MasksOf(context, q, k, {keep, bias, mask});
  const absl::StatusOr<ScoreParts>& parts = masks->parts;
  if (!parts.ok()) return parts.status();
  if (!parts->biases.empty()) {
    return Refuse(fmt::format("{} is added to the scores, and the kernel takes no bias", ValueName(*parts->biases[0])),
                  "mask-is-bias");
  }
  if (!masks->plan.masks) return Refuse("nothing is masked here, so the stock node can be used");
  return WholeMaskOf(context, q, k, *parts, mask, guard);
}

absl::StatusOr<Term> SoftmaxMask(const FunctionContext& context, const Value* q, const Value* k, Mask mask, Mask keep,
                                 Mask bias) {
  const auto masks = MasksOf(context, q, k, {keep, bias, mask});
  const absl::StatusOr<ScoreParts>& parts = masks->parts;
  if (!parts.ok()) return parts.status();
  NoteAssumptions(context, *masks);
  if (!masks->plan.masks) {
    return Refuse("no key is masked, so that the softmax of the scores is a Softmax already", "nothing-masked");
  }
  absl::StatusOr<Term> masked = AnyMasks(context, q, k, *parts);
  // Edges of one diagonal leave every query a key, as the plan proves.
  if (!masked.ok() || masks->plan.mode != kWholeMask) return masked;
  RETURN_IF_ERROR(CheckRows(context, q, k, *parts, kAverageThere));
  NoteEmptyRows(context, kAverageThere);
  return masked;
}

absl::StatusOr<Term> ScoreBias(const FunctionContext& context, const Value* q, const Value* k, Mask mask, Mask keep, Mask bias) {
  const auto masks = MasksOf(context, q, k, {keep, bias, mask});
  const absl::StatusOr<ScoreParts>& parts = masks->parts;
  if (!parts.ok()) return parts.status();
  for (const Value* one : parts->biases) {
    RETURN_IF_ERROR(CheckMaskFits(context, one, q));
  }
  return SumOfBiases(context, *parts, q);
}

// The elements of a vector that is a list, or a Concat of lists and of vectors of one element.
int CountElements(const Term& vector) {
  if (vector.kind == Term::Kind::kList) return static_cast<int>(vector.list->size());
  if (vector.kind != Term::Kind::kNode || vector.node->op_type != "Concat") return 1;
  int count = 0;
  for (const Term& part : vector.node->inputs) count += CountElements(part);
  return count;
}

// The rank of a mask that is a value or is made of values element by element; nullopt of anything else.
std::optional<int> RankOfMask(const FunctionContext& context, const Term& mask) {
  if (mask.kind == Term::Kind::kValue) return context.facts->Of(mask.value).rank();
  if (mask.kind == Term::Kind::kNumber) return 0;
  if (mask.kind != Term::Kind::kNode) return std::nullopt;
  const std::string& op = mask.node->op_type;
  if (op == "Expand") return CountElements(mask.node->inputs[1]);
  if (op != "Not" && op != "Less" && op != "Or") return std::nullopt;
  std::optional<int> rank = 0;
  for (const Term& input : mask.node->inputs) {
    const std::optional<int> one = RankOfMask(context, input);
    rank = one.has_value() && *one >= 0 && rank.has_value() ? std::optional<int>(std::max(*rank, *one)) : std::nullopt;
  }
  return rank;
}

Term FourAxes(const FunctionContext& context, const Term& mask) {
  return RankOfMask(context, mask) == 2 ? build::Unsqueeze(mask, {0, 1}) : mask;
}

// One mask for each of the heads that share a key, whose queries stand one after another.
absl::StatusOr<Term> RowsOfHeads(const FunctionContext& context, const Term& mask, Dim heads, Dim groups) {
  constexpr int64_t kMost = 64;
  const Dim each = context.dims->ExactDiv(heads, groups);
  if (!each.is_number()) return Refuse("the number of heads that share a key must be known", "needs-dim");
  if (each.number() > kMost) return Refuse(fmt::format("{} heads share a key, at most {} are looked at", each.number(), kMost));
  return build::Concat(std::vector<Term>(static_cast<size_t>(each.number()), mask), 2);
}

Holds NothingMasked(const FunctionContext& context, const Value* q, const Value* k, Mask mask, Mask keep, Mask bias) {
  const auto masks = MasksOf(context, q, k, {keep, bias, mask});
  RETURN_IF_ERROR(masks->parts.status());
  const ScoreParts& parts = *masks->parts;
  if (!parts.biases.empty()) return Refuse(fmt::format("{} is added to the scores", ValueName(*parts.biases[0])));
  NoteAssumptions(context, *masks);
  return masks->plan.masks ? Refuse("keys are masked") : absl::OkStatus();
}

constexpr std::array kRows = {
    Function<"attention_plan (q, k, mask, keep, bias, guard)", AttentionPlan>(
        "What a kernel is told of the masks, as a list: its mask (no value where nothing is masked, the template of a compressed "
        "mode, or the explicit mask), what it adds to the scores, [1 or B, H, S, T] for a query [B, H, S, D] (no value where "
        "nothing is added), and the attributes sparse_mode (2, 3 or 4 where the masks say no more than that mode, else 0), "
        "pre_tokens, next_tokens and inner_precise (2, which corrects rows without a key, with an explicit mask, else 0)."),
    Function<"softmax_mask (q, k, mask, keep, bias)", SoftmaxMask>(
        "What a kernel of the softmax alone is given as mask: the explicit one; not where nothing is masked."),
    Function<"score_bias (q, k, mask, keep, bias)", ScoreBias>(
        "What is added to the scores and takes no key out, as far as it is not broadcast yet; no value where nothing is."),
    Function<"four_axes (mask)", FourAxes>("A mask [S, T] as [1, 1, S, T]; any other, and the template of a mode, as it is."),
    Function<"rows_of_heads (mask, H, G)", RowsOfHeads>(
        "A mask [1 or B, 1, S, T] as [1 or B, 1, H S / G, T]: the same for each of the heads that share a key."),
    Function<"nothing_masked (q, k, mask, keep, bias)", NothingMasked>(
        "Holds where the masks leave out no key, and nothing is added to the scores."),
    Function<"whole_mask (q, k, mask, keep, bias, guard)", WholeMask>(
        "The explicit mask, also where a compressed mode would do."),
};

}  // namespace

absl::Span<const FunctionRow> MaskFunctions() { return kRows; }

}  // namespace ascend_fuse
