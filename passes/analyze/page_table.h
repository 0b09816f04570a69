// Tables and bars of the page of an analysis.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "passes/analyze/analysis.h"

namespace ascend_fuse {

// A page stays one that a browser opens: of longer tables it says how many rows only the JSON has.
inline constexpr size_t kMostRowsOfPage = 1000;
// Of one name, so many bytes are shown.
inline constexpr size_t kLongestNameOfPage = 200;

struct PageColumn {
  std::string_view name;
  bool is_number = false;
};

struct PageCell {
  std::string html;
  std::optional<double> order;  // what a sorted column goes by; else its text
};

PageCell PageCount(int64_t count);
PageCell PageNumber(double value);  // "3.96 G"
PageCell PageBytes(double value);   // "624 MB"
PageCell PageShare(double share);   // a bar, full where it is the whole, and the number beside it
std::string PageBar(double share);  // the bar alone
std::string PageName(std::string_view name);
// What `ascend-fuse explain` says of a code where no way out is written down.
std::string PageWayOut(const std::string& way_out, const std::string& code);
// Names, folded: "15 nodes".
std::string PageNames(const std::vector<std::string>& names, std::string_view what);

// A table with a caption; the first cell of a row is its name. The script makes headings into buttons that sort.
class PageTable {
 public:
  PageTable(std::string_view caption, std::vector<PageColumn> columns) : caption_(caption), columns_(std::move(columns)) {}

  void Row(const std::vector<PageCell>& cells, std::string_view row_class = "");
  bool empty() const { return rows_ == 0; }
  std::string Html() const;

 private:
  std::string_view caption_;
  std::vector<PageColumn> columns_;
  std::string body_;
  size_t rows_ = 0;
};

}  // namespace ascend_fuse
