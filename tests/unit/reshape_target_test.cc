// The dims that a Reshape is given where one that is left may stand beside a dim of 0.
#include "passes/core/reshape_target.h"

#include <cstdint>
#include <vector>

#include "gtest/gtest.h"
#include "patterns/terms/node_builder.h"
#include "tests/unit/inferred.h"

namespace ascend_fuse {
namespace {

using testing::Inferred;

// What a Reshape of x to `dims` is given, where it is numbers.
std::vector<int64_t> Target(const std::string& x, const std::vector<int64_t>& dims) {
  Inferred model(fmt::format("g (float[{}] x) => (float y) {{ y = Identity (x) }}", x));
  std::vector<Term> terms;
  for (const int64_t dim : dims) terms.push_back(Term::Integer(dim));
  return build::IntegersOf(*ReshapeTarget(model.facts(), model.Find("x"), Term::List(terms)).list);
}

TEST(ReshapeTarget, SaysWhatIsLeftBesideADimThatMayBeNone) {
  EXPECT_EQ(Target("B, 4, 8", {0, -1}), (std::vector<int64_t>{0, 32}));
  EXPECT_EQ(Target("B, 4, 8", {0, 2, -1}), (std::vector<int64_t>{0, 2, 16}));
  EXPECT_EQ(Target("2, 4, 8", {0, -1}), (std::vector<int64_t>{0, -1}));
  EXPECT_EQ(Target("B, 4, 8", {0, 3, -1}), (std::vector<int64_t>{0, 3, -1}));
}

// 2147418113 * 429509837 * 5 is 2^62 + 1, eight times that are 8 in 64 bits, and the square of (2^32 - 1) * (2^32 + 1) is 1.
TEST(ReshapeTarget, LeavesWhatIsTooLargeForATensor) {
  EXPECT_EQ(Target("B, 2147418113, 429509837, 5, 8", {0, -1}), (std::vector<int64_t>{0, -1}));
  constexpr int64_t kLess = 4294967295;
  constexpr int64_t kMore = 4294967297;
  EXPECT_EQ(Target("B, 4, 8", {0, kLess, kMore, kLess, kMore, -1}), (std::vector<int64_t>{0, kLess, kMore, kLess, kMore, -1}));
}

}  // namespace
}  // namespace ascend_fuse
