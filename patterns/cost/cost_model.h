// How long a kernel takes on a chip, by the figures of costs.txtpb. Times are a model's and only good for ratios: a kernel takes
// its start and its fixed cost, and the longest of what its FLOPs, bytes, scores and vector instructions take.
#pragma once

#include <cstdint>
#include <string_view>

#include "absl/functional/function_ref.h"
#include "patterns/cost/costs.h"
#include "patterns/cost/work.h"

namespace ascend_fuse {

// The work of a kernel in numbers.
struct KernelWork {
  WorkKind kind = WorkKind::kNone;
  double flops = 0;
  double bytes = 0;  // in the types that the chip computes with
  double scores = 0;
  double instructions = 0;
  double elements = 0;     // of its result: what an AI CPU works on
  double shortest = 0;     // see Work
  bool on_ai_cpu = false;  // or on the host
  std::string_view one_by_one_on;
  double cube_share = 0;  // see Work

  KernelWork& operator+=(const KernelWork& other);
};

// Work in numbers. `lowers`: float32 is computed in float16.
KernelWork InNumbers(const Work& work, bool lowers, absl::FunctionRef<double(Dim)> number);

// Microseconds by the figures as they are, and with the fixed costs of small kernels, those of products and attention, the rates
// of computing and those of moving at both ends of what they may be, each by itself: common errors fall out of a ratio.
struct KernelTime {
  static constexpr int kCorners = 16;
  double middle = 0;
  double corner[kCorners] = {};

  KernelTime& operator+=(const KernelTime& other);
  KernelTime operator*(double times) const;
};

class CostModel {
 public:
  CostModel(std::string_view chip, LaunchMode launch);

  // `launches`: how many kernels do that work; 0 for what other kernels do on the way.
  KernelTime TimeOf(const KernelWork& work, double launches = 1) const;
  const ChipCost& chip() const { return chip_; }
  LaunchMode launch() const { return launch_; }

 private:
  struct Factors {
    double fixed = 1;
    double computing = 1;
    double moving = 1;
  };
  double Microseconds(const KernelWork& work, double launches, const Factors& factors) const;

  const ChipCost& chip_;
  const CostParameters& parameters_;
  LaunchMode launch_;
};

// How many times faster `after` is, with the interval of the corners.
struct SpeedRatio {
  double low = 1;
  double middle = 1;
  double high = 1;
};
SpeedRatio RatioOf(const KernelTime& before, const KernelTime& after);

}  // namespace ascend_fuse
