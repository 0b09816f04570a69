// The findings of `check` as text: by effect, those of one kind together.
#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "fmt/format.h"
#include "passes/report.h"

namespace ascend_fuse {
namespace {

constexpr std::pair<std::string_view, std::string_view> kEffects[] = {
    {"no_parser", "no parser: ATC refuses the model"},
    {"refused", "refused"},
    {"no_kernel", "parsed, and no kernel runs it"},
    {"misread", "read as something else, without a word"},
    {"loses_type", "an output gets another type"},
    {"precision", "constants that the precision mode does not hold"},
    {"ai_cpu", "runs on the AI CPU"},
    {"host", "runs on the host"},
};

const std::string& Place(const FindingRecord& finding) {
  return finding.module.empty() ? finding.node : finding.module;
}

std::string Group(std::vector<const FindingRecord*> same, size_t places) {
  const FindingRecord& first = *same.front();
  std::string text = fmt::format("  {} x {} [{}]\n", same.size(), first.because, first.code);
  std::vector<std::string> names;
  for (const FindingRecord* finding : same) {
    const std::string& place = Place(*finding);
    if (!place.empty() && std::find(names.begin(), names.end(), place) == names.end()) names.push_back(place);
  }
  std::string line;
  for (size_t i = 0; i < names.size() && i < places; ++i) line += (i == 0 ? "" : ", ") + names[i];
  if (names.size() > places) line += fmt::format(" and {} more", names.size() - places);
  if (!line.empty()) text += fmt::format("      at {}\n", line);
  size_t fixed = 0;
  std::string fixed_by;
  for (const FindingRecord* finding : same) {
    if (finding->fixed_by.empty()) continue;
    ++fixed;
    fixed_by = finding->fixed_by;
  }
  if (fixed > 0) {
    text += fmt::format("      fixed by: {}{}\n", fixed_by,
                        fixed == same.size() ? "" : fmt::format(" ({} of {})", fixed, same.size()));
  }
  if (!first.way_out.empty()) text += fmt::format("      way out: {}\n", first.way_out);
  if (!first.error.empty()) text += fmt::format("      ATC prints {}\n", first.error);
  if (!first.source.empty()) text += fmt::format("      source {}\n", first.source);
  return text;
}

}  // namespace

std::string FindingsToText(const Report& report, size_t places) {
  const ReportTarget& target = report.target;
  std::string text =
      fmt::format("{}\ntarget {}, CANN {}{}, opset {}, precision mode {}\n", report.model, target.chip, target.cann,
                  target.plugin ? " with our op plugin" : "", target.opset, target.precision_mode);
  for (const WarningRecord& warning : report.warnings) text += fmt::format("warning: {}\n", warning.message);
  for (const auto& [effect, title] : kEffects) {
    for (const bool certain : {true, false}) {
      std::map<std::tuple<std::string, std::string, std::string>, std::vector<const FindingRecord*>> groups;
      for (const FindingRecord& finding : report.findings) {
        if (finding.effect != effect || finding.certain != certain) continue;
        // Sentences about single constants differ in their numbers.
        groups[{finding.code, finding.op, finding.because}].push_back(&finding);
      }
      if (groups.empty()) continue;
      text += fmt::format("\n{}{}\n", certain ? "" : "possibly ", title);
      for (const auto& [key, same] : groups) text += Group(same, places);
    }
  }
  if (report.findings.empty()) text += "\nnothing found\n";
  return text;
}

}  // namespace ascend_fuse
