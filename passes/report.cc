// What is counted of a report.
#include "passes/report.h"

#include <algorithm>
#include <map>
#include <utility>

#include "fmt/format.h"
#include "fmt/ranges.h"
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
    auto it =
        std::find_if(kinds.begin(), kinds.end(), [&](const auto& count) { return count.kind == site.kind; });
    if (it == kinds.end()) it = kinds.insert(it, {site.kind, 0, 0, 0, 0, ""});
    ++it->found;
    if (site.state == "fused") {
      ++it->fused;
    } else if (site.state == "by_ge") {
      ++it->by_ge;
    } else {
      ++it->left;
      auto& list = reasons[site.kind];
      auto reason =
          std::find_if(list.begin(), list.end(), [&](const auto& r) { return r.first == site.because; });
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

absl::Status CheckRequirements(const std::vector<std::string>& kinds) {
  const auto& all = ReportKinds();
  for (const std::string& kind : kinds) {
    if (std::find(all.begin(), all.end(), kind) != all.end()) continue;
    return absl::InvalidArgumentError(fmt::format("--require {}: the kinds are {}", kind, fmt::join(all, ", ")));
  }
  return absl::OkStatus();
}

std::vector<std::string> UnmetRequirements(const Report& report, const std::vector<std::string>& kinds) {
  std::vector<std::string> sentences;
  for (const std::string& kind : kinds) {
    const ReportKindCount* count = report.FindKind(kind);
    if (count == nullptr || count->found == 0) {
      sentences.push_back(fmt::format("--require {}: no {} was found", kind, kind));
    } else if (count->left > 0) {
      sentences.push_back(fmt::format("--require {}: {} of {} left{}{}", kind, count->left, count->found,
                                      count->commonest_reason.empty() ? "" : ": ", count->commonest_reason));
    }
  }
  return sentences;
}

}  // namespace ascend_fuse
