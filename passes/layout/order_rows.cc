// Order rows: linears, norms and all else that computes each row of channels from such rows alone do not ask in which order the
// rows lie. Where a model has its tokens before the batch, [S, B, E], and an attention the batch before them, such nodes are
// turned where that leaves fewer Transposes: a minimum cut, as in choose_layouts, which stands behind this pass and takes heads
// and tokens. What only moves elements between two nodes is written anew where it needs fewer Transposes than it has.
#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "fmt/format.h"
#include "ir/infer/movement_of.h"
#include "ir/status_macros.h"
#include "passes/core/beside.h"
#include "passes/core/workspace.h"
#include "passes/layout/attention_layout.h"
#include "passes/layout/axis_exchange.h"
#include "passes/layout/minimum_cut.h"
#include "passes/layout/passes.h"
#include "patterns/analysis/axis_map.h"

namespace ascend_fuse {
namespace {

constexpr int64_t kMaximumReshapes = 64;  // of a way: they cost less than one Transpose
constexpr size_t kNodesBehind = 3;        // an attention, whose ways are looked at though they have no tokens first
constexpr size_t kMaximumSteps = 32;      // of what moves elements, and to a value whose dims are read

// How the rows of a tensor lie that has its tokens first: [S, B, ...], or [S * B, ...].
struct Rows {
  bool merged = false;
  Dim tokens;
  Dim batch;
};

// What lies on a way.
struct Moves {
  int transposes = 0;
  int reshapes = 0;                                   // and all other nodes of it
  std::optional<std::pair<AxisList, AxisList>> turn;  // axes before and behind one Transpose of heads and tokens
};

// A value that is made of another one by moving elements alone.
struct Way : Moves {
  explicit Way(DimTable* dims) : atoms(dims, true) {}

  Value* end = nullptr;
  Value* source = nullptr;
  AtomTable atoms;
  AxisList from;                        // the axes of the source
  AxisList to;                          // those of the end
  std::optional<PickedElement> picked;  // of the source's last axis, the outermost part of it
  Atoms tokens;                         // the rows, where they are known
  Atoms batch;
};

// A node that computes rows and has the tokens first.
struct Place {
  Node* node = nullptr;
  Rows rows;
  ExchangedAxes axes;
  Exchangeable exchangeable;
  int question = 0;  // 1: as it is, 0: the batch is to be first
  bool may_turn = true;
  bool turned = false;
};

// The atoms of tokens and batch in axes that have these rows.
std::optional<std::pair<Atoms, Atoms>> RowsIn(Way* way, const AxisList& axes, const Rows& rows) {
  if (!rows.merged) return std::pair(way->atoms.Leaves(axes[0]), way->atoms.Leaves(axes[1]));
  const auto parts = way->atoms.Regroup({axes[0]}, {rows.tokens, rows.batch});
  if (!parts.has_value()) return std::nullopt;
  return std::pair(way->atoms.Leaves((*parts)[0]), way->atoms.Leaves((*parts)[1]));
}

// Axes that have these rows, with the batch first.
std::optional<AxisList> BatchFirst(Way* way, const AxisList& axes, const Rows& rows) {
  const auto atoms = RowsIn(way, axes, rows);
  if (!atoms.has_value()) return std::nullopt;
  AxisList turned = way->atoms.Leaves(axes);
  if (rows.merged) {
    turned[0] = Joined({atoms->second, atoms->first});
  } else {
    std::swap(turned[0], turned[1]);
  }
  return turned;
}

// The nodes of a term that moves elements of a value, the last one first.
std::vector<const DeferredNode*> NodesOf(const Term& term) {
  std::vector<const DeferredNode*> nodes;
  for (const Term* at = &term; at->kind == Term::Kind::kNode; at = &at->node->inputs[0]) nodes.push_back(at->node);
  return nodes;
}

bool ExchangesHeadsAndTokens(const DeferredNode& node) {
  return node.op_type == "Transpose" && build::IntegersOf(*node.attributes[0].second.list) == std::vector<int64_t>{0, 2, 1, 3};
}

class RowOrderer {
 public:
  explicit RowOrderer(Workspace& workspace)
      : workspace_(workspace), facts_(workspace.facts()), context_(workspace.Context()), target_(*workspace.target()) {}

  absl::Status Run() {
    for (const Site& site : workspace_.sites) {
      // A site of one node has no form but that node.
      const auto& covers = site.record.covers;
      if (!site.fused() && covers.size() > 1) kept_.insert(covers.begin(), covers.end());
    }
    for (const auto& graph : workspace_.model().graphs()) {
      for (Node* node : graph->nodes()) {
        if (!IsAttentionToArrange(*node, facts_)) continue;
        RETURN_IF_ERROR(workspace_.GoOn());
        Look(node);
      }
    }
    for (size_t i = 0; i < places_.size(); ++i) Reach(i);
    Choose();
    return Write();
  }

 private:
  // --- what there is ---

  void Look(Node* attention) {
    cost_ = &LayoutCostOf(*attention);
    const bool fast = CostOfTokensFirst(*attention, facts_) == 0;
    const bool operands = fast && IsTakenExchanged(*attention, {0, 1, 2}, kHeadsAndTokens, "BSND", facts_, target_);
    const bool result = fast && IsTakenExchanged(*attention, {}, kHeadsAndTokens, "BNSD_BSND", facts_, target_);
    attentions_.emplace_back();
    for (size_t i = 0; i < kAttentionOperands; ++i) {
      Way& way = WayTo(attention->input(i));
      if (operands) free_ends_.insert(way.end);
      attentions_.back().push_back(&way);
      ReachBack(way, way.atoms.Leaves(way.to[2]), way.atoms.Leaves(way.to[0]));
    }
    if (result) free_sources_.insert(attention->output());
    for (Way* way : WaysFrom(attention->output())) {
      attentions_.back().push_back(way);
      ReachAhead(*way, way->atoms.Leaves(way->from[2]), way->atoms.Leaves(way->from[0]));
      LookBehind(*way, 0);
    }
  }

  // The ways behind a Cast of the result, the projection of it and its bias.
  void LookBehind(const Way& way, size_t nodes) {
    if (nodes == kNodesBehind) return;
    for (const Use& use : LiveUses(*way.end)) {
      const auto exchangeable = HowToExchange(*use.user, facts_, {facts_.Of(way.end).rank(), 0, 0});
      if (!exchangeable.has_value() || exchangeable->operands != std::vector<size_t>{use.index}) continue;
      for (const Way* next : WaysFrom(exchangeable->results[0])) LookBehind(*next, nodes + 1);
    }
  }

  // The nodes around a place.
  void Reach(size_t at) {
    const Place place = places_[at];
    for (const size_t i : place.exchangeable.operands) {
      Way& way = WayTo(place.node->input(i));
      if (const auto rows = RowsIn(&way, way.to, place.rows); rows.has_value()) {
        ReachBack(way, rows->first, rows->second);
      } else {
        places_[at].may_turn = false;
      }
    }
    for (Value* result : place.exchangeable.results) {
      for (Way* way : WaysFrom(result)) {
        if (const auto rows = RowsIn(way, way->from, place.rows); rows.has_value()) {
          ReachAhead(*way, rows->first, rows->second);
        } else {
          places_[at].may_turn = false;
        }
      }
    }
  }

  void ReachBack(Way& way, const Atoms& tokens, const Atoms& batch) {
    way.tokens = tokens;
    way.batch = batch;
    const auto rows = TokensFirst(way, way.from);
    if (rows.has_value() && way.source->producer != nullptr) AddPlace(way.source->producer, way.source, *rows);
  }

  void ReachAhead(Way& way, const Atoms& tokens, const Atoms& batch) {
    way.tokens = tokens;
    way.batch = batch;
    const auto rows = TokensFirst(way, way.to);
    if (!rows.has_value()) return;
    for (const Use& use : LiveUses(*way.end)) AddPlace(use.user, way.end, *rows);
  }

  // The rows of axes that have the tokens first. Where one of the two has one element, that is where it stands behind the other.
  std::optional<Rows> TokensFirst(const Way& way, const AxisList& axes) const {
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

  // A node that reads or computes `value`, which has these rows.
  void AddPlace(Node* node, const Value* value, const Rows& rows) {
    if (const auto known = place_of_.find(node); known != place_of_.end()) {
      Place& place = places_[known->second];
      if (place.rows.merged != rows.merged || place.axes.rank != facts_.Of(value).rank()) place.may_turn = false;
      return;
    }
    const bool same_graph = std::all_of(node->inputs().begin(), node->inputs().end(), [&](const Use& use) {
      return use.value == nullptr || use.value->IsConstant() || use.value->graph == node->graph;
    });
    // What was left, or left to GE, stays in its form.
    if (node->dead || !same_graph || kept_.contains(Label(*node)) || IsAttentionToArrange(*node, facts_)) return;
    const int rank = facts_.Of(value).rank();
    const ExchangedAxes axes = {rank, 0, rows.merged ? 0 : 1};
    auto exchangeable = HowToExchange(*node, facts_, axes);
    if (!exchangeable.has_value()) return;
    const auto& [operands, results] = *exchangeable;
    const bool is_one_of_them = std::find(results.begin(), results.end(), value) != results.end() ||
                                std::any_of(operands.begin(), operands.end(), [&](size_t i) { return node->input(i) == value; });
    if (!is_one_of_them || !IsTakenExchanged(*node, operands, axes, "", facts_, target_)) return;
    place_of_[node] = places_.size();
    places_.push_back({node, rows, axes, *std::move(exchangeable)});
  }

  // --- ways ---

  Way& WayTo(Value* end) {
    const auto [entry, is_new] = way_to_.try_emplace(end, ways_.size());
    if (is_new) ways_.push_back(FollowBack(end));
    return *ways_[entry->second];
  }

  std::unique_ptr<Way> FollowBack(Value* end) const {
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
      const AxisList behind = view.axes;
      const bool moves = movement == MovementKind::kKeepsOrder || movement == MovementKind::kPermutes;
      if (!(moves && FollowMovement(context_, &way->atoms, &view)) && !FollowPick(context_, &way->atoms, &view)) break;
      ++(movement == MovementKind::kPermutes ? so_far.transposes : so_far.reshapes);
      if (ExchangesHeadsAndTokens(*node)) so_far.turn = {view.axes, behind};
      if (!CanBeCutOff(way->atoms, view)) continue;
      way->source = view.value;
      way->from = view.axes;
      way->picked = view.picked;
      static_cast<Moves&>(*way) = so_far;
    }
    return way;
  }

  // Whether what is picked is one of equal parts of the last axis.
  static bool CanBeCutOff(const AtomTable& atoms, const AxisView& view) {
    if (!view.picked.has_value()) return true;
    const Atoms last = view.axes.empty() ? Atoms() : atoms.Leaves(view.axes.back());
    const Atoms picked = atoms.Leaves(Atoms{view.picked->atom});
    return view.axes.size() > 1 && picked.size() == 1 && last.size() > 1 && last[0] == picked[0] &&
           atoms.SizeOf(last).is_number();
  }

  // The ways to all that is made of `source` by moving elements and read by what does more than that.
  std::vector<Way*> WaysFrom(Value* source) {
    std::vector<Way*> ways;
    std::vector<Value*> values = {source};
    absl::flat_hash_set<const Value*> seen = {source};
    absl::flat_hash_set<const Value*> ends;
    for (size_t i = 0; i < values.size(); ++i) {
      bool is_end = values[i]->is_graph_output;
      for (const Use& use : LiveUses(*values[i])) {
        if (MovesOn(use)) {
          for (Value* output : use.user->outputs()) {
            if (output != nullptr && seen.insert(output).second) values.push_back(output);
          }
        } else {
          is_end = true;
        }
      }
      if (!is_end) continue;
      // What is not understood on the way is a reader of what stands before it.
      Value* end = values[i];
      while (WayTo(end).source != source && WayTo(end).source->producer != nullptr) {
        end = WayTo(end).source->producer->input(0);
        if (end == nullptr) break;
      }
      if (end != nullptr && WayTo(end).source == source && ends.insert(end).second) ways.push_back(&WayTo(end));
    }
    return ways;
  }

  bool MovesOn(const Use& use) const {
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

  // --- the choice ---

  // The place that computes the value; nullptr for one that is no choice.
  Place* MakerOf(const Value* value) {
    const auto known = place_of_.find(value->producer);
    if (value->producer == nullptr || known == place_of_.end()) return nullptr;
    Place& place = places_[known->second];
    const auto& results = place.exchangeable.results;
    return std::find(results.begin(), results.end(), value) != results.end() ? &place : nullptr;
  }

  // The places that read the end of the way, and whether anything else does that does not only ask for its dims.
  std::pair<std::vector<Place*>, bool> ReadersOf(const Way& way) {
    std::vector<Place*> places;
    bool others = way.end->is_graph_output;
    for (const Use& use : LiveUses(*way.end)) {
      if (MovesOn(use) || (ReadsDims(*use.user) && DimsOf(way, way.source, way.from).has_value())) continue;
      const auto known = place_of_.find(use.user);
      Place* place = known == place_of_.end() ? nullptr : &places_[known->second];
      const bool turns = place != nullptr && std::find(place->exchangeable.operands.begin(), place->exchangeable.operands.end(),
                                                       use.index) != place->exchangeable.operands.end();
      if (turns) {
        places.push_back(place);
      } else {
        others = true;
      }
    }
    return {places, others};
  }

  void Choose() {
    if (places_.empty()) return;
    for (Place& place : places_) place.question = cut_.AddQuestion();
    for (const Place& place : places_) {
      if (!place.may_turn) cut_.Cost(place.question, MinimumCut::kOne, MinimumCut::kNever);
    }
    for (const auto& way : ways_) Ask(way.get());
    cut_.Solve();
    for (Place& place : places_) place.turned = !cut_.IsOne(place.question);
  }

  // What the way costs, by the orders of what it begins and ends with.
  void Ask(Way* way) {
    const Place* maker = MakerOf(way->source);
    const auto [readers, others] = ReadersOf(*way);
    const std::optional<AxisList> from = maker != nullptr ? BatchFirst(way, way->from, maker->rows) : way->from;
    if (maker != nullptr && others) {
      cut_.Cost(maker->question, MinimumCut::kOne, CostOf(*way, from, way->to));
      cut_.Cost(MinimumCut::kZero, maker->question, CostAsIs(*way));
    }
    if (readers.empty()) return;
    const int some_one = cut_.AddQuestion();  // 1 where some reader has the tokens first
    const int all_one = cut_.AddQuestion();   // 0 where some reader has the batch first
    for (const Place* reader : readers) {
      cut_.Cost(some_one, reader->question, MinimumCut::kNever);
      cut_.Cost(reader->question, all_one, MinimumCut::kNever);
    }
    const std::optional<AxisList> to = BatchFirst(way, way->to, readers[0]->rows);
    if (maker == nullptr) {
      cut_.Cost(MinimumCut::kZero, some_one, CostAsIs(*way));
      cut_.Cost(all_one, MinimumCut::kOne, CostOf(*way, from, to));
      return;
    }
    cut_.Cost(maker->question, some_one, CostOf(*way, from, way->to));
    cut_.Cost(all_one, maker->question, CostOf(*way, way->from, to));
  }

  int64_t CostOf(int64_t transposes, int64_t reshapes, const Way& way) const {
    const int64_t cost = transposes == 0 ? 0 : CostOfTranspose(*cost_, facts_.Of(way.end).shape, facts_.dims());
    return transposes * cost + reshapes * kReshapeCost;
  }

  // Without a Transpose of what an attention takes or gives: that is left to the next pass.
  int64_t CostAsIs(const Way& way) const { return CostOf(way.transposes - (AsIsIsFree(way) ? 1 : 0), way.reshapes, way); }

  bool AsIsIsFree(const Way& way) const {
    return way.turn.has_value() &&
           ((free_ends_.contains(way.end) && way.atoms.Leaves(way.turn->second) == way.atoms.Leaves(way.to)) ||
            (free_sources_.contains(way.source) && way.atoms.Leaves(way.turn->first) == way.atoms.Leaves(way.from)));
  }

  int64_t CostOf(const Way& way, const std::optional<AxisList>& from, const std::optional<AxisList>& to) const {
    const auto term = ArrangedOf(way, way.source, from, to);
    if (!term.has_value()) return MinimumCut::kNever;
    const auto nodes = NodesOf(*term);
    const auto transposes =
        std::count_if(nodes.begin(), nodes.end(), [](const DeferredNode* node) { return node->op_type == "Transpose"; });
    const bool is_free = transposes > 0 && IsFree(way, nodes);
    return CostOf(transposes - (is_free ? 1 : 0), static_cast<int64_t>(nodes.size()) - transposes, way);
  }

  // The axes of what is picked of a source with these axes: CanBeCutOff was asked.
  static AxisList PartOfAxes(const Way& way, const AxisList& from) {
    AxisList axes = way.atoms.Leaves(from);
    if (!way.picked.has_value()) return axes;
    const auto picked = static_cast<std::ptrdiff_t>(way.atoms.Leaves(Atoms{way.picked->atom}).size());
    axes.back().erase(axes.back().begin(), axes.back().begin() + picked);
    return axes;
  }

  // The source with axes `from`, or what is picked of it, as the end with axes `to`; nullopt where that cannot be told.
  std::optional<Term> ArrangedOf(const Way& way, Value* source, const std::optional<AxisList>& from,
                                 const std::optional<AxisList>& to) const {
    if (!from.has_value() || !to.has_value()) return std::nullopt;
    const AxisList axes = PartOfAxes(way, *from);
    const auto arranged = [&](Term x, const AxisList& now, const AxisList& then) -> std::optional<Term> {
      auto found = Arrange(context_, way.atoms, std::move(x), now, then, WithDimsOf(way));
      return found.has_value() ? std::optional(std::move(found->term)) : std::nullopt;
    };
    const std::optional<Term> term = arranged(Term::Of(source), axes, *to);
    if (!term.has_value() || IsFree(way, NodesOf(*term))) return term;
    // By [B, S, N, D] where an attention takes or gives that: a Transpose to or from [B, N, S, D] would be one more.
    const bool is_end = free_ends_.contains(way.end);
    if (!is_end && !free_sources_.contains(way.source)) return term;
    AxisList middle = is_end ? *to : axes;
    std::swap(middle[1], middle[2]);
    const std::optional<Term> half = arranged(Term::Of(source), axes, middle);
    const std::optional<Term> whole = half.has_value() ? arranged(*half, middle, *to) : std::nullopt;
    return whole.has_value() && IsFree(way, NodesOf(*whole)) ? whole : term;
  }

  // Whether one of the Transposes is left to the next pass, or there is none.
  bool IsFree(const Way& way, const std::vector<const DeferredNode*>& nodes) const {
    return std::none_of(nodes.begin(), nodes.end(), [](const DeferredNode* node) { return node->op_type == "Transpose"; }) ||
           (free_ends_.contains(way.end) && ExchangesHeadsAndTokens(*nodes.front())) ||
           (free_sources_.contains(way.source) && ExchangesHeadsAndTokens(*nodes.back()));
  }

  // The dims of the end of the way, read from those of the source, or of what is picked of it; nullopt where they are others.
  std::optional<Term> DimsOf(const Way& way, Value* source, const AxisList& of_source) const {
    const AxisList from = PartOfAxes(way, of_source);
    const auto sorted = [&](const Atoms& axis) {
      Atoms atoms = way.atoms.Leaves(axis);
      std::sort(atoms.begin(), atoms.end());
      return atoms;
    };
    std::vector<int64_t> order;
    for (const Atoms& axis : way.to) {
      const auto same = std::find_if(from.begin(), from.end(), [&](const Atoms& other) { return sorted(other) == sorted(axis); });
      if (same == from.end()) return std::nullopt;
      order.push_back(same - from.begin());
    }
    Term shape = build::Shape(Term::Of(source));
    const bool all = order.size() == from.size() && std::is_sorted(order.begin(), order.end());
    return all ? shape : build::Gather(std::move(shape), build::Numbers(order), 0);
  }

  // A value that stands before the way and has tokens and batch among its dims, to read them from.
  Value* WithDimsOf(const Way& way) const {
    const Dim tokens = way.atoms.SizeOf(way.tokens);
    const Dim batch = way.atoms.SizeOf(way.batch);
    Value* value = way.source;
    for (size_t step = 0; step < kMaximumSteps; ++step) {
      const auto turned = turned_.find(value);
      Value* now = turned != turned_.end() ? turned->second : value;
      const auto shape = facts_.Of(now).shape;
      const auto has = [&](Dim dim) {
        return std::any_of(shape.begin(), shape.end(), [&](Dim other) { return facts_.dims().Equal(dim, other); });
      };
      const Node* node = value->producer;
      const bool moved = node != nullptr && IsOfOneOperand(KindOf(facts_, *node));
      if (!moved && has(tokens) && has(batch)) return now;
      if (node == nullptr || node->input(0) == nullptr || node->input(0)->graph != value->graph) break;
      value = node->input(0);
    }
    return way.source;
  }

  // --- what is written ---

  absl::Status Write() {
    std::vector<Place*> turned;
    for (Place& place : places_) {
      if (place.turned) turned.push_back(&place);
    }
    std::sort(turned.begin(), turned.end(), [](const Place* a, const Place* b) { return StandsBefore(*a->node, *b->node); });
    std::vector<Way*> to_write = WaysToTidy();
    // Which ways are read by what stays is asked before anything is changed.
    for (const auto& way : ways_) {
      const Place* maker = MakerOf(way->source);
      if (maker == nullptr || !maker->turned || way->end == way->source) continue;
      if (StaysRead(*way)) to_write.push_back(way.get());
    }
    AddOtherWays(&to_write);
    for (Place* place : turned) {
      const absl::StatusOr<bool> written = WritePlace(*place, to_write);
      if (!written.ok()) return written.status();
      place->turned = *written;
    }
    for (Way* way : to_write) WriteWay(way);
    for (size_t i = ways_.size(); i-- > 0;) WriteDims(ways_[i].get());
    for (const Place* place : turned) {
      for (Value* result : place->exchangeable.results) WriteAsItWas(*place, result);
    }
    return absl::OkStatus();
  }

  // All ways of an attention are written by [B, S, N, D] where one of them is, so that the next pass can take that.
  void AddOtherWays(std::vector<Way*>* to_write) {
    absl::flat_hash_set<const Way*> written(to_write->begin(), to_write->end());
    for (const std::vector<Way*>& ways : attentions_) {
      const auto is_changed = [&](const Way* way) { return written.contains(way) || !StaysRead(*way); };
      if (std::none_of(ways.begin(), ways.end(), is_changed)) continue;
      for (Way* way : ways) {
        const bool is_here = way->transposes > 0 && StaysRead(*way) && CostOf(*way, way->from, way->to) < MinimumCut::kNever;
        if (is_here && !AsIsIsFree(*way) && written.insert(way).second) to_write->push_back(way);
      }
    }
  }

  // Whether the way, between nodes that stay, needs fewer Transposes than it has.
  bool IsBetterWritten(const Way& way) {
    const Place* maker = MakerOf(way.source);
    if (maker != nullptr && maker->turned) return false;
    // Reshapes alone are no reason.
    return CostOf(way, way.from, way.to) + kReshapeCost * kMaximumReshapes < CostAsIs(way);
  }

  // Whether anybody reads the end of the way as it is.
  bool StaysRead(const Way& way) {
    const auto [readers, others] = ReadersOf(way);
    return others || std::any_of(readers.begin(), readers.end(), [](const Place* place) { return !place->turned; });
  }

  // Another way from the same value would keep the Transposes that they share, so that all or none are written.
  std::vector<Way*> WaysToTidy() {
    std::vector<Way*> tidied;
    absl::flat_hash_set<const Value*> seen;  // sources
    const size_t count = ways_.size();
    for (size_t i = 0; i < count; ++i) {
      if (ways_[i]->transposes == 0 || !IsBetterWritten(*ways_[i]) || !seen.insert(ways_[i]->source).second) continue;
      std::vector<Way*> ways = WaysFrom(ways_[i]->source);
      ways.erase(
          std::remove_if(ways.begin(), ways.end(), [&](const Way* way) { return way->transposes == 0 || !StaysRead(*way); }),
          ways.end());
      if (std::all_of(ways.begin(), ways.end(), [&](const Way* way) { return IsBetterWritten(*way); })) {
        tidied.insert(tidied.end(), ways.begin(), ways.end());
      }
    }
    return tidied;
  }

  // False where it stays as it is.
  absl::StatusOr<bool> WritePlace(const Place& place, const std::vector<Way*>& to_write) {
    const auto& results = place.exchangeable.results;
    std::vector<std::pair<size_t, Value*>> operands;
    for (const size_t i : place.exchangeable.operands) {
      operands.emplace_back(i, Provide(&WayTo(place.node->input(i)), place));
      if (operands.back().second == nullptr) return false;
    }
    NewNode plan = Exchanged(*place.node, workspace_, place.axes);
    for (const auto& [i, value] : operands) plan.inputs[i] = value;
    absl::flat_hash_map<const Value*, Value*> existing;  // what stands in the file and is what the node computes now
    for (const Value* result : results) {
      const auto same = std::find_if(to_write.begin(), to_write.end(), [&](Way* way) {
        return way->source == result && !way->picked.has_value() &&
               BatchFirst(way, way->from, place.rows) == way->atoms.Leaves(way->to);
      });
      if (same != to_write.end()) existing[result] = (*same)->end;
    }
    auto pairs = WriteExchanged(*place.node, plan, results, existing, fmt::format("{}_batch_first", ValueName(*results[0])),
                                place.axes, workspace_);
    if (!pairs.ok()) return pairs.status();
    for (const auto& [before, now] : *pairs) turned_[before] = now;
    return true;
  }

  // What a turned place reads at the end of the way; nullptr where that cannot be written.
  Value* Provide(Way* way, const Place& reader) {
    Value*& provided = provided_[way->end];
    if (provided != nullptr) return provided;
    const std::optional<Term> term = FromSource(way, BatchFirst(way, way->to, reader.rows));
    if (term.has_value()) provided = Beside(workspace_, *reader.node).Build(*term);
    return provided;
  }

  // The source, or its part, as it is now, and its axes; no axes where they cannot be told.
  std::pair<Value*, std::optional<AxisList>> SourceOf(Way* way) {
    const Place* maker = MakerOf(way->source);
    const auto turned = turned_.find(way->source);
    const bool is_turned = maker != nullptr && turned != turned_.end();
    Value* source = is_turned ? turned->second : way->source;
    if (way->picked.has_value()) source = PartOf(source, *way);
    return {source, is_turned ? BatchFirst(way, way->from, maker->rows) : way->from};
  }

  std::optional<Term> FromSource(Way* way, const std::optional<AxisList>& to) {
    const auto [source, from] = SourceOf(way);
    return ArrangedOf(*way, source, from, to);
  }

  // One of equal parts of the last axis.
  Value* PartOf(Value* source, const Way& way) {
    std::vector<Value*>& parts = parts_[{source, way.picked->count}];
    if (parts.empty()) {
      const auto count = static_cast<size_t>(way.picked->count);
      const int64_t width = way.atoms.SizeOf(way.from.back()).number() / way.picked->count;
      const std::vector<int64_t> widths(count, width);
      Beside beside(workspace_, source->graph, ValueName(*source));
      NewNode split;
      split.op_type = "Split";
      split.name = fmt::format("{}_Split", ValueName(*source));
      split.inputs = {source};
      split.attributes = {Attribute::Int("axis", static_cast<int64_t>(way.from.size()) - 1)};
      beside.SetLengths(&split, widths);
      Node* made = workspace_.rewriter().Insert(split, count, source->graph, split.name);
      workspace_.Know(made);
      parts.assign(made->outputs().begin(), made->outputs().end());
    }
    return parts[static_cast<size_t>(way.picked->index)];
  }

  // The end of a way from what its source is now, for those who read it as it was.
  void WriteWay(Way* way) {
    if (const auto turned = turned_.find(way->source); turned != turned_.end() && turned->second == way->end) return;
    const std::optional<Term> term = FromSource(way, way->to);
    if (!term.has_value()) return;
    NewNode plan;
    if (term->kind == Term::Kind::kNode) {
      plan = Beside(workspace_, *way->end->producer).Plan(*term);
    } else {
      plan.op_type = "Identity";
      plan.name = fmt::format("{}_copy", ValueName(*way->end));
      plan.inputs = {term->value};
    }
    // Its dims stay those that are known of it: what is written may have others of their names.
    const Fact known = facts_.Of(way->end);
    workspace_.Know(workspace_.rewriter().ReplaceValue(way->end, plan));
    facts_.Set(way->end, known);
  }

  // Who only asks for the dims of what was moved asks where it was moved from.
  void WriteDims(Way* way) {
    std::vector<Node*> readers;
    for (const Use& use : LiveUses(*way->end)) {
      if (!ReadsDims(*use.user)) return;
      if (use.user->graph == way->end->graph) readers.push_back(use.user);
    }
    if (readers.empty() || way->end->is_graph_output) return;
    if (way->transposes == 0 && !turned_.contains(way->source)) return;
    const auto [source, from] = SourceOf(way);
    const std::optional<Term> term = from.has_value() ? DimsOf(*way, source, *from) : std::nullopt;
    if (!term.has_value()) return;
    for (const Node* reader : readers) {
      workspace_.Know(workspace_.rewriter().ReplaceValue(reader->output(), Beside(workspace_, *reader).Plan(*term)));
    }
  }

  // What a turned place computed, for those who still read it.
  void WriteAsItWas(const Place& place, Value* result) {
    const auto now = turned_.find(result);
    if (now == turned_.end() || (!result->is_graph_output && LiveUses(*result).empty())) return;
    Way& way = WayTo(result);
    const auto term = ArrangedOf(way, now->second, BatchFirst(&way, way.from, place.rows), way.from);
    if (!term.has_value() || term->kind != Term::Kind::kNode) return;  // it is still computed as it was
    workspace_.Know(workspace_.rewriter().ReplaceValue(result, Beside(workspace_, *place.node).Plan(*term)));
  }

  Workspace& workspace_;
  Facts& facts_;
  const FunctionContext context_;
  const Target& target_;
  const LayoutCost* cost_ = nullptr;
  absl::flat_hash_set<std::string_view> kept_;      // labels of nodes
  absl::flat_hash_set<const Value*> free_ends_;     // what an attention takes with the heads behind the tokens too
  absl::flat_hash_set<const Value*> free_sources_;  // what one gives so too
  std::vector<std::vector<Way*>> attentions_;       // the ways to their operands and from their results
  std::vector<std::unique_ptr<Way>> ways_;
  absl::flat_hash_map<const Value*, size_t> way_to_;
  std::vector<Place> places_;
  absl::flat_hash_map<const Node*, size_t> place_of_;
  MinimumCut cut_;
  absl::flat_hash_map<const Value*, Value*> turned_;    // results of turned places, as they are computed now
  absl::flat_hash_map<const Value*, Value*> provided_;  // ends of ways with the batch first
  absl::flat_hash_map<std::pair<const Value*, int64_t>, std::vector<Value*>> parts_;
};

}  // namespace

absl::Status OrderRows(Workspace& workspace) {
  if (workspace.ChangesNothing() || workspace.target() == nullptr) return absl::OkStatus();
  return RowOrderer(workspace).Run();
}

}  // namespace ascend_fuse
