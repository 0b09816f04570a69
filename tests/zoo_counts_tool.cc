// What is fused, left to GE, and left, per model and target, for tests/zoo/counts.txt; and whether every site
// that is left says why, and who says so.
//
//     zoo_counts_tool FOLDER MODEL...      FOLDER holds MODEL.onnx
//
// A model is a line, and below it one line for each different outcome, with the targets that have it:
//     ascend910b ascend910_93: attention 2/0/0, glu 0/0/2      (fused / by GE / left)
// Exit code 1: a sum is wrong, or a site has no reason; told on standard error.
#include <iostream>
#include <string>
#include <utility>
#include <vector>

#include "fmt/format.h"
#include "fmt/ranges.h"
#include "ir/onnx/load.h"
#include "passes/optimize.h"

namespace ascend_fuse {
namespace {

std::vector<std::pair<std::string, TargetOptions>> Targets() {
  std::vector<std::pair<std::string, TargetOptions>> targets;
  for (const bool plugin : {false, true}) {
    for (const std::string& chip : Target::Chips()) {
      TargetOptions options;
      options.chip = chip;
      options.plugin = plugin;
      if (chip == "ascend950") options.cann = "2026.07";  // CANN 8.1 knows no such chip
      targets.emplace_back(plugin ? chip + "+plugin" : chip, options);
    }
  }
  return targets;
}

bool Check(const std::string& where, const Report& report) {
  bool right = true;
  auto wrong = [&](const std::string& what) {
    std::cerr << where << ": " << what << "\n";
    right = false;
  };
  for (const ReportKindCount& count : report.kinds) {
    if (count.fused + count.by_ge + count.left != count.found)
      wrong(fmt::format("{}: {} + {} + {} is not {}", count.kind, count.fused, count.by_ge, count.left,
                        count.found));
  }
  for (const SiteRecord& site : report.sites) {
    if (site.state == "fused") {
      if (site.emitted_op.empty()) wrong(fmt::format("{} at {} is fused into nothing", site.kind, site.node));
      continue;
    }
    if (site.because.empty()) {
      wrong(fmt::format("{} at {} is {} without a reason", site.kind, site.node, site.state));
    }
    if (site.source.empty())
      wrong(fmt::format("{} at {}: who says so? {}", site.kind, site.node, site.because));
  }
  return right;
}

int Run(const std::string& folder, const std::vector<std::string>& models) {
  const auto targets = Targets();
  bool right = true;
  for (const std::string& id : models) {
    const auto model = LoadModel(fmt::format("{}/{}.onnx", folder, id));
    if (!model.ok()) {
      std::cerr << id << ": " << model.status().message() << "\n";
      return 1;
    }
    std::vector<std::pair<std::string, std::vector<std::string>>> outcomes;
    std::string found;
    for (const auto& [name, target] : targets) {
      OptimizeOptions options;
      options.target = target;
      const auto report = ListOpportunities(model->get(), options);
      if (!report.ok()) {
        std::cerr << id << " on " << name << ": " << report.status().message() << "\n";
        return 1;
      }
      right = Check(fmt::format("{} on {}", id, name), *report) && right;
      std::vector<std::string> words;
      std::vector<std::string> kinds;
      for (const ReportKindCount& count : report->kinds) {
        if (count.found == 0) continue;
        words.push_back(fmt::format("{} {}/{}/{}", count.kind, count.fused, count.by_ge, count.left));
        kinds.push_back(fmt::format("{} {}", count.kind, count.found));
      }
      const std::string all = fmt::format("{}", fmt::join(kinds, ", "));
      if (&target != &targets[0].second && all != found) {
        std::cerr << id << " on " << name << ": found " << all << ", elsewhere " << found << "\n";
        right = false;
      }
      found = all;
      const std::string outcome = words.empty() ? "nothing" : fmt::format("{}", fmt::join(words, ", "));
      auto same = outcomes.begin();
      while (same != outcomes.end() && same->first != outcome) ++same;
      if (same == outcomes.end()) same = outcomes.insert(same, {outcome, {}});
      same->second.push_back(name);
    }
    std::cout << id << "\n";
    for (const auto& [outcome, names] : outcomes) {
      std::cout << fmt::format("  {}: {}\n", fmt::join(names, " "), outcome);
    }
  }
  return right ? 0 : 1;
}

}  // namespace
}  // namespace ascend_fuse

int main(int argc, char** argv) {
  if (argc < 3) {
    std::cerr << "zoo_counts_tool FOLDER MODEL...\n";
    return 2;
  }
  return ascend_fuse::Run(argv[1], std::vector<std::string>(argv + 2, argv + argc));
}
