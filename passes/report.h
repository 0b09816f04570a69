// The report of a run: plain data that passes fill in, printed as a table a person reads and as JSON with the
// names of proto/report.proto.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace ascend_fuse {

// The kinds of sites, in the order in which reports list them.
const std::vector<std::string>& ReportKinds();

struct ReportTarget {
  std::string chip;
  std::string cann;
  std::string style;
  std::string precision_mode;
  int64_t opset = 0;
  bool plugin = false;
};

struct ReportSite {
  std::string kind;
  std::string state;  // "fused", "by_ge", "left"
  std::string module;
  std::string rule;
  std::string node;
  std::vector<std::string> covers;
  std::string precision;
  std::string mask;
  std::vector<std::string> assumptions;
  std::string because;
  std::string source;
  std::string name;
  std::vector<std::string> outputs;
  std::string pair;
};

struct ReportKindCount {
  std::string kind;
  int64_t found = 0;
  int64_t fused = 0;
  int64_t by_ge = 0;
  int64_t left = 0;
  std::string commonest_reason;
};

struct ReportNearMiss {
  std::string rule;
  std::string at;
  std::string module;
  int64_t matched_nodes = 0;
  std::string stopped_by;
  std::string expected;
  std::string found;
  std::string source_position;
};

struct ReportPass {
  std::string name;
  double milliseconds = 0;
  int64_t changes = 0;
};

struct ReportContradiction {
  std::string value;
  std::string declared;
  std::string computed;
  std::string where;
};

struct Report {
  std::string model;
  ReportTarget target;
  std::vector<ReportKindCount> kinds;  // all of ReportKinds(), then others; made by Summarize
  int64_t nodes_before = 0;
  int64_t nodes_after = 0;
  std::vector<ReportSite> sites;
  std::vector<ReportNearMiss> near_misses;
  std::vector<ReportPass> passes;
  std::vector<ReportContradiction> contradictions;
  std::vector<std::string> warnings;

  // Counts `sites` into `kinds`. Call it when the sites are complete.
  void Summarize();
  // The count of a kind, or nullptr.
  const ReportKindCount* FindKind(const std::string& kind) const;
};

struct ReportTextOptions {
  bool verbose = false;  // every site on its own line, with what it covers; pass timings
  bool changed = true;   // false for `list`: nothing was written, so say "can be fused"
};

// The same report gives the same bytes.
std::string ReportToJson(const Report& report);
std::string ReportToText(const Report& report, const ReportTextOptions& options = {});
absl::StatusOr<Report> ReportFromJson(const std::string& json);

}  // namespace ascend_fuse
