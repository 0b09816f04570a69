// Choose layouts: whether the tensors of an attention have its heads before the tokens (BNSD) or behind them (BSND), so that
// all Transposes around it, and what the kernel takes longer, cost least. The choice is one for attention, rotary embedding,
// norms of heads, cache and everything else between them that computes the same either way: a minimum cut.

#include <algorithm>
#include <array>
#include <optional>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "ir/status_macros.h"
#include "passes/core/beside.h"
#include "passes/core/workspace.h"
#include "passes/layout/attention_layout.h"
#include "passes/layout/axis_exchange.h"
#include "passes/layout/minimum_cut.h"
#include "passes/layout/passes.h"

namespace ascend_fuse {
namespace {

// A layout as a number: 0 for [B, N, S, D], 1 for [B, S, N, D].
using Layout = int;
constexpr Layout kHeadsFirst = 0;
constexpr Layout kTokensFirst = 1;

// One tensor, in either layout or in both.
struct Tensor4 {
  std::array<Value*, 2> values = {};  // by layout; the first there is of each
  std::vector<Value*> members;        // all values that are this tensor, what computes it first
  std::vector<bool> turned;           // each of them: whether it is the first one turned
  std::optional<Layout> first;        // the layout of the first member
  int maker = -1;                     // the place that computes it; -1 for one that is no choice
};

// A node whose layout is chosen.
struct Place {
  Node* node = nullptr;
  bool is_kernel = false;
  Exchangeable exchangeable;
  Layout as_is = kHeadsFirst;
  int operands = 0;  // the questions which layout its operands and its results have; one but for a kernel
  int results = 0;
  Layout chosen_operands = kHeadsFirst;
  Layout chosen_results = kHeadsFirst;

  bool changes() const { return chosen_operands != as_is || chosen_results != as_is; }
};

std::string_view InputLayout(Layout operands, Layout results) {
  if (operands == kTokensFirst) return "BSND";
  return results == kTokensFirst ? "BNSD_BSND" : "BNSD";
}

class LayoutChooser {
 public:
  explicit LayoutChooser(Workspace& workspace) : workspace_(workspace), facts_(workspace.facts()), target_(*workspace.target()) {}

  absl::Status Run() {
    for (Site& site : workspace_.sites) {
      sites_of_[site.value].push_back(&site);
      if (!site.fused()) kept_.insert(site.record.covers.begin(), site.record.covers.end());
    }
    for (const auto& graph : workspace_.model().graphs()) {
      for (Node* node : graph->nodes()) {
        if (IsAttentionToArrange(*node, facts_)) AddPlace(node, kHeadsFirst, true);
        if (!node->is_new) NoteValues(node->outputs());
      }
      NoteValues(graph->outputs());
    }
    if (places_.empty()) return absl::OkStatus();
    for (size_t i = 0; i < places_.size(); ++i) Reach(static_cast<int>(i));
    Choose();
    return Write();
  }

 private:
  // What was made has higher numbers than what was loaded.
  void NoteValues(absl::Span<Value* const> values) {
    for (const Value* value : values) newest_ = std::max(newest_, value != nullptr ? value->id : 0);
  }

  // --- what there is to choose ---

  int AddPlace(Node* node, Layout as_is, bool is_kernel) {
    const auto [entry, is_new] = place_of_.try_emplace(node, static_cast<int>(places_.size()));
    if (!is_new) return entry->second;
    Place place;
    place.node = node;
    place.is_kernel = is_kernel;
    place.as_is = as_is;
    place.exchangeable = is_kernel ? Exchangeable{{0, 1, 2}, {node->output()}} : *HowToExchange(*node, facts_, kHeadsAndTokens);
    places_.push_back(std::move(place));
    return entry->second;
  }

  // The tensors around a place, and the places around them.
  void Reach(int at) {
    const Place place = places_[static_cast<size_t>(at)];
    for (const size_t i : place.exchangeable.operands) ReachTensor(place.node->input(i), place.as_is);
    for (Value* result : place.exchangeable.results) ReachTensor(result, place.as_is);
  }

  void ReachTensor(Value* value, Layout layout) {
    const size_t t = TensorOf(value);
    if (tensors_[t].first.has_value()) return;
    const auto& members = tensors_[t].members;
    const auto at = static_cast<size_t>(std::find(members.begin(), members.end(), value) - members.begin());
    tensors_[t].first = tensors_[t].turned[at] ? 1 - layout : layout;
    for (size_t i = 0; i < members.size(); ++i) {
      const Layout own = LayoutOf(tensors_[t], i);
      if (tensors_[t].values[static_cast<size_t>(own)] == nullptr) tensors_[t].values[static_cast<size_t>(own)] = members[i];
      for (const Use& use : LiveUses(*members[i])) AddIfExchangeable(use.user, own);
    }
    Node* producer = members[0]->producer;
    if (producer != nullptr) tensors_[t].maker = AddIfExchangeable(producer, *tensors_[t].first);
  }

  int AddIfExchangeable(Node* node, Layout layout) {
    if (node->dead || ExchangesHeadsAndTokens(*node)) return -1;
    const auto known = place_of_.find(node);
    if (known != place_of_.end()) return known->second;
    const bool same = std::all_of(node->inputs().begin(), node->inputs().end(), [&](const Use& use) {
      return use.value == nullptr || use.value->graph == node->graph || facts_.Of(use.value).rank() != 4;
    });
    // What was left, or left to GE, stays in its form.
    if (kept_.contains(Label(*node))) return -1;
    if (!same || IsAttentionToArrange(*node, facts_) || !HowToExchange(*node, facts_, kHeadsAndTokens).has_value()) return -1;
    return AddPlace(node, layout, false);
  }

  // The tensor that a value is, with all that are it: Transposes of it, and what comes back to its shape.
  size_t TensorOf(Value* value) {
    if (const auto known = tensor_of_.find(value); known != tensor_of_.end()) return known->second;
    Value* first = value;
    while (true) {
      Value* before = SameBefore(first);
      if (before == nullptr) break;
      first = before;
    }
    std::vector<Node*> between;
    Tensor4 tensor = TensorFrom(first, &between);
    // A way back is not always one forwards, where other nodes read what lies between: then the tensor begins here.
    const bool found = std::find(tensor.members.begin(), tensor.members.end(), value) != tensor.members.end();
    if (!found || tensor_of_.contains(first)) {
      between.clear();
      tensor = TensorFrom(value, &between);
    }
    for (Node* node : between) AddBetween(node);
    const size_t t = tensors_.size();
    for (Value* member : tensor.members) tensor_of_[member] = t;
    tensors_.push_back(std::move(tensor));
    return t;
  }

  Tensor4 TensorFrom(Value* first, std::vector<Node*>* between) const {
    Tensor4 tensor;
    tensor.members = {first};
    tensor.turned = {false};
    for (size_t i = 0; i < tensor.members.size(); ++i) AddSameBehind(&tensor, i, between);
    return tensor;
  }

  // What `value` is a turned or reshaped copy of.
  Value* SameBefore(const Value* value) const {
    const Node* node = value->producer;
    if (node == nullptr || node->input(0) == nullptr || node->input(0)->graph != value->graph) return nullptr;
    if (ExchangesHeadsAndTokens(*node) && facts_.Of(node->input(0)).rank() == 4) return node->input(0);
    Value* source = node->input(0);
    for (size_t step = 0; step < kMostReshapes && IsReshape(*node); ++step) {
      if (facts_.Of(source).rank() == 4 && facts_.dims().Equal(facts_.Of(source).shape, facts_.Of(value).shape)) {
        return source;
      }
      node = source->producer;
      if (node == nullptr || node->input(0) == nullptr || node->input(0)->graph != value->graph) return nullptr;
      source = node->input(0);
    }
    return nullptr;
  }

  void AddSameBehind(Tensor4* tensor, size_t i, std::vector<Node*>* between) const {
    const Value* of = tensor->members[i];
    std::vector<const Value*> reshaped = {of};
    for (size_t r = 0; r < reshaped.size() && r < kMostReshapes; ++r) {
      if (r > 0 && !HasOneReader(*reshaped[r])) continue;
      for (const Use& use : LiveUses(*reshaped[r])) {
        Node* node = use.user;
        if (use.index != 0 || node->graph != of->graph) continue;
        const bool turn = ExchangesHeadsAndTokens(*node) && r == 0;
        if (!turn && !IsReshape(*node)) continue;
        Value* result = node->output();
        const bool back =
            !turn && facts_.Of(result).rank() == 4 && facts_.dims().Equal(facts_.Of(result).shape, facts_.Of(of).shape);
        if (turn || back) {
          tensor->members.push_back(result);
          tensor->turned.push_back(tensor->turned[i] != turn);
          for (const Value* at = reshaped[r]; at != of; at = at->producer->input(0)) between->push_back(at->producer);
          between->push_back(node);
        } else {
          reshaped.push_back(result);
        }
      }
    }
  }

  void AddBetween(Node* node) {
    if (between_.insert(node).second) between_in_order_.push_back(node);
  }

  // Whether a value between two members has one reader, besides those of its dims: any other one wants it as it is.
  static bool HasOneReader(const Value& value) {
    int readers = value.is_graph_output ? 2 : 0;
    for (const Use& use : LiveUses(value)) readers += ReadsDims(*use.user) ? 0 : 1;
    return readers == 1;
  }

  static bool HasReadersOfDimsAlone(const Value& value) {
    const LiveUses uses(value);
    bool alone = !value.is_graph_output && !uses.empty();
    for (const Use& use : uses) alone = alone && ReadsDims(*use.user);
    return alone;
  }

  static constexpr size_t kMostReshapes = 4;

  static bool IsReshape(const Node& node) {
    return IsOp(node, "Reshape") || IsOp(node, "Squeeze") || IsOp(node, "Unsqueeze") || IsOp(node, "Flatten") ||
           IsOp(node, "Identity");
  }

  static Layout LayoutOf(const Tensor4& tensor, size_t member) {
    return tensor.turned[member] ? 1 - *tensor.first : *tensor.first;
  }

  // Whether turning it moves nothing: one of the two axes has one element.
  bool MovesNothing(const Tensor4& tensor) const {
    const auto shape = facts_.Of(tensor.members[0]).shape;
    return facts_.dims().Resolve(shape[1]).is(1) || facts_.dims().Resolve(shape[2]).is(1);
  }

  // --- what it costs ---

  int64_t CostOfExchange(const Tensor4& tensor) const {
    if (MovesNothing(tensor)) return kReshapeCost;
    return CostOfTranspose(LayoutCostOf(*places_.front().node), facts_.Of(tensor.members[0]).shape, facts_.dims());
  }

  bool IsTaken(const Place& place, Layout operands, Layout results) const {
    if (operands == place.as_is && results == place.as_is) return true;
    return IsTakenExchanged(*place.node, operands != place.as_is ? place.exchangeable.operands : std::vector<size_t>(),
                            kHeadsAndTokens, place.is_kernel ? InputLayout(operands, results) : "", facts_, target_);
  }

  void AskPlace(Place* place) {
    place->operands = cut_.AddQuestion();
    place->results = place->is_kernel ? cut_.AddQuestion() : place->operands;
    const bool agree = Agree(*place);
    if (!place->is_kernel) {
      const bool may_turn = agree && IsTaken(*place, 1 - place->as_is, 1 - place->as_is);
      Forbid(place->operands, 1 - place->as_is, may_turn ? kChangeCost : MinimumCut::kNever);
      return;
    }
    cut_.Cost(place->results, place->operands, MinimumCut::kNever);  // there is no BSND_BNSD
    if (!IsTaken(*place, kHeadsFirst, kTokensFirst)) {
      cut_.Cost(place->operands, place->results, MinimumCut::kNever);
    }
    const bool may_turn = agree && IsTaken(*place, kTokensFirst, kTokensFirst);
    Forbid(place->operands, kTokensFirst, may_turn ? kChangeCost + CostOfTokensFirst(*place->node, facts_) : MinimumCut::kNever);
    Forbid(place->results, kTokensFirst, agree ? kChangeCost : MinimumCut::kNever);
  }

  // Whether all its tensors are in its layout, as they are: what is added to its own Transpose has none.
  bool Agree(const Place& place) const {
    const auto agrees = [&](const Value* value) {
      const Tensor4& tensor = tensors_[tensor_of_.at(value)];
      const auto at = std::find(tensor.members.begin(), tensor.members.end(), value) - tensor.members.begin();
      return LayoutOf(tensor, static_cast<size_t>(at)) == place.as_is;
    };
    return std::all_of(place.exchangeable.operands.begin(), place.exchangeable.operands.end(),
                       [&](size_t i) { return agrees(place.node->input(i)); }) &&
           std::all_of(place.exchangeable.results.begin(), place.exchangeable.results.end(), agrees);
  }

  // The answer `layout` costs this.
  void Forbid(int question, Layout layout, int64_t cost) {
    if (layout == kTokensFirst) {
      cut_.Cost(MinimumCut::kZero, question, cost);
    } else {
      cut_.Cost(question, MinimumCut::kOne, cost);
    }
  }

  // --- the choice ---

  void Choose() {
    for (Place& place : places_) AskPlace(&place);
    for (const Tensor4& tensor : tensors_) AskTensor(tensor);
    cut_.Solve();
    for (Place& place : places_) {
      place.chosen_operands = cut_.IsOne(place.operands) ? kTokensFirst : kHeadsFirst;
      place.chosen_results = cut_.IsOne(place.results) ? kTokensFirst : kHeadsFirst;
    }
  }

  static int Constant(Layout layout) { return layout == kTokensFirst ? MinimumCut::kOne : MinimumCut::kZero; }

  // A tensor costs a Transpose where it is read in the layout that it is not computed in.
  void AskTensor(const Tensor4& tensor) {
    const int64_t cost = CostOfExchange(tensor);
    const int made = tensor.maker >= 0 ? places_[static_cast<size_t>(tensor.maker)].results : Constant(*tensor.first);
    const int some_one = cut_.AddQuestion();  // 1 where some reader wants layout 1
    const int all_one = cut_.AddQuestion();   // 0 where some reader wants layout 0
    cut_.Cost(made, some_one, cost);
    cut_.Cost(all_one, made, cost);
    const auto reads = [&](int question) {
      cut_.Cost(some_one, question, MinimumCut::kNever);
      cut_.Cost(question, all_one, MinimumCut::kNever);
    };
    for (size_t i = 0; i < tensor.members.size(); ++i) {
      if (tensor.members[i]->is_graph_output) reads(Constant(LayoutOf(tensor, i)));
      for (const Use& use : LiveUses(*tensor.members[i])) {
        if (!between_.contains(use.user) && !ReadsDims(*use.user)) reads(QuestionOf(use, LayoutOf(tensor, i)));
      }
    }
  }

  // Which layout a reader wants that reads it as it is in `as_is`.
  int QuestionOf(const Use& use, Layout as_is) const {
    const auto place = place_of_.find(use.user);
    if (place == place_of_.end()) return Constant(as_is);
    const Place& reader = places_[static_cast<size_t>(place->second)];
    const auto& operands = reader.exchangeable.operands;
    const bool turns = std::find(operands.begin(), operands.end(), use.index) != operands.end();
    return turns && reader.as_is == as_is ? reader.operands : Constant(as_is);
  }

  // --- what is written ---

  absl::Status Write() {
    std::vector<const Place*> changed;
    for (const Place& place : places_) {
      if (place.changes()) changed.push_back(&place);
    }
    std::sort(changed.begin(), changed.end(), [](const Place* a, const Place* b) { return StandsBefore(*a->node, *b->node); });
    for (const Place* place : changed) {
      RETURN_IF_ERROR(WritePlace(*place));
    }
    for (const Tensor4& tensor : tensors_) WriteMembers(tensor);
    for (Node* node : between_in_order_) WriteBetween(node);
    return absl::OkStatus();
  }

  // The other values that are a tensor: what is turned for its dims alone is not turned, and what was turned to what the
  // tensor is computed as now is that.
  void WriteMembers(const Tensor4& tensor) {
    const Place* maker = tensor.maker >= 0 ? &places_[static_cast<size_t>(tensor.maker)] : nullptr;
    const Layout made = maker != nullptr ? maker->chosen_results : *tensor.first;
    Value* now = tensor.values[static_cast<size_t>(made)];
    for (size_t i = 1; i < tensor.members.size(); ++i) {
      Value* member = tensor.members[i];
      const LiveUses uses(*member);
      if (member == now || (uses.empty() && !member->is_graph_output)) continue;
      if (LayoutOf(tensor, i) == made) {
        if (maker == nullptr || !maker->changes()) continue;
        NewNode copy;
        copy.op_type = "Identity";
        copy.name = std::string(ValueName(*member)) + "_copy";
        copy.inputs = {now};
        workspace_.Know(workspace_.rewriter().ReplaceValue(member, copy));
        continue;
      }
      const bool dims_alone = HasReadersOfDimsAlone(*member);
      if (dims_alone) WriteDims(member, now);
      if (!dims_alone && ExchangesHeadsAndTokens(*member->producer)) WriteAsReshape(member);
    }
  }

  // A Transpose that moves nothing.
  void WriteAsReshape(Value* turned) {
    Beside beside(workspace_, *turned->producer);
    const NewNode plan = PlanExchanged(turned->producer->input(0), &beside);
    if (plan.op_type != "Transpose") workspace_.Know(workspace_.rewriter().ReplaceValue(turned, plan));
  }

  // A node between two members whose dims alone are still read: they do not ask for the order of elements, so that none is
  // transposed for them. What is read in its place has a name of its own, since it may be in another order.
  void WriteBetween(Node* node) {
    Value* old = node->output();
    if (node->dead || !HasReadersOfDimsAlone(*old)) return;
    const auto copy = copies_.find(node->input(0));
    const Node* turn = node->input(0)->producer;
    Value* now = copy != copies_.end()                               ? copy->second
                 : turn != nullptr && ExchangesHeadsAndTokens(*turn) ? turn->input(0)
                                                                     : nullptr;
    if (now == nullptr) return;
    if (IsOp(*node, "Reshape")) {
      // A 0 would name a dim of what is read.
      const Fact& dims = facts_.Of(node->input(1));
      const bool zeros = dims.elements == nullptr || std::any_of(dims.elements->integers.begin(), dims.elements->integers.end(),
                                                                 [](const Dim& dim) { return !dim.known() || dim.is(0); });
      if (zeros) return;
      Value* of_its_dims = Beside(workspace_, *node).Op("Reshape", {now, node->input(1)});
      for (const Node* reader : ReadersOfDims(*old, *node->graph)) {
        NewNode shape;
        shape.op_type = "Shape";
        shape.name = std::string(ValueName(*reader->output())) + "_turned";
        shape.inputs = {of_its_dims};
        workspace_.Know(workspace_.rewriter().ReplaceValue(reader->output(), shape));
      }
    } else if (IsOp(*node, "Squeeze")) {
      // The axis of 1 stands at the other place.
      const auto x = facts_.Of(node->input(0)).shape;
      const int axis = AxisOfOne(node->input(0));
      if (axis < 0 || !facts_.dims().Equal(facts_.Of(old).shape, {x[0], x[static_cast<size_t>(3 - axis)], x[3]})) return;
      WriteDims(old, now, {0, axis, 3});
    } else {
      return;
    }
    for (Site* site : sites_of_[old]) site->value = now;
  }

  absl::Status WritePlace(const Place& place) {
    NewNode plan = place.is_kernel || place.chosen_operands == place.as_is ? PlanOf(*place.node)
                                                                           : Exchanged(*place.node, workspace_, kHeadsAndTokens);
    for (Attribute& attribute : plan.attributes) {
      if (place.is_kernel && attribute.name == "input_layout") {
        attribute = Attribute::String("input_layout", InputLayout(place.chosen_operands, place.chosen_results));
      }
    }
    for (const size_t i : place.exchangeable.operands) {
      plan.inputs[i] = Provide(&tensors_[tensor_of_.at(place.node->input(i))], place.chosen_operands);
    }
    const auto out = static_cast<size_t>(place.chosen_results);
    absl::flat_hash_map<const Value*, Value*> existing;  // those of the file that the node computes now
    for (Value* result : place.exchangeable.results) {
      Value* value = tensors_[tensor_of_.at(result)].values[out];
      if (value != nullptr) existing[result] = value;
    }
    const bool exchanged = place.chosen_results != place.as_is;
    auto pairs =
        WriteExchanged(*place.node, plan, place.exchangeable.results, existing, ValueName(*place.exchangeable.results[0]),
                       exchanged ? std::optional(kHeadsAndTokens) : std::nullopt, workspace_);
    if (!pairs.ok()) return pairs.status();
    for (const auto& [before, now] : *pairs) WriteResult(before, now, place.chosen_results);
    return absl::OkStatus();
  }

  // `now`, which was just made, takes the place of the tensor that was computed as `before`.
  void WriteResult(Value* before, Value* now, Layout layout) {
    Tensor4& tensor = tensors_[tensor_of_.at(before)];
    tensor.values[static_cast<size_t>(layout)] = now;
    // A site is told by a value of the file, where there is one.
    if (tensor_of_.contains(now) && (now->id <= newest_ || before->id > newest_)) {
      for (Site* site : sites_of_[before]) site->value = now;
    }
    if (!before->is_graph_output) WriteDims(before, now);
    if (!before->is_graph_output && LiveUses(*before).empty()) return;
    Beside beside(workspace_, now->graph, ValueName(*before));
    workspace_.Know(workspace_.rewriter().ReplaceValue(before, PlanExchanged(now, &beside)));
    copies_[before] = now;
  }

  static std::vector<Node*> ReadersOfDims(const Value& value, const Graph& graph) {
    std::vector<Node*> readers;
    for (const Use& use : LiveUses(value)) {
      if (ReadsDims(*use.user) && use.user->graph == &graph) readers.push_back(use.user);
    }
    return readers;
  }

  // The dims of `before` read from `now`, which is it turned: `order` of those of `now`.
  void WriteDims(const Value* before, Value* now, const std::vector<int64_t>& order = {0, 2, 1, 3}) {
    const std::vector<Node*> readers = ReadersOfDims(*before, *now->graph);
    if (readers.empty()) return;
    Beside beside(workspace_, now->graph, ValueName(*now));
    Value* shape = beside.Op("Shape", {now});
    for (const Node* reader : readers) {
      NewNode gather;
      gather.op_type = "Gather";
      gather.name = std::string(ValueName(*reader->output())) + "_turned";
      gather.inputs = {shape, beside.Numbers(order)};
      gather.attributes = {Attribute::Int("axis", 0)};
      workspace_.Know(workspace_.rewriter().ReplaceValue(reader->output(), gather));
    }
  }

  // What one Reshape turns it by: nullopt where that moves elements, or the number of heads is not known.
  std::optional<std::vector<int64_t>> DimsOfExchanged(const Value* value) const {
    const auto shape = facts_.Of(value).shape;
    const Dim before = facts_.dims().Resolve(shape[1]);
    const Dim behind = facts_.dims().Resolve(shape[2]);
    const bool known = before.is_number() && behind.is_number() && before.number() > 0 && behind.number() > 0;
    if (!known || (!before.is(1) && !behind.is(1))) return std::nullopt;
    return std::vector<int64_t>{0, behind.number(), before.number(), 0};
  }

  // Which of the two axes has one element; -1 where neither has.
  int AxisOfOne(const Value* value) const {
    const auto shape = facts_.Of(value).shape;
    for (const int axis : {1, 2}) {
      if (facts_.dims().Resolve(shape[static_cast<size_t>(axis)]).is(1)) return axis;
    }
    return -1;
  }

  // The value turned: reshaped where one of the two axes has one element.
  NewNode PlanExchanged(Value* value, Beside* beside) const {
    if (const auto dims = DimsOfExchanged(value); dims.has_value()) {
      return beside->Plan(build::Reshape(Term::Of(value), *dims));
    }
    const int axis = AxisOfOne(value);
    if (axis < 0) return beside->Plan(build::Transpose(Term::Of(value), {0, 2, 1, 3}));
    return beside->Plan(build::Unsqueeze(build::Squeeze(Term::Of(value), {axis}), {3 - axis}));
  }

  // The tensor in this layout.
  Value* Provide(Tensor4* tensor, Layout layout) {
    Value*& wanted = tensor->values[static_cast<size_t>(layout)];
    if (wanted != nullptr) return wanted;
    Value* other = tensor->values[static_cast<size_t>(1 - layout)];
    Beside beside(workspace_, other->graph, ValueName(*other));
    wanted = beside.Insert(PlanExchanged(other, &beside));
    return wanted;
  }

  Workspace& workspace_;
  Facts& facts_;
  const Target& target_;
  absl::flat_hash_map<const Value*, std::vector<Site*>> sites_of_;  // by what they compute
  absl::flat_hash_set<std::string_view> kept_;                      // labels of nodes
  uint32_t newest_ = 0;                                             // of the values of the file
  std::vector<Place> places_;
  absl::flat_hash_map<const Node*, int> place_of_;
  std::vector<Tensor4> tensors_;
  absl::flat_hash_map<const Value*, size_t> tensor_of_;
  absl::flat_hash_set<const Node*> between_;  // nodes that make one member of a tensor of another one
  std::vector<Node*> between_in_order_;
  absl::flat_hash_map<const Value*, Value*> copies_;  // results as they were, and what they are turned of now
  MinimumCut cut_;
};

}  // namespace

absl::Status ChooseLayouts(Workspace& workspace) {
  if (workspace.target() == nullptr || workspace.ChangesNothing()) return absl::OkStatus();
  return LayoutChooser(workspace).Run();
}

}  // namespace ascend_fuse
