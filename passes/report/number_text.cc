#include "passes/report/number_text.h"

#include <cmath>
#include <utility>

#include "fmt/format.h"

namespace ascend_fuse {

std::string ShortNumber(double value) {
  static constexpr std::pair<double, const char*> kUnits[] = {{1e15, "P"}, {1e12, "T"}, {1e9, "G"}, {1e6, "M"}, {1e3, "k"}};
  for (const auto& [unit, letter] : kUnits) {
    if (value >= unit * 0.9995) return fmt::format("{:.3g} {}", value / unit, letter);
  }
  return fmt::format("{:.3g} ", value);
}

std::string ShortBytes(double value) { return ShortNumber(value) + "B"; }

std::string Percent(double share) {
  return share != 0 && std::abs(share) < 0.005 ? "<1 %" : fmt::format("{:.0f} %", share * 100);
}

}  // namespace ascend_fuse
