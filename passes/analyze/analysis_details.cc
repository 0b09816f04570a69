// The rest of an analysis as text, for --verbose.
#include "passes/analyze/analysis_details.h"

#include <utility>

#include "fmt/format.h"
#include "fmt/ranges.h"
#include "passes/report/number_text.h"
#include "passes/report/report_groups.h"

namespace ascend_fuse {
namespace {

class Details {
 public:
  explicit Details(const Analysis& analysis) : analysis_(analysis) {}

  std::string Run() {
    Memory();
    Nodes();
    Rest();
    return std::move(text_);
  }

 private:
  template <typename... Args>
  void Line(fmt::format_string<Args...> format, Args&&... args) {
    text_ += fmt::format(format, std::forward<Args>(args)...) + "\n";
  }

  void Memory() {
    Line("");
    Line("memory");
    const MemoryRecord& memory = analysis_.memory;
    if (memory.weights_shared > 0) Line("  shared weights save {}", ShortBytes(memory.weights_shared));
    for (const WeightRecord& type : memory.by_type)
      Line("  {:<12}{:>8} tensors {:>10}", type.name, type.tensors, ShortBytes(type.bytes));
    Line("  the peak is at {} as it is ({}), at {} optimized ({})", memory.before.at, memory.before.peak.formula, memory.after.at,
         memory.after.peak.formula);
    for (const WeightRecord& module : memory.by_module) Line("  {:<52}{:>10}", module.name, ShortBytes(module.bytes));
  }

  void Nodes() {
    Line("");
    Line("heaviest nodes, optimized");
    for (const HeavyRecord& heavy : analysis_.heaviest) {
      Line("  {:>5}  {} {}  {} FLOPs, {}, bound by {}", Percent(heavy.share), ShortOp(heavy.op), heavy.node,
           ShortNumber(heavy.flops.value), ShortBytes(heavy.bytes.value), heavy.bound_by);
    }
  }

  void Rest() {
    Line("");
    Line("where operators run");
    for (const SupportRecord& support : analysis_.support) {
      if (!support.after) continue;
      Line("  {:<28}{:>6}  {:<10}{:<8}{:<9}{}{}", ShortOp(support.op), support.nodes, support.engine, support.unit,
           support.shapes, support.because, support.way_out.empty() ? "" : fmt::format("; {}", support.way_out));
    }
    if (!analysis_.uncounted.empty()) {
      Line("");
      Line("operators without a row in the cost model: {}", fmt::join(analysis_.uncounted, ", "));
    }
    Line("");
    Line("types of what kernels compute, as it is: {} Casts", analysis_.precision.casts);
    for (const TypeRecord& type : analysis_.precision.types) {
      Line("  {:<12}{:>8} kernels {:>10}", type.type, type.kernels, ShortBytes(type.bytes));
    }
  }

  const Analysis& analysis_;
  std::string text_;
};

}  // namespace

std::string_view OpportunityName(std::string_view kind) {
  if (kind == "swept") return "nodes that only fused subgraphs needed";
  if (kind == "affine") return "factor or summand of channels (affine)";
  if (kind == "packed_projections") return "projections of one value (packed_projections)";
  if (kind == "rewritten") return "operators in a faster form (rewritten)";
  if (kind == "near_miss") return "near miss";
  return kind == "elementwise_chain" ? "chain of elementwise operators" : kind;
}

std::string AnalysisDetails(const Analysis& analysis) { return Details(analysis).Run(); }

}  // namespace ascend_fuse
