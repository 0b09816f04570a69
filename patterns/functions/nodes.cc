// Functions of rules that give constants and nodes to be built, whatever construct they serve.
#include "patterns/functions/nodes.h"

#include <array>

#include "fmt/format.h"
#include "ir/status_macros.h"
#include "patterns/functions/constructs.h"
#include "patterns/functions/tensor.h"
#include "patterns/terms/node_builder.h"
#include "patterns/terms/refusal.h"

namespace ascend_fuse {

absl::StatusOr<Term> Filled(const FunctionContext& context, List dims, double number, DataType type) {
  std::vector<int64_t> numbers;
  int64_t count = 1;
  for (const Term& dim : dims) {
    const auto size = IntegerOf(dim);
    if (!size.has_value() || *size < 1 || *size > (int64_t{1} << 24) / count) {
      return Refuse(fmt::format("a constant with the dims {} cannot be made", DescribeList(context, dims)));
    }
    count *= *size;
    numbers.push_back(*size);
  }
  return build::Constant(type, numbers, number);
}

namespace {

Term Absent() { return Term::Absent(); }

Term Empty(DataType type) { return build::Constant(type, {0}, 0); }

Term FloatUnlessEmpty(const FunctionContext& context, const Value* x) {
  const Fact& fact = context.facts->Of(x);
  return fact.rank() == 1 && fact.shape[0].is(0) ? Term::Absent() : build::Cast(Term::Of(x), DataType::kFloat);
}

absl::StatusOr<Term> Ones(const FunctionContext& context, List n, DataType type) { return Filled(context, n, 1, type); }

absl::StatusOr<Term> Single(const FunctionContext& context, Dim n, DataType type) {
  ASSIGN_OR_RETURN(const auto number, PlainNumber(context, n));
  return build::Constant(type, {1}, static_cast<double>(number));
}

Term Converted(const Term& node, DataType from, DataType to) { return from == to ? node : build::Cast(node, to); }

absl::StatusOr<Term> Swapped(const FunctionContext& context, const Value* x, int64_t t) {
  if (t == 0) return Term::Of(x);
  const int rank = context.facts->Of(x).rank();
  if (rank < 2) return Refuse(fmt::format("{} is not a matrix", ValueName(*x)));
  std::vector<int64_t> perm;
  for (int64_t i = 0; i < rank - 2; ++i) perm.push_back(i);
  perm.insert(perm.end(), {rank - 1, rank - 2});
  return build::Transpose(Term::Of(x), perm);
}

absl::StatusOr<Term> FactorArranged(const FunctionContext& context, const Value* x, int64_t t, int64_t first) {
  const int rank = context.facts->Of(x).rank();
  if (first == 0 || rank == 2) return Swapped(context, x, t);
  if (rank < 2) return Refuse(fmt::format("{} is not a matrix", ValueName(*x)));
  std::vector<int64_t> perm;
  for (int64_t i = 1; i < rank - 1; ++i) perm.push_back(i);
  perm.insert(perm.end(), {0, rank - 1});
  if (t != 0) std::swap(perm[perm.size() - 1], perm[perm.size() - 2]);
  return build::Transpose(Term::Of(x), perm);
}

Term TimesNumber(const Term& node, double n) { return n == 1 ? node : build::Op("Mul", {node, Term::Number(n)}); }

Term PlusValue(const Term& node, const Term& z) { return z.kind == Term::Kind::kAbsent ? node : build::Op("Add", {node, z}); }

Term PlaceRows(const Term& table, const Term& places, const Term& ids) {
  if (places.kind != Term::Kind::kAbsent) return build::Gather(table, places, 0);
  const Term length = build::Gather(build::Shape(ids), build::Numbers({1}), 0);
  return build::Op("Slice", {table, build::Numbers({0}), length, build::Numbers({0})});
}

Term KeyCounts(const Term& mask, const Term& ids) {
  if (mask.kind == Term::Kind::kAbsent) {
    return build::Op("Expand", {build::Constant(DataType::kInt32, {1}, 0), build::Slice(build::Shape(ids), 0, 1, 0)});
  }
  const Term ones = build::Op("Equal", {mask, build::Constant(DataType::kInt32, {1}, 1)});
  return build::ReduceSum(build::Cast(ones, DataType::kInt32), {1}, 0);
}

constexpr std::array kRows = {
    Function<"absent ()", Absent>("No value: a weight that is not there."),
    Function<"empty (type)", Empty>(
        "A constant of shape [0]: an absent input in the middle, as ATC wants it (docs/sources/ascend-contract.md 0.3)."),
    Function<"float_unless_empty (x)", FloatUnlessEmpty>(
        "x in float32, or no value where it is of shape [0], which stands for an absent input."),
    Function<"single (n, type)", Single>("A constant [1] that holds the number n."),
    Function<"ones (n, type)", Ones>("A constant [n] of ones."),
    Function<"filled (dims, n, type)", Filled>("A constant with these dims, all of whose elements are the number n."),
    Function<"converted (node, from, to)", Converted>("The node, with a Cast after it where the types differ."),
    Function<"swapped (x, t)", Swapped>("x, with its last two dims swapped unless t is 0."),
    Function<"factor_arranged (x, t, first)", FactorArranged>(
        "x, with its first dim after those of the batch unless `first` is 0, and then the last two dims swapped unless t is 0."),
    Function<"times_number (node, n)", TimesNumber>("The node times the number n; the node itself where n is 1."),
    Function<"plus_value (node, z)", PlusValue>("The node plus z; the node itself where z is absent."),
    Function<"place_rows (table, places, ids)", PlaceRows>(
        "The rows of the table at these places; without places its first rows, as many as ids [B, S] has columns."),
    Function<"key_counts (mask, ids)", KeyCounts>(
        "How many elements of each row of the mask [B, S] are 1, [B]; without a mask 0 for each row of ids [B, S]."),
};

}  // namespace

absl::Span<const FunctionRow> NodeFunctions() { return kRows; }

}  // namespace ascend_fuse
