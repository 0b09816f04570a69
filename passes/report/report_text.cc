// A report as text, made to be read in one glance: a table first, then sites that share a sentence as one line.
#include <utility>

#include "fmt/format.h"
#include "fmt/ranges.h"
#include "passes/report/report_fields.h"
#include "passes/report/report_groups.h"
#include "passes/report/text_lines.h"

namespace ascend_fuse {
namespace {

class Text : private TextLines {
 public:
  Text(const Report& report, const ReportTextOptions& options) : report_(report), options_(options) {}

  std::string Run() {
    Header();
    Table();
    Sites();
    Assumptions();
    Gains();
    NearMisses();
    Rest();
    return std::move(text_);
  }

 private:
  // What `ascend-fuse explain` takes.
  std::string Code(const std::string& code) const { return options_.verbose && !code.empty() ? fmt::format(" [{}]", code) : ""; }

  void Header() {
    const ReportTarget& target = report_.target;
    if (!report_.model.empty()) Line("{}", report_.model);
    std::string line = fmt::format("target {}, CANN {}", target.chip, target.cann);
    if (target.plugin) line += " with our op plugin";
    if (!target.style.empty()) line += fmt::format(", style {}", target.style);
    if (target.opset > 0) line += fmt::format(", opset {}", target.opset);
    if (!target.precision_mode.empty()) line += fmt::format(", precision mode {}", target.precision_mode);
    if (!target.dims.empty()) line += fmt::format(", dims {}", fmt::join(target.dims, " "));
    Line("{}", line);
    for (const WarningRecord& warning : report_.warnings) Line("warning: {}{}", warning.message, Code(warning.code));
    Line("");
  }

  void Table() {
    int64_t found = 0, fused = 0;
    std::vector<std::string> absent;
    for (const ReportKindCount& count : report_.kinds) {
      if (count.found == 0) {
        absent.push_back(count.kind);
        continue;
      }
      if (found == 0) {
        Line("{:<18}{:>6}{:>7}{:>7}{:>6}  {}", "", "found", options_.changed ? "fused" : "can be", "by GE", "left",
             "commonest reason");
      }
      found += count.found;
      fused += count.fused;
      Line("{:<18}{:>6}{:>7}{:>7}{:>6}  {}", count.kind, count.found, count.fused, count.by_ge, count.left,
           count.commonest_reason);
    }
    if (found == 0) {
      Line("No site of any kind was found ({}): nothing was fused.", fmt::join(absent, ", "));
      Line("Near misses below, if any, say where a pattern stopped; `ascend-fuse print` shows the graph.");
    } else if (fused == 0) {
      Line("{} found, none {} fused: the reasons are below.", found == 1 ? "1 site was" : fmt::format("{} sites were", found),
           options_.changed ? "was" : "can be");
    } else if (!absent.empty()) {
      Line("none found: {}", fmt::join(absent, ", "));
    }
    if (options_.changed) {
      Line("nodes {} -> {}", report_.nodes_before, report_.nodes_after);
    } else {
      Line("nodes {} (nothing was changed)", report_.nodes_before);
    }
    if (const std::string weights = WeightsInWords(report_); !weights.empty()) Line("{}", weights);
    const std::string tidied = TidiedInWords(report_);
    if (!tidied.empty()) Line("{}: {}", options_.changed ? "tidied" : "can be tidied", tidied);
  }

  void Sites() {
    for (const std::string& kind : KindsOfSites(report_)) {
      Line("");
      Line("{}", kind);
      // Groups with one reason stand together, and the reason once below them.
      const std::vector<SiteGroup> groups = GroupSites(report_, kind, options_.verbose);
      for (size_t i = 0; i < groups.size(); ++i) {
        const bool last = options_.verbose || i + 1 == groups.size() || !SameReason(groups[i], groups[i + 1]);
        Group(groups[i], last);
      }
    }
  }

  void Group(const SiteGroup& group, bool with_reason) {
    const SiteRecord& site = *group[0];
    const std::string count = group.size() > 1 ? fmt::format("{} x ", group.size()) : "";
    const std::string node = site.emitted_op.empty() ? "" : fmt::format(" -> {}", ShortOp(site.emitted_op));
    const std::vector<std::string> notes = NotesOf(site);
    Line("  {}{}{}  {}{}", count, StateWord(site.state, options_.changed), node, PlaceOf(group),
         notes.empty() ? "" : fmt::format(" ({})", fmt::join(notes, ", ")));
    if (options_.verbose) {
      std::vector<std::string> details;
      if (!site.rule.empty()) details.push_back(fmt::format("rule {}", site.rule));
      if (!site.module.empty() && !site.node.empty()) details.push_back(fmt::format("at {}", site.node));
      if (!details.empty()) Line("      {}", fmt::join(details, ", "));
      if (!site.covers.empty()) Line("      covers {}", fmt::join(site.covers, " "));
      if (!site.outputs.empty()) Line("      gives {}", fmt::join(site.outputs, " "));
      if (!site.pair.empty()) Line("      pair of {}: the same cos and sin", site.pair);
    }
    if (!with_reason) return;
    if (!site.because.empty()) Line("      because {}{}", site.because, Code(site.code));
    if (!site.source.empty() && (site.state != "fused" || options_.verbose)) Line("      source {}", site.source);
    if (site.state == "left" && site.because.empty()) Line("      because no reason was recorded");
  }

  void Assumptions() {
    const auto sentences = GroupAssumptions(report_);
    if (sentences.empty()) return;
    Line("");
    Line("assumptions (--strict refuses instead; --dim decides those about dims)");
    for (const auto& [sentence, count] : sentences) {
      Line("  {}{}", sentence, count > 1 ? fmt::format("  [{} sites]", count) : "");
    }
  }

  void Gains() {
    if (report_.gains.empty()) return;
    Line("");
    Line("what is known of the speed of these nodes");
    for (const GainRecord& gain : report_.gains) {
      Line("  {}  {}: {}", gain.node, gain.evidence, gain.because);
      if (options_.verbose) Line("      source {}", gain.source);
    }
  }

  void NearMisses() {
    if (report_.near_misses.empty()) return;
    Line("");
    Line("near misses");
    for (const auto& [first, count] : GroupNearMisses(report_, options_.verbose)) {
      const NearMissRecord& miss = *first;
      const std::string place = miss.module.empty() ? miss.node : fmt::format("{} ({})", miss.node, miss.module);
      Line("  {} at {}{}: matched {} node{}, stopped by {}", miss.rule, place,
           count > 1 ? fmt::format(" and {} more like it", count - 1) : "", miss.matched_nodes,
           miss.matched_nodes == 1 ? "" : "s", miss.stopped_by);
      if (!miss.expected.empty()) Line("      expected {}", miss.expected);
      if (!miss.found.empty()) {
        Line("      {} {}{}", miss.expected.empty() ? "because" : "found", miss.found, Code(miss.code));
      }
      if (!miss.source.empty()) Line("      rule text {}", miss.source);
    }
  }

  void Rest() {
    if (!report_.contradictions.empty()) {
      Line("");
      Line("contradictions (the computed shape was believed)");
      for (const ContradictionRecord& c : report_.contradictions) {
        Line("  {}: declared {}, computed {} at {}", c.value, c.declared, c.computed, c.node);
      }
    }
    if (options_.verbose && !report_.passes.empty()) {
      Line("");
      Line("passes");
      for (const PassRecord& pass : report_.passes) {
        Line("  {:<18}{:>10.1f} ms  {} change{}", pass.name, pass.milliseconds, pass.changes, pass.changes == 1 ? "" : "s");
      }
    }
  }

  const Report& report_;
  const ReportTextOptions& options_;
};

}  // namespace

std::string ReportToText(const Report& report, const ReportTextOptions& options) {
  const Report shown = VisibleReport(report);
  return Text(shown, options).Run();
}

}  // namespace ascend_fuse
