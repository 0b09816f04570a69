// Constants that a lower precision does not hold, and NaN.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>

#include "fmt/format.h"
#include "passes/atc_check.h"

namespace ascend_fuse {
namespace {

constexpr double kHalfMost = 65504;             // the largest float16
constexpr double kHalfLeast = 1.0 / (1 << 25);  // at most this becomes 0

struct Range {
  int64_t nans = 0;
  int64_t too_large = 0;  // finite, and above what float16 holds
  double largest = 0;     // of the finite ones, by size
};

Range RangeOf(const std::vector<double>& elements) {
  Range range;
  for (const double element : elements) {
    const double size = std::abs(element);
    if (std::isnan(element)) {
      ++range.nans;
    } else if (std::isfinite(element)) {
      range.too_large += size > kHalfMost ? 1 : 0;
      range.largest = std::max(range.largest, size);
    }
  }
  return range;
}

void CheckTensor(const Model& model, const Tensor& tensor, const std::string& name, bool lowered,
                 std::vector<FindingRecord>* findings) {
  if (!IsFloat(tensor.type) || tensor.ElementCount() <= 0) return;
  const auto add = [&](std::string code, std::string because, std::string way_out) {
    FindingRecord finding;
    finding.code = std::move(code);
    finding.effect = "precision";
    finding.node = name;
    finding.because = std::move(because);
    finding.way_out = std::move(way_out);
    findings->push_back(std::move(finding));
  };
  if (tensor.ElementCount() > kMostElements) return;
  const auto elements = ReadFloats(model, tensor, kMostElements);
  if (!elements.ok()) {
    const std::string why(elements.status().message());
    add("constant-not-read", fmt::format("its elements cannot be read: {}", why), "");
    return;
  }
  const Range range = RangeOf(*elements);
  if (range.nans > 0) {
    add("constant-is-nan", fmt::format("{} of its {} elements are NaN", range.nans, elements->size()),
        "export it again; a NaN reaches everything that reads it");
  }
  if (!lowered || tensor.type == DataType::kFloat16) return;
  if (range.too_large > 0) {
    add("half-overflow",
        fmt::format("{} of its {} elements are beyond the range of float16 and become infinite; the largest is {:g}",
                    range.too_large, elements->size(), range.largest),
        "a mask needs no more than -65504; else keep its readers in float32");
  } else if (range.largest > 0 && range.largest <= kHalfLeast) {
    add("half-vanishes", fmt::format("all its elements become 0 in float16; the largest is {:g}", range.largest),
        "a larger epsilon, or keep its readers in float32");
  }
}

}  // namespace

std::vector<FindingRecord> FindInConstants(const Model& model, const Target& target) {
  std::vector<FindingRecord> findings;
  const bool lowered = !target.KeepsRange();
  for (const auto& graph : model.graphs()) {
    for (const Value* value : graph->initializers()) {
      if (value->initializer == nullptr || (LiveUses(*value).empty() && !value->is_graph_output)) continue;
      CheckTensor(model, *value->initializer, std::string(ValueName(*value)), lowered, &findings);
    }
    for (const Node* node : graph->nodes()) {
      if (node->dead || !IsOp(*node, "Constant") || node->output() == nullptr) continue;
      const auto value = FindAttribute(*node, "value");
      if (!value.has_value() || value->type != AttributeType::kTensor) continue;
      CheckTensor(model, value->tensor, std::string(ValueName(*node->output())), lowered, &findings);
    }
  }
  return findings;
}

}  // namespace ascend_fuse
