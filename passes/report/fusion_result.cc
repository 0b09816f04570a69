#include "passes/report/fusion_result.h"

#include <map>
#include <vector>

#include "fmt/format.h"
#include "fmt/ranges.h"
#include "ir/text/json_string.h"

namespace ascend_fuse {

// The names are those of GE (hicann/ge, compiler/engines/nn_engine, fusion_statistic_writer.cc); counts are strings there.
std::string ReportToFusionResult(const Report& report) {
  struct Times {
    int64_t matched = 0;
    int64_t took_effect = 0;
  };
  std::map<std::string, Times> rules;
  for (const SiteRecord& site : report.sites) {
    Times& times = rules[site.rule.empty() || site.rule == "native" ? site.kind : site.rule];
    ++times.matched;
    times.took_effect += site.state == "fused" ? 1 : 0;
  }
  std::vector<std::string> rows;
  for (const auto& [rule, times] : rules) {
    rows.push_back(fmt::format(R"(            {}: {{"effect_times": "{}", "match_times": "{}"}})", VisibleJsonString(rule),
                               times.took_effect, times.matched));
  }
  return fmt::format(
      "{{\n    \"session_and_graph_id_0_0\": {{\n        \"graph_fusion\": {{\n{}\n        }},\n        \"ub_fusion\": {{}}\n    "
      "}}\n}}\n",
      fmt::join(rows, ",\n"));
}

}  // namespace ascend_fuse
