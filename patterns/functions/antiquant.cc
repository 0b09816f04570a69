// Functions of rules about weights in integers: what the kernels that multiply with them read of them.
#include <array>
#include <bit>
#include <cstdint>
#include <optional>
#include <vector>

#include "ir/constant_tensor.h"
#include "ir/rounding.h"
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

// int8 times int8, and a bias of int32: no sum is rounded.
Term Int8Product(const Value* x1, const Value* x2, std::optional<int64_t> turned, const Term& bias) {
  const Term weight = turned.value_or(0) == 0 ? Term::Of(x2) : build::Transpose(Term::Of(x2), {1, 0});
  const Term sums = build::Op("MatMulInteger", {Term::Of(x1), weight});
  return bias.kind == Term::Kind::kAbsent ? sums : build::Op("Add", {sums, bias});
}

// The float32 in the lowest 32 bits, of which the kernel reads sign, exponent and ten bits.
absl::StatusOr<Term> ScaleRead(const FunctionContext& context, const Value* scale) {
  const std::optional<Tensor> tensor = ConstantTensor(*scale);
  if (!tensor.has_value() || tensor->type != DataType::kUint64) return Refuse("the scale is not a constant of uint64");
  ASSIGN_OR_RETURN(const std::vector<int64_t> words, ReadIntegers(*context.model, *tensor, int64_t{1} << 22));
  std::vector<double> numbers;
  for (const int64_t word : words) {
    const uint32_t read = static_cast<uint32_t>(static_cast<uint64_t>(word)) & 0xFFFFE000;
    numbers.push_back(static_cast<double>(std::bit_cast<float>(read)));
  }
  return build::Floats({tensor->dims.begin(), tensor->dims.end()}, numbers);
}

Term AsFloat32(const Term& x) { return x.kind == Term::Kind::kAbsent ? x : build::Cast(x, DataType::kFloat); }

// Rounded to float16, and float32 again.
Term InHalf(const Term& x) { return build::Cast(build::Cast(x, DataType::kFloat16), DataType::kFloat); }
Term HalfNumber(std::optional<double> number) {
  return build::Constant(DataType::kFloat, {}, RoundTo(DataType::kFloat16, number.value_or(0)));
}

Term HalfQuantized(const Value* x, std::optional<double> scale, std::optional<double> offset) {
  const Term scaled = InHalf(build::Op("Mul", {InHalf(Term::Of(x)), HalfNumber(scale)}));
  return InHalf(build::Op("Add", {scaled, HalfNumber(offset)}));
}

Term HalfDequantized(const Value* x, std::optional<double> scale, std::optional<double> offset) {
  const Term moved = InHalf(build::Op("Sub", {build::Cast(Term::Of(x), DataType::kFloat), HalfNumber(offset)}));
  return build::Cast(build::Op("Mul", {moved, HalfNumber(scale)}), DataType::kFloat16);
}

Term Rectified(const Term& x, std::optional<int64_t> relu) { return relu.value_or(0) == 0 ? x : build::Op("Relu", {x}); }

// Channels of a convolution are its second axis, columns of a product its last one.
absl::StatusOr<Term> ScaleOfChannels(const FunctionContext& context, const Value* x, const Value* scale) {
  ASSIGN_OR_RETURN(const Term numbers, ScaleRead(context, scale));
  const Node* node = x->producer;
  while (node != nullptr && IsOp(*node, "Add")) node = node->input(0)->producer;
  const bool conv = node != nullptr && OpType(*node).starts_with("Conv");
  const Fact& fact = context.facts->Of(x);
  if (!conv || context.facts->Of(scale).shape[0].is(1)) return numbers;
  if (!fact.has_rank || fact.rank() < 3) return Refuse("the rank of a convolution is not known");
  std::vector<int64_t> axes;
  for (int64_t axis = 1; axis < fact.rank() - 1; ++axis) axes.push_back(axis);
  return build::Unsqueeze(numbers, axes);
}

constexpr std::array kRows = {
    Function<"half_quantized (x, scale, offset)", HalfQuantized>("x * scale + offset as float32, every step rounded to float16."),
    Function<"half_dequantized (x, scale, offset)", HalfDequantized>("(x - offset) * scale, every step in float16."),
    Function<"rectified (x, relu)", Rectified>("Relu of x where `relu` is 1; else x."),
    Function<"scale_of_channels (x, scale)", ScaleOfChannels>("What a kernel reads of a constant scale of uint64, as it "
                                                              "broadcasts to the channels of a convolution or the columns of a "
                                                              "product."),
    Function<"int8_product (x1, x2, turned, bias)", Int8Product>(
        "The sums of int8 times int8 as int32, plus the bias; x2 is [K, N], or [N, K] where `turned` is 1."),
    Function<"scale_read (scale)", ScaleRead>("What kernels read of a constant scale of uint64, as float32: 19 bits of each."),
    Function<"as_float32 (x)", AsFloat32>("x as float32; no value where x is absent."),
    Function<"antiquantized (weight, scale, offset, group)", Antiquantized>(
        "The float32 numbers of a weight [K, N] of int8, or of int4 with eight in each int32 of [K, N / 8]: (w + offset) * "
        "scale, with a "
        "row of scale and offset for each `group` rows of it."),
};

}  // namespace

absl::Span<const FunctionRow> AntiquantFunctions() { return kRows; }

}  // namespace ascend_fuse
