#include "passes/layout/attention_layout.h"

#include <algorithm>
#include <optional>

namespace ascend_fuse {
namespace {

int64_t Whole(double microseconds) {
  constexpr double kUnits = 1e6;
  return static_cast<int64_t>(std::min(microseconds * kUnits, 1e15));
}

std::optional<double> ElementsOf(absl::Span<const Dim> shape, const DimTable& dims) {
  double product = 1;
  for (const Dim dim : shape) {
    const Dim known = dims.Resolve(dim);
    if (!known.is_number()) return std::nullopt;
    product *= static_cast<double>(known.number());
  }
  return product;
}

}  // namespace

bool IsAttentionToArrange(const Node& node, const Facts& facts) {
  if (node.dead || Domain(node) != "npu" || StringAttribute(node, "input_layout") != "BNSD") return false;
  if (FindLayoutCost(OpType(node)) == nullptr) return false;
  for (size_t i = 0; i < kAttentionOperands; ++i) {
    if (node.input(i) == nullptr || facts.Of(node.input(i)).rank() != 4) return false;
  }
  return facts.Of(node.output()).rank() == 4;
}

const LayoutCost& LayoutCostOf(const Node& attention) { return *FindLayoutCost(OpType(attention)); }

int64_t CostOfTranspose(const LayoutCost& cost, absl::Span<const Dim> shape, const DimTable& dims) {
  return Whole(cost.transpose + cost.transpose_element * ElementsOf(shape, dims).value_or(0));
}

int64_t CostOfTokensFirst(const Node& attention, const Facts& facts) {
  const LayoutCost& cost = LayoutCostOf(attention);
  const DimTable& dims = facts.dims();
  const auto q = facts.Of(attention.input(0)).shape;
  const Dim queries = dims.Resolve(q[2]);
  const Dim keys = dims.Resolve(facts.Of(attention.input(1)).shape[2]);
  const auto is_long = [&](Dim dim) { return dim.is_number() && dim.number() >= cost.from_length; };
  if (!is_long(queries) || !is_long(keys)) return 0;
  return Whole(cost.score * ElementsOf({q[0], q[1], queries, keys}, dims).value_or(0));
}

}  // namespace ascend_fuse
