#include "passes/report/report_html.h"

#include <utility>

#include "fmt/format.h"
#include "fmt/ranges.h"
#include "passes/report/html_text.h"
#include "passes/report/report_groups.h"

namespace ascend_fuse {
namespace {

// In a notebook the page is not ours: nothing is said of elements outside of our own.
constexpr std::string_view kStyle = R"(<style>
.ascend-fuse { font: 14px/1.45 system-ui, sans-serif; max-width: 80em; }
.ascend-fuse h1 { font-size: 1.4em; margin: 0 0 .2em; overflow-wrap: anywhere; }
.ascend-fuse h2 { font-size: 1.1em; margin: 1.6em 0 .4em; }
.ascend-fuse p { margin: .2em 0; }
.ascend-fuse .table { overflow-x: auto; }
.ascend-fuse table { border-collapse: collapse; font-size: inherit; margin: 0; }
.ascend-fuse th, .ascend-fuse td { border-bottom: 1px solid #8884; padding: .3em .8em .3em 0; text-align: left; vertical-align: top; }
.ascend-fuse td { overflow-wrap: anywhere; min-width: 3em; }
.ascend-fuse th { white-space: nowrap; }
.ascend-fuse .number { font-variant-numeric: tabular-nums; }
.ascend-fuse .state { white-space: nowrap; }
.ascend-fuse .fused { border-left: .3em solid #2a9d5c; padding-left: .5em; }
.ascend-fuse .by_ge { border-left: .3em solid #888; padding-left: .5em; }
.ascend-fuse .left { border-left: .3em solid #d9822b; padding-left: .5em; }
.ascend-fuse summary { cursor: pointer; }
.ascend-fuse .small, .ascend-fuse code { font-size: .9em; }
.ascend-fuse .small { opacity: .75; }
.ascend-fuse ul { margin: .2em 0; padding-left: 1.4em; }
</style>
)";

// "3 x ", or nothing for one.
std::string Times(size_t count) { return count > 1 ? fmt::format("{} x ", count) : ""; }

class Html {
 public:
  Html(const Report& report, const ReportHtmlOptions& options) : report_(report), options_(options) {}

  std::string Run() {
    text_ = "<div class=\"ascend-fuse\">\n";
    text_ += kStyle;
    Header();
    if (!options_.of_check) Kinds();
    Findings();
    if (!options_.of_check) {
      Sites();
      Assumptions();
      Gains();
      NearMisses();
    }
    Contradictions();
    text_ += "</div>\n";
    return std::move(text_);
  }

 private:
  void Heading(std::string_view words) { text_ += fmt::format("<h2>{}</h2>\n", HtmlText(words)); }

  void OpenTable(const std::vector<std::string_view>& columns) {
    text_ += "<div class=\"table\"><table>\n<tr>";
    for (const std::string_view column : columns) text_ += fmt::format("<th scope=\"col\">{}</th>", column);
    text_ += "</tr>\n";
  }

  void CloseTable() { text_ += "</table></div>\n"; }

  // Cells are HTML already.
  void Row(const std::vector<std::string>& cells) {
    text_ += fmt::format("<tr><td>{}</td></tr>\n", fmt::join(cells, "</td><td>"));
  }

  void Header() {
    const ReportTarget& target = report_.target;
    text_ += fmt::format("<h1>{}</h1>\n", HtmlText(report_.model.empty() ? "model" : report_.model));
    std::vector<std::string> words = {fmt::format("target {}", target.chip),
                                      fmt::format("CANN {}{}", target.cann, target.plugin ? " with our op plugin" : "")};
    if (!target.style.empty()) words.push_back("style " + target.style);
    if (target.opset > 0) words.push_back(fmt::format("opset {}", target.opset));
    if (!target.precision_mode.empty()) words.push_back("precision mode " + target.precision_mode);
    if (!target.dims.empty()) words.push_back(fmt::format("dims {}", fmt::join(target.dims, " ")));
    text_ += fmt::format("<p>{}</p>\n", HtmlText(fmt::format("{}", fmt::join(words, ", "))));
    if (!options_.of_check) {
      text_ += options_.changed ? fmt::format("<p>nodes {} &rarr; {}</p>\n", report_.nodes_before, report_.nodes_after)
                                : fmt::format("<p>nodes {} (nothing was changed)</p>\n", report_.nodes_before);
      if (const std::string weights = WeightsInWords(report_); !weights.empty()) text_ += fmt::format("<p>{}</p>\n", weights);
      if (const std::string tidied = TidiedInWords(report_); !tidied.empty())
        text_ += fmt::format("<p>tidied: {}</p>\n", HtmlText(tidied));
    }
    for (const WarningRecord& warning : report_.warnings) {
      text_ += fmt::format("<p><b>warning</b> {}{}</p>\n", HtmlText(warning.message), HtmlCode(warning.code));
    }
  }

  void Kinds() {
    std::vector<std::string> absent;
    Heading("constructs");
    OpenTable({"kind", "found", options_.changed ? "fused" : "can be", "by GE", "left", "commonest reason"});
    for (const ReportKindCount& count : report_.kinds) {
      if (count.found == 0) {
        absent.push_back(count.kind);
        continue;
      }
      text_ += fmt::format("<tr><td>{}</td>", HtmlText(count.kind));
      for (const int64_t number : {count.found, count.fused, count.by_ge, count.left}) {
        text_ += fmt::format("<td class=\"number\">{}</td>", number);
      }
      text_ += fmt::format("<td>{}</td></tr>\n", HtmlText(count.commonest_reason));
    }
    CloseTable();
    if (!absent.empty())
      text_ += fmt::format("<p class=\"small\">none found: {}</p>\n", HtmlText(fmt::format("{}", fmt::join(absent, ", "))));
  }

  static std::string Detail(const SiteRecord& site) {
    std::string text = HtmlText(PlaceOf(site));
    std::vector<std::string> more;
    if (!site.module.empty() && !site.node.empty()) more.push_back("at " + site.node);
    if (!site.rule.empty()) more.push_back("rule " + site.rule);
    if (!site.covers.empty())
      more.push_back(fmt::format("covers {} node{}", site.covers.size(), site.covers.size() == 1 ? "" : "s"));
    if (!site.pair.empty()) more.push_back("pair of " + site.pair);
    return fmt::format("<li>{}{}</li>", text, HtmlSmall("", fmt::format("{}", fmt::join(more, ", "))));
  }

  void Sites() {
    for (const std::string& kind : KindsOfSites(report_)) {
      Heading(kind);
      OpenTable({"state", "node", "where", "why"});
      const std::vector<SiteGroup> groups = GroupSites(report_, kind, false);
      size_t told = 0;  // the group at which a reason that is shown goes no further
      for (size_t i = 0; i < groups.size(); ++i) {
        const SiteRecord& site = *groups[i][0];
        std::string where = fmt::format("<details><summary>{}</summary><ul>", HtmlText(PlaceOf(groups[i])));
        for (const SiteRecord* one : groups[i]) where += Detail(*one);
        where += "</ul></details>";
        for (const std::string& note : NotesOf(site)) where += HtmlSmall("", note);
        text_ += fmt::format("<tr><td class=\"state {}\">{}{}</td><td>{}</td><td>{}</td>", HtmlText(site.state),
                             Times(groups[i].size()), StateWord(site.state, options_.changed), HtmlText(ShortOp(site.emitted_op)),
                             where);
        if (i == told) {
          for (++told; told < groups.size() && SameReason(groups[i], groups[told]);) ++told;
          const bool silent = site.state == "left" && site.because.empty();
          text_ += fmt::format("<td rowspan=\"{}\">{}</td>", told - i,
                               silent ? "no reason was recorded"
                                      : HtmlText(site.because) + HtmlCode(site.code) + HtmlSmall("source: ", site.source));
        }
        text_ += "</tr>\n";
      }
      CloseTable();
    }
  }

  void Assumptions() {
    const auto sentences = GroupAssumptions(report_);
    if (sentences.empty()) return;
    Heading("assumptions (--strict refuses instead; --dim decides those about dims)");
    OpenTable({"sites", "what is taken for granted"});
    for (const auto& [sentence, count] : sentences) Row({fmt::format("{}", count), HtmlText(sentence)});
    CloseTable();
  }

  void Gains() {
    if (report_.gains.empty()) return;
    Heading("what is known of the speed of these nodes");
    OpenTable({"node", "evidence", "because"});
    for (const GainRecord& gain : report_.gains) {
      Row({HtmlText(gain.node), HtmlText(gain.evidence), HtmlText(gain.because) + HtmlSmall("source: ", gain.source)});
    }
    CloseTable();
  }

  void NearMisses() {
    const auto groups = GroupNearMisses(report_, false);
    if (groups.empty()) return;
    Heading("near misses");
    OpenTable({"rule", "where", "matched", "stopped by", "expected", "found"});
    for (const auto& [miss, count] : groups) {
      const std::string more = count > 1 ? fmt::format(" and {} more like it", count - 1) : "";
      Row({HtmlText(miss->rule) + HtmlSmall("", miss->source), HtmlText(miss->node) + more + HtmlSmall("", miss->module),
           fmt::format("{}", miss->matched_nodes), HtmlText(miss->stopped_by), HtmlText(miss->expected),
           HtmlText(miss->found) + HtmlCode(miss->code)});
    }
    CloseTable();
  }

  void Findings() {
    if (options_.of_check && report_.findings.empty()) text_ += "<p>nothing found</p>\n";
    std::string heading;
    for (const FindingGroup& group : GroupFindings(report_)) {
      if (group.heading != heading) {
        if (!heading.empty()) CloseTable();
        Heading(group.heading);
        OpenTable({"operator", "because", "where", "way out"});
        heading = group.heading;
      }
      const FindingRecord& first = *group.findings[0];
      std::string where =
          fmt::format("<details><summary>{} place{}</summary><ul>", group.findings.size(), group.findings.size() == 1 ? "" : "s");
      for (const std::string& place : group.places) where += fmt::format("<li>{}</li>", HtmlText(place));
      where += "</ul></details>";
      std::string out = HtmlText(first.way_out);
      if (group.fixed > 0) {
        const bool all = group.fixed == group.findings.size();
        out +=
            HtmlSmall("fixed by: ", group.fixed_by + (all ? "" : fmt::format(" ({} of {})", group.fixed, group.findings.size())));
      }
      Row({HtmlText(first.op),
           HtmlText(first.because) + HtmlCode(first.code) + HtmlSmall("ATC prints ", first.error) +
               HtmlSmall("source: ", first.source),
           where, out});
    }
    if (!heading.empty()) CloseTable();
  }

  void Contradictions() {
    if (report_.contradictions.empty()) return;
    Heading("contradictions (the computed shape was believed)");
    OpenTable({"value", "declared", "computed", "at"});
    for (const ContradictionRecord& c : report_.contradictions)
      Row({HtmlText(c.value), HtmlText(c.declared), HtmlText(c.computed), HtmlText(c.node)});
    CloseTable();
  }

  const Report& report_;
  const ReportHtmlOptions& options_;
  std::string text_;
};

}  // namespace

std::string ReportToHtmlPart(const Report& report, const ReportHtmlOptions& options) { return Html(report, options).Run(); }

std::string ReportToHtml(const Report& report, const ReportHtmlOptions& options) {
  return fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<meta name=\"color-scheme\" content=\"light dark\">\n<title>{} for {}</title>\n</head>\n<body>\n{}</body>\n</html>\n",
      HtmlText(report.model.empty() ? "model" : report.model), HtmlText(report.target.chip), ReportToHtmlPart(report, options));
}

}  // namespace ascend_fuse
