#include "passes/layout/attention_layout.h"

#include <algorithm>
#include <optional>

#include "patterns/operators/layout_choice.h"

namespace ascend_fuse {
namespace {

constexpr double kHalf = 2;  // bytes

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
  if (!ChoosesLayout(OpType(node))) return false;
  for (size_t i = 0; i < kAttentionOperands; ++i) {
    if (node.input(i) == nullptr || facts.Of(node.input(i)).rank() != 4) return false;
  }
  return facts.Of(node.output()).rank() == 4;
}

int64_t LayoutCosts::OfTranspose(absl::Span<const Dim> shape, const DimTable& dims) const {
  KernelWork work;
  work.kind = WorkKind::kMove;
  work.bytes = 2 * kHalf * ElementsOf(shape, dims).value_or(0);  // read and written
  return Whole(model_.TimeOf(work).middle);
}

int64_t LayoutCosts::OfTokensFirst(const Node& attention, const Facts& facts) const {
  const DimTable& dims = facts.dims();
  const auto q = facts.Of(attention.input(0)).shape;
  const Dim queries = dims.Resolve(q[2]);
  const Dim keys = dims.Resolve(facts.Of(attention.input(1)).shape[2]);
  if (!queries.is_number() || !keys.is_number()) return 0;
  KernelWork heads_first;
  heads_first.kind = WorkKind::kAttention;
  heads_first.scores = ElementsOf({q[0], q[1], queries, keys}, dims).value_or(0);
  KernelWork tokens_first = heads_first;
  tokens_first.shortest = static_cast<double>(std::min(queries.number(), keys.number()));
  return Whole(model_.TimeOf(tokens_first).middle - model_.TimeOf(heads_first).middle);
}

}  // namespace ascend_fuse
