// What libprotobuf refuses in messages that the loader only carries along: broken bytes at any depth, strings that are not
// UTF-8, messages nested too deep. A file with such a message cannot be read by ATC, whatever was optimized in it.
#pragma once

#include <cstdint>
#include <string_view>

#include "absl/status/status.h"
#include "ir/wire.h"

namespace ascend_fuse {

// Messages of onnx.proto. Types that hold a type in field 1 are kinds of their own where other fields differ.
enum class MessageKind : uint8_t {
  kNone,
  kModel,
  kGraph,
  kNode,
  kAttribute,
  kTensor,
  kSegment,
  kSparseTensor,
  kTraining,
  kFunction,
  kValueInfo,
  kType,
  kTensorType,  // of dense and of sparse tensors
  kHolderType,  // a sequence or an optional
  kMapType,
  kOpaqueType,
  kShape,
  kDim,
  kEntry,
  kOpsetId,
  kAnnotation,
  kNodeDevices,
  kSharding,
  kDeviceGroup,
  kShardedDim,
  kSimpleSharding,
  kDeviceConfiguration,
  kKinds,
};

// Messages in a ModelProto that libprotobuf reads; the graph of the model is level 1.
inline constexpr int kMaxLevel = 100;

// OK when libprotobuf parses this message, which stands `level` messages deep in its ModelProto, as proto2 and as proto3 (ATC
// reads models as proto3, which refuses strings that are not UTF-8). INVALID_ARGUMENT names the field and the byte of the file.
absl::Status CheckMessage(const wire::Field& message, MessageKind kind, int level);

// The same of one field of such a message.
absl::Status CheckField(const wire::Field& field, MessageKind kind, int level);

// As protobuf understands it: no surrogates, nothing above U+10FFFF, no sequence longer than it must be.
bool IsUtf8(std::string_view text);

// Whether no number in a part of a packed list of varints is longer than 10 bytes. `open`: bytes of the number that the part
// before did not end, then of the one that this part does not.
bool AreVarints(std::string_view part, int* open);

}  // namespace ascend_fuse
