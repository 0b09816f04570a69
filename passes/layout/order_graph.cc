#include "passes/layout/order_graph.h"

namespace ascend_fuse {

void OrderGraph::Charge(Choice choice, Order order, int64_t cost) {
  if (order == Order::kFirst) {
    cut_.Cost(choice, MinimumCut::kOne, cost);
  } else {
    cut_.Cost(MinimumCut::kZero, choice, cost);
  }
}

OrderGraph::Readers OrderGraph::AddReaders(absl::Span<const Choice> readers) {
  const Readers all = {cut_.AddQuestion(), cut_.AddQuestion()};
  for (const Choice reader : readers) {
    cut_.Cost(all.some_second, reader, kNever);
    cut_.Cost(reader, all.all_second, kNever);
  }
  return all;
}

void OrderGraph::ChargeReading(const Readers& readers, Order order, int64_t cost) {
  ChargeMoving(Fixed(Other(order)), readers, order, cost);
}

void OrderGraph::ChargeMoving(Choice maker, const Readers& readers, Order read, int64_t cost) {
  if (read == Order::kSecond) {
    cut_.Cost(maker, readers.some_second, cost);
  } else {
    cut_.Cost(readers.all_second, maker, cost);
  }
}

}  // namespace ascend_fuse
