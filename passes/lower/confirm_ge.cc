// Confirm GE: what a pass of GE was said to take has to be there still when all nodes are as ATC reads them. A form that ATC
// reads otherwise is written in other nodes, which that pass does not know. A dim that has to be a number has to be one there:
// what an Ascend node takes for granted of dims, as the report says, ATC does not know.
#include <algorithm>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "fmt/format.h"
#include "passes/core/workspace.h"
#include "passes/lower/passes.h"
#include "patterns/operators/declarations.h"

namespace ascend_fuse {
namespace {

// Whether a rule wrote the form that a pass of GE takes.
bool IsWrittenForGe(const Site& site) { return site.record.state == "by_ge" && !site.lowered_by.empty(); }

// A node that a pass of GE was left to take and that is not there any more; nullptr where all are.
const Node* Rewritten(const Site& site) {
  const auto gone = std::find_if(site.for_ge.begin(), site.for_ge.end(), [](const Node* node) { return node->dead; });
  return gone == site.for_ge.end() ? nullptr : *gone;
}

class Confirmer {
 public:
  explicit Confirmer(Workspace& workspace)
      : workspace_(workspace), library_(workspace.rules(RuleFolder::kLibrary)), matcher_(library_, workspace.Context()) {
    for (const Rule& rule : library_.rules()) rules_.emplace(rule.name, &rule);
  }

  void Run() {
    for (Site& site : workspace_.sites) {
      const Node* const gone = Rewritten(site);
      if ((gone == nullptr && !IsWrittenForGe(site)) || IsFound(site)) continue;
      Lose(gone == nullptr ? std::string("another node reads a part of it")
                           : fmt::format("{} {} is written in another form, which ATC reads", OpType(*gone), Label(*gone)),
           &site);
    }
    ConfirmNumbers();
    for (Site& site : workspace_.sites) {
      const SiteKind* const kind = FindSiteKind(site.record.kind);
      if (site.record.state != "by_ge" || kind == nullptr || kind->sum_before.empty() || !lost_.contains(site.value)) continue;
      site.SetState("left");
      site.Say("sum-not-joined", "the norm after the sum was not fused", site.record.source);
    }
  }

 private:
  void Lose(const std::string& why, Site* site) {
    site->SetState("left");
    site->Say("ge-pass-declines", fmt::format("{}; here {}", site->record.because, why), site->record.source);
    lost_.insert(site->value);
  }

  void ConfirmNumbers() {
    std::vector<Site*> sites;
    for (Site& site : workspace_.sites) {
      if (site.record.state == "by_ge" && site.of_numbers) sites.push_back(&site);
    }
    if (sites.empty()) return;
    Facts written = workspace_.FactsOfNow();
    FunctionContext context = workspace_.Context();
    context.facts = &written;
    context.dims = &written.dims();
    Matcher matcher(library_, context);
    for (Site* site : sites) {
      Failure failure;
      if (matcher.Run(*rules_.at(site->record.rule), site->value, &failure).has_value()) continue;
      Lose(failure.Sentence(), site);
    }
  }

  // Whether the nodes that stand there now are what the pass takes, too.
  bool IsFound(const Site& site) {
    if (IsWrittenForGe(site)) {
      return std::any_of(site.for_ge.begin(), site.for_ge.end(), [&](const Node* node) {
        return !node->dead && std::any_of(rules_.begin(), rules_.end(), [&](const auto& named) {
          return named.second->ge_construct == site.ge_construct && matcher_.Run(*named.second, node->output(0)).has_value();
        });
      });
    }
    const auto rule = rules_.find(site.record.rule);
    return rule == rules_.end() || site.value->producer == nullptr || matcher_.Run(*rule->second, site.value).has_value();
  }

  Workspace& workspace_;
  const RuleSet& library_;
  Matcher matcher_;
  absl::flat_hash_map<std::string_view, const Rule*> rules_;
  absl::flat_hash_set<const Value*> lost_;
};

}  // namespace

absl::Status ConfirmGe(Workspace& workspace) {
  // In most models no pass of GE was left anything to find.
  const bool any = std::any_of(workspace.sites.begin(), workspace.sites.end(), [](const Site& site) {
    return Rewritten(site) != nullptr || (site.record.state == "by_ge" && !site.ge_construct.empty());
  });
  if (any) Confirmer(workspace).Run();
  return absl::OkStatus();
}

}  // namespace ascend_fuse
