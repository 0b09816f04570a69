#include "passes/report/report_groups.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "fmt/format.h"
#include "fmt/ranges.h"
#include "ir/add_once.h"
#include "passes/report/place_pattern.h"

namespace ascend_fuse {
namespace {

constexpr std::pair<std::string_view, std::string_view> kEffects[] = {
    {"no_parser", "no parser: ATC refuses the model"},
    {"refused", "refused"},
    {"no_kernel", "parsed, and no kernel runs it"},
    {"misread", "read as something else, without a word"},
    {"loses_type", "an output gets another type"},
    {"precision", "constants that the precision mode does not hold"},
    {"ai_cpu", "runs on the AI CPU"},
    {"host", "runs on the host"},
    {"slow", "runs slowly"},
};

FindingGroup Describe(std::string heading, std::vector<const FindingRecord*> findings) {
  FindingGroup group;
  group.heading = std::move(heading);
  for (const FindingRecord* finding : findings) {
    const std::string& place = finding->module.empty() ? finding->node : finding->module;
    if (!place.empty() && std::find(group.places.begin(), group.places.end(), place) == group.places.end()) {
      group.places.push_back(place);
    }
    if (finding->fixed_by.empty()) continue;
    ++group.fixed;
    group.fixed_by = finding->fixed_by;
  }
  group.findings = std::move(findings);
  return group;
}

}  // namespace

std::string ShortOp(const std::string& op) {
  const size_t dot = op.rfind('.');
  return dot == std::string::npos ? op : op.substr(dot + 1);
}

const char* StateWord(const std::string& state, bool changed) {
  if (state == "fused") return changed ? "fused" : "can be fused";
  if (state == "by_ge") return "by GE";
  return "left";
}

const std::string& PlaceOf(const SiteRecord& site) { return site.module.empty() ? site.node : site.module; }

std::string PlaceOf(const SiteGroup& group) {
  const std::string& first = PlaceOf(*group[0]);
  if (group.size() == 1) return first;
  const std::string place = PlacePattern(first);
  return place == "*" ? fmt::format("{} and {} more", first, group.size() - 1) : place;  // all are numbers
}

std::vector<std::string> NotesOf(const SiteRecord& site) {
  std::vector<std::string> notes;
  if (!site.mask.empty()) notes.push_back(fmt::format("mask {}", site.mask));
  if (site.state == "fused" && !site.precision.empty() && site.precision != "exact") notes.push_back(site.precision);
  return notes;
}

std::vector<std::string> KindsOfSites(const Report& report) {
  std::vector<std::string> kinds = ReportKinds();
  for (const SiteRecord& site : report.sites) AddOnce(site.kind, &kinds);
  std::erase_if(kinds, [&](const std::string& kind) {
    return std::none_of(report.sites.begin(), report.sites.end(), [&](const SiteRecord& site) { return site.kind == kind; });
  });
  return kinds;
}

bool SameReason(const SiteGroup& a, const SiteGroup& b) {
  return std::tie(a[0]->state, a[0]->because, a[0]->source) == std::tie(b[0]->state, b[0]->because, b[0]->source);
}

std::vector<SiteGroup> GroupSites(const Report& report, const std::string& kind, bool each) {
  using Key = std::tuple<std::string, std::string, std::string, std::string, std::string, std::string>;
  std::map<Key, size_t> index;
  std::vector<SiteGroup> groups;
  for (const SiteRecord& site : report.sites) {
    if (site.kind != kind) continue;
    const Key key(site.state, site.emitted_op, fmt::format("{}", fmt::join(NotesOf(site), ", ")), site.because, site.source,
                  PlacePattern(PlaceOf(site)));
    const auto [it, inserted] = index.emplace(key, groups.size());
    if (inserted || each) {
      groups.push_back({&site});
    } else {
      groups[it->second].push_back(&site);
    }
  }
  if (each) return groups;
  std::vector<SiteGroup> sorted;
  for (size_t i = 0; i < groups.size(); ++i) {
    if (groups[i].empty()) continue;
    sorted.push_back(std::move(groups[i]));
    for (size_t k = i + 1; k < groups.size(); ++k) {
      if (groups[k].empty() || !SameReason(groups[k], sorted.back())) continue;
      sorted.push_back(std::move(groups[k]));
      groups[k].clear();
    }
  }
  return sorted;
}

std::vector<std::pair<std::string, size_t>> GroupAssumptions(const Report& report) {
  std::vector<std::pair<std::string, size_t>> sentences;
  for (const SiteRecord& site : report.sites) {
    for (const std::string& sentence : site.assumptions) {
      const auto it =
          std::find_if(sentences.begin(), sentences.end(), [&](const auto& other) { return other.first == sentence; });
      if (it == sentences.end()) {
        sentences.emplace_back(sentence, 1);
      } else {
        ++it->second;
      }
    }
  }
  return sentences;
}

std::vector<std::pair<const NearMissRecord*, size_t>> GroupNearMisses(const Report& report, bool each) {
  using Key = std::tuple<std::string, std::string, std::string, std::string, std::string>;
  std::map<Key, size_t> index;
  std::vector<std::pair<const NearMissRecord*, size_t>> groups;
  for (const NearMissRecord& miss : report.near_misses) {
    const Key key(miss.rule, miss.expected, PlacePattern(miss.found), miss.source,
                  PlacePattern(miss.module.empty() ? miss.node : miss.module));
    const auto [it, inserted] = index.emplace(key, groups.size());
    if (inserted || each) {
      groups.emplace_back(&miss, 1);
    } else {
      ++groups[it->second].second;
    }
  }
  return groups;
}

std::vector<FindingGroup> GroupFindings(const Report& report) {
  std::vector<FindingGroup> all;
  for (const auto& [effect, title] : kEffects) {
    for (const bool certain : {true, false}) {
      // Sentences about single constants differ in their numbers.
      std::map<std::tuple<std::string, std::string, std::string>, std::vector<const FindingRecord*>> groups;
      for (const FindingRecord& finding : report.findings) {
        if (finding.effect != effect || finding.certain != certain) continue;
        groups[{finding.code, finding.op, finding.because}].push_back(&finding);
      }
      for (auto& [key, same] : groups)
        all.push_back(Describe(fmt::format("{}{}", certain ? "" : "possibly ", title), std::move(same)));
    }
  }
  return all;
}

}  // namespace ascend_fuse
