// Dims: a number that is a dim of an input of the model is read from there, by one Gather of one Shape for each dim, whatever
// arithmetic the exporter wrote for it. Equal ones are computed once.
#include <cstdint>
#include <string>

#include "passes/tidy/kinds.h"

namespace ascend_fuse {
namespace {

// Whether the node is what would be written in its place, or the Shape of a vector, which is its only dim.
bool IsRead(const TidyContext& context, const Node& node, const InputDims::Place& place) {
  if (IsOp(node, "Shape")) return true;
  if (!IsOp(node, "Gather") || IntAttribute(node, "axis").value_or(0) != 0) return false;
  const Node* const shape = Before(node, 0, "Shape");
  const Fact& index = context.facts().Of(node.input(1));
  return shape != nullptr && shape->input(0) == place.input && index.elements != nullptr &&
         index.elements->integers.size() == 1 && index.elements->integers[0].is(place.axis);
}

}  // namespace

std::optional<Tidied> AskDims(TidyContext& context, const Node& node) {
  const Value* const value = node.output();
  if (node.graph->owner() != nullptr || value == nullptr || node.output_count != 1 || value->is_graph_output) return std::nullopt;
  const Fact& fact = context.facts().Of(value);
  if (fact.type != DataType::kInt64 || fact.elements == nullptr || fact.elements->integers.size() != 1 || fact.rank() > 1) {
    return std::nullopt;
  }
  const InputDims::Place* const place = context.inputs.Of(fact.elements->integers[0]);
  if (place == nullptr || IsRead(context, node, *place)) return std::nullopt;
  const Term shape = build::Shape(Term::Of(place->input));
  return Tidied::Of(build::Gather(shape, IndexOf(context, node, place->axis, fact.rank()), 0));
}

}  // namespace ascend_fuse
