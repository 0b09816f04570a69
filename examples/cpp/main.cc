// The library in a program: list, optimize and save a model, with a rule and two passes of one's own, progress, a run that is
// cancelled, and two models in two threads.
//     example llama.onnx
#include <atomic>
#include <cstdio>
#include <string>
#include <thread>

#include "ir/onnx/load.h"
#include "ir/onnx/save.h"
#include "passes/core/workspace.h"
#include "passes/optimize.h"

namespace {

using namespace ascend_fuse;

// A rule of this program's: text as in a file of --rules. One of a built-in name would take its place.
constexpr char kRule[] = R"(
# y = x * tanh(softplus(x))
rule my_mish <kind = mish> (x) => (y)
match { y = Mul (x, Tanh (Softplus (x))) }
emit  { y = ascend_fuse.Mish (x) }

rule my_npu_mish <kind = mish> (x) => (y)
match { y = ascend_fuse.Mish (x) }
emit  { y = npu.NPUMish (x) }
)";

void Say(const absl::Status& status) { std::printf("%s\n", std::string(status.message()).c_str()); }

void Count(const Report& report, const char* verb) {
  for (const ReportKindCount& kind : report.kinds) {
    if (kind.found > 0) std::printf("%s %s: %d of %d\n", verb, kind.kind.c_str(), int(kind.fused), int(kind.found));
  }
}

// A pass that only looks: what stands in the graph between two stages.
Pass CountNodes(const char* name) {
  return {name, "any graph", "the same graph", [name](Workspace& workspace) {
            std::printf("%s: %d nodes\n", name, int(workspace.CountNodes()));
            return absl::OkStatus();
          }};
}

absl::Status OptimizeFile(const std::string& path, const std::string& output, const OptimizeOptions& options) {
  auto model = LoadModel(path);
  if (!model.ok()) return model.status();
  const auto report = Optimize(model->get(), options);
  if (!report.ok()) return report.status();
  Count(*report, "fused");
  return SaveModel(**model, output);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  const std::string path = argv[1];
  std::printf("version %s\n", ASCEND_FUSE_VERSION);

  // What could be fused. The model stays as it is.
  auto model = LoadModel(path);
  if (!model.ok()) return Say(model.status()), 1;
  const auto listed = ListOpportunities(model->get());
  if (!listed.ok()) return Say(listed.status()), 1;
  Count(*listed, "can fuse");

  // A rule and two passes of one's own, for a chip and a range of a dim.
  OptimizeOptions options;
  options.target.chip = "ascend910b";
  options.infer.dims.push_back({"batch", {1, 8}});
  options.rule_files.push_back({"mish.rule", kRule});
  options.passes.push_back({PlacedPass::Place::kBefore, "recognise", CountNodes("before_recognise")});
  options.passes.push_back({PlacedPass::Place::kAfter, "lower", CountNodes("after_lower")});
  int told = 0;
  options.progress = [&told](const Progress&) { return ++told > 0; };
  if (const auto status = OptimizeFile(path, path + ".fused", options); !status.ok()) return Say(status), 1;
  std::printf("told of progress: %s\n", told > 0 ? "yes" : "no");

  // A run that is cancelled, and its model dropped.
  OptimizeOptions cancelled;
  cancelled.progress = [](const Progress& at) { return at.pass != "lower"; };
  Say(Optimize(model->get(), cancelled).status());

  // Two models in two threads: nothing is shared but the built-in rules, which nobody changes.
  std::atomic<int> done = 0;
  auto run = [&](const std::string& output) {
    auto own = LoadModel(path);
    if (own.ok() && Optimize(own->get()).ok() && SaveModel(**own, output).ok()) ++done;
  };
  std::thread first(run, path + ".first"), second(run, path + ".second");
  first.join();
  second.join();
  std::printf("threads done: %d\n", done.load());
  return done == 2 ? 0 : 1;
}
