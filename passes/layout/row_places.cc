#include "passes/layout/row_places.h"

#include <algorithm>

#include "ir/status_macros.h"
#include "passes/layout/attention_layout.h"

namespace ascend_fuse {
namespace {

constexpr size_t kNodesAfter = 3;  // an attention, whose ways are looked at though they have no tokens first

bool Has(const std::vector<size_t>& operands, size_t index) {
  return std::find(operands.begin(), operands.end(), index) != operands.end();
}

}  // namespace

absl::Status RowPlaces::Find() {
  for (const auto& graph : run_.workspace.model().graphs()) {
    for (const Node* node : graph->nodes()) {
      if (!IsAttentionToArrange(*node, facts_)) continue;
      RETURN_IF_ERROR(run_.workspace.GoOn());
      Look(node);
    }
  }
  for (size_t i = 0; i < places_.size(); ++i) Reach(i);
  return absl::OkStatus();
}

void RowPlaces::Look(const Node* attention) {
  const bool fast = run_.costs.OfTokensFirst(*attention, facts_) == 0;
  const bool operands = fast && run_.taken.Takes(*attention, {0, 1, 2}, kHeadsAndTokens, "BSND");
  const bool result = fast && run_.taken.Takes(*attention, {}, kHeadsAndTokens, "BNSD_BSND");
  attentions_.emplace_back();
  for (size_t i = 0; i < kAttentionOperands; ++i) {
    Way& way = ways_.To(attention->input(i));
    if (operands) forms_.AddFreeEnd(way.end);
    attentions_.back().push_back(&way);
    ReachBack(way, way.atoms.Leaves(way.to[2]), way.atoms.Leaves(way.to[0]));
  }
  if (result) forms_.AddFreeSource(attention->output());
  for (Way* way : ways_.From(attention->output())) {
    attentions_.back().push_back(way);
    ReachAhead(*way, way->atoms.Leaves(way->from[2]), way->atoms.Leaves(way->from[0]));
    LookBehind(*way, 0);
  }
}

// The ways after a Cast of the result, the projection of it and its bias.
void RowPlaces::LookBehind(const Way& way, size_t nodes) {
  if (nodes == kNodesAfter) return;
  for (const Use& use : LiveUses(*way.end)) {
    const auto exchangeable = HowToExchange(*use.user, facts_, {facts_.Of(way.end).rank(), 0, 0});
    if (!exchangeable.has_value() || exchangeable->operands != std::vector<size_t>{use.index}) continue;
    for (const Way* next : ways_.From(exchangeable->results[0])) LookBehind(*next, nodes + 1);
  }
}

// The nodes around a place.
void RowPlaces::Reach(size_t at) {
  const RowPlace place = places_[at];
  for (const size_t i : place.exchangeable.operands) {
    Way& way = ways_.To(place.node->input(i));
    if (const auto rows = RowsIn(&way, way.to, place.rows); rows.has_value()) {
      ReachBack(way, rows->first, rows->second);
    } else {
      places_[at].may_change = false;
    }
  }
  for (const Value* result : place.exchangeable.results) {
    for (Way* way : ways_.From(result)) {
      if (const auto rows = RowsIn(way, way->from, place.rows); rows.has_value()) {
        ReachAhead(*way, rows->first, rows->second);
      } else {
        places_[at].may_change = false;
      }
    }
  }
}

void RowPlaces::ReachBack(Way& way, const Atoms& tokens, const Atoms& batch) {
  way.tokens = tokens;
  way.batch = batch;
  const auto rows = TokensFirst(way, way.from);
  if (rows.has_value() && way.source->producer != nullptr) AddPlace(way.source->producer, way.source, *rows);
}

void RowPlaces::ReachAhead(Way& way, const Atoms& tokens, const Atoms& batch) {
  way.tokens = tokens;
  way.batch = batch;
  const auto rows = TokensFirst(way, way.to);
  if (!rows.has_value()) return;
  for (const Use& use : LiveUses(*way.end)) AddPlace(use.user, way.end, *rows);
}

// A node that reads or computes `value`, which has these rows.
void RowPlaces::AddPlace(const Node* node, const Value* value, const Rows& rows) {
  if (const auto known = place_of_.find(node); known != place_of_.end()) {
    RowPlace& place = places_[known->second];
    if (place.rows.merged != rows.merged || place.axes.rank != facts_.Of(value).rank()) place.may_change = false;
    return;
  }
  const bool same_graph = std::all_of(node->inputs().begin(), node->inputs().end(), [&](const Use& use) {
    return use.value == nullptr || use.value->IsConstant() || use.value->graph == node->graph;
  });
  if (node->dead || !same_graph || IsAttentionToArrange(*node, facts_)) return;
  const int rank = facts_.Of(value).rank();
  const ExchangedAxes axes = {rank, 0, rows.merged ? 0 : 1};
  auto exchangeable = HowToExchange(*node, facts_, axes);
  if (!exchangeable.has_value()) return;
  const auto& [operands, results] = *exchangeable;
  const bool is_one_of_them = std::find(results.begin(), results.end(), value) != results.end() ||
                              std::any_of(operands.begin(), operands.end(), [&](size_t i) { return node->input(i) == value; });
  if (!is_one_of_them || !run_.taken.Takes(*node, operands, axes)) return;
  place_of_[node] = places_.size();
  places_.push_back({node, rows, axes, *std::move(exchangeable)});
}

RowPlace* RowPlaces::MakerOf(const Value* value) {
  const auto known = place_of_.find(value->producer);
  if (value->producer == nullptr || known == place_of_.end()) return nullptr;
  RowPlace& place = places_[known->second];
  const auto& results = place.exchangeable.results;
  return std::find(results.begin(), results.end(), value) != results.end() ? &place : nullptr;
}

std::pair<std::vector<RowPlace*>, bool> RowPlaces::ReadersOf(const Way& way) {
  std::vector<RowPlace*> places;
  bool others = way.end->is_graph_output;
  for (const Use& use : LiveUses(*way.end)) {
    if (ways_.MovesOn(use) || (ReadsDims(*use.user) && forms_.DimsOf(way, way.source, way.from).has_value())) continue;
    const auto known = place_of_.find(use.user);
    RowPlace* place = known == place_of_.end() ? nullptr : &places_[known->second];
    if (place != nullptr && Has(place->exchangeable.operands, use.index)) {
      places.push_back(place);
    } else {
      others = true;
    }
  }
  return {places, others};
}

bool RowPlaces::StaysRead(const Way& way) {
  const auto [readers, others] = ReadersOf(way);
  return others || std::any_of(readers.begin(), readers.end(), [](const RowPlace* place) { return !place->changes; });
}

}  // namespace ascend_fuse
