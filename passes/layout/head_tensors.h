// Tensors of heads and tokens: all values that are one tensor, [B, N, S, D] or [B, S, N, D], however often it is transposed or
// reshaped and reshaped back.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "ir/infer/facts.h"
#include "passes/layout/order_graph.h"

namespace ascend_fuse {

// Orders of heads and tokens.
constexpr Order kHeadsFirst = Order::kFirst;    // [B, N, S, D]
constexpr Order kTokensFirst = Order::kSecond;  // [B, S, N, D]

struct HeadTensor {
  std::array<const Value*, 2> values = {};  // by order; the first there is of each
  std::vector<const Value*> members;        // all values that are this tensor, what computes it first
  std::vector<bool> exchanged;              // each of them: whether it has the other order than the first one
  std::optional<Order> first;               // the order of the first member, once it was reached
  int maker = -1;                           // the place that computes it; -1 for one that is not a choice

  const Value*& In(Order order) { return values[static_cast<size_t>(order)]; }
  Order OrderOf(size_t member) const { return exchanged[member] ? Other(*first) : *first; }
  Order OrderOf(const Value* member) const;
};

class HeadTensors {
 public:
  explicit HeadTensors(const Facts& facts) : facts_(facts) {}

  // The tensor that a value is, with all that are it: Transposes of it, and what comes back to its shape.
  size_t NumberOf(const Value* value);
  HeadTensor& operator[](size_t number) { return tensors_[number]; }
  const HeadTensor& operator[](size_t number) const { return tensors_[number]; }
  const std::vector<HeadTensor>& all() const { return tensors_; }
  bool Knows(const Value* value) const { return tensor_of_.contains(value); }
  // Of a value that it knows.
  HeadTensor& Of(const Value* value) { return tensors_[tensor_of_.at(value)]; }
  const HeadTensor& Of(const Value* value) const { return tensors_[tensor_of_.at(value)]; }

  // Nodes that make one member of a tensor of another one.
  const std::vector<const Node*>& between() const { return between_in_order_; }
  bool IsBetween(const Node* node) const { return between_.contains(node); }

 private:
  HeadTensor From(const Value* first, std::vector<const Node*>* between) const;
  const Value* SameBefore(const Value* value) const;
  void AddSameAfter(HeadTensor* tensor, size_t i, std::vector<const Node*>* between) const;

  const Facts& facts_;
  std::vector<HeadTensor> tensors_;
  absl::flat_hash_map<const Value*, size_t> tensor_of_;
  absl::flat_hash_set<const Node*> between_;
  std::vector<const Node*> between_in_order_;
};

}  // namespace ascend_fuse
