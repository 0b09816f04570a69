// The cost model held against what others measured (patterns/cost/measurements.txtpb).
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "patterns/cost/cost_model.h"

namespace ascend_fuse {

struct Comparison {
  const Measurement* row = nullptr;
  double measured = 1;  // time before by time after
  SpeedRatio predicted;
  double error = 0;        // predicted by measured, less 1
  bool direction = false;  // faster, slower, or neither by a tenth: both say the same
};

// A ratio nearer to 1 than this is a tie.
inline constexpr double kTie = 0.1;

// Of one row; INVALID_ARGUMENT where its text does not parse, or its shapes are not numbers. One that nobody measured has the
// prediction only.
absl::StatusOr<Comparison> Compare(const Measurement& row);

// Of all rows that were measured.
absl::StatusOr<std::vector<Comparison>> CompareWithMeasurements();

// docs/costs.md.
absl::StatusOr<std::string> CostsDocument();

}  // namespace ascend_fuse
