// Models from the official ONNX text syntax (onnx/onnx:docs/Syntax.md, onnx/onnx:onnx/defs/parser.cc of
// release 1.22.0). Text that the official parser takes means the same here; what we take in addition:
//   - names of operators, domains and attributes may be quoted too: "my-domain"."aten::add" (x);
//   - lists of tensors, graphs and types; opaque types; an operator list may be empty: = Op ();
//   - float16 and bfloat16 elements as numbers with a point or exponent ({1.0}); integers are bit patterns,
//     as in the official syntax;
//   - {1.0, ...}: the last element repeats; {...} or {... "hash"}: a tensor whose elements are not given
//     (what PrintModelText writes for weights).
// Stricter: the number of elements must be that of the dims.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "ir/model.h"

namespace ascend_fuse {

// The model in memory, as the loader would give it. INVALID_ARGUMENT "line:column: expected ..., found ...".
absl::StatusOr<std::unique_ptr<Model>> ParseModelText(std::string_view text);

// The same as the bytes of an ONNX file.
absl::StatusOr<std::string> EncodeModelText(std::string_view text);

}  // namespace ascend_fuse
