#include "passes/analyze/compare_reports.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "fmt/format.h"
#include "google/protobuf/util/json_util.h"
#include "ir/status_macros.h"
#include "passes/check/atc_check.h"
#include "passes/report/number_text.h"
#include "passes/report/place_pattern.h"
#include "passes/report/report.h"
#include "proto/analysis.pb.h"

namespace ascend_fuse {
namespace {

// Numbers of a model differ in the last digits where nothing changed.
constexpr double kSameWithin = 0.01;

struct Kept {
  Report report;
  std::optional<proto::Analysis> analysis;
};

// An analysis has a report in it; a report has none.
absl::StatusOr<Kept> Read(const std::string& json) {
  google::protobuf::util::JsonParseOptions options;
  options.ignore_unknown_fields = true;
  proto::Analysis analysis;
  const bool is_analysis = google::protobuf::util::JsonStringToMessage(json, &analysis, options).ok() && analysis.has_report();
  if (!is_analysis) {
    ASSIGN_OR_RETURN(Report report, ReportFromJson(json));
    return Kept{std::move(report), std::nullopt};
  }
  std::string of_report;
  google::protobuf::util::JsonPrintOptions printed;
  printed.preserve_proto_field_names = true;
  (void)google::protobuf::util::MessageToJsonString(analysis.report(), &of_report, printed);
  ASSIGN_OR_RETURN(Report report, ReportFromJson(of_report));
  return Kept{std::move(report), std::move(analysis)};
}

// A construct by what it computes: names of values outlast a rewriting, and mostly an export.
using SiteKey = std::pair<std::string, std::string>;
SiteKey KeyOf(const SiteRecord& site) { return {site.kind, site.outputs.empty() ? site.node : site.outputs[0]}; }
std::string PlaceOf(const std::string& module, const std::string& node) { return PlacePattern(module.empty() ? node : module); }

class Comparer {
 public:
  Comparer(const Kept& kept, const Kept& now) : kept_(kept), now_(now) {}

  ReportChanges Run() {
    CompareTargets();
    CompareSites();
    CompareFindings();
    if (kept_.analysis.has_value() && now_.analysis.has_value()) CompareNumbers(*kept_.analysis, *now_.analysis);
    return std::move(changes_);
  }

 private:
  void CompareTargets() {
    const ReportTarget& was = kept_.report.target;
    const ReportTarget& is = now_.report.target;
    if (was.chip == is.chip && was.cann == is.cann && was.plugin == is.plugin) return;
    const auto name = [](const ReportTarget& target) {
      return fmt::format("{}, CANN {}{}", target.chip, target.cann, target.plugin ? ", with the op plugin" : "");
    };
    targets_ = fmt::format(" (of {} before, of {} now)", name(was), name(is));
  }

  // Sites by what became of them, those of all layers together.
  void CompareSites() {
    std::map<SiteKey, const SiteRecord*> before, after;
    for (const SiteRecord& site : kept_.report.sites) before[KeyOf(site)] = &site;
    for (const SiteRecord& site : now_.report.sites) after[KeyOf(site)] = &site;
    std::map<std::tuple<std::string, std::string, std::string>, int64_t> lost, gained, gone, added;
    for (const auto& [key, site] : before) {
      const auto found = after.find(key);
      const std::string place = PlaceOf(site->module, site->node);
      if (found == after.end()) {
        if (site->state != "left") ++gone[{site->kind, place, ""}];
      } else if (site->state != "left" && found->second->state == "left") {
        ++lost[{site->kind, place, found->second->because}];
      } else if (site->state == "left" && found->second->state != "left") {
        ++gained[{site->kind, place, found->second->emitted_op}];
      }
    }
    for (const auto& [key, site] : after) {
      if (!before.contains(key) && site->state != "left") ++added[{site->kind, PlaceOf(site->module, site->node), ""}];
    }
    for (const auto& [key, count] : lost) {
      const auto& [kind, place, because] = key;
      changes_.worse.push_back(fmt::format("{} x {} {} was fused and is left{}: {}", count, kind, place, targets_, because));
    }
    for (const auto& [key, count] : gained) {
      const auto& [kind, place, op] = key;
      changes_.better.push_back(
          fmt::format("{} x {} {} was left and is fused{}{}", count, kind, place, op.empty() ? "" : " as ", op));
    }
    CompareCounts(gone, added);
  }

  // A model that was exported anew has other names: then numbers tell.
  void CompareCounts(const std::map<std::tuple<std::string, std::string, std::string>, int64_t>& gone,
                     const std::map<std::tuple<std::string, std::string, std::string>, int64_t>& added) {
    std::map<std::string, int64_t> difference;
    std::map<std::string, std::string> places;
    for (const auto& [key, count] : gone) {
      difference[std::get<0>(key)] -= count;
      places[std::get<0>(key)] = std::get<1>(key);
    }
    for (const auto& [key, count] : added) difference[std::get<0>(key)] += count;
    for (const auto& [kind, count] : difference) {
      if (count < 0)
        changes_.worse.push_back(fmt::format("{} x {} that was fused is not there now, {}", -count, kind, places[kind]));
      if (count > 0) changes_.better.push_back(fmt::format("{} x {} more is fused", count, kind));
    }
  }

  void CompareFindings() {
    using Key = std::tuple<std::string, std::string, std::string>;
    const auto fatal = [](const Report& report) {
      std::map<Key, std::pair<int64_t, const FindingRecord*>> findings;
      for (const FindingRecord& finding : report.findings) {
        if (!IsFatal(finding) || finding.fixed_by == "optimize") continue;
        auto& [count, first] = findings[{finding.code, finding.op, finding.effect}];
        ++count;
        if (first == nullptr) first = &finding;
      }
      return findings;
    };
    const auto before = fatal(kept_.report), after = fatal(now_.report);
    for (const auto& [key, of] : after) {
      const auto was = before.find(key);
      const int64_t count = was == before.end() ? 0 : was->second.first;
      if (of.first <= count) continue;
      changes_.worse.push_back(fmt::format("ATC rejects or misreads {} more {} ({}), {}: {}", of.first - count, of.second->op,
                                           of.second->code, of.second->node, of.second->because));
    }
    for (const auto& [key, of] : before) {
      const auto is = after.find(key);
      const int64_t count = is == after.end() ? 0 : is->second.first;
      if (of.first > count) {
        changes_.better.push_back(
            fmt::format("ATC rejects or misreads {} {} less ({})", of.first - count, of.second->op, of.second->code));
      }
    }
  }

  void CompareNumbers(const proto::Analysis& was, const proto::Analysis& is) {
    Compare("kernels", static_cast<double>(was.after().kernels()), static_cast<double>(is.after().kernels()), &ShortNumber);
    Compare("nodes on the AI CPU", was.after().ai_cpu(), is.after().ai_cpu(), &ShortNumber);
    Compare("nodes on the host", was.after().host(), is.after().host(), &ShortNumber);
    Compare("FLOPs", was.after().flops().value(), is.after().flops().value(), &ShortNumber);
    Compare("bytes moved", was.after().bytes().value(), is.after().bytes().value(), &ShortBytes);
    Compare("bytes of weights", was.memory().weights(), is.memory().weights(), &ShortBytes);
    Compare("the peak of activations", was.memory().after().peak().value(), is.memory().after().peak().value(), &ShortBytes);
    const auto rank = [](const std::string& level) { return level == "high" ? 2 : level == "medium" ? 1 : 0; };
    const int before = rank(was.complexity().level()), after = rank(is.complexity().level());
    if (before != after) {
      Say(after > before, fmt::format("the migration was {} and is {}", was.complexity().level(), is.complexity().level()));
    }
  }

  void Compare(const char* what, double was, double is, std::string (*text)(double)) {
    const double most = std::max(was, is);
    if (most <= 0 || std::abs(is - was) <= most * kSameWithin) return;
    const auto plain = [&](double value) {
      std::string number = text(value);
      number.erase(number.find_last_not_of(' ') + 1);
      return number;
    };
    Say(is > was, fmt::format("{}: {} before, {} now", what, plain(was), plain(is)));
  }

  void Say(bool worse, std::string sentence) { (worse ? changes_.worse : changes_.better).push_back(std::move(sentence)); }

  const Kept& kept_;
  const Kept& now_;
  std::string targets_;
  ReportChanges changes_;
};

}  // namespace

absl::StatusOr<ReportChanges> CompareReports(const std::string& kept, const std::string& now) {
  ASSIGN_OR_RETURN(const Kept before, Read(kept));
  ASSIGN_OR_RETURN(const Kept after, Read(now));
  return Comparer(before, after).Run();
}

std::string ChangesToText(const ReportChanges& changes) {
  std::string text;
  for (const std::string& sentence : changes.worse) text += fmt::format("worse   {}\n", sentence);
  for (const std::string& sentence : changes.better) text += fmt::format("better  {}\n", sentence);
  return text.empty() ? "nothing got worse or better\n" : text;
}

}  // namespace ascend_fuse
