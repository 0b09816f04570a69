#include "passes/layout/head_places.h"

#include <algorithm>
#include <utility>

#include "ir/status_macros.h"
#include "passes/layout/attention_layout.h"

namespace ascend_fuse {

std::string_view InputLayout(Order operands, Order results) {
  if (operands == kTokensFirst) return "BSND";
  return results == kTokensFirst ? "BNSD_BSND" : "BNSD";
}

absl::Status HeadPlaces::Find() {
  for (const auto& graph : run_.workspace.model().graphs()) {
    for (const Node* node : graph->nodes()) {
      if (!IsAttentionToArrange(*node, facts_)) continue;
      RETURN_IF_ERROR(run_.workspace.GoOn());
      AddPlace(node, kHeadsFirst, true);
    }
  }
  for (size_t i = 0; i < places_.size(); ++i) Reach(i);
  return absl::OkStatus();
}

const HeadPlace* HeadPlaces::PlaceOf(const Node* node) const {
  const auto known = place_of_.find(node);
  return known == place_of_.end() ? nullptr : &places_[static_cast<size_t>(known->second)];
}

int HeadPlaces::AddPlace(const Node* node, Order as_is, bool is_attention) {
  const auto [entry, is_new] = place_of_.try_emplace(node, static_cast<int>(places_.size()));
  if (!is_new) return entry->second;
  HeadPlace place;
  place.node = node;
  place.is_attention = is_attention;
  place.as_is = as_is;
  place.exchangeable = is_attention ? Exchangeable{{0, 1, 2}, {node->output()}} : *HowToExchange(*node, facts_, kHeadsAndTokens);
  places_.push_back(std::move(place));
  return entry->second;
}

// The tensors around a place, and the places around them.
void HeadPlaces::Reach(size_t at) {
  const HeadPlace place = places_[at];
  for (const size_t i : place.exchangeable.operands) ReachTensor(place.node->input(i), place.as_is);
  for (const Value* result : place.exchangeable.results) ReachTensor(result, place.as_is);
}

void HeadPlaces::ReachTensor(const Value* value, Order order) {
  HeadTensor& tensor = tensors_[tensors_.NumberOf(value)];
  if (tensor.first.has_value()) return;
  tensor.first = kHeadsFirst;
  tensor.first = tensor.OrderOf(value) == kHeadsFirst ? order : Other(order);
  for (size_t i = 0; i < tensor.members.size(); ++i) {
    const Order own = tensor.OrderOf(i);
    if (tensor.In(own) == nullptr) tensor.In(own) = tensor.members[i];
    for (const Use& use : LiveUses(*tensor.members[i])) AddIfExchangeable(use.user, own);
  }
  const Node* producer = tensor.members[0]->producer;
  if (producer != nullptr) tensor.maker = AddIfExchangeable(producer, *tensor.first);
}

// The number of the place; -1 where the node is not a place.
int HeadPlaces::AddIfExchangeable(const Node* node, Order order) {
  if (node->dead || ExchangesHeadsAndTokens(facts_, *node)) return -1;
  const auto known = place_of_.find(node);
  if (known != place_of_.end()) return known->second;
  const bool same = std::all_of(node->inputs().begin(), node->inputs().end(), [&](const Use& use) {
    return use.value == nullptr || use.value->graph == node->graph || facts_.Of(use.value).rank() != 4;
  });
  if (!same || IsAttentionToArrange(*node, facts_) || !HowToExchange(*node, facts_, kHeadsAndTokens).has_value()) return -1;
  return AddPlace(node, order, false);
}

bool HeadPlaces::IsTaken(const HeadPlace& place, Order operands, Order results) {
  if (operands == place.as_is && results == place.as_is) return true;
  return run_.taken.Takes(*place.node, operands != place.as_is ? place.exchangeable.operands : std::vector<size_t>(),
                          kHeadsAndTokens, place.is_attention ? InputLayout(operands, results) : "");
}

bool HeadPlaces::Agree(const HeadPlace& place) const {
  const auto agrees = [&](const Value* value) { return tensors_.Of(value).OrderOf(value) == place.as_is; };
  return std::all_of(place.exchangeable.operands.begin(), place.exchangeable.operands.end(),
                     [&](size_t i) { return agrees(place.node->input(i)); }) &&
         std::all_of(place.exchangeable.results.begin(), place.exchangeable.results.end(), agrees);
}

}  // namespace ascend_fuse
