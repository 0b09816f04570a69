// The wire cursor: legal oddities are read, broken bytes are named, holes are stepped over.
#include "ir/wire.h"

#include <vector>

#include "gtest/gtest.h"

namespace ascend_fuse::wire {
namespace {

std::string Error(std::string_view bytes) {
  Cursor cursor(bytes);
  Field field;
  while (cursor.Next(&field)) {
  }
  return cursor.error() == nullptr ? "" : cursor.error();
}

TEST(Cursor, ReadsEveryWireType) {
  std::string bytes;
  AppendInt(&bytes, 1, -1);
  AppendTag(&bytes, 2, kFixed64);
  bytes += "\x01\x02\x03\x04\x05\x06\x07\x08";
  AppendBytes(&bytes, 3, "text");
  AppendTag(&bytes, 4, kGroup);
  AppendBytes(&bytes, 5, "inner");
  AppendTag(&bytes, 4, kEndGroup);
  AppendTag(&bytes, 536870911, kFixed32);
  bytes += "\x01\x02\x03\x04";
  Cursor cursor(bytes);
  Field field;
  ASSERT_TRUE(cursor.Next(&field));
  EXPECT_EQ(field.value, ~uint64_t{0});
  ASSERT_TRUE(cursor.Next(&field));
  EXPECT_EQ(field.value, 0x0807060504030201u);
  ASSERT_TRUE(cursor.Next(&field));
  EXPECT_EQ(field.text(), "text");
  ASSERT_TRUE(cursor.Next(&field));
  EXPECT_EQ(field.type, kGroup);
  EXPECT_EQ(field.size, 7);
  ASSERT_TRUE(cursor.Next(&field));
  EXPECT_EQ(field.number, 536870911u);
  EXPECT_EQ(field.value, 0x04030201u);
  EXPECT_FALSE(cursor.Next(&field));
  EXPECT_EQ(cursor.error(), nullptr);
}

TEST(Cursor, TakesNonMinimalVarints) {
  const std::string bytes = {'\x8a', '\x80', '\x00', '\x82', '\x80', '\x00', 'a', 'b'};  // field 1, length 2
  Cursor cursor(bytes);
  Field field;
  ASSERT_TRUE(cursor.Next(&field));
  EXPECT_EQ(field.number, 1u);
  EXPECT_EQ(field.text(), "ab");
}

TEST(Cursor, NamesWhatIsBroken) {
  EXPECT_EQ(Error(std::string("\x08")), "a truncated varint");
  EXPECT_EQ(Error("\x08" + std::string(11, '\xff')), "a varint longer than 10 bytes");
  EXPECT_EQ(Error("\x0a\x05"
                  "abc"),
            "a length beyond the end of the enclosing message");
  EXPECT_EQ(Error(std::string("\x0a") + std::string(9, '\xff') + "\x01"), "a length beyond the end of the enclosing message");
  EXPECT_EQ(Error("\x0d"
                  "abc"),
            "a truncated 32-bit field");
  EXPECT_EQ(Error("\x09"
                  "abc"),
            "a truncated 64-bit field");
  EXPECT_EQ(Error("\x0e"), "an unknown wire type");
  EXPECT_EQ(Error("\x0c"), "the end of a group that was not begun");
  EXPECT_EQ(Error("\x0b\x14"), "the end of another group");
  EXPECT_EQ(Error("\x0b\x08\x01"), "a group without an end");
  EXPECT_EQ(Error(std::string(1, '\0')), "a field number out of range");
  EXPECT_EQ(Error(std::string(200, '\x0b')), "groups nested more than 16 deep");
}

TEST(Cursor, RefusesFormsThatProtobufDoesNotRead) {
  EXPECT_EQ(Error(std::string("\x88\x80\x80\x80\x00\x01", 6)), "");
  EXPECT_EQ(Error(std::string("\x88\x80\x80\x80\x80\x00\x01", 7)), "a field number of more than 5 bytes");
  EXPECT_EQ(Error(std::string("\x0a\x81\x80\x80\x80\x00g", 7)), "");
  EXPECT_EQ(Error(std::string("\x0a\x81\x80\x80\x80\x80\x00g", 8)), "a length of more than 5 bytes");
  EXPECT_EQ(Error(std::string("\x0b\x00\x01\x0c", 4)), "a field number out of range");  // in a group
}

TEST(Cursor, StepsOverHoles) {
  // File: field 1 "ab", field 2 of 1000 bytes (left out), field 3 { field 4 of 500 bytes (left out), field 5
  // = 7 }.
  std::string head;
  AppendBytes(&head, 1, "ab");
  AppendTag(&head, 2, kBytes);
  AppendVarint(&head, 1000);
  std::string inner;
  AppendTag(&inner, 4, kBytes);
  AppendVarint(&inner, 500);
  const auto inner_head = static_cast<int64_t>(inner.size());
  AppendInt(&inner, 5, 7);
  std::string tail;
  AppendTag(&tail, 3, kBytes);
  AppendVarint(&tail, inner.size() + 500);
  const auto tail_head = static_cast<int64_t>(tail.size());
  std::string memory = head + tail + inner;
  AppendInt(&memory, 6, 8);
  const auto first = static_cast<int64_t>(head.size());
  const std::vector<FileRange> holes = {{first, 1000}, {first + 1000 + tail_head + inner_head, 500}, kNoHoles};
  const int64_t base = 100;  // the message does not begin at 0
  std::vector<FileRange> shifted = holes;
  shifted[0].offset += base;
  shifted[1].offset += base;
  Cursor cursor(reinterpret_cast<const uint8_t*>(memory.data()), base, static_cast<int64_t>(memory.size()) + 1500,
                shifted.data());
  Field field;
  ASSERT_TRUE(cursor.Next(&field));
  EXPECT_EQ(field.text(), "ab");
  ASSERT_TRUE(cursor.Next(&field));
  EXPECT_TRUE(field.is_hole());
  EXPECT_EQ(field.size, 1000);
  EXPECT_EQ(field.position, base + first);
  EXPECT_EQ(field.text(), "");
  ASSERT_TRUE(cursor.Next(&field));
  EXPECT_TRUE(field.has_hole());
  EXPECT_FALSE(field.is_hole());
  Cursor sub(field);
  ASSERT_TRUE(cursor.Next(&field));
  EXPECT_EQ(field.number, 6u);
  EXPECT_EQ(field.value, 8u);
  EXPECT_FALSE(cursor.Next(&field));
  EXPECT_EQ(cursor.error(), nullptr);
  ASSERT_TRUE(sub.Next(&field));
  EXPECT_TRUE(field.is_hole());
  ASSERT_TRUE(sub.Next(&field));
  EXPECT_EQ(field.value, 7u);
  EXPECT_FALSE(sub.Next(&field));
  EXPECT_EQ(sub.error(), nullptr);
}

}  // namespace
}  // namespace ascend_fuse::wire
