// Straighten norms: exporters and optimizers leave Transposes between the parts of a norm, after the mean, after the difference,
// before the weights. Such a norm is written once more with its axes in one order, where a rule then finds it: what is
// elementwise or reduces is computed of transposed operands, and Transposes stand before its inputs. What no rule finds stays as
// it was.
#include <algorithm>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "ir/add_once.h"
#include "ir/attribute.h"
#include "ir/infer/movement_of.h"
#include "ir/movement/axis.h"
#include "ir/replaced_nodes.h"
#include "ir/schema.h"
#include "ir/status_macros.h"
#include "passes/core/node_inserter.h"
#include "passes/core/workspace.h"
#include "passes/recognise/passes.h"
#include "patterns/language/matcher.h"

namespace ascend_fuse {
namespace {

constexpr int kMostSteps = 14;     // from the last node of a norm to its input
constexpr size_t kMostNodes = 40;  // that are looked at around a Transpose
constexpr int64_t kMostReaders = 8;

using Order = std::vector<int>;  // axis i of the result is axis order[i] of the value

Order Unchanged(size_t rank) {
  Order order(rank);
  std::iota(order.begin(), order.end(), 0);
  return order;
}

bool IsUnchanged(const Order& order) { return std::is_sorted(order.begin(), order.end()); }

// The axes that a node sums, averages or takes the largest number over, which are written in the file; none for any other node.
std::vector<int64_t> ReducedAxes(const Facts& facts, const Node& node) {
  if (node.domain != NameId::kEmpty || node.input_count == 0 || node.output_count != 1 || !OpType(node).starts_with("Reduce"))
    return {};
  const Fact& operand = facts.Of(node.input(0));
  auto axes = IntsParameter(facts, node, "axes", 1);
  if (!operand.has_rank || !axes.has_value()) return {};
  for (int64_t& axis : *axes) {
    axis = NormalizeAxis(axis, operand.rank());
    if (axis < 0) return {};
  }
  return *std::move(axes);
}

// Where each axis of `to` comes from, where the two have the same dims but for axes of length 1; nullopt where they have not.
std::optional<Order> MovedUnits(const DimTable& dims, absl::Span<const Dim> from, absl::Span<const Dim> to) {
  if (from.size() != to.size()) return std::nullopt;
  std::vector<int> others;
  std::vector<int> units;
  for (size_t i = 0; i < from.size(); ++i) (from[i].is(1) ? units : others).push_back(static_cast<int>(i));
  Order order;
  size_t unit = 0;
  size_t other = 0;
  for (const Dim dim : to) {
    const bool one = dim.is(1);
    if (one ? unit == units.size() : other == others.size()) return std::nullopt;
    order.push_back(one ? units[unit++] : others[other++]);
    if (!one && !dims.Equal(from[static_cast<size_t>(order.back())], dim)) return std::nullopt;
  }
  return order;
}

// Computes values once more with their axes in another order.
class Straightener {
 public:
  // What is in `stops` is an input: it is transposed, and not what computes it.
  Straightener(Workspace& workspace, const Node& root, absl::flat_hash_set<const Value*> stops)
      : workspace_(workspace), inserter_(workspace, root), root_(root), stops_(std::move(stops)) {}

  // The root with straightened operands; nullopt where these are as they were, or cannot be straightened.
  std::optional<NewNode> Plan() {
    const Fact& fact = workspace_.facts().Of(root_.output());
    if (!fact.has_rank) return std::nullopt;
    std::optional<NewNode> plan = Elementwise(root_, Unchanged(fact.shape.size()), 0);
    return failed_ ? std::nullopt : std::move(plan);
  }

  // What was made, with the value of the model that it is in another order.
  const absl::flat_hash_map<const Value*, const Value*>& made() const { return made_; }

 private:
  const Facts& facts() const { return workspace_.facts(); }

  const Value* Straight(const Value* value, const Order& order, int step) {
    const auto known = known_.find({value, order});
    if (known != known_.end()) return known->second;
    const Value* straight = Compute(value, order, step);
    return known_[{value, order}] = straight;
  }

  const Value* Compute(const Value* value, const Order& order, int step) {
    const Node* node = value->producer;
    const Fact& fact = facts().Of(value);
    if (!fact.has_rank || fact.shape.size() != order.size()) {
      failed_ = failed_ || !IsUnchanged(order);
      return value;
    }
    if (IsEdge(value, step)) return Edge(value, order);
    if (const auto moved = Moved(value, order, step); moved.has_value()) return *moved;
    if (!ReducedAxes(facts(), *node).empty() && IntAttribute(*node, "keepdims").value_or(1) == 1)
      return Reduction(*node, order, step);
    if (!IsElementwise(*node)) return Edge(value, order);
    const auto plan = Elementwise(*node, order, step);
    if (!plan.has_value()) return value;
    return Note(inserter_.Op(plan->op_type, plan->inputs, plan->attributes), value);
  }

  // Whether nothing is known of how the value is computed, or nothing is asked.
  bool IsEdge(const Value* value, int step) const {
    const Node* node = value->producer;
    if (node == nullptr || node->graph != root_.graph || step > kMostSteps || made_.size() > kMostNodes) return true;
    if (stops_.contains(value)) return true;
    const MovementKind kind = KindOf(facts(), *node);
    const bool moves = kind == MovementKind::kPermutes || kind == MovementKind::kKeepsOrder;
    return !moves && !IsElementwise(*node) && ReducedAxes(facts(), *node).empty();
  }

  const Value* Note(const Value* made, const Value* original) {
    made_.emplace(made, original);
    return made;
  }

  // Of a value that is another one with its axes exchanged; nullopt for any other value.
  std::optional<const Value*> Moved(const Value* value, const Order& order, int step) {
    const Movement* movement = facts().MovementOf(value);
    if (movement == nullptr || movement->only() == nullptr) return std::nullopt;
    if (movement->kind == MovementKind::kPermutes) {
      const PermutationOfAxes axes = PermutedAxes(*movement);
      if (axes.size() != order.size()) return std::nullopt;
      Order of_result(axes.size());
      for (size_t i = 0; i < axes.size(); ++i) of_result[static_cast<size_t>(axes[i])] = static_cast<int>(i);
      const Value* source = movement->node->input(movement->only()->operand);
      if (IsUnchanged(order) && IsEdge(source, step + 1)) return value;  // it is before the norm
      return Straight(source, After(of_result, order), step + 1);
    }
    if (movement->kind != MovementKind::kKeepsOrder) return std::nullopt;
    const Value* source = movement->node->input(movement->only()->operand);
    const Fact& fact = facts().Of(source);
    if (!fact.has_rank) return std::nullopt;
    std::vector<Dim> dims(fact.shape.begin(), fact.shape.end());
    const Node* reduction = source->producer;
    const std::vector<int64_t> axes = reduction != nullptr ? ReducedAxes(facts(), *reduction) : std::vector<int64_t>();
    const bool drops = !axes.empty() && IntAttribute(*reduction, "keepdims").value_or(1) == 0;
    if (drops) {  // as if it kept them
      const Fact& whole = facts().Of(reduction->input(0));
      dims.assign(whole.shape.begin(), whole.shape.end());
      for (const int64_t axis : axes) dims[static_cast<size_t>(axis)] = Dim::Of(1);
    }
    const auto units = MovedUnits(facts().dims(), dims, facts().Of(value).shape);
    if (!units.has_value()) return std::nullopt;
    const Order whole = After(*units, order);
    if (!drops) {
      const Value* straight = Straight(source, whole, step + 1);
      return straight == source && IsUnchanged(*units) ? value : straight;  // a copy is not in the way
    }
    if (IsUnchanged(whole) && Straight(reduction->input(0), whole, step + 1) == reduction->input(0)) return value;
    return Reduction(*reduction, whole, step + 1);
  }

  static Order After(const Order& first, const Order& second) {
    Order order;
    for (const int axis : second) order.push_back(first[static_cast<size_t>(axis)]);
    return order;
  }

  // Of a reduction whose axes stay as 1.
  const Value* Reduction(const Node& node, const Order& order, int step) {
    const Value* operand = Straight(node.input(0), order, step + 1);
    const bool keeps = IntAttribute(node, "keepdims").value_or(1) == 1;
    if (operand == node.input(0) && IsUnchanged(order) && keeps) return node.output();
    const std::vector<int64_t> axes = ReducedAxes(facts(), node);
    std::vector<int64_t> moved;
    for (size_t i = 0; i < order.size(); ++i) {
      if (std::find(axes.begin(), axes.end(), order[i]) != axes.end()) {
        moved.push_back(static_cast<int64_t>(i) - static_cast<int64_t>(order.size()));
      }
    }
    const Term term = build::Op(std::string(OpType(node)), {Term::Of(operand)},
                                {{"axes", build::Numbers(moved)}, {"keepdims", Term::Integer(1)}});
    return Note(inserter_.Build(term), node.output());
  }

  // An elementwise node of operands in this order; nullopt where nothing changes.
  std::optional<NewNode> Elementwise(const Node& node, const Order& order, int step) {
    NewNode plan = PlanOf(node);
    bool changed = false;
    for (size_t i = 0; i < node.input_count; ++i) {
      const Value* operand = node.input(i);
      if (operand == nullptr) continue;
      plan.inputs[i] = Operand(operand, order, step + 1);
      changed = changed || plan.inputs[i] != operand;
    }
    return changed ? std::optional(std::move(plan)) : std::nullopt;
  }

  // An operand that is broadcast to as many axes as `order` has.
  const Value* Operand(const Value* value, const Order& order, int step) {
    const Fact& fact = facts().Of(value);
    if (!fact.has_rank || fact.shape.size() >= order.size()) return Straight(value, order, step);
    if (std::all_of(fact.shape.begin(), fact.shape.end(), [](Dim dim) { return dim.is(1); })) return value;
    const size_t missing = order.size() - fact.shape.size();
    bool stay = true;
    for (size_t i = missing; i < order.size(); ++i) stay = stay && order[i] == static_cast<int>(i);
    if (stay) return Straight(value, Unchanged(fact.shape.size()), step);
    // Axes in front do not change what stands at a place.
    std::vector<Dim> dims(missing, Dim::Of(1));
    dims.insert(dims.end(), fact.shape.begin(), fact.shape.end());
    return Exchanged(value, dims, order);
  }

  // An input of all that is straightened.
  const Value* Edge(const Value* value, const Order& order) {
    const Fact& fact = facts().Of(value);
    return IsUnchanged(order) ? value : Exchanged(value, {fact.shape.begin(), fact.shape.end()}, order);
  }

  // The value, as a tensor of these dims, with its axes in this order: a Reshape where only axes of length 1 change places.
  const Value* Exchanged(const Value* value, const std::vector<Dim>& dims, const Order& order) {
    std::vector<int> others;
    std::vector<int64_t> target;
    bool numbers = true;
    for (const int axis : order) {
      const Dim dim = dims[static_cast<size_t>(axis)];
      if (!dim.is(1)) others.push_back(axis);
      numbers = numbers && dim.is_number();
      if (dim.is_number() && !(target.empty() && dim.is(1))) target.push_back(dim.number());
    }
    const std::vector<int64_t> perm(order.begin(), order.end());
    if (value->IsConstant() && numbers && std::is_sorted(others.begin(), others.end())) {
      return Note(inserter_.Build(build::Reshape(Term::Of(value), target)), value);
    }
    const size_t missing = order.size() - static_cast<size_t>(facts().Of(value).rank());
    std::vector<int64_t> front(missing);
    std::iota(front.begin(), front.end(), 0);
    Term whole = Term::Of(value);
    if (missing > 0) whole = build::Unsqueeze(std::move(whole), front);
    return Note(inserter_.Build(build::Transpose(std::move(whole), perm)), value);
  }

  Workspace& workspace_;
  NodeInserter inserter_;
  const Node& root_;
  const absl::flat_hash_set<const Value*> stops_;
  absl::flat_hash_map<const Value*, const Value*> made_;
  absl::flat_hash_map<std::pair<const Value*, Order>, const Value*> known_;
  bool failed_ = false;  // the axes of something are not known
};

class NormStraightener {
 public:
  explicit NormStraightener(Workspace& workspace)
      : workspace_(workspace), library_(workspace.rules(RuleFolder::kLibrary)), matcher_(library_, workspace.Context()) {
    for (size_t r = 0; r < library_.rules().size(); ++r) {
      const Rule& rule = library_.rules()[r];
      const bool norm = rule.kind == "layer_norm" || rule.kind == "rms_norm";
      if (!norm || rule.emit.empty() || rule.inputs.empty() || workspace.Skipped(rule)) continue;
      for (const std::string& root : library_.RootOperators(r)) rules_[root].push_back(&rule);
    }
  }

  absl::Status Run() {
    for (const auto& graph : workspace_.model().graphs()) {
      const std::vector<const Node*> nodes = graph->nodes();  // grows while nodes are made
      for (const Node* node : nodes) {
        if (node->dead || !Exchanges(*node) || !HasReductionBefore(*node)) continue;
        RETURN_IF_ERROR(workspace_.GoOn());
        for (const Node* root : RootsAfter(*node)) {
          if (node->dead || Straighten(*root)) break;
        }
      }
    }
    return absl::OkStatus();
  }

 private:
  // Whether the node may be what stands between two parts of a norm: axes change places, those of length 1 too.
  bool Exchanges(const Node& node) const {
    const MovementKind kind = KindOf(workspace_.facts(), node);
    if (kind != MovementKind::kPermutes && kind != MovementKind::kKeepsOrder) return false;
    const Node* before = node.input(0) != nullptr ? node.input(0)->producer : nullptr;
    if (before == nullptr) return false;
    // Only the axes that a reduction made 1 are worth a look.
    if (kind == MovementKind::kKeepsOrder) return !ReducedAxes(workspace_.facts(), *before).empty();
    return IsElementwise(*before) || KindOf(workspace_.facts(), *before) == MovementKind::kKeepsOrder ||
           !ReducedAxes(workspace_.facts(), *before).empty();
  }

  bool IsPart(const Node& node) const {
    const MovementKind kind = KindOf(workspace_.facts(), node);
    return kind == MovementKind::kPermutes || kind == MovementKind::kKeepsOrder || IsElementwise(node) ||
           !ReducedAxes(workspace_.facts(), node).empty();
  }

  bool HasReductionBefore(const Node& from) const {
    std::vector<const Node*> work = {&from};
    for (size_t i = 0; i < work.size() && work.size() < kMostNodes; ++i) {
      for (const Use& use : work[i]->inputs()) {
        const Node* before = use.value != nullptr ? use.value->producer : nullptr;
        if (before == nullptr || !IsPart(*before)) continue;
        if (!ReducedAxes(workspace_.facts(), *before).empty()) return true;
        AddOnce(before, &work);
      }
    }
    return false;
  }

  // The nodes in which a norm of which the node is a part may end, the last one first.
  std::vector<const Node*> RootsAfter(const Node& from) const {
    std::vector<const Node*> reached = {&from};
    for (size_t i = 0; i < reached.size() && reached.size() < kMostNodes; ++i) {
      if (reached[i]->output_count != 1 || CountReaders(*reached[i]->output()) > kMostReaders) continue;
      for (const Use& use : LiveUses(*reached[i]->output())) {
        if (IsPart(*use.user)) AddOnce(use.user, &reached);
      }
    }
    std::erase_if(reached, [&](const Node* node) {
      return workspace_.IsMade(*node) || !IsElementwise(*node) || !rules_.contains(OperatorKey(*node)) || IsByOneNumber(*node);
    });
    std::sort(reached.begin(), reached.end(), [](const Node* a, const Node* b) { return a->order > b->order; });
    return reached;
  }

  // Whether the node multiplies by a single constant, as the scale of a query is, or by computed ones, as the cosine of position
  // 0 is. Neither is a weight: the norm ends before it.
  bool IsByOneNumber(const Node& node) const {
    const bool is_copy = workspace_.numbering().Source(node.output()) != nullptr;
    return std::any_of(node.inputs().begin(), node.inputs().end(), [&](const Use& use) {
      if (use.value == nullptr) return false;
      if (IsConstantOfOneElement(workspace_.facts(), *use.value)) return true;
      return !use.value->IsConstant() && is_copy && workspace_.facts().Of(use.value).is_splat;
    });
  }

  // Whether the node, the end of a norm with these inputs, multiplies what others read as it is by what is computed, as a
  // rotation does by its cosines: no weight either (no_factor_beside of rules).
  bool IsByFactor(const Node& root, const absl::flat_hash_set<const Value*>& inputs) const {
    if (!IsOp(root, "Mul")) return false;
    const auto is_factor = [&](const Value* w, const Value* n) {
      return inputs.contains(w) && !inputs.contains(n) && CountReaders(*n) > 1 && IsComputed(workspace_.facts(), *w);
    };
    return is_factor(root.input(0), root.input(1)) || is_factor(root.input(1), root.input(0));
  }

  // Whether a norm that ends in the root was written with its axes in one order.
  bool Straighten(const Node& root) {
    absl::flat_hash_set<const Value*> inputs;
    if (!TryWith(root, {}, &inputs) || IsByFactor(root, inputs)) return false;
    // Only up to the inputs of that norm.
    if (!TryWith(root, inputs, nullptr)) return false;
    Straightener straightener(workspace_, root, std::move(inputs));
    const std::optional<NewNode> plan = straightener.Plan();
    StraightenedNorm norm;
    norm.root = workspace_.rewriter().ReplaceValue(root.output(), *plan);
    workspace_.Refresh(norm.root);
    for (const auto& [made, original] : straightener.made()) norm.originals.emplace(made->producer, original->producer);
    norm.originals.emplace(norm.root, &root);
    workspace_.straightened_norms.push_back(std::move(norm));
    return true;
  }

  // Whether a rule finds a norm in the straightened root, parts of which are straightened; then `inputs` gets its inputs.
  bool TryWith(const Node& root, absl::flat_hash_set<const Value*> stops, absl::flat_hash_set<const Value*>* inputs) {
    const Rewriter::Mark before = workspace_.rewriter().Now();
    bool found = false;
    Straightener straightener(workspace_, root, std::move(stops));
    if (const std::optional<NewNode> plan = straightener.Plan(); plan.has_value()) {
      const Value* trial = NodeInserter(workspace_, root).Insert(*plan);
      const auto& made = straightener.made();
      for (const Rule* rule : rules_.at(OperatorKey(root))) {
        const std::optional<Match> match = matcher_.Run(*rule, trial);
        if (!match.has_value()) continue;
        found = std::any_of(match->covered.begin(), match->covered.end(),
                            [&](const Node* node) { return made.contains(node->output()); });
        if (found && inputs != nullptr) NoteInputs(*match, made, inputs);
        if (found) break;
      }
      if (found && inputs == nullptr) found = !ComputesTwice(root, made);
    }
    workspace_.rewriter().RollBack(before);
    return found;
  }

  // Whether a reduction of the norm is an output of the graph or read by others: no rule takes such a norm
  // (patterns/language/obstacle.cc), and of a second one that is made beside it none would see that.
  bool ComputesTwice(const Node& root, const absl::flat_hash_map<const Value*, const Value*>& made) const {
    std::vector<const Node*> originals = {&root};
    for (const auto& [value, original] : made) {
      if (original->producer != nullptr) originals.push_back(original->producer);
    }
    const Replacement replacement{{}, {root.output()}, originals};
    const ReplacedNodes replaced(replacement);
    return std::any_of(originals.begin(), originals.end(), [&](const Node* node) {
      const Node* reader = nullptr;
      if (ReducedAxes(workspace_.facts(), *node).empty() || !replaced.IsNeeded(node->output(), &reader)) return false;
      return node->output()->is_graph_output || std::find(originals.begin(), originals.end(), reader) == originals.end();
    });
  }

  static void NoteInputs(const Match& match, const absl::flat_hash_map<const Value*, const Value*>& made,
                         absl::flat_hash_set<const Value*>* inputs) {
    for (const Parameter& input : match.rule->inputs) {
      const Term& term = match.terms[match.rule->scope.Find(input.name)];
      if (term.kind != Term::Kind::kValue) continue;
      const auto original = made.find(term.value);
      inputs->insert(original != made.end() ? original->second : term.value);
    }
  }

  Workspace& workspace_;
  const RuleSet& library_;
  Matcher matcher_;
  absl::flat_hash_map<std::string, std::vector<const Rule*>> rules_;  // by the operator of their root
};

}  // namespace

absl::Status StraightenNorms(Workspace& workspace) {
  if (workspace.ChangesNothing()) return absl::OkStatus();
  return NormStraightener(workspace).Run();
}

}  // namespace ascend_fuse
