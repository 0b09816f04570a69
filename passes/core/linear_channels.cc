#include "passes/core/linear_channels.h"

#include "ir/constant_tensor.h"

namespace ascend_fuse {
namespace {

constexpr int64_t kMostOfTensor = int64_t{4} << 20;
constexpr size_t kWeight = 1, kBias = 2;

std::optional<LinearChannels> ChannelsOf(const Facts& facts, const Node& linear) {
  const int rank = linear.output() != nullptr ? facts.Of(linear.output()).rank() : 0;
  if (linear.domain != NameId::kEmpty || rank < 2) return std::nullopt;
  if (IsOp(linear, "Conv")) return LinearChannels{rank - 2, 0, 1, true};
  if (IsOp(linear, "ConvTranspose")) return LinearChannels{rank - 2, 1, IntAttribute(linear, "group").value_or(1), true};
  if (IsOp(linear, "MatMul")) return LinearChannels{0, 1, 1, false};
  const bool plain = FloatAttribute(linear, "alpha").value_or(1) == 1 && FloatAttribute(linear, "beta").value_or(1) == 1;
  if (!IsOp(linear, "Gemm") || !plain) return std::nullopt;
  return LinearChannels{0, IntAttribute(linear, "transB").value_or(0) != 0 ? size_t{0} : size_t{1}, 1, true};
}

// One number for all, or one for each of so many channels along an axis of a value of this rank.
bool OneForEach(const Tensor& tensor, int from_end, int rank, int64_t count) {
  const int dims = static_cast<int>(tensor.dims.size());
  if (dims > rank) return false;
  const int axis = dims - 1 - from_end;
  const bool along = axis >= 0 && tensor.dims[static_cast<size_t>(axis)] == count;
  return tensor.ElementCount() == 1 || (tensor.ElementCount() == count && along);
}

}  // namespace

std::optional<Tensor> SmallFloats(const Value* value) {
  auto tensor = value != nullptr ? ConstantTensor(*value) : std::nullopt;
  if (!tensor.has_value() || tensor->type != DataType::kFloat) return std::nullopt;
  const int64_t count = tensor->ElementCount();
  if (count <= 0 || count > kMostOfTensor) return std::nullopt;
  return tensor;
}

std::optional<LinearChannels> ChannelsFor(const Facts& facts, const Node& node, size_t side, const Node& linear) {
  if (linear.graph != node.graph) return std::nullopt;
  auto channels = ChannelsOf(facts, linear);
  const bool adds = IsOp(node, "Add");
  if (!channels.has_value() || (adds && !channels->has_bias)) return std::nullopt;  // GE joins a MatMul and its bias
  const auto weight = SmallFloats(linear.input(kWeight));
  if (!weight.has_value() || weight->dims.size() <= channels->axis) return std::nullopt;
  if (IsOp(linear, "MatMul") && weight->dims.size() != 2) return std::nullopt;
  // A file may say any number of groups; those that are left divide a dim.
  if (channels->groups < 1 || (channels->groups > 1 && weight->dims[0] % channels->groups != 0)) return std::nullopt;
  channels->count = weight->dims[channels->axis] * channels->groups;
  const auto operand = SmallFloats(node.input(1 - side));
  if (!operand.has_value() || !OneForEach(*operand, channels->from_end, facts.Of(node.input(side)).rank(), channels->count)) {
    return std::nullopt;
  }
  if (!channels->has_bias || linear.input(kBias) == nullptr) return channels;
  const auto bias = SmallFloats(linear.input(kBias));
  return bias.has_value() && OneForEach(*bias, 0, 1, channels->count) ? channels : std::nullopt;
}

const Node* LinearThatTakes(const Facts& facts, const Node& node, int most_between) {
  if (!IsOp(node, "Mul") && !IsOp(node, "Add")) return nullptr;
  for (const size_t side : {size_t{0}, size_t{1}}) {
    const Value* const x = node.input(side);
    if (x == nullptr || x->producer == nullptr || !ReadOnce(*x)) continue;
    const Node* linear = x->producer;
    if (!ChannelsOf(facts, *linear).has_value())
      linear = most_between > 0 ? LinearThatTakes(facts, *linear, most_between - 1) : nullptr;
    if (linear != nullptr && ChannelsFor(facts, node, side, *linear).has_value()) return linear;
  }
  return nullptr;
}

}  // namespace ascend_fuse
