// A rule run backwards: each graph goes through recognise, lower and expand, and what came of it is written as a record.
#include "tools/backwards/run.h"

#include <algorithm>
#include <cstdio>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "fmt/format.h"
#include "fmt/ranges.h"
#include "ir/onnx/load.h"
#include "ir/onnx/save.h"
#include "ir/status_macros.h"
#include "ir/text/json_string.h"
#include "passes/core/pass.h"
#include "passes/core/workspace.h"
#include "passes/optimize.h"
#include "passes/optimize_passes.h"
#include "patterns/operators/declarations.h"
#include "tools/backwards/generator.h"

namespace ascend_fuse::backwards {
namespace {

std::string Quote(const std::string& text) { return JsonString(text); }

std::string Quote(const std::vector<std::string>& texts) {
  std::vector<std::string> quoted;
  for (const std::string& text : texts) quoted.push_back(Quote(text));
  return fmt::format("[{}]", fmt::join(quoted, ", "));
}

std::string Quote(const std::map<std::string, int>& counts) {
  std::vector<std::string> entries;
  for (const auto& [name, count] : counts) entries.push_back(fmt::format("{}: {}", Quote(name), count));
  return fmt::format("{{{}}}", fmt::join(entries, ", "));
}

struct Site {
  std::string rule;
  std::string kind;
  std::string output;
  std::string state;
  std::string lowered_by;
  std::string because;
};

struct Outcome {
  std::string error;       // a pass said no: never on a valid model
  std::string recognised;  // the model with standard operators, "" if no recogniser changed it
  std::string expanded;    // "" if nothing was fused
  std::string unexpanded;  // why a fused graph was not expanded: a node of the user's that no reference rule knows
  std::vector<Site> sites;
  std::vector<std::string> assumptions;
};

bool IsFused(const Outcome& outcome) { return !outcome.expanded.empty() || !outcome.unexpanded.empty(); }

absl::StatusOr<std::string> Expanded(const std::string& bytes, const RunOptions& run) {
  ASSIGN_OR_RETURN(auto model, LoadModelFromBytes(bytes));
  ExpandOptions options;
  options.rule_files = run.rule_files;
  RETURN_IF_ERROR(Expand(model.get(), options));
  return SaveModelToBytes(*model);
}

Outcome RunBothWays(const std::string& bytes, const Target& target, const RunOptions& run) {
  Outcome outcome;
  auto fail = [&outcome](const std::string& what, const absl::Status& status) {
    outcome.error = what + ": " + std::string(status.message());
    return outcome;
  };
  auto model = LoadModelFromBytes(bytes);
  if (!model.ok()) return fail("load", model.status());
  WorkspaceOptions options;
  options.rule_files = run.rule_files;
  options.keep_rest = true;  // what the rule makes is compared, not the rest
  auto workspace = Workspace::Create(model->get(), &target, options);
  if (!workspace.ok()) return fail("create", workspace.status());
  const std::vector<Pass> passes = OptimizePasses();
  const auto lower = std::find_if(passes.begin(), passes.end(), [](const Pass& pass) { return pass.name == "lower"; });
  if (absl::Status status = ascend_fuse::RunPasses({passes.begin(), lower}, **workspace); !status.ok()) {
    return fail("recognise", status);
  }
  auto recognised = SaveModelToBytes(**model);
  if (!recognised.ok()) return fail("save", recognised.status());
  if (*recognised != bytes) outcome.recognised = *recognised;
  if (absl::Status status = ascend_fuse::RunPasses({lower, passes.end()}, **workspace); !status.ok()) {
    return fail("lower", status);
  }
  for (const ascend_fuse::Site& site : (*workspace)->sites) {
    const SiteRecord& record = site.record;
    outcome.sites.push_back(
        {record.rule, record.kind, std::string(ValueName(*site.value)), record.state, site.lowered_by, record.because});
    for (const std::string& sentence : record.assumptions) outcome.assumptions.push_back(sentence);
  }
  auto optimized = SaveModelToBytes(**model);
  if (!optimized.ok()) return fail("save", optimized.status());
  if (*optimized == bytes) return outcome;
  auto expanded = Expanded(*optimized, run);
  if (absl::IsFailedPrecondition(expanded.status()) && !run.rule_files.empty()) {
    outcome.unexpanded = std::string(expanded.status().message());
    return outcome;
  }
  if (!expanded.ok()) return fail("expand", expanded.status());
  outcome.expanded = *expanded;
  return outcome;
}

struct NamedTarget {
  std::string name;
  Target target;
};

// Every chip with and without our plugin, in ATC's default precision mode and in the one that keeps every type;
// combinations that do not exist are left out, and those without the nodes that the rule emits, unless that is all.
std::vector<NamedTarget> Targets(const Rule& rule, const RunOptions& run) {
  std::vector<NamedTarget> targets;
  if (run.target.has_value()) {
    if (auto target = Target::Load(*run.target); target.ok()) targets.push_back({run.target->chip, *std::move(target)});
    return targets;
  }
  for (const char* mode : {"force_fp16", "must_keep_origin_dtype"}) {
    for (const std::string& chip : Target::Chips()) {
      for (const std::string& cann : Target::CannVersions()) {
        for (bool plugin : {false, true}) {
          TargetOptions options;
          options.chip = chip;
          options.cann = cann;
          options.plugin = plugin;
          options.precision_mode = mode;
          auto target = Target::Load(options);
          if (!target.ok()) continue;
          targets.push_back({fmt::format("{} {}{} {}", chip, cann, plugin ? " plugin" : "", mode), *std::move(target)});
        }
      }
    }
  }
  const auto able = std::stable_partition(targets.begin(), targets.end(), [&rule](const NamedTarget& target) {
    return std::all_of(rule.nodes.begin(), rule.nodes.end(),
                       [&target](const std::string& op) { return target.target.HasNode(op); });
  });
  if (able != targets.begin()) targets.erase(able, targets.end());
  // The commonest first.
  std::stable_sort(targets.begin(), targets.end(), [](const NamedTarget& a, const NamedTarget& b) {
    const auto common = [](const NamedTarget& target) {
      return target.name.rfind("ascend910b", 0) == 0 && target.name.find("force_fp16") != std::string::npos;
    };
    return common(a) > common(b);
  });
  return targets;
}

class Run {
 public:
  Run(const RunOptions& options, const RuleSet& library, const RuleSet& rules, const Rule& rule, bool lowering)
      : options_(options),
        generator_(library),
        rules_(rules),
        rule_(rule),
        lowering_(lowering),
        random_(0),
        targets_(Targets(rule, options)) {
    uint64_t hash = 1469598103934665603ULL;  // FNV: the same on every machine
    for (const char c : rule.name) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211ULL;
    random_ = Random(options.seed * 1000003 + hash);
    coverage_.unreached = options.unreached;
  }

  void All() {
    const int most = 2000 + 100 * options_.count;
    int tries = 0;
    for (; tries < most; ++tries) {
      // Alternatives that nothing covered yet get a longer look.
      if (matched_ >= options_.count && (Uncovered().empty() || tries >= 2000 + 20 * options_.count)) break;
      if (matched_ >= 200 + 4 * options_.count || built_ >= 300 + 6 * options_.count) break;
      if (lowering_ && matched_ == 0 && built_ >= 150) break;  // no target takes it
      One();
    }
    Summary(tries);
  }

 private:
  // A site ends before copies.
  bool IsSite(const Site& site, const Specimen& specimen) const {
    std::string output = specimen.outputs[0];
    while (site.output != output) {
      const auto& nodes = specimen.model.graph().node();
      const auto node = std::find_if(nodes.begin(), nodes.end(), [&](const onnx::NodeProto& node) {
        return node.output_size() > 0 && node.output(0) == output;
      });
      if (node == nodes.end() || (node->op_type() != "Cast" && node->op_type() != "Identity")) return false;
      const auto before = specimen.values.find(node->input(0)), behind = specimen.values.find(output);
      if (before == specimen.values.end() || behind == specimen.values.end() || before->second.type != behind->second.type) {
        return false;
      }
      output = node->input(0);
    }
    return true;
  }

  bool Matches(const Outcome& outcome, const Specimen& specimen, std::string* other) const {
    for (const Site& site : outcome.sites) {
      if (!IsSite(site, specimen)) continue;
      if (lowering_ ? site.lowered_by == rule_.name : site.rule == rule_.name) return true;
    }
    for (const Site& site : outcome.sites) {
      if (!IsSite(site, specimen)) continue;
      const std::string& by = lowering_ ? site.lowered_by : site.rule;
      if (!by.empty() && other->empty()) *other = by;
    }
    return false;
  }

  // A lowering is looked for on every target, a recogniser's node preferably on one that takes it.
  Outcome OnSomeTarget(const std::string& bytes, const Specimen& specimen, std::string* other) {
    Outcome first;
    // All targets for the first graphs and for some with an alternative that no target took yet, otherwise the one that
    // took the last graph and another one.
    bool all = built_ <= 8;
    for (const auto& [key, option] : specimen.choices) {
      all = all || (built_ <= 40 && key.find(kMade) == std::string::npos &&
                    coverage_.choices[key][static_cast<size_t>(option)].matched == 0);
    }
    for (size_t i = 0; i < (all ? targets_.size() : 2); ++i) {
      const size_t index = i == 0 ? preferred_
                           : !all ? static_cast<size_t>(random_.Below(static_cast<int>(targets_.size())))
                                  : (i <= preferred_ ? i - 1 : i);
      Outcome outcome = RunBothWays(bytes, targets_[index].target, options_);
      if (!outcome.error.empty()) return outcome;
      std::string by;
      const bool matched = Matches(outcome, specimen, &by);
      const bool fused = IsFused(outcome);
      if (matched && (fused || rule_.emit.empty())) {
        preferred_ = index;
        target_ = index;
        return outcome;
      }
      if (i == 0) {
        first = std::move(outcome);
        target_ = index;
        *other = by;
        if (!lowering_ && !matched) break;  // recognition does not depend on the target
        if (!lowering_ && never_fused_ > 12) break;
      }
    }
    if (!lowering_) ++never_fused_;
    return first;
  }

  void One() {
    std::string why;
    std::optional<Specimen> specimen = generator_.Generate(rules_, rule_, &random_, &coverage_, &why);
    if (!specimen.has_value()) {
      ++unbuilt_[why];
      return;
    }
    ++built_;
    const std::string bytes = specimen->model.SerializeAsString();
    const std::string name = fmt::format("{} seed {} graph {}", rule_.name, options_.seed, built_);
    if (options_.trace) fmt::print(stderr, "{}\n", name);
    std::string other;
    Outcome outcome = OnSomeTarget(bytes, *specimen, &other);
    if (!outcome.error.empty()) {
      Record("error", name, outcome, bytes, *specimen);
      return;
    }
    if (!Matches(outcome, *specimen, &other)) {
      if (other.empty()) {
        ++missed_;
        if (misses_.size() < 5) {
          std::string reason = "no site";
          for (const Site& site : outcome.sites) {
            if (IsSite(site, *specimen)) reason = fmt::format("{} by {}: {}", site.state, site.rule, site.because);
          }
          misses_.push_back(fmt::format("{}: {}", name, reason));
          Record("missed", name, outcome, bytes, *specimen);
        }
      } else {
        ++by_other_[other];
        Record("positive", name, outcome, bytes, *specimen);
      }
      return;
    }
    ++matched_;
    bool news = false;
    for (const auto& [key, option] : specimen->choices) {
      news = coverage_.choices[key][static_cast<size_t>(option)].matched++ == 0 || news;
    }
    for (const Site& site : outcome.sites) {
      if (IsSite(site, *specimen)) ++states_[site.state];
    }
    if (IsFused(outcome)) ++fused_on_[targets_[target_].name];
    // More of the same says little.
    if (matched_ > 2 * options_.count && !news) return;
    Record("positive", name, outcome, bytes, *specimen);
    if (matched_ > 2 * options_.count) return;
    if (!options_.plain && random_.Chance(60)) {
      Specimen noisy = *specimen;
      const std::vector<std::string> kinds = AddNoise(&noisy, &random_, 1 + random_.Below(3));
      if (!kinds.empty()) {
        const std::string noisy_bytes = noisy.model.SerializeAsString();
        const Outcome through = RunBothWays(noisy_bytes, targets_[target_].target, options_);
        std::string by;
        const bool seen = Matches(through, noisy, &by) || !by.empty();
        const std::string noisy_name = fmt::format("{} with {}", name, fmt::join(kinds, ", "));
        for (const std::string& kind : kinds) ++noise_[kind];
        if (!through.error.empty()) {
          Record("error", noisy_name, through, noisy_bytes, noisy);
        } else {
          if (!seen) {
            if (kinds.size() == 1) ++noise_lost_[kinds[0]];
            if (kinds.size() > 1) ++noise_lost_["several"];
          }
          Record(seen ? "noisy" : "noise_lost", noisy_name, through, noisy_bytes, noisy);
        }
        if (seen && random_.Chance(50)) specimen = std::move(noisy);
      }
    }
    Mutants(*specimen, name);
  }

  void Mutants(const Specimen& specimen, const std::string& name) {
    if (options_.mutants == 0) return;
    std::vector<Mutant> mutants = Mutate(specimen, &random_);
    for (int n = 0; n < options_.mutants && !mutants.empty(); ++n) {
      const size_t index = static_cast<size_t>(random_.Below(static_cast<int>(mutants.size())));
      Mutant mutant = std::move(mutants[index]);
      mutants.erase(mutants.begin() + static_cast<std::ptrdiff_t>(index));
      if (random_.Chance(50)) {
        for (auto& output : *mutant.model.mutable_graph()->mutable_output()) {
          output.mutable_type()->mutable_tensor_type()->clear_shape();
        }
      }
      const std::string bytes = mutant.model.SerializeAsString();
      const std::string mutant_name = fmt::format("{}, {}", name, mutant.description);
      if (options_.trace) fmt::print(stderr, "{}\n", mutant_name);
      const Outcome outcome = RunBothWays(bytes, targets_[target_].target, options_);
      ++mutants_;
      if (!outcome.error.empty()) {
        Record("mutant_error", mutant_name, outcome, bytes, specimen);
        continue;
      }
      if (outcome.recognised.empty()) {
        ++refused_;
        continue;
      }
      ++accepted_;
      Record("mutant", mutant_name, outcome, bytes, specimen);
    }
  }

  void Record(const std::string& kind, const std::string& name, const Outcome& outcome, const std::string& bytes,
              const Specimen& specimen) {
    std::vector<std::string> bindings;
    for (const auto& binding : specimen.bindings) {
      std::vector<std::string> entries;
      for (const auto& [symbol, number] : binding) entries.push_back(fmt::format("{}: {}", Quote(symbol), number));
      bindings.push_back(fmt::format("{{{}}}", fmt::join(entries, ", ")));
    }
    std::vector<std::string> sites;
    for (const Site& site : outcome.sites) {
      sites.push_back(fmt::format("{} {} {} {} {}", site.state, site.kind, site.rule, site.lowered_by, site.output));
    }
    fmt::print(
        "{{\"record\": {}, \"name\": {}, \"rule\": {}, \"kind\": {}, \"target\": {}, \"error\": {}, \"unexpanded\": {}, "
        "\"bindings\": [{}], \"sites\": {}, "
        "\"assumptions\": {}, \"sizes\": [{}, {}, {}]}}\n",
        Quote(kind), Quote(name), Quote(rule_.name), Quote(rule_.kind), Quote(targets_[target_].name), Quote(outcome.error),
        Quote(outcome.unexpanded), fmt::join(bindings, ", "), Quote(sites), Quote(outcome.assumptions), bytes.size(),
        outcome.recognised.size(), outcome.expanded.size());
    for (const std::string* part : {&bytes, &outcome.recognised, &outcome.expanded}) {
      std::fwrite(part->data(), 1, part->size(), stdout);
    }
    std::fputc('\n', stdout);
  }

  // known: with those that are known not to be reached
  std::vector<std::string> Uncovered(bool known = false) const {
    std::vector<std::string> list;
    for (const auto& [key, options] : coverage_.choices) {
      if (key.find(kMade) != std::string::npos) continue;  // of another rule
      for (const auto& option : options) {
        if (option.matched == 0 && !(option.unreached && !known)) list.push_back(fmt::format("{}: {}", key, option.name));
      }
    }
    return list;
  }

  void Summary(int tries) const {
    int choices = 0;
    for (const auto& [key, options] : coverage_.choices) {
      if (key.find(kMade) == std::string::npos) choices += static_cast<int>(options.size());
    }
    fmt::print(
        "{{\"record\": \"summary\", \"rule\": {}, \"lowering\": {}, \"tries\": {}, \"built\": {}, \"matched\": {}, \"missed\": "
        "{}, "
        "\"by_other\": {}, \"misses\": {}, \"unbuilt\": {}, \"choices\": {}, \"uncovered\": {}, \"states\": {}, "
        "\"fused_on\": {}, \"noise\": {}, \"noise_lost\": {}, \"mutants\": {}, \"refused\": {}, \"accepted\": {}, "
        "\"sizes\": []}}\n\n",
        Quote(rule_.name), lowering_, tries, built_, matched_, missed_, Quote(by_other_), Quote(misses_), Quote(unbuilt_),
        choices, Quote(Uncovered(true)), Quote(states_), Quote(fused_on_), Quote(noise_), Quote(noise_lost_), mutants_, refused_,
        accepted_);
  }

  const RunOptions& options_;
  Generator generator_;
  const RuleSet& rules_;
  const Rule& rule_;
  bool lowering_;
  Random random_;
  std::vector<NamedTarget> targets_;
  size_t preferred_ = 0;
  size_t target_ = 0;
  int never_fused_ = 0;
  Coverage coverage_;
  int built_ = 0;
  int matched_ = 0;
  int missed_ = 0;
  int mutants_ = 0;
  int refused_ = 0;
  int accepted_ = 0;
  std::vector<std::string> misses_;
  std::map<std::string, int> unbuilt_;
  std::map<std::string, int> by_other_;
  std::map<std::string, int> states_;
  std::map<std::string, int> fused_on_;
  std::map<std::string, int> noise_;
  std::map<std::string, int> noise_lost_;
};

}  // namespace

absl::Status RunRule(const RunOptions& options, const std::string& name) {
  if (options.target.has_value()) {
    if (const auto target = Target::Load(*options.target); !target.ok()) return target.status();
  }
  ASSIGN_OR_RETURN(auto library, RuleSet::Load(RuleFolder::kLibrary, options.rule_files));
  ASSIGN_OR_RETURN(auto npu, RuleSet::Load(RuleFolder::kNpu, options.rule_files));
  for (const RuleSet* rules : {library.get(), npu.get()}) {
    for (const Rule& rule : rules->rules()) {
      if (rule.name != name) continue;
      Run(options, *library, *rules, rule, rules == npu.get()).All();
      return absl::OkStatus();
    }
  }
  return absl::NotFoundError(fmt::format("no recogniser or lowering is called {}", name));
}

absl::StatusOr<std::vector<std::string>> RulesOf(const RunOptions& options) {
  ASSIGN_OR_RETURN(const auto user, UserRules::Parse(options.rule_files));
  std::vector<std::string> names;
  for (const RuleFolder folder : {RuleFolder::kLibrary, RuleFolder::kNpu, RuleFolder::kReference}) {
    ASSIGN_OR_RETURN(const auto rules, RuleSet::Load(folder, user));
    if (folder == RuleFolder::kReference) continue;  // only checked
    for (const RuleText& text : user.texts()) {
      for (const Rule& rule : text.rules) {
        const bool here = std::any_of(rules->rules().begin(), rules->rules().end(),
                                      [&](const Rule& loaded) { return loaded.name == rule.name && !rule.emit.empty(); });
        if (here) names.push_back(rule.name);
      }
    }
  }
  return names;
}

}  // namespace ascend_fuse::backwards
