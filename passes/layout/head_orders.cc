#include "passes/layout/head_orders.h"

#include <algorithm>
#include <vector>

#include "passes/layout/attention_layout.h"
#include "passes/layout/head_writer.h"

namespace ascend_fuse {

void HeadOrders::Ask(OrderGraph* graph) {
  std::vector<NodesOfGe::Place> chosen;
  for (HeadPlace& place : places_.all()) {
    AskPlace(&place, graph);
    if (!place.is_attention) chosen.push_back({place.node, place.operands, place.as_is});
  }
  run_.of_ge.KeepTogether(chosen, graph);
  for (const HeadTensor& tensor : places_.tensors().all()) AskTensor(tensor, graph);
}

void HeadOrders::AskPlace(HeadPlace* place, OrderGraph* graph) {
  place->operands = graph->AddChoice();
  place->results = place->is_attention ? graph->AddChoice() : place->operands;
  const bool agree = places_.Agree(*place);
  if (!place->is_attention) {
    const Order other = Other(place->as_is);
    const bool may_change = agree && places_.IsTaken(*place, other, other);
    graph->Charge(place->operands, other, may_change ? kChangeCost : OrderGraph::kNever);
    return;
  }
  graph->ChargeTogether(place->results, place->operands, OrderGraph::kNever);  // there is no BSND_BNSD
  if (!places_.IsTaken(*place, kHeadsFirst, kTokensFirst)) {
    graph->ChargeTogether(place->operands, place->results, OrderGraph::kNever);
  }
  const bool may_change = agree && places_.IsTaken(*place, kTokensFirst, kTokensFirst);
  graph->Charge(place->operands, kTokensFirst,
                may_change ? kChangeCost + run_.costs.OfTokensFirst(*place->node, facts_) : OrderGraph::kNever);
  graph->Charge(place->results, kTokensFirst, agree ? kChangeCost : OrderGraph::kNever);
}

int64_t HeadOrders::CostOfExchange(const HeadTensor& tensor) const {
  const auto shape = facts_.Of(tensor.members[0]).shape;
  const DimTable& dims = facts_.dims();
  if (dims.Resolve(shape[1]).is(1) || dims.Resolve(shape[2]).is(1)) return kReshapeCost;  // nothing is moved
  return run_.costs.OfTranspose(shape, dims);
}

// A tensor costs a Transpose where it is read in the order that it is not computed in.
void HeadOrders::AskTensor(const HeadTensor& tensor, OrderGraph* graph) {
  std::vector<OrderGraph::Choice> choices;
  for (size_t i = 0; i < tensor.members.size(); ++i) {
    const Order own = tensor.OrderOf(i);
    if (tensor.members[i]->is_graph_output) choices.push_back(OrderGraph::Fixed(own));
    for (const Use& use : LiveUses(*tensor.members[i])) {
      if (!places_.tensors().IsBetween(use.user) && !ReadsDims(*use.user)) choices.push_back(ChoiceOf(use, own));
    }
  }
  const HeadPlace* maker = places_.MakerOf(tensor);
  const OrderGraph::Choice made = maker != nullptr ? maker->results : OrderGraph::Fixed(*tensor.first);
  const OrderGraph::Readers readers = graph->AddReaders(choices);
  const int64_t cost = CostOfExchange(tensor);
  graph->ChargeMoving(made, readers, kTokensFirst, cost);
  graph->ChargeMoving(made, readers, kHeadsFirst, cost);
}

// Which order a reader has that reads it as it is in `as_is`.
OrderGraph::Choice HeadOrders::ChoiceOf(const Use& use, Order as_is) const {
  const HeadPlace* reader = places_.PlaceOf(use.user);
  if (reader == nullptr) return OrderGraph::Fixed(as_is);
  const auto& operands = reader->exchangeable.operands;
  const bool exchanges = std::find(operands.begin(), operands.end(), use.index) != operands.end();
  return exchanges && reader->as_is == as_is ? reader->operands : OrderGraph::Fixed(as_is);
}

absl::Status HeadOrders::Write(const OrderGraph& graph) {
  for (HeadPlace& place : places_.all()) {
    place.chosen_operands = graph.OrderOf(place.operands);
    place.chosen_results = graph.OrderOf(place.results);
  }
  return HeadWriter(run_, places_).Write();
}

}  // namespace ascend_fuse
