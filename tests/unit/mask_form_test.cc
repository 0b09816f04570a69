// What masks mean, as clauses: the form of a mask that two attentions read differently, assumptions, and what is not proved.
// Programs of exporters are run against ONNX Runtime in tests/python/test_masks.py.
#include "patterns/analysis/mask_form.h"

#include <string>
#include <vector>

#include "ir/infer/value_numbering.h"
#include "tests/unit/inferred.h"

namespace ascend_fuse {
namespace {

using testing::Inferred;

class Masks {
 public:
  explicit Masks(const std::string& text, std::vector<InputAssumption> assumptions = {})
      : inferred_(text),
        numbering_(inferred_.model(), inferred_.facts()),
        forms_(inferred_.model(), inferred_.facts(), &inferred_.facts().dims(), numbering_, assumptions) {}

  const MaskForm& Form(const std::string& queries, const std::string& keys, const std::string& name = "m") {
    return forms_.Of(inferred_.Find(name), {Dim(), Dim(), Size(queries), Size(keys)});
  }
  std::string Word(const std::string& queries, const std::string& keys, const std::string& name = "m") {
    return MaskWord(Form(queries, keys, name), Size(queries), Size(keys), inferred_.facts().dims());
  }

 private:
  Dim Size(const std::string& text) { return inferred_.facts().dims().Parse(text); }

  Inferred inferred_;
  ValueNumbering numbering_;
  MaskForms forms_;
};

// j <= i + offset, for S queries.
std::string Triangle(const std::string& offset, const std::string& keys) {
  return "g (float[S, " + keys +
         "] scores, int64[B, T] pad) => (m) <int64 none = {0}, int64 one = {1}, int64[1] first = {0}, "
         "int64[1] second = {1}, float zero = {0}, float low = {-inf}, int64 k = {" +
         offset +
         "}> { "
         "shape = Shape (scores)\n S1 = Gather (shape, none)\n T1 = Gather (shape, one)\n "
         "q = Range (none, S1, one)\n j = Range (none, T1, one)\n i = Add (q, k)\n ic = Unsqueeze (i, second)\n "
         "jr = Unsqueeze (j, first)\n up = LessOrEqual (jr, ic)\n m = Where (up, zero, low) }";
}

TEST(MaskFormTest, WhichDiagonalItIsDependsOnTheAttention) {
  EXPECT_EQ(Masks(Triangle("0", "T")).Word("S", "T"), "causal_top_left");
  EXPECT_EQ(Masks(Triangle("0", "S")).Word("S", "S"), "causal_bottom_right");
  EXPECT_EQ(Masks(Triangle("2", "T")).Word("S", "T"), "causal") << "2 is not proved to be T - S";
}

TEST(MaskFormTest, ATriangleOfUnknownNumbersIsABias) {
  const std::string text = "g (float[1, T] x) => (m) <float zero = {0}, float low = {-inf}> { m = Trilu <upper = 0> (x) }";
  EXPECT_EQ(Masks(text).Form("1", "T").bias, true) << "x may be anything";
}

TEST(MaskFormTest, NumbersThatAreNoMinusInfinityAreABias) {
  Masks masks("g (bool[S, T] keep) => (m) <float zero = {0}, float low = {-100}> { m = Where (keep, zero, low) }");
  EXPECT_TRUE(masks.Form("S", "T").bias);
}

TEST(MaskFormTest, IntegersOfAnInputAreAssumedToBeBits) {
  Masks masks(
      "g (int64[B, T] pad) => (m) <float one = {1}, float low = {-10000}, int64[2] middle = {1, 2}> { "
      "f = Cast <to = 1> (pad)\n u = Unsqueeze (f, middle)\n n = Sub (one, u)\n m = Mul (n, low) }");
  const MaskForm& form = masks.Form("S", "T");
  EXPECT_EQ(masks.Word("S", "T"), "padding");
  EXPECT_EQ(form.padding_inputs, (std::vector<std::string>{"pad"}));
  EXPECT_EQ(form.assumptions, (std::vector<std::string>{"the integer input pad holds only 0 and 1, as a mask does"}));
}

TEST(MaskFormTest, WhatTheUserSaysOfAnInput) {
  const std::string text =
      "g (int64[B, T] pad) => (m) <float zero = {0}, float low = {-inf}, int64[2] middle = {1, 2}> { "
      "b = Cast <to = 9> (pad)\n u = Unsqueeze (b, middle)\n m = Where (u, zero, low) }";
  EXPECT_EQ(Masks(text).Word("S", "T"), "padding");
  EXPECT_EQ(Masks(text, {{"pad", InputAssumption::Kind::kOnes}}).Word("S", "T"), "none");
  EXPECT_EQ(Masks(text, {{"pad", InputAssumption::Kind::kBinary}}).Word("S", "T"), "padding");
  EXPECT_EQ(Masks(text, {{"other", InputAssumption::Kind::kOnes}}).Word("S", "T"), "padding");
}

TEST(MaskFormTest, WhatIsNeverBelowZeroIsZeroWhereItIsAtMostZero) {
  // The difference of neighbours in 0 - 1, 0, 1, 2 ... is 1 everywhere, also at the first place.
  Masks masks(
      "g (int64[B, S] ids) => (m) <int64 none = {0}, int64 one = {1}, int64[1] first = {0}, int64[1] second = {1}, "
      "int64[1] end = {9223372036854775807}, float zero = {0}, float low = {-inf}> { shape = Shape (ids)\n "
      "S1 = Gather (shape, one)\n q = Range (none, S1, one)\n before = Sub (first, second)\n "
      "both = Concat <axis = 0> (before, q)\n after = Slice (both, second, end)\n s1 = Unsqueeze (S1, first)\n "
      "until = Slice (both, first, s1)\n d = Sub (after, until)\n same = Equal (d, one)\n u = Unsqueeze (same, first)\n "
      "m = Where (u, zero, low) }");
  EXPECT_EQ(masks.Word("S", "S"), "none");
}

}  // namespace
}  // namespace ascend_fuse
