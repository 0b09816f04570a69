// The algebra of dims: canonical forms, division, unification, bounds, text, and that every simplification
// keeps the value under random bindings.
#include "ir/dim.h"

#include <map>
#include <random>
#include <string>
#include <vector>

#include "fmt/format.h"
#include "gtest/gtest.h"

namespace ascend_fuse {
namespace {

class DimTest : public ::testing::Test {
 protected:
  Dim P(std::string_view text) { return table_.Parse(text); }
  Dim N(int64_t number) { return Dim::Of(number); }
  std::string Text(Dim dim) { return table_.ToString(dim); }
  bool Same(std::string_view a, std::string_view b) { return table_.Equal(P(a), P(b)); }

  DimTable table_;
};

TEST_F(DimTest, SumsAndProductsHaveOneForm) {
  const Dim a = table_.Symbol("a");
  const Dim b = table_.Symbol("b");
  EXPECT_EQ(table_.Symbol("a"), a);
  EXPECT_EQ(table_.Add(a, b), table_.Add(b, a));
  EXPECT_EQ(table_.Mul(a, b), table_.Mul(b, a));
  EXPECT_EQ(table_.Sub(table_.Add(a, b), b), a);
  EXPECT_EQ(table_.Sub(a, a), N(0));
  EXPECT_EQ(table_.Mul(table_.Add(a, N(1)), table_.Sub(a, N(1))), table_.Sub(table_.Mul(a, a), N(1)));
  EXPECT_EQ(table_.Mul(a, N(0)), N(0));
  EXPECT_EQ(Text(table_.Add(table_.Mul(N(2), a), b)), "2*a + b");
  EXPECT_EQ(Text(table_.Sub(b, a)), "b - a");
  EXPECT_EQ(Text(Dim()), "?");
}

TEST_F(DimTest, UnknownAndOverflowGiveUnknown) {
  const Dim a = table_.Symbol("a");
  const Dim huge = N(INT64_MAX);
  EXPECT_FALSE(table_.Add(a, Dim()).known());
  EXPECT_FALSE(table_.Mul(Dim(), a).known());
  EXPECT_FALSE(table_.Add(huge, N(1)).known());
  EXPECT_FALSE(table_.Mul(table_.Mul(huge, a), N(2)).known());
  EXPECT_FALSE(table_.FloorDiv(N(INT64_MIN), N(-1)).known());
  EXPECT_FALSE(table_.FloorDiv(a, N(0)).known());
  EXPECT_FALSE(table_.Mod(a, N(0)).known());
  EXPECT_FALSE(table_.Equal(Dim(), Dim()));
  EXPECT_FALSE(table_.NotEqual(Dim(), a));
}

TEST_F(DimTest, SizeLimits) {
  Dim sum = N(1);
  for (int i = 0; i < 30; ++i) sum = table_.Mul(sum, table_.Add(table_.Symbol(fmt::format("x{}", i)), N(1)));
  EXPECT_FALSE(sum.known());  // 2^30 terms
  Dim nested = table_.Symbol("n");
  for (int i = 0; i < 1000; ++i) nested = table_.Max(table_.FloorDiv(nested, table_.Symbol("d")), table_.Symbol("m"));
  EXPECT_FALSE(nested.known());
}

TEST_F(DimTest, WorkIsBounded) {
  Dim sum = N(0);
  for (int i = 0; i < 250; ++i) sum = table_.Add(sum, table_.Symbol(fmt::format("x{}", i)));
  Dim last = sum;
  for (int i = 0; i < 2'000'000; ++i) last = table_.FloorDiv(table_.Add(sum, Dim::Of(i)), sum);
  EXPECT_FALSE(last.known());
  EXPECT_EQ(table_.Add(N(2), N(3)), N(5));
  EXPECT_TRUE(table_.Equal(sum, sum));
}

TEST_F(DimTest, ExactDivisionCancels) {
  EXPECT_EQ(table_.ExactDiv(P("batch*seq*64"), P("batch*seq*16")), N(4));
  EXPECT_TRUE(table_.Equal(table_.ExactDiv(P("2*a*b + 2*a"), P("2*a")), P("b + 1")));
  EXPECT_TRUE(table_.Equal(table_.ExactDiv(P("batch*past + batch*seq"), P("batch")), P("past + seq")));
  EXPECT_TRUE(table_.Equal(table_.ExactDiv(table_.Mul(P("a + b"), P("a - b + 3")), P("a + b")), P("a - b + 3")));
  EXPECT_FALSE(table_.ExactDiv(P("a + 1"), P("b")).known());
  EXPECT_FALSE(table_.ExactDiv(P("a"), N(2)).known());
  EXPECT_EQ(table_.ExactDiv(N(0), P("a")), N(0));
}

TEST_F(DimTest, FloorDivisionSimplifies) {
  EXPECT_EQ(table_.FloorDiv(N(-7), N(2)), N(-4));
  EXPECT_TRUE(Same("floor(2*d/2)", "d"));
  EXPECT_TRUE(Same("(4*a + 6)//2", "2*a + 3"));
  EXPECT_TRUE(Same("(2*a + 1)//2", "a"));
  EXPECT_TRUE(Same("(4*a + 2)//8", "(2*a + 1)//4"));
  EXPECT_TRUE(Same("(2*a + 3)//4", "(a + 1)//2"));
  EXPECT_TRUE(Same("(a//2)//3", "a//6"));
  EXPECT_TRUE(Same("(s - 1)//2 + 1", "(s + 1)//2"));
  EXPECT_TRUE(Same("(a*b)//(c*b)", "a//c"));
  EXPECT_TRUE(Same("(a*b + b)//b", "a + 1"));
  EXPECT_TRUE(Same("a//(-1)", "0 - a"));
  EXPECT_FALSE(Same("a//2", "b//2"));
  EXPECT_EQ(table_.Mod(P("4*a + 3"), N(4)), N(3));
  EXPECT_TRUE(table_.Equal(table_.Add(table_.Mul(N(2), P("a//2")), table_.Mod(P("a"), N(2))), P("a")));
}

TEST_F(DimTest, MinAndMax) {
  EXPECT_TRUE(Same("Max(0, s)", "s"));
  EXPECT_TRUE(Same("Max(past + seq, seq)", "past + seq"));
  EXPECT_TRUE(Same("Min(past + seq, seq)", "seq"));
  EXPECT_TRUE(Same("Max(1, s2)", "Max(s2, 1)"));
  EXPECT_TRUE(Same("Max(s + 1, 1)", "s + 1"));
  EXPECT_EQ(Text(P("Max(1, s2)")), "Max(1, s2)");
}

TEST_F(DimTest, Broadcast) {
  const Dim a = table_.Symbol("a");
  const Dim b = table_.Symbol("b");
  EXPECT_EQ(table_.Broadcast(a, N(1)), a);
  EXPECT_EQ(table_.Broadcast(N(1), a), a);
  EXPECT_EQ(table_.Broadcast(a, N(64)), N(64));
  EXPECT_EQ(table_.Broadcast(Dim(), N(64)), N(64));
  EXPECT_FALSE(table_.Broadcast(Dim(), N(1)).known());
  const Dim both = table_.Broadcast(a, b);
  EXPECT_FALSE(table_.Equal(both, a));
  EXPECT_EQ(table_.Broadcast(both, a), both);
  EXPECT_TRUE(table_.Unify(a, b));
  EXPECT_TRUE(table_.Equal(both, a));
  EXPECT_TRUE(table_.Equal(table_.Broadcast(table_.Add(a, N(2)), table_.Symbol("c")), table_.Add(a, N(2))));
}

TEST_F(DimTest, MeetProvesThatSlicesStayInside) {
  const Dim seq = P("seq");
  const Dim rows = P("Min(seq, 512)");
  EXPECT_FALSE(table_.Equal(rows, seq));
  EXPECT_EQ(table_.Meet(rows, seq), seq);
  EXPECT_TRUE(table_.Equal(rows, seq));
  const Dim part = table_.Sub(P("Min(p + q, 1024)"), P("Min(p, 1024)"));
  EXPECT_TRUE(table_.Equal(table_.Meet(part, P("q")), P("q")));
}

TEST_F(DimTest, MeetProvesThatRowsOfHeadsAreEqual) {
  const Dim rows = P("4*a");  // 0, 4, 8 ...: never 1, so what meets it is 1 or the same
  EXPECT_EQ(table_.Broadcast(rows, P("b")), rows);
  EXPECT_EQ(table_.Broadcast(P("b"), rows), rows);
  EXPECT_EQ(table_.Broadcast(Dim(), rows), rows);
  EXPECT_FALSE(table_.Equal(P("a"), P("c")));
  EXPECT_EQ(table_.Meet(rows, P("4*c")), table_.Resolve(rows));
  EXPECT_TRUE(table_.Equal(P("a"), P("c")));
  EXPECT_FALSE(table_.Equal(table_.Meet(P("4*d + 1"), P("4*e")), P("4*d + 1")));  // 4 d + 1 may be 1
  EXPECT_FALSE(table_.Equal(P("4*d + 1"), P("4*e")));
}

TEST_F(DimTest, Unify) {
  EXPECT_TRUE(table_.Unify(P("total"), P("past + seq")));
  EXPECT_TRUE(table_.Equal(P("total"), P("seq + past")));
  EXPECT_TRUE(table_.AtLeast(P("total"), P("seq")));
  EXPECT_TRUE(table_.Equal(P("2*total - past"), P("past + 2*seq")));
  EXPECT_TRUE(table_.Unify(P("3*x"), N(12)));
  EXPECT_TRUE(table_.Equal(P("x"), N(4)));
  EXPECT_FALSE(table_.Unify(P("x"), N(5)));
  EXPECT_FALSE(table_.Unify(P("2*y"), N(7)));
  EXPECT_FALSE(table_.Unify(P("z + 3"), N(1)));  // z >= 0
  EXPECT_TRUE(table_.Unify(Dim(), N(1)));
}

TEST_F(DimTest, UnifyInAnyOrderReachesOneForm) {
  const Dim k = P("k"), v = P("v"), t = P("t");
  const Dim sum = table_.Add(k, N(1));
  EXPECT_TRUE(table_.Unify(t, table_.Add(v, N(1))));
  EXPECT_FALSE(table_.Equal(t, sum));
  EXPECT_TRUE(table_.Unify(k, v));
  EXPECT_TRUE(table_.Equal(t, sum));
}

TEST_F(DimTest, SymbolsMadeByInferenceGiveWay) {
  const Dim fresh = table_.FreshSymbol("u");
  const Dim late = table_.Symbol("input");
  EXPECT_TRUE(table_.MentionsFresh(fresh));
  EXPECT_TRUE(table_.Unify(fresh, late));
  EXPECT_EQ(Text(fresh), "input");
  EXPECT_FALSE(table_.MentionsFresh(fresh));
  EXPECT_EQ(Text(table_.FreshSymbol("u")), "u'1");
}

TEST_F(DimTest, ANameThatIsDeclaredLaterIsAnotherDim) {
  const Dim fresh = table_.FreshSymbol("x_d0", true);
  EXPECT_EQ(table_.Find("x_d0"), fresh);
  EXPECT_TRUE(table_.CanBeTold("x_d0"));
  const Dim declared = table_.Symbol("x_d0");
  EXPECT_FALSE(table_.Equal(fresh, declared));
  EXPECT_EQ(Text(declared), "x_d0");
  EXPECT_EQ(Text(fresh), "x_d0'1");
  EXPECT_EQ(table_.Find("x_d0"), declared);
  EXPECT_FALSE(table_.CanBeTold("x_d0'1"));
  EXPECT_EQ(table_.Symbol("x_d0"), declared);
  EXPECT_FALSE(table_.Find("nobody").known());
}

TEST_F(DimTest, ProductsProveNothingAboutFactorsThatMayBeZero) {
  EXPECT_TRUE(table_.Unify(P("past*a"), P("past*b")));
  EXPECT_FALSE(table_.Equal(P("a"), P("b")));
  table_.SetRange("n", 1, 8);
  EXPECT_TRUE(table_.Unify(P("n*c"), P("n*d")));
  EXPECT_TRUE(table_.Equal(P("c"), P("d")));
}

TEST_F(DimTest, OpaqueCyclesEnd) {
  // floor(s/2) = t, t = floor(r/2), r = s: following these round must stop.
  EXPECT_TRUE(table_.Unify(P("s//2"), P("t")));
  EXPECT_TRUE(table_.Unify(P("t"), P("r//2")));
  EXPECT_TRUE(table_.Unify(P("r"), P("s")));
  EXPECT_TRUE(table_.Resolve(P("s//2")).known());
  EXPECT_TRUE(table_.Equal(P("t"), P("s//2")));
  EXPECT_TRUE(table_.Unify(P("x"), P("Max(x, 3)")));
  EXPECT_TRUE(table_.Resolve(P("Max(x, 3)")).known());
}

TEST_F(DimTest, LongChainsOfEqualitiesEnd) {
  std::vector<Dim> symbols;
  for (int i = 0; i < 20000; ++i) symbols.push_back(table_.Symbol(fmt::format("c{}", i)));
  for (size_t i = symbols.size() - 1; i > 0; --i) EXPECT_TRUE(table_.Unify(symbols[i], symbols[i - 1]));
  EXPECT_TRUE(table_.Equal(symbols.back(), symbols.front()));
  Dim last = table_.Symbol("d0");
  for (int i = 1; i < 5000; ++i) {
    const Dim next = table_.Symbol(fmt::format("d{}", i));
    table_.Unify(next, table_.Add(last, N(1)));
    last = next;
  }
  EXPECT_TRUE(table_.Resolve(last).known());
}

TEST_F(DimTest, ScopesProtectOuterSymbols) {
  const Dim outer = P("outer");
  const uint64_t left = table_.SetScope(7);
  const Dim inner = table_.FreshSymbol("inner");
  EXPECT_TRUE(table_.Unify(inner, outer));
  EXPECT_TRUE(table_.Unify(outer, N(4)));  // holds here, is not believed elsewhere
  EXPECT_TRUE(table_.Equal(outer, N(4)));
  table_.SetScope(left);
  EXPECT_FALSE(table_.Equal(outer, N(4)));
  EXPECT_TRUE(table_.Equal(inner, outer));
}

TEST_F(DimTest, WhatHoldsInAScopeHoldsWithinIt) {
  const Dim seq = P("seq");
  const Dim past = P("past");
  const Dim twice = P("2*seq + 1");
  EXPECT_EQ(Text(twice), "2*seq + 1");
  table_.SetScope(7);
  EXPECT_TRUE(table_.Unify(past, seq));
  table_.SetScope(8, 7);
  EXPECT_TRUE(table_.Unify(seq, N(4)));
  EXPECT_TRUE(table_.Equal(past, N(4)));
  EXPECT_EQ(Text(twice), "9");
  EXPECT_FALSE(table_.Unify(past, N(5)));
  table_.SetScope(7);
  EXPECT_TRUE(table_.Equal(past, seq));
  EXPECT_EQ(Text(twice), "2*seq + 1");
  table_.SetScope(9);  // beside it
  EXPECT_FALSE(table_.Equal(past, seq));
  EXPECT_TRUE(table_.Unify(seq, N(5)));
  EXPECT_EQ(Text(twice), "11");
  table_.SetScope(0);
  EXPECT_FALSE(table_.Equal(past, seq));
  EXPECT_EQ(Text(twice), "2*seq + 1");
  EXPECT_TRUE(table_.Unify(past, N(6)));  // for all of them
  table_.SetScope(7);
  EXPECT_TRUE(table_.Equal(seq, N(6)));
  table_.SetScope(0);
  EXPECT_FALSE(table_.Equal(seq, N(6)));
  table_.ForgetScoped(7);
  table_.SetScope(7);
  EXPECT_FALSE(table_.Equal(seq, N(6)));
}

TEST_F(DimTest, Comparisons) {
  EXPECT_TRUE(table_.AtLeast(P("past + seq"), P("seq")));
  EXPECT_FALSE(table_.AtLeast(P("seq"), P("past")));
  EXPECT_TRUE(table_.NotEqual(P("s"), N(-1)));
  EXPECT_TRUE(table_.NotEqual(P("s + 1"), P("s")));
  EXPECT_TRUE(table_.NotEqual(P("2*a + 4*b"), N(7)));
  EXPECT_FALSE(table_.NotEqual(P("a"), N(0)));
  EXPECT_TRUE(table_.AtLeast(P("a*b + a"), P("a*b")));
  EXPECT_TRUE(table_.AtLeast(P("a"), table_.Mul(N(2), P("a//2"))));
  EXPECT_TRUE(table_.AtLeast(N(1), table_.Mod(P("a"), N(2))));
  EXPECT_TRUE(table_.AtLeast(P("Max(a, 5)"), N(5)));
  EXPECT_TRUE(table_.AtLeast(P("a"), P("Min(a, b)")));
}

TEST_F(DimTest, Ranges) {
  table_.SetRange("seq", 1, 2048);
  table_.SetRange("batch", 2, 2);
  EXPECT_TRUE(table_.Equal(P("batch"), N(2)));
  EXPECT_EQ(Text(P("batch*seq")), "2*seq");
  EXPECT_EQ(table_.LowerBound(P("batch*seq")), 2);
  EXPECT_EQ(table_.UpperBound(P("batch*seq + 1")), 4097);
  EXPECT_EQ(table_.UpperBound(P("past")), std::nullopt);
  EXPECT_EQ(table_.LowerBound(P("past")), 0);
  EXPECT_EQ(table_.UpperBound(P("(seq + 15)//16")), 128);
  EXPECT_TRUE(Same("Min(seq, 4096)", "seq"));
  table_.SetRange("total", 1, 100);
  EXPECT_TRUE(table_.Unify(P("total"), P("past + new")));
  EXPECT_EQ(table_.UpperBound(P("past + new")), 100);
  EXPECT_EQ(table_.LowerBound(P("past + new")), 1);
}

TEST_F(DimTest, ParsesWhatExportersWrite) {
  EXPECT_TRUE(table_.Equal(P("s15 + s70"), table_.Add(P("s15"), P("s70"))));
  EXPECT_TRUE(table_.Equal(P("s0*s1"), table_.Mul(P("s0"), P("s1"))));
  EXPECT_TRUE(table_.Equal(P("2*s3 - 1"), table_.Sub(table_.Mul(N(2), P("s3")), N(1))));
  EXPECT_TRUE(table_.Equal(P("s27 + 1"), table_.Add(P("s27"), N(1))));
  EXPECT_TRUE(table_.Equal(P("floor(s1/2)"), table_.FloorDiv(P("s1"), N(2))));
  EXPECT_TRUE(table_.Equal(P("floor(s1/2 + 1/2)"), table_.FloorDiv(P("s1 + 1"), N(2))));
  EXPECT_TRUE(table_.Equal(P("(s0//2)"), table_.FloorDiv(P("s0"), N(2))));
  EXPECT_TRUE(table_.Equal(P("((s43*s53)//s72)"), table_.FloorDiv(P("s43*s53"), P("s72"))));
  EXPECT_TRUE(
      table_.Equal(P("past_sequence_length + sequence_length"), table_.Add(P("past_sequence_length"), P("sequence_length"))));
  EXPECT_TRUE(table_.Equal(P("s0**2"), table_.Mul(P("s0"), P("s0"))));
  EXPECT_TRUE(table_.Equal(P("Mod(s0, 2)"), table_.Mod(P("s0"), N(2))));
  EXPECT_TRUE(table_.Equal(P("-s0 + s1"), table_.Sub(P("s1"), P("s0"))));
  EXPECT_TRUE(table_.Equal(P("ceiling(s0/2)"), table_.FloorDiv(P("s0 + 1"), N(2))));
  EXPECT_TRUE(table_.Equal(P("12"), N(12)));
  EXPECT_FALSE(P("").known());
}

TEST_F(DimTest, OtherTextIsOneSymbol) {
  for (const char* text : {"batch-size", "a b", "2d", "s0 +", "f(x)", "((a)", "?", "N/A", "unk__12", "a,b", "x y + 1",
                           "99999999999999999999", "Ωmega", "-", "a - ", "1.5*x", "None"}) {
    const Dim dim = table_.Parse(text);
    EXPECT_TRUE(dim.known()) << text;
    EXPECT_EQ(Text(dim), text);
    EXPECT_EQ(dim, table_.Symbol(text)) << text;
  }
  EXPECT_TRUE(table_.Parse(std::string(5000, '(')).known());
  EXPECT_TRUE(table_.Parse(std::string(900, '(')).known());
  EXPECT_TRUE(table_.Parse(fmt::format("{}x{}", std::string(200, '('), std::string(200, ')'))).known());
}

TEST_F(DimTest, Evaluate) {
  const auto bind = [](std::string_view name) -> std::optional<int64_t> {
    if (name == "a") return 7;
    if (name == "b") return 3;
    return std::nullopt;
  };
  EXPECT_EQ(table_.Evaluate(P("a//b + Max(a, b)*2 - a%b"), bind), 2 + 14 - 1);
  EXPECT_EQ(table_.Evaluate(P("c"), bind), std::nullopt);
  EXPECT_EQ(table_.Evaluate(Dim(), bind), std::nullopt);
  table_.Unify(P("sum"), P("a + b"));
  EXPECT_EQ(table_.Evaluate(P("sum"), bind), 10);
}

// --- properties
// ------------------------------------------------------------------------------------------------

struct Sample {
  Dim dim;
  std::vector<std::optional<int64_t>> values;  // one for each binding; nullopt after a division by 0
};

using Binding = std::map<std::string, int64_t, std::less<>>;

std::optional<int64_t> Bound(const Binding& binding, std::string_view name) {
  const auto found = binding.find(name);
  return found == binding.end() ? std::nullopt : std::optional<int64_t>(found->second);
}

class DimProperty : public ::testing::TestWithParam<int> {};

// Long because it is one case for each operation.
TEST_P(DimProperty, SimplifyingKeepsTheValue) {
  std::mt19937 random(static_cast<uint32_t>(GetParam()));
  const auto pick = [&](int64_t low, int64_t high) { return std::uniform_int_distribution<int64_t>(low, high)(random); };
  DimTable table;
  const std::vector<std::string> names = {"a", "b", "c", "d"};
  std::vector<Binding> bindings(6);
  for (auto& binding : bindings) {
    for (const std::string& name : names) binding[name] = pick(0, 12);
    binding["d"] = pick(1, 5);
  }
  table.SetRange("d", 1, 5);
  std::vector<Sample> pool;
  for (const std::string& name : names) {
    Sample sample{table.Symbol(name), {}};
    for (const auto& binding : bindings) sample.values.push_back(binding.at(name));
    pool.push_back(sample);
  }
  for (int64_t number : {0, 1, 2, 3, 4, 16}) {
    pool.push_back({Dim::Of(number), std::vector<std::optional<int64_t>>(bindings.size(), number)});
  }
  const auto floor_div = [](int64_t a, int64_t b) { return a / b - ((a % b != 0 && (a < 0) != (b < 0)) ? 1 : 0); };
  for (int step = 0; step < 400; ++step) {
    const Sample x = pool[static_cast<size_t>(pick(0, static_cast<int64_t>(pool.size()) - 1))];
    const Sample y = pool[static_cast<size_t>(pick(0, static_cast<int64_t>(pool.size()) - 1))];
    const int64_t op = pick(0, 7);
    Sample z;
    switch (op) {
      case 0:
        z.dim = table.Add(x.dim, y.dim);
        break;
      case 1:
        z.dim = table.Sub(x.dim, y.dim);
        break;
      case 2:
        z.dim = table.Mul(x.dim, y.dim);
        break;
      case 3:
        z.dim = table.FloorDiv(x.dim, y.dim);
        break;
      case 4:
        z.dim = table.Mod(x.dim, y.dim);
        break;
      case 5:
        z.dim = table.Min(x.dim, y.dim);
        break;
      case 6:
        z.dim = table.Max(x.dim, y.dim);
        break;
      default:
        z.dim = table.ExactDiv(x.dim, y.dim);
        break;
    }
    bool small = true;
    for (size_t i = 0; i < bindings.size(); ++i) {
      std::optional<int64_t> value;
      if (x.values[i].has_value() && y.values[i].has_value()) {
        const int64_t a = *x.values[i];
        const int64_t b = *y.values[i];
        int64_t result = 0;
        switch (op) {
          case 0:
            value = a + b;
            break;
          case 1:
            value = a - b;
            break;
          case 2:
            if (!__builtin_mul_overflow(a, b, &result)) value = result;
            break;
          case 3:
            if (b != 0) value = floor_div(a, b);
            break;
          case 4:
            if (b != 0) value = a - b * floor_div(a, b);
            break;
          case 5:
            value = std::min(a, b);
            break;
          case 6:
            value = std::max(a, b);
            break;
          default:
            if (b != 0 && a % b == 0) value = a / b;
            break;
        }
      }
      if (value.has_value() && std::abs(*value) > 1000000) small = false;
      z.values.push_back(value);
    }
    if (!z.dim.known()) continue;
    std::vector<int64_t> seen;
    for (size_t i = 0; i < bindings.size(); ++i) {
      if (!z.values[i].has_value()) continue;
      const std::optional<int64_t> evaluated =
          table.Evaluate(z.dim, [&](std::string_view name) { return Bound(bindings[i], name); });
      // A canonical form may divide by something that is 0 here only where the original does as well.
      ASSERT_EQ(evaluated, z.values[i]) << "op " << op << " of " << table.ToString(x.dim) << " and " << table.ToString(y.dim)
                                        << " = " << table.ToString(z.dim);
      if (const auto low = table.LowerBound(z.dim); low.has_value()) {
        ASSERT_GE(*z.values[i], *low) << table.ToString(z.dim);
      }
      if (const auto high = table.UpperBound(z.dim); high.has_value()) {
        ASSERT_LE(*z.values[i], *high) << table.ToString(z.dim);
      }
      if (!x.values[i].has_value()) continue;
      ASSERT_FALSE(table.AtLeast(x.dim, z.dim) && *x.values[i] < *z.values[i]);
      ASSERT_FALSE(table.NotEqual(x.dim, z.dim) && *x.values[i] == *z.values[i]);
      ASSERT_FALSE(table.Equal(x.dim, z.dim) && *x.values[i] != *z.values[i]);
    }
    // What is printed reads back with the same value.
    const std::string text = table.ToString(z.dim);
    if (text.size() > 200) continue;
    const Dim read = table.Parse(text);
    for (size_t i = 0; i < bindings.size(); ++i) {
      if (!z.values[i].has_value()) continue;
      ASSERT_EQ(table.Evaluate(read, [&](std::string_view name) { return Bound(bindings[i], name); }), z.values[i]) << text;
    }
    if (small) pool.push_back(std::move(z));
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, DimProperty, ::testing::Range(0, 40));

TEST_F(DimTest, NothingIsRecordedWhileUnificationIsOff) {
  EXPECT_TRUE(table_.SetUnification(false));
  EXPECT_TRUE(table_.Unify(P("a"), P("b")));
  EXPECT_FALSE(table_.Unify(P("a"), P("a + 1")));
  EXPECT_FALSE(Same("a", "b"));
  EXPECT_FALSE(table_.SetUnification(true));
  EXPECT_TRUE(table_.Unify(P("a"), P("b")));
  EXPECT_TRUE(Same("a", "b"));
}

TEST_F(DimTest, SymbolsAreThoseThatWereWritten) {
  using Names = std::vector<std::string_view>;
  EXPECT_EQ(table_.Symbols(P("2*s1 + Max(batch, floor(s1/4))")), (Names{"s1", "batch"}));
  EXPECT_EQ(table_.Symbols(Dim::Of(7)), Names());
  EXPECT_EQ(table_.Symbols(Dim()), Names());
  // Not what they were bound to or found equal to.
  const Dim total = P("total + seq");
  table_.SetRange("seq", 4, 4);
  table_.Unify(P("total"), P("past + 1"));
  EXPECT_EQ(table_.Symbols(total), (Names{"total", "seq"}));
}

}  // namespace
}  // namespace ascend_fuse
