// One graph of choices: which of two orders each node reads and computes its tensors in. A tensor that is read in another order
// than it is computed in costs what moving its elements costs, once for all its readers; a node may cost more in one order than
// in the other. The orders with the least sum are found by one minimum cut.
#pragma once

#include <cstdint>

#include "absl/types/span.h"
#include "passes/layout/minimum_cut.h"

namespace ascend_fuse {

enum class Order { kFirst, kSecond };

inline Order Other(Order order) { return order == Order::kFirst ? Order::kSecond : Order::kFirst; }

class OrderGraph {
 public:
  using Choice = int;
  static constexpr int64_t kNever = MinimumCut::kNever;

  // What cannot be chosen.
  static Choice Fixed(Order order) { return order == Order::kFirst ? MinimumCut::kZero : MinimumCut::kOne; }
  Choice AddChoice() { return cut_.AddQuestion(); }
  // `choice` in this order costs so much.
  void Charge(Choice choice, Order order, int64_t cost);
  // `a` in the first order and `b` in the second one cost so much together.
  void ChargeTogether(Choice a, Choice b, int64_t cost) { cut_.Cost(a, b, cost); }

  // All that read one tensor.
  struct Readers {
    Choice some_second;  // the second order where some reader has that
    Choice all_second;   // the first order where some reader has that
  };
  Readers AddReaders(absl::Span<const Choice> readers);
  // That some reader has this order costs so much, however many there are: of a tensor that is there in any order.
  void ChargeReading(const Readers& readers, Order order, int64_t cost);
  // The same where `maker` computes the tensor in the other order.
  void ChargeMoving(Choice maker, const Readers& readers, Order read, int64_t cost);

  // Of several choices of the same cost, those with most of the second order.
  void Solve() { cut_.Solve(); }
  // After Solve.
  Order OrderOf(Choice choice) const { return cut_.IsOne(choice) ? Order::kSecond : Order::kFirst; }

 private:
  MinimumCut cut_;
};

}  // namespace ascend_fuse
