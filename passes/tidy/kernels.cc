// Kernels: what the data of the chip says to run on the AI CPU, or slowly, in a form that gives the same to the bit and does not.
// IsNaN is what is not equal to itself; ArgMax and ArgMin of two elements compare them; integers of 64 bits that are provably
// small are computed in 32.
#include <algorithm>
#include <limits>
#include <optional>
#include <string_view>
#include <utility>

#include "ir/infer/integer_bounds.h"
#include "passes/tidy/kinds.h"

namespace ascend_fuse {
namespace {

using Effect = UnsupportedForm::Effect;

// How sure the data of the chip is that the node has a form with this effect.
enum class Sure { kNo, kPossibly, kYes };
Sure HasEffect(const TidyContext& context, const Node& node, Effect effect) {
  const Target* const target = context.workspace.target();
  if (target == nullptr) return Sure::kNo;
  Sure sure = Sure::kNo;
  for (const UnsupportedForm* form : target->UnsupportedForms(node, context.workspace.model().OpsetVersion(), &context.facts())) {
    if (form->effect == effect) sure = std::max(sure, form->certain ? Sure::kYes : Sure::kPossibly);
  }
  return sure;
}

std::optional<Tidied> NotANumber(TidyContext& context, const Node& node) {
  const DataType type = context.facts().Of(node.input(0)).type;
  if (type != DataType::kFloat && type != DataType::kFloat16) return std::nullopt;
  if (HasEffect(context, node, Effect::kAiCpu) != Sure::kYes) return std::nullopt;
  const Term x = Term::Of(node.input(0));
  return Tidied::Of(build::Op("Not", {build::Op("Equal", {x, x})}));
}

// Of two equal elements the first is taken; another form says that the last is (select-last-index). ONNX does not say which one
// is where either is not a number.
std::optional<Tidied> OfTwo(TidyContext& context, const Node& node) {
  if (IntAttribute(node, "select_last_index").value_or(0) != 0) return std::nullopt;
  if (HasEffect(context, node, Effect::kSlow) != Sure::kYes) return std::nullopt;
  const bool keeps = IntAttribute(node, "keepdims").value_or(1) != 0;
  const int64_t axis = IntAttribute(node, "axis").value_or(0);
  const auto element = [&](int64_t place) {
    return build::Gather(Term::Of(node.input(0)), IndexOf(context, node, place, keeps ? 1 : 0), axis);
  };
  const Term second = build::Op(IsOp(node, "ArgMax") ? "Greater" : "Less", {element(1), element(0)});
  return Tidied::Of(build::Cast(second, DataType::kInt64));
}

// Whole numbers that float16 holds compare as floats as they do as integers.
std::optional<Tidied> OfSmallIntegers(TidyContext& context, const Node& node) {
  constexpr int64_t kMost = 2048;  // up to here float16 holds every one
  if (!IsInteger(context.facts().Of(node.input(0)).type) || HasEffect(context, node, Effect::kAiCpu) != Sure::kYes) {
    return std::nullopt;
  }
  const IntegerBounds bounds = BoundsOf(*node.input(0), context.facts());
  const bool small = bounds.low.has_value() && bounds.high.has_value() && *bounds.low >= -kMost && *bounds.high <= kMost;
  if (!small) return std::nullopt;
  return Tidied::Reads(0, build::Cast(Term::Of(node.input(0)), DataType::kFloat));
}

// --- 32 bits in place of 64 ---

bool Fits(const IntegerBounds& bounds) {
  // One more below: Neg and Abs of the least number have no result.
  return bounds.low.has_value() && bounds.high.has_value() && *bounds.low > std::numeric_limits<int32_t>::min() &&
         *bounds.high <= std::numeric_limits<int32_t>::max();
}

IntegerBounds BoundsIn(const TidyContext& context, const Value& value) {
  // A length of an input is one of a tensor, which no chip has room for beyond 32 bits.
  return BoundsOf(value, context.facts(), [&context](Dim dim) { return context.inputs.Of(dim) != nullptr; });
}

bool SumsFit(const TidyContext& context, const Node& node) {
  const IntegerBounds one = BoundsIn(context, *node.input(0));
  // As many bits as there are elements, at most.
  return one.low.has_value() && one.high.has_value() && *one.low >= -1 && *one.high <= 1;
}

std::optional<Tidied> InLessBits(TidyContext& context, const Node& node) {
  const Fact& x = context.facts().Of(node.input(0));
  const Fact& y = context.facts().Of(node.output());
  if (x.type != DataType::kInt64 || y.type != DataType::kInt64 || !Fits(BoundsIn(context, *node.input(0)))) return std::nullopt;
  if (y.elements != nullptr) return std::nullopt;  // arithmetic of shapes, which the compiler does
  if (IsOp(node, "CumSum") && !SumsFit(context, node)) return std::nullopt;
  if (HasEffect(context, node, Effect::kAiCpu) == Sure::kNo) return std::nullopt;
  std::vector<Term> inputs = {build::Cast(Term::Of(node.input(0)), DataType::kInt32)};
  for (size_t i = 1; i < node.input_count; ++i) inputs.push_back(Term::Of(node.input(i)));
  std::vector<std::pair<std::string, Term>> attributes;
  for (const std::string_view name : {"exclusive", "reverse"}) {
    if (const auto number = IntAttribute(node, name); number.has_value()) attributes.emplace_back(name, Term::Integer(*number));
  }
  return Tidied::Of(
      build::Cast(build::Op(std::string(OpType(node)), std::move(inputs), std::move(attributes)), DataType::kInt64));
}

}  // namespace

bool FitsIn32Bits(const TidyContext& context, const Value& value) { return Fits(BoundsIn(context, value)); }

std::optional<Tidied> AskKernels(TidyContext& context, const Node& node) {
  if (node.input(0) == nullptr || node.output() == nullptr) return std::nullopt;
  if (IsOp(node, "IsNaN")) return NotANumber(context, node);
  if (IsOp(node, "ArgMax") || IsOp(node, "ArgMin")) {
    auto of_two = OfTwo(context, node);
    return of_two.has_value() ? std::move(of_two) : OfSmallIntegers(context, node);
  }
  return InLessBits(context, node);
}

}  // namespace ascend_fuse
