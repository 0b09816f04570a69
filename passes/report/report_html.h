// A report as a page for a browser, complete in itself: no script, nothing that is fetched. What the text says in the same words
// and groups, and every place of a group after its name.
#pragma once

#include <string>

#include "passes/report/report.h"

namespace ascend_fuse {

struct ReportHtmlOptions {  // what run the report is of
  bool changed = true;      // false for `list`: nothing was written, so say "can be fused"
  bool of_check = false;    // of `check`: findings, and no sites
};

// The same report gives the same bytes.
std::string ReportToHtml(const Report& report, const ReportHtmlOptions& options = {});
// What is in the body of that page, for a notebook.
std::string ReportToHtmlPart(const Report& report, const ReportHtmlOptions& options = {});

}  // namespace ascend_fuse
