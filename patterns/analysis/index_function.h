// Index functions: what the element of a tensor at a place is, as a decision over the place, dims, and elements of the
// inputs, found by following the program that computes the tensor backwards. Nothing is materialised: a Slice adds to an
// index, a Trilu asks a test. What an operator is not known to do is an element that is read, which is always true.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/types/span.h"
#include "ir/infer/facts.h"
#include "ir/infer/value_numbering.h"
#include "patterns/analysis/decision.h"
#include "patterns/analysis/input_assumption.h"
#include "patterns/analysis/leaf_arithmetic.h"
#include "patterns/analysis/table_form.h"

namespace ascend_fuse {

struct AxisSource;
struct MovedPart;
struct Movement;

class IndexFunctions {
 public:
  using Indices = std::vector<IndexSum>;

  // All must outlive this. Dims are made in the table of the facts; nothing is unified.
  IndexFunctions(const Model& model, const Facts& facts, DimTable* dims, const ValueNumbering& numbering,
                 absl::Span<const InputAssumption> assumptions);

  // Element `indices` of `value`, one for each axis. kNoDecision where the work is too much; see SetBudget. The sets of
  // assumptions it rests on are added to `assumptions`, as bits of Sentence.
  Decision At(const Value* value, const Indices& indices, uint64_t* assumptions);
  // The sentence of assumption number `bit`.
  const std::string& Sentence(int bit) const { return sentences_[static_cast<size_t>(bit)]; }
  // How an integer that a mask is made of can be only 0 and 1: as a decision over its reads, each of an integer input of
  // the graph, which is assumed to hold nothing else. kNoDecision for any other sum.
  Decision AsBits(IndexSum sum, uint64_t* assumptions);

  IndexTable& sums() { return sums_; }
  const IndexTable& sums() const { return sums_; }
  DecisionTable& decisions() { return decisions_; }

 private:
  struct Element {
    Decision decision = kNoDecision;
    uint64_t assumptions = 0;
  };
  using Handler = Decision (IndexFunctions::*)(const Node&, size_t output, const Indices&);
  static Handler HandlerOf(std::string_view op);

  // An empty fact of an input that is absent.
  const Fact& FactOf(const Value* value) const { return value == nullptr ? nothing_ : facts_.Of(value); }
  Decision At(const Value* value, const Indices& indices);
  Decision Compute(const Value* value, const Indices& indices);
  Decision Follow(const Value* value, const Indices& indices);
  Decision ReadElement(const Value* value, const Indices& indices);
  Decision FromFacts(const Value* value, const Indices& indices);
  Decision FromTable(const Value* value, const Indices& indices);
  std::optional<int> AssumptionBit(const std::string& sentence);
  const InputAssumption* Assumed(const Value* value) const;
  // The integer at a place, where it is one whatever the place is; kNoSum otherwise.
  IndexSum SumAt(const Value* value, const Indices& indices);
  // A parameter of one element, of rank 0 or 1.
  IndexSum ScalarOf(const Value* value);
  Indices OperandIndices(const Fact& operand, const Fact& result, const Indices& indices);
  // The index into an axis of `extent` elements that is broadcast to one of `wanted`.
  IndexSum BroadcastIndex(IndexSum index, Dim extent, Dim wanted);
  // `index` into an axis of `extent` elements, where a negative one counts from the end.
  IndexSum FromTheEnd(IndexSum index, Dim extent);
  static bool Complete(const Indices& indices);

  // What moves elements, and what makes them out of places: index_movement.cc.
  Decision Move(const Movement& movement, const Node& node, size_t output, const Indices& indices);
  Indices Regroup(absl::Span<const Dim> to, absl::Span<const Dim> from, const Indices& indices);
  Decision AtPart(const MovedPart& part, const Node& node, size_t output, const Indices& places);
  IndexSum SourceIndex(const AxisSource& source, Dim extent, const Node& node, size_t output, const Indices& places);
  Decision Joined(const Movement& movement, const Node& node, const Indices& places);
  Decision Inside(const MovedPart& part, Indices* places);
  Decision Padded(const Movement& movement, const Node& node, size_t output, const Indices& places);
  Decision Written(const Movement& movement, const Node& node, const Indices& places);
  Decision WrittenWhereSaid(const MovedPart& updates, const Node& node, const Indices& indices);
  Decision Trilu(const Node& node, size_t output, const Indices& indices);
  Decision Range(const Node& node, size_t output, const Indices& indices);
  Decision CumSum(const Node& node, size_t output, const Indices& indices);
  // Operators that compute element by element: index_arithmetic.cc.
  Decision Where(const Node& node, size_t output, const Indices& indices);
  Decision Unary(const Node& node, size_t output, const Indices& indices);
  Decision Binary(const Node& node, size_t output, const Indices& indices);
  Decision Variadic(const Node& node, size_t output, const Indices& indices);
  Decision Cast(const Node& node, size_t output, const Indices& indices);

  const Fact nothing_;
  const Facts& facts_;
  DimTable& dims_;
  const ValueNumbering& numbering_;
  std::vector<InputAssumption> assumptions_;
  IndexTable sums_;
  DecisionTable decisions_;
  TableForms tables_;
  LeafArithmetic leaves_;
  absl::flat_hash_map<std::pair<uint32_t, Indices>, Element> elements_;  // by number of the value
  std::vector<std::string> sentences_;
  uint64_t used_ = 0;  // assumptions of what is being computed
  int depth_ = 0;
};

}  // namespace ascend_fuse
