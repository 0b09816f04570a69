// Positions as ranges and strides: every operation against lists of positions.
#include "ir/movement/place_map.h"

#include <random>
#include <vector>

#include "gtest/gtest.h"

namespace ascend_fuse {
namespace {

// The same by lists.
struct Listed {
  std::vector<PlaceMap::Element> elements;

  Listed Take(const std::vector<int64_t>& dims, size_t axis, const std::vector<int64_t>& positions) const {
    int64_t inner = 1;
    for (size_t i = axis + 1; i < dims.size(); ++i) inner *= dims[i];
    const int64_t outer = static_cast<int64_t>(elements.size()) / (inner * dims[axis]);
    Listed taken;
    for (int64_t o = 0; o < outer; ++o) {
      for (const int64_t position : positions) {
        for (int64_t i = 0; i < inner; ++i) taken.elements.push_back(elements[(o * dims[axis] + position) * inner + i]);
      }
    }
    return taken;
  }

  Listed Permute(const std::vector<int64_t>& dims, const std::vector<int64_t>& order) const {
    Listed permuted;
    std::vector<int64_t> place(dims.size(), 0);
    for (size_t n = 0; n < elements.size(); ++n) {
      std::vector<int64_t> from(dims.size());
      for (size_t i = 0; i < order.size(); ++i) from[order[i]] = place[i];
      int64_t at = 0;
      for (size_t i = 0; i < dims.size(); ++i) at = at * dims[i] + from[i];
      permuted.elements.push_back(elements[at]);
      for (size_t i = order.size(); i-- > 0;) {
        if (++place[i] < dims[order[i]]) break;
        place[i] = 0;
      }
    }
    return permuted;
  }
};

void ExpectSame(const PlaceMap& map, const Listed& listed, const std::string& what) {
  ASSERT_EQ(static_cast<size_t>(map.size()), listed.elements.size()) << what;
  const std::vector<PlaceMap::Element> list = map.List();
  for (size_t i = 0; i < list.size(); ++i) {
    ASSERT_EQ(list[i].index, listed.elements[i].index) << what << " place " << i;
    ASSERT_EQ(list[i].source, listed.elements[i].source) << what << " place " << i;
    ASSERT_EQ(list[i].negative, listed.elements[i].negative) << what << " place " << i;
  }
}

Listed ListOf(const PlaceMap& map) { return {map.List()}; }

TEST(PlaceMapTest, ARotationOfAllHeadsIsTwoPieces) {
  PlaceMap first = PlaceMap::Whole(0, 1 << 20);
  PlaceMap second = first;
  const std::vector<int64_t> dims = {1 << 13, 128};
  ASSERT_TRUE(first.Take(dims, 1, {{{0, 1, 64}}}));
  ASSERT_TRUE(second.Take(dims, 1, {{{64, 1, 64}}}));
  second.NegateAll();
  PlaceMap turned;
  ASSERT_TRUE(PlaceMap::Join({second, first}, 1 << 13, &turned));
  EXPECT_EQ(turned.size(), 1 << 20);
  EXPECT_EQ(turned.pieces().size(), 2U);
}

TEST(PlaceMapTest, PairsTakenApartAndJoinedAreOnePiece) {
  PlaceMap map = PlaceMap::Whole(0, 4096 * 64);
  const std::vector<int64_t> pairs = {4096, 32, 2};
  ASSERT_TRUE(map.Permute(pairs, {0, 2, 1}));
  EXPECT_EQ(map.pieces().size(), 1U);
  ASSERT_TRUE(map.Permute(std::vector<int64_t>{4096, 2, 32}, {0, 2, 1}));
  ASSERT_EQ(map.pieces().size(), 1U);
  EXPECT_EQ(map.pieces()[0].strides.size(), 1U) << "the same as before: one stride";
}

TEST(PlaceMapTest, PositionsAsRanges) {
  EXPECT_EQ(RangesOf({}).size(), 0U);
  const std::vector<PositionRange> ranges = RangesOf({0, 2, 4, 1, 1, 5, 4, 3});
  ASSERT_EQ(ranges.size(), 4U);
  EXPECT_EQ(ranges[0].step, 2);
  EXPECT_EQ(ranges[1].count, 1);
  std::vector<int64_t> again;
  for (const PositionRange& range : ranges) {
    for (int64_t i = 0; i < range.count; ++i) again.push_back(range.start + i * range.step);
  }
  EXPECT_EQ(again, (std::vector<int64_t>{0, 2, 4, 1, 1, 5, 4, 3}));
}

TEST(PlaceMapTest, TooManyPiecesAreRefused) {
  PlaceMap map = PlaceMap::Whole(0, 1 << 20);
  std::mt19937 random(5);
  std::vector<int64_t> positions;
  for (int64_t i = 0; i < (1 << 14); ++i) positions.push_back(static_cast<int64_t>(random() % (1U << 20)));
  EXPECT_FALSE(map.Take(std::vector<int64_t>{1 << 20}, 0, RangesOf(positions)));
}

// Random programs of all operations.
// Long because it is one case for each operation.
TEST(PlaceMapTest, RandomProgramsAreThoseOfLists) {
  std::mt19937 random(17);
  const auto pick = [&random](int64_t low, int64_t high) { return std::uniform_int_distribution<int64_t>(low, high)(random); };
  const std::vector<std::vector<int64_t>> shapes = {{24},         {4, 6},  {2, 3, 4}, {6, 4},   {3, 8},
                                                    {2, 2, 2, 3}, {12, 2}, {1, 24},   {8, 1, 3}};
  for (int round = 0; round < 4000; ++round) {
    PlaceMap map = PlaceMap::Whole(0, 24);
    Listed listed = ListOf(map);
    std::string program;
    for (int step = 0; step < 5; ++step) {
      std::vector<int64_t> dims = {map.size()};
      if (map.size() == 24)
        dims = shapes[static_cast<size_t>(pick(0, static_cast<int64_t>(shapes.size()) - 1))];
      else if (map.size() % 2 == 0 && pick(0, 1) == 0)
        dims = pick(0, 1) == 0 ? std::vector<int64_t>{2, map.size() / 2} : std::vector<int64_t>{map.size() / 2, 2};
      const auto axis = static_cast<size_t>(pick(0, static_cast<int64_t>(dims.size()) - 1));
      switch (pick(0, 4)) {
        case 0: {  // some positions
          std::vector<int64_t> positions;
          const int64_t kind = pick(0, 2);
          if (kind == 0) {
            for (int64_t i = pick(0, dims[axis] - 1), by = pick(1, 3); i < dims[axis]; i += by) positions.push_back(i);
          } else if (kind == 1) {
            for (int64_t i = dims[axis] - 1, by = pick(1, 3); i >= 0; i -= by) positions.push_back(i);
          } else {
            for (int64_t i = 0, count = pick(1, 2 * dims[axis]); i < count; ++i) positions.push_back(pick(0, dims[axis] - 1));
          }
          if (map.size() / dims[axis] * static_cast<int64_t>(positions.size()) > 200) break;
          ASSERT_TRUE(map.Take(dims, axis, RangesOf(positions)));
          listed = listed.Take(dims, axis, positions);
          program += "take ";
          break;
        }
        case 1: {
          std::vector<int64_t> order;
          for (size_t i = 0; i < dims.size(); ++i) order.push_back(static_cast<int64_t>(i));
          std::shuffle(order.begin(), order.end(), random);
          ASSERT_TRUE(map.Permute(dims, order));
          listed = listed.Permute(dims, order);
          program += "permute ";
          break;
        }
        case 2: {
          std::vector<bool> signs;
          int64_t inner = 1;
          for (size_t i = axis; i < dims.size(); ++i) inner *= dims[i];
          for (int64_t i = 0; i < inner; ++i) signs.push_back(pick(0, 1) == 0);
          ASSERT_TRUE(map.Negate(signs));
          for (size_t i = 0; i < listed.elements.size(); ++i) {
            if (signs[i % signs.size()]) listed.elements[i].negative = !listed.elements[i].negative;
          }
          program += "negate ";
          break;
        }
        case 3: {  // the halves the other way round, the second one negated
          if (dims[axis] % 2 != 0) break;
          PlaceMap a = map, b = map;
          const int64_t half = dims[axis] / 2;
          ASSERT_TRUE(a.Take(dims, axis, {{{0, 1, half}}}));
          ASSERT_TRUE(b.Take(dims, axis, {{{half, 1, half}}}));
          b.NegateAll();
          int64_t outer = 1;
          for (size_t i = 0; i < axis; ++i) outer *= dims[i];
          ASSERT_TRUE(PlaceMap::Join({b, a}, outer, &map));
          std::vector<int64_t> positions;
          for (int64_t i = 0; i < dims[axis]; ++i) positions.push_back(i < half ? i + half : i - half);
          listed = listed.Take(dims, axis, positions);
          int64_t inner = 1;
          for (size_t i = axis + 1; i < dims.size(); ++i) inner *= dims[i];
          for (size_t i = 0; i < listed.elements.size(); ++i) {
            if (static_cast<int64_t>(i) / inner % dims[axis] < half) listed.elements[i].negative = !listed.elements[i].negative;
          }
          program += "turn ";
          break;
        }
        default:
          map.NegateAll();
          for (PlaceMap::Element& element : listed.elements) element.negative = !element.negative;
      }
      ExpectSame(map, listed, program);
      if (HasFatalFailure() || map.size() == 0) break;
    }
    if (HasFatalFailure()) return;
  }
}

}  // namespace
}  // namespace ascend_fuse
