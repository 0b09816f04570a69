#include "passes/layout/row_orders.h"

#include <vector>

#include "passes/layout/row_writer.h"

namespace ascend_fuse {

void RowOrders::Ask(OrderGraph* graph) {
  if (places_.all().empty()) return;
  for (RowPlace& place : places_.all()) place.choice = graph->AddChoice();
  for (const RowPlace& place : places_.all()) {
    if (!place.may_change) graph->Charge(place.choice, Order::kFirst, OrderGraph::kNever);
  }
  std::vector<NodesOfGe::Place> chosen;
  for (const RowPlace& place : places_.all()) chosen.push_back({place.node, place.choice, Order::kSecond});
  run_.of_ge.KeepTogether(chosen, graph);
  for (const auto& way : places_.ways().all()) AskWay(way.get(), graph);
}

// What the way costs, by the orders of what it begins and ends with.
void RowOrders::AskWay(Way* way, OrderGraph* graph) {
  const WayForms& forms = places_.forms();
  const RowPlace* maker = places_.MakerOf(way->source);
  const auto [readers, others] = places_.ReadersOf(*way);
  const std::optional<AxisList> from = maker != nullptr ? BatchFirst(way, way->from, maker->rows) : way->from;
  if (maker != nullptr && others) {
    graph->Charge(maker->choice, Order::kFirst, forms.CostOf(*way, from, way->to));
    graph->Charge(maker->choice, Order::kSecond, forms.CostAsIs(*way));
  }
  if (readers.empty()) return;
  std::vector<OrderGraph::Choice> choices;
  for (const RowPlace* reader : readers) choices.push_back(reader->choice);
  const OrderGraph::Readers all = graph->AddReaders(choices);
  const std::optional<AxisList> to = BatchFirst(way, way->to, readers[0]->rows);
  if (maker == nullptr) {
    graph->ChargeReading(all, Order::kSecond, forms.CostAsIs(*way));
    graph->ChargeReading(all, Order::kFirst, forms.CostOf(*way, from, to));
    return;
  }
  graph->ChargeMoving(maker->choice, all, Order::kSecond, forms.CostOf(*way, from, way->to));
  graph->ChargeMoving(maker->choice, all, Order::kFirst, forms.CostOf(*way, way->from, to));
}

absl::Status RowOrders::Write(const OrderGraph& graph) {
  for (RowPlace& place : places_.all()) place.changes = graph.OrderOf(place.choice) == Order::kFirst;
  return RowWriter(run_, places_).Write();
}

}  // namespace ascend_fuse
