// Sections about places: opportunities, sites, host work, precision, findings, what decides the migration.
#include <algorithm>
#include <array>
#include <map>
#include <string_view>

#include "absl/container/flat_hash_map.h"
#include "fmt/format.h"
#include "fmt/ranges.h"
#include "passes/analyze/analysis_details.h"
#include "passes/analyze/page_sections.h"
#include "passes/analyze/page_sketch.h"
#include "passes/analyze/page_table.h"
#include "passes/report/html_text.h"
#include "passes/report/number_text.h"
#include "passes/report/report_groups.h"

namespace ascend_fuse {
namespace {

PageCell Plain(const std::string& text) { return {HtmlText(text), std::nullopt}; }
PageCell Named(const std::string& name) { return {PageName(name), std::nullopt}; }
PageCell Ready(std::string html) { return {std::move(html), std::nullopt}; }

PageCell WithSource(const std::string& because, const std::string& code, const std::string& source) {
  return Ready(HtmlText(because) + HtmlCode(code) + HtmlSmall("source: ", source));
}

PageCell StateCell(const std::string& state, bool changed) {
  return Ready(fmt::format("<span class=\"state {}\">{}</span>", HtmlText(state), HtmlText(StateWord(state, changed))));
}

PageCell LevelCell(const std::string& level) {
  const double order = level == "high" ? 2 : level == "medium" ? 1 : 0;
  return {fmt::format("<span class=\"state {0}\">{0}</span>", HtmlText(level)), order};
}

// What is said of a site in words.
std::string SiteWords(const SiteRecord& site) {
  if (site.state == "left" && site.because.empty()) return "no reason was recorded";
  std::string text = HtmlText(site.because) + HtmlCode(site.code) + HtmlSmall("source: ", site.source);
  for (const std::string& note : NotesOf(site)) text += HtmlSmall("", note);
  return text;
}

void SiteRow(const SiteRecord& site, bool changed, PageTable* table) {
  std::vector<std::string> more;
  if (!site.module.empty() && !site.node.empty()) more.push_back("at " + site.node);
  if (!site.rule.empty()) more.push_back("rule " + site.rule);
  std::string place = PageName(PlaceOf(site));
  if (!more.empty())
    place +=
        fmt::format("<div class=\"small\">{}</div>", HtmlText(fmt::format("{}", fmt::join(more, ", ")), 2 * kLongestNameOfPage));
  table->Row({Ready(place), Plain(site.kind), StateCell(site.state, changed), Named(ShortOp(site.emitted_op)),
              Ready(SiteWords(site)), Ready(site.state == "left" ? PageWayOut("", site.code) : ""),
              Ready(PageNames(site.covers, "node"))});
}

}  // namespace

std::string PageOpportunities(const Analysis& analysis, const AnalysisPageOptions& options) {
  PageTable table("by what they win, as a share of the time of the model as it is", {{"where"},
                                                                                     {"kind"},
                                                                                     {"state"},
                                                                                     {"places", true},
                                                                                     {"wins", true},
                                                                                     {"kernels saved", true},
                                                                                     {"bytes saved", true},
                                                                                     {"becomes"},
                                                                                     {"because"},
                                                                                     {"way out"},
                                                                                     {"nodes"}});
  for (const OpportunityRecord& row : analysis.opportunities) {
    PageCell gain = PageShare(row.gain);
    if (row.at_most) gain.html += " at most";
    table.Row({Named(row.place), Plain(std::string(OpportunityName(row.kind))), StateCell(row.state, options.changed),
               PageCount(row.count), gain, PageCount(row.kernels_saved), PageBytes(row.bytes_saved),
               Named(ShortOp(row.emitted_op)), WithSource(row.because, row.code, row.source),
               Ready(PageWayOut(row.way, row.state == "left" ? row.code : "")), Ready(PageNames(row.nodes, "node"))});
  }
  return PageSection("opportunities", "What is fused, what is left, and what that wins", table.empty() ? "" : table.Html());
}

std::string PageSites(const Analysis& analysis, const AnalysisPageOptions& options) {
  const std::string fused = StateWord("fused", options.changed);
  PageTable kinds("constructs that were looked for",
                  {{"kind"}, {"found", true}, {fused, true}, {"by GE", true}, {"left", true}, {"commonest reason"}});
  for (const ReportKindCount& count : analysis.report.kinds) {
    if (count.found == 0) continue;
    kinds.Row({Plain(count.kind), PageCount(count.found), PageCount(count.fused), PageCount(count.by_ge), PageCount(count.left),
               Plain(count.commonest_reason)});
  }
  PageTable table("every site, those that are left first",
                  {{"where"}, {"kind"}, {"state"}, {"becomes"}, {"because"}, {"way out"}, {"nodes"}});
  for (const char* state : {"left", "fused", "by_ge"}) {
    for (const SiteRecord& site : analysis.report.sites) {
      if (site.state == state) SiteRow(site, options.changed, &table);
    }
  }
  std::string text = kinds.empty() ? "" : kinds.Html();
  if (!table.empty()) {
    text += fmt::format("<details class=\"fold\"><summary>every site ({})</summary>{}</details>\n", analysis.report.sites.size(),
                        table.Html());
  }
  return PageSection("sites", "Sites", text + PageSketches(analysis, options.changed));
}

std::string PageHost(const Analysis& analysis) {
  PageTable host("what the host or the AI CPU does, optimized",
                 {{"what"}, {"operator"}, {"nodes", true}, {"first node"}, {"because"}, {"way out"}});
  for (const HostRecord& row : analysis.host) {
    host.Row({Plain(row.code), Plain(row.op), PageCount(row.nodes), Named(row.node), Plain(row.because), Plain(row.way_out)});
  }
  PageTable support("where operators run",
                    {{"operator"}, {"graph"}, {"runs on"}, {"unit"}, {"dims"}, {"nodes", true}, {"because"}, {"way out"}});
  for (const SupportRecord& row : analysis.support) {
    support.Row({Named(ShortOp(row.op)), Ready(row.after ? "optimized" : "as it is"), Plain(row.engine), Plain(row.unit),
                 Plain(row.shapes), PageCount(row.nodes), WithSource(row.because, "", row.source), Plain(row.way_out)});
  }
  std::string text = host.empty() ? "<p>nothing waits for the host</p>\n" : host.Html();
  if (!support.empty())
    text += "<details class=\"fold\"><summary>where each operator runs</summary>" + support.Html() + "</details>\n";
  return PageSection("host", "Host work", text);
}

std::string PagePrecision(const Analysis& analysis) {
  PageTable types("types of what kernels compute, as it is", {{"type"}, {"values", true}, {"kernels", true}, {"bytes", true}});
  for (const TypeRecord& type : analysis.precision.types)
    types.Row({Plain(type.type), PageCount(type.values), PageCount(type.kernels), PageBytes(type.bytes)});
  PageTable risks("risks in half precision", {{"node"}, {"operator"}, {"because"}, {"way out"}});
  const auto add = [&](const FindingRecord& finding) {
    risks.Row({Named(finding.node), Plain(finding.op), WithSource(finding.because, finding.code, finding.source),
               Ready(PageWayOut(finding.way_out, finding.code))});
  };
  for (const FindingRecord& finding : analysis.precision.findings) add(finding);
  for (const FindingRecord& finding : analysis.report.findings) {
    if (finding.effect == "precision") add(finding);
  }
  std::string text = fmt::format("<p>{} Casts; the precision mode {} computes in {}{}</p>\n", analysis.precision.casts,
                                 HtmlText(analysis.report.target.precision_mode), HtmlText(analysis.precision_bytes),
                                 risks.empty() ? "; no constant was found that this loses" : "");
  if (!risks.empty()) text += risks.Html();
  if (!types.empty()) text += types.Html();
  return PageSection("precision", "Precision", text);
}

std::string PageFindings(const Analysis& analysis) {
  PageTable table("forms of the model as it is that ATC refuses, misreads or runs elsewhere",
                  {{"what"}, {"operator"}, {"nodes", true}, {"because"}, {"way out"}, {"mended by"}, {"where"}});
  for (const FindingGroup& group : GroupFindings(analysis.report)) {
    const FindingRecord& first = *group.findings[0];
    if (first.effect == "precision") continue;
    std::string fixed = HtmlText(group.fixed_by);
    if (group.fixed > 0 && group.fixed < group.findings.size()) fixed += fmt::format(" ({} of them)", group.fixed);
    table.Row({Plain(group.heading), Named(first.op), PageCount(static_cast<int64_t>(group.findings.size())),
               Ready(HtmlText(first.because) + HtmlCode(first.code) + HtmlSmall("ATC prints ", first.error) +
                     HtmlSmall("source: ", first.source)),
               Ready(PageWayOut(first.way_out, first.code)), Ready(fixed), Ready(PageNames(group.places, "place"))});
  }
  return PageSection("findings", "What ATC makes of it", table.empty() ? "" : table.Html());
}

std::string PageComplexity(const Analysis& analysis) {
  PageTable table("what decides how hard the migration is, riskiest first",
                  {{"what"}, {"level"}, {"count", true}, {"because"}, {"way out"}});
  for (const ReasonRecord& reason : analysis.complexity.reasons) {
    table.Row(
        {Plain(reason.code), LevelCell(reason.level), PageCount(reason.count), Plain(reason.because), Plain(reason.way_out)});
  }
  const std::string level = LevelCell(analysis.complexity.level).html;
  return PageSection("migration", "Migration", fmt::format("<p>{}</p>\n", level) + (table.empty() ? "" : table.Html()));
}

std::string PageRest(const Analysis& analysis) {
  const Report& report = analysis.report;
  PageTable misses("near misses: the rule that got farthest",
                   {{"rule"}, {"where"}, {"places", true}, {"nodes matched", true}, {"stopped by"}, {"expected"}, {"found"}});
  for (const auto& [miss, count] : GroupNearMisses(report, false)) {
    misses.Row({Ready(HtmlText(miss->rule) + HtmlSmall("", miss->source)),
                Ready(PageName(miss->node) + HtmlSmall("", miss->module)), PageCount(static_cast<int64_t>(count)),
                PageCount(miss->matched_nodes), Named(miss->stopped_by), Plain(miss->expected),
                Ready(HtmlText(miss->found) + HtmlCode(miss->code))});
  }
  PageTable gains("what is known of the speed of nodes that are emitted", {{"node"}, {"evidence"}, {"because"}});
  for (const GainRecord& gain : report.gains)
    gains.Row({Named(gain.node), Plain(gain.evidence), WithSource(gain.because, "", gain.source)});
  PageTable assumptions("assumptions: --strict refuses instead, --dim decides those about dims",
                        {{"assumption"}, {"sites", true}});
  for (const auto& [sentence, count] : GroupAssumptions(report))
    assumptions.Row({Plain(sentence), PageCount(static_cast<int64_t>(count))});
  PageTable contradictions("contradictions: the computed shape was believed", {{"value"}, {"declared"}, {"computed"}, {"at"}});
  for (const ContradictionRecord& c : report.contradictions)
    contradictions.Row({Named(c.value), Plain(c.declared), Plain(c.computed), Named(c.node)});
  std::string text;
  for (const PageTable* table : {&misses, &gains, &assumptions, &contradictions}) text += table->empty() ? "" : table->Html();
  if (!analysis.uncounted.empty()) {
    text += fmt::format("<p>operators without a row in the cost model: {}</p>\n",
                        HtmlText(fmt::format("{}", fmt::join(analysis.uncounted, ", "))));
  }
  return PageSection("rest", "Near misses, evidence, assumptions", text);
}

}  // namespace ascend_fuse
