#include "passes/quantised/never_negative.h"

#include <algorithm>
#include <string_view>

#include "ir/infer/movement_of.h"

namespace ascend_fuse {

bool IsNeverNegative(const Facts& facts, const Value* value, absl::FunctionRef<std::optional<double>(const Value*)> number) {
  static constexpr std::string_view kNeverNegative[] = {"Relu", "Sigmoid", "Softmax", "HardSigmoid", "Abs", "Exp", "Sqrt"};
  constexpr int kMostSteps = 16;
  for (int i = 0; i < kMostSteps && value != nullptr && value->producer != nullptr; ++i) {
    const Node& node = *value->producer;
    const auto is = [&node](std::string_view op) { return IsOp(node, op); };
    if (std::any_of(std::begin(kNeverNegative), std::end(kNeverNegative), is)) return true;
    if (is("Clip")) return node.input(1) != nullptr && number(node.input(1)).value_or(-1) >= 0;
    if (is("Where")) {
      const size_t constant = number(node.input(1)).has_value() ? 1 : 2;
      if (number(node.input(constant)).value_or(-1) < 0) return false;
      value = node.input(constant == 1 ? 2 : 1);
    } else if (is("Cast") || KeepsOrder(facts, node) || KindOf(facts, node) == MovementKind::kPermutes) {
      value = node.input(0);
    } else {
      return false;
    }
  }
  return false;
}

}  // namespace ascend_fuse
