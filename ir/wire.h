// A reader of the protobuf wire format over bytes in memory in which long payloads of the file are left out.
// Positions are offsets in the file; the reader knows the holes and never reads memory across one.
#pragma once

#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <string_view>

#include "ir/graph.h"
#include "ir/tensor.h"

namespace ascend_fuse::wire {

enum Type : uint32_t {
  kVarint = 0,
  kFixed64 = 1,
  kBytes = 2,  // length-delimited: strings, messages, packed lists
  kGroup = 3,
  kEndGroup = 4,
  kFixed32 = 5,
};

// Ends a list of holes, so that no list needs a length.
inline constexpr FileRange kNoHoles = {std::numeric_limits<int64_t>::max(), 0};

// Deepest nesting of messages, as in libprotobuf.
inline constexpr int kMaxDepth = 100;
// Deepest nesting of unknown groups that is skipped. ONNX has none: so few that they never count among the levels of messages
// that are left in a graph.
inline constexpr int kMaxGroups = 16;
// The longest tag and the longest length that libprotobuf reads. A length that needs more bytes belongs to a file that is read
// nevertheless, since it is not larger than its weights.
inline constexpr int kMaxTagBytes = 5;
inline constexpr int kMaxLengthBytes = 5;

// One field. For kBytes, and for kGroup without its tags, [position, position + size) of the file is the body
// and `data` its first byte in memory; `value` of a group is how deep groups are nested in it, itself included.
struct Field {
  uint32_t number = 0;
  Type type = kVarint;
  int64_t start = 0;  // file offset of the tag
  int64_t position = 0;
  int64_t size = 0;
  uint64_t value = 0;  // kVarint, kFixed64, kFixed32, kGroup
  const uint8_t* data = nullptr;
  const FileRange* hole = &kNoHoles;  // the first hole at or after `position`

  int64_t end() const { return position + size; }
  bool has_hole() const { return hole->offset < position + size; }
  // The body itself was left out of memory.
  bool is_hole() const { return has_hole() && hole->offset == position; }
  // The body as text; only when there is no hole in it.
  std::string_view text() const { return {reinterpret_cast<const char*>(data), has_hole() ? 0 : static_cast<size_t>(size)}; }
  EncodedSpan span() const { return {data, {position, size}}; }
};

// Reads the fields of one message in turn. Copies are cheap and independent. Never reads outside
// [position, end) or inside a hole, whatever the bytes are.
class Cursor {
 public:
  Cursor() = default;

  // A message of `size` bytes of the file at `position`, whose first byte is at `data` in memory. `hole` is
  // the first hole at or after `position` in a list that ends with kNoHoles.
  Cursor(const uint8_t* data, int64_t position, int64_t size, const FileRange* hole)
      : base_(reinterpret_cast<uintptr_t>(data) - static_cast<uintptr_t>(position)),
        position_(position),
        end_(position + size),
        hole_(hole) {
    SetLimit();
  }
  // A message that is whole in memory; positions count from 0.
  explicit Cursor(std::string_view bytes)
      : Cursor(reinterpret_cast<const uint8_t*>(bytes.data()), 0, static_cast<int64_t>(bytes.size()), &kNoHoles) {}
  // The body of a kBytes field.
  explicit Cursor(const Field& field) : Cursor(field.data, field.position, field.size, field.hole) {}

  int64_t position() const { return position_; }
  bool AtEnd() const { return position_ >= end_; }
  // What is wrong with the bytes, at position(); nullptr while all is well.
  const char* error() const { return error_; }

  // The next field; false at the end of the message or on an error.
  [[gnu::always_inline]] bool Next(Field* field) {
    if (position_ >= end_) return false;
    field->start = position_;
    uint64_t tag = 0;
    if (!Tag(&tag)) return false;
    field->type = static_cast<Type>(tag & 7);
    field->number = static_cast<uint32_t>(tag >> 3);
    switch (field->type) {
      case kBytes: {
        uint64_t size = 0;
        if (!Length(&size)) return false;
        if (size > static_cast<uint64_t>(end_ - position_)) {
          return Fail("a length beyond the end of the enclosing message", field->start);
        }
        field->position = position_;
        field->size = static_cast<int64_t>(size);
        field->data = At(position_);
        field->hole = hole_;
        position_ += field->size;
        if (position_ > limit_) return SkipHoles();
        return true;
      }
      case kVarint:
        field->hole = &kNoHoles;
        return Varint(&field->value);
      case kFixed32: {
        if (limit_ - position_ < 4) return Fail("a truncated 32-bit field", field->start);
        uint32_t value;
        std::memcpy(&value, At(position_), 4);
        field->value = value;
        field->hole = &kNoHoles;
        position_ += 4;
        return true;
      }
      case kFixed64:
        if (limit_ - position_ < 8) return Fail("a truncated 64-bit field", field->start);
        std::memcpy(&field->value, At(position_), 8);
        field->hole = &kNoHoles;
        position_ += 8;
        return true;
      case kGroup:
        field->position = position_;
        field->data = At(position_);
        field->hole = hole_;
        return SkipGroup(field);
      default:
        return Fail(field->type == kEndGroup ? "the end of a group that was not begun" : "an unknown wire type", field->start);
    }
  }

  // Elements of packed lists.
  bool Varint(uint64_t* value) {
    if (position_ < limit_) {
      const uint8_t byte = *At(position_);
      if (byte < 0x80) {
        ++position_;
        *value = byte;
        return true;
      }
    }
    return LongVarint(value);
  }
  bool Fixed32(uint32_t* value) {
    if (limit_ - position_ < 4) return Fail("a truncated 32-bit element", position_);
    std::memcpy(value, At(position_), 4);
    position_ += 4;
    return true;
  }
  bool Fixed64(uint64_t* value) {
    if (limit_ - position_ < 8) return Fail("a truncated 64-bit element", position_);
    std::memcpy(value, At(position_), 8);
    position_ += 8;
    return true;
  }

 private:
  bool Tag(uint64_t* tag) {
    const int64_t start = position_;
    if (!Varint(tag)) return false;
    if (*tag > 0xFFFFFFFFu || (*tag >> 3) == 0) return Fail("a field number out of range", start);
    if (position_ - start > kMaxTagBytes) return Fail("a field number of more than 5 bytes", start);
    return true;
  }
  bool Length(uint64_t* size) {
    const int64_t start = position_;
    if (!Varint(size)) return false;
    if (position_ - start > kMaxLengthBytes && *size >> (7 * kMaxLengthBytes) == 0) {
      return Fail("a length of more than 5 bytes", start);
    }
    return true;
  }

  const uint8_t* At(int64_t position) const { return reinterpret_cast<const uint8_t*>(base_ + static_cast<uintptr_t>(position)); }
  void SetLimit() { limit_ = hole_->offset < end_ ? hole_->offset : end_; }

  bool Fail(const char* what, int64_t position) {
    error_ = what;
    position_ = position;
    end_ = position;  // nothing more is read
    limit_ = position;
    return false;
  }

  bool LongVarint(uint64_t* value) {
    const int64_t start = position_;
    uint64_t result = 0;
    for (int shift = 0; shift < 70; shift += 7) {
      if (position_ >= limit_) return Fail("a truncated varint", start);
      const uint8_t byte = *At(position_++);
      result |= static_cast<uint64_t>(byte & 0x7F) << (shift < 64 ? shift : 63);
      if (byte < 0x80) {
        *value = result;
        return true;
      }
    }
    return Fail("a varint longer than 10 bytes", start);
  }

  // After position_ went over holes: moves the base so that memory after them is found.
  bool SkipHoles() {
    while (hole_->offset < position_) {
      if (hole_->offset + hole_->size > position_) return Fail("a length that ends inside a tensor", position_);
      base_ -= static_cast<uintptr_t>(hole_->size);
      ++hole_;
    }
    SetLimit();
    return true;
  }

  bool SkipGroup(Field* field) {
    uint32_t open[kMaxGroups];
    int depth = 0;
    open[depth++] = field->number;
    field->value = 1;
    while (depth > 0) {
      const int64_t start = position_;
      uint64_t tag = 0;
      if (position_ >= end_) return Fail("a group without an end", field->start);
      if (!Tag(&tag)) return false;
      const uint32_t number = static_cast<uint32_t>(tag >> 3);
      switch (tag & 7) {
        case kVarint: {
          uint64_t value = 0;
          if (!Varint(&value)) return false;
          break;
        }
        case kFixed64:
        case kFixed32: {
          const int64_t size = (tag & 7) == kFixed64 ? 8 : 4;
          if (limit_ - position_ < size) return Fail("a truncated field in a group", start);
          position_ += size;
          break;
        }
        case kBytes: {
          uint64_t size = 0;
          if (!Length(&size)) return false;
          if (size > static_cast<uint64_t>(limit_ - position_)) return Fail("a length beyond its group", start);
          position_ += static_cast<int64_t>(size);
          break;
        }
        case kGroup:
          if (depth == kMaxGroups) return Fail("groups nested more than 16 deep", start);
          open[depth++] = number;
          if (static_cast<uint64_t>(depth) > field->value) field->value = static_cast<uint64_t>(depth);
          break;
        case kEndGroup:
          if (open[--depth] != number) return Fail("the end of another group", start);
          if (depth == 0) field->size = start - field->position;
          break;
        default:
          return Fail("an unknown wire type", start);
      }
    }
    return true;
  }

  uintptr_t base_ = 0;  // the byte at file offset p is at base_ + p; a number, since it may lie outside any object
  int64_t position_ = 0;
  int64_t limit_ = 0;  // the end or the next hole: bytes before it are in memory
  int64_t end_ = 0;
  const FileRange* hole_ = &kNoHoles;
  const char* error_ = nullptr;
};

// Appending to an encoding.
inline void AppendVarint(std::string* out, uint64_t value) {
  while (value >= 0x80) {
    out->push_back(static_cast<char>(value | 0x80));
    value >>= 7;
  }
  out->push_back(static_cast<char>(value));
}
inline void AppendTag(std::string* out, uint32_t number, Type type) {
  AppendVarint(out, (static_cast<uint64_t>(number) << 3) | type);
}
inline void AppendBytes(std::string* out, uint32_t number, std::string_view body) {
  AppendTag(out, number, kBytes);
  AppendVarint(out, body.size());
  out->append(body.data(), body.size());
}
inline void AppendInt(std::string* out, uint32_t number, int64_t value) {
  AppendTag(out, number, kVarint);
  AppendVarint(out, static_cast<uint64_t>(value));
}

}  // namespace ascend_fuse::wire
