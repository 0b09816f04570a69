#include "passes/report/html_text.h"

#include "fmt/format.h"
#include "ir/text/visible.h"
#include "patterns/codes.h"

namespace ascend_fuse {

std::string HtmlText(std::string_view text, size_t most) {
  std::string cut;
  if (text.size() > most) {
    size_t end = most;
    while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;
    cut = fmt::format("... ({} bytes more)", text.size() - end);
    text = text.substr(0, end);
  }
  std::string out;
  for (const char c : Shown(text)) {
    if (c == '&') {
      out += "&amp;";
    } else if (c == '<') {
      out += "&lt;";
    } else if (c == '>') {
      out += "&gt;";
    } else if (c == '"') {
      out += "&quot;";
    } else {
      out += c;
    }
  }
  return out + cut;
}

std::string HtmlCode(const std::string& name) {
  if (name.empty()) return "";
  const Code* code = FindCode(name);
  return fmt::format(" <code title=\"{}\">{}</code>", code == nullptr ? "" : HtmlText(code->title), HtmlText(name));
}

std::string HtmlSmall(std::string_view label, const std::string& text) {
  return text.empty() ? "" : fmt::format("<div class=\"small\">{}{}</div>", label, HtmlText(text));
}

}  // namespace ascend_fuse
