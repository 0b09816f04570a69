// Casts: a Cast of a Cast to a type that holds every number of the first is one Cast.
#include "ir/rounding.h"
#include "passes/tidy/kinds.h"

namespace ascend_fuse {

std::optional<Tidied> AskCasts(TidyContext& context, const Node& node) {
  const Node* const first = Before(node, 0, "Cast");
  if (first == nullptr || first->input(0) == nullptr) return std::nullopt;
  const DataType from = context.facts().Of(first->input(0)).type;
  const DataType between = context.facts().Of(first->output()).type;
  const DataType to = context.facts().Of(node.output()).type;
  if (to == DataType::kUndefined || !HoldsAllOf(between, from)) return std::nullopt;
  // Booleans by way of these integers and of floats only.
  if (from == DataType::kBool && IsInteger(between) && between != DataType::kInt32 && between != DataType::kInt64)
    return std::nullopt;
  return Tidied::Reads(0, Term::Of(first->input(0)));
}

}  // namespace ascend_fuse
