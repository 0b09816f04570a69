// Rows that a router chose, told from rows that were picked for another reason.
#include "patterns/analysis/routing.h"

#include <string>

#include "gtest/gtest.h"
#include "tests/unit/rule_testing.h"

namespace ascend_fuse {
namespace {

using testing::Subject;

// The operator that chose the rows of y, or "" where all are computed alike.
std::string RouterOf(const std::string& text) {
  Subject subject(text);
  const Node* const router = FindRouter(*subject.Context().facts, subject.Named("y"));
  return router == nullptr ? "" : std::string(OpType(*router));
}

constexpr char kRouter[] =
    "(float[8, 4] x, float[8, 2] scores, float[4, 4] w) => (float[m, 4] y) "
    "<int64[1] one = {1}, int64[1] flat = {-1}, int64 expert = {1}> ";

TEST(RoutingTest, RowsOfOneExpertAreChosen) {
  EXPECT_EQ(RouterOf(std::string(kRouter) + R"({
    v, e = TopK <axis = -1> (scores, one)
    mine = Equal (e, expert)
    places = NonZero (mine)
    rows, columns = Split <axis = 0> (places)
    r = Reshape (rows, flat)
    picked = Gather <axis = 0> (x, r)
    y = MatMul (picked, w) })"),
            "TopK");
}

TEST(RoutingTest, WeightsOfOneExpertAreChosen) {
  EXPECT_EQ(RouterOf(R"((float[8, 4] x, float[8, 2] scores, float[2, 4, 4] ws) => (float[8, 8, 4] y) {
    e = ArgMax <axis = -1, keepdims = 0> (scores)
    w = Gather <axis = 0> (ws, e)
    y = MatMul (x, w) })"),
            "ArgMax");
}

TEST(RoutingTest, RowsAtPlacesOfTheUserAreNot) {
  EXPECT_EQ(RouterOf(R"((float[8, 4] x, int64[m] places, float[4, 4] w) => (float[m, 4] y) {
    picked = Gather <axis = 0> (x, places)
    y = MatMul (picked, w) })"),
            "");
}

TEST(RoutingTest, RowsBehindANormAreATensorOfTheirOwn) {
  EXPECT_EQ(RouterOf(R"((float[8, 4] x, float[8, 2] scores, float[4] gain, float[4, 4] w) => (float[8, 4] y) {
    e = ArgMax <axis = -1, keepdims = 0> (scores)
    picked = Gather <axis = 0> (x, e)
    n = LayerNormalization (picked, gain)
    y = MatMul (n, w) })"),
            "");
}

TEST(RoutingTest, NumbersThatARouterScalesAreNotChosen) {
  EXPECT_EQ(RouterOf(std::string(kRouter) + R"({
    v, e = TopK <axis = -1> (scores, one)
    scaled = Mul (x, v)
    y = MatMul (scaled, w) })"),
            "");
}

}  // namespace
}  // namespace ascend_fuse
