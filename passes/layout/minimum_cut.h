// Decides questions of two answers, 0 and 1, by what pairs of answers cost, so that the sum is the least: a minimum cut.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace ascend_fuse {

class MinimumCut {
 public:
  // Answers that must not be given cost this.
  static constexpr int64_t kNever = int64_t{1} << 60;
  // Questions whose answers are given.
  static constexpr int kZero = 0;
  static constexpr int kOne = 1;

  MinimumCut() : edges_of_(2) {}

  int AddQuestion();
  // Paid where `a` is 0 and `b` is 1.
  void Cost(int a, int b, int64_t cost);
  // Chooses the answers. Of several choices of one cost, the one with the most ones.
  void Solve();
  // After Solve.
  bool IsOne(int question) const { return !reached_[static_cast<size_t>(question)]; }

 private:
  struct Edge {
    int to;
    int64_t left;  // what may still flow
  };

  bool FindLevels();
  int64_t Push();

  std::vector<Edge> edges_;  // each with its opposite after it
  std::vector<std::vector<size_t>> edges_of_;
  std::vector<int> levels_;
  std::vector<size_t> next_;
  std::vector<bool> reached_;
};

}  // namespace ascend_fuse
