#include "passes/layout/minimum_cut.h"

#include <algorithm>
#include <cstdint>
#include <random>
#include <tuple>
#include <vector>

#include "gtest/gtest.h"

namespace ascend_fuse {
namespace {

TEST(MinimumCut, AnswersWhatCostsLess) {
  MinimumCut cut;
  const int a = cut.AddQuestion();
  const int b = cut.AddQuestion();
  cut.Cost(MinimumCut::kZero, a, 3);  // a is 1
  cut.Cost(a, MinimumCut::kOne, 5);   // a is 0
  cut.Cost(MinimumCut::kZero, b, 4);
  cut.Cost(b, MinimumCut::kOne, 1);
  cut.Solve();
  EXPECT_TRUE(cut.IsOne(a));
  EXPECT_FALSE(cut.IsOne(b));
}

TEST(MinimumCut, NeverGivesAForbiddenPair) {
  MinimumCut cut;
  const int a = cut.AddQuestion();
  const int b = cut.AddQuestion();
  cut.Cost(a, b, MinimumCut::kNever);  // not a = 0 with b = 1
  cut.Cost(MinimumCut::kZero, a, 10);
  cut.Cost(b, MinimumCut::kOne, 7);
  cut.Solve();
  EXPECT_FALSE(cut.IsOne(a));
  EXPECT_FALSE(cut.IsOne(b));
}

// Against all answers there are.
TEST(MinimumCut, IsTheLeastOfAll) {
  std::mt19937 random(7);
  for (int round = 0; round < 300; ++round) {
    const int questions = 1 + static_cast<int>(random() % 6);
    MinimumCut cut;
    std::vector<int> nodes = {MinimumCut::kZero, MinimumCut::kOne};
    for (int i = 0; i < questions; ++i) nodes.push_back(cut.AddQuestion());
    std::vector<std::tuple<int, int, int64_t>> costs;
    for (int i = 0; i < 3 * questions; ++i) {
      costs.emplace_back(nodes[random() % nodes.size()], nodes[random() % nodes.size()], random() % 20);
      const auto [a, b, cost] = costs.back();
      cut.Cost(a, b, cost);
    }
    cut.Solve();
    const auto total = [&](const auto& is_one) {
      int64_t sum = 0;
      for (const auto& [a, b, cost] : costs) sum += !is_one(a) && is_one(b) ? cost : 0;
      return sum;
    };
    int64_t least = INT64_MAX;
    for (int answers = 0; answers < 1 << questions; ++answers) {
      const auto is_one = [&](int node) { return node == MinimumCut::kOne || (node > 1 && (answers >> (node - 2) & 1) != 0); };
      least = std::min(least, total(is_one));
    }
    EXPECT_EQ(total([&](int node) { return cut.IsOne(node); }), least);
    EXPECT_FALSE(cut.IsOne(MinimumCut::kZero));
    EXPECT_TRUE(cut.IsOne(MinimumCut::kOne));
  }
}

}  // namespace
}  // namespace ascend_fuse
