#include "passes/quantised/int8_weight.h"

#include <algorithm>
#include <string>

#include "fmt/format.h"
#include "ir/constant_tensor.h"
#include "ir/movement/axis.h"
#include "ir/status_macros.h"

namespace ascend_fuse {
namespace {

constexpr int64_t kSmall = int64_t{1} << 16;  // bytes of a tensor of typed fields, which no reader streams

}  // namespace

absl::Status Int8Weight::ReadFactors(const Model& model, const QuantisedTensor& weight) {
  const std::optional<Tensor> scales = ConstantTensor(*weight.scale);
  if (weight.zero != nullptr) zero_tensor_ = ConstantTensor(*weight.zero);
  if (!scales.has_value() || zero_tensor_.has_value() != (weight.zero != nullptr)) {
    return NotWritten("the scales of its weight are computed");
  }
  ASSIGN_OR_RETURN(scales_, ReadFloats(model, *scales, kMostFactors));
  zeros_ = {0};
  if (zero_tensor_.has_value()) {
    ASSIGN_OR_RETURN(zeros_, ReadIntegers(model, *zero_tensor_, kMostFactors));
  }
  const auto fits = [this](size_t count) { return count == 1 || static_cast<int64_t>(count) == n_; };
  const bool along_columns = NormalizeAxis(weight.axis, static_cast<int>(codes_->dims.size())) == (by_rows_ ? 0 : 1);
  if (!fits(scales_.size()) || !fits(zeros_.size())) return NotWritten("its weight has not one scale for each column");
  if (!along_columns && (scales_.size() > 1 || zeros_.size() > 1)) {
    return NotWritten("scales of its weight differ along the axis that is summed");
  }
  return absl::OkStatus();
}

absl::Status Int8Weight::AddUp(const Model& model) {
  sums_.assign(static_cast<size_t>(n_), 0);
  std::string typed;
  std::optional<ElementReader> reader;
  if (codes_->storage == Storage::kTyped) {
    ASSIGN_OR_RETURN(typed, ReadBytes(model, *codes_, kSmall));
  } else {
    reader.emplace(model, *codes_);
  }
  const int64_t rows = by_rows_ ? n_ : k_;
  const int64_t length = by_rows_ ? k_ : n_;
  std::string row(static_cast<size_t>(length), '\0');
  for (int64_t i = 0; i < rows; ++i) {
    if (reader.has_value()) {
      RETURN_IF_ERROR(reader->Next(length, row.data()));
    } else {
      row = typed.substr(static_cast<size_t>(i * length), static_cast<size_t>(length));
    }
    for (int64_t j = 0; j < length; ++j) {
      const auto column = static_cast<size_t>(by_rows_ ? i : j);
      const char byte = row[static_cast<size_t>(j)];
      const int64_t code = is_signed_ ? int64_t{static_cast<int8_t>(byte)} : int64_t{static_cast<uint8_t>(byte)};
      const int64_t number = code - zeros_[zeros_.size() == 1 ? 0 : column];
      centered_ = centered_ && number >= -128 && number <= 127;
      sums_[column] += number;
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<Int8Weight> Int8Weight::Read(const Model& model, const QuantisedTensor& weight, bool by_rows) {
  Int8Weight read;
  read.value_ = weight.codes;
  read.codes_ = ConstantTensor(*weight.codes);
  if (!read.codes_.has_value()) return NotWritten("its weight is computed");
  const bool eight_bits = read.codes_->type == DataType::kInt8 || read.codes_->type == DataType::kUint8;
  const bool matrix = read.codes_->dims.size() == 2 || (by_rows && read.codes_->dims.size() > 2);
  if (!matrix || !eight_bits || weight.block > 0 || read.codes_->ElementCount() <= 0) {
    return NotWritten("its weight is not a matrix of 8 bits with one scale for each column");
  }
  read.is_signed_ = read.codes_->type == DataType::kInt8;
  read.by_rows_ = by_rows;
  read.n_ = read.codes_->dims[by_rows ? 0 : 1];
  read.k_ = read.codes_->ElementCount() / read.n_;
  RETURN_IF_ERROR(read.ReadFactors(model, weight));
  RETURN_IF_ERROR(read.AddUp(model));
  return read;
}

absl::StatusOr<const Value*> Int8Weight::Constant(Workspace& workspace, const Node& at, bool by_rows) const {
  const bool has_zero = centered_ && std::any_of(zeros_.begin(), zeros_.end(), [](int64_t zero) { return zero != 0; });
  const bool same_order = by_rows == by_rows_;
  if (same_order && is_signed_ && !has_zero && value_->initializer != nullptr) return value_;
  Dequantization how;
  how.codes = &*codes_;
  how.is_signed = is_signed_;
  how.zero = centered_ ? zeros_[0] : Middle();
  const bool per_column = centered_ && zeros_.size() > 1;
  how.outer = by_rows_ ? n_ : k_;
  how.length = how.stride = by_rows_ ? k_ : n_;
  if (per_column) {
    how.zeros = &*zero_tensor_;
    how.zero_bits = BitWidth(zero_tensor_->type);
    how.zero_steps = by_rows_ ? FactorSteps{1, 0, 0} : FactorSteps{0, 1, 0};
  }
  how.transposed = !same_order;
  std::vector<int64_t> dims = by_rows ? std::vector<int64_t>{n_, k_} : std::vector<int64_t>{k_, n_};
  if (codes_->dims.size() > 2) dims.assign(codes_->dims.begin(), codes_->dims.end());
  return DequantizedConstant(workspace, at, DataType::kInt8, dims, how, fmt::format("{}_int8", ValueName(*value_)));
}

}  // namespace ascend_fuse
