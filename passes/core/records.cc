// What is counted of a report.
#include "passes/core/records.h"

#include <algorithm>
#include <map>
#include <utility>

#include "patterns/operators/declarations.h"

namespace ascend_fuse {

const std::vector<std::string>& ReportKinds() {
  static const auto* const kinds = [] {
    auto* names = new std::vector<std::string>;
    for (const SiteKind& kind : SiteKinds()) names->push_back(kind.name);
    return names;
  }();
  return *kinds;
}

void Report::Summarize() {
  kinds.clear();
  for (const std::string& kind : ReportKinds()) kinds.push_back({kind, 0, 0, 0, 0, ""});
  std::map<std::string, std::vector<std::pair<std::string, int>>> reasons;  // in the order of the sites
  for (const SiteRecord& site : sites) {
    auto it = std::find_if(kinds.begin(), kinds.end(), [&](const auto& count) { return count.kind == site.kind; });
    if (it == kinds.end()) it = kinds.insert(it, {site.kind, 0, 0, 0, 0, ""});
    ++it->found;
    if (site.state == "fused") {
      ++it->fused;
    } else if (site.state == "by_ge") {
      ++it->by_ge;
    } else {
      ++it->left;
      auto& list = reasons[site.kind];
      auto reason = std::find_if(list.begin(), list.end(), [&](const auto& r) { return r.first == site.because; });
      if (reason == list.end()) reason = list.insert(reason, {site.because, 0});
      ++reason->second;
    }
  }
  for (ReportKindCount& count : kinds) {
    int most = 0;
    for (const auto& [because, times] : reasons[count.kind]) {
      if (times <= most || because.empty()) continue;
      most = times;
      count.commonest_reason = because;
    }
  }
}

const ReportKindCount* Report::FindKind(const std::string& kind) const {
  for (const ReportKindCount& count : kinds) {
    if (count.kind == kind) return &count;
  }
  return nullptr;
}

void Report::Warn(const WarningRecord& warning) {
  const bool known = std::any_of(warnings.begin(), warnings.end(), [&](const WarningRecord& other) {
    return other.code == warning.code && other.message == warning.message;
  });
  if (!known) warnings.push_back(warning);
}

}  // namespace ascend_fuse
