// The first screen of the page answers: what is slow, what is left and why, what is to be done next.
#include "passes/analyze/page.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_split.h"
#include "fmt/format.h"
#include "fmt/ranges.h"
#include "passes/analyze/analysis_details.h"
#include "passes/analyze/page_look.h"
#include "passes/analyze/page_sections.h"
#include "passes/analyze/page_table.h"
#include "passes/report/html_text.h"
#include "passes/report/number_text.h"
#include "passes/report/report_groups.h"

namespace ascend_fuse {
namespace {

constexpr size_t kFewOperatorsOfPage = 8;
constexpr size_t kFewSitesOfPage = 5;
constexpr size_t kDimsOfPage = 12;

constexpr std::string_view kArrow = " &rarr; ";

std::string PageTitle(const Analysis& analysis) { return analysis.report.model.empty() ? "model" : analysis.report.model; }

std::string PageHeader(const Analysis& analysis) {
  const ReportTarget& target = analysis.report.target;
  std::string text = fmt::format("<header>\n<h1>{}</h1>\n", HtmlText(PageTitle(analysis)));
  text += fmt::format("<p>for {}, CANN {}{}, precision mode {}</p>\n", HtmlText(target.chip), HtmlText(target.cann),
                      target.plugin ? " with our op plugin" : "", HtmlText(target.precision_mode));
  std::vector<std::string> given, taken;
  for (const BoundDim& dim : analysis.dims) {
    (dim.origin == "dim" ? given : taken).push_back(fmt::format("{}={}", PageName(dim.name), dim.value));
  }
  if (taken.size() > kDimsOfPage) {
    const size_t more = taken.size() - kDimsOfPage;
    taken.resize(kDimsOfPage);
    taken.push_back(fmt::format("and {} more", more));
  }
  text += "<p class=\"small\">";
  if (given.empty() && taken.empty()) text += "every dim is a number";
  if (!given.empty()) text += fmt::format("numbers for {}", fmt::join(given, " "));
  if (!taken.empty())
    text +=
        fmt::format("{} {} (taken; --dim NAME=N sets another)", given.empty() ? "numbers for" : " and", fmt::join(taken, " "));
  text += "</p>\n";
  for (const WarningRecord& warning : analysis.report.warnings) {
    text += fmt::format("<p class=\"small\"><b>note</b> {}{}</p>\n", HtmlText(warning.message), HtmlCode(warning.code));
  }
  return text + "</header>\n";
}

std::string PageCard(std::string_view name, const std::string& big, const std::string& small, std::string_view look = "") {
  return fmt::format("<div><dt>{}</dt><dd><span class=\"big {}\">{}</span> <span class=\"small\">{}</span></dd></div>\n", name,
                     look, big, small);
}

std::string PageFits(const MemoryRecord& memory) {
  std::vector<std::string> words;
  for (const MemoryFit& fit : memory.fits)
    words.push_back(fmt::format("{} {}", ShortBytes(fit.bytes), fit.fits ? "fits" : "is too small"));
  return fmt::format("weights {}, activations {}{}{}; {}", ShortBytes(memory.weights), ShortBytes(memory.before.peak.value),
                     kArrow, ShortBytes(memory.after.peak.value), fmt::join(words, ", "));
}

std::string PageCards(const Analysis& analysis, bool changed) {
  const SideRecord& before = analysis.before;
  const SideRecord& after = analysis.after;
  const RatioRecord& ratio = analysis.ratio;
  std::string text = "<dl class=\"cards\">\n";
  text += PageCard(
      "predicted speed", fmt::format("{:.2f} times", ratio.middle),
      fmt::format("{:.2f} to {:.2f} times as fast, {} shapes. <b>A cost model says so, no measurement</b> (docs/costs.md)",
                  ratio.low, ratio.high, HtmlText(ratio.launch)));
  text += PageCard("kernels", fmt::format("{}{}{}", before.kernels, kArrow, after.kernels),
                   fmt::format("on the AI Core; AI CPU {}{}{}, host {}{}{}", before.ai_cpu, kArrow, after.ai_cpu, before.host,
                               kArrow, after.host));
  text += PageCard(
      "nodes", fmt::format("{}{}{}", before.nodes, kArrow, after.nodes),
      after.unknown > 0 ? fmt::format("as it is, optimized; shapes of {} are not known", after.unknown) : "as it is, optimized");
  text += PageCard("bytes moved", fmt::format("{}{}{}", ShortBytes(before.bytes.value), kArrow, ShortBytes(after.bytes.value)),
                   fmt::format("FLOPs {}{}{}", ShortNumber(before.flops.value), kArrow, ShortNumber(after.flops.value)));
  int64_t fused = 0, by_ge = 0, left = 0;
  for (const SiteRecord& site : analysis.report.sites) ++(site.state == "fused" ? fused : site.state == "left" ? left : by_ge);
  text += PageCard("sites left", fmt::format("{} of {}", left, fused + by_ge + left),
                   fmt::format("{} {}, {} by GE", fused, StateWord("fused", changed), by_ge), left > 0 ? "left" : "fused");
  const bool small =
      std::any_of(analysis.memory.fits.begin(), analysis.memory.fits.end(), [](const auto& fit) { return !fit.fits; });
  text += PageCard("memory needed", ShortBytes(analysis.memory.needed), PageFits(analysis.memory), small ? "left" : "");
  const ComplexityRecord& complexity = analysis.complexity;
  text += PageCard("migration", HtmlText(complexity.level),
                   complexity.reasons.empty() ? "nothing stands against it"
                                              : fmt::format("{} x {}: <a href=\"#migration\">why</a>",
                                                            complexity.reasons[0].count, HtmlText(complexity.reasons[0].code)),
                   HtmlText(complexity.level));
  return text + "</dl>\n";
}

std::string PageSlow(const Analysis& analysis) {
  std::vector<const ShareRecord*> rows;
  for (const ShareRecord& op : analysis.operators) {
    if (op.share_after > 0) rows.push_back(&op);
  }
  std::stable_sort(rows.begin(), rows.end(), [](const auto* a, const auto* b) { return a->share_after > b->share_after; });
  std::string text = "<section class=\"full\"><h3>What takes the time, optimized</h3>\n<ul>\n";
  for (size_t i = 0; i < std::min(rows.size(), kFewOperatorsOfPage); ++i) {
    const ShareRecord& op = *rows[i];
    text += fmt::format(
        "<li><span class=\"row\"><span>{} <small>{}, {} kernel{}</small></span><span>{}</span></span>"
        "{}</li>\n",
        PageName(ShortOp(op.name)), HtmlText(op.kind), op.kernels_after, op.kernels_after == 1 ? "" : "s",
        HtmlText(Percent(op.share_after)), PageBar(op.share_after));
  }
  if (rows.empty()) text += "<li>no kernel</li>\n";
  return text +
         "</ul><p class=\"small\">of the time that the cost model gives, of which a full bar is all; <a href=\"#operators\">all "
         "operators</a>, <a "
         "href=\"#modules\">modules</a></p></section>\n";
}

std::string PageLeft(const Analysis& analysis) {
  std::string text = "<section><h3>What is left, and why</h3>\n<ul>\n";
  size_t rows = 0;
  for (const OpportunityRecord& opportunity : analysis.opportunities) {
    if (opportunity.state != "left" || ++rows > kFewSitesOfPage) continue;
    text += fmt::format("<li><b class=\"left\">{} x {}</b> {} <small>{}{} of the time</small><br>{}", opportunity.count,
                        HtmlText(OpportunityName(opportunity.kind)), PageName(opportunity.place),
                        opportunity.at_most ? "at most " : "", HtmlText(Percent(opportunity.gain)),
                        HtmlText(opportunity.because, 300));
    const std::string way = PageWayOut(opportunity.way, opportunity.code);
    text += way.empty() ? "</li>\n" : fmt::format("<br><small>way out: {}</small></li>\n", way);
  }
  if (rows == 0) text += "<li>nothing</li>\n";
  text += "</ul>";
  if (rows > kFewSitesOfPage) text += fmt::format("<p class=\"small\">and {} more</p>", rows - kFewSitesOfPage);
  return text +
         "<p class=\"small\"><a href=\"#opportunities\">what is fused, and what that wins</a>, <a href=\"#sites\">every "
         "site</a></p></section>\n";
}

// A line breaks between words of a command only.
std::string PageCommand(const std::string& command) {
  std::string text = "<code class=\"command\">";
  const std::vector<std::string> words = absl::StrSplit(command, ' ');
  for (const std::string& word : words) text += fmt::format("<span>{}</span> ", HtmlText(word));
  return text + "</code>";
}

std::string PageNext(const Analysis& analysis) {
  std::string text = "<section><h3>What to do next</h3>\n<ol>\n";
  for (const StepRecord& step : analysis.next) {
    text += fmt::format("<li><b>{}</b>", HtmlText(step.action, 300));
    if (!step.because.empty()) text += fmt::format(" <small>{}</small>", HtmlText(step.because, 300));
    if (!step.command.empty()) text += PageCommand(step.command);
    text += "</li>\n";
  }
  return text + "</ol></section>\n";
}

// The script shows what needs it.
constexpr std::string_view kPageBar =
    "<nav class=\"bar-of-page\" aria-label=\"this page\"><div>\n<label hidden data-script>search all tables <input id=\"search\" "
    "type=\"search\" autocomplete=\"off\"></label>\n<button hidden data-script id=\"unfold\" type=\"button\">unfold "
    "all</button>\n"
    "<span id=\"told\" role=\"status\" class=\"small\"></span>\n<a href=\"#operators\">operators</a> <a "
    "href=\"#modules\">modules</a> "
    "<a href=\"#opportunities\">opportunities</a> <a href=\"#sites\">sites</a> <a href=\"#memory\">memory</a> <a "
    "href=\"#migration\">migration</a>\n</div></nav>\n";

}  // namespace

std::string AnalysisToHtml(const Analysis& analysis, const AnalysisPageOptions& options) {
  std::string text = fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; script-src "
      "'sha256-{}'; "
      "base-uri 'none'; form-action 'none'\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<meta name=\"color-scheme\" content=\"light dark\">\n<title>{} for {}</title>\n<style>{}</style>\n</head>\n<body>\n"
      "<a class=\"skip\" href=\"#story\">to the numbers</a>\n",
      PageScriptHash(), HtmlText(PageTitle(analysis)), HtmlText(analysis.report.target.chip), PageStyle());
  text += PageHeader(analysis);
  text += kPageBar;
  text += "<main>\n<section id=\"story\" aria-label=\"in numbers\">\n";
  text += PageCards(analysis, options.changed);
  text += "<div class=\"answers\">\n" + PageSlow(analysis) + PageLeft(analysis) + PageNext(analysis) + "</div>\n</section>\n";
  text += PageTotals(analysis) + PageOperators(analysis) + PageModules(analysis);
  text += PageOpportunities(analysis, options) + PageSites(analysis, options);
  text += PageMemory(analysis) + PageHost(analysis) + PagePrecision(analysis) + PageFindings(analysis);
  text += PageComplexity(analysis) + PageRest(analysis);
  text += fmt::format("</main>\n<script>{}</script>\n</body>\n</html>\n", PageScript());
  return text;
}

}  // namespace ascend_fuse
