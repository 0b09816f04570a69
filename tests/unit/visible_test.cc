// What is shown of names out of files: nothing that a terminal obeys, that turns text around or that is not seen.
#include "ir/text/visible.h"

#include "gtest/gtest.h"
#include "passes/report/report.h"
#include "passes/report/report_html.h"

namespace ascend_fuse {
namespace {

TEST(Visible, WritesOutWhatWouldNotBeSeen) {
  EXPECT_EQ(Visible("layers.0/\u5c42 \u00e9 \U0001F600"), "layers.0/\u5c42 \u00e9 \U0001F600");
  EXPECT_EQ(Visible("\x1b[2J\r\n\t\x7f"), "\\x1b[2J\\x0d\\x0a\\x09\\x7f");
  EXPECT_EQ(Visible("a\nb\tc\r", true), "a\nb\tc\\x0d");
  EXPECT_EQ(Visible("\u202egnp.exe"), "\\u{202e}gnp.exe");
  EXPECT_EQ(Visible("\u009b2J\u2066\u200b\ufeff"), "\\u{9b}2J\\u{2066}\\u{200b}\\u{feff}");  // U+009B begins a control sequence
  EXPECT_EQ(Visible("\xff\xc3(\xed\xa0\x80"), "\\xff\\xc3(\\xed\\xa0\\x80");
  EXPECT_EQ(Visible("\xe2\x80"), "\\xe2\\x80");
}

TEST(Visible, EscapesInJson) {
  EXPECT_EQ(VisibleJson("{\n \"a\": \"\u5c42\u2066\U000E0041\"}\n"), "{\n \"a\": \"\u5c42\\u2066\\udb40\\udc41\"}\n");
}

TEST(Visible, ShowsLongNamesInPart) {
  const std::string shown = Shown(std::string(100'000'000, 'n'));
  EXPECT_LT(shown.size(), 2100u);
  EXPECT_NE(shown.find("... (99998000 bytes more)"), std::string::npos);
  EXPECT_EQ(Shown("short"), "short");
  EXPECT_EQ(Visible(Shown(std::string(1999, 'n') + "\u5c42\u5c42")).find("\\x"), std::string::npos);
}

TEST(Visible, ReportsShowNothingElse) {
  const std::string name = "</td><script>x\n\u202e\x1b[2J\nwrote forged.onnx";
  Report report;
  report.model = name;
  report.Warn({"code", "a warning of " + name});
  SiteRecord site;
  site.kind = "attention";
  site.state = "left";
  site.module = site.node = site.because = name;
  report.sites.push_back(site);
  report.contradictions.push_back({name, "a", "b", name});
  FindingRecord finding;
  finding.effect = "refused";
  finding.node = finding.because = name;
  report.findings.push_back(finding);
  report.Summarize();
  const std::string json = ReportToJson(report);
  const std::string page = ReportToHtml(report);
  for (const std::string& text : {ReportToText(report, {.verbose = true}), FindingsToText(report), page, json}) {
    EXPECT_EQ(Visible(text, true), text);
    EXPECT_EQ(text.find("\nwrote forged"), std::string::npos);
  }
  EXPECT_EQ(page.find("<script"), std::string::npos);
  const auto read = ReportFromJson(json);  // a program is given the name as it is
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->sites.at(0).node, name);
}

}  // namespace
}  // namespace ascend_fuse
