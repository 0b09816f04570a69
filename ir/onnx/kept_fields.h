// Encoded bytes of a model that is written again: from the file it was read from, or in memory. Private to ir/onnx.
#pragma once

#include "ir/model.h"
#include "ir/onnx/model_file.h"
#include "ir/onnx/pieces.h"
#include "ir/wire.h"

namespace ascend_fuse {

inline bool IsFromFile(const EncodedSpan& span) { return span.file.offset >= 0; }

inline wire::Cursor OpenSpan(const ModelFile* file, const EncodedSpan& span) {
  return file != nullptr ? file->Open(span) : wire::Cursor(span.data, 0, span.file.size, &wire::kNoHoles);
}

// A field as it is, tag included: `cursor` stands right after it.
inline void KeepField(const EncodedSpan& message, const wire::Field& field, const wire::Cursor& cursor, Pieces* out) {
  if (IsFromFile(message)) {
    out->File(field.start, cursor.position() - field.start);
  } else {
    out->View({reinterpret_cast<const char*>(message.data) + field.start, static_cast<size_t>(cursor.position() - field.start)});
  }
}

}  // namespace ascend_fuse
