#include "passes/quantised/int8_kernel.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "fmt/format.h"
#include "ir/constant_tensor.h"
#include "ir/rounding.h"
#include "ir/status_macros.h"
#include "passes/core/call_of.h"
#include "passes/quantised/deployed_form.h"
#include "passes/quantised/int8_codes.h"
#include "passes/quantised/int8_weight.h"

namespace ascend_fuse {
namespace {

constexpr char kInt8Op[] = "npu.QuantBatchMatMul";
constexpr char kPluginOp[] = "npu.NPUQuantBatchMatMul";  // the same by our plugin, at opsets that the first has no name at
constexpr char kInt8Source[] = "hicann/ops-nn:matmul/quant_batch_matmul_v3/op_graph/quant_batch_matmul_v3_proto.h";

// What the kernel gives, as GE counts types.
enum class Result { kFloat16 = 1, kInt32 = 3 };

// Where float32 keeps its range the integers themselves are taken and scaled in float32. Elsewhere a sum of integers would
// become a float16 that does not hold it, and the kernel scales.
Result WantedResult(const Workspace& workspace) {
  return TakesAllKernels(workspace.options().quantised) || !workspace.target()->KeepsRange() ? Result::kFloat16 : Result::kInt32;
}

// As the kernel reads it in a uint64: bit 46 is that of signed results.
std::optional<uint64_t> ScaleBits(double scale) {
  const std::optional<uint32_t> bits = RoundedScale(scale);
  return bits.has_value() ? std::optional<uint64_t>(*bits | (uint64_t{1} << 46)) : std::nullopt;
}

template <typename T>
const Value* Numbers(Workspace& workspace, const Node& at, DataType type, const std::vector<T>& numbers, std::string_view word) {
  return RowOfNumbers(workspace, at, type, {reinterpret_cast<const char*>(numbers.data()), numbers.size() * sizeof(T)}, word);
}

class Int8Emission {
 public:
  Int8Emission(CodeWriter& writer, const Node* node, const Int8Product& product)
      : writer_(writer), workspace_(writer.workspace()), node_(*node), product_(product) {}

  absl::StatusOr<KernelTry> Run(bool by_rows) {
    result_ = WantedResult(workspace_);
    x_scale_ = writer_.OneNumber(product_.x.scale);
    if (!x_scale_.has_value() && !IsOne(product_.x.scale)) return NotWritten("the scale of its activation differs along an axis");
    if (writer_.Rank(product_.x.codes) < 2)
      return NotWritten("the kernel takes a matrix, and its activation is not known to be one");
    ASSIGN_OR_RETURN(const Int8Weight weight, Int8Weight::Read(workspace_.model(), product_.weight, product_.by_rows));
    if (!weight.centered() && result_ != Result::kInt32) {
      return NotWritten(
          "codes of its weight less their zero point are not all of int8, which the kernel reads, and a result in float16 does "
          "not "
          "hold the sums from which the rest is taken off (--precision-mode must_keep_origin_dtype does)");
    }
    ASSIGN_OR_RETURN(const Int8Codes x, AsInt8(writer_, node_, product_.x));
    ASSIGN_OR_RETURN(const Value* rows, weight.Constant(workspace_, node_, by_rows));
    ASSIGN_OR_RETURN(const Value* bias, Bias(weight, x));
    ASSIGN_OR_RETURN(const Value* scale, Scale(weight));
    NewNode plan;
    plan.domain = "npu";
    plan.op_type = op_.substr(op_.find('.') + 1);
    plan.name = fmt::format("{}_int8", Label(node_));
    plan.inputs = {x.codes, rows, scale, nullptr, bias};
    if (result_ == Result::kFloat16 && !x_scale_.has_value()) plan.inputs.push_back(OfOne(product_.x.scale));
    while (plan.inputs.back() == nullptr) plan.inputs.pop_back();
    plan.attributes = {Attribute::Int("dtype", static_cast<int64_t>(result_)), Attribute::Int("transpose_x2", by_rows ? 1 : 0)};
    const Value* product = NodeInserter(workspace_, node_).Insert(plan);
    const Call call = CallOf(*product->producer, workspace_.facts(), op_);
    const Answer answer = workspace_.target()->Check(call, &workspace_.facts().dims());
    if (!answer.legal) return KernelTry::Refused(answer.code, answer.because, answer.source);
    if (!answer.unsettled.empty() && !TakesAllKernels(workspace_.options().quantised)) {
      return KernelTry::Refused("kernel-unsettled", fmt::format("{}; --quantised fast takes it", answer.unsettled), kInt8Source);
    }
    KernelTry taken;
    taken.taken = true;
    taken.op = op_;
    if (result_ == Result::kInt32) taken.precision = "exact";
    taken.assumptions = answer.assumptions;
    if (!weight.centered()) product = LessZeros(product, x.codes, weight);
    taken.value = Scaled(product, weight);
    return taken;
  }

 private:
  DataType type() const { return writer_.Of(product_.x.scale).type; }
  // Of the product, or of the weight where that of x is computed.
  double ScaleOf(const Int8Weight& weight, int64_t column) const {
    return static_cast<double>(static_cast<float>(x_scale_.value_or(1)) * static_cast<float>(weight.ScaleOf(column)));
  }
  bool IsOne(const Value* value) const {
    const Fact& fact = writer_.Of(value);
    return fact.has_rank && (fact.rank() == 0 || (fact.rank() == 1 && fact.shape[0].is(1)));
  }
  const Value* OfOne(const Value* scale) {
    return writer_.Rank(scale) == 1 ? scale : NodeInserter(workspace_, node_).Unsqueeze(scale, {0});
  }

  // What every sum gets, less what the zero point of x adds to it; nullptr where that is nothing.
  absl::StatusOr<const Value*> Bias(const Int8Weight& weight, const Int8Codes& x) {
    if (x.computed_zero == nullptr && x.zero == 0 && product_.bias == nullptr) return nullptr;
    std::vector<int64_t> given = {0};
    if (product_.bias != nullptr) {
      const std::optional<Tensor> tensor = ConstantTensor(*product_.bias);
      if (!tensor.has_value()) return NotWritten("its bias is computed");
      ASSIGN_OR_RETURN(given, ReadIntegers(workspace_.model(), *tensor, weight.n()));
    }
    if (given.size() != 1 && static_cast<int64_t>(given.size()) != weight.n()) return NotWritten("its bias is not one row");
    std::vector<int32_t> bias;
    std::vector<int32_t> sums;
    for (int64_t i = 0; i < weight.n(); ++i) {
      const int64_t sum = weight.sums()[static_cast<size_t>(i)];
      const int64_t number = given[given.size() == 1 ? 0 : static_cast<size_t>(i)] - x.zero * sum;
      // Besides the products, of 128 at most each, and with any zero point that is computed, what is added must be int32.
      constexpr int64_t kMost = 128;
      const int64_t rest = weight.k() * kMost * (kMost + (weight.centered() ? 0 : std::abs(weight.ZeroOf(i))));
      const int64_t zeros = x.computed_zero == nullptr ? 0 : kMost * std::abs(sum);
      if (std::abs(number) + zeros + (weight.centered() ? 0 : rest) > std::numeric_limits<int32_t>::max())
        return NotWritten("its sums are beyond int32");
      bias.push_back(static_cast<int32_t>(number));
      sums.push_back(static_cast<int32_t>(sum));
    }
    const Value* const fixed = Numbers(workspace_, node_, DataType::kInt32, bias, "bias");
    if (x.computed_zero == nullptr) return fixed;
    const Value* const of_zero =
        writer_.Op(node_, "Mul", {x.computed_zero, Numbers(workspace_, node_, DataType::kInt32, sums, "sums")});
    return writer_.Op(node_, "Sub", {fixed, of_zero});
  }

  // Sums of codes of x times what is left of the zero points of the weight are taken off, as integers.
  const Value* LessZeros(const Value* sums, const Value* x, const Int8Weight& weight) {
    std::vector<int32_t> zeros;
    for (int64_t i = 0; i < weight.n(); ++i) zeros.push_back(static_cast<int32_t>(weight.ZeroOf(i)));
    NodeInserter inserter(workspace_, node_);
    // Up to 65535 codes of 128 are a whole number of float32.
    const Value* const of_row = inserter.Build(build::ReduceSum(build::Cast(Term::Of(x), DataType::kFloat), {-1}, 1));
    const Value* const zero = Numbers(workspace_, node_, DataType::kInt32, zeros, "zeros");
    return writer_.Op(node_, "Sub", {sums, writer_.Op(node_, "Mul", {writer_.Cast(node_, of_row, DataType::kInt32), zero})});
  }

  absl::StatusOr<const Value*> Scale(const Int8Weight& weight) {
    if (result_ == Result::kInt32) return Numbers(workspace_, node_, DataType::kFloat, std::vector<float>{1}, "one");
    if (!x_scale_.has_value()) return Scales(weight);
    std::vector<uint64_t> scales;
    for (int64_t i = 0; i < static_cast<int64_t>(weight.scale_count()); ++i) {
      const std::optional<uint64_t> bits = ScaleBits(ScaleOf(weight, i));
      if (!bits.has_value())
        return NotWritten(fmt::format("a result in float16 does not hold what a scale of {} makes", ScaleOf(weight, i)));
      scales.push_back(*bits);
    }
    return Numbers(workspace_, node_, DataType::kUint64, scales, "scale");
  }

  // Those of the columns in float32, times that of x where it is constant.
  const Value* Scales(const Int8Weight& weight) {
    std::vector<float> scales;
    for (int64_t i = 0; i < static_cast<int64_t>(weight.scale_count()); ++i)
      scales.push_back(static_cast<float>(ScaleOf(weight, i)));
    return Numbers(workspace_, node_, DataType::kFloat, scales, "scale");
  }

  const Value* Scaled(const Value* product, const Int8Weight& weight) {
    if (result_ == Result::kFloat16) return writer_.Cast(node_, product, type());
    const Value* const numbers = writer_.Cast(node_, product, DataType::kFloat);
    const Value* scale = Scales(weight);
    if (!x_scale_.has_value()) scale = writer_.Op(node_, "Mul", {writer_.Cast(node_, product_.x.scale, DataType::kFloat), scale});
    return writer_.Cast(node_, writer_.Op(node_, "Mul", {numbers, scale}), type());
  }

  CodeWriter& writer_;
  Workspace& workspace_;
  const Node& node_;
  const Int8Product& product_;
  Result result_ = Result::kFloat16;
  std::optional<double> x_scale_;  // where it is constant
  std::string op_ = Int8Op(workspace_);
};

KernelTry TryInt8Kernel(CodeWriter& writer, const Node* node, const Int8Product& product) {
  Workspace& workspace = writer.workspace();
  if (!writer.rounds() || workspace.target() == nullptr) return {};
  if (!workspace.target()->HasNode(Int8Op(workspace))) {
    Call call;
    call.op = kInt8Op;
    const Answer answer = workspace.target()->Check(call, workspace.facts().dims());
    return KernelTry::Refused(answer.code, answer.because, answer.source);
  }
  if (!writer.why_no_int8_kernel.empty()) return KernelTry::Refused("opset-kept", writer.why_no_int8_kernel, kInt8Source);
  KernelTry answer;
  for (const bool by_rows : {product.by_rows, true}) {
    const Rewriter::Mark before = workspace.rewriter().Now();
    const size_t noted = writer.with_int8.size();
    auto made = Int8Emission(writer, node, product).Run(by_rows);
    answer =
        made.ok() ? *std::move(made) : KernelTry::Refused("weight-not-taken", std::string(made.status().message()), kInt8Source);
    if (answer.taken && workspace.options().strict && !answer.assumptions.empty()) {
      answer = KernelTry::Refused("assumption-refused", fmt::format("--strict: it would assume that {}", answer.assumptions[0]),
                                  kInt8Source);
    }
    if (answer.taken) {
      if (answer.op == kInt8Op) NoteNames(writer, {kInt8Op});
      return answer;
    }
    workspace.rewriter().RollBack(before);
    ForgetInt8(writer, noted);
    if (answer.code == "weight-not-taken" || answer.code == "kernel-unsettled") break;
  }
  return answer;
}

// The codes that a factor was dequantised of, through a Transpose of a matrix.
const QuantisedTensor* CodesOfFactor(const CodeWriter& writer, const Value* factor, bool* turned) {
  *turned = false;
  if (factor == nullptr) return nullptr;
  if (const QuantisedTensor* of = writer.CodesOf(factor); of != nullptr) return of;
  const Node* const node = factor->producer;
  if (node == nullptr || !IsOp(*node, "Transpose") || writer.Rank(factor) != 2) return nullptr;
  const auto perm = IntsAttribute(*node, "perm");
  *turned = !perm.has_value() || ((*perm)[0] == 1 && (*perm)[1] == 0);
  return writer.CodesOf(node->input(0));
}

}  // namespace

std::string Int8Op(const Workspace& workspace) {
  const Target& target = *workspace.target();
  const int64_t opset = workspace.model().OpsetVersion();
  return target.HasNode(kPluginOp) && target.AliasOpset({kInt8Op}, opset) < opset ? kPluginOp : kInt8Op;
}

void NoteNames(CodeWriter& writer, const std::vector<std::string>& ops) {
  const Workspace& workspace = writer.workspace();
  const int64_t from = workspace.model().OpsetVersion();
  const int64_t highest = workspace.target()->AliasOpset(ops, from);
  if (highest >= from || (writer.highest_opset > 0 && writer.highest_opset <= highest)) return;
  writer.highest_opset = highest;
  writer.highest_named = ops[0].substr(ops[0].rfind('.') + 1);
}

std::optional<uint32_t> RoundedScale(double scale) {
  constexpr uint32_t kCut = (uint32_t{1} << 13) - 1;
  constexpr double kLeast = 5.9604644775390625e-08;  // the smallest step of float16: below it, its integers vanish
  constexpr double kProduct = 127 * 127;             // of the largest codes: a float16 holds at least one
  const auto bits = std::bit_cast<uint32_t>(static_cast<float>(scale));
  const uint32_t rounded = (bits + (kCut >> 1) + ((bits >> 13) & 1)) & ~kCut;
  const auto kept = static_cast<double>(std::bit_cast<float>(rounded));
  if (!(kept >= kLeast) || kept * kProduct > *LargestFinite(DataType::kFloat16)) return std::nullopt;
  return rounded;
}

const Value* BiasCodes(CodeWriter& writer, const Value* bias, const Int8Product& product) {
  const QuantisedTensor* of = bias == nullptr ? nullptr : writer.CodesOf(bias);
  if (of == nullptr || writer.Of(of->codes).type != DataType::kInt32 || !ConstantTensor(*of->codes).has_value()) return nullptr;
  if (of->zero != nullptr && writer.OneNumber(of->zero) != 0) {
    const auto zeros = ConstantTensor(*of->zero);
    const auto read = zeros.has_value() ? ReadIntegers(writer.workspace().model(), *zeros, kMostFactors)
                                        : absl::StatusOr<std::vector<int64_t>>(absl::InternalError(""));
    if (!read.ok() || std::any_of(read->begin(), read->end(), [](int64_t zero) { return zero != 0; })) return nullptr;
  }
  const auto scales = [&](const Value* value) -> std::vector<double> {
    const std::optional<Tensor> tensor = ConstantTensor(*value);
    auto read = tensor.has_value() ? ReadFloats(writer.workspace().model(), *tensor, kMostFactors)
                                   : absl::StatusOr<std::vector<double>>(absl::InternalError(""));
    return read.ok() ? *std::move(read) : std::vector<double>();
  };
  const std::vector<double> of_bias = scales(of->scale);
  const std::vector<double> of_weight = scales(product.weight.scale);
  const auto of_x = writer.OneNumber(product.x.scale);
  if (!of_x.has_value() || of_bias.size() != of_weight.size() || of_bias.empty()) return nullptr;
  for (size_t i = 0; i < of_bias.size(); ++i) {
    const double expected = *of_x * of_weight[i];
    if (!(std::abs(of_bias[i] - expected) <= 1e-6 * expected)) return nullptr;
  }
  return of->codes;
}

const Value* OnInt8Kernel(CodeWriter& writer, const Node* node, const Int8Product& product, const Value* told) {
  KernelTry answer = TryInt8Kernel(writer, node, product);
  const Value* const value = answer.value;
  if (answer.taken || !answer.because.empty()) writer.told[told == nullptr ? node->output() : told] = std::move(answer);
  return value;
}

absl::StatusOr<bool> WriteInt8Linear(CodeWriter& writer, const Node* node) {
  const bool gemm = IsOp(*node, "Gemm");
  if (!gemm && !IsOp(*node, "MatMul")) return false;
  bool turned = false;
  const QuantisedTensor* const x = node->input(0) == nullptr ? nullptr : writer.CodesOf(node->input(0));
  const QuantisedTensor* const weight = CodesOfFactor(writer, node->input(1), &turned);
  if (x == nullptr || weight == nullptr || node->input(0)->producer == nullptr) return false;
  if (ConstantTensor(*x->codes).has_value() || !ConstantTensor(*weight->codes).has_value()) return false;
  Int8Product product = {*x, *weight, turned};
  if (gemm) {
    const bool plain = FloatAttribute(*node, "alpha").value_or(1) == 1 && FloatAttribute(*node, "beta").value_or(1) == 1 &&
                       IntAttribute(*node, "transA").value_or(0) == 0;
    if (!plain) return false;
    product.by_rows = turned != (IntAttribute(*node, "transB").value_or(0) != 0);
  }
  const Value* const bias = gemm ? node->input(2) : nullptr;
  product.bias = BiasCodes(writer, bias, product);
  const Value* value = OnInt8Kernel(writer, node, product);
  if (value == nullptr) value = InDeployedForm(writer, node, product, false);
  if (value == nullptr) return false;
  if (bias != nullptr && product.bias == nullptr) {
    writer.Replace(node, "Add", {value, bias});
  } else {
    writer.Replace(node, "Identity", {value});
  }
  return true;
}

absl::StatusOr<bool> WriteDeployedConv(CodeWriter& writer, const Node* node) {
  if (!IsOp(*node, "Conv") || node->input(0) == nullptr || node->input(1) == nullptr) return false;
  const QuantisedTensor* const x = writer.CodesOf(node->input(0));
  const QuantisedTensor* const weight = writer.CodesOf(node->input(1));
  if (x == nullptr || weight == nullptr || ConstantTensor(*x->codes).has_value() || !ConstantTensor(*weight->codes).has_value()) {
    return false;
  }
  const Value* const bias = node->input(2);
  Int8Product product = {*x, *weight, true};
  product.bias = BiasCodes(writer, bias, product);
  const Value* value = InDeployedForm(writer, node, product, true);
  if (value == nullptr) return false;
  if (bias != nullptr && product.bias == nullptr) {
    writer.Replace(node, "Add", {value, NodeInserter(writer.workspace(), *node).Unsqueeze(bias, {1, 2})});
  } else {
    writer.Replace(node, "Identity", {value});
  }
  return true;
}

}  // namespace ascend_fuse
