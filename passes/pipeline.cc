// The list of passes, and how a list is run.
#include <algorithm>
#include <chrono>
#include <cstddef>
#include <filesystem>
#include <system_error>

#include "absl/container/flat_hash_map.h"
#include "fmt/format.h"
#include "fmt/ranges.h"
#include "ir/onnx/save.h"
#include "passes/choose_layouts.h"
#include "passes/pass.h"

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

Pass ReadsOnly(Pass pass) {
  pass.reads_only = true;
  return pass;
}

Pass Final(Pass pass) {
  pass.final = true;
  return pass;
}

}  // namespace

std::vector<Pass> OptimizePasses() {
  std::vector<Pass> passes = {
      {"inline", "a model that was just loaded", "nodes of local functions in place of their calls", Inline},
      ReadsOnly({"infer", "the graph", "facts of every value: type, symbolic shape, small elements", InferFacts}),
      ReadsOnly({"number", "facts", "which values are the same computation, or copies", Number}),
      {"decompose_contrib", "facts and numbers",
       "operators of ONNX Runtime that are no construct by themselves, written in standard ones", DecomposeContrib},
      {"recognise", "facts and numbers", "sites, each recognised construct as one operator", Recognise},
      ReadsOnly({"pair_rotations", "sites", "which rotations of query and key share cos and sin", PairRotations}),
      ReadsOnly({"read_masks", "sites", "what the mask of each attention means", ReadMasks}),
      ReadsOnly({"find_near_misses", "sites", "where a rule got far and what stopped it", FindNearMisses}),
      {"lower", "sites and a target", "NPU nodes where the target takes one", Lower},
      {"raise_opset", "sites that only miss an operator of a later opset",
       "opset 17, where all nodes mean the same there", RaiseOpset},
      ReadsOnly({"account", "sites that were not lowered", "each taken by GE, or left with a reason", Account}),
      {"restore", "decided sites", "original nodes in place of recognised operators that no node took", Restore},
      {"decompose_leftovers", "the graph without recognised operators",
       "operators of ONNX Runtime that nothing was made of, written in standard ones", DecomposeLeftovers},
      {"share_keys", "sites that were left, and their original nodes",
       "products of attentions that are left, without the repeats of keys that heads share", ShareKeys},
      ReadsOnly({"infer_again", "the graph with its final operators",
                 "facts anew where these say more of their results than was known", InferAgain}),
      {"fold_channel_orders", "the graph with its final operators",
       "channels of a rotation in the order of its kernel by the weights of the projection", FoldChannelOrders},
      {"order_rows", "the graph with its final operators",
       "the batch before the tokens around fused attentions where that leaves fewer Transposes", OrderRows},
      {"choose_layouts", "the graph with its final operators",
       "heads before or behind tokens around each fused attention, by what Transposes and kernels cost", ChooseLayouts},
      {"fold_constants", "the graph with its final operators",
       "constants in place of what the numbers of `--fix` decide", FoldConstants},
      {"convert_opset", "the graph with its final operators",
       "the opset that ATC reads best, where every node has a form there", ConvertOpset},
      {"adapt", "the graph at its final opset", "forms that ATC reads in place of those that it refuses or misreads", Adapt},
      {"keep_calls", "the graph with its final nodes", "calls of local functions again where nothing is to be changed", KeepCalls},
      ReadsOnly({"choose_style", "the graph with its final nodes and imports", "the emission style", ChooseStyle}),
      Final({"write_style", "the emission style", "domains as the style spells them", WriteStyle}),
      Final({"write_dims", "the graph with its final nodes", "the numbers of `--fix` in inputs and outputs", WriteDims}),
      Final({"sweep", "the graph with its final nodes", "no dead node, no initializer that only dead nodes used", Sweep}),
  };
  for (Pass& pass : passes) pass.by_rewriter = pass.name != "inline";  // which has ways of its own
  return passes;
}

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
      return absl::InvalidArgumentError(fmt::format("the pass {} is to stand beside {}, which is no pass; there are {}",
                                                    one.pass.name, one.stage, fmt::join(names, ", ")));
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

absl::Status RunPasses(const std::vector<Pass>& passes, Workspace& workspace, const RunOptions& options) {
  size_t number = 0;
  bool verified = false;  // the model as it was before the pass
  workspace.ReportTo(options.progress);
  for (const Pass& pass : passes) {
    if (absl::Status status = workspace.Begin({pass.name, number, passes.size()}); !status.ok()) return status;
    ++number;
    if (options.dry && pass.final) continue;
    const double started = Milliseconds();
    const uint64_t changes = workspace.rewriter().Now().changes;
    const uint64_t edits = workspace.rewriter().edits();
    if (absl::Status status = pass.run(workspace); !status.ok()) return status;
    const uint64_t now = workspace.rewriter().Now().changes;
    workspace.runs.push_back(
        {pass.name, Milliseconds() - started, now < changes ? 0 : static_cast<int64_t>(now - changes)});
    const bool untouched = pass.reads_only || (pass.by_rewriter && workspace.rewriter().edits() == edits);
    if (!verified || !untouched) {
      if (absl::Status status = workspace.Verify(pass.name); !status.ok()) return status;
      verified = true;
    }
    if (absl::Status status = Dump(workspace.model(), options.dump_directory, number, pass.name); !status.ok()) {
      return status;
    }
  }
  return absl::OkStatus();
}

}  // namespace ascend_fuse
