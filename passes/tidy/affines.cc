// Affines: a factor and a summand of each channel, as weights of the linear or the convolution before them. A
// BatchNormalization after a Transpose or a Reshape, which GE does not find, is such a pair. It rounds in another order, so it is
// done where --tidy asks for it (27.8 to 23.6 ms on 310P, docs/sources/surgery.md).
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "ir/movement/movement.h"
#include "passes/core/linear_channels.h"
#include "passes/tidy/kinds.h"

namespace ascend_fuse {
namespace {

// A constant of float32.
struct Floats {
  std::vector<int64_t> dims;
  std::vector<double> elements;
};

std::optional<Floats> FloatsOf(const TidyContext& context, const Value* value) {
  const auto tensor = SmallFloats(value);
  if (!tensor.has_value()) return std::nullopt;
  auto elements = ReadFloats(context.workspace.model(), *tensor, tensor->ElementCount());
  if (!elements.ok()) return std::nullopt;
  return Floats{{tensor->dims.begin(), tensor->dims.end()}, {elements->begin(), elements->end()}};
}

const Value* Written(const TidyContext& context, const Node& node, const Floats& floats, std::string_view name) {
  std::string bytes;
  for (const double element : floats.elements) {
    const auto rounded = static_cast<float>(element);
    bytes.append(reinterpret_cast<const char*>(&rounded), sizeof rounded);
  }
  const Value* const value = context.workspace.rewriter().Constant(node.graph, DataType::kFloat, floats.dims, bytes, name);
  InferConstant(value, &context.workspace.facts());
  return value;
}

bool AreFinite(const Floats& floats) {
  return std::all_of(floats.elements.begin(), floats.elements.end(),
                     [](double x) { return std::isfinite(static_cast<float>(x)); });
}

// --- a BatchNormalization ---

std::optional<Tidied> Normalized(const TidyContext& context, const Node& node) {
  constexpr size_t kParameters = 5;
  constexpr double kEpsilon = 1e-5F;
  const Movement* const moved = context.facts().MovementOf(node.input(0));
  const Fact& x = context.facts().Of(node.input(0));
  const bool hidden = moved != nullptr && (moved->kind == MovementKind::kPermutes || moved->kind == MovementKind::kKeepsOrder);
  if (!hidden || x.type != DataType::kFloat || x.rank() < 2 || node.input_count != kParameters || !OnlyFirstIsUsed(node)) {
    return std::nullopt;
  }
  if (IntAttribute(node, "training_mode").value_or(0) != 0 || context.workspace.model().OpsetVersion() < 9) return std::nullopt;
  std::vector<Floats> parameters;
  for (size_t i = 1; i < kParameters; ++i) {
    auto floats = FloatsOf(context, node.input(i));
    if (!floats.has_value() || floats->dims.size() != 1 || (i > 1 && floats->dims != parameters[0].dims)) return std::nullopt;
    parameters.push_back(*std::move(floats));
  }
  const double epsilon = FloatAttribute(node, "epsilon").value_or(kEpsilon);
  Floats factor = {{parameters[0].dims[0]}, {}};
  factor.dims.resize(static_cast<size_t>(x.rank()) - 1, 1);
  Floats summand = {factor.dims, {}};
  for (size_t i = 0; i < parameters[0].elements.size(); ++i) {
    factor.elements.push_back(parameters[0].elements[i] / std::sqrt(parameters[3].elements[i] + epsilon));
    summand.elements.push_back(parameters[1].elements[i] - parameters[2].elements[i] * factor.elements[i]);
  }
  if (!AreFinite(factor) || !AreFinite(summand)) return std::nullopt;
  const Term scaled = build::Op("Mul", {Term::Of(node.input(0)), Term::Of(Written(context, node, factor, "factor"))});
  return Tidied::Of(build::Op("Add", {scaled, Term::Of(Written(context, node, summand, "summand"))}));
}

// --- into a weight ---

// The elements of `floats` by channel, of which there are `count`; it says one for each.
std::vector<double> ByChannel(const Floats& floats, int64_t count) {
  if (floats.elements.size() != 1) return floats.elements;
  return std::vector<double>(static_cast<size_t>(count), floats.elements[0]);
}

// Channel `g * (dims[axis]) + c` stands in group g of the axis before, at place c.
void Scale(Floats* weight, const LinearChannels& channels, const std::vector<double>& factors) {
  size_t after = 1;
  for (size_t i = channels.axis + 1; i < weight->dims.size(); ++i) after *= static_cast<size_t>(weight->dims[i]);
  const auto own = static_cast<size_t>(weight->dims[channels.axis]);
  const size_t rows = weight->elements.size() / (own * after);
  for (size_t row = 0; row < rows; ++row) {
    const size_t group = channels.groups == 1 ? 0 : row / (rows / static_cast<size_t>(channels.groups));
    for (size_t c = 0; c < own; ++c) {
      for (size_t i = 0; i < after; ++i) weight->elements[(row * own + c) * after + i] *= factors[group * own + c];
    }
  }
}

// Mul or Add of one number for each channel after a linear or a convolution that nothing else reads.
std::optional<Tidied> IntoWeight(const TidyContext& context, const Node& node) {
  constexpr size_t kWeight = 1, kBias = 2;
  for (const size_t side : {size_t{0}, size_t{1}}) {
    const Value* const x = node.input(side);
    const Node* const linear = x != nullptr && ReadOnce(*x) ? x->producer : nullptr;
    const auto channels = linear != nullptr && !linear->dead ? ChannelsFor(context.facts(), node, side, *linear) : std::nullopt;
    if (!channels.has_value()) continue;
    const auto operand = FloatsOf(context, node.input(1 - side));
    auto weight = FloatsOf(context, linear->input(kWeight));
    const Value* const old = channels->has_bias ? linear->input(kBias) : nullptr;
    const auto bias = FloatsOf(context, old);
    if (!operand.has_value() || !weight.has_value() || (old != nullptr && !bias.has_value())) continue;
    const bool adds = IsOp(node, "Add");
    const std::vector<double> numbers = ByChannel(*operand, channels->count);
    Floats sum = {{channels->count}, std::vector<double>(static_cast<size_t>(channels->count), 0)};
    if (bias.has_value()) sum.elements = ByChannel(*bias, channels->count);
    for (size_t i = 0; i < sum.elements.size(); ++i)
      sum.elements[i] = adds ? sum.elements[i] + numbers[i] : sum.elements[i] * numbers[i];
    if (!adds) Scale(&*weight, *channels, numbers);
    if (!AreFinite(sum) || !AreFinite(*weight)) continue;
    NewNode plan = PlanOf(*linear);
    if (!adds) plan.inputs[kWeight] = Written(context, node, *weight, ValueName(*linear->input(kWeight)));
    if (adds || old != nullptr) {
      plan.inputs.resize(kBias + 1);
      plan.inputs[kBias] = Written(context, node, sum, "bias");
    }
    return Tidied::As(std::move(plan));
  }
  return std::nullopt;
}

}  // namespace

std::optional<Tidied> AskAffines(TidyContext& context, const Node& node) {
  if (node.input_count < 2 || node.output() == nullptr) return std::nullopt;
  return IsOp(node, "BatchNormalization") ? Normalized(context, node) : IntoWeight(context, node);
}

}  // namespace ascend_fuse
