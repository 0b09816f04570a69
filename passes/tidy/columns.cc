// Columns: a GatherElements whose indices are one column repeated takes whole rows, which is a Gather. 310B refuses YOLO26 for
// its GatherElements (docs/sources/surgery.md).
#include <cstdint>
#include <optional>

#include "ir/movement/axis.h"
#include "passes/tidy/kinds.h"

namespace ascend_fuse {
namespace {

// What an Expand or a Tile repeats along every axis but `axis`, all of which have one element in it.
const Value* ColumnOf(const TidyContext& context, const Node& node, int64_t axis) {
  const Node* const expand = Before(node, 1, "Expand");
  const Node* const repeat = expand != nullptr ? expand : Before(node, 1, "Tile");
  if (repeat == nullptr || repeat->input(0) == nullptr) return nullptr;
  const Fact& column = context.facts().Of(repeat->input(0));
  const Fact& all = context.facts().Of(repeat->output());
  if (!column.has_rank || !all.has_rank || column.rank() != all.rank()) return nullptr;
  for (size_t i = 0; i < column.shape.size(); ++i) {
    const Dim dim = context.dims().Resolve(column.shape[i]);
    const bool own = static_cast<int64_t>(i) == axis;
    if (own ? !context.dims().Equal(dim, all.shape[i]) : !dim.is(1)) return nullptr;
  }
  return repeat->input(0);
}

}  // namespace

std::optional<Tidied> AskColumns(TidyContext& context, const Node& node) {
  const Fact& x = context.facts().Of(node.input(0));
  const Fact& index = context.facts().Of(node.input(1));
  const int64_t axis = NormalizeAxis(IntAttribute(node, "axis").value_or(0), x.rank());
  if (!x.has_rank || axis < 0 || index.rank() != x.rank()) return std::nullopt;
  for (size_t i = 0; i < x.shape.size(); ++i) {  // shorter indices take a part of the rows
    if (static_cast<int64_t>(i) != axis && !context.dims().Equal(x.shape[i], index.shape[i])) return std::nullopt;
  }
  const Value* const column = ColumnOf(context, node, axis);
  if (column == nullptr) return std::nullopt;
  const Term places = build::Reshape(Term::Of(column), {-1});
  return Tidied::Of(build::Gather(Term::Of(node.input(0)), places, axis));
}

}  // namespace ascend_fuse
