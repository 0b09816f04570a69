#include "passes/layout/padding_plan.h"

#include <algorithm>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "fmt/format.h"
#include "ir/constant_tensor.h"
#include "ir/infer/movement_of.h"
#include "ir/status_macros.h"
#include "ir/streamed_tensor.h"
#include "passes/layout/attention_layout.h"
#include "passes/layout/moving_nodes.h"

namespace ascend_fuse {
namespace {

constexpr size_t kMostNodes = 64;  // from the attention to the projections
constexpr size_t kMostSteps = 12;  // from it to what reads the result

absl::Status No(std::string_view clause) { return absl::FailedPreconditionError(std::string(clause)); }

// The parts of one axis of `value`, of `size` elements, that readers ask for, together; empty where it stays as it is.
// FAILED_PRECONDITION with a clause where two ask for different things, or the size is not known or is too large.
absl::StatusOr<Places> Together(const Value& value, std::vector<PaddedPart> parts, const Dim size) {
  if (std::all_of(parts.begin(), parts.end(), [](const PaddedPart& part) { return part.places.empty(); })) return Places();
  if (!size.is_number()) return No(fmt::format("the shape of {} is not known", ValueName(value)));
  const auto no = [&value](std::string_view what) { return No(fmt::format("{} {}", ValueName(value), what)); };
  if (size.number() > kMostPlaces) return no("is too wide");
  for (PaddedPart& part : parts) {
    if (part.length < 0) part.length = size.number();
    // A Split whose sizes are not those of its input.
    if (part.start < 0 || part.length > size.number() || part.start > size.number() - part.length)
      return no(fmt::format("is read outside of its {} elements", size.number()));
    if (part.places.empty()) part.places = AllPlaces(part.length);
  }
  std::sort(parts.begin(), parts.end(),
            [](const PaddedPart& a, const PaddedPart& b) { return std::pair(a.start, a.length) < std::pair(b.start, b.length); });
  Places places;
  int64_t end = 0;
  for (size_t i = 0; i < parts.size(); ++i) {
    const PaddedPart& part = parts[i];
    if (i > 0 && part.start == parts[i - 1].start && part.length == parts[i - 1].length) {
      if (part.places != parts[i - 1].places) return no("is read in two ways");
      continue;
    }
    if (part.start < end) return no("is read in two ways");
    for (; end < part.start; ++end) places.push_back(end);
    for (const int64_t from : part.places) places.push_back(from < 0 ? -1 : part.start + from);
    end = part.start + part.length;
  }
  for (; end < size.number(); ++end) places.push_back(end);
  if (static_cast<int64_t>(places.size()) > kMostPlaces) return no("is too wide");
  const bool as_it_is = static_cast<int64_t>(places.size()) == size.number();
  return as_it_is ? Places() : places;
}

// Exporters write a weight of several layers as one, and Identity of it for each of the others.
void AddReaders(const Facts& facts, const Value& value, std::vector<const Use*>* readers, size_t depth = 0) {
  for (const Use& use : LiveUses(value)) {
    if (IsCopy(facts, *use.user) && depth < kMostSteps) {
      AddReaders(facts, *use.user->output(), readers, depth + 1);
    } else {
      readers->push_back(&use);
    }
  }
}

// Whether all that is read of what this node moves are dims.
bool LeadsToDimsAlone(const Facts& facts, const Node& node, size_t depth = 0) {
  const Value* output = node.output_count == 1 ? node.output() : nullptr;
  if (output == nullptr || output->is_graph_output || depth >= kMostSteps || !IsOfOneOperand(KindOf(facts, node))) return false;
  for (const Use& use : LiveUses(*output)) {
    if (use.user->graph != node.graph) return false;
    if (!IsOp(*use.user, "Shape") && !LeadsToDimsAlone(facts, *use.user, depth + 1)) return false;
  }
  return true;
}

}  // namespace

bool PaddingSearch::Later::operator()(const Value* a, const Value* b) const {
  if (a->producer == b->producer) return a->id > b->id;
  if (a->producer == nullptr || b->producer == nullptr) return b->producer == nullptr;
  return StandsBefore(*b->producer, *a->producer);
}

ZeroPadding PaddingPlan::PaddingOf(const Value* value, const Facts& facts) const {
  const auto known = padding.find(value);
  if (known != padding.end()) return known->second;
  return ZeroPadding(static_cast<size_t>(std::max(value != nullptr ? facts.Of(value).rank() : 0, 0)));
}

ZeroPadding PaddingPlan::PaddingOfFirst(const Node& node, const Facts& facts) const {
  ZeroPadding padding = PaddingOf(node.input(0), facts);
  const auto constant = constants.find({&node, 0});
  if (constant != constants.end()) padding[constant->second.first] = constant->second.second;
  return padding;
}

std::vector<ZeroPadding> PaddingPlan::OutputsOf(const Node& node, const Facts& facts) const {
  std::vector<ZeroPadding> outputs;
  for (const Value* output : node.outputs()) outputs.push_back(PaddingOf(output, facts));
  return outputs;
}

// The value that is turned, cast or copied on the way to this one.
const Value* Origin(const Facts& facts, const Value* value) {
  while (value != nullptr && value->producer != nullptr) {
    const Node& node = *value->producer;
    const bool moves = KindOf(facts, node) == MovementKind::kPermutes || IsCopy(facts, node);
    if (!moves && !IsOp(node, "Cast")) break;
    value = node.input(0);
  }
  return value;
}

bool IsMadeOfConstant(const Facts& facts, const Value* value) { return IsGiven(Origin(facts, value)); }

// Whether it is a constant that may be kept twice.
bool IsSmallConstant(const Value* value) {
  const std::optional<Tensor> tensor = value != nullptr ? ConstantTensor(*value) : std::nullopt;
  return tensor.has_value() && IsSmall(*tensor);
}

absl::StatusOr<PaddingPlan> PaddingSearch::Run() {
  for (size_t i = 0; i < kAttentionOperands; ++i) {
    const Fact& fact = facts_.Of(plan_.attention->input(i));
    const Dim size = fact.rank() == 4 ? facts_.dims().Resolve(fact.shape[3]) : Dim();
    if (!size.is_number() || size.number() < 2) return No("the size of its heads is not known");
    if (size.number() == width_) continue;
    const ZeroPadding padding = {{}, {}, {}, PlacesOfHeads(size.number(), size.number(), width_)};
    RETURN_IF_ERROR(Ask({plan_.attention, i}, padding));
  }
  RETURN_IF_ERROR(FollowResult());
  while (!asked_.empty()) {
    // All outputs of one node, and then its operands.
    const Node* const producer = asked_.begin()->first->producer;
    while (!asked_.empty() && asked_.begin()->first->producer == producer) {
      const Value* value = asked_.begin()->first;
      const std::vector<Asked> asked = std::move(asked_.begin()->second);
      asked_.erase(asked_.begin());
      RETURN_IF_ERROR(Settle(value, asked));
    }
    RETURN_IF_ERROR(AskOperands(producer));
  }
  return std::move(plan_);
}

absl::Status PaddingSearch::Ask(PaddedReader reader, const ZeroPadding& padding) {
  std::vector<PaddedPart> parts;
  for (const Places& places : padding) parts.push_back({0, -1, places});
  return Ask(reader, std::move(parts));
}

absl::Status PaddingSearch::Ask(PaddedReader reader, std::vector<PaddedPart> parts) {
  const Value* value = reader.node->input(reader.index);
  if (value == nullptr || facts_.Of(value).rank() != static_cast<int>(parts.size())) {
    return No(fmt::format("the shape of an input of {} '{}' is not known", OpType(*reader.node), Label(*reader.node)));
  }
  if (IsGiven(value)) return AskConstant(reader, value, parts);
  if (value->producer == nullptr) return No(fmt::format("{} is an input", ValueName(*value)));
  if (value->graph != plan_.attention->graph) return No(fmt::format("{} stands in another graph", ValueName(*value)));
  if (plan_.padding.contains(value)) return No(fmt::format("{} is read in front of what it is made of", ValueName(*value)));
  plan_.wants.insert(reader);
  asked_[value].push_back({reader, std::move(parts)});
  return absl::OkStatus();
}

// A constant is padded for this reader alone.
absl::Status PaddingSearch::AskConstant(PaddedReader reader, const Value* value, const std::vector<PaddedPart>& parts) {
  int64_t axis = -1;
  for (size_t i = 0; i < parts.size(); ++i) {
    if (parts[i].places.empty()) continue;
    // Of a weight each part would be a copy of all of it.
    const bool of_large = parts[i].length >= 0 && parts.size() > 1;
    if (axis >= 0 || of_large) return No(fmt::format("{} is read in parts", ValueName(*value)));
    axis = static_cast<int64_t>(i);
  }
  if (axis < 0) return absl::OkStatus();
  const PaddedPart& part = parts[static_cast<size_t>(axis)];
  const Dim size = facts_.dims().Resolve(facts_.Of(value).shape[static_cast<size_t>(axis)]);
  ASSIGN_OR_RETURN(const Places places, Together(*value, {part}, size));
  // Large ones are not kept twice; layers that share a weight are treated alike.
  if (facts_.Of(value).rank() > 1 && !IsSmallConstant(value)) {
    std::vector<const Use*> readers;
    AddReaders(facts_, *value, &readers);
    for (const Use* use : readers) {
      const bool alike = use->index == readers[0]->index && use->user->op_type == readers[0]->user->op_type;
      if (!alike)
        return No(fmt::format("{} '{}' reads the weight {} too", OpType(*use->user), Label(*use->user), ValueName(*value)));
    }
  }
  plan_.constants[reader] = {static_cast<size_t>(axis), places};
  return absl::OkStatus();
}

// The value's padding is what its readers ask for; what computes it is asked for the same.
absl::Status PaddingSearch::Settle(const Value* value, const std::vector<Asked>& asked) {
  // A weight that is an output stands as it is, and the padded one beside it.
  if (value->is_graph_output && !IsSmallConstant(Origin(facts_, value)))
    return No(fmt::format("{} is an output of the graph", ValueName(*value)));
  std::vector<std::vector<PaddedPart>> by_axis(asked[0].parts.size());
  std::set<PaddedReader> readers;
  for (const Asked& one : asked) {
    readers.insert(one.reader);
    for (size_t axis = 0; axis < by_axis.size(); ++axis) by_axis[axis].push_back(one.parts[axis]);
  }
  const bool constant = IsMadeOfConstant(facts_, value);
  std::vector<const Node*> beside;  // read other parts of it, as they were
  std::vector<Use> of_dims;
  for (const Use& use : LiveUses(*value)) {
    if (readers.contains({use.user, use.index})) continue;
    // A weight that is turned for several layers is turned once more.
    const PaddedReader& first = *readers.begin();
    if (constant && use.index == first.index && use.user->op_type == first.node->op_type) continue;
    if (use.index == 0 && use.user->graph == plan_.attention->graph && LeadsToDimsAlone(facts_, *use.user)) {
      of_dims.push_back(use);
      continue;
    }
    RETURN_IF_ERROR(AddOther(value, use, &by_axis, &beside));
  }
  ZeroPadding padding;
  for (size_t axis = 0; axis < by_axis.size(); ++axis) {
    ASSIGN_OR_RETURN(Places places, Together(*value, by_axis[axis], facts_.dims().Resolve(facts_.Of(value).shape[axis])));
    padding.push_back(std::move(places));
  }
  if (!IsPadded(padding)) return absl::OkStatus();
  plan_.padding[value] = padding;
  plan_.nodes.insert(beside.begin(), beside.end());
  for (const Use& use : of_dims) {
    RETURN_IF_ERROR(FollowDims(use, padding));
  }
  return absl::OkStatus();
}

// A reader that moves the value, of which nothing but dims is read: it moves the padded one, and the dims stay what they were.
absl::Status PaddingSearch::FollowDims(const Use& use, const ZeroPadding& padding) {
  const std::optional<ZeroPadding> moved = ResultOf(facts_, *use.user, use.index, padding);
  if (!moved.has_value())
    return No(fmt::format("{} '{}' reads {} too", OpType(*use.user), Label(*use.user), ValueName(*use.user->input(use.index))));
  plan_.padding[use.user->output()] = *moved;
  plan_.nodes.insert(use.user);
  for (const Use& next : LiveUses(*use.user->output())) {
    if (IsOp(*next.user, "Shape")) {
      plan_.shapes.push_back(next.user);
    } else {
      RETURN_IF_ERROR(FollowDims(next, *moved));
    }
  }
  return absl::OkStatus();
}

absl::Status PaddingSearch::AskOperands(const Node* node) {
  std::vector<ZeroPadding> outputs = plan_.OutputsOf(*node, facts_);
  if (std::none_of(outputs.begin(), outputs.end(), IsPadded)) return absl::OkStatus();
  if (plan_.nodes.size() >= kMostNodes) return No("the projections are too far away");
  plan_.nodes.insert(node);
  ASSIGN_OR_RETURN(const auto operands, OperandsOf(facts_, *node, outputs));
  for (const PaddedOperand& operand : operands) {
    RETURN_IF_ERROR(Ask({node, operand.index}, operand.parts));
  }
  return absl::OkStatus();
}

// A reader of the value that is not on the way to the attention.
absl::Status PaddingSearch::AddOther(const Value* value, const Use& use, std::vector<std::vector<PaddedPart>>* by_axis,
                                     std::vector<const Node*>* beside) {
  const absl::Status refused = No(fmt::format("{} '{}' reads {} too", OpType(*use.user), Label(*use.user), ValueName(*value)));
  if (use.user->graph != plan_.attention->graph) return refused;
  if (IsOp(*use.user, "Shape")) {
    plan_.shapes.push_back(use.user);
    return absl::OkStatus();
  }
  const bool cuts = KindOf(facts_, *use.user) == MovementKind::kPicks && use.user->output_count == 1;
  if (!cuts || use.index != 0 || facts_.Of(use.user->output()).rank() < 0) return refused;
  const ZeroPadding none(static_cast<size_t>(facts_.Of(use.user->output()).rank()));
  const auto operands = OperandsOf(facts_, *use.user, {&none, 1});
  if (!operands.ok() || (*operands)[0].parts.size() != by_axis->size()) return refused;
  for (size_t axis = 0; axis < by_axis->size(); ++axis) (*by_axis)[axis].push_back((*operands)[0].parts[axis]);
  beside->push_back(use.user);
  return absl::OkStatus();
}

// From the attention on to a product with a weight, which takes the zeros out again; without one a Slice does.
absl::Status PaddingSearch::FollowResult() {
  const Value* value = plan_.attention->output();
  const Fact& fact = facts_.Of(value);
  const Dim size = fact.rank() == 4 ? facts_.dims().Resolve(fact.shape[3]) : Dim();
  if (!size.is_number()) return No("the size of its result is not known");
  plan_.nodes.insert(plan_.attention);
  if (size.number() == width_) return absl::OkStatus();
  std::vector<std::pair<const Value*, ZeroPadding>> path = {
      {value, {{}, {}, {}, PlacesOfHeads(size.number(), size.number(), width_)}}};
  std::vector<const Node*> shapes;
  while (path.size() <= kMostSteps) {
    const auto& [at, padding] = path.back();
    const std::optional<Use> use = OneReader(*at, &shapes);
    if (!use.has_value()) break;
    const auto other = OtherFactorOf(facts_, *use->user, use->index, padding);
    if (other.has_value()) {
      if (!IsMadeOfConstant(facts_, use->user->input(other->index))) break;
      if (!Ask({use->user, other->index}, other->parts).ok()) break;
      for (const auto& [along, own] : path) {
        plan_.padding[along] = own;
        plan_.nodes.insert(along->producer);
      }
      plan_.nodes.insert(use->user);
      plan_.shapes.insert(plan_.shapes.end(), shapes.begin(), shapes.end());
      return absl::OkStatus();
    }
    std::optional<ZeroPadding> next = ResultOf(facts_, *use->user, use->index, padding);
    if (!next.has_value()) break;
    path.emplace_back(use->user->output(), *std::move(next));
  }
  plan_.sliced = true;
  return absl::OkStatus();
}

// The reader of the value, where it has one besides those of its dims.
std::optional<Use> PaddingSearch::OneReader(const Value& value, std::vector<const Node*>* shapes) const {
  std::optional<Use> one;
  if (value.is_graph_output) return std::nullopt;
  for (const Use& use : LiveUses(value)) {
    if (use.user->graph != plan_.attention->graph) return std::nullopt;
    if (IsOp(*use.user, "Shape")) {
      shapes->push_back(use.user);
    } else if (one.has_value()) {
      return std::nullopt;
    } else {
      one = use;
    }
  }
  return one;
}

}  // namespace ascend_fuse
