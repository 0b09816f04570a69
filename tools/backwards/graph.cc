#include "tools/backwards/graph.h"

#include <algorithm>
#include <cmath>
#include <iterator>

namespace ascend_fuse::backwards {

bool Same(const Result& a, const Result& b) {
  if (a.kind == Result::Kind::kList && b.kind != Result::Kind::kList) {
    return a.list.size() == 1 && Same(a.list[0], b);
  }
  if (b.kind == Result::Kind::kList && a.kind != Result::Kind::kList) return Same(b, a);
  if (a.kind != b.kind) return false;
  switch (a.kind) {
    case Result::Kind::kNumber:
      return std::fabs(a.number - b.number) <= 1e-6 * std::fabs(a.number);
    case Result::Kind::kText:
      return a.text == b.text;
    case Result::Kind::kType:
      return a.type == b.type;
    case Result::Kind::kValue:
      return a.value == b.value;
    case Result::Kind::kAbsent:
      return true;
    case Result::Kind::kList:
      break;
  }
  if (a.list.size() != b.list.size()) return false;
  for (size_t i = 0; i < a.list.size(); ++i) {
    if (!Same(a.list[i], b.list[i])) return false;
  }
  return true;
}

bool IsComparison(std::string_view op) {
  static constexpr std::string_view kOps[] = {"Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual", "IsNaN", "IsInf"};
  return std::find(std::begin(kOps), std::end(kOps), op) != std::end(kOps);
}

bool IsLogical(std::string_view op) { return op == "Not" || op == "And" || op == "Or" || op == "Xor"; }

}  // namespace ascend_fuse::backwards
