// Constants, whichever way they are written, and their tensors.
#pragma once

#include <optional>

#include "ir/attribute.h"
#include "ir/graph.h"

namespace ascend_fuse {

// Whether it is an initializer that no caller can override, or what a Constant gives.
inline bool IsWrittenConstant(const Value& value) {
  return value.IsConstant() || (value.producer != nullptr && IsOp(*value.producer, "Constant"));
}

// The tensor of an initializer that no caller can override, or of the attribute `value` of a Constant; nullopt for every
// other value.
inline std::optional<Tensor> ConstantTensor(const Value& value) {
  if (value.IsConstant()) return *value.initializer;
  if (value.producer == nullptr || !IsOp(*value.producer, "Constant")) return std::nullopt;
  const std::optional<Attribute> written = FindAttribute(*value.producer, "value");
  return written.has_value() && written->type == AttributeType::kTensor ? std::optional<Tensor>(written->tensor) : std::nullopt;
}

}  // namespace ascend_fuse
