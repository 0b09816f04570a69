// Tables of an analysis as comma-separated values.
#include "fmt/format.h"
#include "ir/text/visible.h"
#include "passes/analyze/analysis.h"

namespace ascend_fuse {
namespace {

// A field of a CSV file (RFC 4180).
std::string Field(const std::string& text) {
  const std::string shown = Visible(text);
  if (shown.find_first_of(",\"\n") == std::string::npos) return shown;
  std::string quoted = "\"";
  for (const char c : shown) quoted += c == '"' ? "\"\"" : std::string(1, c);
  return quoted + "\"";
}

}  // namespace

std::string OperatorsToCsv(const Analysis& analysis) {
  std::string text =
      "op,kind,nodes_before,nodes_after,kernels_before,kernels_after,flops_before,flops_after,bytes_before,bytes_after,intensity,"
      "share_before,share_after\n";
  for (const ShareRecord& op : analysis.operators) {
    text += fmt::format("{},{},{},{},{},{},{:.0f},{:.0f},{:.0f},{:.0f},{:.6g},{:.6g},{:.6g}\n", Field(op.name), op.kind,
                        op.nodes_before, op.nodes_after, op.kernels_before, op.kernels_after, op.flops_before.value,
                        op.flops_after.value, op.bytes_before.value, op.bytes_after.value, op.intensity, op.share_before,
                        op.share_after);
  }
  return text;
}

std::string SitesToCsv(const Analysis& analysis) {
  std::string text = "kind,state,module,node,emitted_op,rule,precision,mask,code,because,source\n";
  for (const SiteRecord& site : analysis.report.sites) {
    text += fmt::format("{},{},{},{},{},{},{},{},{},{},{}\n", site.kind, site.state, Field(site.module), Field(site.node),
                        Field(site.emitted_op), Field(site.rule), site.precision, Field(site.mask), site.code,
                        Field(site.because), Field(site.source));
  }
  return text;
}

}  // namespace ascend_fuse
