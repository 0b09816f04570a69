// Choices of order against all choices there are, and what the operator table says of the order of axes.
#include "passes/layout/order_graph.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "passes/layout/axis_exchange.h"
#include "tests/unit/inferred.h"

namespace ascend_fuse {
namespace {

using testing::Inferred;

// A tensor of a random graph of choices.
struct Tensor {
  int maker = 0;  // the number of a choice; -1: it is computed in the first order, -2: in the second one, -3: it is there in both
  std::vector<int> readers;
  int64_t cost = 0;

  int64_t CostOf(const std::vector<Order>& orders) const {
    const auto order_of = [&](int choice) {
      return choice >= 0 ? orders[static_cast<size_t>(choice)] : choice == -1 ? Order::kFirst : Order::kSecond;
    };
    int64_t sum = 0;
    for (const Order order : {Order::kFirst, Order::kSecond}) {
      const bool is_read = std::any_of(readers.begin(), readers.end(), [&](int reader) { return order_of(reader) == order; });
      if (is_read && (maker == -3 || order_of(maker) != order)) sum += cost;
    }
    return sum;
  }
};

TEST(OrderGraph, IsTheLeastOfAll) {
  std::mt19937 random(11);
  for (int round = 0; round < 300; ++round) {
    const int count = 1 + static_cast<int>(random() % 7);
    OrderGraph graph;
    std::vector<OrderGraph::Choice> choices;
    for (int i = 0; i < count; ++i) choices.push_back(graph.AddChoice());
    const auto choice_of = [&](int number) {
      return number >= 0 ? choices[static_cast<size_t>(number)]
                         : OrderGraph::Fixed(number == -1 ? Order::kFirst : Order::kSecond);
    };
    std::vector<int64_t> slower;  // each in the second order
    for (const OrderGraph::Choice choice : choices) {
      slower.push_back(random() % 8);
      graph.Charge(choice, Order::kSecond, slower.back());
    }
    std::vector<Tensor> tensors(1 + random() % 6);
    for (Tensor& tensor : tensors) {
      tensor.maker = static_cast<int>(random() % static_cast<unsigned>(count + 3)) - 3;
      tensor.cost = 1 + random() % 20;
      for (size_t i = 0; i < 1 + random() % 3; ++i) {
        tensor.readers.push_back(static_cast<int>(random() % static_cast<unsigned>(count + 2)) - 2);
      }
      std::vector<OrderGraph::Choice> readers;
      for (const int reader : tensor.readers) readers.push_back(choice_of(reader));
      const OrderGraph::Readers all = graph.AddReaders(readers);
      for (const Order order : {Order::kFirst, Order::kSecond}) {
        if (tensor.maker == -3) {
          graph.ChargeReading(all, order, tensor.cost);
        } else {
          graph.ChargeMoving(choice_of(tensor.maker), all, order, tensor.cost);
        }
      }
    }
    graph.Solve();
    const auto total = [&](const std::vector<Order>& orders) {
      int64_t sum = 0;
      for (size_t i = 0; i < orders.size(); ++i) sum += orders[i] == Order::kSecond ? slower[i] : 0;
      for (const Tensor& tensor : tensors) sum += tensor.CostOf(orders);
      return sum;
    };
    int64_t least = INT64_MAX;
    for (int all = 0; all < 1 << count; ++all) {
      std::vector<Order> orders;
      for (int i = 0; i < count; ++i) orders.push_back((all >> i & 1) != 0 ? Order::kSecond : Order::kFirst);
      least = std::min(least, total(orders));
    }
    std::vector<Order> chosen;
    for (const OrderGraph::Choice choice : choices) chosen.push_back(graph.OrderOf(choice));
    EXPECT_EQ(total(chosen), least) << "round " << round;
  }
}

// Which inputs of the node that computes `value` have the axes that are exchanged; "none" where it computes something else then.
std::string OperandsOf(Inferred& model, const std::string& value, const ExchangedAxes& axes) {
  const auto how = HowToExchange(*model.Find(value)->producer, model.facts(), axes);
  if (!how.has_value()) return "none";
  std::string text;
  for (const size_t operand : how->operands) text += std::to_string(operand) + " ";
  return text + "-> " + std::to_string(how->results.size());
}

TEST(AxisExchange, AscendNodesSayItInTheOperatorTable) {
  Inferred model(
      R"(g (float[2, 4, 8, 16] x, float[1, 1, 8, 16] c, float[16] g) => (float[2, 4, 8, 16] r, float[2, 4, 8, 16] p, float[2, 4, 8, 16] n, float[2, 4, 8, 16] l)
    <int32[1] width = {16}> {
      r = npu.NPURotaryMul (x, c, c)
      p = npu.NPURotaryPositionEmbedding <mode = 1> (x, c, c)
      n = npu.NPURmsNorm <epsilon = 0.000001> (x, g)
      l = npu.NPULayerNormV4 (x, width, g, g)
    })");
  EXPECT_EQ(OperandsOf(model, "r", kHeadsAndTokens), "0 1 2 -> 1");
  EXPECT_EQ(OperandsOf(model, "p", kHeadsAndTokens), "0 1 2 -> 1");
  EXPECT_EQ(OperandsOf(model, "n", kHeadsAndTokens), "0 -> 1");
  EXPECT_EQ(OperandsOf(model, "l", kHeadsAndTokens), "0 -> 1");
  // Not along the axis that they compute along.
  for (const char* value : {"r", "p", "n", "l"}) EXPECT_EQ(OperandsOf(model, value, {4, 2, 3}), "none") << value;
}

TEST(AxisExchange, NodesOfOnnx) {
  Inferred model(
      R"(g (float[S, B, 64] x, float[S, B, 64] y, float[64, 32] w, float[S, 1, 64] half, float[64] g) => (float[S, B, 64] sum, float[S, B, 32] product, float[S, B, 64] some, float[S, B, 64] norm, float[S, B, 64] soft, float[R, 64] rows) {
      sum = Add (x, y)
      product = MatMul (x, w)
      some = Add (x, half)
      norm = LayerNormalization <axis = -1> (x, g, g)
      soft = Softmax <axis = 0> (x)
      shape = Constant <value = int64[2] {-1, 64}> ()
      rows = Reshape (x, shape)
    })");
  const ExchangedAxes rows = {3, 0, 1};
  EXPECT_EQ(OperandsOf(model, "sum", rows), "0 1 -> 1");
  EXPECT_EQ(OperandsOf(model, "product", rows), "0 -> 1");
  EXPECT_EQ(OperandsOf(model, "some", rows), "0 1 -> 1");
  EXPECT_EQ(OperandsOf(model, "norm", rows), "0 -> 1");
  EXPECT_EQ(OperandsOf(model, "soft", rows), "none");
  EXPECT_EQ(OperandsOf(model, "rows", rows), "none");
}

TEST(AxisExchange, WhatMovesAlongAxes) {
  Inferred model(
      R"(g (float[S, B, 64] x, float[S, B, 64] y, float[S, 1, 64] one, int64[1] n) => (float[S, B, 128] j, float[S, B, 32] a, float[S, B, 32] s, float[S, B, 64] e, float[S, 64, B] t, float[K, B, 64] c, float[S, B, 8] p)
      <int64[1] zero = {0}, int64[1] half = {32}, int64[1] last = {2}, int64[2] parts = {32, 32}> {
      j = Concat <axis = -1> (x, y)
      a, b = Split <axis = 2> (x, parts)
      s = Slice (x, zero, half, last)
      dims = Shape (x)
      e = Expand (one, dims)
      t = Transpose <perm = [0, 2, 1]> (x)
      c = Slice (x, zero, n, zero)
      p = Gather <axis = 2> (x, zero)
    })");
  const ExchangedAxes rows = {3, 0, 1};
  EXPECT_EQ(OperandsOf(model, "j", rows), "0 1 -> 1");
  EXPECT_EQ(OperandsOf(model, "a", rows), "0 -> 2");
  EXPECT_EQ(OperandsOf(model, "s", rows), "0 -> 1");
  EXPECT_EQ(OperandsOf(model, "e", rows), "0 -> 1");
  EXPECT_EQ(OperandsOf(model, "c", rows), "0 -> 1") << "along another axis then";
  EXPECT_EQ(OperandsOf(model, "t", rows), "none");
  EXPECT_EQ(OperandsOf(model, "p", rows), "none") << "it is not written";
  // Where one axis is two, nothing moves along it.
  EXPECT_EQ(OperandsOf(model, "s", {3, 0, 0}), "0 -> 1");
  EXPECT_EQ(OperandsOf(model, "s", {3, 2, 2}), "none");
  EXPECT_EQ(OperandsOf(model, "j", {3, 2, 2}), "none");
  EXPECT_EQ(OperandsOf(model, "c", {3, 0, 0}), "none");
}

}  // namespace
}  // namespace ascend_fuse
