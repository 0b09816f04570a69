// Dims: a number that is a dim of an input of the model is read from there, by one Gather of one Shape for each dim, whatever
// arithmetic the exporter wrote for it. Equal ones are computed once.
#include <cstdint>
#include <string>

#include "passes/tidy/kinds.h"

namespace ascend_fuse {
namespace {

// Whether the node is what would be written in its place.
bool IsRead(const TidyContext& context, const Node& node, const InputDims::Place& place) {
  if (!IsOp(node, "Gather") || IntAttribute(node, "axis").value_or(0) != 0) return false;
  const Node* const shape = Before(node, 0, "Shape");
  const Fact& index = context.facts().Of(node.input(1));
  return shape != nullptr && shape->input(0) == place.input && index.elements != nullptr &&
         index.elements->integers.size() == 1 && index.elements->integers[0].is(place.axis);
}

// Shape of what has all dims of an input of the model reads the input: equal Shapes are one then, whichever of them a Gather
// reads.
std::optional<Tidied> ReadsInput(const TidyContext& context, const Node& shape) {
  const Fact& x = context.facts().Of(shape.input(0));
  const Fact& dims = context.facts().Of(shape.output());
  if (!x.has_rank || dims.elements == nullptr || dims.elements->integers.size() != x.shape.size()) return std::nullopt;
  for (const Dim dim : x.shape) {
    const InputDims::Place* const place = context.inputs.Of(dim);
    if (place == nullptr) continue;
    const bool other = place->input != shape.input(0) && context.dims().Equal(context.facts().Of(place->input).shape, x.shape);
    return other ? std::optional(Tidied::Reads(0, Term::Of(place->input))) : std::nullopt;
  }
  return std::nullopt;
}

}  // namespace

std::optional<Tidied> AskDims(TidyContext& context, const Node& node) {
  const Value* const value = node.output();
  if (node.graph->owner() != nullptr || value == nullptr || node.output_count != 1 || value->is_graph_output) return std::nullopt;
  if (IsOp(node, "Shape") && node.domain == NameId::kEmpty && node.input(0) != nullptr) return ReadsInput(context, node);
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
