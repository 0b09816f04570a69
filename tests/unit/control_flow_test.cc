// If, Loop and Scan: what is known after them holds whichever branch ran and however often the loop turned, and what
// is known in a body stays there.
#include <string>

#include "gtest/gtest.h"
#include "ir/infer/carried.h"
#include "tests/unit/inferred.h"

namespace ascend_fuse {
namespace {

using testing::Inferred;

TEST(ControlFlowTest, BranchesAreJoinedAndProveNothingOutside) {
  Inferred m(R"(g (bool c, float[n, 4] x, float[k, 4] y) => (z) {
    z, w = If (c) <
      then_branch = g1 () => (a, a2) { s = Constant <value_ints = [4, 4]> ()
                                       one = Reshape (x, s)
                                       a = Relu (x)
                                       a2 = Relu (x) },
      else_branch = g2 () => (e, e2) { e = Relu (y)
                                       t = Transpose (x)
                                       u = MatMul (t, y)
                                       e2 = Neg (x) }
    >
  })");
  EXPECT_EQ(m["z"], "float[n, 4]");  // where the second one ran, k is n
  EXPECT_EQ(m["w"], "float[n, 4]");
  EXPECT_EQ(m["x"], "float[n, 4]");
  EXPECT_EQ(m["one"], "float[4, 4]");
  EXPECT_FALSE(m.facts().dims().Equal(m.fact("x").shape[0], m.fact("y").shape[0]));
}

TEST(ControlFlowTest, WhatABranchProvesIsKnownInIt) {
  Inferred m(R"(g (bool c, float[n, 4] x, float[k, 4] y) => (z, after) {
    z = If (c) <
      then_branch = g1 () => (a) { before = Relu (y)
                                   both = Concat <axis = 1> (x, y)
                                   a = Neg (y) },
      else_branch = g2 () => (e) { other = Relu (y)
                                   e = Sigmoid (y) }
    >
    after = Relu (y)
  })");
  EXPECT_EQ(m["before"], "float[k, 4]");  // names are those of the outside
  EXPECT_EQ(m["both"], "float[n, 8]");
  EXPECT_EQ(m["other"], "float[k, 4]");
  EXPECT_EQ(m["after"], "float[k, 4]");
  EXPECT_EQ(m["z"], "float[k, 4]");
  Facts& facts = m.facts();
  const Dim n = m.fact("x").shape[0];
  const Dim k = m.fact("y").shape[0];
  EXPECT_FALSE(facts.dims().Equal(n, k));
  const InPlace place(*m.Find("before")->graph, &facts);
  EXPECT_TRUE(facts.dims().Equal(n, k));
}

TEST(ControlFlowTest, WhatBothBranchesProveHolds) {
  Inferred m(R"(g (bool c, float[n, 4] x, float[k, 4] y, float[17, 4] angles) => (z) {
    z = If (c) <
      then_branch = g1 () => (a) { both = Concat <axis = 1> (x, y)
                                   turned = Concat <axis = 1> (x, angles)
                                   a = Relu (x) },
      else_branch = g2 () => (e) { other = Concat <axis = 1> (y, x)
                                   e = Relu (y) }
    >
  })");
  EXPECT_TRUE(m.facts().dims().Equal(m.fact("x").shape[0], m.fact("y").shape[0]));
  EXPECT_FALSE(m.fact("x").shape[0].is_number());
  EXPECT_EQ(m["turned"], "float[17, 8]");
}

TEST(ControlFlowTest, WhatATurnProvesIsKnownInItAndKeepsItsState) {
  const Inferred m(R"(g (int64 trips, bool go, float[n, 4] x, float[17, 4] angles) => (y, after) {
    y = Loop (trips, go, x) <
      body = b (int64 i, bool c, float[n, 4] v) => (bool d, float[n, 4] w) {
        d = Identity (c)
        all = Concat <axis = 1> (v, angles)
        w = Mul (v, angles)
      }
    >
    after = Relu (x)
  })");
  EXPECT_EQ(m["v"], "float[17, 4]");
  EXPECT_EQ(m["w"], "float[17, 4]");
  EXPECT_EQ(m["y"], "float[n, 4]");  // it may not have turned
  EXPECT_EQ(m["after"], "float[n, 4]");
}

TEST(ControlFlowTest, TheNameOfAStateThatGrowsIsALabel) {
  const Inferred m(R"(g (int64 trips, bool go, float[past, 4] cache, float[past, 4] x, float[1, 4] row) => (y) {
    y = Loop (trips, go, cache) <
      body = b (int64 i, bool c, float[past, 4] v) => (bool d, float[total, 4] w) {
        d = Identity (c)
        w = Concat <axis = 0> (v, row)
      }
    >
  })");
  EXPECT_EQ(m["v"], "float[v_d0, 4]");
  EXPECT_EQ(m["w"], "float[v_d0 + 1, 4]");
  EXPECT_EQ(m["y"], "float[y_d0, 4]");
}

TEST(ControlFlowTest, LoopKeepsWhatEveryTurnKeeps) {
  const Inferred m(R"(g (float[n, 4] x) => (y) {
    trips = Constant <value_int = 3> ()
    go = Constant <value = bool {1}> ()
    y, all = Loop (trips, go, x) <
      body = b (int64 i, bool c, float[n, 4] v) => (bool d, float[n, 4] w, float[n, 4] out) {
        d = Identity (c)
        w = Relu (v)
        out = Neg (v)
      }
    >
  })");
  EXPECT_EQ(m["y"], "float[n, 4]");
  EXPECT_EQ(m["all"], "float[3, n, 4]");
}

TEST(ControlFlowTest, WhatABranchProvesOfItsBroadcastsStaysThere) {
  // In the branch the sum is contracted with n rows. Where the branch does not run, k may be anything.
  const Inferred m(R"(g (bool c, float[n] x, float[k] y, float[n, 4] w) => (t, z) {
    z = If (c) <
      then_branch = g1 () => (a) { s = Add (x, y)
                                   a = MatMul (s, w) },
      else_branch = g2 () => (e) { e = Constant <value_floats = [1.0, 2.0, 3.0, 4.0]> () }
    >
    t = Add (x, y)
  })");
  EXPECT_EQ(m["s"], "float[n]");
  EXPECT_EQ(m["z"], "float[4]");
  EXPECT_EQ(m["t"], "float[broadcast(n, k)]");
}

TEST(ControlFlowTest, WhatABranchProvesOfItsSlicesStaysThere) {
  const Inferred m(R"(g (bool c, float[s, 8] x, float[64, 8] table) => (z, rows) {
    zero = Constant <value_ints = [0]> ()
    n = Shape <start = 0, end = 1> (x)
    z = If (c) <
      then_branch = g1 () => (a) { inner = Slice (table, zero, n)
                                   a = Add (x, inner) },
      else_branch = g2 () => (e) { e = Relu (x) }
    >
    rows = Slice (table, zero, n)
  })");
  EXPECT_EQ(m["a"], "float[s, 8]");
  EXPECT_EQ(m["z"], "float[s, 8]");
  EXPECT_EQ(m["rows"], "float[Min(64, s), 8]");
}

TEST(ControlFlowTest, BranchesThatComputeOneDimEach) {
  const Inferred m(R"(g (bool c, float[b, s] x, float[b, t] y) => (z) {
    z, n = If (c) <
      then_branch = g1 () => (a, an) { a, a2 = Split <axis = 1, num_outputs = 2> (x)
                                       as = Shape (x)
                                       one = Constant <value_ints = [1]> ()
                                       an = Concat <axis = 0> (as, one) },
      else_branch = g2 () => (e, en) { i, e = Split <axis = 1, num_outputs = 2> (x)
                                       es = Shape (x)
                                       two = Constant <value_ints = [2]> ()
                                       en = Concat <axis = 0> (es, two) }
    >
  })");
  EXPECT_EQ(m["z"], "float[b, z_d1]") << "the halves of an odd length differ";
  EXPECT_EQ(m.Elements("n"), "b, s, ?");
}

TEST(ControlFlowTest, WhatIsLearnedLaterJoinsWhatBranchesGive) {
  // The name that the file has for the result says nothing of n; that k is 1 or n is learned from a node after it.
  const Inferred m(R"(g (bool c, float[n] x, float[k] y, float[n, 4] w) => (float[u] z, contracted) {
    z = If (c) <
      then_branch = g1 () => (a) { a = Add (x, y) },
      else_branch = g2 () => (e) { e = Relu (x) }
    >
    t = Add (x, y)
    contracted = MatMul (t, w)
  })");
  EXPECT_EQ(m["z"], m["x"]);
}

TEST(ControlFlowTest, ConstantConditionsTakeTheirBranch) {
  const Inferred m(R"(g (float[n, 4] x) => (z) {
    c = Constant <value = bool {0}> ()
    z = If (c) <
      then_branch = g1 () => (a) { a = Relu (x) },
      else_branch = g2 () => (e) { e = Transpose (x) }
    >
  })");
  EXPECT_EQ(m["z"], "float[4, n]");
}

// One loop around `body`, with x carried.
std::string LoopOver(const std::string& body, const std::string& inputs = "float[n, 4] x, int64 m, bool c",
                     const std::string& trips = "m", const std::string& condition = "c") {
  return "g (" + inputs + ") => (y) { y, all = Loop (" + trips + ", " + condition +
         ", x) < body = b (int64 i, bool c1, float[] v) => "
         "(bool c2, float[] w, float[] out) {\n" +
         body + "\n} > }";
}

TEST(ControlFlowTest, LoopCarriesWhatIsAddedTo) {
  const Inferred m(
      LoopOver("c2 = Identity (c1)\n one = Constant <value_floats = [1.0]> ()\n w = Add (v, one)\n"
               "out = Add (w, x)"));
  EXPECT_EQ(m["v"], "float[n, 4]");
  EXPECT_EQ(m["y"], "float[n, 4]");
  EXPECT_EQ(m["all"], "float[all_d0, n, 4]");
  EXPECT_EQ(m["i"], "int64[]");
  EXPECT_EQ(m["c1"], "bool[]");
}

TEST(ControlFlowTest, LoopWidensWhatGrows) {
  const Inferred m(LoopOver("c2 = Identity (c1)\n w = Concat <axis = 0> (v, x)\n out = Relu (v)"));
  EXPECT_EQ(m["v"], "float[v_d0, 4]");
  EXPECT_EQ(m["w"], "float[n + v_d0, 4]");
  EXPECT_EQ(m["y"], "float[y_d0, 4]");
  EXPECT_EQ(m["all"], "float[all_d0, all_d1, 4]") << "every turn its own length: not one of them is the result's";
}

TEST(ControlFlowTest, LoopWidensWhatChangesPlaces) {
  const Inferred m(LoopOver("c2 = Identity (c1)\n w = Transpose (v)\n out = Relu (v)"));
  EXPECT_EQ(m["v"], "float[v_d0, v_d1]");
  EXPECT_EQ(m["y"], "float[y_d0, y_d1]");
  const Inferred square(LoopOver("c2 = Identity (c1)\n w = Transpose (v)\n out = Relu (v)", "float[n, n] x, int64 m, bool c"));
  EXPECT_EQ(square["y"], "float[n, n]");
}

// Whether a turn keeps the first dim of v depends on k, which a later node may say.
constexpr char kMasked[] = "float[n, 4] x, int64 m, bool c, float[k, 4] keep";

// Tells that keep leaves the first dim of x as it is; that dim.
Dim LearnOfKeep(Inferred* m) {
  DimTable& dims = m->facts().dims();
  const Dim n = m->fact("x").shape[0];
  EXPECT_TRUE(dims.Unify(dims.Broadcast(n, m->fact("keep").shape[0]), n));
  return n;
}

TEST(ControlFlowTest, WhatIsLearnedOfDimsIsAskedOfTurns) {
  Inferred m(LoopOver("c2 = Identity (c1)\n w = Add (v, keep)\n out = Relu (v)", kMasked));
  ASSERT_EQ(m["v"], "float[v_d0, 4]");
  Facts& facts = m.facts();
  const Node& loop = *m.Find("y")->producer;
  EXPECT_FALSE(infer::LearnOfTurns(loop, &facts));
  EXPECT_FALSE(facts.dims().Equal(m.fact("y").shape[0], m.fact("x").shape[0]));
  LearnOfKeep(&m);
  EXPECT_TRUE(infer::LearnOfTurns(loop, &facts));
  EXPECT_EQ(m["v"], "float[n, 4]");
  EXPECT_EQ(m["w"], "float[n, 4]");
  EXPECT_EQ(m["y"], "float[n, 4]");
  EXPECT_FALSE(infer::LearnOfTurns(loop, &facts));
}

TEST(ControlFlowTest, WhatGrowsIsNotLearnedOfTurns) {
  Inferred m(LoopOver("c2 = Identity (c1)\n s = Add (v, keep)\n w = Concat <axis = 0> (s, x)\n out = Relu (v)", kMasked));
  const DimTable& dims = m.facts().dims();
  const Dim n = LearnOfKeep(&m);
  EXPECT_FALSE(infer::LearnOfTurns(*m.Find("y")->producer, &m.facts()));
  EXPECT_FALSE(dims.Equal(m.fact("v").shape[0], n));
  EXPECT_FALSE(dims.Equal(m.fact("y").shape[0], n));
}

// Of two values each turn gives the one as long as the other: what grows takes the other with it.
TEST(ControlFlowTest, ADimThatFallsTakesOthersWithIt) {
  Inferred m(R"(g (float[n, 4] x, int64 m, bool c, float[k, 4] keep) => (y, z) {
    y, z = Loop (m, c, x, x) <
      body = b (int64 i, bool c1, float[] v, float[] u) => (bool c2, float[] w, float[] t) {
        c2 = Identity (c1)
        t = Concat <axis = 0> (u, x)
        s = Add (v, keep)
        w = Add (s, u)
      }
    >
  })");
  const DimTable& dims = m.facts().dims();
  const Dim n = LearnOfKeep(&m);
  EXPECT_FALSE(infer::LearnOfTurns(*m.Find("y")->producer, &m.facts()));
  EXPECT_FALSE(dims.Equal(m.fact("y").shape[0], n));
  EXPECT_FALSE(dims.Equal(m.fact("z").shape[0], n));
}

TEST(ControlFlowTest, LoopForgetsARankThatChanges) {
  const Inferred m(
      LoopOver("c2 = Identity (c1)\n zero = Constant <value_ints = [0]> ()\n w = Unsqueeze (v, zero)\n"
               "out = Relu (v)"));
  EXPECT_EQ(m["v"], "float[...]");
  EXPECT_EQ(m["y"], "float[...]");
  EXPECT_EQ(m["all"], "float[...]");
  const Inferred unknown(LoopOver("c2 = Identity (c1)\n w = my.domain.Thing (v)\n out = Relu (v)"));
  EXPECT_EQ(unknown["y"], "float[...]");
}

TEST(ControlFlowTest, WhatAWrongAssumptionProvedIsForgotten) {
  // In the first turn v has 4 columns, so the count of non-zeros would be 4; it is so in no other turn.
  const Inferred m(R"(g (float[n, 4] x, float[9] z, int64 m) => (y) {
    y, all = Loop (m, , x) < body = b (int64 i, bool c1, float[] v) => (bool c2, float[] w, float[] out) {
      c2 = Identity (c1)
      k = NonZero (z)
      f = Cast <to = 1> (k)
      t = Transpose (f)
      out = MatMul (v, t)
      w = Concat <axis = 1> (v, x)
    } > })");
  EXPECT_EQ(m["y"], "float[n, y_d1]");
  EXPECT_NE(m["k"], "int64[1, 4]");
  EXPECT_EQ(m["out"], "float[n, 1]");
  EXPECT_TRUE(m.facts().contradictions().empty());
}

TEST(ControlFlowTest, TurnsAreCountedWhereNothingEndsTheLoopEarly) {
  const std::string going = "c2 = Identity (c1)\n w = Relu (v)\n out = Relu (v)";
  const auto all = [](const std::string& body, const std::string& condition) {
    const Inferred m(
        "g (float[n, 4] x, float[m] z, bool c) => (y) { s = Shape (z)\n q = Squeeze (s)\n"
        "yes = Constant <value = bool {1}> ()\n no = Constant <value = bool {0}> ()\n"
        "y, all = Loop (q, " +
        condition +
        ", x) < body = b (int64 i, bool c1, float[] v) => "
        "(bool c2, float[] w, float[] out) {\n" +
        body + "\n} > }");
    return m["all"];
  };
  EXPECT_EQ(all(going, "yes"), "float[m, n, 4]");
  EXPECT_EQ(all(going, ""), "float[m, n, 4]");
  EXPECT_EQ(all(going, "c"), "float[all_d0, n, 4]");
  EXPECT_EQ(all(going, "no"), "float[all_d0, n, 4]");
  EXPECT_EQ(all("c2 = Constant <value = bool {1}> ()\n w = Relu (v)\n out = Relu (v)", "yes"), "float[m, n, 4]");
  EXPECT_EQ(all("r = ReduceMax <keepdims = 0> (v)\n c2 = Cast <to = 9> (r)\n w = Relu (v)\n out = Relu (v)", "yes"),
            "float[all_d0, n, 4]");
}

TEST(ControlFlowTest, ScanKeepsItsStatesAndStacksTheRest) {
  const Inferred m(R"(g (float[b, 8] state, float[t, b, 8] x, float[b, t, 2] z) => (y, all) {
    y, all, grown = Scan <num_scan_inputs = 2, scan_input_axes = [0, 1], scan_output_axes = [1, -1],
      body = body (float[] s, float[] e, float[] f) => (float[] s2, float[] o, float[] p) {
        s2 = Add (s, e)
        o = Concat <axis = 1> (s2, f)
        p = Transpose (s)
      }> (state, x, z)
  })");
  EXPECT_EQ(m["e"], "float[b, 8]");
  EXPECT_EQ(m["f"], "float[b, 2]");
  EXPECT_EQ(m["s2"], "float[b, 8]");
  EXPECT_EQ(m["y"], "float[b, 8]");
  EXPECT_EQ(m["all"], "float[b, t, 10]");
  EXPECT_EQ(m["grown"], "float[8, b, t]");
}

TEST(ControlFlowTest, ScanInputsHaveOneLength) {
  const Inferred m(R"(g (float[t, 4] x, float[u, 4] z) => (all, r) {
    all = Scan <num_scan_inputs = 2, body = body (float[] e, float[] f) => (float[] o) { o = Add (e, f) }> (x, z)
    r = Relu (z)
  })");
  EXPECT_EQ(m["all"], "float[t, 4]");
  EXPECT_EQ(m["r"], "float[t, 4]");
}

TEST(ControlFlowTest, LoopsInLoopsAndBranchesInLoops) {
  const Inferred m(R"(g (float[n, 4] x, int64 m, bool q) => (y) {
    y = Loop (m, q, x) < body = b (int64 i, bool c1, float[] v) => (bool c2, float[] w) {
      c2 = Identity (c1)
      h, hs = Loop (m, c1, v) < body = b2 (int64 j, bool d1, float[] u) => (bool d2, float[] r, float[] p) {
        d2 = Identity (d1)
        r = If (q) < then_branch = t () => (a) { a = Add (u, x) }, else_branch = e () => (z) { z = Relu (u) } >
        p = Concat <axis = 1> (u, v)
      } >
      w = Relu (h)
    } > })");
  EXPECT_EQ(m["u"], "float[n, 4]");
  EXPECT_EQ(m["p"], "float[n, 8]");
  EXPECT_EQ(m["hs"], "float[hs_d0, n, 8]");
  EXPECT_EQ(m["y"], "float[n, 4]");
}

TEST(ControlFlowTest, LoopsInFunctions) {
  const Inferred m(R"(g (float[n, 4] x, float[k, 3] z) => (y, u) {
    y = ascend_fuse.double (x)
    u = ascend_fuse.double (z)
  }
  <domain: "ascend_fuse", opset_import: ["" : 18]>
  double (a) => (b) {
    three = Constant <value_int = 3> ()
    yes = Constant <value = bool {1}> ()
    b, all = Loop (three, yes, a) < body = body (int64 i, bool c1, float[] v) => (bool c2, float[] w, float[] out) {
      c2 = Identity (c1)
      w = Add (v, a)
      out = Relu (v)
    } >
  })");
  EXPECT_EQ(m["y"], "float[n, 4]");
  EXPECT_EQ(m["u"], "float[k, 3]");
}

}  // namespace
}  // namespace ascend_fuse
