// Decision diagrams: what an element is, as a tree of tests on integers with one test a level and equal parts stored once.
// Two programs that compute the same function of the same tests give the same number, however they spell it (De Morgan,
// commuted or negated comparisons, nested Where).
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <tuple>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/functional/function_ref.h"
#include "patterns/analysis/index_sum.h"

namespace ascend_fuse {

// A function of a DecisionTable. Predicates are functions whose leaves are 0 and 1.
using Decision = uint32_t;
// What an operation gives whose work was too much; it may be an operand of every other one.
inline constexpr Decision kNoDecision = UINT32_MAX;

// Holds where `sum` <= 0, or where it is 0.
struct Test {
  enum class Kind : uint8_t { kAtMostZero, kZero };
  Kind kind = Kind::kAtMostZero;
  IndexSum sum = kNoSum;
};

// A test that holds, or does not.
struct Literal {
  uint32_t test = 0;
  bool holds = true;
};

// What a function ends in.
struct Leaf {
  enum class Kind : uint8_t {
    kSum,   // an integer
    kReal,  // a number, infinities included, never NaN
    kRead,  // the sum of elements that are read, and of `real`
  };
  Kind kind = Kind::kSum;
  IndexSum sum = kNoSum;
  double real = 0;
  std::vector<IndexSum> reads;  // rising
};

class DecisionTable {
 public:
  explicit DecisionTable(IndexTable* sums);

  // The work that may be done from now on, in nodes that are made or visited.
  void SetBudget(int64_t steps) { budget_ = steps; }
  bool exhausted() const { return budget_ <= 0; }

  Decision OfSum(IndexSum sum);
  Decision OfReal(double number);
  Decision OfLeaf(Leaf leaf);
  Decision OfBool(bool value) { return value ? true_ : false_; }
  // sum <= 0 and sum == 0, decided where the bounds of the sum decide it.
  Decision AtMostZero(IndexSum sum);
  Decision IsZero(IndexSum sum);

  Decision If(Decision condition, Decision a, Decision b);
  Decision Not(Decision a) { return If(a, false_, true_); }
  Decision And(Decision a, Decision b) { return If(a, b, false_); }
  Decision Or(Decision a, Decision b) { return If(a, true_, b); }
  Decision Xor(Decision a, Decision b) { return If(a, Not(b), b); }
  // The function with every leaf replaced, and the one of every pair of leaves; kNoDecision where `change` gives it.
  Decision Map(Decision a, absl::FunctionRef<Decision(const Leaf&)> change);
  Decision Map2(Decision a, Decision b, absl::FunctionRef<Decision(const Leaf&, const Leaf&)> join);

  bool IsLeaf(Decision f) const { return nodes_[f].test == kLeafTest; }
  const Leaf& LeafOf(Decision f) const { return leaves_[nodes_[f].low]; }
  const Test& TestOf(uint32_t test) const { return tests_[test]; }
  // The first test of a function that is not a leaf, and what follows where it holds and where it does not.
  Literal First(Decision f) const { return {nodes_[f].test, true}; }
  Decision Branch(Decision f, bool holds) const { return holds ? nodes_[f].high : nodes_[f].low; }

  // The function where that literal is known.
  Decision Given(Decision f, Literal literal);
  // The tests that a function asks, each once.
  std::vector<uint32_t> TestsOf(Decision f) const;
  // PositionBits of all its tests and leaves.
  uint8_t DependsOn(Decision f) const;
  // Whether the two cannot hold together, whatever the positions are. False where it is not proved.
  bool Contradict(Literal a, Literal b);
  // Whether the predicate never holds where all of the literals do. False where it is not proved.
  bool NeverHolds(Decision predicate, const std::vector<Literal>& known);

  // An expression of Python: see IndexTable::ToString.
  std::string ToString(Literal literal) const;
  std::string ToString(Decision f) const;
  IndexTable& sums() const { return sums_; }

 private:
  static constexpr uint32_t kLeafTest = UINT32_MAX;
  struct Node {
    uint32_t test = kLeafTest;
    uint32_t low = 0;  // of a leaf: which one
    uint32_t high = 0;
  };
  using Key = std::tuple<uint32_t, uint32_t, uint32_t>;

  Decision Make(uint32_t test, Decision low, Decision high);
  Decision OfTest(Test test);
  Decision Cofactor(Decision f, uint32_t test, bool holds) const;
  bool Never(Decision f, std::vector<Literal>* path, int* budget);
  // Sums that are at most 0 where the literal holds.
  std::vector<IndexSum> AtMostZeroWhere(Literal literal);

  IndexTable& sums_;
  int64_t budget_ = 0;
  std::vector<Node> nodes_;
  std::vector<Leaf> leaves_;
  std::vector<Test> tests_;
  absl::flat_hash_map<Key, Decision> node_ids_;
  absl::flat_hash_map<std::string, Decision> leaf_ids_;
  absl::flat_hash_map<std::pair<int, IndexSum>, uint32_t> test_ids_;
  absl::flat_hash_map<Key, Decision> ifs_;
  Decision false_ = 0;
  Decision true_ = 0;
};

}  // namespace ascend_fuse
