// Functions of rules about weights in integers: what the kernels that multiply with them read of them.
#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "ir/status_macros.h"
#include "patterns/functions/constructs.h"
#include "patterns/functions/tensor.h"
#include "patterns/terms/node_builder.h"
#include "patterns/terms/refusal.h"

namespace ascend_fuse {
namespace {

Term Whole(int64_t number) { return build::Elements(DataType::kInt64, {}, {number}); }

// The eight integers of 4 bits that lie in each int32 of [K, N / 8], the first one in its lowest bits: [K, N].
Term Unpacked(const Value* packed, int64_t rows, int64_t columns) {
  const Term bits = build::Op("Mod", {build::Cast(Term::Of(packed), DataType::kInt64), Whole(int64_t{1} << 32)});
  std::vector<Term> parts;
  for (int place = 0; place < 8; ++place) {
    const Term moved = place == 0 ? bits : build::Op("Div", {bits, Whole(int64_t{1} << (4 * place))});
    parts.push_back(build::Unsqueeze(build::Op("Mod", {moved, Whole(16)}), {-1}));
  }
  const Term all = build::Reshape(build::Concat(parts, -1), std::vector<int64_t>{rows, columns});
  return build::Op("Sub", {build::Op("Mod", {build::Op("Add", {all, Whole(8)}), Whole(16)}), Whole(8)});
}

absl::StatusOr<Term> Antiquantized(const FunctionContext& context, const Value* weight, const Value* scale,
                                   std::optional<const Value*> offset, int64_t group) {
  ASSIGN_OR_RETURN(const Dim k, DimAt(context, Term::Of(weight), 0));
  ASSIGN_OR_RETURN(const Dim n, DimAt(context, Term::Of(scale), -1));
  ASSIGN_OR_RETURN(const Dim g, DimAt(context, Term::Of(scale), 0));
  ASSIGN_OR_RETURN(const int64_t rows, PlainNumber(context, k));
  ASSIGN_OR_RETURN(const int64_t columns, PlainNumber(context, n));
  ASSIGN_OR_RETURN(const int64_t groups, PlainNumber(context, g));
  if (groups > 1 && group < 1) return Refuse("there are scales of groups, and no group has a size");
  std::vector<int64_t> group_of;
  for (int64_t row = 0; row < rows && groups > 1; ++row) group_of.push_back(row / group);
  const auto along = [&](const Value* factor) {
    const Term wide = build::Cast(Term::Of(factor), DataType::kFloat);
    return groups == 1 ? wide : build::Gather(wide, build::Elements(DataType::kInt64, {rows}, group_of), 0);
  };
  const bool packed = context.facts->Of(weight).type == DataType::kInt32;
  Term numbers = build::Cast(packed ? Unpacked(weight, rows, columns) : Term::Of(weight), DataType::kFloat);
  if (offset.has_value()) numbers = build::Op("Add", {numbers, along(*offset)});
  return build::Op("Mul", {numbers, along(scale)});
}

constexpr std::array kRows = {
    Function<"antiquantized (weight, scale, offset, group)", Antiquantized>(
        "The float32 numbers of a weight [K, N] of int8, or of int4 with eight in each int32 of [K, N / 8]: (w + offset) * "
        "scale, with a "
        "row of scale and offset for each `group` rows of it."),
};

}  // namespace

absl::Span<const FunctionRow> AntiquantFunctions() { return kRows; }

}  // namespace ascend_fuse
