// Functions of rules about capped scores, cap * tanh(scores / cap): no kernel of an attention computes them, and one of mask and
// softmax may follow the cap.
#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/str_join.h"
#include "fmt/format.h"
#include "patterns/functions/attention_masks.h"
#include "patterns/functions/constructs.h"
#include "patterns/terms/node_builder.h"
#include "patterns/terms/refusal.h"

namespace ascend_fuse {
namespace {

constexpr size_t kHeads = 1;   // of [B, H, S, D]
constexpr size_t kTokens = 2;  // of these

bool IsMultiple(const FunctionContext& context, Dim dim, int64_t of) { return context.dims->Mod(dim, Dim::Of(of)).is(0); }

Dim TokensOf(const FunctionContext& context, const Value* x) { return context.facts->Of(x).shape[kTokens]; }

// How many rows a product has in which the queries of heads that share a key stand one after another.
Dim RowsOfSharedKeys(const FunctionContext& context, const Value* q, const Value* k) {
  DimTable& dims = *context.dims;
  const auto heads = [&](const Value* x) { return context.facts->Of(x).shape[kHeads]; };
  return dims.Mul(TokensOf(context, q), dims.ExactDiv(heads(q), heads(k)));
}

// What --dim says, as LOW..HIGH and LOW..HIGH:STEP.
struct Range {
  int64_t low = 0;
  int64_t high = 0;
  int64_t step = 1;

  std::string Text(int64_t less) const {
    std::string text = fmt::format("{}..{}", std::max<int64_t>(0, low - less), high - less);
    return step == 1 ? text : fmt::format("{}:{}", text, step);
  }
};

// The end of a sentence that says how a user tells that both lengths are in the range: "; --dim seq=1..4096 says so". ""
// where that is not so or a length has no name.
std::string HowToSay(const FunctionContext& context, Dim queries, Dim keys, const Range& range) {
  std::vector<std::string> flags;
  std::string sum;
  for (const Dim dim : {queries, keys}) {
    if (dim.is_number()) {
      if (dim.number() > range.high || dim.number() % range.step != 0) return "";
      continue;
    }
    if (context.dims->MentionsFresh(dim)) return "";
    for (const std::string_view symbol : context.dims->Symbols(dim)) {
      const Dim rest = context.dims->Sub(dim, context.dims->Symbol(symbol));
      const bool alone = rest.is_number() && (rest.is(0) || range.step == 1);
      if (!alone) sum = fmt::format(" where {} is in {}", context.dims->ToString(dim), range.Text(0));
      std::string flag = fmt::format("--dim {}={}", symbol, alone ? range.Text(rest.number()) : "LOW..HIGH");
      const auto same = [&](const std::string& other) { return other.starts_with(flag.substr(0, flag.find('=') + 1)); };
      const auto given = std::find_if(flags.begin(), flags.end(), same);
      if (given == flags.end()) {
        flags.push_back(std::move(flag));
      } else {
        *given = std::move(flag);  // the keys are as many as the queries or more
      }
    }
  }
  return flags.empty() ? "" : fmt::format("; {} says so{}", absl::StrJoin(flags, " "), sum);
}

Holds NotTaken(std::string_view why) {
  return FinalWord(fmt::format("no attention kernel supports soft-capping; NPUScaledMaskedSoftmax, after the cap, {}", why),
                   "softcap-not-taken");
}

// Whether the lengths are multiples of what the kernel takes; refused with the flag of --dim that would say so.
Holds InSteps(const FunctionContext& context, const Value* q, const Value* k, int64_t multiple, int64_t most) {
  const DimTable& dims = *context.dims;
  const Dim queries = TokensOf(context, q);
  const Dim keys = TokensOf(context, k);
  if (!queries.known() || !keys.known()) return NotTaken("has limits for lengths, which are not known");
  // Where only the rows of heads that share a key are a multiple, the target refuses the form that asks, and the next rule has
  // theirs.
  const bool rows = IsMultiple(context, queries, multiple) || IsMultiple(context, RowsOfSharedKeys(context, q, k), multiple);
  if (rows && IsMultiple(context, keys, multiple)) return absl::OkStatus();
  for (const Dim dim : {queries, keys}) {
    if (!dim.is_number() || dim.number() % multiple == 0) continue;
    return NotTaken(fmt::format("supports lengths that are multiples of {}, and {} is not one", multiple, dim.number()));
  }
  const std::string which = dims.Equal(queries, keys)
                                ? fmt::format("`{}` is not known to be one", dims.ToString(keys))
                                : fmt::format("`{}` and `{}` are not known to be", dims.ToString(queries), dims.ToString(keys));
  return NotTaken(fmt::format("supports lengths that are multiples of {}, and {}{}", multiple, which,
                              HowToSay(context, queries, keys, {multiple, most, multiple})));
}

Holds AfterCap(const FunctionContext& context, std::optional<double> cap, const Value* q, const Value* k, MaskOperand mask,
               MaskOperand keep, MaskOperand bias, int64_t multiple, int64_t most) {
  if (cap.value_or(0) == 0) return absl::OkStatus();
  const auto masks = MasksOf(context, q, k, {keep, bias, mask});
  if (!masks->parts.ok()) return NotTaken(fmt::format("cannot be used: {}", std::string(masks->parts.status().message())));
  if (!masks->plan.masks) {
    return NotTaken("has no work: no key is masked, so that the softmax is a Softmax already");
  }
  return InSteps(context, q, k, multiple, most);
}

double CapFactor(std::optional<double> cap) { return cap.value_or(0) == 0 ? 1 : *cap; }

double ScaleBelowCap(double scale, std::optional<double> cap) { return scale / CapFactor(cap); }

Term BelowCap(const Term& scores, std::optional<double> cap) {
  return cap.value_or(0) == 0 ? scores : build::Op("Tanh", {scores});
}

constexpr std::array kRows = {
    Function<"after_cap (cap, q, k, mask, keep, bias, n, most)", AfterCap>(
        "Holds where the scores are not capped, and where a kernel of mask and softmax can follow the cap: keys are masked, and "
        "S "
        "of q [B, H, S, D] and T of k [B, G, T, D] are provably multiples of n. `most` is the longest length of that kernel."),
    Function<"cap_factor (cap)", CapFactor>("The cap of the scores; 1 where it is 0, which is without one."),
    Function<"scale_below_cap (scale, cap)", ScaleBelowCap>("The scale of what tanh is taken of: scale / cap."),
    Function<"below_cap (scores, cap)", BelowCap>("The tanh of scores that have that scale; the scores where there is no cap."),
};

}  // namespace

absl::Span<const FunctionRow> SoftcapFunctions() { return kRows; }

}  // namespace ascend_fuse
