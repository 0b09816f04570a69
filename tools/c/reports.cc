// The interface in C: reports in all their forms, and what the library knows about codes, chips and passes.
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_split.h"
#include "fmt/format.h"
#include "fmt/ranges.h"
#include "ir/status_macros.h"
#include "passes/analyze/page.h"
#include "passes/check/atc_check.h"
#include "passes/check/check.h"
#include "passes/optimize.h"
#include "passes/optimize_passes.h"
#include "passes/report/report_html.h"
#include "patterns/codes.h"
#include "patterns/target/target.h"
#include "tools/c/handles.h"

using namespace ascend_fuse;
using namespace ascend_fuse::c;

namespace ascend_fuse::c {
namespace {

absl::StatusOr<std::string> FormOf(const Report& report, std::string_view form) {
  if (form == "unwritten") return fmt::format("{}", fmt::join(WhyNotWritten(report), "\n"));
  std::string_view command = form;
  const auto begins_with = [&command](std::string_view prefix) {
    const bool begins = command.starts_with(prefix);
    if (begins) command.remove_prefix(prefix.size());
    return begins;
  };
  const bool verbose = begins_with("verbose-");
  const bool page = begins_with("page-");
  const bool part = begins_with("part-");
  if (command != "optimize" && command != "list" && command != "check") {
    return absl::InvalidArgumentError(fmt::format("a report has no form {}", form));
  }
  if (page || part) {
    const ReportHtmlOptions options = {.changed = command == "optimize", .of_check = command == "check"};
    return page ? ReportToHtml(report, options) : ReportToHtmlPart(report, options);
  }
  if (command == "check") return FindingsToText(report);
  ReportTextOptions options;
  options.verbose = verbose;
  options.changed = command == "optimize";
  return ReportToText(report, options);
}

// Of what an analysis says there is the text of one screen, the whole one, and the page.
absl::StatusOr<std::string> FormOf(const ascend_fuse_report& report, std::string_view form) {
  if (!report.analysis.has_value()) return FormOf(report.report, form);
  if (form == "analyze") return AnalysisToText(*report.analysis);
  if (form == "verbose-analyze") return AnalysisToText(*report.analysis, {.verbose = true});
  if (form == "page-analyze") return AnalysisToHtml(*report.analysis);
  return absl::InvalidArgumentError(fmt::format("an analysis has no form {}", form));
}

absl::StatusOr<std::string> Explained(const std::string& name) {
  const Code* code = FindCode(name);
  if (code != nullptr) return DescribeCode(*code);
  std::string message = name + " is not a code of a report";
  for (const std::string_view near : NearestCodes(name)) message += fmt::format("; did you mean {}?", near);
  return absl::NotFoundError(message);
}

absl::StatusOr<std::string> Described(std::string_view subject, const std::string& name, const OptimizeOptions& options) {
  if (subject == "code") return Explained(name);
  if (subject == "codes") return ListCodes();
  if (subject == "chips") return fmt::format("{}", fmt::join(Target::Chips(), "\n"));
  if (subject == "cann") return fmt::format("{}", fmt::join(Target::CannVersions(), "\n"));
  if (subject == "targets") return Target::DescribeAll();
  if (subject == "target") {
    ASSIGN_OR_RETURN(const auto target, TargetOf(options));
    return name.empty() ? target->Describe() : target->DescribeOperator(name);
  }
  if (subject != "stages") return absl::InvalidArgumentError(fmt::format("there is no subject {}", subject));
  std::vector<std::string> stages;
  for (const Pass& pass : OptimizePasses()) stages.push_back(pass.name);
  return fmt::format("{}", fmt::join(stages, "\n"));
}

}  // namespace
}  // namespace ascend_fuse::c

const char* ascend_fuse_report_json(const ascend_fuse_report* report) { return report == nullptr ? "" : report->json.c_str(); }

const char* ascend_fuse_report_text(const ascend_fuse_report* report) {
  if (report == nullptr) return "";
  Guarded([&]() -> absl::Status {
    if (!report->text.empty()) return absl::OkStatus();
    ASSIGN_OR_RETURN(report->text, FormOf(*report, report->command));
    return absl::OkStatus();
  });
  return report->text.c_str();
}

void ascend_fuse_report_free(ascend_fuse_report* report) { delete report; }

ascend_fuse_code ascend_fuse_report_read(const char* json, ascend_fuse_report** report) {
  return Guarded([&]() -> absl::Status {
    if (json == nullptr || report == nullptr) return NeedNotNull("json or report");
    *report = nullptr;
    ASSIGN_OR_RETURN(Report read, ReportFromJson(json));
    *report = new ascend_fuse_report{std::move(read), "optimize", json, "", "", std::nullopt};
    return absl::OkStatus();
  });
}

ascend_fuse_code ascend_fuse_report_as(ascend_fuse_report* report, const char* form, const char** text) {
  return Guarded([&]() -> absl::Status {
    if (report == nullptr || form == nullptr || text == nullptr) return NeedNotNull("report, form or text");
    ASSIGN_OR_RETURN(report->form, FormOf(*report, form));
    *text = report->form.c_str();
    return absl::OkStatus();
  });
}

ascend_fuse_code ascend_fuse_report_unmet(ascend_fuse_report* report, const char* kinds, const char** text) {
  return Guarded([&]() -> absl::Status {
    if (report == nullptr || kinds == nullptr || text == nullptr) return NeedNotNull("report, kinds or text");
    const std::vector<std::string> named = absl::StrSplit(kinds, ',', absl::SkipEmpty());
    RETURN_IF_ERROR(CheckRequirements(named));
    report->form = fmt::format("{}", fmt::join(UnmetRequirements(report->report, named), "\n"));
    *text = report->form.c_str();
    return absl::OkStatus();
  });
}

int ascend_fuse_is_fatal(int certain, const char* effect) {
  int fatal = 0;
  Guarded([&] {
    FindingRecord finding;
    finding.certain = certain != 0;
    finding.effect = effect == nullptr ? "" : effect;
    fatal = IsFatal(finding) ? 1 : 0;
    return absl::OkStatus();
  });
  return fatal;
}

ascend_fuse_code ascend_fuse_describe(const char* subject, const char* name, const ascend_fuse_options* options,
                                      const char** text) {
  return Guarded([&]() -> absl::Status {
    if (subject == nullptr || text == nullptr) return NeedNotNull("subject or text");
    static thread_local std::string described;
    ASSIGN_OR_RETURN(described,
                     Described(subject, name == nullptr ? "" : name, options == nullptr ? OptimizeOptions() : options->options));
    *text = described.c_str();
    return absl::OkStatus();
  });
}
