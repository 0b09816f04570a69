// What of a report is said once when people read it: sites, assumptions, near misses and findings that share their sentences.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "passes/report/report.h"

namespace ascend_fuse {

using SiteGroup = std::vector<const SiteRecord*>;  // never empty

// The kinds that have sites: those of ReportKinds first.
std::vector<std::string> KindsOfSites(const Report& report);
// The sites of a kind in the order of the first of each group; groups with one reason stand together. `each`: every site is a
// group of its own, in the order of the report.
std::vector<SiteGroup> GroupSites(const Report& report, const std::string& kind, bool each);
// Whether they share state, reason and source.
bool SameReason(const SiteGroup& a, const SiteGroup& b);
// Where a site is: its module, or its node.
const std::string& PlaceOf(const SiteRecord& site);
// Where all sites of a group are: "model.layers.*.self_attn".
std::string PlaceOf(const SiteGroup& group);
// What is said of a site besides its state: its mask, and its precision where that is not exact.
std::vector<std::string> NotesOf(const SiteRecord& site);
// "fused", or "can be fused" where nothing was changed; "by GE"; "left".
const char* StateWord(const std::string& state, bool changed);
// "npu.NPURmsNorm" -> "NPURmsNorm".
std::string ShortOp(const std::string& op);

// The assumptions of all sites, each with the number of sites that rest on it.
std::vector<std::pair<std::string, size_t>> GroupAssumptions(const Report& report);
// Near misses with the number of those like them: the same stop in every layer is told once, unless `each`.
std::vector<std::pair<const NearMissRecord*, size_t>> GroupNearMisses(const Report& report, bool each);

// Findings with one sentence about one operator.
struct FindingGroup {
  std::string heading;  // of the effect: "refused", "possibly refused"; groups with one heading stand together
  std::vector<const FindingRecord*> findings;
  std::vector<std::string> places;  // each once
  std::string fixed_by;             // "" where nothing fixes any
  size_t fixed = 0;                 // how many of them that fixes
};

std::vector<FindingGroup> GroupFindings(const Report& report);

}  // namespace ascend_fuse
