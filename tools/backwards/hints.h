// What a pattern cannot say: functions of patterns/functions whose truth must be built, not found.
#pragma once

#include <string_view>
#include <vector>

#include "tools/backwards/builder.h"

namespace ascend_fuse::backwards {

// One row for each such function: it gets the operands of the call and does its part once they are known.
// True in *done when there is nothing left to do; false where the graph cannot have it.
struct FunctionHint {
  std::string_view name;
  bool (*apply)(Builder* builder, PendingCondition* pending, const Expression& call, const std::vector<int>& operands,
                bool* done);

  // hints_shape.cc
  static bool SameShape(Builder* builder, PendingCondition*, const Expression&, const std::vector<int>& operands, bool* done);
  static bool BroadcastsTo(Builder* builder, PendingCondition* pending, const Expression&, const std::vector<int>& operands,
                           bool* done);
  // last (axes)
  static bool Last(Builder* builder, PendingCondition* pending, const Expression& call, const std::vector<int>&, bool* done);
  static bool Constant(Builder* builder, PendingCondition*, const Expression&, const std::vector<int>& operands, bool* done);
  // all_are (x, n): a constant of equal elements
  static bool AllAre(Builder* builder, PendingCondition* pending, const Expression& call, const std::vector<int>& operands,
                     bool* done);
  static bool NegativeAxes(Builder* builder, PendingCondition*, const Expression&, const std::vector<int>& operands, bool* done);
  // table (a, b, x1, mode), matrix_table (f, g, name): of one shape
  static bool OneShape(Builder* builder, PendingCondition*, const Expression&, const std::vector<int>& operands, bool* done);
  // in_place_safe (x): something computes x
  static bool InPlaceSafe(Builder* builder, PendingCondition*, const Expression&, const std::vector<int>& operands, bool* done);

  // hints_norm.cc
  // reduced (r, x, axes): x with 1 in place of the axes
  static bool Reduced(Builder* builder, PendingCondition* pending, const Expression& call, const std::vector<int>& operands,
                      bool* done);
  // A value of a shape, with dims of 1 in front of it in some graphs, but of no larger rank than x.
  static bool Weight(Builder* builder, int weight, std::vector<int> dims, size_t rank);
  // weight (w, x, axis, fill): the last dims of x
  static bool NormWeight(Builder* builder, PendingCondition* pending, const Expression& call, const std::vector<int>& operands,
                         bool* done);
  // channels (w, x, fill): [C, 1, ...] beside x [N, C, ...]
  static bool Channels(Builder* builder, PendingCondition*, const Expression&, const std::vector<int>& operands, bool* done);
  // per_channel (w, x): [C]
  static bool PerChannel(Builder* builder, PendingCondition*, const Expression&, const std::vector<int>& operands, bool* done);

  // hints_linear.cc
  // linear (y), linear_input (y) ...: y is a linear layer of x, which is made where it is kUnknown
  static bool LinearOf(Builder* builder, const PendingCondition& pending, int y, int x, int percent_with_bias = 65);
  // The sum or the product that is there already: what the rule leaves open of it is a weight and a bias [N].
  static bool WrittenLinear(Builder* builder, int y, bool* done);
  static bool Linear(Builder* builder, PendingCondition* pending, const Expression&, const std::vector<int>& operands,
                     bool* done);
  // both_linear (a, b), merged_linear (a, b): linears of one input
  static bool BothLinear(Builder* builder, PendingCondition* pending, const Expression&, const std::vector<int>& operands,
                         bool* done);
  // gate_pair (a, b): the halves of one value, or linears of one
  static bool GatePair(Builder* builder, PendingCondition* pending, const Expression& call, const std::vector<int>& operands,
                       bool* done);
  // half (x) = 0 or 1
  static bool Half(Builder* builder, PendingCondition* pending, const Expression&, const std::vector<int>& operands, bool* done);

  // hints_attention.cc
  // m of a query and a key: it is proved to hold 0 and what takes a key out of the softmax
  static bool OneMask(Builder* builder, const std::vector<int>& operands, bool* done);

  // attention_plan (q, k, mask, keep, bias, guard): the same of each mask that is there
  static bool AttentionPlan(Builder* builder, PendingCondition*, const Expression&, const std::vector<int>& operands, bool* done);

  // hints_rotary.cc
  // rotation (r, x, sign, signs): r is x with its channels turned
  // "" where the rule wants a mode that channels which are computed already cannot have.
  static std::string RotationMode(Builder* builder, const PendingCondition& pending, const Expression& call, bool leaf,
                                  bool signs);
  static bool Rotation(Builder* builder, PendingCondition* pending, const Expression& call, const std::vector<int>& operands,
                       bool* done);
  // The value that two parts are cut from: one that the lowering names, or a new one.
  static int WholeOf(Builder* builder, PendingCondition* pending, const std::vector<std::string_view>& calls);
  // pair_rotation (y, a, b, x1, x2): y is a and b together again as x was before it was cut into x1 and x2
  static bool PairRotation(Builder* builder, PendingCondition* pending, const Expression& call, const std::vector<int>& operands,
                           bool* done);
  // whole (a, b, y, mode): a and b are cut from a value like y
  static bool Whole(Builder* builder, PendingCondition* pending, const Expression& call, const std::vector<int>& operands,
                    bool* done);
  // written_rotation (y, p, i, j, x1, x2): the parts are written to the rows i and j of what is y transposed
  static bool WrittenRotation(Builder* builder, PendingCondition* pending, const Expression& call,
                              const std::vector<int>& operands, bool* done);
  // part_rotation (a, x1, x2): the halves, or the even and the odd channels, of one value
  static bool PartRotation(Builder* builder, PendingCondition* pending, const Expression& call, const std::vector<int>& operands,
                           bool* done);
  static bool RotaryMode(Builder* builder, PendingCondition* pending, const Expression& call, const std::vector<int>&,
                         bool* done);
};

}  // namespace ascend_fuse::backwards
