// Models in several threads: nothing is shared but what nobody changes. scripts/check-tsan runs this under ThreadSanitizer.
#include <string>
#include <thread>
#include <vector>

#include "gtest/gtest.h"
#include "ir/text/parser.h"
#include "passes/atc_check.h"
#include "passes/option_names.h"
#include "passes/optimize.h"
#include "tests/unit/models.h"

namespace ascend_fuse {
namespace {

constexpr char kModel[] = R"(
  <ir_version: 8, opset_import: ["" : 17]>
  g (float[B, 4, 64] x) => (float[B, 4, 64] y)
  <float two = {2}, float epsilon = {0.000001}, float[64] gain = {1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,
    1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1}>
  {
    square = Pow (x, two)
    mean = ReduceMean <axes = [-1], keepdims = 1> (square)
    sum = Add (mean, epsilon)
    root = Sqrt (sum)
    scaled = Div (x, root)
    n = Mul (scaled, gain)
    s = Softplus (n)
    t = Tanh (s)
    y = Mul (n, t)
  })";

// Everything that the front door does, for one chip.
std::string Work(const std::string& chip) {
  OptimizeOptions options;
  if (!SetOption(&options, "target", chip).ok()) return "no option";
  std::string out;
  for (int round = 0; round < 2; ++round) {
    auto model = ParseModelText(kModel);
    if (!model.ok()) return std::string(model.status().message());
    auto listed = ListOpportunities(model->get(), options);
    auto report = Optimize(model->get(), options);
    if (!listed.ok() || !report.ok()) return "an error";
    report->passes.clear();  // times
    out += ReportToJson(*report) + testing::MustSave(**model);
    if (!CheckModel(model->get(), options).ok() || !DescribeRules(options).ok()) return "an error";
  }
  return out;
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

// Everything that is read once has been read: whatever a thread still writes is its own. Helgrind of Valgrind, which does not know
// the locks of first initializations, judges this one without a build of its own (scripts/check-tsan --helgrind).
TEST(Threads, NothingSharedIsWrittenAfterTheFirstRun) {
  const std::vector<std::string> chips = {"ascend910b", "ascend310p"};
  std::vector<std::string> alone;
  for (const std::string& chip : chips) alone.push_back(Work(chip));
  EXPECT_EQ(SideBySide(chips), alone);
}

}  // namespace
}  // namespace ascend_fuse
