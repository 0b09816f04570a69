// Casts: a Cast of a Cast to a type that holds every number of the first is one Cast.
#include "passes/tidy/kinds.h"

namespace ascend_fuse {
namespace {

// Every number of type `narrow` is one of type `wide`, NaN and infinities included.
bool HoldsAll(DataType wide, DataType narrow) {
  switch (narrow) {
    case DataType::kBool:
      return IsFloat(wide) || wide == DataType::kInt32 || wide == DataType::kInt64;
    case DataType::kFloat16:
    case DataType::kBfloat16:
      return wide == DataType::kFloat || wide == DataType::kDouble;
    case DataType::kFloat:
      return wide == DataType::kDouble;
    case DataType::kInt32:
      return wide == DataType::kInt64 || wide == DataType::kDouble;
    default:
      return false;
  }
}

}  // namespace

std::optional<Tidied> AskCasts(TidyContext& context, const Node& node) {
  const Node* const first = Before(node, 0, "Cast");
  if (first == nullptr || first->input(0) == nullptr) return std::nullopt;
  const DataType from = context.facts().Of(first->input(0)).type;
  const DataType between = context.facts().Of(first->output()).type;
  const DataType to = context.facts().Of(node.output()).type;
  if (to == DataType::kUndefined || !HoldsAll(between, from)) return std::nullopt;
  return Tidied::Reads(0, Term::Of(first->input(0)));
}

}  // namespace ascend_fuse
