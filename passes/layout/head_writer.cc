#include "passes/layout/head_writer.h"

#include <algorithm>
#include <optional>
#include <string>

#include "ir/status_macros.h"
#include "passes/core/copy_value.h"

namespace ascend_fuse {
namespace {

bool HasReadersOfDimsAlone(const Value& value) {
  const LiveUses uses(value);
  bool alone = !value.is_graph_output && !uses.empty();
  for (const Use& use : uses) alone = alone && ReadsDims(*use.user);
  return alone;
}

std::vector<const Node*> ReadersOfDims(const Value& value, const Graph& graph) {
  std::vector<const Node*> readers;
  for (const Use& use : LiveUses(value)) {
    if (ReadsDims(*use.user) && use.user->graph == &graph) readers.push_back(use.user);
  }
  return readers;
}

// What one Reshape exchanges it by: nullopt where that moves elements, or the number of heads is not known.
std::optional<std::vector<int64_t>> DimsOfExchanged(const Value* value, const Facts& facts) {
  const auto shape = facts.Of(value).shape;
  const Dim before = facts.dims().Resolve(shape[1]);
  const Dim behind = facts.dims().Resolve(shape[2]);
  const bool known = before.is_number() && behind.is_number() && before.number() > 0 && behind.number() > 0;
  if (!known || (!before.is(1) && !behind.is(1))) return std::nullopt;
  return std::vector<int64_t>{0, behind.number(), before.number(), 0};
}

// Which of the two axes has one element; -1 where neither has.
int AxisOfOne(const Value* value, const Facts& facts) {
  const auto shape = facts.Of(value).shape;
  for (const int axis : {1, 2}) {
    if (facts.dims().Resolve(shape[static_cast<size_t>(axis)]).is(1)) return axis;
  }
  return -1;
}

// What was made has higher numbers than what was loaded.
uint32_t NewestOfFile(const Model& model) {
  uint32_t newest = 0;
  const auto note = [&](absl::Span<const Value* const> values) {
    for (const Value* value : values) newest = std::max(newest, value != nullptr ? value->id : 0);
  };
  for (const auto& graph : model.graphs()) {
    for (const Node* node : graph->nodes()) {
      if (!node->is_new) note(node->outputs());
    }
    note(graph->outputs());
  }
  return newest;
}

}  // namespace

HeadWriter::HeadWriter(OrderRun& run, HeadPlaces& places)
    : workspace_(run.workspace),
      of_ge_(run.of_ge),
      facts_(workspace_.facts()),
      places_(places),
      tensors_(places.tensors()),
      newest_(NewestOfFile(workspace_.model())) {
  for (Site& site : workspace_.sites) sites_of_[site.value].push_back(&site);
}

absl::Status HeadWriter::Write() {
  std::vector<const HeadPlace*> changed;
  for (const HeadPlace& place : places_.all()) {
    if (place.changes()) changed.push_back(&place);
  }
  std::sort(changed.begin(), changed.end(),
            [](const HeadPlace* a, const HeadPlace* b) { return StandsBefore(*a->node, *b->node); });
  for (const HeadPlace* place : changed) {
    RETURN_IF_ERROR(WritePlace(*place));
  }
  for (size_t i = 0; i < tensors_.all().size(); ++i) WriteMembers(tensors_[i]);
  for (const Node* node : tensors_.between()) WriteBetween(node);
  return absl::OkStatus();
}

// The other values that are a tensor: what is transposed for its dims alone is not transposed, and what was
// transposed to what the tensor is computed as now is that.
void HeadWriter::WriteMembers(HeadTensor& tensor) {
  const HeadPlace* maker = places_.MakerOf(tensor);
  const Order made = maker != nullptr ? maker->chosen_results : *tensor.first;
  const Value* now = tensor.In(made);
  for (size_t i = 1; i < tensor.members.size(); ++i) {
    const Value* member = tensor.members[i];
    const LiveUses uses(*member);
    if (member == now || (uses.empty() && !member->is_graph_output)) continue;
    if (tensor.OrderOf(i) == made) {
      if (maker == nullptr || !maker->changes()) continue;
      BecomeCopy(workspace_, member, now, std::string(ValueName(*member)) + "_copy");
      continue;
    }
    const bool dims_alone = HasReadersOfDimsAlone(*member);
    if (dims_alone) WriteDims(member, now);
    if (!dims_alone && ExchangesHeadsAndTokens(facts_, *member->producer)) WriteAsReshape(member);
  }
}

// A Transpose that moves nothing.
void HeadWriter::WriteAsReshape(const Value* exchanged) {
  NodeInserter inserter(workspace_, *exchanged->producer);
  const NewNode plan = PlanExchanged(exchanged->producer->input(0), &inserter);
  if (plan.op_type != "Transpose") workspace_.Refresh(workspace_.rewriter().ReplaceValue(exchanged, plan));
}

// A node between two members whose dims alone are still read: they do not ask for the order of elements, so that none is
// transposed for them. What is read in its place has a name of its own, since it may be in another order.
void HeadWriter::WriteBetween(const Node* node) {
  const Value* old = node->output();
  if (node->dead || !HasReadersOfDimsAlone(*old)) return;
  const auto copy = copies_.find(node->input(0));
  const Node* exchange = node->input(0)->producer;
  const Value* now = copy != copies_.end()                                               ? copy->second
                     : exchange != nullptr && ExchangesHeadsAndTokens(facts_, *exchange) ? exchange->input(0)
                                                                                         : nullptr;
  if (now == nullptr) return;
  const bool written =
      IsOp(*node, "Reshape") ? WriteReshapeBetween(node, now) : IsOp(*node, "Squeeze") && WriteSqueezeBetween(node, now);
  if (!written) return;
  for (Site* site : sites_of_[old]) site->value = now;
}

bool HeadWriter::WriteReshapeBetween(const Node* node, const Value* now) {
  // A 0 would name a dim of what is read.
  const Fact& dims = facts_.Of(node->input(1));
  const bool zeros = dims.elements == nullptr || std::any_of(dims.elements->integers.begin(), dims.elements->integers.end(),
                                                             [](const Dim& dim) { return !dim.known() || dim.is(0); });
  if (zeros) return false;
  const Value* of_its_dims = NodeInserter(workspace_, *node).Op("Reshape", {now, node->input(1)});
  for (const Node* reader : ReadersOfDims(*node->output(), *node->graph)) {
    NewNode shape;
    shape.op_type = "Shape";
    shape.name = std::string(ValueName(*reader->output())) + "_turned";
    shape.inputs = {of_its_dims};
    workspace_.Refresh(workspace_.rewriter().ReplaceValue(reader->output(), shape));
  }
  return true;
}

// The axis of 1 stands at the other place.
bool HeadWriter::WriteSqueezeBetween(const Node* node, const Value* now) {
  const Value* old = node->output();
  const auto x = facts_.Of(node->input(0)).shape;
  const int axis = AxisOfOne(node->input(0), facts_);
  if (axis < 0 || !facts_.dims().Equal(facts_.Of(old).shape, {x[0], x[static_cast<size_t>(3 - axis)], x[3]})) return false;
  WriteDims(old, now, {0, axis, 3});
  return true;
}

absl::Status HeadWriter::WritePlace(const HeadPlace& place) {
  NewNode plan = place.is_attention || place.chosen_operands == place.as_is ? PlanOf(*place.node)
                                                                            : Exchanged(*place.node, workspace_, kHeadsAndTokens);
  for (Attribute& attribute : plan.attributes) {
    if (place.is_attention && attribute.name == "input_layout") {
      attribute = Attribute::String("input_layout", InputLayout(place.chosen_operands, place.chosen_results));
    }
  }
  for (const size_t i : place.exchangeable.operands) {
    plan.inputs[i] = Provide(&tensors_.Of(place.node->input(i)), place.chosen_operands);
  }
  absl::flat_hash_map<const Value*, const Value*> existing;  // those of the file that the node computes now
  for (const Value* result : place.exchangeable.results) {
    const Value* value = tensors_.Of(result).In(place.chosen_results);
    if (value != nullptr) existing[result] = value;
  }
  const bool exchanged = place.chosen_results != place.as_is;
  ASSIGN_OR_RETURN(auto pairs, WriteExchanged(*place.node, plan, place.exchangeable.results, existing,
                                              ValueName(*place.exchangeable.results[0]),
                                              exchanged ? std::optional(kHeadsAndTokens) : std::nullopt, workspace_));
  of_ge_.Turned(*place.node, *pairs.front().now->producer);
  for (const auto& [before, now] : pairs) WriteResult(before, now, place.chosen_results);
  return absl::OkStatus();
}

// `now`, which was just made, takes the place of the tensor that was computed as `before`.
void HeadWriter::WriteResult(const Value* before, const Value* now, Order order) {
  tensors_.Of(before).In(order) = now;
  // A site is told by a value of the file, where there is one.
  if (tensors_.Knows(now) && (now->id <= newest_ || before->id > newest_)) {
    for (Site* site : sites_of_[before]) site->value = now;
  }
  if (!before->is_graph_output) WriteDims(before, now);
  if (!before->is_graph_output && LiveUses(*before).empty()) return;
  NodeInserter inserter(workspace_, now->graph, ValueName(*before));
  workspace_.Refresh(workspace_.rewriter().ReplaceValue(before, PlanExchanged(now, &inserter)));
  copies_[before] = now;
}

// The dims of `before` read from `now`, which is it exchanged: `order` of those of `now`.
void HeadWriter::WriteDims(const Value* before, const Value* now, const std::vector<int64_t>& order) {
  const std::vector<const Node*> readers = ReadersOfDims(*before, *now->graph);
  if (readers.empty()) return;
  NodeInserter inserter(workspace_, now->graph, ValueName(*now));
  const Value* shape = inserter.Op("Shape", {now});
  for (const Node* reader : readers) {
    NewNode gather;
    gather.op_type = "Gather";
    gather.name = std::string(ValueName(*reader->output())) + "_turned";
    gather.inputs = {shape, inserter.Numbers(order)};
    gather.attributes = {Attribute::Int("axis", 0)};
    workspace_.Refresh(workspace_.rewriter().ReplaceValue(reader->output(), gather));
  }
}

// The value exchanged: reshaped where one of the two axes has one element.
NewNode HeadWriter::PlanExchanged(const Value* value, NodeInserter* inserter) const {
  if (const auto dims = DimsOfExchanged(value, facts_); dims.has_value()) {
    return inserter->Plan(build::Reshape(Term::Of(value), *dims));
  }
  const int axis = AxisOfOne(value, facts_);
  if (axis < 0) return inserter->Plan(build::Transpose(Term::Of(value), {0, 2, 1, 3}));
  return inserter->Plan(build::Unsqueeze(build::Squeeze(Term::Of(value), {axis}), {3 - axis}));
}

// The tensor in this order.
const Value* HeadWriter::Provide(HeadTensor* tensor, Order order) {
  const Value*& wanted = tensor->In(order);
  if (wanted != nullptr) return wanted;
  const Value* other = tensor->In(Other(order));
  NodeInserter inserter(workspace_, other->graph, ValueName(*other));
  wanted = inserter.Insert(PlanExchanged(other, &inserter));
  return wanted;
}

}  // namespace ascend_fuse
