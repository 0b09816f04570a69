#include "patterns/cost/cost_model.h"

#include <algorithm>

namespace ascend_fuse {
namespace {

// Corner i has the uncertainty in the fixed costs of products and attention, in those of other kernels, in the rates of computing
// and in those of moving, by the bits of i.
double FactorAt(int corner, int bit, double uncertainty) { return (corner >> bit & 1) != 0 ? uncertainty : 1 / uncertainty; }

}  // namespace

KernelWork& KernelWork::operator+=(const KernelWork& other) {
  flops += other.flops;
  bytes += other.bytes;
  scores += other.scores;
  instructions += other.instructions;
  elements += other.elements;
  return *this;
}

KernelWork InNumbers(const Work& work, bool lowers, absl::FunctionRef<double(Dim)> number) {
  KernelWork kernel;
  kernel.kind = work.kind;
  kernel.flops = number(work.flops);
  kernel.bytes = number(work.bytes) - (lowers ? number(work.float_bytes) / 2 : 0);
  kernel.scores = number(work.scores);
  kernel.instructions = number(work.instructions);
  kernel.elements = number(work.elements);
  kernel.shortest = number(work.shortest);
  kernel.one_by_one_on = work.one_by_one_on;
  kernel.cube_share = work.cube_share;
  return kernel;
}

KernelTime& KernelTime::operator+=(const KernelTime& other) {
  middle += other.middle;
  for (int i = 0; i < kCorners; ++i) corner[i] += other.corner[i];
  return *this;
}

KernelTime KernelTime::operator*(double times) const {
  KernelTime product = *this;
  product.middle *= times;
  for (double& time : product.corner) time *= times;
  return product;
}

CostModel::CostModel(std::string_view chip, LaunchMode launch)
    : chip_(FindChipCost(chip)), parameters_(CostModelParameters()), launch_(launch) {}

double CostModel::Microseconds(const KernelWork& work, double launches, const Factors& factors) const {
  if (work.on_ai_cpu) {
    return launches * parameters_.ai_cpu_fixed.value * factors.fixed +
           work.elements / (parameters_.ai_cpu_rate.value * 1e3) / factors.moving;
  }
  // 10^12 a second are 10^6 a microsecond, 10^9 a second are 10^3.
  const double share = work.cube_share > 0 ? work.cube_share : parameters_.cube_share.value;
  const double by_flops = work.kind == WorkKind::kMatrix ? work.flops / (chip_.cube.value * share * 1e6) : 0;
  const double by_bytes = work.bytes / (chip_.bandwidth.value * parameters_.bandwidth_share.value * 1e3);
  const bool slow_order = work.shortest >= parameters_.tokens_first_from.value;
  const double by_scores = work.scores * (slow_order ? parameters_.tokens_first.value : 1) / (chip_.scores.value * 1e3);
  const double by_instructions = work.instructions / (chip_.vector.value * 1e3);
  const bool one_by_one = work.one_by_one_on == chip_.name && !chip_.name.empty();
  const double by_elements = one_by_one ? work.elements / (parameters_.scalar_rate.value * 1e3) : 0;
  const double fixed =
      parameters_.fixed[static_cast<size_t>(work.kind)].value + parameters_.launch[static_cast<size_t>(launch_)].value;
  const double computing = std::max({by_flops, by_scores, by_instructions}) / factors.computing;
  const double moving = std::max(by_bytes, by_elements) / factors.moving;
  return launches * fixed * factors.fixed + std::max(computing, moving);
}

KernelTime CostModel::TimeOf(const KernelWork& work, double launches) const {
  KernelTime time;
  time.middle = Microseconds(work, launches, {});
  const double uncertainty = parameters_.uncertainty.value;
  const bool large = work.kind == WorkKind::kMatrix || work.kind == WorkKind::kAttention;
  for (int i = 0; i < KernelTime::kCorners; ++i) {
    time.corner[i] = Microseconds(
        work, launches, {FactorAt(i, large ? 0 : 1, uncertainty), FactorAt(i, 2, uncertainty), FactorAt(i, 3, uncertainty)});
  }
  return time;
}

SpeedRatio RatioOf(const KernelTime& before, const KernelTime& after) {
  SpeedRatio ratio;
  if (after.middle <= 0 || before.middle <= 0) return ratio;
  ratio.low = ratio.middle = ratio.high = before.middle / after.middle;
  for (int i = 0; i < KernelTime::kCorners; ++i) {
    if (after.corner[i] <= 0) continue;
    ratio.low = std::min(ratio.low, before.corner[i] / after.corner[i]);
    ratio.high = std::max(ratio.high, before.corner[i] / after.corner[i]);
  }
  return ratio;
}

}  // namespace ascend_fuse
