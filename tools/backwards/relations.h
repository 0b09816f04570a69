// What each operator says about the shapes of its operands and results.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "tools/backwards/builder.h"

namespace ascend_fuse::backwards {

class Relations {
 public:
  explicit Relations(Builder* builder) : b_(*builder) {}

  // What a node says, by operator.
  bool Relate(GraphNode* node);

  // What the operators' functions ask, and say of dims.
  bool Fail(const std::string& why) { return b_.Fail(why); }
  std::vector<GraphValue>& values() { return b_.values_; }
  Random& random() { return b_.random_; }
  std::vector<std::pair<std::vector<int>, int>>& sums() { return b_.sums_; }
  bool Shaped(int value) const { return b_.Shaped(value); }
  std::vector<int> DimsOf(int value) const { return b_.DimsOf(value); }
  int64_t NumberOfDim(int dim) const { return b_.NumberOfDim(dim); }
  bool Waits(int value) { return b_.Waits(value); }
  int NewDim(int64_t number = -1) { return b_.NewDim(number); }
  bool Join(int a, int b) { return b_.Join(a, b); }
  bool Assign(int dim, int64_t number) { return b_.Assign(dim, number); }
  bool SetShape(int value, const std::vector<int>& dims) { return b_.SetShape(value, dims); }
  // in = out but for one axis.
  bool RelateAxis(int a, int b, int64_t axis, const std::function<bool(int, int)>& at_axis);
  // An equation between products, written down once.
  void Equation(const GraphNode* key, std::vector<int> left, std::vector<int> right, double factor = 1);
  void Equate(std::vector<int> left, std::vector<int> right, double factor = 1) {
    b_.equations_.push_back({std::move(left), std::move(right), factor});
  }
  // A relation that makes new dims runs once.
  bool IsFirst(const GraphNode& node) { return b_.equations_of_.insert(&node).second; }
  bool Settled(const GraphNode& node) const { return b_.equations_of_.count(&node) > 0; }
  bool Settle(const GraphNode& node, bool result);
  void MarkTarget(const GraphNode& node);

 private:
  Builder& b_;
};

}  // namespace ascend_fuse::backwards
