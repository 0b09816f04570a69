// Constants that a lower precision does not hold, and NaN.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>

#include "absl/types/span.h"
#include "fmt/format.h"
#include "fmt/ranges.h"
#include "passes/check/atc_check.h"

namespace ascend_fuse {
namespace {

constexpr double kHalfMost = 65504;             // the largest float16
constexpr double kHalfLeast = 1.0 / (1 << 25);  // at most this becomes 0

struct Range {
  int64_t nans = 0;
  int64_t too_large = 0;  // finite, and above what float16 holds
  double largest = 0;     // of the finite ones, by size
  double highest = 0;     // of the positive finite ones
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
      range.highest = std::max(range.highest, element);
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

// The first names.
std::string Some(const std::vector<std::string>& names) {
  constexpr size_t kMost = 3;
  const auto told = absl::MakeConstSpan(names).subspan(0, kMost);
  return fmt::format("{}{}", fmt::join(told, ", "), names.size() > kMost ? " ..." : "");
}

// Constants that are read, initializers and those of nodes.
template <typename Visit>
void EachConstant(const Model& model, Visit visit) {
  for (const auto& graph : model.graphs()) {
    for (const Value* value : graph->initializers()) {
      if (value->initializer == nullptr || (LiveUses(*value).empty() && !value->is_graph_output)) continue;
      visit(*value->initializer, *value);
    }
    for (const Node* node : graph->nodes()) {
      if (node->dead || !IsOp(*node, "Constant") || node->output() == nullptr) continue;
      const auto value = FindAttribute(*node, "value");
      if (!value.has_value() || value->type != AttributeType::kTensor) continue;
      visit(value->tensor, *node->output());
    }
  }
}

// What optimize looks at: it does not read weights.
constexpr int64_t kMostOfSmall = 1024;

}  // namespace

std::vector<FindingRecord> FindInConstants(const Model& model, const Target& target) {
  std::vector<FindingRecord> findings;
  const bool lowered = !target.KeepsRange();
  EachConstant(model, [&](const Tensor& tensor, const Value& value) {
    CheckTensor(model, tensor, std::string(ValueName(value)), lowered, &findings);
  });
  return findings;
}

std::vector<WarningRecord> CheckConstants(const Model& model, const Target& target) {
  const bool lowered = !target.KeepsRange();
  std::vector<std::string> too_large;
  std::vector<std::string> nans;
  double largest = 0;
  EachConstant(model, [&](const Tensor& tensor, const Value& value) {
    if (!IsFloat(tensor.type) || tensor.ElementCount() <= 0 || tensor.ElementCount() > kMostOfSmall) return;
    const auto elements = ReadFloats(model, tensor, kMostOfSmall);
    if (!elements.ok()) return;
    const Range range = RangeOf(*elements);
    if (range.nans > 0) nans.emplace_back(ValueName(value));
    if (!lowered || tensor.type == DataType::kFloat16 || range.highest <= kHalfMost) return;
    too_large.emplace_back(ValueName(value));
    largest = std::max(largest, range.highest);
  });
  std::vector<WarningRecord> warnings;
  if (!nans.empty()) {
    warnings.push_back({"constant-is-nan",
                        fmt::format("{} constant(s) hold NaN, which reaches all that reads them: {}", nans.size(), Some(nans))});
  }
  if (!too_large.empty()) {
    warnings.push_back(
        {"half-overflow", fmt::format("{} constant(s) hold numbers beyond the range of float16, which become infinite; the "
                                      "largest is {:g}: {}",
                                      too_large.size(), largest, Some(too_large))});
  }
  return warnings;
}

}  // namespace ascend_fuse
