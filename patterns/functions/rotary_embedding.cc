// Functions of rules about the operators RotaryEmbedding, of opset 23 and of ONNX Runtime: their modes, heads, partial
// widths and tables.
#include <array>

#include "fmt/format.h"
#include "ir/status_macros.h"
#include "patterns/functions/constructs.h"
#include "patterns/functions/rotary.h"
#include "patterns/terms/node_builder.h"
#include "patterns/terms/refusal.h"

namespace ascend_fuse {
namespace {

absl::StatusOr<std::string> RotaryMode(std::optional<int64_t> interleaved) {
  const int64_t number = interleaved.value_or(0);
  if (number == 0 || number == 1) return number == 1 ? "interleaved" : "half";
  return Refuse(fmt::format("interleaved is {}, neither 0 nor 1", number), "attribute-not-supported");
}

// The dims of a RotaryEmbedding: its heads, the width of one, and how much of that turns.
struct RotaryDims {
  int rank = 0;
  int64_t heads = 0;
  int64_t width = 0;
  int64_t turned = 0;
};

absl::StatusOr<RotaryDims> RotaryDimsOf(const FunctionContext& context, const Value* x, const Value* cache,
                                        std::optional<int64_t> heads, std::optional<int64_t> turned) {
  const Fact& data = context.facts->Of(x);
  const Fact& table = context.facts->Of(cache);
  RotaryDims dims;
  dims.rank = data.rank();
  if ((dims.rank != 3 && dims.rank != 4) || !data.shape.back().is_number()) {
    return Refuse(fmt::format("{} is neither [B, N, S, D] nor [B, S, N * D]", context.facts->Describe(x)));
  }
  if (table.rank() < 2 || !table.shape.back().is_number()) {
    return Refuse(fmt::format("the width of the table {} is not known", context.facts->Describe(cache)), "rotary-table-shape");
  }
  dims.turned = turned.value_or(0);
  dims.heads = heads.value_or(0);
  const int64_t last = data.shape.back().number();
  if (dims.rank == 4) {
    dims.width = last;
  } else if (dims.heads > 0) {
    dims.width = last % dims.heads == 0 ? last / dims.heads : 0;
  } else {
    dims.width = 2 * table.shape.back().number();  // com.microsoft: a head is as wide as the table says
    dims.heads = dims.width > 0 ? last / dims.width : 0;
  }
  if (dims.turned == 0) dims.turned = dims.width;
  if (dims.width < 2 || dims.turned > dims.width || dims.turned % 2 != 0 || (dims.rank == 3 && dims.heads * dims.width != last) ||
      !table.shape.back().is(dims.turned / 2)) {
    return Refuse(fmt::format("{} with {} heads and a table of {} factors does not fit a rotation of {} channels",
                              context.facts->Describe(x), dims.heads, context.dims->ToString(table.shape.back()), dims.turned),
                  "rotary-table-shape");
  }
  return dims;
}

// x with an axis of its own for the heads.
Term HeadsApart(const Value* x, const RotaryDims& dims) {
  return dims.rank == 4 ? Term::Of(x) : build::Reshape(Term::Of(x), {0, 0, dims.heads, dims.width});
}

absl::StatusOr<Term> TurnedPart(const FunctionContext& context, const Value* x, const Value* cache, std::optional<int64_t> heads,
                                std::optional<int64_t> width) {
  ASSIGN_OR_RETURN(const auto dims, RotaryDimsOf(context, x, cache, heads, width));
  const Term apart = HeadsApart(x, dims);
  return dims.turned == dims.width ? apart : build::Slice(apart, 0, dims.turned, 3);
}

absl::StatusOr<Term> TurnedWhole(const FunctionContext& context, const Term& y, const Value* x, const Value* cache,
                                 std::optional<int64_t> heads, std::optional<int64_t> width) {
  ASSIGN_OR_RETURN(const auto dims, RotaryDimsOf(context, x, cache, heads, width));
  Term whole = y;
  if (dims.turned != dims.width) {
    whole = build::Concat({y, build::Slice(HeadsApart(x, dims), dims.turned, dims.width, 3)}, 3);
  }
  return dims.rank == 4 ? whole : build::Reshape(whole, {0, 0, dims.heads * dims.width});
}

absl::StatusOr<Term> CachedTable(const FunctionContext& context, const Value* cache, std::optional<const Value*> positions,
                                 const Value* x, std::string_view mode) {
  const Fact& fact = context.facts->Of(cache);
  const int rank = context.facts->Of(x).rank();
  if (fact.rank() != (positions.has_value() ? 2 : 3) || !fact.shape.back().is_number() || rank < 3) {
    return Refuse(
        fmt::format("the table {} is neither [B, S, r / 2] nor, with positions, [P, r / 2]", context.facts->Describe(cache)),
        "rotary-table-shape");
  }
  const Term half = Term::Of(cache);
  const Term table = JoinTables(half, half, fact.rank(), 2 * fact.shape.back().number(), mode == "interleaved");
  const int64_t heads = rank == 4 ? 1 : 2;  // their axis
  if (!positions.has_value()) return build::Unsqueeze(table, {heads});
  const Term given = Term::Of(*positions);
  const Fact& index = context.facts->Of(*positions);
  if (index.rank() == 2) return build::Unsqueeze(build::Gather(table, given, 0), {heads});
  if (index.rank() != 1 || !index.shape[0].is(1)) {
    return Refuse(fmt::format("the positions {} are neither [B, S] nor one number", context.facts->Describe(*positions)));
  }
  // com.microsoft: the position of the first of the S tokens.
  const Term length = build::Gather(build::Shape(Term::Of(x)), Term::Integer(rank == 4 ? 2 : 1), 0);
  const Term steps = build::Op("Range", {Term::Integer(0), length, Term::Integer(1)});
  return build::Unsqueeze(build::Gather(table, build::Op("Add", {given, steps}), 0), {0, heads});
}

// x * cos + x rotated * sin. A half is r / 2 channels, as wide as the table that `cache` holds.
absl::StatusOr<Term> Turned(const FunctionContext& context, const Term& x, const Term& cos, const Term& sin, const Value* cache,
                            std::string_view mode) {
  const Fact& table = context.facts->Of(cache);
  if (table.rank() < 2 || !table.shape.back().is_number()) return Refuse("the width of the table is not known");
  const int64_t half = table.shape.back().number();
  Term rotated;
  if (mode == "half") {
    rotated = build::Concat({build::Op("Neg", {build::Slice(x, half, 2 * half, 3)}), build::Slice(x, 0, half, 3)}, 3);
  } else {
    const Term pairs = build::Reshape(x, {0, 0, 0, half, 2});
    const Term turned = build::Concat({build::Op("Neg", {build::Slice(pairs, 1, 2, 4)}), build::Slice(pairs, 0, 1, 4)}, 4);
    rotated = build::Reshape(turned, {0, 0, 0, 2 * half});
  }
  return build::Op("Add", {build::Op("Mul", {x, cos}), build::Op("Mul", {rotated, sin})});
}

constexpr std::array kRows = {
    Function<"rotary_mode (interleaved)", RotaryMode>("The mode that the attribute interleaved means."),
    Function<"turned_part (x, cache, heads, width)", TurnedPart>(
        "What turns of the data x: [B, N, S, r] or, where heads are side by side in x, [B, S, N, r]."),
    Function<"turned_whole (y, x, cache, heads, width)", TurnedWhole>(
        "The turned part y with the rest of x after it, in the shape of x."),
    Function<"cached_table (cache, positions, x, mode)", CachedTable>(
        "The rows of a half-wide table at the positions, as wide as a head, to be combined with the turned part of x; "
        "without positions the rows are there already, [B, S, r / 2]."),
    Function<"turned (x, cos, sin, cache, mode)", Turned>(
        "x [B, N, S, r] turned by tables made of a cache of width r / 2: x * cos + x rotated * sin."),
};

}  // namespace

absl::Span<const FunctionRow> RotaryEmbeddingFunctions() { return kRows; }

}  // namespace ascend_fuse
