// An analysis as text: one screen that says what is slow, what is left and why, and what to do next; --verbose the rest.
#include <algorithm>
#include <cctype>
#include <cstdint>
#include <map>
#include <string_view>
#include <utility>

#include "fmt/format.h"
#include "fmt/ranges.h"
#include "ir/text/visible.h"
#include "passes/analyze/analysis.h"
#include "passes/analyze/analysis_details.h"
#include "passes/report/number_text.h"
#include "passes/report/place_pattern.h"
#include "passes/report/report_groups.h"
#include "passes/report/text_lines.h"

namespace ascend_fuse {
namespace {

// So many rows of each table are on the first screen.
constexpr size_t kFewOperators = 6;
constexpr size_t kFewRows = 4;
constexpr size_t kLongestSentence = 140;
// A module with less is a part of the one around it.
constexpr double kShareOfModule = 0.04;

class Text : private TextLines {
 public:
  Text(const Analysis& analysis, const AnalysisTextOptions& options) : analysis_(analysis), options_(options) {}

  std::string Run() {
    Header();
    Totals();
    Slow();
    Modules();
    Opportunities("left", "what is left, and what it would win");
    Opportunities("fused", "what is fused, and what that wins");
    Memory();
    Host();
    Complexity();
    Next();
    if (options_.verbose) text_ += AnalysisDetails(analysis_);
    return Visible(text_, true);
  }

 private:
  size_t Rows(size_t few = kFewRows) const { return options_.verbose ? 1000 : few; }
  std::string Cut(std::string sentence) const {
    if (options_.verbose || sentence.size() <= kLongestSentence) return sentence;
    size_t end = kLongestSentence;
    while (end > 0 && (static_cast<unsigned char>(sentence[end]) & 0xC0) == 0x80) --end;
    const size_t word = sentence.rfind(' ', end);
    return sentence.substr(0, word != std::string::npos && word > end / 2 ? word : end) + " ...";
  }

  void Header() {
    const ReportTarget& target = analysis_.report.target;
    Line("{} for {}, CANN {}{}, precision mode {}", analysis_.report.model.empty() ? "model" : analysis_.report.model,
         target.chip, target.cann, target.plugin ? " with our op plugin" : "", target.precision_mode);
    std::vector<std::string> given, taken;
    for (const BoundDim& dim : analysis_.dims) {
      (dim.origin == "dim" ? given : taken).push_back(fmt::format("{}={}", dim.name, dim.value));
    }
    std::string line =
        given.empty() && taken.empty() ? "every dim is a number" : fmt::format("numbers for {}", fmt::join(given, " "));
    if (!taken.empty()) {
      if (taken.size() > 8 && !options_.verbose) {
        const size_t more = taken.size() - 8;
        taken.resize(8);
        taken.push_back(fmt::format("and {} more", more));
      }
      line += fmt::format("{}{} (taken; --dim NAME=N sets another)", given.empty() ? "" : " and ", fmt::join(taken, " "));
    }
    Line("{}", line);
    Line("");
  }

  void Row(std::string_view name, const std::string& before, const std::string& after, const std::string& note = "") {
    Line("{:<22}{:>14}{:>14}   {}", name, before, after, note);
  }

  void Totals() {
    const SideRecord& before = analysis_.before;
    const SideRecord& after = analysis_.after;
    Row("", "as it is", "optimized");
    Row("nodes", fmt::format("{}", before.nodes), fmt::format("{}", after.nodes));
    Row("kernels on the AI Core", fmt::format("{}", before.kernels), fmt::format("{}", after.kernels));
    Row("on AI CPU, on host", fmt::format("{}, {}", before.ai_cpu, before.host), fmt::format("{}, {}", after.ai_cpu, after.host));
    Row("FLOPs", ShortNumber(before.flops.value), ShortNumber(after.flops.value), Formula(before.flops));
    Row("bytes moved", ShortBytes(before.bytes.value), ShortBytes(after.bytes.value), Formula(before.bytes));
    Row("FLOPs a byte", fmt::format("{:.3g}", before.intensity), fmt::format("{:.3g}", after.intensity));
    if (before.unknown + after.unknown > 0) {
      Row("shapes not known", fmt::format("{}", before.unknown), fmt::format("{}", after.unknown), "not counted");
    }
    const RatioRecord& ratio = analysis_.ratio;
    Line("predicted: {:.2f} times as fast, {:.2f} to {:.2f} ({} shapes); a cost model says so (docs/costs.md), no measurement",
         ratio.middle, ratio.low, ratio.high, ratio.launch);
    Line("");
  }

  std::string Formula(const Amount& quantity) const {
    const bool is_number = quantity.formula.find_first_not_of("0123456789") == std::string::npos;
    if (is_number || (quantity.formula.size() > 60 && !options_.verbose)) return "";
    return quantity.formula;
  }

  void Slow() {
    std::vector<const ShareRecord*> rows;
    for (const ShareRecord& op : analysis_.operators) {
      if (op.kernels_after > 0 || op.share_after > 0) rows.push_back(&op);
    }
    std::stable_sort(rows.begin(), rows.end(), [](const auto* a, const auto* b) { return a->share_after > b->share_after; });
    Line("what takes the time, optimized");
    Line("  {:<36}{:>7}{:>9}{:>10}{:>10}{:>13}", "", "time", "kernels", "FLOPs", "bytes", "FLOPs a byte");
    for (size_t i = 0; i < std::min(rows.size(), Rows(kFewOperators)); ++i) {
      const ShareRecord& op = *rows[i];
      const double intensity = op.bytes_after.value > 0 ? op.flops_after.value / op.bytes_after.value : 0;
      Line("  {:<36}{:>7}{:>9}{:>10}{:>10}{:>13.3g}", fmt::format("{} ({})", ShortOp(op.name), op.kind), Percent(op.share_after),
           op.kernels_after, ShortNumber(op.flops_after.value), ShortBytes(op.bytes_after.value), intensity);
    }
    Line("");
  }

  // Layers that have one shape are one row; a row has what lies below it, and no row below it.
  void Modules() {
    std::map<std::string, std::pair<double, double>> patterns;
    for (const ShareRecord& module : analysis_.modules) {
      auto& [before, after] = patterns[PlacePattern(module.name)];
      before += module.share_before;
      after += module.share_after;
    }
    std::vector<std::pair<std::string, std::pair<double, double>>> rows;
    for (const auto& [name, share] : patterns) {
      if (share.second < kShareOfModule || name.empty()) continue;
      const std::string below = name + ".";
      const bool leaf = std::none_of(patterns.begin(), patterns.end(), [&](const auto& other) {
        return other.first.starts_with(below) && other.second.second >= kShareOfModule;
      });
      if (leaf) rows.emplace_back(name, share);
    }
    if (rows.empty()) return;
    std::stable_sort(rows.begin(), rows.end(), [](const auto& a, const auto& b) { return a.second.second > b.second.second; });
    Line("where the time goes, optimized");
    for (size_t i = 0; i < std::min(rows.size(), Rows()); ++i) {
      Line("  {:<52}{:>7} (as it is {})", rows[i].first, Percent(rows[i].second.second), Percent(rows[i].second.first));
    }
    Line("");
  }

  void Opportunities(std::string_view state, std::string_view title) {
    std::vector<const OpportunityRecord*> rows;
    const size_t most = Rows();
    for (const OpportunityRecord& opportunity : analysis_.opportunities) {
      if (opportunity.state == state || (state == "fused" && opportunity.state == "by_ge" && options_.verbose))
        rows.push_back(&opportunity);
    }
    if (state == "left") Line("{} (share of the time as it is)", title);
    if (state != "left") Line("{}", title);
    if (rows.empty()) Line("  nothing");
    for (size_t i = 0; i < std::min(rows.size(), most); ++i) {
      const OpportunityRecord& row = *rows[i];
      const std::string to = row.emitted_op.empty() ? row.state == "by_ge" ? " by GE" : "" : " -> " + ShortOp(row.emitted_op);
      Line("  {:>5}{} {} x {}{}  {}", Percent(row.gain), row.at_most ? " at most" : "", row.count, OpportunityName(row.kind), to,
           row.place);
      if (row.state == "left" || row.kind == "rewritten" || options_.verbose) {
        if (!row.because.empty()) Line("        because {}", Cut(row.because));
        if (!row.way.empty()) Line("        way out: {}", Cut(row.way));
      }
      if (options_.verbose && !row.source.empty()) Line("        source {}", row.source);
    }
    if (rows.size() > most) Line("  and {} more (--verbose)", rows.size() - most);
    if (state == "fused") JoinedByGe();
    Line("");
  }

  void JoinedByGe() {
    std::map<std::string, int64_t> counts;
    for (const OpportunityRecord& opportunity : analysis_.opportunities) {
      if (opportunity.state == "by_ge") counts[opportunity.kind] += opportunity.count;
    }
    std::vector<std::string> words;
    for (const auto& [kind, count] : counts) words.push_back(fmt::format("{} {}", count, kind));
    if (!words.empty()) Line("  the compiler joins by itself: {}", fmt::join(words, ", "));
  }

  void Memory() {
    const MemoryRecord& memory = analysis_.memory;
    Line("memory: weights {} ({} in half, {} with int8 products), activations at most {} -> {}", ShortBytes(memory.weights),
         ShortBytes(memory.weights_half), ShortBytes(memory.weights_int8), ShortBytes(memory.before.peak.value),
         ShortBytes(memory.after.peak.value));
    if (!memory.caches.empty()) {
      Line("  caches of keys and values {}{}", ShortBytes(memory.cache.value),
           Formula(memory.cache).empty() ? "" : fmt::format(" = {}", memory.cache.formula));
    }
    std::vector<std::string> fits;
    for (const MemoryFit& fit : memory.fits)
      fits.push_back(fmt::format("{} {}", ShortBytes(fit.bytes), fit.fits ? "fits" : "is too small"));
    Line("  needs {}; {}", ShortBytes(memory.needed), fmt::join(fits, ", "));
    Line("");
  }

  void Host() {
    if (analysis_.host.empty()) return;
    Line("what the host or the AI CPU does, optimized");
    for (size_t i = 0; i < std::min(analysis_.host.size(), Rows()); ++i) {
      const HostRecord& host = analysis_.host[i];
      Line("  {} x {}{}: {}", host.nodes, host.code, host.op.empty() ? "" : fmt::format(" ({})", host.op), Cut(host.because));
      if (!host.way_out.empty()) Line("        way out: {}", Cut(host.way_out));
    }
    if (analysis_.host.size() > Rows()) Line("  and {} more (--verbose)", analysis_.host.size() - Rows());
    Line("");
  }

  void Complexity() {
    std::string level = analysis_.complexity.level;
    std::transform(level.begin(), level.end(), level.begin(), [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
    Line("migration: {}", level);
    const auto& reasons = analysis_.complexity.reasons;
    for (size_t i = 0; i < std::min(reasons.size(), Rows()); ++i) {
      const ReasonRecord& reason = reasons[i];
      Line("  {:<7} {} x {}: {}", reason.level, reason.count, reason.code, Cut(reason.because));
    }
    if (reasons.size() > Rows()) Line("  and {} more (--verbose)", reasons.size() - Rows());
    Line("");
  }

  void Next() {
    Line("next");
    for (size_t i = 0; i < analysis_.next.size(); ++i) {
      const StepRecord& step = analysis_.next[i];
      Line("  {}. {}{}", i + 1, step.action, step.because.empty() ? "" : fmt::format(": {}", Cut(step.because)));
      if (!step.command.empty()) Line("       {}", step.command);
    }
  }

  const Analysis& analysis_;
  const AnalysisTextOptions& options_;
};

}  // namespace

std::string AnalysisToText(const Analysis& analysis, const AnalysisTextOptions& options) { return Text(analysis, options).Run(); }

}  // namespace ascend_fuse
