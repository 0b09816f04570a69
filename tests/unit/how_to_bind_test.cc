// The ends of sentences about dims that are not known: a flag that can be copied, and nothing that --dim cannot say.
#include "patterns/how_to_bind.h"

#include "gtest/gtest.h"

namespace ascend_fuse {
namespace {

class HowToBindTest : public ::testing::Test {
 protected:
  DimTable dims_;
  const Dim b_ = dims_.Symbol("B");
  const Dim s_ = dims_.Symbol("S");
};

TEST_F(HowToBindTest, NamesAreFlags) {
  EXPECT_EQ(HowToBind(dims_, {s_}), "bind it with --dim S=N");
  EXPECT_EQ(HowToBind(dims_, {b_, s_, b_, Dim::Of(4)}), "bind it with --dim B=N --dim S=N");
  EXPECT_EQ(HowToBind(dims_, {b_}, "1"), "bind it with --dim B=1");
}

TEST_F(HowToBindTest, AnExpressionIsBoundByItsNames) {
  EXPECT_EQ(HowToBind(dims_, {dims_.Add(b_, dims_.Mul(s_, Dim::Of(2)))}), "bind it with --dim B=N --dim S=N");
}

TEST_F(HowToBindTest, ANameThatIsKnownToBeAnother) {
  EXPECT_TRUE(dims_.Unify(s_, Dim::Of(7)));
  EXPECT_EQ(HowToBind(dims_, {b_, s_}), "bind it with --dim B=N");
}

TEST_F(HowToBindTest, ANameThatTheShellWouldSplit) {
  EXPECT_EQ(HowToBind(dims_, {dims_.Symbol("batch size")}), "bind the model's symbolic dims with --dim NAME=N");
}

TEST_F(HowToBindTest, NothingIsDeclared) { EXPECT_EQ(HowToBind(dims_, {Dim(), Dim::Of(3)}), "declare the shape in the model"); }

TEST_F(HowToBindTest, WhatTheModelComputes) {
  const Dim computed = dims_.FreshSymbol("Loop_output_0_d0");
  EXPECT_EQ(HowToBind(dims_, {computed}),
            "--dim cannot say Loop_output_0_d0, which the model computes: declare it as a number in the model");
  EXPECT_EQ(
      HowToBind(dims_, {b_, dims_.Mul(b_, computed)}),
      "bind it with --dim B=N; --dim cannot say Loop_output_0_d0, which the model computes: declare it as a number in the model");
  const Dim of_input = dims_.FreshSymbol("x_d0", true);
  EXPECT_EQ(HowToBind(dims_, {of_input}), "bind it with --dim x_d0=N");
}

TEST_F(HowToBindTest, TwoNamesMayBeOne) {
  EXPECT_EQ(HowToEqual(dims_, {b_, s_}), "bind it with --dim B=N --dim S=N, or say that they are the same with --dim B=S");
  EXPECT_EQ(HowToEqual(dims_, {b_, Dim::Of(2)}), "bind it with --dim B=N");
  EXPECT_EQ(HowToEqual(dims_, {b_, dims_.Add(s_, Dim::Of(1))}), "bind it with --dim B=N --dim S=N");
  EXPECT_EQ(HowToEqual(dims_, {b_, s_, Dim::Of(1)}), "bind it with --dim B=N --dim S=N");
}

}  // namespace
}  // namespace ascend_fuse
