#include "passes/quantised/constant_codes.h"

#include <cmath>
#include <string>

#include "fmt/format.h"
#include "ir/constant_tensor.h"
#include "ir/movement/axis.h"
#include "ir/status_macros.h"

namespace ascend_fuse {
namespace {

// The elements that the axes from `begin` up to `end` have.
int64_t ElementsOf(absl::Span<const int64_t> dims, size_t begin, size_t end) {
  int64_t elements = 1;
  for (size_t i = begin; i < end; ++i) elements *= dims[i];
  return elements;
}

}  // namespace

absl::Status NotWritten(const std::string& because) { return absl::FailedPreconditionError(because); }

std::optional<std::pair<double, double>> CodeRange(DataType type) {
  const int bits = BitWidth(type);
  if (!IsInteger(type) || bits > 16) return std::nullopt;
  const double half = std::ldexp(1, bits - 1);
  return IsSigned(type) ? std::pair(-half, half - 1) : std::pair(0.0, 2 * half - 1);
}

absl::StatusOr<const Value*> RealOfConstant(Workspace& workspace, const Node& at, const QuantisedTensor& of, DataType type) {
  const std::optional<Tensor> codes = ConstantTensor(*of.codes);
  const std::optional<Tensor> scales = of.scale == nullptr ? std::nullopt : ConstantTensor(*of.scale);
  const std::optional<Tensor> zeros = of.zero == nullptr ? std::nullopt : ConstantTensor(*of.zero);
  Dequantization how;
  how.codes = &*codes;
  how.bits = BitWidth(codes->type);
  how.is_signed = IsSigned(codes->type);
  const auto& dims = codes->dims;
  if (codes->ElementCount() <= 0 || !IsInteger(codes->type) || how.bits > 32) {
    return NotWritten(fmt::format("{} holds no integers", ValueName(*of.codes)));
  }
  how.length = codes->ElementCount();
  const auto count = [](const std::optional<Tensor>& tensor) { return tensor.has_value() ? tensor->ElementCount() : 1; };
  FactorSteps steps;
  if (count(scales) != 1 || count(zeros) != 1) {
    const int64_t axis = NormalizeAxis(of.axis, static_cast<int>(dims.size()));
    if (axis < 0) return NotWritten(fmt::format("{} has no axis {}", ValueName(*of.codes), of.axis));
    const auto place = static_cast<size_t>(axis);
    how.outer = ElementsOf(dims, 0, place);
    how.length = dims[place];
    how.inner = ElementsOf(dims, place + 1, dims.size());
    steps.group = 1;
    int64_t factors = how.length;
    if (of.block > 0) {
      how.block = of.block;
      const int64_t groups = (how.length + of.block - 1) / of.block;
      steps = {groups * how.inner, how.inner, 1};
      factors = groups * how.inner * how.outer;
    }
    for (const auto* tensor : {&scales, &zeros}) {
      if (count(*tensor) != 1 && count(*tensor) != factors) {
        return NotWritten(fmt::format("{} has {} elements for {} places", ValueName(*of.codes), count(*tensor), factors));
      }
    }
  }
  how.stride = how.length;
  if (scales.has_value()) {
    how.scales = &*scales;
    how.scale_steps = count(scales) == 1 ? FactorSteps() : steps;
  }
  if (zeros.has_value()) {
    how.zeros = &*zeros;
    how.zero_bits = BitWidth(zeros->type);
    how.zero_steps = count(zeros) == 1 ? FactorSteps() : steps;
  }
  return DequantizedConstant(workspace, at, type, dims, how, fmt::format("{}_dequantized", ValueName(*of.codes)));
}

int64_t PackedRow(int64_t count, int64_t bits) { return (count * bits + 7) / 8 * 8 / bits; }

Dequantization RowsInBlocks(const Tensor& codes, int64_t bits, int64_t rows, int64_t length, int64_t stride, int64_t block,
                            const Tensor& scales) {
  Dequantization how;
  how.codes = &codes;
  how.bits = static_cast<int>(bits);
  how.outer = rows;
  how.length = length;
  how.stride = stride;
  how.block = block;
  how.scales = &scales;
  how.scale_steps = {(length - 1) / block + 1, 1, 0};
  how.zero = int64_t{1} << (bits - 1);
  return how;
}

absl::StatusOr<const Value*> DequantizedConstant(Workspace& workspace, const Node& at, DataType type,
                                                 absl::Span<const int64_t> dims, const Dequantization& how,
                                                 std::string_view name) {
  ASSIGN_OR_RETURN(const Value* value, workspace.rewriter().Dequantized(at.graph, type, dims, how, name));
  InferConstant(value, &workspace.facts());
  return value;
}

const Value* RowOfNumbers(Workspace& workspace, const Node& at, DataType type, std::string_view bytes, std::string_view word) {
  const auto count = static_cast<int64_t>(bytes.size()) / (BitWidth(type) / 8);
  const Value* value = workspace.rewriter().Constant(at.graph, type, {count}, bytes, fmt::format("{}_{}", Label(at), word));
  InferConstant(value, &workspace.facts());
  return value;
}

}  // namespace ascend_fuse
