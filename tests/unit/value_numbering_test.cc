// Values modulo noise: each kind of node that does nothing is looked through, and its nearest neighbour that
// does something is not.
#include "ir/infer/value_numbering.h"

#include <string>
#include <vector>

#include "ir/rewriter.h"
#include "tests/unit/rule_testing.h"

namespace ascend_fuse {
namespace {

using testing::Subject;

// Whether `y` is a mere copy of `x`.
bool Copies(const std::string& text, int opset = 17) { return Subject(text, opset).Same("x", "y"); }

TEST(ValueNumberingTest, Identity) { EXPECT_TRUE(Copies("(float[4] x) => (float[4] y) { y = Identity (x) }")); }

TEST(ValueNumberingTest, DropoutAtInferenceOnly) {
  EXPECT_TRUE(Copies("(float[4] x) => (float[4] y) { y = Dropout (x) }"));
  EXPECT_TRUE(Copies("(float[4] x) => (float[4] y) { y, mask = Dropout (x) }"));
  EXPECT_TRUE(Copies("(float[4] x) => (float[4] y) <float r = {0.5}, bool t = {0}> { y = Dropout (x, r, t) }"));
  EXPECT_TRUE(Copies("(float[4] x) => (float[4] y) { y = Dropout <ratio = 0.1> (x) }", 10));
  EXPECT_FALSE(Copies("(float[4] x) => (float[4] y) <float r = {0.5}, bool t = {1}> { y = Dropout (x, r, t) }"));
  EXPECT_FALSE(Copies("(float[4] x, bool t) => (float[4] y) <float r = {0.5}> { y = Dropout (x, r, t) }"));
  EXPECT_FALSE(Copies("(float[4] x) => (float[4] y, bool[4] mask) { y, mask = Dropout (x) }"));
}

TEST(ValueNumberingTest, CastToTheSameType) {
  EXPECT_TRUE(Copies("(float[4] x) => (float[4] y) { y = Cast <to = 1> (x) }"));
  EXPECT_FALSE(Copies("(float[4] x) => (float16[4] y) { y = Cast <to = 10> (x) }"));
  EXPECT_FALSE(Copies("(float[4] x) => (float[4] y) { h = Cast <to = 10> (x)\n y = Cast <to = 1> (h) }"))
      << "the way through float16 rounds";
}

TEST(ValueNumberingTest, SliceOverTheWholeAxis) {
  EXPECT_TRUE(
      Copies("(float[N, 8] x) => (float[N, 8] y) <int64[1] s = {0}, int64[1] e = {9223372036854775807}, "
             "int64[1] a = {1}> { y = Slice (x, s, e, a) }"));
  EXPECT_TRUE(
      Copies("(float[N, 8] x) => (float[N, 8] y) <int64[1] s = {0}, int64[1] e = {9223372036854775807}, "
             "int64[1] a = {0}, int64[1] p = {1}> { y = Slice (x, s, e, a, p) }"));
  EXPECT_TRUE(Copies("(float[N, 8] x) => (float[N, 8] y) { y = Slice <starts = [0], ends = [8], axes = [1]> (x) }", 9));
  EXPECT_FALSE(
      Copies("(float[N, 8] x) => (float[N, 7] y) <int64[1] s = {1}, int64[1] e = {8}, int64[1] a = {1}> "
             "{ y = Slice (x, s, e, a) }"));
  EXPECT_FALSE(
      Copies("(float[N, 8] x) => (float[N, 8] y) <int64[1] s = {-1}, int64[1] e = {-9223372036854775807}, "
             "int64[1] a = {1}, int64[1] p = {-1}> { y = Slice (x, s, e, a, p) }"))
      << "it runs backwards";
  EXPECT_FALSE(Copies("(float[N, 8] x, int64[1] e) => (y) <int64[1] s = {0}, int64[1] a = {1}> { y = Slice (x, s, e, a) }"));
}

TEST(ValueNumberingTest, ReshapeAndItsLikeToTheSameShape) {
  EXPECT_TRUE(Copies("(float[2, 3] x) => (float[2, 3] y) <int64[2] s = {2, -1}> { y = Reshape (x, s) }"));
  EXPECT_TRUE(Copies("(float[N, 3] x) => (float[N, 3] y) <int64[2] s = {0, 3}> { y = Reshape (x, s) }"));
  EXPECT_TRUE(Copies("(float[N, 3] x) => (float[N, 3] y) { s = Shape (x)\n y = Reshape (x, s) }"));
  EXPECT_FALSE(Copies("(float[2, 3] x) => (float[3, 2] y) <int64[2] s = {3, 2}> { y = Reshape (x, s) }"));
  EXPECT_FALSE(Copies("(float[2, 3] x) => (float[1, 2, 3] y) <int64[3] s = {1, 2, 3}> { y = Reshape (x, s) }"));
  EXPECT_FALSE(Copies("(float[N, 3] x, int64[2] s) => (float[M, 3] y) { y = Reshape (x, s) }"));
  EXPECT_TRUE(Copies("(float[2, 3] x) => (float[2, 3] y) <int64[2] s = {2, 3}> { y = Expand (x, s) }"));
  EXPECT_TRUE(Copies("(float[2, 3] x) => (float[2, 3] y) <int64[2] s = {1, 1}> { y = Expand (x, s) }"));
  EXPECT_FALSE(Copies("(float[1, 3] x) => (float[2, 3] y) <int64[2] s = {2, 3}> { y = Expand (x, s) }"));
  EXPECT_FALSE(Copies("(float[N, 3] x) => (float[2, 3] y) <int64[2] s = {2, 3}> { y = Expand (x, s) }")) << "N may be 1";
  EXPECT_TRUE(Copies("(float[2, 3] x) => (float[2, 3] y) { y = Flatten <axis = 1> (x) }"));
  EXPECT_FALSE(Copies("(float[2, 3, 4] x) => (float[2, 12] y) { y = Flatten <axis = 1> (x) }"));
}

TEST(ValueNumberingTest, TransposeBackAndForth) {
  EXPECT_TRUE(Copies("(float[2, 3, 4] x) => (float[2, 3, 4] y) { y = Transpose <perm = [0, 1, 2]> (x) }"));
  EXPECT_TRUE(
      Copies("(float[2, 3, 4] x) => (float[2, 3, 4] y) "
             "{ t = Transpose <perm = [2, 0, 1]> (x)\n y = Transpose <perm = [1, 2, 0]> (t) }"));
  EXPECT_FALSE(
      Copies("(float[3, 3, 3] x) => (float[3, 3, 3] y) "
             "{ t = Transpose <perm = [2, 0, 1]> (x)\n y = Transpose <perm = [2, 0, 1]> (t) }"))
      << "the cycle twice is the cycle backwards";
  EXPECT_FALSE(Copies("(float[3, 3] x) => (float[3, 3] y) { y = Transpose <perm = [1, 0]> (x) }"));
  EXPECT_FALSE(Copies("(float[3, 3] x) => (float[3, 3] y) { y = Transpose (x) }"));
}

TEST(ValueNumberingTest, ConcatOfOne) {
  EXPECT_TRUE(Copies("(float[4] x) => (float[4] y) { y = Concat <axis = 0> (x) }"));
  EXPECT_FALSE(Copies("(float[4] x) => (float[8] y) { y = Concat <axis = 0> (x, x) }"));
}

TEST(ValueNumberingTest, NeutralConstants) {
  EXPECT_TRUE(Copies("(float[2, 3] x) => (float[2, 3] y) <float c = {1}> { y = Mul (x, c) }"));
  EXPECT_TRUE(Copies("(float[2, 3] x) => (float[2, 3] y) <float[3] c = {1, 1, 1}> { y = Mul (c, x) }"));
  EXPECT_TRUE(Copies("(float[2, 3] x) => (float[2, 3] y) <float c = {1}> { y = Div (x, c) }"));
  EXPECT_TRUE(Copies("(float[2, 3] x) => (float[2, 3] y) <float c = {0}> { y = Add (c, x) }"));
  EXPECT_TRUE(Copies("(float[2, 3] x) => (float[2, 3] y) <float c = {0}> { y = Sub (x, c) }"));
  EXPECT_FALSE(Copies("(float[2, 3] x) => (float[2, 3] y) <float c = {1}> { y = Div (c, x) }"));
  EXPECT_FALSE(Copies("(float[2, 3] x) => (float[2, 3] y) <float c = {0}> { y = Sub (c, x) }"));
  EXPECT_FALSE(Copies("(float[2, 3] x) => (float[2, 3] y) <float c = {0}> { y = Mul (x, c) }"));
  EXPECT_FALSE(Copies("(float[2, 3] x) => (float[2, 3] y) <float c = {1}> { y = Add (x, c) }"));
  EXPECT_FALSE(Copies("(float[2, 3] x) => (float[2, 3] y) <float[3] c = {1, 1, 2}> { y = Mul (x, c) }"));
  EXPECT_FALSE(Copies("(float[1, 3] x) => (float[2, 3] y) <float[2, 1] c = {1, 1}> { y = Mul (x, c) }")) << "it broadcasts x";
  EXPECT_FALSE(Copies("(float[3] x) => (float[1, 3] y) <float[1, 1] c = {1}> { y = Mul (x, c) }")) << "it adds a dim";
  EXPECT_FALSE(Copies("(float[2, 3] x, float c) => (float[2, 3] y) <float c = {1}> { y = Mul (x, c) }"))
      << "a caller may override c";
}

// The updates are copied, not the data.
bool Overwrites(const std::string& text) { return Subject(text, 18).Same("x", "y"); }

TEST(ValueNumberingTest, ScatterThatOverwritesEverything) {
  EXPECT_TRUE(
      Overwrites("(float[3, 4] d, float[3, 4] x) => (float[3, 4] y) <int64[3, 1] i = {0, 1, 2}> "
                 "{ y = ScatterND (d, i, x) }"));
  EXPECT_TRUE(
      Overwrites("(float[N, 4] d, float[N, 4] x) => (float[N, 4] y) <int64 zero = {0}, int64 one = {1}, "
                 "int64[1] last = {1}> { s = Shape (d)\n n = Gather (s, zero)\n r = Range (zero, n, one)\n "
                 "i = Unsqueeze (r, last)\n y = ScatterND (d, i, x) }"));
  EXPECT_FALSE(
      Overwrites("(float[3, 4] d, float[2, 4] x) => (float[3, 4] y) <int64[2, 1] i = {0, 1}> "
                 "{ y = ScatterND (d, i, x) }"))
      << "one row stays";
  EXPECT_FALSE(
      Overwrites("(float[3, 4] d, float[3, 4] x) => (float[3, 4] y) <int64[3, 1] i = {0, 1, 1}> "
                 "{ y = ScatterND (d, i, x) }"));
  EXPECT_FALSE(
      Overwrites("(float[3, 4] d, float[3, 4] x) => (float[3, 4] y) <int64[3, 1] i = {2, 1, 0}> "
                 "{ y = ScatterND (d, i, x) }"))
      << "the rows change places";
  EXPECT_FALSE(
      Overwrites("(float[3, 4] d, float[3, 4] x) => (float[3, 4] y) <int64[3, 1] i = {0, 1, 2}> "
                 "{ y = ScatterND <reduction = \"add\"> (d, i, x) }"));
  EXPECT_FALSE(
      Overwrites("(float[N, 4] d, float[N, 4] x) => (float[N, 4] y) <int64 one = {1}, int64 zero = {0}, "
                 "int64[1] last = {1}> { s = Shape (d)\n n = Gather (s, zero)\n m = Add (n, one)\n "
                 "r = Range (one, m, one)\n i = Unsqueeze (r, last)\n y = ScatterND (d, i, x) }"))
      << "the indices start at 1";
}

TEST(ValueNumberingTest, EqualComputationsHaveOneNumber) {
  const Subject subject(
      R"((float[4] x, float[4] z) => (float[4] y) <float[1] c = {2}, float[1] d = {2}, float e = {2}> {
    a = Mul (x, c)
    b = Mul (d, x)
    f = Mul (x, e)
    g = Sub (x, z)
    h = Sub (z, x)
    i = Softmax <axis = 0> (x)
    j = Softmax <axis = 0> (x)
    k = Softmax <axis = -1> (x)
    l = Identity (a)
    m = Exp (l)
    n = Exp (b)
    o = RandomUniformLike (x)
    p = RandomUniformLike (x)
    y = Sum (a, b, f, g, h, i, j, k, m, n, o, p)
  })");
  EXPECT_TRUE(subject.Same("c", "d"));
  EXPECT_FALSE(subject.Same("c", "e")) << "a scalar is not of the shape [1]";
  EXPECT_TRUE(subject.Same("a", "b"));
  EXPECT_FALSE(subject.Same("g", "h"));
  EXPECT_TRUE(subject.Same("i", "j"));
  EXPECT_TRUE(subject.Same("m", "n")) << "through an Identity";
  EXPECT_FALSE(subject.Same("o", "p")) << "two draws of random numbers";
}

TEST(ValueNumberingTest, ConstantsDifferInTypeShapeAndSign) {
  const Subject subject(
      R"((float[1] x) => (float[1] y) <float[1] a = {0}, float[1] b = {-0.0}, float16[1] c = {0},
      float[1] d = {1}, int64[1] e = {1}, int32[1] f = {1}, int64[1] g = {1}> { y = Identity (x) })");
  EXPECT_FALSE(subject.Same("a", "b"));
  EXPECT_FALSE(subject.Same("a", "c"));
  EXPECT_FALSE(subject.Same("d", "e"));
  EXPECT_FALSE(subject.Same("e", "f"));
  EXPECT_TRUE(subject.Same("e", "g"));
}

TEST(ValueNumberingTest, OutputsOfOneNodeAreNotEachOther) {
  const Subject subject(R"((float[4] x) => (float[2] y) <int64[2] s = {2, 2}> {
    a, b = Split (x, s)
    c, d = Split (x, s)
    y = Add (a, d)
  })");
  EXPECT_TRUE(subject.Same("a", "c"));
  EXPECT_TRUE(subject.Same("b", "d"));
  EXPECT_FALSE(subject.Same("a", "d"));
}

TEST(ValueNumberingTest, SourceIsOneStepOfNoise) {
  const Subject subject("(float[4] x) => (float[4] y) { a = Identity (x)\n b = Cast <to = 1> (a)\n y = Relu (b) }");
  EXPECT_EQ(subject.numbering->Source(subject.Named("b")), subject.Named("a"));
  EXPECT_EQ(subject.numbering->Source(subject.Named("a")), subject.Named("x"));
  EXPECT_EQ(subject.numbering->Source(subject.Named("x")), nullptr);
  EXPECT_EQ(subject.numbering->Source(subject.Named("y")), nullptr);
}

// What a pass makes after the model was numbered.
class ValueNumberingAddTest : public ::testing::Test {
 protected:
  const Value* Insert(const std::string& op, const std::vector<const Value*>& inputs,
                      const std::vector<Attribute>& attributes = {}) {
    NewNode spec;
    spec.op_type = op;
    spec.inputs = inputs;
    spec.attributes = attributes;
    const Node* node = rewriter.Insert(spec, 1, &subject.model->graph(), "made");
    Number(node);
    return node->output(0);
  }

  void Number(const Node* node) {
    InferNode(*node, &subject.facts);
    subject.numbering->Add(*node, subject.facts);
  }

  const Value* Constant(const std::string& name, std::vector<int64_t> elements) {
    const Value* value = rewriter.Int64Constant(&subject.model->graph(), elements, name);
    InferConstant(value, &subject.facts);
    return value;
  }

  std::vector<const Value*> Values() const {
    const Graph& graph = subject.model->graph();
    std::vector<const Value*> values(graph.inputs().begin(), graph.inputs().end());
    values.insert(values.end(), graph.initializers().begin(), graph.initializers().end());
    for (const Node* node : graph.nodes()) {
      if (!node->dead) values.insert(values.end(), node->outputs().begin(), node->outputs().end());
    }
    return values;
  }

  Subject subject{R"((float[B, 4, 8] x, float[B, 4, 8] z) => (float[B, 4, 8] y) <int64[3] same = {0, 4, 8}> {
    t = Transpose <perm = [1, 0, 2]> (x)
    s = Add (x, z)
    e = Exp (s)
    r = Reshape (e, same)
    y = Mul (r, z)
  })"};
  Rewriter rewriter{subject.model.get()};
};

TEST_F(ValueNumberingAddTest, GivesTheClassesOfNumberingFromTheStart) {
  const Value* x = subject.Named("x");
  const Value* z = subject.Named("z");
  const Value* swapped = Insert("Add", {z, x});
  const Value* exp = Insert("Exp", {Insert("Identity", {swapped})});
  const Value* back = Insert("Transpose", {subject.Named("t")}, {Attribute::Ints("perm", {1, 0, 2})});
  const Value* other = Insert("Transpose", {subject.Named("t")}, {Attribute::Ints("perm", {2, 1, 0})});
  const Value* equal_constant = Constant("again", {0, 4, 8});
  const Value* reshaped = Insert("Reshape", {exp, equal_constant});
  const Value* folded = Insert("Reshape", {exp, Constant("folded", {-1, 8})});
  const Value* unfolded = Insert("Reshape", {folded, equal_constant});

  EXPECT_TRUE(subject.numbering->Same(swapped, subject.Named("s")));
  EXPECT_TRUE(subject.numbering->Same(exp, subject.Named("e")));
  EXPECT_TRUE(subject.numbering->Same(back, x));
  EXPECT_EQ(subject.numbering->Source(back), x);
  EXPECT_FALSE(subject.numbering->Same(other, x));
  EXPECT_TRUE(subject.numbering->Same(reshaped, subject.Named("r")));
  EXPECT_FALSE(subject.numbering->Same(folded, subject.Named("r")));
  EXPECT_TRUE(subject.numbering->Same(unfolded, exp));

  const ValueNumbering fresh(*subject.model, subject.facts);
  for (const Value* a : Values()) {
    EXPECT_EQ(subject.numbering->Source(a), fresh.Source(a)) << ValueName(*a);
    for (const Value* b : Values()) {
      EXPECT_EQ(subject.numbering->Same(a, b), fresh.Same(a, b)) << ValueName(*a) << " and " << ValueName(*b);
    }
  }
}

TEST_F(ValueNumberingAddTest, AValueWithAnotherProducerKeepsItsNumber) {
  const Value* s = subject.Named("s");
  const uint32_t before = subject.numbering->Number(s);
  NewNode spec;
  spec.op_type = "Sum";
  spec.inputs = {subject.Named("x"), subject.Named("z")};
  Number(rewriter.ReplaceValue(s, spec));
  EXPECT_EQ(subject.numbering->Number(s), before);
  EXPECT_EQ(subject.numbering->Source(s), nullptr);
  // Both spellings are known from now on.
  EXPECT_TRUE(subject.numbering->Same(Insert("Sum", {subject.Named("x"), subject.Named("z")}), s));
  EXPECT_TRUE(subject.numbering->Same(Insert("Add", {subject.Named("x"), subject.Named("z")}), s));
}

TEST_F(ValueNumberingAddTest, AnInputWithoutANumberIsItself) {
  NewNode spec;
  spec.op_type = "Exp";
  spec.inputs = {subject.Named("x")};
  const Node* unnumbered = rewriter.Insert(spec, 1, &subject.model->graph(), "made");
  InferNode(*unnumbered, &subject.facts);
  const Value* a = Insert("Neg", {unnumbered->output(0)});
  const Value* b = Insert("Neg", {unnumbered->output(0)});
  EXPECT_TRUE(subject.numbering->Same(a, b));
  EXPECT_FALSE(subject.numbering->Same(a, unnumbered->output(0)));
}

TEST(ValueNumberingTest, EqualValuesHaveEqualDims) {
  const Subject twins(
      "(bool[N, 4] x, bool[N, 4] other) => (a, b, c) <int64 one = {1}> "
      "{ a = NonZero (x)\n same = NonZero (x)\n b = Mul (same, one)\n far = NonZero (other)\n c = Mul (far, one) }");
  EXPECT_TRUE(twins.facts.dims().Equal(twins.facts.Of(twins.Named("a")).shape, twins.facts.Of(twins.Named("b")).shape));
  EXPECT_FALSE(twins.facts.dims().Equal(twins.facts.Of(twins.Named("a")).shape, twins.facts.Of(twins.Named("c")).shape));
}

TEST(ValueNumberingTest, ValuesThatAreEqualBecauseTheirDimsAre) {
  const std::string text =
      "(bool[N, 4] x, bool[N, 4] other) => (y, z) <int64 axis = {1}> "
      "{ a = NonZero (x)\n b = NonZero (%)\n s = Shape (a)\n t = Shape (b)\n y = Gather (s, axis)\n z = Gather (t, axis) }";
  const auto of = [&](const char* second) { return Subject(std::string(text).replace(text.find('%'), 1, second), 17); };
  EXPECT_TRUE(of("x").Same("y", "z"));
  EXPECT_FALSE(of("other").Same("y", "z"));
}

}  // namespace
}  // namespace ascend_fuse
