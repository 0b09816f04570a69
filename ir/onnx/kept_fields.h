// Encoded bytes of a model that is written again: from the file it was read from, or in memory. Private to ir/onnx.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <vector>

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

// A field of a message, and what is written there in place of what it has.
struct OtherField {
  int number = 0;
  std::string_view bytes;
};

// A field that is a message, as it is but for those of its fields.
inline void KeepFieldBut(const EncodedSpan& message, const wire::Field& field, const wire::Cursor& cursor,
                         const std::vector<OtherField>& others, Pieces* out) {
  if (others.empty()) return KeepField(message, field, cursor, out);
  const Pieces::Mark mark = out->Begin(static_cast<int>(field.number));
  wire::Cursor parts(field);
  wire::Field part;
  while (parts.Next(&part)) {
    const auto is_part = [&part](const OtherField& other) { return static_cast<uint32_t>(other.number) == part.number; };
    if (std::none_of(others.begin(), others.end(), is_part)) KeepField(message, part, parts, out);
  }
  for (const OtherField& other : others) out->Bytes(other.number, other.bytes);
  out->End(mark);
}

}  // namespace ascend_fuse
