// Sections about what is computed: totals, operators, modules, memory.
#include <algorithm>
#include <cmath>
#include <map>
#include <string_view>

#include "fmt/format.h"
#include "passes/analyze/page_sections.h"
#include "passes/analyze/page_table.h"
#include "passes/report/html_text.h"
#include "passes/report/number_text.h"
#include "passes/report/place_pattern.h"
#include "passes/report/report_groups.h"

namespace ascend_fuse {
namespace {

constexpr size_t kLongestFormula = 300;

std::string SmallFormula(const Amount& amount) {
  if (amount.formula.find_first_not_of("0123456789") == std::string::npos) return "";
  return fmt::format("<div class=\"small\">{}</div>", HtmlText(amount.formula, kLongestFormula));
}

PageCell WithFormula(const std::string& number, const Amount& amount) { return {number + SmallFormula(amount), amount.value}; }

struct BothSides {
  double before = 0, after = 0;
  int64_t kernels_before = 0, kernels_after = 0;
};

void Add(const ShareRecord& share, BothSides* sum) {
  sum->before += share.share_before;
  sum->after += share.share_after;
  sum->kernels_before += share.kernels_before;
  sum->kernels_after += share.kernels_after;
}

const std::vector<PageColumn> kModuleColumns = {
    {"module"}, {"time, optimized", true}, {"time, as it is", true}, {"kernels, optimized", true}, {"kernels, as it is", true}};

void ModuleRow(const std::string& name, const BothSides& share, PageTable* table) {
  table->Row({{name.empty() ? "<small>of no module</small>" : PageName(name), std::nullopt},
              PageShare(share.after),
              PageShare(share.before),
              PageCount(share.kernels_after),
              PageCount(share.kernels_before)});
}

// Steps of a node each, so the line is level between points.
std::string CurveLine(const ActivationRecord& record, double width, double height, double steps, double most) {
  std::string line;
  double y = height;
  for (const CurvePoint& point : record.curve) {
    const double x = static_cast<double>(point.step) / steps * width;
    const double next = height - point.bytes / most * height;
    line += fmt::format("{}{:.1f},{:.1f} {:.1f},{:.1f}", line.empty() ? "" : " ", x, y, x, next);
    y = next;
  }
  return line;
}

double StepsOf(const ActivationRecord& record) {
  return record.curve.empty() ? 1 : std::max<double>(1, static_cast<double>(record.curve.back().step));
}

std::string MemoryCurve(const MemoryRecord& memory) {
  const double most = std::max({memory.before.peak.value, memory.after.peak.value, 1.0});
  if (memory.before.curve.empty() && memory.after.curve.empty()) return "";
  constexpr double kWidth = 900, kHeight = 160;
  return fmt::format(
      "<figure><svg viewBox=\"-2 -14 904 190\" width=\"904\" role=\"img\" aria-label=\"memory of activations from the first node "
      "to "
      "the last: at most {0} as it is, {1} optimized\">\n<rect class=\"frame\" width=\"900\" height=\"160\"/><text "
      "y=\"-3\">{2}</text>\n"
      "<polyline class=\"was\" points=\"{3}\"/>\n<polyline class=\"is\" points=\"{4}\"/>\n<text y=\"173\">first node</text><text "
      "x=\"900\" y=\"173\" text-anchor=\"end\">last node</text></svg>\n<figcaption class=\"small\">memory of activations while "
      "nodes "
      "run; grey as it is, blue optimized</figcaption></figure>\n",
      ShortBytes(memory.before.peak.value), ShortBytes(memory.after.peak.value), ShortBytes(most),
      CurveLine(memory.before, kWidth, kHeight, StepsOf(memory.before), most),
      CurveLine(memory.after, kWidth, kHeight, StepsOf(memory.after), most));
}

std::string WeightTables(const MemoryRecord& memory) {
  PageTable types("weights by type", {{"type"}, {"tensors", true}, {"bytes", true}});
  for (const WeightRecord& type : memory.by_type)
    types.Row({{PageName(type.name), std::nullopt}, PageCount(type.tensors), PageBytes(type.bytes)});
  PageTable modules("weights by module; * stands for any number", {{"module"}, {"tensors", true}, {"bytes", true}});
  std::map<std::string, WeightRecord> patterns;
  for (const WeightRecord& module : memory.by_module) {
    WeightRecord& sum = patterns[PlacePattern(module.name)];
    sum.tensors += module.tensors;
    sum.bytes += module.bytes;
  }
  for (const auto& [name, sum] : patterns)
    modules.Row({{PageName(name), std::nullopt}, PageCount(sum.tensors), PageBytes(sum.bytes)});
  return (types.empty() ? "" : types.Html()) + (modules.empty() ? "" : modules.Html());
}

}  // namespace

std::string PageSection(std::string_view id, std::string_view title, const std::string& html) {
  if (html.empty()) return "";
  return fmt::format("<section aria-labelledby=\"{0}\">\n<h2 id=\"{0}\">{1}</h2>\n{2}</section>\n", id, title, html);
}

std::string PageTotals(const Analysis& analysis) {
  const SideRecord& before = analysis.before;
  const SideRecord& after = analysis.after;
  PageTable table("the whole graph", {{"count"}, {"as it is", true}, {"optimized", true}});
  const auto count = [&](std::string_view name, int64_t a, int64_t b) {
    table.Row({{std::string(name), std::nullopt}, PageCount(a), PageCount(b)});
  };
  count("nodes", before.nodes, after.nodes);
  count("kernels on the AI Core", before.kernels, after.kernels);
  count("nodes on the AI CPU", before.ai_cpu, after.ai_cpu);
  count("nodes on the host, shape arithmetic included", before.host, after.host);
  count("constants after compilation", before.folded, after.folded);
  count("nodes of unknown shapes, not counted below", before.unknown, after.unknown);
  table.Row({{"FLOPs", std::nullopt},
             WithFormula(ShortNumber(before.flops.value), before.flops),
             WithFormula(ShortNumber(after.flops.value), after.flops)});
  table.Row({{"bytes moved", std::nullopt},
             WithFormula(ShortBytes(before.bytes.value), before.bytes),
             WithFormula(ShortBytes(after.bytes.value), after.bytes)});
  table.Row({{"FLOPs a byte", std::nullopt},
             {fmt::format("{:.3g}", before.intensity), before.intensity},
             {fmt::format("{:.3g}", after.intensity), after.intensity}});
  return PageSection(
      "totals", "Before and after",
      "<details class=\"fold\"><summary>every count, as a function of the dims</summary>" + table.Html() + "</details>\n");
}

std::string PageOperators(const Analysis& analysis) {
  std::map<std::string, std::string> runs;
  for (const SupportRecord& support : analysis.support) {
    std::string& where = runs[support.op];
    if (where.find(support.engine) == std::string::npos) where += (where.empty() ? "" : ", ") + support.engine;
  }
  std::vector<const ShareRecord*> rows;
  for (const ShareRecord& op : analysis.operators) rows.push_back(&op);
  std::stable_sort(rows.begin(), rows.end(), [](const auto* a, const auto* b) { return a->share_after > b->share_after; });
  PageTable table("operators by their share of the time; left of the arrow as it is, right of it optimized",
                  {{"operator"},
                   {"time, optimized", true},
                   {"time, as it is", true},
                   {"kind"},
                   {"runs on"},
                   {"nodes", true},
                   {"kernels", true},
                   {"FLOPs", true},
                   {"bytes", true},
                   {"FLOPs a byte", true}});
  const auto arrow = [](const std::string& a, const std::string& b, double order) {
    return PageCell{a == b ? a : fmt::format("{} &rarr; {}", a, b), order};
  };
  for (const ShareRecord* op : rows) {
    table.Row(
        {{PageName(ShortOp(op->name)), std::nullopt},
         PageShare(op->share_after),
         PageShare(op->share_before),
         {HtmlText(op->kind), std::nullopt},
         {HtmlText(runs[op->name]), std::nullopt},
         arrow(fmt::format("{}", op->nodes_before), fmt::format("{}", op->nodes_after), static_cast<double>(op->nodes_after)),
         arrow(fmt::format("{}", op->kernels_before), fmt::format("{}", op->kernels_after),
               static_cast<double>(op->kernels_after)),
         arrow(ShortNumber(op->flops_before.value), ShortNumber(op->flops_after.value), op->flops_after.value),
         arrow(ShortBytes(op->bytes_before.value), ShortBytes(op->bytes_after.value), op->bytes_after.value),
         {fmt::format("{:.3g}", op->intensity), op->intensity}});
  }
  PageTable heavy("heaviest nodes, optimized",
                  {{"node"}, {"time", true}, {"operator"}, {"module"}, {"FLOPs", true}, {"bytes", true}, {"bound by"}});
  for (const HeavyRecord& node : analysis.heaviest) {
    heavy.Row({{PageName(node.node), std::nullopt},
               PageShare(node.share),
               {PageName(ShortOp(node.op)), std::nullopt},
               {PageName(node.module), std::nullopt},
               PageNumber(node.flops.value),
               PageBytes(node.bytes.value),
               {HtmlText(node.bound_by), std::nullopt}});
  }
  std::string text = table.empty() ? "" : table.Html();
  if (!heavy.empty()) text += "<details class=\"fold\"><summary>heaviest nodes</summary>" + heavy.Html() + "</details>\n";
  return PageSection("operators", "Time by operator", text);
}

std::string PageModules(const Analysis& analysis) {
  std::map<std::string, BothSides> patterns;
  for (const ShareRecord& module : analysis.modules) Add(module, &patterns[PlacePattern(module.name)]);
  PageTable table("modules, with what lies below them; * stands for any number", kModuleColumns);
  for (const auto& [name, share] : patterns) ModuleRow(name, share, &table);
  std::string text = table.empty() ? "" : table.Html();
  if (patterns.size() < analysis.modules.size()) {
    PageTable each("every module", kModuleColumns);
    for (const ShareRecord& module : analysis.modules) {
      BothSides share;
      Add(module, &share);
      ModuleRow(module.name, share, &each);
    }
    text += fmt::format("<details class=\"fold\"><summary>all {} modules</summary>{}</details>\n", analysis.modules.size(),
                        each.Html());
  }
  return PageSection("modules", "Time by module", text);
}

std::string PageMemory(const Analysis& analysis) {
  const MemoryRecord& memory = analysis.memory;
  PageTable table("memory", {{"what"}, {"bytes", true}, {"note"}});
  const auto row = [&](std::string_view name, double bytes, const std::string& note) {
    table.Row({{std::string(name), std::nullopt}, PageBytes(bytes), {note, std::nullopt}});
  };
  row("weights", memory.weights,
      memory.weights_shared > 0 ? fmt::format("shared ones once, which saves {}", ShortBytes(memory.weights_shared)) : "");
  row("weights in half", memory.weights_half, "");
  row("weights of products in int8", memory.weights_int8, "");
  const auto peak = [](const ActivationRecord& record) {
    return (record.at.empty() ? "" : "at " + PageName(record.at)) + SmallFormula(record.peak);
  };
  row("activations at most, as it is", memory.before.peak.value, peak(memory.before));
  row("activations at most, optimized", memory.after.peak.value, peak(memory.after));
  if (!memory.caches.empty()) {
    row("caches of keys and values", memory.cache.value, SmallFormula(memory.cache));
  }
  row("needed", memory.needed, "weights as the precision mode has them, activations, caches");
  for (const MemoryFit& fit : memory.fits)
    row("memory of the chip", fit.bytes,
        (fit.fits ? "fits" : "<b class=\"high\">is too small</b>") + HtmlSmall("source: ", fit.source));
  return PageSection("memory", "Memory",
                     MemoryCurve(memory) + table.Html() + "<details class=\"fold\"><summary>weights</summary>" +
                         WeightTables(memory) + "</details>\n");
}

}  // namespace ascend_fuse
