#include "passes/core/run_until_known.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "absl/strings/ascii.h"
#include "ir/status_macros.h"
#include "passes/core/learned_dims.h"

namespace ascend_fuse {
namespace {

// What sites take for granted, by kind and node.
struct Assumption {
  bool is_left = false;
  std::vector<std::string> sentences;
};
using Assumed = std::map<std::pair<std::string, std::string>, Assumption>;

bool IsLeft(const Site& site) { return site.record.state == "left"; }

void AddAssumed(const std::vector<Site>& sites, Assumed* assumed) {
  for (const Site& site : sites) {
    if (site.record.assumptions.empty()) continue;
    (*assumed)[{site.record.kind, site.record.node}] = {IsLeft(site), site.record.assumptions};
  }
}

// The sentence without the numbers of names that inference made up (x_d0'1): they are counted anew in each run.
std::string WithoutCounts(std::string_view sentence) {
  std::string text;
  bool counts = false;
  for (const char c : sentence) {
    counts = c == '\'' || (counts && absl::ascii_isdigit(static_cast<unsigned char>(c)));
    if (!counts) text.push_back(c);
  }
  return text;
}

// What of `sentences` a site does not say yet.
void SayOnce(const std::vector<std::string>& sentences, std::vector<std::string>* said) {
  std::set<std::string> known;
  for (const std::string& sentence : *said) known.insert(WithoutCounts(sentence));
  for (const std::string& sentence : sentences) {
    if (known.insert(WithoutCounts(sentence)).second) said->push_back(sentence);
  }
}

// What an earlier run took for granted and this one was told: each of these sites says it again. False where one is not
// fused any more, so that what was learned of it is not known.
bool SayAgain(Assumed assumed, std::vector<Site>* sites) {
  for (Site& site : *sites) {
    const auto entry = assumed.find({site.record.kind, site.record.node});
    if (entry == assumed.end() || (IsLeft(site) && !entry->second.is_left)) continue;
    SayOnce(entry->second.sentences, &site.record.assumptions);
    assumed.erase(entry);
  }
  return assumed.empty();
}

// What is known of dims at the end. Of operators of ONNX Runtime more is known than of what they were written in, and of a loop
// more where nodes of its body were fused; who reads that was not inferred anew.
KnownDims KnownAtTheEnd(Workspace& workspace) {
  const bool more_is_known = !workspace.result.decomposed.empty() || workspace.model().graphs().size() > 1;
  if (!more_is_known || std::none_of(workspace.sites.begin(), workspace.sites.end(), IsLeft)) {
    return KnownDimsOf(workspace.model(), workspace.facts());
  }
  Facts facts = workspace.FactsOfNow();
  return KnownDimsOf(workspace.model(), facts);
}

}  // namespace

absl::Status RunUntilKnown(Model* model, const Target& target, const std::vector<Pass>& passes, WorkspaceOptions options,
                           const RunOptions& run, std::unique_ptr<Workspace>* workspace) {
  constexpr int kMostRuns = 3;
  Assumed assumed;
  for (int runs = 1;; ++runs) {
    ASSIGN_OR_RETURN(*workspace, Workspace::Create(model, &target, options));
    Workspace& now = **workspace;
    RETURN_IF_ERROR(RunPasses(passes, now, run));
    const bool stands = SayAgain(assumed, &now.sites);
    std::vector<LearnedDim> learned = LearnedSince(now.known_of_sites, KnownAtTheEnd(now));
    if (stands && (learned.empty() || runs >= kMostRuns)) return absl::OkStatus();
    AddAssumed(now.sites, &assumed);
    now.TakeEverythingBack();
    std::move(learned.begin(), learned.end(), std::back_inserter(options.infer.learned_dims));
    if (stands) continue;
    // The last run is one to which nothing is told.
    options.infer.learned_dims.clear();
    assumed.clear();
    runs = kMostRuns - 1;
  }
}

}  // namespace ascend_fuse
