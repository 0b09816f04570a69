// Quantised products and convolutions: of the real numbers that codes stand for, because a product of codes is beyond float16
// where activations and weights are not. The sums are those of integers but for float32's rounding.
#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "fmt/format.h"
#include "ir/constant_tensor.h"
#include "ir/status_macros.h"
#include "passes/quantised/deployed_form.h"
#include "passes/quantised/dynamic_codes.h"
#include "passes/quantised/int8_kernel.h"
#include "passes/quantised/operators.h"
#include "passes/quantised/per_token.h"

namespace ascend_fuse {
namespace {

// What a convolution keeps of its attributes.
std::vector<Attribute> ConvAttributes(const Node& node) {
  std::vector<Attribute> attributes = ReadAttributes(node);
  std::erase_if(attributes, [](const Attribute& attribute) { return attribute.name == "channels_last"; });
  return attributes;
}

// An operand of a product: rows differ in scale on the left, columns on the right.
QuantisedTensor Left(const Value* codes, const Value* scale, const Value* zero) { return {codes, scale, zero, -2}; }
QuantisedTensor Right(const Value* codes, const Value* scale, const Value* zero) { return {codes, scale, zero, -1}; }

// On a kernel of int8, or in the form that GE makes one of.
const Value* OnInteger(CodeWriter& writer, const Node* node, const Int8Product& product) {
  const Value* const y = OnInt8Kernel(writer, node, product);
  return y != nullptr ? y : InDeployedForm(writer, node, product, false);
}

absl::Status WriteQLinearMatMul(CodeWriter& writer, const Node* node) {
  const QuantisedTensor result = {nullptr, node->input(6), node->input(7), -1};
  const Int8Product product = {Left(node->input(0), node->input(1), node->input(2)),
                               Right(node->input(3), node->input(4), node->input(5))};
  if (const Value* y = OnInteger(writer, node, product); y != nullptr) return writer.Quantize(node, y, result);
  ASSIGN_OR_RETURN(const Value* a, writer.Real(*node, Left(node->input(0), node->input(1), node->input(2))));
  ASSIGN_OR_RETURN(const Value* b, writer.Real(*node, Right(node->input(3), node->input(4), node->input(5))));
  return writer.Quantize(node, writer.Op(*node, "MatMul", {a, b}), result);
}

// The bias of codes is in units of both scales.
absl::StatusOr<const Value*> RealBias(CodeWriter& writer, const Node& at, const Value* bias, const Value* x_scale,
                                      const Value* w_scale) {
  ASSIGN_OR_RETURN(const Value* of_x, writer.Along(at, x_scale, 0, 1));
  ASSIGN_OR_RETURN(const Value* of_w, writer.Along(at, w_scale, 0, 1));
  ASSIGN_OR_RETURN(const Value* codes, writer.FloatOf(at, bias));
  return writer.Op(at, "Mul", {codes, writer.Op(at, "Mul", {of_x, of_w})});
}

absl::Status WriteQLinearConv(CodeWriter& writer, const Node* node) {
  if (IntAttribute(*node, "channels_last").value_or(0) != 0) return NotWritten("its channels come last");
  const Int8Product product = {{node->input(0), node->input(1), node->input(2)},
                               {node->input(3), node->input(4), node->input(5), 0},
                               true,
                               node->input(8)};
  if (const Value* y = InDeployedForm(writer, node, product, true); y != nullptr)
    return writer.Quantize(node, y, {nullptr, node->input(6), node->input(7)});
  ASSIGN_OR_RETURN(const Value* x, writer.Real(*node, {node->input(0), node->input(1), node->input(2)}));
  ASSIGN_OR_RETURN(const Value* w, writer.Real(*node, {node->input(3), node->input(4), node->input(5), 0}));
  std::vector<const Value*> inputs = {x, w};
  if (node->input(8) != nullptr) {
    ASSIGN_OR_RETURN(const Value* bias, RealBias(writer, *node, node->input(8), node->input(1), node->input(4)));
    inputs.push_back(bias);
  }
  const Value* y = writer.Op(*node, "Conv", std::move(inputs), ConvAttributes(*node));
  return writer.Quantize(node, y, {nullptr, node->input(6), node->input(7)});
}

// (A, scale, zero, B, scale, zero, C in units of both scales, scale of y, zero of y): float without a zero point of y.
absl::Status WriteQGemm(CodeWriter& writer, const Node* node) {
  const bool transposed = IntAttribute(*node, "transB").value_or(0) != 0;
  const QuantisedTensor left = {node->input(0), node->input(1), node->input(2)};
  const QuantisedTensor right = {node->input(3), node->input(4), node->input(5), transposed ? 0 : 1};
  const float alpha = FloatAttribute(*node, "alpha").value_or(1);
  if (alpha == 1 && IntAttribute(*node, "transA").value_or(0) == 0) {
    if (const Value* y = OnInteger(writer, node, {left, right, transposed, node->input(6)}); y != nullptr) {
      if (node->input(8) != nullptr) return writer.Quantize(node, y, {nullptr, node->input(7), node->input(8)});
      writer.Replace(node, "Identity", {y});
      return absl::OkStatus();
    }
  }
  ASSIGN_OR_RETURN(const Value* a, writer.Real(*node, left));
  ASSIGN_OR_RETURN(const Value* b, writer.Real(*node, right));
  std::vector<const Value*> inputs = {a, b};
  if (node->input(6) != nullptr) {
    ASSIGN_OR_RETURN(const Value* bias, RealBias(writer, *node, node->input(6), node->input(1), node->input(4)));
    if (alpha != 1) bias = writer.Op(*node, "Mul", {bias, writer.Number(*node, static_cast<double>(alpha))});
    inputs.push_back(bias);
  }
  if (node->input(8) == nullptr) {
    writer.Replace(node, "Gemm", std::move(inputs), ReadAttributes(*node));
    return absl::OkStatus();
  }
  const Value* y = writer.Op(*node, "Gemm", std::move(inputs), ReadAttributes(*node));
  return writer.Quantize(node, y, {nullptr, node->input(7), node->input(8)});
}

// The one node that reads a value, where there is one.
const Node* OneReader(const Value* value) {
  const Node* reader = nullptr;
  for (const Use& use : LiveUses(*value)) {
    if (reader != nullptr) return nullptr;
    reader = use.user;
  }
  return value->is_graph_output ? nullptr : reader;
}

// Float (product of integers) * (scale of a * scale of b), as quantize_dynamic writes it.
struct Scaled {
  const Node* mul = nullptr;
  const Value* scale_a = nullptr;
  const Value* scale_b = nullptr;
};

// Which of the two factors belongs to `a`: the one that the node gives which made its codes. Of codes that nothing here made,
// rows of a table for example, it is one number; the other one may differ along columns.
Scaled ScaledAfter(CodeWriter& writer, const Node* node) {
  const Node* cast = OneReader(node->output());
  if (cast == nullptr || !IsOp(*cast, "Cast") || writer.Of(cast->output()).type != DataType::kFloat) return {};
  const Node* mul = OneReader(cast->output());
  if (mul == nullptr || !IsOp(*mul, "Mul")) return {};
  const Value* factor = mul->input(mul->input(0) == cast->output() ? 1 : 0);
  const Node* factors = factor->producer;
  if (factors == nullptr || !IsOp(*factors, "Mul")) return {};
  const KeptCodes* const kept = writer.FindKept(node->input(0));
  const Value* const scale_a = kept == nullptr ? nullptr : kept->scale;
  for (size_t i = 0; i < 2; ++i) {
    const Value* const of_a = factors->input(i);
    const bool is_of_a =
        scale_a != nullptr ? writer.SameFactor(of_a, scale_a) : kept == nullptr && writer.OneNumber(of_a).has_value();
    if (is_of_a) return {mul, of_a, factors->input(1 - i)};
  }
  return {};
}

// The sums of products of codes, exact in float32 because so few are added at once, as int32.
absl::StatusOr<const Value*> IntegerProduct(CodeWriter& writer, const Node& node, const Value* a, const Value* b) {
  const Fact of_a = writer.Of(a);
  if (!of_a.has_rank || of_a.rank() < 1 || !of_a.shape.back().is_number())
    return NotWritten("how many products it adds is not known");
  constexpr int64_t kAtOnce = 256;             // 255 * 255 * 256 < 2^24
  constexpr int64_t kMost = int64_t{1} << 17;  // twice the widest layer that there is
  const int64_t length = of_a.shape.back().number();
  if (length < 1 || length > kMost)
    return NotWritten(fmt::format("it adds {} products, which is not between 1 and {}", length, kMost));
  NodeInserter inserter(writer.workspace(), node);
  const Value* sum = nullptr;
  for (int64_t begin = 0; begin < length; begin += kAtOnce) {
    const int64_t end = std::min(length, begin + kAtOnce);
    const bool whole = length <= kAtOnce;
    const auto part = [&](const Value* x, int64_t axis) {
      if (whole) return x;
      return inserter.Op("Slice", {x, inserter.Numbers({begin}), inserter.Numbers({end}), inserter.Numbers({axis})});
    };
    const Value* product = writer.Op(node, "MatMul", {part(a, -1), part(b, writer.Rank(b) == 1 ? 0 : -2)});
    const Value* integers = writer.Cast(node, product, DataType::kInt32);
    sum = sum == nullptr ? integers : writer.Op(node, "Add", {sum, integers});
  }
  return sum;
}

// (a, b, zero of a, zero of b).
absl::Status WriteMatMulInteger(CodeWriter& writer, const Node* node) {
  const QuantisedTensor left = Left(node->input(0), nullptr, node->input(2));
  const QuantisedTensor right = Right(node->input(1), nullptr, node->input(3));
  if (const Scaled scaled = ScaledAfter(writer, node); scaled.mul != nullptr) {
    const Int8Product product = {Left(left.codes, scaled.scale_a, left.zero), Right(right.codes, scaled.scale_b, right.zero)};
    const Value* y = PerToken(writer, scaled.mul, product, node->output());
    if (y == nullptr) y = OnInt8Kernel(writer, scaled.mul, product, node->output());
    if (y != nullptr) {
      writer.Replace(scaled.mul, "Identity", {y});
      return absl::OkStatus();
    }
    ASSIGN_OR_RETURN(const Value* a, writer.Real(*scaled.mul, {left.codes, scaled.scale_a, left.zero, -2}));
    ASSIGN_OR_RETURN(const Value* b, writer.Real(*scaled.mul, {right.codes, scaled.scale_b, right.zero, -1}));
    writer.Replace(scaled.mul, "MatMul", {a, b});
    return absl::OkStatus();
  }
  ASSIGN_OR_RETURN(const Value* a, writer.Centered(*node, left));
  ASSIGN_OR_RETURN(const Value* b, writer.Centered(*node, right));
  ASSIGN_OR_RETURN(const Value* sum, IntegerProduct(writer, *node, a, b));
  writer.Replace(node, "Identity", {sum});
  return absl::OkStatus();
}

// (x, w, zero of x, zero of w): padding is the zero point, so that of the numbers it is 0.
absl::Status WriteConvInteger(CodeWriter& writer, const Node* node) {
  const QuantisedTensor left = {node->input(0), nullptr, node->input(2)};
  const QuantisedTensor right = {node->input(1), nullptr, node->input(3), 0};
  if (const Scaled scaled = ScaledAfter(writer, node); scaled.mul != nullptr && writer.OneNumber(scaled.scale_b).has_value()) {
    ASSIGN_OR_RETURN(const Value* x, writer.Real(*scaled.mul, {left.codes, scaled.scale_a, left.zero}));
    ASSIGN_OR_RETURN(const Value* w, writer.Real(*scaled.mul, {right.codes, scaled.scale_b, right.zero, 0}));
    writer.Replace(scaled.mul, "Conv", {x, w}, ConvAttributes(*node));
    return absl::OkStatus();
  }
  const std::optional<Tensor> filter = ConstantTensor(*node->input(1));
  if (!filter.has_value() || filter->dims.empty())
    return NotWritten("its filter is computed, and its result is read as integers");
  constexpr int64_t kAtOnce = 256;
  if (filter->ElementCount() / std::max<int64_t>(1, filter->dims[0]) > kAtOnce) {
    return NotWritten(
        "more than 256 products are added, which float32 does not hold, and its result is not multiplied by both scales");
  }
  ASSIGN_OR_RETURN(const Value* x, writer.Centered(*node, left));
  ASSIGN_OR_RETURN(const Value* w, writer.Centered(*node, right));
  const Value* y = writer.Op(*node, "Conv", {x, w}, ConvAttributes(*node));
  writer.Replace(node, "Cast", {y}, {Attribute::Int("to", static_cast<int64_t>(DataType::kInt32))});
  return absl::OkStatus();
}

absl::Status WriteSum(CodeWriter& writer, const Node* node, const Value* product, const Value* bias) {
  if (bias == nullptr) {
    writer.Replace(node, "Identity", {product});
  } else {
    writer.Replace(node, "Add", {product, bias});
  }
  return absl::OkStatus();
}

// (a float, b, scale of b, zero of b, bias): a is quantised as DynamicQuantizeLinear does it.
absl::Status WriteDynamicMatMul(CodeWriter& writer, const Node* node) {
  const Value* a = node->input(0);
  if (writer.rounds()) {
    if (writer.workspace().model().OpsetVersion() < 11) return NotWritten("Round is an operator from opset 11 on");
    const DynamicCodes codes = QuantizeByRange(writer, *node, a);
    const QuantisedTensor left = Left(writer.KeepCodes(*node, codes.raw, DataType::kUint8), codes.scale,
                                      writer.KeepCodes(*node, codes.zero, DataType::kUint8));
    writer.KnowScale(left.codes, codes.scale, left.zero, a, codes.zero);
    const Int8Product product = {left, Right(node->input(1), node->input(2), node->input(3))};
    const Value* y = PerToken(writer, node, product, node->output());
    if (y == nullptr) y = OnInt8Kernel(writer, node, product);
    if (y != nullptr) return WriteSum(writer, node, y, node->input(4));
    a = writer.Op(*node, "Mul", {writer.Op(*node, "Sub", {codes.raw, codes.zero}), codes.scale});
  }
  ASSIGN_OR_RETURN(const Value* b, writer.Real(*node, Right(node->input(1), node->input(2), node->input(3))));
  return WriteSum(writer, node, writer.Op(*node, "MatMul", {a, b}), node->input(4));
}

// (a, b, scale of a, scale of b, zero of a, zero of b, bias).
absl::Status WriteMatMulToFloat(CodeWriter& writer, const Node* node) {
  const Int8Product product = {Left(node->input(0), node->input(2), node->input(4)),
                               Right(node->input(1), node->input(3), node->input(5))};
  if (const Value* y = OnInt8Kernel(writer, node, product); y != nullptr) return WriteSum(writer, node, y, node->input(6));
  ASSIGN_OR_RETURN(const Value* a, writer.Real(*node, Left(node->input(0), node->input(2), node->input(4))));
  ASSIGN_OR_RETURN(const Value* b, writer.Real(*node, Right(node->input(1), node->input(3), node->input(5))));
  return WriteSum(writer, node, writer.Op(*node, "MatMul", {a, b}), node->input(6));
}

}  // namespace

const std::vector<QuantisedOperator>& QuantisedProducts() {
  static constexpr std::string_view kLinear = "quantised_linear";
  static constexpr std::string_view kConv = "quantised_conv";
  static const auto* const kOperators = new std::vector<QuantisedOperator>{
      {"", "QLinearMatMul", WriteQLinearMatMul, kLinear},
      {"", "QLinearConv", WriteQLinearConv, kConv},
      {"", "MatMulInteger", WriteMatMulInteger, kLinear},
      {"", "ConvInteger", WriteConvInteger, kConv},
      {kRuntime, "QLinearConv", WriteQLinearConv, kConv},
      {kRuntime, "QGemm", WriteQGemm, kLinear},
      {kRuntime, "DynamicQuantizeMatMul", WriteDynamicMatMul, kLinear},
      {kRuntime, "MatMulIntegerToFloat", WriteMatMulToFloat, kLinear},
  };
  return *kOperators;
}

}  // namespace ascend_fuse
