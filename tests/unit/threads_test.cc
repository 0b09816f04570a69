// Models in several threads: nothing is shared but what nobody changes. scripts/check-tsan runs this under ThreadSanitizer.
#include <string>
#include <thread>
#include <vector>

#include "fmt/format.h"
#include "gtest/gtest.h"
#include "ir/text/parser.h"
#include "passes/check_model.h"
#include "passes/optimize.h"
#include "passes/option_names.h"
#include "tests/support/source_dir.h"
#include "tests/unit/models.h"

namespace ascend_fuse {
namespace {

// Goldens that reach different parts of the library: masks, rotations, layouts, local functions, other opsets, loops.
constexpr const char* kModels[] = {"rms_norm/llama_fp16",
                                   "rms_norm/in_branch_of_if",
                                   "attention/mask_causal_with_past",
                                   "attention/gqa",
                                   "attention/island_of_folded_heads",
                                   "rotary/pairs_to_halves",
                                   "rotary/opset23",
                                   "layout/decode",
                                   "glu/swiglu",
                                   "mish/softplus",
                                   "functions/rms_norm_module",
                                   "adapt/opset_18"};

// Everything that the front door does with these models, for one chip.
std::string Work(const std::string& chip) {
  OptimizeOptions options;
  if (!SetOption(&options, "target", chip).ok()) return "no option";
  std::string out;
  for (const char* name : kModels) {
    const std::string text = testing::ReadWhole(testing::SourceDir() / fmt::format("tests/golden/{}.onnxtxt", name));
    auto model = ParseModelText(text);
    if (!model.ok()) return fmt::format("{}: {}", name, std::string(model.status().message()));
    auto listed = ListOpportunities(model->get(), options);
    auto report = Optimize(model->get(), options);
    if (!listed.ok() || !report.ok()) return fmt::format("{}: an error", name);
    report->passes.clear();  // times
    out += ReportToJson(*report) + ReportToText(*report) + testing::MustSave(**model);
    if (!CheckModel(model->get(), options).ok() || !Expand(model->get(), {}).ok()) return fmt::format("{}: an error", name);
    out += testing::MustSave(**model);
  }
  return DescribeRules(options).ok() ? out : "an error";
}

// What each of several threads gives, one chip a thread.
std::vector<std::string> SideBySide(const std::vector<std::string>& chips) {
  std::vector<std::string> results(chips.size());
  std::vector<std::thread> threads;
  for (size_t i = 0; i < chips.size(); ++i) threads.emplace_back([&, i] { results[i] = Work(chips[i]); });
  for (std::thread& thread : threads) thread.join();
  return results;
}

// The first runs of the process: what is read once is read by whoever comes first.
TEST(Threads, ModelsSideBySideGiveWhatTheyGiveOneByOne) {
  const std::vector<std::string> chips = {"ascend910b", "ascend310p", "ascend910b", "ascend310p"};
  const std::vector<std::string> together = SideBySide(chips);
  for (size_t i = 0; i < chips.size(); ++i) EXPECT_EQ(together[i], Work(chips[i]));
  EXPECT_NE(together[0].find("npu.NPURmsNorm"), std::string::npos) << together[0];
}

// Everything that is read once has been read: whatever a thread still writes is its own. Helgrind of Valgrind, which does not
// know the locks of first initializations, judges this one without a build of its own (scripts/check-tsan --helgrind).
TEST(Threads, NothingSharedIsWrittenAfterTheFirstRun) {
  const std::vector<std::string> chips = {"ascend910b", "ascend310p"};
  std::vector<std::string> alone;
  for (const std::string& chip : chips) alone.push_back(Work(chip));
  EXPECT_EQ(SideBySide(chips), alone);
}

// What nobody may do, one model in two threads: by it scripts/check-tsan sees that a race within the library is found.
TEST(Threads, DISABLED_OneModelInTwoThreads) {
  auto model = ParseModelText(testing::ReadWhole(testing::SourceDir() / "tests/golden/rms_norm/llama_fp16.onnxtxt"));
  ASSERT_TRUE(model.ok());
  auto run = [&] { (void)ListOpportunities(model->get(), {}); };
  std::thread first(run), second(run);
  first.join();
  second.join();
}

}  // namespace
}  // namespace ascend_fuse
