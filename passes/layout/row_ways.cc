#include "passes/layout/row_ways.h"

#include "absl/container/flat_hash_set.h"
#include "ir/infer/movement_of.h"
#include "passes/layout/axis_exchange.h"

namespace ascend_fuse {
namespace {

constexpr size_t kMaximumSteps = 32;  // of what moves elements

// Whether what is picked is one of equal parts of the last axis.
bool CanBeCutOff(const AtomTable& atoms, const AxisView& view) {
  if (!view.picked.has_value()) return true;
  const Atoms last = view.axes.empty() ? Atoms() : atoms.Leaves(view.axes.back());
  const Atoms picked = atoms.Leaves(Atoms{view.picked->atom});
  return view.axes.size() > 1 && picked.size() == 1 && last.size() > 1 && last[0] == picked[0] && atoms.SizeOf(last).is_number();
}

}  // namespace

std::optional<std::pair<Atoms, Atoms>> RowsIn(Way* way, const AxisList& axes, const Rows& rows) {
  if (!rows.merged) return std::pair(way->atoms.Leaves(axes[0]), way->atoms.Leaves(axes[1]));
  const auto parts = way->atoms.Regroup({axes[0]}, {rows.tokens, rows.batch});
  if (!parts.has_value()) return std::nullopt;
  return std::pair(way->atoms.Leaves((*parts)[0]), way->atoms.Leaves((*parts)[1]));
}

std::optional<AxisList> BatchFirst(Way* way, const AxisList& axes, const Rows& rows) {
  const auto atoms = RowsIn(way, axes, rows);
  if (!atoms.has_value()) return std::nullopt;
  AxisList exchanged = way->atoms.Leaves(axes);
  if (rows.merged) {
    exchanged[0] = Joined({atoms->second, atoms->first});
  } else {
    std::swap(exchanged[0], exchanged[1]);
  }
  return exchanged;
}

std::optional<Rows> TokensFirst(const Way& way, const AxisList& axes) {
  const AxisList leaves = way.atoms.Leaves(axes);
  const Atoms tokens = way.atoms.Leaves(way.tokens);
  const Atoms batch = way.atoms.Leaves(way.batch);
  if (leaves.size() < 2) return std::nullopt;
  Rows rows = {false, way.atoms.SizeOf(tokens), way.atoms.SizeOf(batch)};
  if (leaves[0] == batch && leaves[1] == tokens) return std::nullopt;
  if (leaves.size() > 2 && leaves[0] == tokens && leaves[1] == batch) return rows;
  rows.merged = true;
  if (!tokens.empty() && !batch.empty() && leaves[0] == Joined({tokens, batch})) return rows;
  return std::nullopt;
}

Way& RowWays::To(const Value* end) {
  const auto [entry, is_new] = way_to_.try_emplace(end, ways_.size());
  if (is_new) ways_.push_back(FollowBack(end));
  return *ways_[entry->second];
}

std::unique_ptr<Way> RowWays::FollowBack(const Value* end) const {
  auto way = std::make_unique<Way>(context_.dims);
  AxisView view;
  view.value = end;
  for (const Dim dim : facts_.Of(end).shape) view.axes.push_back(way->atoms.New(dim));
  way->end = end;
  way->source = end;
  way->to = way->from = view.axes;
  Moves so_far;
  for (size_t step = 0; step < kMaximumSteps; ++step) {
    const Node* node = view.value->producer;
    if (node == nullptr || node->dead || node->input(0) == nullptr || node->input(0)->graph != end->graph) break;
    const MovementKind movement = KindOf(facts_, *node);
    const AxisList after = view.axes;
    const bool moves = movement == MovementKind::kKeepsOrder || movement == MovementKind::kPermutes;
    if (!(moves && FollowMovement(context_, &way->atoms, &view)) && !FollowPick(context_, &way->atoms, &view)) break;
    // An Identity is not a node to anybody who runs the model.
    if (!IsOp(*node, "Identity")) ++(movement == MovementKind::kPermutes ? so_far.transposes : so_far.reshapes);
    if (ExchangesHeadsAndTokens(facts_, *node)) so_far.turn = {view.axes, after};
    if (!CanBeCutOff(way->atoms, view)) continue;
    way->source = view.value;
    way->from = view.axes;
    way->picked = view.picked;
    static_cast<Moves&>(*way) = so_far;
  }
  return way;
}

std::vector<Way*> RowWays::From(const Value* source) {
  std::vector<Way*> ways;
  std::vector<const Value*> values = {source};
  absl::flat_hash_set<const Value*> seen = {source};
  absl::flat_hash_set<const Value*> ends;
  for (size_t i = 0; i < values.size(); ++i) {
    bool is_end = values[i]->is_graph_output;
    for (const Use& use : LiveUses(*values[i])) {
      if (MovesOn(use)) {
        for (const Value* output : use.user->outputs()) {
          if (output != nullptr && seen.insert(output).second) values.push_back(output);
        }
      } else {
        is_end = true;
      }
    }
    if (!is_end) continue;
    // What is not understood on the way is a reader of what stands before it.
    const Value* end = values[i];
    while (To(end).source != source && To(end).source->producer != nullptr) {
      end = To(end).source->producer->input(0);
      if (end == nullptr) break;
    }
    if (end != nullptr && To(end).source == source && ends.insert(end).second) ways.push_back(&To(end));
  }
  return ways;
}

bool RowWays::MovesOn(const Use& use) const {
  const Node& node = *use.user;
  if (use.index != 0 || node.graph != use.value->graph) return false;
  const MovementKind movement = KindOf(facts_, node);
  if (movement == MovementKind::kKeepsOrder || movement == MovementKind::kPermutes) return true;
  if (movement != MovementKind::kPicks || node.output() == nullptr) return false;
  AtomTable atoms(context_.dims);
  AxisView view;
  view.value = node.output();
  for (const Dim dim : facts_.Of(view.value).shape) view.axes.push_back(atoms.New(dim));
  return FollowPick(context_, &atoms, &view);
}

}  // namespace ascend_fuse
