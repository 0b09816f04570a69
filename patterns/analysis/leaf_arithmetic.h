// What operators compute element by element, on the leaves of decisions. Floating-point numbers are rounded as a run rounds
// them; NaN is never a leaf.
#pragma once

#include <functional>
#include <optional>
#include <string_view>

#include "ir/infer/facts.h"
#include "patterns/analysis/decision.h"

namespace ascend_fuse {

class LeafArithmetic {
 public:
  // `bits`: how an integer that is a sum can be only 0 and 1, as a decision over its reads; kNoDecision for any other sum.
  LeafArithmetic(DimTable* dims, DecisionTable* decisions, std::function<Decision(IndexSum)> bits)
      : dims_(*dims), sums_(decisions->sums()), decisions_(*decisions), bits_(std::move(bits)) {}

  Decision Number(DataType type, double number);
  std::optional<double> RealOf(const Leaf& leaf) const;
  IndexSum SumOf(const Leaf& leaf);
  // A sum in a floating-point type that keeps it exactly; the number where it is one.
  Decision SafeSum(DataType type, IndexSum sum);

  Decision Cast(const Leaf& leaf, DataType to);
  // An operator of one input, by attributes of its node.
  Decision Unary(const Node& node, DataType type, const Leaf& leaf);
  Decision Combine(std::string_view op, DataType type, const Leaf& a, const Leaf& b);
  Decision Compare(std::string_view op, const Leaf& a, const Leaf& b);

 private:
  Decision CombineSums(std::string_view op, DataType type, IndexSum a, IndexSum b);
  Decision CombineReads(std::string_view op, DataType type, const Leaf& a, const Leaf& b);
  Decision CompareSums(std::string_view op, IndexSum a, IndexSum b);
  Decision CompareToNumber(std::string_view op, IndexSum a, double number);

  DimTable& dims_;
  IndexTable& sums_;
  DecisionTable& decisions_;
  std::function<Decision(IndexSum)> bits_;
};

}  // namespace ascend_fuse
