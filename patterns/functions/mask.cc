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
#include "patterns/analysis/score_bias.h"
#include "patterns/functions/constructs.h"
#include "patterns/terms/node_builder.h"
#include "patterns/terms/refusal.h"

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

// Zeros that are added to the scores: what a torch.baddbmm with beta 0 leaves of its input.
bool IsNothing(const FunctionContext& context, const Value* mask, const Value* query) {
  const PossibleValues set = ValuesOf(context, mask);
  const bool zeros = set.known && set.values == std::vector<double>{0} && IsFloat(context.facts->Of(mask).type);
  return zeros && CheckMaskFits(context, mask, query).ok();
}

// What is done to the scores: masks and biases, told apart where a bias is among them.
absl::StatusOr<ScoreParts> PartsOf(const FunctionContext& context, Value* q, Value* k, const std::vector<Mask>& given) {
  ScoreParts parts;
  for (const Mask& mask : given) {
    if (mask.has_value()) parts.masks.push_back(*mask);
  }
  if (parts.masks.empty() || context.masks == nullptr) return parts;
  const std::vector<const Value*> masks(parts.masks.begin(), parts.masks.end());
  if (!context.masks->Together(masks, ScoresOf(*context.facts, q, k)).bias) return parts;
  std::vector<Value*> added;
  for (Value* mask : parts.masks) {
    if (!IsNothing(context, mask, q)) added.push_back(mask);
  }
  return SplitScores(context, added);
}

// `sentences`: what the plan takes for granted; may be null.
Plan PlanFor(const FunctionContext& context, Value* q, Value* k, const ScoreParts& parts, std::vector<std::string>* sentences) {
  Plan plan;
  plan.masks = !parts.masks.empty() || !parts.drops.empty();
  if (!plan.masks || !parts.drops.empty() || context.masks == nullptr) return plan;
  for (const Value* mask : parts.masks) {
    if (!CheckMaskFits(context, mask, q).ok()) return plan;
  }
  const MaskForms::Scores scores = ScoresOf(*context.facts, q, k);
  const MaskForm& form = context.masks->Together(std::vector<const Value*>(parts.masks.begin(), parts.masks.end()), scores);
  plan = PlanOf(form, scores, *context.dims);
  const bool whole = plan.masks && plan.mode == kWholeMask;
  if (!whole && sentences != nullptr) {
    sentences->insert(sentences->end(), form.assumptions.begin(), form.assumptions.end());
  }
  return plan;
}

Plan PlanOfMasks(const FunctionContext& context, Value* q, Value* k, const std::vector<Mask>& given) {
  const absl::StatusOr<ScoreParts> parts = PartsOf(context, q, k, given);
  return parts.ok() ? PlanFor(context, q, k, *parts, nullptr) : Plan();
}

constexpr std::string_view kZeroThere = "the kernel gives 0 there";
constexpr std::string_view kAverageThere = "the kernel gives an average there";

void NoteEmptyRows(const FunctionContext& context, std::string_view what) {
  if (context.assumptions == nullptr) return;
  context.assumptions->push_back(
      fmt::format("rows with no allowed key (queries that are padding themselves) are don't-care: {}", what));
}

// -inf rows are NaN after the softmax and 0 after the guard: what the kernel's row correction gives too.
bool IsZeroThere(const FunctionContext& context, Value* mask) {
  return context.facts->Of(mask).type == DataType::kBool || MasksWithInfinity(context, mask);
}

// Refuses where a query keeps no key in any run: then it is no padding that nobody reads. `there`: what the kernel gives.
absl::Status CheckRows(const FunctionContext& context, Value* q, Value* k, const ScoreParts& parts, std::string_view there) {
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
  const MaskClause* right = form.Find(MaskClause::Kind::kUpTo);
  const MaskClause* left = form.Find(MaskClause::Kind::kFrom);
  if (right != nullptr && dims.AtLeast(Dim::Of(-1), right->offset)) return refuse(*parts.masks[0], "query 0");
  if (left != nullptr && !left->one_query && scores[2].known() && scores[3].known() &&
      dims.AtLeast(dims.Add(dims.Sub(scores[2], Dim::Of(1)), left->offset), scores[3])) {
    return refuse(*parts.masks[0], "the last query");
  }
  return absl::OkStatus();
}

// A key is masked where any of the masks says so.
absl::StatusOr<Term> AnyMasks(const FunctionContext& context, Value* q, Value* k, const ScoreParts& parts) {
  Term masked = Term::Absent();
  const auto add = [&](const absl::StatusOr<Term>& part) {
    if (!part.ok()) return part.status();
    masked = masked.kind == Term::Kind::kAbsent ? *part : build::Op("Or", {masked, *part});
    return absl::OkStatus();
  };
  for (Value* mask : parts.masks) {
    RETURN_IF_ERROR(add(ExplicitMask(context, mask, q, k)));
  }
  for (Value* drop : parts.drops) {
    RETURN_IF_ERROR(add(ExplicitDrop(context, drop, q, k)));
  }
  return masked;
}

// The mask in full. `mask`: the one that a guard of the network speaks of, where it is the only one.
absl::StatusOr<Term> WholeMaskOf(const FunctionContext& context, Value* q, Value* k, const ScoreParts& parts, Mask mask,
                                 int64_t guard) {
  const absl::StatusOr<Term> masked = AnyMasks(context, q, k, parts);
  if (!masked.ok()) return masked.status();
  const bool only = parts.masks.size() == 1 && parts.drops.empty() && parts.biases.empty();
  if (guard != 0 && only && mask == parts.masks[0] && IsZeroThere(context, parts.masks[0])) return masked;
  RETURN_IF_ERROR(CheckRows(context, q, k, parts, kZeroThere));
  for (size_t i = 0; i < parts.masks.size() + parts.drops.size(); ++i) NoteEmptyRows(context, kZeroThere);
  return masked;
}

absl::StatusOr<Term> KernelMask(const FunctionContext& context, Value* q, Value* k, Mask mask, Mask keep, Mask bias,
                                int64_t guard) {
  const absl::StatusOr<ScoreParts> parts = PartsOf(context, q, k, {keep, bias, mask});
  if (!parts.ok()) return parts.status();
  const Plan plan = PlanFor(context, q, k, *parts, context.assumptions);
  if (!plan.masks) return Term::Absent();
  if (plan.mode != kWholeMask) return build::AboveDiagonal(kTemplate, kTemplate);
  return WholeMaskOf(context, q, k, *parts, mask, guard);
}

absl::StatusOr<Term> WholeMask(const FunctionContext& context, Value* q, Value* k, Mask mask, Mask keep, Mask bias,
                               int64_t guard) {
  const absl::StatusOr<ScoreParts> parts = PartsOf(context, q, k, {keep, bias, mask});
  if (!parts.ok()) return parts.status();
  if (!parts->biases.empty()) {
    return Refuse(fmt::format("{} is added to the scores, and the kernel takes no bias", ValueName(*parts->biases[0])),
                  "mask-is-bias");
  }
  if (!PlanFor(context, q, k, *parts, nullptr).masks) return Refuse("nothing is masked here, so the stock node can be used");
  return WholeMaskOf(context, q, k, *parts, mask, guard);
}

absl::StatusOr<Term> SoftmaxMask(const FunctionContext& context, Value* q, Value* k, Mask mask, Mask keep, Mask bias) {
  const absl::StatusOr<ScoreParts> parts = PartsOf(context, q, k, {keep, bias, mask});
  if (!parts.ok()) return parts.status();
  const Plan plan = PlanFor(context, q, k, *parts, context.assumptions);
  if (!plan.masks) {
    return Refuse("no key is masked, so that the softmax of the scores is a Softmax already", "nothing-masked");
  }
  absl::StatusOr<Term> masked = AnyMasks(context, q, k, *parts);
  // Edges of one diagonal leave every query a key, as the plan proves.
  if (!masked.ok() || plan.mode != kWholeMask) return masked;
  RETURN_IF_ERROR(CheckRows(context, q, k, *parts, kAverageThere));
  NoteEmptyRows(context, kAverageThere);
  return masked;
}

absl::StatusOr<Term> ScoreBias(const FunctionContext& context, Value* q, Value* k, Mask mask, Mask keep, Mask bias) {
  const absl::StatusOr<ScoreParts> parts = PartsOf(context, q, k, {keep, bias, mask});
  if (!parts.ok()) return parts.status();
  for (const Value* one : parts->biases) {
    RETURN_IF_ERROR(CheckMaskFits(context, one, q));
  }
  return SumOfBiases(context, *parts, q);
}

absl::StatusOr<Term> KernelBias(const FunctionContext& context, Value* q, Value* k, Mask mask, Mask keep, Mask bias) {
  const absl::StatusOr<ScoreParts> parts = PartsOf(context, q, k, {keep, bias, mask});
  if (!parts.ok()) return parts.status();
  return WholeBias(context, *parts, q, k);
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

Holds MaskedBehindCap(const FunctionContext& context, Value* q, Value* k, Mask mask, Mask keep, Mask bias) {
  const absl::StatusOr<ScoreParts> parts = PartsOf(context, q, k, {keep, bias, mask});
  if (!parts.ok()) {
    return FinalWord(fmt::format("no attention kernel supports soft-capping; NPUScaledMaskedSoftmax cannot be "
                                 "used: {}",
                                 std::string(parts.status().message())),
                     "softcap-not-taken");
  }
  if (!PlanFor(context, q, k, *parts, nullptr).masks) {
    return FinalWord(
        "no attention kernel supports soft-capping; after the cap no key is masked, so that the softmax "
        "is a Softmax already",
        "softcap-not-taken");
  }
  if (parts->biases.empty()) return absl::OkStatus();
  return FinalWord(fmt::format("no attention kernel supports soft-capping; {} is added after the cap, so that lengths "
                               "are not padded for NPUScaledMaskedSoftmax, which takes multiples of 32",
                               ValueName(*parts->biases[0])),
                   "softcap-not-taken");
}

Holds NothingMasked(const FunctionContext& context, Value* q, Value* k, Mask mask, Mask keep, Mask bias) {
  const absl::StatusOr<ScoreParts> parts = PartsOf(context, q, k, {keep, bias, mask});
  if (!parts.ok()) return parts.status();
  if (!parts->biases.empty()) return Refuse(fmt::format("{} is added to the scores", ValueName(*parts->biases[0])));
  const Plan plan = PlanFor(context, q, k, *parts, context.assumptions);
  return plan.masks ? Refuse("keys are masked") : absl::OkStatus();
}

int64_t SparseMode(const FunctionContext& context, Value* q, Value* k, Mask mask, Mask keep, Mask bias) {
  return PlanOfMasks(context, q, k, {keep, bias, mask}).mode;
}

int64_t PreTokens(const FunctionContext& context, Value* q, Value* k, Mask mask, Mask keep, Mask bias) {
  return PlanOfMasks(context, q, k, {keep, bias, mask}).pre_tokens;
}

int64_t NextTokens(const FunctionContext& context, Value* q, Value* k, Mask mask, Mask keep, Mask bias) {
  return PlanOfMasks(context, q, k, {keep, bias, mask}).next_tokens;
}

// 2 corrects rows without a key, and is for masks of the user's. 0 keeps the softmax in float32 too.
int64_t InnerPrecise(const FunctionContext& context, Value* q, Value* k, Mask mask, Mask keep, Mask bias) {
  const Plan plan = PlanOfMasks(context, q, k, {keep, bias, mask});
  return plan.masks && plan.mode == kWholeMask ? 2 : 0;
}

constexpr std::array kRows = {
    Function<"explicit_mask (mask, q, k)", ExplicitMask>(
        "The mask as bool [S, T] or [B or 1, 1, S, T], true = masked, built for a query and a key."),
    Function<"kernel_mask (q, k, mask, keep, bias, guard)", KernelMask>(
        "What a kernel is given as mask: no value where nothing is masked, the template of a compressed mode, or the explicit "
        "mask."),
    Function<"kernel_bias (q, k, mask, keep, bias)", KernelBias>(
        "What a kernel adds to the scores, [1 or B, H, S, T] for a query [B, H, S, D]: what is added and takes no key out; no "
        "value where nothing is."),
    Function<"softmax_mask (q, k, mask, keep, bias)", SoftmaxMask>(
        "What a kernel of the softmax alone is given as mask: the explicit one; not where nothing is masked."),
    Function<"score_bias (q, k, mask, keep, bias)", ScoreBias>(
        "What is added to the scores and takes no key out, as far as it is not broadcast yet; no value where nothing is."),
    Function<"four_axes (mask)", FourAxes>("A mask [S, T] as [1, 1, S, T]; any other, and the template of a mode, as it is."),
    Function<"masked_behind_cap (q, k, mask, keep, bias)", MaskedBehindCap>(
        "Holds where the masks leave out keys and nothing else is added to capped scores."),
    Function<"nothing_masked (q, k, mask, keep, bias)", NothingMasked>(
        "Holds where the masks leave out no key, and nothing is added to the scores."),
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
