// A constant weight of 8 bits as kernels that multiply int8 with int8 read it, and what of it goes into their bias.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "passes/quantised/constant_codes.h"

namespace ascend_fuse {

// Codes of [K, N], or of [N, K], of which K may be several dims, as int8: less their zero points where all of them are int8 then.
// Else codes of uint8 are 128 lower, codes of int8 as they are, and their zero points are left to whoever adds up rows of the
// other factor. Numbers of columns have one element, or N.
class Int8Weight {
 public:
  // FAILED_PRECONDITION with a sentence where the weight is not constant or not of 8 bits. The elements are read once.
  static absl::StatusOr<Int8Weight> Read(const Model& model, const QuantisedTensor& weight, bool by_rows);

  int64_t k() const { return k_; }
  int64_t n() const { return n_; }
  bool by_rows() const { return by_rows_; }
  double ScaleOf(int64_t column) const { return scales_[scales_.size() == 1 ? 0 : static_cast<size_t>(column)]; }
  size_t scale_count() const { return scales_.size(); }
  // The sum of each column's codes less their zero point.
  const std::vector<int64_t>& sums() const { return sums_; }
  // Whether the int8 of the constant are the codes less their zero points.
  bool centered() const { return centered_; }
  // What is left to take off the int8 of a column.
  int64_t ZeroOf(int64_t column) const {
    return centered_ ? 0 : zeros_[zeros_.size() == 1 ? 0 : static_cast<size_t>(column)] - Middle();
  }
  // The weight as a constant [N, K] or [K, N] of int8: the one of the model where that is the same. Where K is several dims it
  // stays [N, K].
  absl::StatusOr<const Value*> Constant(Workspace& workspace, const Node& at, bool by_rows) const;

 private:
  absl::Status ReadFactors(const Model& model, const QuantisedTensor& weight);
  absl::Status AddUp(const Model& model);
  int64_t Middle() const { return is_signed_ ? 0 : 128; }

  const Value* value_ = nullptr;
  std::optional<Tensor> codes_;
  std::optional<Tensor> zero_tensor_;
  bool by_rows_ = false;
  bool is_signed_ = true;
  bool centered_ = true;
  int64_t k_ = 0;
  int64_t n_ = 0;
  std::vector<double> scales_;
  std::vector<int64_t> zeros_;
  std::vector<int64_t> sums_;
};

}  // namespace ascend_fuse
