// libFuzzer: any JSON either gives a sentence, or a report that is written and read as the same, and whose text and page hold
// nothing that could deceive.
#include <cstdint>
#include <string>

#include "ir/text/visible.h"
#include "passes/report/report.h"
#include "passes/report/report_html.h"
#include "tests/fuzz/fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace ascend_fuse;  // NOLINT
  const google::protobuf::LogSilencer silence;
  const auto report = ReportFromJson(std::string(reinterpret_cast<const char*>(data), size));
  if (!report.ok()) {
    fuzz::Require(!report.status().message().empty(), "a refusal has a sentence");
    return 0;
  }
  const std::string json = ReportToJson(*report);
  const auto again = ReportFromJson(json);
  fuzz::Require(again.ok() && ReportToJson(*again) == json, "the report is written and read as the same");
  const std::string text = ReportToText(*report, {.verbose = true}) + FindingsToText(*report);
  fuzz::Require(Visible(text, true) == text, "what the text shows is visible");
  const std::string page = ReportToHtml(*report);
  fuzz::Require(Visible(page, true) == page && page.find("<script") == std::string::npos, "and so is the page");
  return 0;
}
