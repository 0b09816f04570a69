#include "passes/layout/way_forms.h"

#include <algorithm>
#include <utility>

#include "ir/infer/movement_of.h"
#include "passes/layout/order_graph.h"

namespace ascend_fuse {
namespace {

constexpr size_t kMaximumSteps = 32;  // to a value whose dims are read

// The nodes of a term that moves elements of a value, the last one first.
std::vector<const DeferredNode*> NodesOf(const Term& term) {
  std::vector<const DeferredNode*> nodes;
  for (const Term* at = &term; at->kind == Term::Kind::kNode; at = &at->node->inputs[0]) nodes.push_back(at->node);
  return nodes;
}

bool IsTranspose(const DeferredNode* node) { return node->op_type == "Transpose"; }

bool ExchangesTokensAndHeads(const DeferredNode& node) {
  return IsTranspose(&node) && build::IntegersOf(*node.attributes[0].second.list) == std::vector<int64_t>{0, 2, 1, 3};
}

// The axes of what is picked of a source with these axes: CanBeCutOff was asked.
AxisList PartOfAxes(const Way& way, const AxisList& from) {
  AxisList axes = way.atoms.Leaves(from);
  if (!way.picked.has_value()) return axes;
  const auto picked = static_cast<std::ptrdiff_t>(way.atoms.Leaves(Atoms{way.picked->atom}).size());
  axes.back().erase(axes.back().begin(), axes.back().begin() + picked);
  return axes;
}

}  // namespace

const Value* WayForms::NowOf(const Value* before) const {
  const auto known = now_.find(before);
  return known != now_.end() ? known->second : nullptr;
}

int64_t WayForms::CostOf(int64_t transposes, int64_t reshapes, const Way& way) const {
  const int64_t cost = transposes == 0 ? 0 : costs_.OfTranspose(facts_.Of(way.end).shape, facts_.dims());
  return transposes * cost + reshapes * kReshapeCost;
}

int64_t WayForms::CostAsIs(const Way& way) const { return CostOf(way.transposes - (AsIsIsFree(way) ? 1 : 0), way.reshapes, way); }

bool WayForms::AsIsIsFree(const Way& way) const {
  return way.turn.has_value() &&
         ((free_ends_.contains(way.end) && way.atoms.Leaves(way.turn->second) == way.atoms.Leaves(way.to)) ||
          (free_sources_.contains(way.source) && way.atoms.Leaves(way.turn->first) == way.atoms.Leaves(way.from)));
}

bool WayForms::CanBeFree(const Way& way) const {
  const auto term = ArrangedOf(way, way.source, way.from, way.to);
  return term.has_value() && IsFree(way, NodesOf(*term));
}

int64_t WayForms::CostOf(const Way& way, const std::optional<AxisList>& from, const std::optional<AxisList>& to) const {
  const auto term = ArrangedOf(way, way.source, from, to);
  if (!term.has_value()) return OrderGraph::kNever;
  const auto nodes = NodesOf(*term);
  const auto transposes = std::count_if(nodes.begin(), nodes.end(), IsTranspose);
  const bool is_free = transposes > 0 && IsFree(way, nodes);
  return CostOf(transposes - (is_free ? 1 : 0), static_cast<int64_t>(nodes.size()) - transposes, way);
}

std::optional<Term> WayForms::ArrangedOf(const Way& way, const Value* source, const std::optional<AxisList>& from,
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

// Whether one of the Transposes is left to the order of heads, or there is none.
bool WayForms::IsFree(const Way& way, const std::vector<const DeferredNode*>& nodes) const {
  return std::none_of(nodes.begin(), nodes.end(), IsTranspose) ||
         (free_ends_.contains(way.end) && ExchangesTokensAndHeads(*nodes.front())) ||
         (free_sources_.contains(way.source) && ExchangesTokensAndHeads(*nodes.back()));
}

std::optional<Term> WayForms::DimsOf(const Way& way, const Value* source, const AxisList& of_source) const {
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
const Value* WayForms::WithDimsOf(const Way& way) const {
  const Dim tokens = way.atoms.SizeOf(way.tokens);
  const Dim batch = way.atoms.SizeOf(way.batch);
  const Value* value = way.source;
  for (size_t step = 0; step < kMaximumSteps; ++step) {
    const Value* exchanged = NowOf(value);
    const Value* now = exchanged != nullptr ? exchanged : value;
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

}  // namespace ascend_fuse
