#include "passes/core/float_attribute.h"

#include <algorithm>
#include <vector>

#include "patterns/operators/plugin_digits.h"

namespace ascend_fuse {
namespace {

bool IsListForNumber(const DeclaredOperator* op, const Attribute& attribute) {
  if (attribute.type != AttributeType::kFloats || attribute.floats.size() != 1 || op == nullptr) return false;
  const DeclaredAttribute* declared = op->FindAttribute(attribute.name);
  return declared != nullptr && declared->type == AttributeType::kFloat;
}

}  // namespace

Attribute AsWritten(const DeclaredOperator* op, Attribute attribute) {
  const bool ours = op != nullptr && op->ge.has_value() && op->ge->parser == "plugin";
  if (!ours || attribute.type != AttributeType::kFloat || SixDigitsHold(attribute.f)) return attribute;
  return Attribute::Floats(attribute.name, {attribute.f});
}

Attribute AsDeclared(const DeclaredOperator* op, Attribute attribute) {
  if (!IsListForNumber(op, attribute)) return attribute;
  return Attribute::Float(attribute.name, attribute.floats[0]);
}

bool HasListForNumber(const DeclaredOperator* op, const Node& node) {
  if (op == nullptr) return false;
  const std::vector<Attribute> attributes = ReadAttributes(node);
  return std::any_of(attributes.begin(), attributes.end(),
                     [op](const Attribute& attribute) { return IsListForNumber(op, attribute); });
}

}  // namespace ascend_fuse
