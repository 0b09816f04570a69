// A constant in place of a value all of whose elements inference knows.
#pragma once

#include <optional>
#include <string>

#include "passes/core/workspace.h"

namespace ascend_fuse {

// The elements of a value as ONNX stores them; nullopt where some is not known, or for a type that is not written.
std::optional<std::string> KnownBytes(const Fact& fact, const DimTable& dims);

// A constant of these bytes, which are those of `value`, in the graph and under the name of the value; nullptr where a dim of its
// shape is not known.
const Value* KnownConstant(Workspace& workspace, const Value& value, const std::string& bytes);

}  // namespace ascend_fuse
