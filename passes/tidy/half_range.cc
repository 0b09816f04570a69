// Half range: numbers that float16 does not hold, written as ones that it does, where no result hangs on how large they are. In a
// mask by Where, what a Softmax makes 0 of is far enough below scores that are bounded: -65504 as well as -3.4e38; a row in which
// all is masked has equal numbers either way. A bound of a Clip beyond
// all that it reads clips nothing, and no comparison tells two numbers beyond it apart.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ir/movement/axis.h"
#include "ir/movement/movement.h"
#include "passes/tidy/float_bounds.h"
#include "passes/tidy/kinds.h"

namespace ascend_fuse {
namespace {

constexpr double kLargest = 65504;  // of float16
// exp (-104) is 0 in float32, and so is that of every number below.
constexpr double kVanishes = 110;

// The number that all elements of a constant of float32 are.
std::optional<double> NumberOf(const TidyContext& context, const Value* value) {
  const Fact& fact = context.facts().Of(value);
  double number = 0;
  if (value == nullptr || fact.type != DataType::kFloat || !ConstantNumber(context.facts(), value, &number)) return std::nullopt;
  return number;
}

// Whether all that reads the value are Softmaxes over its last axis.
bool GoesIntoSoftmax(const TidyContext& context, const Value& value) {
  constexpr int64_t kLastIsDefault = 13;
  const bool late = context.workspace.model().OpsetVersion() >= kLastIsDefault;
  const int rank = context.facts().Of(&value).rank();
  if (value.is_graph_output || rank < 1) return false;
  bool all = false;
  for (const Use& use : LiveUses(value)) {
    if (use.user->domain != NameId::kEmpty || !IsOp(*use.user, "Softmax")) return false;
    const int64_t axis = IntAttribute(*use.user, "axis").value_or(late ? -1 : 1);
    if (NormalizeAxis(axis, rank) != rank - 1) return false;
    all = true;
  }
  return all;
}

Term Number(TidyContext& context, const Node& node, double number, const Value& like) {
  const auto rounded = static_cast<float>(number);
  const std::string bytes(reinterpret_cast<const char*>(&rounded), sizeof rounded);
  std::vector<int64_t> dims(static_cast<size_t>(std::max(context.facts().Of(&like).rank(), 0)), 1);
  const Value* const constant = context.workspace.rewriter().Constant(node.graph, DataType::kFloat, dims, bytes, "largest");
  InferConstant(constant, &context.workspace.facts());
  return Term::Of(constant);
}

bool HasOneElement(const TidyContext& context, const Value& value) {
  const Fact& fact = context.facts().Of(&value);
  return fact.has_rank &&
         std::all_of(fact.shape.begin(), fact.shape.end(), [&](Dim dim) { return context.dims().Resolve(dim).is(1); });
}

// Where (mask, scores, -3.4e38).
std::optional<Tidied> MaskInRange(TidyContext& context, const Node& node) {
  for (const size_t side : {size_t{1}, size_t{2}}) {
    const auto number = NumberOf(context, node.input(side));
    if (!number.has_value() || !(*number < -kLargest) || !std::isfinite(*number)) continue;
    const Value* const scores = node.input(3 - side);
    const auto bounds = scores != nullptr ? FloatBoundsOf(context, *scores) : std::nullopt;
    if (!bounds.has_value() || bounds->low < kVanishes - kLargest || !HasOneElement(context, *node.input(side)))
      return std::nullopt;
    if (!GoesIntoSoftmax(context, *node.output())) return std::nullopt;
    return Tidied::Reads(side, Number(context, node, -kLargest, *node.input(side)));
  }
  return std::nullopt;
}

std::optional<Tidied> BoundInRange(TidyContext& context, const Node& node) {
  const auto bounds = FloatBoundsOf(context, *node.input(0));
  if (!bounds.has_value()) return std::nullopt;
  for (const size_t side : {size_t{1}, size_t{2}}) {
    const auto number = NumberOf(context, node.input(side));
    if (!number.has_value() || std::abs(*number) <= kLargest) continue;
    const bool clips_nothing = side == 1 ? *number < 0 && bounds->low >= -kLargest : *number > 0 && bounds->high <= kLargest;
    if (clips_nothing) return Tidied::Reads(side, Number(context, node, side == 1 ? -kLargest : kLargest, *node.input(side)));
  }
  return std::nullopt;
}

// What is within the range compares with a number beyond it as it does with the end of the range, if it is not that itself.
std::optional<Tidied> ComparedInRange(TidyContext& context, const Node& node) {
  for (const size_t side : {size_t{0}, size_t{1}}) {
    const auto number = NumberOf(context, node.input(side));
    const Value* const other = node.input(1 - side);
    if (!number.has_value() || std::abs(*number) <= kLargest || other == nullptr) continue;
    const auto bounds = FloatBoundsOf(context, *other);
    if (!bounds.has_value() || bounds->low <= -kLargest || bounds->high >= kLargest) return std::nullopt;
    if (!HasOneElement(context, *node.input(side))) return std::nullopt;
    return Tidied::Reads(side, Number(context, node, std::copysign(kLargest, *number), *node.input(side)));
  }
  return std::nullopt;
}

}  // namespace

std::optional<Tidied> AskHalfRange(TidyContext& context, const Node& node) {
  if (node.output() == nullptr || node.input(0) == nullptr || node.input_count < 2) return std::nullopt;
  if (context.facts().Of(node.output()).type == DataType::kBool) return ComparedInRange(context, node);
  if (context.facts().Of(node.output()).type != DataType::kFloat) return std::nullopt;
  return IsOp(node, "Where") ? MaskInRange(context, node) : BoundInRange(context, node);
}

}  // namespace ascend_fuse
