// Inference through calls of local functions, and over graphs that are made to overflow, to explode or to
// never end: bounded time, no crash, and unknown rather than wrong.
#include <ctime>
#include <memory>
#include <string>
#include <vector>

#include "fmt/format.h"
#include "gtest/gtest.h"
#include "ir/infer/facts.h"
#include "ir/text/parser.h"

namespace ascend_fuse {
namespace {

// Sanitizers cost a factor of ten and more.
#if defined(__SANITIZE_ADDRESS__)
constexpr double kSeconds = 120;
#else
constexpr double kSeconds = 2;
#endif

constexpr char kHeader[] = "<ir_version: 10, opset_import: [\"\" : 20, \"local\" : 1]>\n";

class HostileTest : public testing::Test {
 protected:
  // Infers the model and checks the time it took.
  void Run(const std::string& text) {
    absl::StatusOr<std::unique_ptr<Model>> model = ParseModelText(kHeader + text);
    ASSERT_TRUE(model.ok()) << model.status().message();
    model_ = *std::move(model);
    const std::clock_t start = std::clock();  // CPU time: other work on the machine does not count
    facts_ = Infer(*model_);
    EXPECT_LT(static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC, kSeconds);
  }
  std::string Of(std::string_view name) const {
    for (const Node* node : model_->graph().nodes()) {
      for (const Value* value : node->outputs()) {
        if (value != nullptr && ValueName(*value) == name) return facts_.Describe(value);
      }
    }
    return "no such value";
  }

  std::unique_ptr<Model> model_;
  Facts facts_;
};

// Functions 0 .. count - 1, each with the body that `body` writes.
template <typename Body>
std::string Functions(int count, Body body) {
  std::string text;
  for (int i = 0; i < count; ++i) {
    text += fmt::format("<domain: \"local\", opset_import: [\"\" : 20, \"local\" : 1]>\nf{} (x) => (y) {{\n{}}}\n", i, body(i));
  }
  return text;
}

TEST_F(HostileTest, CallsAreFollowed) {
  Run(R"(g (float[batch, seq, 64] x, float[64, 32] w) => (y) {
    a = local.project <perm = [1, 0, 2]> (x, w)
    y = local.outer (a)
  }
  <domain: "local", opset_import: ["" : 20, "local" : 1]>
  project <perm> (x, w) => (y) {
    t = Transpose <perm: ints = @perm> (x)
    y = MatMul (t, w)
  }
  <domain: "local", opset_import: ["" : 20, "local" : 1]>
  outer (x) => (y) {
    a = local.inner (x)
    s = Shape (a)
    y = ConstantOfShape (s)
  }
  <domain: "local", opset_import: ["" : 20]>
  inner (x) => (y) {
    y = Concat <axis = -1> (x, x)
  })");
  EXPECT_EQ(Of("a"), "float[seq, batch, 32]");
  EXPECT_EQ(Of("y"), "float[seq, batch, 64]");
}

TEST_F(HostileTest, DefaultsAndAbsentInputsOfFunctions) {
  Run(R"(g (float[n, 4] x) => (y, z) {
    y = local.cast (x)
    z = local.cast <to = 7> (x, x)
  }
  <domain: "local", opset_import: ["" : 20]>
  cast <to: int = 10> (x, limit) => (y) {
    c = Clip (x, limit)
    y = Cast <to: int = @to> (c)
  })");
  EXPECT_EQ(Of("y"), "float16[n, 4]");
  EXPECT_EQ(Of("z"), "int64[n, 4]");
}

TEST_F(HostileTest, FunctionsThatCallThemselves) {
  Run("g (float[n] x) => (y) { y = local.f0 (x) }\n" +
      Functions(1, [](int) { return std::string("a = local.f0 (x)\n y = Add (a, x)\n"); }));
  Run("g (float[n] x) => (y) { y = local.f0 (x) }\n" +
      Functions(2, [](int i) { return fmt::format("a = local.f{0} (x)\n b = local.f{0} (a)\n y = Add (a, b)\n", 1 - i); }));
  // They do not use up the nodes that are looked at.
  Run("g (float[n] x) => (y, z) { y = local.f0 (x)\n z = local.f1 (x) }\n" + Functions(2, [](int i) {
        return i == 1 ? std::string("y = Relu (x)\n") : std::string("a = local.f0 (x)\n b = local.f0 (x)\n y = Add (a, b)\n");
      }));
  EXPECT_EQ(Of("z"), "float[n]");
}

TEST_F(HostileTest, CallsThatMultiply) {
  Run("g (float[n] x) => (y) { y = local.f40 (x) }\n" + Functions(41, [](int i) {
        if (i == 0) return std::string("y = Relu (x)\n");
        return fmt::format("a = local.f{0} (x)\n y = local.f{0} (a)\n", i - 1);
      }));
  // Every call makes up new dims.
  Run("g (float[n] x) => (y) { y = local.f40 (x) }\n" + Functions(41, [](int i) {
        if (i == 0) return std::string("a = NonZero (x)\n y = Cast <to = 1> (a)\n");
        return fmt::format("a = local.f{0} (x)\n y = local.f{0} (a)\n", i - 1);
      }));
  // 60 calls deep and no more: known.
  Run("g (float[n] x) => (y) { y = local.f60 (x) }\n" +
      Functions(61, [](int i) { return i == 0 ? std::string("y = Relu (x)\n") : fmt::format("y = local.f{} (x)\n", i - 1); }));
  EXPECT_EQ(Of("y"), "float[n]");
}

TEST_F(HostileTest, DimsThatOverflow) {
  std::string text = "g (float[9223372036854775807, n, 4611686018427387904] x) => (y) {\n a0 = Transpose (x)\n";
  for (int i = 0; i < 200; ++i) {
    text += fmt::format("a{} = Concat <axis = {}> (a{}, a{})\n", i + 1, i % 3, i, i);
  }
  text += R"(
    s = Shape (a200)
    p = ReduceProd <keepdims = 0> (s)
    q = Mul (p, p)
    f = Flatten (x)
    minus = Constant <value_ints = [-1]> ()
    r = Reshape (x, minus)
    size = Size (x)
    big = Constant <value_ints = [9223372036854775807, 2, 9223372036854775807]> ()
    t = Tile (x, big)
    pads = Constant <value_ints = [9223372036854775807, 0, -9223372036854775808, 9223372036854775807, 1, 1]> ()
    y = Pad (x, pads)
  })";
  Run(text);
}

TEST_F(HostileTest, EndlessNumbers) {
  Run(R"(g (float[n] x) => (y) {
    big = Constant <value_ints = [9223372036854775807, 9223372036854775807]> ()
    negative = Constant <value_ints = [-5, -9223372036854775808, 3]> ()
    most = Constant <value_int = 9223372036854775807> ()
    least = Constant <value_int = -9223372036854775808> ()
    minus = Constant <value_int = -1> ()
    one = Constant <value_int = 1> ()
    c = ConstantOfShape (big)
    cn = ConstantOfShape (negative)
    e = Expand (x, big)
    en = Expand (x, negative)
    r = Range (least, most, one)
    rn = Range (most, least, minus)
    ro = Range (most, least, least)
    d = Div (least, minus)
    m = Mod (least, minus)
    ab = Abs (least)
    ne = Neg (least)
    l = Unsqueeze (least, minus)
    u = Unsqueeze (most, minus)
    sl = Slice (x, l, u)
    sr = Slice (x, u, l, l, l)
    oh = OneHot (big, most, big)
    k = Unsqueeze (most, one)
    t = Reshape (x, negative)
    sp0, sp1 = Split (x, big)
    w = HannWindow (most)
    dft = DFT <onesided = 1> (cn, most)
    pooled = MaxPool <kernel_shape = [9223372036854775807], strides = [0], pads = [-1, -9223372036854775808]> (cn)
    conv = Conv <dilations = [9223372036854775807], strides = [-1]> (cn, cn)
    unpooled = MaxUnpool <kernel_shape = [9223372036854775807], strides = [9223372036854775807]> (cn, cn)
    unfolded = Col2Im (cn, big, negative)
    y = Identity (x)
  })");
}

TEST_F(HostileTest, ExpressionsOfTenThousandTerms) {
  std::string inputs;
  std::string names;
  for (int i = 0; i < 10'000; ++i) {
    inputs += fmt::format("{}float[s{}, t{}] x{}", i == 0 ? "" : ", ", i, i % 7, i);
    names += fmt::format("{}x{}", i == 0 ? "" : ", ", i);
  }
  std::string text = "g (" + inputs + ") => (y) {\n y = Concat <axis = 0> (" + names + ")\n s = Shape (y)\n";
  text += "p = ReduceProd (s)\n z = Add (y, x0)\n f = Flatten (z)\n m = Max (" + names + ")\n }";
  Run(text);
}

TEST_F(HostileTest, AnExpressionThatGrows) {
  std::string text = "g (float[a, b, c] x) => (y) {\n s0 = Shape (x)\n";
  for (int i = 0; i < 2000; ++i) {
    const char* const op = i % 4 == 0 ? "Mul" : i % 4 == 1 ? "Add" : i % 4 == 2 ? "Div" : "Max";
    text += fmt::format("r{0} = Transpose (x)\n t{0} = Shape (r{0})\n s{1} = {2} (s{0}, t{0})\n", i, i + 1, op);
  }
  text += "y = ConstantOfShape (s2000)\n}";
  Run(text);
}

TEST_F(HostileTest, BodiesNestedThousandDeep) {
  std::string text = "g (bool c, float[n] x) => (y) {\n";
  std::string end;
  for (int i = 0; i < 1000; ++i) {
    text += fmt::format("{} = If (c) <then_branch = t{} () => (y{}) {{\n", i == 0 ? "y" : fmt::format("y{}", i - 1), i, i);
    end += fmt::format("}}, else_branch = e () => (z) {{ z = Relu (x) }}>\n");
  }
  text += "y999 = Relu (x)\n" + end + "}";
  const absl::StatusOr<std::unique_ptr<Model>> model = ParseModelText(kHeader + text);
  ASSERT_FALSE(model.ok());
  EXPECT_FALSE(model.status().message().empty());
}

// Every turn changes the rank, so no assumption holds and each level tries again.
TEST_F(HostileTest, LoopsNestedInLoops) {
  for (const char* const change :
       {"w{0} = Unsqueeze (r{0}, zero)", "w{0} = Concat <axis = 0> (r{0}, x)", "w{0} = Transpose (r{0})", "w{0} = Relu (r{0})"}) {
    constexpr int kDepth = 20;
    std::string text = "g (int64 m, bool c, float[n, 4] x) => (y) {\n zero = Constant <value_ints = [0]> ()\n";
    std::string end;
    std::string carried = "x";
    std::string result = "y";
    for (int i = 0; i < kDepth; ++i) {
      text += fmt::format(
          "{0} = Loop (m, c, {1}) <body = b{2} (int64 i{2}, bool c{2}, float[] v{2}) => (bool d{2}, "
          "float[] w{2}) {{\n d{2} = Identity (c{2})\n",
          result, carried, i);
      end = fmt::format(fmt::runtime(std::string(change) + "\n}}>\n"), i) + end;
      carried = fmt::format("v{}", i);
      result = fmt::format("r{}", i);
    }
    text += fmt::format("{} = Relu ({})\n", result, carried);
    Run(text + end + "}");
  }
}

// Two loops in every body: their number doubles with each function that calls the one before twice.
TEST_F(HostileTest, LoopsInFunctionsThatMultiply) {
  Run("g (float[n, 4] x) => (y) { y = local.f30 (x) }\n" + Functions(31, [](int i) {
        if (i == 0) return std::string("y = Relu (x)\n");
        return fmt::format(
            "three = Constant <value_int = 3> ()\n"
            "h = Loop (three, , x) <body = b (int64 i, bool c, float[] v) => (bool d, float[] w) {{\n"
            "d = Identity (c)\n u = local.f{0} (v)\n w = Concat <axis = 1> (u, v) }}>\n"
            "y = Loop (three, , h) <body = b2 (int64 i2, bool c2, float[] v2) => (bool d2, float[] w2) {{\n"
            "d2 = Identity (c2)\n w2 = local.f{0} (v2) }}>\n",
            i - 1);
      }));
  // A function that calls itself in a loop.
  Run("g (float[n, 4] x) => (y) { y = local.f0 (x) }\n" + Functions(1, [](int) {
        return std::string(
            "three = Constant <value_int = 3> ()\n"
            "y = Loop (three, , x) <body = b (int64 i, bool c, float[] v) => (bool d, float[] w) {\n"
            "d = Identity (c)\n u = local.f0 (v)\n w = Concat <axis = 0> (u, v) }>\n");
      }));
}

TEST_F(HostileTest, LongChainsOfSequences) {
  std::string text = "g (float[n, 4] x) => (y) {\n i = Constant <value_int = 0> ()\n s0 = SequenceConstruct (x, x)\n";
  for (int i = 0; i < 3000; ++i) {
    text += fmt::format("s{} = SequenceInsert (s{}, x)\n a{} = SequenceAt (s{}, i)\n", i + 1, i, i, i);
  }
  text += "y = ConcatFromSequence <axis = 0> (s1)\n}";
  Run(text);
  EXPECT_EQ(Of("a0"), "float[n, 4]");
  EXPECT_EQ(Of("a1"), "float[n, 4]");
}

}  // namespace
}  // namespace ascend_fuse
