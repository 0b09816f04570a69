// The tensor of a constant, whichever way it is written.
#pragma once

#include <optional>

#include "ir/attribute.h"
#include "ir/graph.h"

namespace ascend_fuse {

// The tensor of an initializer that no caller can override, or of the attribute `value` of a Constant; nullopt for every
// other value.
inline std::optional<Tensor> ConstantTensor(const Value& value) {
  if (value.IsConstant()) return *value.initializer;
  if (value.producer == nullptr || !IsOp(*value.producer, "Constant")) return std::nullopt;
  const std::optional<Attribute> written = FindAttribute(*value.producer, "value");
  return written.has_value() && written->type == AttributeType::kTensor ? std::optional<Tensor>(written->tensor) : std::nullopt;
}

}  // namespace ascend_fuse
