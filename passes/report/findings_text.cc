// The findings of `check` as text: by effect, those of one kind together.
#include <algorithm>

#include "fmt/format.h"
#include "fmt/ranges.h"
#include "passes/report/report_fields.h"
#include "passes/report/report_groups.h"

namespace ascend_fuse {
namespace {

std::string ToText(const FindingGroup& group, size_t places) {
  const FindingRecord& first = *group.findings.front();
  std::string text = fmt::format("  {} x {} [{}]\n", group.findings.size(), first.because, first.code);
  const size_t named = std::min(places, group.places.size());
  std::string line = fmt::format("{}", fmt::join(group.places.begin(), group.places.begin() + static_cast<int64_t>(named), ", "));
  if (group.places.size() > named) line += fmt::format(" and {} more", group.places.size() - named);
  if (!line.empty()) text += fmt::format("      at {}\n", line);
  if (group.fixed > 0) {
    const bool all = group.fixed == group.findings.size();
    text += fmt::format("      fixed by: {}{}\n", group.fixed_by,
                        all ? "" : fmt::format(" ({} of {})", group.fixed, group.findings.size()));
  }
  if (!first.way_out.empty()) text += fmt::format("      way out: {}\n", first.way_out);
  if (!first.error.empty()) text += fmt::format("      ATC prints {}\n", first.error);
  if (!first.source.empty()) text += fmt::format("      source {}\n", first.source);
  return text;
}

}  // namespace

std::string FindingsToText(const Report& of, size_t places) {
  const Report report = VisibleReport(of);
  const ReportTarget& target = report.target;
  const std::string dims = target.dims.empty() ? "" : fmt::format(", dims {}", fmt::join(target.dims, " "));
  std::string text =
      fmt::format("{}\ntarget {}, CANN {}{}, opset {}, precision mode {}{}\n", report.model, target.chip, target.cann,
                  target.plugin ? " with our op plugin" : "", target.opset, target.precision_mode, dims);
  for (const WarningRecord& warning : report.warnings) text += fmt::format("warning: {}\n", warning.message);
  std::string heading;
  for (const FindingGroup& group : GroupFindings(report)) {
    if (group.heading != heading) text += fmt::format("\n{}\n", group.heading);
    heading = group.heading;
    text += ToText(group, places);
  }
  if (report.findings.empty()) text += "\nnothing found\n";
  return text;
}

}  // namespace ascend_fuse
