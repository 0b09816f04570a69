// The catalogue of codes: every entry is complete, names that are misspelt find the right one, docs/codes.md is what the
// catalogue says, and refusals carry their code to the report.
#include "patterns/codes.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "gtest/gtest.h"
#include "passes/report/report.h"
#include "patterns/terms/refusal.h"
#include "tests/support/source_dir.h"

namespace ascend_fuse {
namespace {

using Names = std::vector<std::string_view>;

bool Holds(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

TEST(CodesTest, EveryCodeIsExplainedOnce) {
  std::set<std::string> names;
  for (const CodeGroup& group : CodeGroups()) {
    EXPECT_FALSE(group.title.empty());
    EXPECT_TRUE(group.introduction.ends_with(".")) << group.title;
    EXPECT_FALSE(group.codes.empty()) << group.title;
    for (const Code& code : group.codes) {
      EXPECT_TRUE(names.insert(code.name).second) << code.name << " stands twice";
      EXPECT_EQ(code.name.find_first_not_of("abcdefghijklmnopqrstuvwxyz-"), std::string::npos) << code.name;
      EXPECT_FALSE(code.title.empty() || code.title.ends_with(".")) << code.name;
      EXPECT_TRUE(code.explanation.ends_with(".")) << code.name;
      EXPECT_FALSE(code.example.empty()) << code.name;
      EXPECT_TRUE(code.way_out.ends_with(".")) << code.name;
      EXPECT_EQ(FindCode(code.name), &code);
    }
  }
  EXPECT_GT(names.size(), 60u);
  EXPECT_EQ(FindCode("mask"), nullptr);
  EXPECT_EQ(FindCode(""), nullptr);
}

TEST(CodesTest, ANameThatIsMisspeltFindsTheRightOne) {
  EXPECT_EQ(NearestCodes("mask-per-heads"), (Names{"mask-per-head"}));
  EXPECT_EQ(NearestCodes("mask_per_head"), (Names{"mask-per-head"}));
  EXPECT_EQ(NearestCodes("parser"), (Names{"by-parser", "no-parser"}));
  EXPECT_EQ(NearestCodes("mask").size(), 3u);
  EXPECT_EQ(NearestCodes("zzzzzz"), Names());
  EXPECT_EQ(NearestCodes(""), Names());
  EXPECT_EQ(NearestCodes(std::string(10000, 'a')), Names());
}

TEST(CodesTest, ARefusalCarriesItsCode) {
  EXPECT_EQ(CodeOf(Refuse("no")), "");
  EXPECT_EQ(CodeOf(Refuse("no", "needs-dim")), "needs-dim");
  EXPECT_FALSE(IsFinalWord(Refuse("no", "needs-dim")));
  EXPECT_EQ(CodeOf(FinalWord("never", "no-epsilon")), "no-epsilon");
  EXPECT_TRUE(IsFinalWord(FinalWord("never", "no-epsilon")));
  EXPECT_EQ(CodeOf(absl::OkStatus()), "");
}

TEST(CodesTest, TheTextReportNamesCodesWhereItIsAskedForMore) {
  Report report;
  SiteRecord& site = report.sites.emplace_back();
  site.kind = "attention";
  site.state = "left";
  site.code = "mask-per-head";
  site.because = "the mask m differs from head to head";
  NearMissRecord& miss = report.near_misses.emplace_back();
  miss.rule = "sdpa";
  miss.code = "form-differs";
  miss.expected = "MatMul";
  miss.found = "Add";
  report.Warn({"no-parser", "1 Loop: no parser"});
  report.Summarize();
  ReportTextOptions options;
  EXPECT_FALSE(Holds(ReportToText(report, options), "[mask-per-head]"));
  options.verbose = true;
  const std::string text = ReportToText(report, options);
  EXPECT_TRUE(Holds(text, "because the mask m differs from head to head [mask-per-head]\n")) << text;
  EXPECT_TRUE(Holds(text, "found Add [form-differs]\n")) << text;
  EXPECT_TRUE(Holds(text, "warning: 1 Loop: no parser [no-parser]\n")) << text;
}

TEST(CodesTest, TheDocumentIsCurrent) {
  const std::filesystem::path path = testing::SourceDir() / "docs/codes.md";
  if (std::getenv("BLESS") != nullptr) std::ofstream(path, std::ios::binary) << CodesDocument();
  std::stringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  EXPECT_EQ(text.str(), CodesDocument()) << "BLESS=1 writes it";
}

}  // namespace
}  // namespace ascend_fuse
