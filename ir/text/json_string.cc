#include "ir/text/json_string.h"

#include "fmt/format.h"
#include "ir/text/visible.h"

namespace ascend_fuse {

std::string JsonString(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      out += fmt::format("\\u{:04x}", static_cast<unsigned char>(c));
    } else {
      out += c;
    }
  }
  return out + '"';
}

std::string VisibleJsonString(std::string_view text) { return JsonString(Visible(text, true)); }

}  // namespace ascend_fuse
