#include "passes/analyze/page_table.h"

#include <algorithm>

#include "fmt/format.h"
#include "passes/report/html_text.h"
#include "passes/report/number_text.h"
#include "patterns/codes.h"

namespace ascend_fuse {
namespace {

constexpr size_t kMostNames = 40;

}  // namespace

PageCell PageCount(int64_t count) { return {fmt::format("{}", count), static_cast<double>(count)}; }
PageCell PageNumber(double value) { return {ShortNumber(value), value}; }
PageCell PageBytes(double value) { return {ShortBytes(value), value}; }

std::string PageBar(double share) {
  return fmt::format("<span class=\"bar\" aria-hidden=\"true\"><i style=\"width:{:.1f}%\"></i></span>",
                     std::clamp(share, 0.0, 1.0) * 100);
}

PageCell PageShare(double share) { return {PageBar(share) + HtmlText(Percent(share)), share}; }

std::string PageName(std::string_view name) { return HtmlText(name, kLongestNameOfPage); }

std::string PageWayOut(const std::string& way_out, const std::string& code) {
  if (!way_out.empty()) return HtmlText(way_out);
  const Code* found = code.empty() ? nullptr : FindCode(code);
  return found == nullptr ? "" : HtmlText(found->way_out);
}

std::string PageNames(const std::vector<std::string>& names, std::string_view what) {
  if (names.empty()) return "";
  std::string text = fmt::format("<details><summary>{} {}{}</summary><ul>", names.size(), what, names.size() == 1 ? "" : "s");
  for (size_t i = 0; i < std::min(names.size(), kMostNames); ++i) text += fmt::format("<li>{}</li>", PageName(names[i]));
  if (names.size() > kMostNames) text += fmt::format("<li>and {} more</li>", names.size() - kMostNames);
  return text + "</ul></details>";
}

void PageTable::Row(const std::vector<PageCell>& cells, std::string_view row_class) {
  if (++rows_ > kMostRowsOfPage) return;
  body_ += row_class.empty() ? "<tr>" : fmt::format("<tr class=\"{}\">", row_class);
  for (size_t i = 0; i < cells.size(); ++i) {
    const std::string order = cells[i].order.has_value() ? fmt::format(" data-v=\"{:.6g}\"", *cells[i].order) : "";
    const std::string_view kind = columns_[i].is_number           ? " class=\"number\""
                                  : columns_[i].name == "because" ? " class=\"words\""
                                                                  : "";
    body_ += i == 0 ? fmt::format("<th scope=\"row\"{}{}>{}</th>", order, kind, cells[i].html)
                    : fmt::format("<td{}{}>{}</td>", order, kind, cells[i].html);
  }
  body_ += "</tr>\n";
}

std::string PageTable::Html() const {
  // What scrolls is reached with the keyboard too.
  std::string text = fmt::format(
      "<div class=\"table\" tabindex=\"0\" role=\"region\" aria-label=\"{0}\"><table>\n<caption>{0}</caption>\n<thead><tr>",
      HtmlText(caption_));
  for (const PageColumn& column : columns_) {
    text += fmt::format("<th scope=\"col\"{}>{}</th>", column.is_number ? " class=\"number\"" : "", column.name);
  }
  text += "</tr></thead>\n<tbody>\n" + body_ + "</tbody></table></div>\n";
  if (rows_ > kMostRowsOfPage) {
    text += fmt::format("<p class=\"small\">and {} more rows, which --json has</p>\n", rows_ - kMostRowsOfPage);
  }
  return text;
}

}  // namespace ascend_fuse
