// How a list of passes is made and run.
#include <algorithm>
#include <chrono>
#include <cstddef>
#include <filesystem>
#include <set>
#include <system_error>

#include "absl/container/flat_hash_map.h"
#include "fmt/format.h"
#include "fmt/ranges.h"
#include "ir/onnx/save.h"
#include "ir/status_macros.h"
#include "passes/core/pass.h"
#include "passes/core/workspace.h"

namespace ascend_fuse {
namespace {

double Milliseconds() {
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// --dump: the model as it is now, numbered in the order of the passes.
absl::Status Dump(const Model& model, const std::string& folder, size_t number, std::string_view pass) {
  if (folder.empty()) return absl::OkStatus();
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) return absl::UnavailableError(fmt::format("--dump {}: {}", folder, error.message()));
  return SaveModel(model, fmt::format("{}/{:02}-{}.onnx", folder, number, pass));
}

}  // namespace

std::string DescribePasses(const std::vector<Pass>& passes) {
  std::string text = "| pass | takes | gives | `list` |\n|---|---|---|---|\n";
  for (const Pass& pass : passes) {
    text += fmt::format("| `{}` | {} | {} | {} |\n", pass.name, pass.takes, pass.gives, pass.final ? "no" : "yes");
  }
  return text;
}

absl::StatusOr<std::vector<Pass>> WithPasses(std::vector<Pass> passes, const std::vector<PlacedPass>& placed) {
  absl::flat_hash_map<std::string, std::string> after;  // by name of a pass of the user's: the stage it stands after
  for (const PlacedPass& one : placed) {
    std::vector<std::string> names;
    for (const Pass& pass : passes) names.push_back(pass.name);
    if (one.pass.name.empty() || one.pass.run == nullptr) {
      return absl::InvalidArgumentError("a pass needs a name and a function");
    }
    if (std::find(names.begin(), names.end(), one.pass.name) != names.end()) {
      return absl::InvalidArgumentError(fmt::format("there is a pass {} already", one.pass.name));
    }
    const auto stage = std::find(names.begin(), names.end(), one.stage);
    if (stage == names.end()) {
      return absl::InvalidArgumentError(
          fmt::format("pass {}: unknown stage {}; stages are {}", one.pass.name, one.stage, fmt::join(names, ", ")));
    }
    auto follows = [&](const std::string& name) {
      for (auto at = after.find(name); at != after.end(); at = after.find(at->second)) {
        if (at->second == one.stage) return true;
      }
      return false;
    };
    size_t at = static_cast<size_t>(stage - names.begin());
    if (one.place == PlacedPass::Place::kAfter) {
      // Those that were given first stand first.
      ++at;
      while (at < names.size() && follows(names[at])) ++at;
      after[one.pass.name] = one.stage;
    }
    passes.insert(passes.begin() + static_cast<std::ptrdiff_t>(at), one.pass);
  }
  return passes;
}

std::string_view GivenName(Given given) {
  static constexpr std::string_view kNames[] = {"facts",           "numbers",     "sites",  "decisions",
                                                "final operators", "final nodes", "a style"};
  return kNames[static_cast<size_t>(given)];
}

absl::Status CheckNeeds(const std::vector<Pass>& passes, std::set<Given> given) {
  for (const Pass& pass : passes) {
    for (const Given need : pass.needs) {
      if (given.contains(need)) continue;
      return absl::InvalidArgumentError(
          fmt::format("the pass {} needs {}, which no pass before it gives", pass.name, std::string(GivenName(need))));
    }
    given.insert(pass.provides.begin(), pass.provides.end());
  }
  return absl::OkStatus();
}

absl::Status RunPasses(const std::vector<Pass>& passes, Workspace& workspace, const RunOptions& options) {
  RETURN_IF_ERROR(CheckNeeds(passes, workspace.given));
  bool verified = options.begin > 0;  // the model as it was before the pass: those before `begin` ended with that
  workspace.ReportTo(options.progress);
  for (size_t i = options.begin; i < std::min(options.end, passes.size()); ++i) {
    const Pass& pass = passes[i];
    RETURN_IF_ERROR(workspace.Begin({pass.name, i, passes.size()}));
    if (options.dry && pass.final) continue;
    const double started = Milliseconds();
    const uint64_t changes = workspace.rewriter().Now().changes;
    const uint64_t edits = workspace.rewriter().edits();
    const size_t replaced = workspace.rewriter().replaced().size();
    RETURN_IF_ERROR(pass.run(workspace));
    workspace.given.insert(pass.provides.begin(), pass.provides.end());
    if (absl::Status status = workspace.CheckReplaced(replaced); !status.ok()) {
      return absl::Status(status.code(), fmt::format("after the pass {}: {}", pass.name, std::string(status.message())));
    }
    const uint64_t now = workspace.rewriter().Now().changes;
    workspace.result.runs.push_back(
        {pass.name, Milliseconds() - started, now < changes ? 0 : static_cast<int64_t>(now - changes)});
    const bool untouched = pass.reads_only || (pass.by_rewriter && workspace.rewriter().edits() == edits);
    if (!verified || !untouched) {
      RETURN_IF_ERROR(workspace.Verify(pass.name));
      verified = true;
    }
    RETURN_IF_ERROR(Dump(workspace.model(), options.dump_directory, i + 1, pass.name));
  }
  return absl::OkStatus();
}

}  // namespace ascend_fuse
