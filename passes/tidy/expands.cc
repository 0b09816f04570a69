// Expands: an operator that broadcasts its operands needs none of them repeated beforehand. Where its result has the same shape
// without, it reads what the Expand reads.
#include <algorithm>
#include <cstddef>
#include <optional>
#include <vector>

#include "ir/schema.h"
#include "passes/tidy/kinds.h"

namespace ascend_fuse {
namespace {

// The shape of all operands broadcast together, with `instead` in place of operand `index`; empty where it cannot be told.
std::vector<Dim> BroadcastWith(const TidyContext& context, const Node& node, size_t index, const Value& instead) {
  std::vector<absl::Span<const Dim>> shapes;
  size_t rank = 0;
  for (size_t i = 0; i < node.input_count; ++i) {
    const Value* const operand = i == index ? &instead : node.input(i);
    if (operand == nullptr || !context.facts().Of(operand).has_rank) return {};
    shapes.push_back(context.facts().Of(operand).shape);
    rank = std::max(rank, shapes.back().size());
  }
  std::vector<Dim> result;
  for (size_t axis = 0; axis < rank; ++axis) {
    Dim dim = Dim::Of(1);
    for (const auto& shape : shapes) {
      if (axis + shape.size() < rank) continue;
      const Dim own = context.dims().Resolve(shape[axis + shape.size() - rank]);
      if (own.is(1)) continue;
      if (!own.known() || (!dim.is(1) && !context.dims().Equal(dim, own))) return {};
      dim = own;
    }
    result.push_back(dim);
  }
  return result;
}

}  // namespace

std::optional<Tidied> AskExpands(TidyContext& context, const Node& node) {
  // A slope is repeated like the other operand, and not the other way round; before opset 7 nothing is.
  constexpr int64_t kBroadcasts = 7;
  if (node.domain != NameId::kEmpty || node.input_count < 2 || IsOp(node, "PRelu")) return std::nullopt;
  if (context.workspace.model().OpsetVersion() < kBroadcasts) return std::nullopt;
  for (size_t i = 0; i < node.input_count; ++i) {
    const Node* const expand = Before(node, i, "Expand");
    if (expand == nullptr || expand->input(0) == nullptr) continue;
    const Schema* const schema = SchemaOf(node);
    const Fact& result = context.facts().Of(node.output());
    if (schema == nullptr || !schema->elementwise || node.output_count != 1 || !result.has_rank) return std::nullopt;
    const std::vector<Dim> without = BroadcastWith(context, node, i, *expand->input(0));
    if (!without.empty() && context.dims().Equal(without, result.shape)) return Tidied::Reads(i, Term::Of(expand->input(0)));
  }
  return std::nullopt;
}

}  // namespace ascend_fuse
