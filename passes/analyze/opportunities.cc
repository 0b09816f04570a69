#include "passes/analyze/opportunities.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "fmt/format.h"
#include "passes/analyze/wins.h"
#include "passes/report/report_groups.h"
#include "patterns/codes.h"

namespace ascend_fuse {
namespace {

// Why a value takes less time, which `is` computes where `was` did.
std::string WhyFaster(const MeasuredNode& was, const MeasuredNode& is) {
  if (was.engine == "ai_cpu") return fmt::format("{} ran on the AI CPU", was.op);
  if (was.engine == "host") return fmt::format("{} ran on the host", was.op);
  if (is.engine == "folded") return fmt::format("what {} reads is constant now: it is computed once, by ATC", was.op);
  if (is.engine == "host") return fmt::format("{} is computed of shapes, before the kernels run", was.op);
  if (was.op == is.op) return fmt::format("{} was in a form that is slower", was.op);
  return fmt::format("{} is slower", was.op);
}

class Finder {
 public:
  explicit Finder(const OpportunityInput& input)
      : input_(input), before_(input.before), after_(input.after), places_before_(before_), places_after_(after_) {
    for (const MeasuredNode& node : before_.nodes) whole_ += node.time.middle;
    claimed_before_.resize(before_.nodes.size());
    claimed_after_.resize(after_.nodes.size());
    readers_after_.resize(after_.nodes.size());
    for (size_t i = 0; i < after_.nodes.size(); ++i) {
      for (const int input : after_.nodes[i].inputs) readers_after_[static_cast<size_t>(input)].push_back(static_cast<int>(i));
    }
  }

  std::vector<OpportunityRecord> Run() {
    // Larger constructs first: a node counts for one only.
    const auto rank = [](const SiteRecord& site) {
      return site.kind == "attention" ? 0 : site.kind == "linear_activation" ? 3 : site.kind == "add_norm" ? 2 : 1;
    };
    for (int of = 0; of < 4; ++of) {
      for (const SiteRecord& site : input_.report.sites) {
        if (rank(site) == of) AddSite(site);
      }
    }
    AddRewritten();
    AddRest();
    AddAffines(after_, &claimed_after_, &wins_);
    AddNearMisses();
    AddChains(after_, claimed_after_, input_.model, &wins_);
    AddProjections(after_, input_.model, &wins_);
    return wins_.Finish(whole_);
  }

 private:
  static Win Less(const Win& a, const Win& b) { return {a.time - b.time, a.kernels - b.kernels, a.bytes - b.bytes}; }

  std::string WayOf(const SiteRecord& site) const {
    if (!site.outputs.empty() && input_.by_plugin.contains(site.kind + " " + site.outputs[0])) {
      return "--plugin, with our op plugin installed where atc runs";
    }
    const Code* code = FindCode(site.code);
    return code != nullptr ? code->way_out : "";
  }

  void AddSite(const SiteRecord& site) {
    OpportunityRecord record;
    record.kind = site.kind;
    record.state = site.state;
    record.emitted_op = site.emitted_op;
    record.because = site.because;
    record.code = site.code;
    record.source = site.source;
    const std::vector<int> members = MembersOf(site, places_before_);
    Win win;
    if (site.state == "fused") {
      std::vector<int> made;
      for (const std::string& output : site.outputs) {
        const int place = places_after_.OfOutput(output);
        if (place >= 0) made.push_back(place);
      }
      win = Less(Take(before_, members, &claimed_before_), Take(after_, Maker(made), &claimed_after_));
    } else if (site.state == "left") {
      record.way = WayOf(site);
      std::vector<int> there = MembersOf(site, places_after_);
      const bool attention = site.kind == "attention";
      if (there.empty() && !site.outputs.empty()) there = {places_after_.OfOutput(site.outputs[0])};
      std::erase(there, -1);
      // An activation that a linear would take along is a kernel less.
      win = IfJoined(after_, there, attention ? WorkKind::kAttention : WorkKind::kNone, input_.model);
      if (site.kind == "linear_activation" && there.size() == 1) {
        win = Win();
        win.Add(after_.nodes[static_cast<size_t>(there[0])]);
      }
      // What was measured slower there wins nothing.
      if (site.code == "measured-slower") win = Win();
      for (const int place : there) claimed_after_[static_cast<size_t>(place)] = true;
    } else {
      for (const int place : MembersOf(site, places_after_)) claimed_after_[static_cast<size_t>(place)] = true;
    }
    wins_.Add(std::move(record), PlaceOf(site), site.node, win);
  }

  // With the Ascend nodes that a Cast, a Reshape or a Transpose follows.
  std::vector<int> Maker(std::vector<int> made) const {
    for (size_t i = 0; i < made.size() && i < 8; ++i) {
      const MeasuredNode& node = after_.nodes[static_cast<size_t>(made[i])];
      if (!node.is_new || node.op.starts_with("npu.")) continue;
      for (const int input : node.inputs) {
        const bool known = std::find(made.begin(), made.end(), input) != made.end();
        if (!known && after_.nodes[static_cast<size_t>(input)].is_new) made.push_back(input);
      }
    }
    return made;
  }

  // Nodes that another operator computes the same value now, and faster: forms that no kernel of the AI Core takes, most of all.
  void AddRewritten() {
    for (size_t i = 0; i < before_.nodes.size(); ++i) {
      const MeasuredNode& was = before_.nodes[i];
      const int place = was.outputs.empty() ? -1 : places_after_.OfOutput(was.outputs[0]);
      if (place < 0 || claimed_before_[i]) continue;
      const MeasuredNode& is = after_.nodes[static_cast<size_t>(place)];
      if ((was.op == is.op && was.engine == is.engine) || was.time.middle <= is.time.middle) continue;
      OpportunityRecord record;
      record.kind = "rewritten";
      record.state = "fused";
      record.emitted_op = is.op;
      record.because = WhyFaster(was, is);
      if (is.engine == "folded" || is.engine == "host") record.emitted_op.clear();
      Win now;  // also of a site that is left: what it would win counts from there
      now.Add(is);
      claimed_after_[static_cast<size_t>(place)] = true;
      const Win win = Less(Take(before_, {static_cast<int>(i)}, &claimed_before_), now);
      wins_.Add(std::move(record), was.module.empty() ? was.name : was.module, was.name, win);
    }
  }

  // What no site counts, and is there on one side only: programs of masks that are gone, Transposes that are moved.
  void AddRest() {
    Win gone;
    int64_t nodes = 0;
    std::vector<int> only_before, only_after;
    for (size_t i = 0; i < before_.nodes.size(); ++i) {
      const MeasuredNode& node = before_.nodes[i];
      if (claimed_before_[i] || (!node.outputs.empty() && places_after_.OfOutput(node.outputs[0]) >= 0)) continue;
      only_before.push_back(static_cast<int>(i));
      nodes += node.launches > 0 ? 1 : 0;
    }
    for (size_t i = 0; i < after_.nodes.size(); ++i) {
      const MeasuredNode& node = after_.nodes[i];
      if (claimed_after_[i] || (!node.outputs.empty() && places_before_.OfOutput(node.outputs[0]) >= 0)) continue;
      only_after.push_back(static_cast<int>(i));
    }
    gone = Less(Take(before_, only_before, &claimed_before_), Take(after_, only_after, &claimed_after_));
    if (nodes == 0 && only_after.empty()) return;
    OpportunityRecord record;
    record.kind = "swept";
    record.state = "fused";
    record.because = "nodes that only fused subgraphs needed are gone, and what fused nodes need besides was added";
    wins_.Add(std::move(record), "", "", gone);
    wins_.records().back().count = nodes;
  }

  // What a construct around this node may consist of: what is computed in its module a few steps from it and belongs to no site,
  // up to products of matrices; those of an attention are within it. Each node counts for one near miss.
  Win Around(const std::string& node, bool through_products) {
    constexpr int kMostSteps = 8;
    Win win;
    const int start = places_after_.OfName(node);
    if (start < 0) return win;
    const std::string& module = after_.nodes[static_cast<size_t>(start)].module;
    absl::flat_hash_set<int> seen = {start};
    std::vector<int> now = {start};
    for (int step = 0; step <= kMostSteps && !now.empty(); ++step) {
      std::vector<int> next;
      for (const int at : now) {
        const size_t i = static_cast<size_t>(at);
        const MeasuredNode& member = after_.nodes[i];
        // Constants and shapes have readers everywhere.
        if (member.module != module || claimed_after_[i] || member.engine == "folded" || member.engine == "host") continue;
        const bool product = member.kind == WorkKind::kMatrix;
        if (product && (member.op != "MatMul" || !through_products)) continue;
        if (!product && member.runs_on_chip()) {
          win.Add(member);
          claimed_after_[i] = true;
        }
        for (const int other : member.inputs) {
          if (seen.insert(other).second) next.push_back(other);
        }
        for (const int other : readers_after_[i]) {
          if (seen.insert(other).second) next.push_back(other);
        }
      }
      now = std::move(next);
    }
    return win;
  }

  void AddNearMisses() {
    for (const NearMissRecord& miss : input_.report.near_misses) {
      OpportunityRecord record;
      record.kind = "near_miss";
      record.state = "left";
      record.at_most = true;
      record.because = fmt::format("rule {} stopped at {}", miss.rule, miss.stopped_by);
      if (!miss.expected.empty()) record.because = fmt::format("rule {}: expected {}", miss.rule, miss.expected);
      if (!miss.found.empty()) record.because += fmt::format(", found {}", miss.found);
      record.code = miss.code;
      record.source = miss.source;
      record.way = fmt::format("ascend-fuse explain MODEL --rule {} --at {}", miss.rule, miss.node);
      const Win win = Around(miss.node, miss.rule.find("attention") != std::string::npos);
      wins_.Add(std::move(record), miss.module.empty() ? miss.node : miss.module, miss.node, win);
    }
  }

  const OpportunityInput& input_;
  const MeasuredGraph& before_;
  const MeasuredGraph& after_;
  NodePlaces places_before_;
  NodePlaces places_after_;
  std::vector<bool> claimed_before_;
  std::vector<bool> claimed_after_;
  std::vector<std::vector<int>> readers_after_;  // of each node of `after`
  double whole_ = 0;
  WinsByPlace wins_;
};

}  // namespace

std::vector<OpportunityRecord> FindOpportunities(const OpportunityInput& input) { return Finder(input).Run(); }

}  // namespace ascend_fuse
