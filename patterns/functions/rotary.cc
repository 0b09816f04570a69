// Functions of rules about rotations: how values are rotated, which value parts come from, and the tables and layouts
// that kernels take.
#include "patterns/functions/rotary.h"

#include <algorithm>
#include <array>

#include "absl/container/inlined_vector.h"
#include "fmt/format.h"
#include "ir/status_macros.h"
#include "patterns/analysis/halves.h"
#include "patterns/analysis/rotation.h"
#include "patterns/functions/constructs.h"
#include "patterns/terms/node_builder.h"
#include "patterns/terms/refusal.h"

namespace ascend_fuse {

Term JoinTables(const Term& a, const Term& b, int rank, int64_t width, bool interleaved) {
  if (!interleaved) return build::Concat({a, b}, -1);
  std::vector<int64_t> dims(static_cast<size_t>(rank) - 1, 0);
  dims.push_back(width);
  return build::Reshape(build::Concat({build::Unsqueeze(a, {rank}), build::Unsqueeze(b, {rank})}, -1), dims);
}

namespace {

// The dim before the last one.
Dim LastButOne(const Fact& fact) { return fact.shape[static_cast<size_t>(fact.rank()) - 2]; }

absl::StatusOr<int64_t> Half(const FunctionContext& context, const Value* part) {
  ASSIGN_OR_RETURN(const HalfOf half, FindHalf(context, part));
  if (half.axis != context.facts->Of(half.whole).rank() - 1) {
    return Refuse(fmt::format("{} is cut along axis {}, not along the last", ValueName(*part), half.axis), "not-a-half");
  }
  if (half.strided) {
    return Refuse(fmt::format("{} is every other element, not one block", ValueName(*part)), "not-a-half");
  }
  return half.index;
}

// Whether `value` is computed from one of `sources`, so many nodes away at most and after so many looks. Constants do not count.
bool IsComputedFrom(const FunctionContext& context, const Value* value, absl::Span<const Value* const> sources, int steps,
                    int* looks) {
  while (context.numbering->Source(value) != nullptr) value = context.numbering->Source(value);
  if (value->initializer != nullptr || --*looks < 0) return false;
  if (std::find(sources.begin(), sources.end(), value) != sources.end()) return true;
  if (steps == 0 || value->producer == nullptr) return false;
  const auto& inputs = value->producer->inputs();
  return std::any_of(inputs.begin(), inputs.end(), [&](const Use& use) {
    return use.value != nullptr && IsComputedFrom(context, use.value, sources, steps - 1, looks);
  });
}

// Whether r may be x rotated: it is computed from x, or from what x is computed from at once. It is not from a table.
bool AreRelated(const FunctionContext& context, const Value* r, const Value* x) {
  absl::InlinedVector<const Value*, 8> sources;
  const auto add = [&](const Value* value) {
    while (context.numbering->Source(value) != nullptr) value = context.numbering->Source(value);
    sources.push_back(value);
  };
  add(x);
  if (const Node* node = sources[0]->producer; node != nullptr) {
    for (const Use& use : node->inputs()) {
      if (use.value != nullptr) add(use.value);
    }
  }
  int looks = 64;
  return IsComputedFrom(context, r, sources, 5, &looks);
}

absl::StatusOr<std::string> Rotation(const FunctionContext& context, const Value* r, const Value* x, double sign,
                                     Trailing<AnyOf<kValueTerm | kNumberTerm>> signs) {
  const Value* vector = signs.has_value() && signs->term.kind == Term::Kind::kValue ? signs->term.value : nullptr;
  const size_t read = context.read != nullptr ? context.read->size() : 0;
  absl::StatusOr<std::string> mode = RotationMode(context, r, x, sign < 0 ? -1 : 1, vector);
  if (!mode.ok() && !AreRelated(context, r, x)) {
    if (context.read != nullptr) context.read->resize(read);  // what was read is not a part of it
    return Elsewhere(mode.status());
  }
  if (mode.ok() && *mode == "half" && DeinterleavedSource(context, x).ok()) return "interleave_half";
  return mode;
}

Holds SignVector(const FunctionContext& context, const Value* s) {
  const Elements* elements = context.facts->Of(s).elements;
  bool plus = false;
  bool minus = false;
  bool other = elements == nullptr;
  if (elements != nullptr) {
    for (double number : elements->floats) {
      plus = plus || number == 1;
      minus = minus || number == -1;
      other = other || (number != 1 && number != -1);
    }
  }
  if (plus && minus && !other) return absl::OkStatus();
  return Refuse(fmt::format("{} holds no signs", ValueName(*s)));
}

absl::StatusOr<const Value*> RotationSource(const FunctionContext& context, const Value* x, std::string_view mode) {
  if (mode != "interleave_half") return x;
  return DeinterleavedSource(context, x);
}

absl::StatusOr<std::string> PairRotation(const FunctionContext& context, const Value* y, const Value* a, const Value* b,
                                         const Value* x1, const Value* x2) {
  ASSIGN_OR_RETURN(const std::string join, JoinMode(context, y, a, b));
  ASSIGN_OR_RETURN(const Cut cut, CutSource(context, x1, x2, y));
  if (cut.mode == join) return cut.mode;
  if (cut.mode == "interleaved") return "interleave_half";
  return Refuse("the parts are cut as halves and joined as pairs", "rotation-order");
}

// Whether the perm exchanges the first and the last of `rank` axes.
bool ExchangesEnds(List perm, int64_t rank) {
  if (rank < 2 || static_cast<int64_t>(perm.size()) != rank) return false;
  for (int64_t i = 0; i < rank; ++i) {
    const int64_t wanted = i == 0 ? rank - 1 : i == rank - 1 ? 0 : i;
    if (IntegerOf(perm[static_cast<size_t>(i)]) != wanted) return false;
  }
  return true;
}

// Whether the value is the rows [count, 1] first, first + step, ...
bool AreRows(const FunctionContext& context, const Value* value, int64_t count, int64_t first, int64_t step) {
  const Fact& rows = context.facts->Of(value);
  if (rows.elements == nullptr || static_cast<int64_t>(rows.elements->integers.size()) != count) return false;
  if (rows.rank() != 2 || !rows.shape[1].is(1)) return false;
  for (int64_t i = 0; i < count; ++i) {
    if (!rows.elements->integers[static_cast<size_t>(i)].is(first + i * step)) return false;
  }
  return true;
}

// How x1 and x2 are turned that are written to rows of a tensor with the channels in front. `part` times the width of y is that
// of the tensor.
absl::StatusOr<std::string> RotationOfRows(const FunctionContext& context, const Value* y, int64_t part, List perm,
                                           const Value* i, const Value* j, const Value* x1, const Value* x2) {
  const Fact& fact = context.facts->Of(y);
  if (!ExchangesEnds(perm, fact.rank())) {
    return Refuse("the parts are not written along the last axis", "rotation-order");
  }
  if (!fact.shape.back().is_number() || fact.shape.back().number() * part % 2 != 0) {
    return Refuse(fmt::format("the width of {} is not an even number", ValueName(*y)));
  }
  const int64_t half = fact.shape.back().number() * part / 2;
  const bool halves = AreRows(context, i, half, 0, 1) && AreRows(context, j, half, half, 1);
  const bool pairs = AreRows(context, i, half, 0, 2) && AreRows(context, j, half, 1, 2);
  if (!halves && !pairs) {
    return Refuse("the parts are written neither to the halves of the last axis nor to its pairs", "rotation-order");
  }
  ASSIGN_OR_RETURN(const Cut cut, CutSource(context, x1, x2, y, part));
  if (cut.mode == (halves ? "half" : "interleaved")) return cut.mode;
  if (halves) return "interleave_half";
  return Refuse("the parts are cut as halves and written as pairs", "rotation-order");
}

absl::StatusOr<std::string> WrittenRotation(const FunctionContext& context, const Value* y, List perm, const Value* i,
                                            const Value* j, const Value* x1, const Value* x2) {
  return RotationOfRows(context, y, 1, perm, i, j, x1, x2);
}

absl::StatusOr<std::string> WrittenPartRotation(const FunctionContext& context, const Value* a, List perm, const Value* i,
                                                const Value* j, const Value* x1, const Value* x2) {
  return RotationOfRows(context, a, 2, perm, i, j, x1, x2);
}

absl::StatusOr<std::string> PartRotation(const FunctionContext& context, const Value* a, const Value* x1, const Value* x2) {
  ASSIGN_OR_RETURN(const Cut cut, CutSource(context, x1, x2, a, 2));
  return cut.mode == "half" ? "half" : "interleave_half";
}

absl::StatusOr<Term> PartWhole(const FunctionContext& context, const Value* a, const Value* x1, const Value* x2) {
  ASSIGN_OR_RETURN(const Cut cut, CutSource(context, x1, x2, a, 2));
  return cut.whole;
}

absl::StatusOr<Term> JoinedSource(const FunctionContext& context, const Value* a, const Value* b, const Value* y,
                                  Trailing<std::string_view> mode) {
  ASSIGN_OR_RETURN(const Cut cut, CutSource(context, a, b, y));
  if (mode.has_value() && *mode != cut.mode) {
    return Refuse(
        fmt::format("the parts are {}, not {}", cut.mode == "half" ? "halves" : "pairs", *mode == "half" ? "halves" : "pairs"),
        "rotation-order");
  }
  return cut.whole;
}

// That two tables have one shape.
absl::Status CheckSameShape(const FunctionContext& context, const Value* a, const Value* b) {
  const Fact& first = context.facts->Of(a);
  const Fact& second = context.facts->Of(b);
  for (const Value* value : {a, b}) {
    if (!context.facts->Of(value).has_rank) {
      return Refuse(fmt::format("the shape of {} is not known", ValueName(*value)), "shape-not-known");
    }
  }
  if (context.dims->Equal(first.shape, second.shape)) return absl::OkStatus();
  return Refuse(fmt::format("{} and {} have not the same shape", context.facts->Describe(a), context.facts->Describe(b)),
                "rotary-table-shape");
}

absl::StatusOr<Term> RotaryTable(const FunctionContext& context, const Value* a, const Value* b, const Value* x1,
                                 std::string_view mode) {
  const Facts& facts = *context.facts;
  const Fact& part = facts.Of(x1);
  const Fact& table = facts.Of(a);
  if (!part.has_rank || table.rank() < 1) {
    return Refuse(fmt::format("the shape of {} is not known", ValueName(*a)), "shape-not-known");
  }
  RETURN_IF_ERROR(CheckSameShape(context, a, b));
  if (part.rank() < 1) return Refuse("the rank of the part is 0");
  // The part may have an axis of 1 after its channels, and then so have its factors.
  const bool unit = part.rank() > 1 && part.shape.back().is(1) && table.shape.back().is(1) && table.rank() > 1;
  const Dim channels = unit ? LastButOne(part) : part.shape.back();
  const Dim factors = unit ? LastButOne(table) : table.shape.back();
  if (!channels.is_number() || !context.dims->Equal(factors, channels)) {
    return Refuse(fmt::format("{} has {} factors for {} channels", facts.Describe(a), context.dims->ToString(factors),
                              context.dims->ToString(channels)),
                  "rotary-table-shape");
  }
  const bool interleaved = mode == "interleaved";
  const int64_t width = 2 * channels.number();
  if (!unit && a != b) {
    const absl::StatusOr<Cut> cut = CutSource(context, a, b);
    if (cut.ok() && cut->mode == (interleaved ? "interleaved" : "half") && facts.Of(cut->source).rank() == table.rank() &&
        facts.Of(cut->source).shape.back().is(width)) {
      return Term::Of(cut->source);
    }
  }
  if (!unit) return JoinTables(Term::Of(a), Term::Of(b), table.rank(), width, interleaved);
  if (interleaved) {
    std::vector<int64_t> dims(static_cast<size_t>(table.rank()) - 2, 0);
    dims.push_back(width);
    return build::Reshape(build::Concat({Term::Of(a), Term::Of(b)}, -1), dims);
  }
  const auto flat = [&](const Value* value) { return build::Squeeze(Term::Of(value), {table.rank() - 1}); };
  return JoinTables(flat(a), flat(b), table.rank() - 1, width, false);
}

// Of y = f * x[even] + g * x[odd] with f and g [..., D/2, 2]: cos is f[0], g[1] of every pair, sin is -g[0], f[1].
absl::StatusOr<Term> MatrixTable(const FunctionContext& context, const Value* f, const Value* g, std::string_view name) {
  RETURN_IF_ERROR(CheckSameShape(context, f, g));
  const Fact& fact = context.facts->Of(f);
  if (fact.rank() < 2 || !fact.shape.back().is(2) || !LastButOne(fact).is_number()) {
    return Refuse(fmt::format("{} are not columns of 2 x 2 matrices", context.facts->Describe(f)), "rotary-table-shape");
  }
  const auto take = [](const Value* from, int64_t i) { return build::Slice(Term::Of(from), i, i + 1, -1); };
  const Term pairs = name == "cos" ? build::Concat({take(f, 0), take(g, 1)}, -1)
                                   : build::Concat({build::Op("Neg", {take(g, 0)}), take(f, 1)}, -1);
  std::vector<int64_t> dims(static_cast<size_t>(fact.rank()) - 2, 0);
  dims.push_back(2 * LastButOne(fact).number());
  return build::Reshape(pairs, dims);
}

// The axes in front that are missing of four.
std::vector<int64_t> MissingAxes(int rank) {
  std::vector<int64_t> axes;
  for (int i = 0; i < 4 - rank; ++i) axes.push_back(i);
  return axes;
}

absl::StatusOr<Term> RankFour(const FunctionContext& context, Shaped t, const Value* x) {
  // A node to be built has the rank of x.
  const Value* shaped = t.term.kind == Term::Kind::kValue ? t.term.value : x;
  const int rank = context.facts->Of(shaped).rank();
  const int data = context.facts->Of(x).rank();
  if (rank < 1 || data < 1) {
    return Refuse(fmt::format("the rank of {} is not known", ValueName(*shaped)), "shape-not-known");
  }
  if (data > 4 || rank > 4) {
    return Refuse(fmt::format("{} has {} axes, and the kernel takes 4", context.facts->Describe(x), std::max(rank, data)),
                  "rank-not-taken");
  }
  return rank == 4 ? t.term : build::Unsqueeze(t.term, MissingAxes(rank));
}

absl::StatusOr<Term> SqueezeRankFour(const FunctionContext& context, const Term& y, const Value* x) {
  const int rank = context.facts->Of(x).rank();
  if (rank < 1 || rank > 4) return Refuse("the rank is not known", "shape-not-known");
  return rank == 4 ? y : build::Squeeze(y, MissingAxes(rank));
}

absl::StatusOr<Term> Deinterleaved(const FunctionContext& context, const Value* x) {
  const Fact& fact = context.facts->Of(x);
  if (fact.rank() < 1 || !fact.shape.back().is_number() || fact.shape.back().number() % 2 != 0) {
    return Refuse(fmt::format("{} has no pairs of channels", context.facts->Describe(x)));
  }
  const int64_t width = fact.shape.back().number();
  const size_t leading = static_cast<size_t>(fact.rank()) - 1;
  std::vector<int64_t> pairs(leading, 0);
  std::vector<int64_t> flat(leading, 0);
  std::vector<int64_t> perm;
  for (size_t i = 0; i < leading; ++i) perm.push_back(static_cast<int64_t>(i));
  perm.insert(perm.end(), {fact.rank(), fact.rank() - 1});
  pairs.insert(pairs.end(), {width / 2, 2});
  flat.push_back(width);
  return build::Reshape(build::Transpose(build::Reshape(Term::Of(x), pairs), perm), flat);
}

constexpr std::array kRows = {
    Function<"half (part)", Half>("0 or 1: which half of the last axis of a value the part is, by Slice, Split or Gather."),
    Function<"rotation (r, x, sign, signs?)", Rotation>(
        "How r, times the sign and channel by channel times the constant signs, is x rotated: \"half\", "
        "\"interleaved\", \"quarter\" or \"interleave_half\".",
        "Neg"),
    Function<"sign_vector (s)", SignVector>("Holds for a constant s of numbers 1 and -1, not all the same."),
    Function<"rotation_source (x, mode)", RotationSource>(
        "What a rotation of x in this mode takes: x, or the value that x takes the pairs apart of.", "Concat", JoinsHalvesOfOne),
    Function<"pair_rotation (y, a, b, x1, x2)", PairRotation>(
        "The mode of a rotation y whose parts a and b are computed from the parts x1 and x2 of one value.", "Sub"),
    Function<"written_rotation (y, perm, i, j, x1, x2)", WrittenRotation>(
        "The same where the parts are written to the rows i and j of a tensor that the perm turns into y.", "Sub"),
    Function<"written_part_rotation (a, perm, i, j, x1, x2)", WrittenPartRotation>(
        "The same where a is the first of the two parts, half as wide as what they are written into.", "Sub"),
    Function<"part_rotation (a, x1, x2)", PartRotation>("The same where the part a stands among others, beside its partner.",
                                                        "Sub"),
    Function<"part_whole (a, x1, x2)", PartWhole>("The value that is rotated then."),
    Function<"joined_source (a, b, y, mode?)", JoinedSource>(
        "The value in the shape of y of which a and b are the halves (\"half\") or the even and the odd channels "
        "(\"interleaved\")."),
    Function<"rotary_table (a, b, x1, mode)", RotaryTable>(
        "The factors a of the first and b of the second channel of every pair as one table, made for the part x1."),
    Function<"matrix_table (f, g, name)", MatrixTable>(
        "\"cos\" or \"sin\" of 2 x 2 matrices with the columns f and g, as one table of pairs."),
    Function<"deinterleaved (x)", Deinterleaved>("The even channels of x and then the odd ones."),
    Function<"rank4 (t, x)", RankFour>("t with axes of 1 in front up to rank 4, which kernels take for x."),
    Function<"squeeze_rank4 (y, x)", SqueezeRankFour>("y, of rank 4, without the axes that rank4 put in front of x."),
};

}  // namespace

absl::Span<const FunctionRow> RotaryFunctions() { return kRows; }

}  // namespace ascend_fuse
