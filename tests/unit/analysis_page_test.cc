// The page of an analysis: names out of a model have no meaning in it, and it stays of a size that a browser opens.
#include "gtest/gtest.h"
#include "ir/text/visible.h"
#include "passes/analyze/page.h"

namespace ascend_fuse {
namespace {

Analysis AnalysisOf(const std::string& name) {
  Analysis analysis;
  analysis.report.model = name;
  analysis.report.Warn({"code", name});
  SiteRecord site;
  site.kind = "attention";
  site.state = "left";
  site.module = site.node = site.because = site.source = site.rule = name;
  site.covers = {name, name};
  site.assumptions = {name};
  analysis.report.sites.push_back(site);
  FindingRecord finding;
  finding.effect = "refused";
  finding.node = finding.because = finding.op = finding.way_out = name;
  analysis.report.findings.push_back(finding);
  finding.effect = "precision";
  analysis.report.findings.push_back(finding);
  analysis.report.contradictions.push_back({name, "a", "b", name});
  NearMissRecord miss;
  miss.rule = miss.node = miss.module = miss.stopped_by = miss.found = miss.expected = name;
  analysis.report.near_misses.push_back(miss);
  analysis.report.Summarize();
  analysis.dims.push_back({name, 1, "default"});
  ShareRecord share;
  share.name = share.kind = name;
  share.share_after = 0.5;
  analysis.operators.push_back(share);
  analysis.modules.push_back(share);
  analysis.heaviest.push_back({name, name, name, {name, 1}, {name, 1}, 0.5, "flops"});
  SupportRecord support;
  support.op = support.because = support.way_out = name;
  analysis.support.push_back(support);
  OpportunityRecord opportunity;
  opportunity.kind = "glu";
  opportunity.state = "left";
  opportunity.place = opportunity.because = opportunity.way = opportunity.emitted_op = name;
  opportunity.nodes = {name};
  analysis.opportunities.push_back(opportunity);
  analysis.memory.by_module.push_back({name, 1, 4});
  analysis.memory.before = {{name, 8}, name, {{0, name, 4}, {3, name, 8}}};
  analysis.host.push_back({"ai-cpu", name, 1, name, name, name, name});
  analysis.complexity.reasons.push_back({"high", "code", 1, name, name});
  analysis.next.push_back({name, name, name});
  analysis.uncounted.push_back(name);
  analysis.sketches.push_back({"glu", "fused", name, name, 1, {{name, {}}, {"Mul", {0, 0}}}, {{"npu." + name, {}}}});
  return analysis;
}

// How often a text is there.
size_t Count(const std::string& text, const std::string& what) {
  size_t count = 0;
  for (size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++count;
  return count;
}

TEST(AnalysisPage, NamesHaveNoMeaning) {
  const std::string plain = AnalysisToHtml(AnalysisOf("name"));
  for (const char* name :
       {"</td></script><script>x()</script>", "\" onfocus=\"x()\" autofocus=\"", "<img src=x onerror=x()>", "\x1b[2J\u202e"}) {
    const std::string page = AnalysisToHtml(AnalysisOf(name));
    EXPECT_EQ(Visible(page, true), page);
    for (const char* what : {"<script", "<img", "</td", "</th", "</script", "=\"", "<td", "<tr"})
      EXPECT_EQ(Count(page, what), Count(plain, what)) << what << name;
  }
}

TEST(AnalysisPage, LongNamesAreCut) {
  const std::string page = AnalysisToHtml(AnalysisOf(std::string(1'000'000, 'n')));
  EXPECT_LT(page.size(), 200'000u);
  EXPECT_NE(page.find("bytes more)"), std::string::npos);
}

TEST(AnalysisPage, AnEmptyAnalysisHasAPage) {
  const std::string page = AnalysisToHtml(Analysis());
  EXPECT_NE(page.find("no kernel"), std::string::npos);
  EXPECT_EQ(page.find("nan"), std::string::npos);
}

TEST(AnalysisPage, ManyRowsAreCounted) {
  Analysis analysis = AnalysisOf("name");
  analysis.report.sites.resize(5000, analysis.report.sites[0]);
  const std::string page = AnalysisToHtml(analysis);
  EXPECT_NE(page.find("and 4000 more rows, which --json has"), std::string::npos);
}

TEST(AnalysisPage, SaysWhetherTheModelWasWritten) {
  Analysis analysis = AnalysisOf("name");
  analysis.report.sites[0].state = "fused";
  EXPECT_NE(AnalysisToHtml(analysis).find("can be fused"), std::string::npos);
  EXPECT_EQ(AnalysisToHtml(analysis, {.changed = true}).find("can be fused"), std::string::npos);
}

}  // namespace
}  // namespace ascend_fuse
