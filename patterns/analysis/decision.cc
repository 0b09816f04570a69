#include "patterns/analysis/decision.h"

#include <algorithm>

#include "fmt/format.h"
#include "fmt/ranges.h"

namespace ascend_fuse {

DecisionTable::DecisionTable(IndexTable* sums) : sums_(*sums) {
  false_ = OfSum(sums_.Of(0));
  true_ = OfSum(sums_.Of(1));
}

Decision DecisionTable::OfLeaf(Leaf leaf) {
  if (leaf.kind == Leaf::Kind::kRead && leaf.reads.empty()) leaf.kind = Leaf::Kind::kReal;
  if (leaf.real == 0) leaf.real = 0;  // one zero
  const std::string key =
      fmt::format("{} {} {} {}", static_cast<int>(leaf.kind), leaf.sum, leaf.real, fmt::join(leaf.reads, ","));
  const auto [entry, inserted] = leaf_ids_.try_emplace(key, static_cast<Decision>(nodes_.size()));
  if (inserted) {
    nodes_.push_back({kLeafTest, static_cast<uint32_t>(leaves_.size()), 0});
    leaves_.push_back(std::move(leaf));
  }
  return entry->second;
}

Decision DecisionTable::OfSum(IndexSum sum) {
  if (sum == kNoSum) return kNoDecision;
  Leaf leaf;
  leaf.sum = sum;
  return OfLeaf(std::move(leaf));
}

Decision DecisionTable::OfReal(double number) {
  Leaf leaf;
  leaf.kind = Leaf::Kind::kReal;
  leaf.real = number;
  return OfLeaf(std::move(leaf));
}

Decision DecisionTable::Make(uint32_t test, Decision low, Decision high) {
  if (low == kNoDecision || high == kNoDecision || --budget_ < 0) return kNoDecision;
  if (low == high) return low;
  const auto [entry, inserted] = node_ids_.try_emplace(Key(test, low, high), static_cast<Decision>(nodes_.size()));
  if (inserted) nodes_.push_back({test, low, high});
  return entry->second;
}

Decision DecisionTable::OfTest(Test test) {
  const auto [entry, inserted] =
      test_ids_.try_emplace(std::pair(static_cast<int>(test.kind), test.sum), static_cast<uint32_t>(tests_.size()));
  if (inserted) tests_.push_back(test);
  return Make(entry->second, false_, true_);
}

Decision DecisionTable::AtMostZero(IndexSum sum) {
  if (sum == kNoSum) return kNoDecision;
  if (sums_.AtMost(sum, 0)) return true_;
  if (sums_.AtLeast(sum, 1)) return false_;
  // One sign for one test: s <= 0 is not 1 - s <= 0.
  const auto& terms = sums_[sum].terms;
  if (!terms.empty() && terms[0].coefficient.is_number() && terms[0].coefficient.number() < 0) {
    const IndexSum opposite = sums_.Sub(sums_.Of(1), sum);
    return opposite == kNoSum ? kNoDecision : Not(OfTest({Test::Kind::kAtMostZero, opposite}));
  }
  return OfTest({Test::Kind::kAtMostZero, sum});
}

Decision DecisionTable::IsZero(IndexSum sum) {
  if (sum == kNoSum) return kNoDecision;
  if (sums_.AtLeast(sum, 1) || sums_.AtMost(sum, -1)) return false_;
  // What is never below 0 is 0 where it is at most 0: one test for one thing.
  if (sums_.AtLeast(sum, 0)) return AtMostZero(sum);
  if (sums_.AtMost(sum, 0)) return AtMostZero(sums_.Scale(sum, Dim::Of(-1)));
  if (const Dim dim = sums_.DimOf(sum); dim.known()) {
    if (sums_.dims().Equal(dim, Dim::Of(0))) return true_;
    if (sums_.dims().NotEqual(dim, Dim::Of(0))) return false_;
  }
  const auto& terms = sums_[sum].terms;
  if (!terms.empty() && terms[0].coefficient.is_number() && terms[0].coefficient.number() < 0) {
    sum = sums_.Scale(sum, Dim::Of(-1));
    if (sum == kNoSum) return kNoDecision;
  }
  return OfTest({Test::Kind::kZero, sum});
}

Decision DecisionTable::Cofactor(Decision f, uint32_t test, bool holds) const {
  return nodes_[f].test != test ? f : Branch(f, holds);
}

Decision DecisionTable::If(Decision condition, Decision a, Decision b) {
  if (condition == kNoDecision || a == kNoDecision || b == kNoDecision || --budget_ < 0) return kNoDecision;
  if (condition == true_ || a == b) return a;
  if (condition == false_) return b;
  if (IsLeaf(condition)) return kNoDecision;  // no predicate
  if (a == true_ && b == false_) return condition;
  const Key key(condition, a, b);
  if (const auto known = ifs_.find(key); known != ifs_.end()) return known->second;
  const uint32_t test = std::min({nodes_[condition].test, nodes_[a].test, nodes_[b].test});
  const auto part = [&](bool holds) {
    return If(Cofactor(condition, test, holds), Cofactor(a, test, holds), Cofactor(b, test, holds));
  };
  const Decision low = part(false);
  const Decision result = Make(test, low, part(true));
  if (result != kNoDecision) ifs_[key] = result;
  return result;
}

Decision DecisionTable::Map(Decision a, absl::FunctionRef<Decision(const Leaf&)> change) {
  return Map2(a, false_, [&](const Leaf& leaf, const Leaf&) { return change(leaf); });
}

Decision DecisionTable::Map2(Decision a, Decision b, absl::FunctionRef<Decision(const Leaf&, const Leaf&)> join) {
  if (a == kNoDecision || b == kNoDecision) return kNoDecision;
  absl::flat_hash_map<std::pair<Decision, Decision>, Decision> known;
  const std::function<Decision(Decision, Decision)> visit = [&](Decision x, Decision y) -> Decision {
    if (--budget_ < 0) return kNoDecision;
    if (const auto found = known.find({x, y}); found != known.end()) return found->second;
    Decision result = kNoDecision;
    if (IsLeaf(x) && IsLeaf(y)) {
      const Leaf left = LeafOf(x);  // copies: `join` may make leaves
      const Leaf right = LeafOf(y);
      result = join(left, right);
    } else {
      const uint32_t test = std::min(nodes_[x].test, nodes_[y].test);
      const Decision low = visit(Cofactor(x, test, false), Cofactor(y, test, false));
      const Decision high = visit(Cofactor(x, test, true), Cofactor(y, test, true));
      // `join` may have asked tests that come before this one.
      if (low != kNoDecision && high != kNoDecision) result = If(OfTest(tests_[test]), high, low);
    }
    known[{x, y}] = result;
    return result;
  };
  return visit(a, b);
}

Decision DecisionTable::Given(Decision f, Literal literal) {
  if (f == kNoDecision) return f;
  absl::flat_hash_map<Decision, Decision> known;
  const std::function<Decision(Decision)> visit = [&](Decision x) -> Decision {
    if (IsLeaf(x) || nodes_[x].test > literal.test) return x;
    if (nodes_[x].test == literal.test) return Branch(x, literal.holds);
    if (const auto found = known.find(x); found != known.end()) return found->second;
    const Node node = nodes_[x];
    const Decision low = visit(node.low);
    const Decision result = Make(node.test, low, visit(node.high));
    known[x] = result;
    return result;
  };
  return visit(f);
}

std::vector<uint32_t> DecisionTable::TestsOf(Decision f) const {
  std::vector<uint32_t> tests;
  std::vector<Decision> open = {f};
  absl::flat_hash_map<Decision, bool> seen;
  while (!open.empty()) {
    const Decision x = open.back();
    open.pop_back();
    if (IsLeaf(x) || !seen.try_emplace(x, true).second) continue;
    tests.push_back(nodes_[x].test);
    open.push_back(nodes_[x].low);
    open.push_back(nodes_[x].high);
  }
  std::sort(tests.begin(), tests.end());
  tests.erase(std::unique(tests.begin(), tests.end()), tests.end());
  return tests;
}

uint8_t DecisionTable::DependsOn(Decision f) const {
  uint8_t depends = 0;
  for (uint32_t test : TestsOf(f)) depends |= sums_[tests_[test].sum].depends;
  std::vector<Decision> open = {f};
  absl::flat_hash_map<Decision, bool> seen;
  while (!open.empty()) {
    const Decision x = open.back();
    open.pop_back();
    if (!seen.try_emplace(x, true).second) continue;
    if (!IsLeaf(x)) {
      open.push_back(nodes_[x].low);
      open.push_back(nodes_[x].high);
      continue;
    }
    const Leaf& leaf = LeafOf(x);
    if (leaf.kind == Leaf::Kind::kSum) depends |= sums_[leaf.sum].depends;
    for (IndexSum read : leaf.reads) depends |= sums_[read].depends;
  }
  return depends;
}

std::vector<IndexSum> DecisionTable::AtMostZeroWhere(Literal literal) {
  const Test& test = tests_[literal.test];
  if (test.kind == Test::Kind::kAtMostZero) {
    return {literal.holds ? test.sum : sums_.Sub(sums_.Of(1), test.sum)};
  }
  if (!literal.holds) return {};
  return {test.sum, sums_.Scale(test.sum, Dim::Of(-1))};
}

bool DecisionTable::Contradict(Literal a, Literal b) {
  if (a.test == b.test) return a.holds != b.holds;
  // Two sums that are at most 0 whose sum is at least 1.
  for (IndexSum x : AtMostZeroWhere(a)) {
    for (IndexSum y : AtMostZeroWhere(b)) {
      if (x != kNoSum && y != kNoSum && sums_.AtLeast(sums_.Add(x, y), 1)) return true;
    }
  }
  return false;
}

bool DecisionTable::Never(Decision f, std::vector<Literal>* path, int* budget) {
  if (f == false_) return true;
  if (IsLeaf(f) || --*budget < 0) return false;
  for (bool holds : {false, true}) {
    const Literal literal = {nodes_[f].test, holds};
    const bool impossible = std::any_of(path->begin(), path->end(), [&](Literal other) { return Contradict(literal, other); });
    if (impossible) continue;
    path->push_back(literal);
    const bool never = Never(Branch(f, holds), path, budget);
    path->pop_back();
    if (!never) return false;
  }
  return true;
}

bool DecisionTable::NeverHolds(Decision predicate, const std::vector<Literal>& known) {
  if (predicate == kNoDecision) return false;
  constexpr int kMaximumPaths = 2000;
  int budget = kMaximumPaths;
  std::vector<Literal> path = known;
  return Never(predicate, &path, &budget);
}

std::string DecisionTable::ToString(Literal literal) const {
  const Test& test = tests_[literal.test];
  const std::string sum = sums_.ToString(test.sum);
  if (test.kind == Test::Kind::kZero) return fmt::format("({} {} 0)", sum, literal.holds ? "==" : "!=");
  return fmt::format("({} {} 0)", sum, literal.holds ? "<=" : ">");
}

std::string DecisionTable::ToString(Decision f) const {
  if (IsLeaf(f)) {
    const Leaf& leaf = LeafOf(f);
    if (leaf.kind == Leaf::Kind::kSum) return fmt::format("({})", sums_.ToString(leaf.sum));
    std::string text = fmt::format("{}", leaf.real);
    for (IndexSum read : leaf.reads) text += fmt::format(" + {}", sums_.ToString(read));
    return text;
  }
  return fmt::format("where({}, {}, {})", ToString(First(f)), ToString(Branch(f, true)), ToString(Branch(f, false)));
}

}  // namespace ascend_fuse
