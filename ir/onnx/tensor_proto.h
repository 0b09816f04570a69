// Reads the header of a TensorProto: type, dims and where the elements are. Shared by load.cc and
// attribute.cc.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "ir/model.h"
#include "ir/wire.h"

namespace ascend_fuse {

// Fills `tensor` from the TensorProto body in `field`. INVALID_ARGUMENT with what is wrong and the file
// offset. Names are interned as views of the bytes of the file; for external data only the entries are read.
absl::Status ParseTensor(const wire::Field& field, Model* model, Tensor* tensor);

// "INVALID_ARGUMENT: at byte ..." of a cursor that stopped on an error.
absl::Status WireError(const wire::Cursor& cursor);

// A field of a type that it cannot have.
absl::Status WireTypeError(const wire::Field& field, const char* message);

// For tensors in memory made by the reader of an attribute that is not part of the file.
inline constexpr uint32_t kAnyInt = (1u << wire::kVarint) | (1u << wire::kBytes);
inline constexpr uint32_t kAnyFixed32 = (1u << wire::kFixed32) | (1u << wire::kBytes);
inline constexpr uint32_t kAnyFixed64 = (1u << wire::kFixed64) | (1u << wire::kBytes);
inline constexpr uint32_t kOnlyBytes = 1u << wire::kBytes;
inline constexpr uint32_t kOnlyInt = 1u << wire::kVarint;

// Bit sets of the wire types that the fields of a message may have, by field number; 0: unknown field.
const uint32_t* AttributeWireTypes();  // 32 entries
const uint32_t* TensorWireTypes();     // 32 entries

}  // namespace ascend_fuse
