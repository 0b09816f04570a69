// Functions of rules that pad tokens to a multiple of what a kernel takes, and cut them off again. Lengths that are no
// numbers are read of the mask, which all layers share, so that they are computed once.
#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/str_join.h"
#include "fmt/format.h"
#include "patterns/functions/constructs.h"
#include "patterns/terms/node_builder.h"
#include "patterns/terms/refusal.h"

namespace ascend_fuse {
namespace {

constexpr size_t kTokens = 2;  // of [B, H, S, D]

bool IsMultiple(const FunctionContext& context, Dim dim, int64_t of) { return context.dims->Mod(dim, Dim::Of(of)).is(0); }

Dim TokensOf(const FunctionContext& context, const Value* x) { return context.facts->Of(x).shape[kTokens]; }

// The axis of a mask [1 or B, 1, S, T] as a vector of one number.
Term LengthOf(const Term& masked, Dim dim, int64_t axis) {
  if (dim.is_number()) return Term::Integer(dim.number());
  return build::Gather(build::Shape(masked), build::Numbers({axis}), 0);
}

// How many tokens are missing to the next multiple.
Term RestOf(const FunctionContext& context, const Term& masked, Dim dim, int64_t axis, int64_t multiple) {
  if (IsMultiple(context, dim, multiple)) return Term::Integer(0);
  if (dim.is_number()) return Term::Integer((dim.number() + multiple - 1) / multiple * multiple - dim.number());
  const Term length = LengthOf(masked, dim, axis);
  const Term steps = build::Op("Div", {build::Op("Add", {length, build::Numbers({multiple - 1})}), build::Numbers({multiple})});
  return build::Op("Sub", {build::Op("Mul", {steps, build::Numbers({multiple})}), length});
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
// where that is not so or a length is none that has a name.
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

Holds InSteps(const FunctionContext& context, std::optional<double> cap, Value* q, Value* k, int64_t multiple) {
  if (cap.value_or(0) == 0) return absl::OkStatus();
  if (IsMultiple(context, TokensOf(context, q), multiple) && IsMultiple(context, TokensOf(context, k), multiple))
    return absl::OkStatus();
  return Refuse(fmt::format("the lengths are not proved to be multiples of {}: tokens are padded to the next one", multiple));
}

Holds PaddingPays(const FunctionContext& context, Value* q, Value* k, int64_t multiple, int64_t most) {
  const DimTable& dims = *context.dims;
  const Dim queries = TokensOf(context, q);
  const Dim keys = TokensOf(context, k);
  if (!queries.known() || !keys.known()) return NotTaken("has limits for lengths, which are not known");
  if (IsMultiple(context, queries, multiple) && IsMultiple(context, keys, multiple)) {
    return Refuse(fmt::format("the lengths are multiples of {}", multiple));
  }
  if (keys.is_number() && keys.number() < multiple) {
    return NotTaken(fmt::format("supports {} keys and more: for {} launches are all the time, and padding has more of them",
                                multiple, keys.number()));
  }
  if (dims.Equal(context.facts->Of(q).shape[1], context.facts->Of(k).shape[1])) {
    const std::string both = dims.Equal(queries, keys) ? "" : fmt::format("{} and ", dims.ToString(queries));
    return NotTaken(
        fmt::format("supports lengths that are multiples of {}, and {}{} are not known to be: where each head has keys of "
                    "its own, padding is more kernels than it saves{}",
                    multiple, both, dims.ToString(keys), HowToSay(context, queries, keys, {multiple, most, multiple})));
  }
  for (const Dim dim : {queries, keys}) {
    if (const std::optional<int64_t> upper = dims.UpperBound(dim); upper.has_value() && *upper <= most) continue;
    if (dim.is_number()) return NotTaken(fmt::format("supports lengths up to {}, and here are {}", most, dim.number()));
    return NotTaken(fmt::format("supports lengths up to {}, which `{}` may exceed{}", most, dims.ToString(dim),
                                HowToSay(context, queries, keys, {1, most})));
  }
  return absl::OkStatus();
}

// Pads behind axis 2, and behind axis 3 too.
Term Padded(const Term& x, const Term& rows, const Term& columns, const Term& fill) {
  const Term none = Term::Integer(0);
  const Term pads = build::Vector({none, none, none, none, none, none, rows, columns});
  std::vector<Term> inputs = {x, pads};
  if (fill.kind != Term::Kind::kAbsent) inputs.push_back(fill);
  return build::Op("Pad", std::move(inputs));
}

bool IsZero(const Term& rest) { return IntegerOf(rest) == 0; }

Term PaddedTokens(const FunctionContext& context, const Term& x, Value* of, const Term& masked, int64_t axis, int64_t multiple) {
  const Term rest = RestOf(context, masked, TokensOf(context, of), axis, multiple);
  return IsZero(rest) ? x : Padded(x, rest, Term::Integer(0), Term::Absent());
}

// The AI Core pads numbers, no booleans (docs/sources/atc-op-audit.md, Pad): once for all layers they are numbers.
Term AsNumbers(const Term& masked) { return build::Cast(masked, DataType::kFloat); }

// Where padding is masked with all keys of a row, its average would count keys that there are not. Such a row masks none of
// its own keys instead, and its query is 0: the same average.
Term RowsWithAKey(const Term& masked) {
  const Term all = build::Op("ReduceMin", {AsNumbers(masked)}, {{"axes", build::Numbers({3})}, {"keepdims", Term::Integer(1)}});
  return build::Op("Sub", {Term::Number(1), all});
}

Term ScaledQueries(const FunctionContext& context, Value* q, double scale, const Term& masked) {
  const DataType type = context.facts->Of(q).type;
  Term rows = build::Op("Mul", {RowsWithAKey(masked), Term::Number(scale)});
  if (type != DataType::kFloat) rows = build::Cast(rows, type);
  return build::Op("Mul", {Term::Of(q), rows});
}

Term PaddedMask(const FunctionContext& context, const Term& masked, Value* q, Value* k, int64_t multiple) {
  const Term rows = RestOf(context, masked, TokensOf(context, q), 2, multiple);
  const Term columns = RestOf(context, masked, TokensOf(context, k), 3, multiple);
  const Term own = build::Op("Mul", {AsNumbers(masked), RowsWithAKey(masked)});
  return build::Cast(Padded(own, rows, columns, Term::Number(1)), DataType::kBool);
}

// A Slice up to a place that is computed runs on the AI CPU (docs/sources/ascend-contract.md 5.1), a Gather on the AI Core.
Term FirstTokens(const FunctionContext& context, const Term& x, Value* of, const Term& masked, int64_t multiple) {
  const Dim tokens = TokensOf(context, of);
  if (IsMultiple(context, tokens, multiple)) return x;
  if (tokens.is_number()) return build::Slice(x, 0, tokens.number(), kTokens);
  const Term zero = build::Squeeze(build::Constant(DataType::kInt64, {1}, 0), {0});
  const Term one = build::Squeeze(build::Constant(DataType::kInt64, {1}, 1), {0});
  const Term length = build::Squeeze(LengthOf(masked, tokens, kTokens), {0});
  return build::Gather(x, build::Op("Range", {zero, length, one}), kTokens);
}

constexpr std::array kRows = {
    Function<"in_steps (cap, q, k, n)", InSteps>(
        "Holds where the scores are not capped, or S of q [B, H, S, D] and T of k [B, G, T, D] are provably multiples of n."),
    Function<"padding_pays (q, k, n, most)", PaddingPays>(
        "Holds where mask and softmax of capped scores of q [B, H, S, D] and k [B, G, T, D] are fewer kernels with S and T, at "
        "most `most`, padded to multiples of n."),
    Function<"padded_tokens (x, of, masked, axis, n)", PaddedTokens>(
        "x [B, H, S, D] with zeros after up to the next multiple of n tokens; S is that of the value `of`, and this axis of the "
        "mask [1 or B, 1, S, T]."),
    Function<"padded_mask (masked, q, k, n)", PaddedMask>("The mask [1 or B, 1, S, T] of q and k, true up to the next multiples "
                                                          "of n; a row that masks every key masks none but those."),
    Function<"scaled_queries (q, n, masked)", ScaledQueries>(
        "q [B, H, S, D] times the number n, and 0 where the mask [1 or B, 1, S, T] leaves a row no key."),
    Function<"first_tokens (x, of, masked, n)", FirstTokens>(
        "What padded_tokens put after the tokens of x, which are as many as the value `of` has, cut off."),
};

}  // namespace

absl::Span<const FunctionRow> PaddingFunctions() { return kRows; }

}  // namespace ascend_fuse
