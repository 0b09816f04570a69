#include "ir/text/visible.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "fmt/format.h"

namespace ascend_fuse {
namespace {

// What Unicode calls controls, format characters and separators of lines: of bidirectional text, joiners, tags and the like.
constexpr std::pair<uint32_t, uint32_t> kUnseen[] = {
    {0x00, 0x1F},     {0x7F, 0x9F},     {0xAD, 0xAD},     {0x61C, 0x61C},   {0x180E, 0x180E},   {0x200B, 0x200F},
    {0x2028, 0x202E}, {0x2060, 0x206F}, {0xFEFF, 0xFEFF}, {0xFFF0, 0xFFFB}, {0xE0000, 0xE0FFF},
};

bool IsUnseen(uint32_t point) {
  for (const auto& [first, last] : kUnseen) {
    if (point >= first && point <= last) return true;
  }
  return false;
}

// The character that begins the text and how many bytes it has; 0 where they are not UTF-8.
size_t Decode(std::string_view text, uint32_t* point) {
  const auto byte = [text](size_t i) { return static_cast<uint32_t>(static_cast<uint8_t>(text[i])); };
  const uint32_t first = byte(0);
  const size_t size = first < 0x80                    ? 1
                      : first >= 0xC2 && first < 0xE0 ? 2
                      : first >= 0xE0 && first < 0xF0 ? 3
                      : first >= 0xF0 && first < 0xF5 ? 4
                                                      : 0;
  if (size == 0 || size > text.size()) return 0;
  *point = size == 1 ? first : first & (0x7Fu >> size);
  for (size_t i = 1; i < size; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return 0;
    *point = *point << 6 | (byte(i) & 0x3F);
  }
  const bool shorter = (size == 3 && *point < 0x800) || (size == 4 && *point < 0x10000);
  return shorter || (*point >= 0xD800 && *point < 0xE000) || *point > 0x10FFFF ? 0 : size;
}

// Moves what `text` begins with and is shown as it is, ASCII but for controls, to `out`: nearly all of nearly all texts. Whether
// there is more.
bool MovePlain(std::string_view* text, std::string* out) {
  const auto first = std::find_if(text->begin(), text->end(), [](char c) { return c < 0x20 || c >= 0x7F; });
  const auto plain = static_cast<size_t>(first - text->begin());
  out->append(text->substr(0, plain));
  text->remove_prefix(plain);
  return !text->empty();
}

}  // namespace

std::string Visible(std::string_view text, bool keep_lines) {
  std::string out;
  out.reserve(text.size());
  while (MovePlain(&text, &out)) {
    uint32_t point = 0;
    const size_t size = Decode(text, &point);
    if (size == 0) {
      out += fmt::format("\\x{:02x}", static_cast<uint8_t>(text[0]));
    } else if (!IsUnseen(point) || (keep_lines && (point == '\n' || point == '\t'))) {
      out += text.substr(0, size);
    } else if (point < 0x80) {
      out += fmt::format("\\x{:02x}", point);
    } else {
      out += fmt::format("\\u{{{:x}}}", point);
    }
    text.remove_prefix(size == 0 ? 1 : size);
  }
  return out;
}

std::string VisibleJson(std::string_view json) {
  std::string out;
  out.reserve(json.size());
  while (MovePlain(&json, &out)) {
    uint32_t point = 0;
    const size_t size = static_cast<uint8_t>(json[0]) < 0x80 ? 1 : Decode(json, &point);
    if (size < 2 || !IsUnseen(point)) {
      out += json.substr(0, size == 0 ? 1 : size);
    } else if (point < 0x10000) {
      out += fmt::format("\\u{:04x}", point);
    } else {
      out += fmt::format("\\u{:04x}\\u{:04x}", 0xD800 + ((point - 0x10000) >> 10), 0xDC00 + ((point - 0x10000) & 0x3FF));
    }
    json.remove_prefix(size == 0 ? 1 : size);
  }
  return out;
}

std::string Shown(std::string_view text) {
  constexpr size_t kMost = 2000;
  if (text.size() <= kMost) return Visible(text);
  size_t end = kMost;
  while (end > 0 && (static_cast<uint8_t>(text[end]) & 0xC0) == 0x80) --end;  // not inside a character
  return fmt::format("{}... ({} bytes more)", Visible(text.substr(0, end)), text.size() - end);
}

}  // namespace ascend_fuse
