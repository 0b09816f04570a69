#include "passes/layout/moving_nodes.h"

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "fmt/format.h"
#include "ir/constant_tensor.h"
#include "ir/infer/movement_of.h"
#include "ir/movement/axis.h"
#include "ir/status_macros.h"
#include "passes/core/node_inserter.h"

namespace ascend_fuse {
namespace {

absl::Status No(std::string_view clause) { return absl::FailedPreconditionError(std::string(clause)); }

std::string Named(const Node& node) { return fmt::format("{} '{}'", OpType(node), Label(node)); }

// The numbers of a constant of type int64.
std::optional<std::vector<int64_t>> NumbersOf(const Value* value, const Facts& facts) {
  if (!IsGiven(value)) return std::nullopt;
  const Fact& fact = facts.Of(value);
  if (fact.elements == nullptr || fact.type != DataType::kInt64) return std::nullopt;
  std::vector<int64_t> numbers;
  for (const Dim dim : fact.elements->integers) {
    if (!dim.is_number()) return std::nullopt;
    numbers.push_back(dim.number());
  }
  return numbers;
}

// Concat and Split.
void ExchangeAxisAttribute(const Node& node, const ExchangedAxes& axes, NewNode* plan) {
  const int64_t axis = IntAttribute(node, "axis").value_or(0);
  const bool moves = axes.Exchanged(axis) != NormalizeAxis(axis, axes.rank);
  for (Attribute& attribute : plan->attributes) {
    if (attribute.name == "axis" && moves) attribute = Attribute::Int("axis", axes.Exchanged(axis));
  }
}

void ExchangeAxesOfSlice(const Node& node, const ExchangedAxes& axes, const Facts& facts, NodeInserter* inserter, NewNode* plan) {
  std::vector<int64_t> along = *NumbersOf(node.input(3), facts);
  for (int64_t& axis : along) axis = axes.Exchanged(axis);
  plan->inputs[3] = inserter->Numbers(along);
}

void ExchangeDimsOfExpand(const Node& node, const ExchangedAxes& axes, const Facts& facts, NodeInserter* inserter,
                          NewNode* plan) {
  std::vector<int64_t> order;
  for (int axis = 0; axis < axes.rank; ++axis) order.push_back(axes.Exchanged(axis));
  if (const auto dims = NumbersOf(node.input(1), facts); dims.has_value()) {
    std::vector<int64_t> exchanged;
    for (const int64_t axis : order) exchanged.push_back((*dims)[static_cast<size_t>(axis)]);
    plan->inputs[1] = inserter->Numbers(exchanged);
  } else {
    plan->inputs[1] = inserter->Op("Gather", {node.input(1), inserter->Numbers(order)}, {Attribute::Int("axis", 0)});
  }
}

// What a Reshape has as its dims, with those that are padded changed: a number, 0 for the dim at the same place of the input,
// or one -1 where no other dim can be 0, or where the model has it. Empty: there is no such list.
std::vector<int64_t> DimsToWrite(const Facts& facts, const Node& node, const ZeroPadding& out, const ZeroPadding& first) {
  const auto in = facts.Of(node.input(0)).shape;
  const auto shape = facts.Of(node.output()).shape;
  const auto taken_over = [&](size_t axis) { return axis < in.size() && axis < first.size() && first[axis] == out[axis]; };
  const auto numbers = IsGiven(node.input(1)) ? IntsParameter(facts, node, "shape", 1) : std::nullopt;
  std::vector<int64_t> written;
  int open = 0;
  bool positive = true;
  for (size_t axis = 0; axis < out.size(); ++axis) {
    const Dim dim = facts.dims().Resolve(shape[axis]);
    const int64_t size = static_cast<int64_t>(out[axis].size());
    if (numbers.has_value() && axis < numbers->size()) {
      const int64_t number = (*numbers)[axis];
      if (number == 0 && (!taken_over(axis) || IntAttribute(node, "allowzero").value_or(0) != 0)) return {};
      written.push_back(number <= 0 || out[axis].empty() ? number : size);
    } else if (!out[axis].empty()) {
      written.push_back(size);
    } else if (taken_over(axis) && facts.dims().Equal(in[axis], dim)) {
      written.push_back(0);
      positive = positive && facts.dims().AtLeast(dim, Dim::Of(1));
    } else if (dim.is_number()) {
      if (dim.number() < 1) return {};
      written.push_back(dim.number());
    } else {
      written.push_back(-1);
      ++open;
    }
  }
  return open == 0 || (open == 1 && positive) ? written : std::vector<int64_t>();
}

// The dims that a Reshape reads, with those that are padded changed.
absl::StatusOr<const Value*> DimsInput(const Node& node, const ZeroPadding& out, const ZeroPadding& first, Workspace& workspace) {
  const Facts& facts = workspace.facts();
  NodeInserter inserter(workspace, node);
  if (const auto dims = DimsToWrite(facts, node, out, first); !dims.empty()) return inserter.Numbers(dims);
  const Fact& given = facts.Of(node.input(1));
  if (given.elements == nullptr || given.elements->integers.size() != out.size()) {
    return No(fmt::format("the dims of {} are not known", Named(node)));
  }
  std::vector<int64_t> more(out.size(), 0);
  for (size_t axis = 0; axis < out.size(); ++axis) {
    const Dim element = facts.dims().Resolve(given.elements->integers[axis]);
    if (element.is(0)) return No(fmt::format("{} takes dims over", Named(node)));
    if (out[axis].empty() || element.is(-1)) continue;
    if (!element.is_number()) return No(fmt::format("the dims of {} are not known", Named(node)));
    more[axis] = static_cast<int64_t>(out[axis].size()) - element.number();
  }
  return inserter.Op("Add", {node.input(1), inserter.Numbers(more)});
}

// How many elements stand in front of what stood at `place`.
int64_t NewPlace(const Places& places, int64_t place) {
  if (places.empty()) return place;
  return std::find(places.begin(), places.end(), place) - places.begin();
}

void Erase(std::vector<Attribute>* attributes, std::string_view name) {
  std::erase_if(*attributes, [name](const Attribute& attribute) { return attribute.name == name; });
}

// The axis that an attribute names, where the first input is padded along it.
std::optional<size_t> PaddedAxis(const Node& node, const ZeroPadding& first) {
  const int64_t axis = NormalizeAxis(IntAttribute(node, "axis").value_or(0), static_cast<int64_t>(first.size()));
  if (axis < 0 || first[static_cast<size_t>(axis)].empty()) return std::nullopt;
  return static_cast<size_t>(axis);
}

// How many elements a result has along an axis when it is padded.
std::optional<int64_t> LengthAlong(const Facts& facts, const Value* result, const ZeroPadding& padding, size_t axis) {
  if (!padding[axis].empty()) return static_cast<int64_t>(padding[axis].size());
  const Dim length = facts.dims().Resolve(facts.Of(result).shape[axis]);
  return length.is_number() ? std::optional(length.number()) : std::nullopt;
}

// Starts and ends along the axes that are padded.
absl::Status PadSlice(const Node& node, const ZeroPadding& out, const ZeroPadding& first, const Facts& facts,
                      NodeInserter* inserter, NewNode* plan) {
  auto starts = IntsParameter(facts, node, "starts", 1);
  auto ends = IntsParameter(facts, node, "ends", 2);
  auto axes = IntsParameter(facts, node, "axes", 3);
  const auto steps = IntsParameter(facts, node, "steps", 4);
  const Movement* movement = facts.MovementOf(node.output());
  const MovedPart* part = movement != nullptr ? movement->only() : nullptr;
  const auto unknown = [&] { return No(fmt::format("{} cuts at places that are not known", Named(node))); };
  if (part == nullptr || !part->known || part->axes.size() != first.size()) return unknown();
  if (!axes.has_value()) {
    if (!starts.has_value()) return unknown();
    axes.emplace(starts->size());
    std::iota(axes->begin(), axes->end(), 0);
  }
  bool padded = false;
  for (size_t i = 0; i < axes->size(); ++i) {
    int64_t& axis = (*axes)[i];
    axis = NormalizeAxis(axis, static_cast<int64_t>(first.size()));
    if (axis < 0) return unknown();
    const auto along = static_cast<size_t>(axis);
    if (first[along].empty()) continue;
    padded = true;
    const AxisSource& source = part->axes[along];
    const std::optional<int64_t> length = LengthAlong(facts, node.output(), out, along);
    const bool one_by_one = source.kind == AxisSource::Kind::kPlace && source.step == 1 && source.start.is_number();
    if (!one_by_one || !length.has_value()) return unknown();
    if (!starts.has_value() || !ends.has_value() || i >= starts->size() || i >= ends->size()) return unknown();
    (*starts)[i] = NewPlace(first[along], source.start.number());
    (*ends)[i] = (*starts)[i] + *length;
  }
  if (!padded) return absl::OkStatus();
  if (node.input_count < 3) {  // before opset 10
    for (const auto& [name, numbers] : {std::pair("starts", *starts), std::pair("ends", *ends)}) {
      Erase(&plan->attributes, name);
      plan->attributes.push_back(Attribute::Ints(name, numbers));
    }
    return absl::OkStatus();
  }
  if (node.input(4) != nullptr && !steps.has_value()) return unknown();
  plan->inputs[1] = inserter->Numbers(*starts);
  plan->inputs[2] = inserter->Numbers(*ends);
  // These have one type.
  if (node.input(3) != nullptr) plan->inputs[3] = inserter->Numbers(*axes);
  if (node.input(4) != nullptr) plan->inputs[4] = inserter->Numbers(*steps);
  return absl::OkStatus();
}

// The lengths of all parts.
absl::Status PadSplit(const Node& node, absl::Span<const ZeroPadding> outputs, size_t axis, const Facts& facts,
                      NodeInserter* inserter, NewNode* plan) {
  std::vector<int64_t> lengths;
  for (size_t i = 0; i < outputs.size(); ++i) {
    const std::optional<int64_t> length = LengthAlong(facts, node.output(i), outputs[i], axis);
    if (!length.has_value()) return No(fmt::format("{} cuts at places that are not known", Named(node)));
    lengths.push_back(*length);
  }
  Erase(&plan->attributes, "num_outputs");
  Erase(&plan->attributes, "split");
  plan->inputs.resize(1);
  inserter->SetLengths(plan, lengths);
  return absl::OkStatus();
}

}  // namespace

bool IsGiven(const Value* value) { return value != nullptr && IsWrittenConstant(*value); }

bool CanExchangeAxes(const Node& node, const Facts& facts) {
  if (node.domain != NameId::kEmpty) return false;
  if (IsOp(node, "Concat") || IsOp(node, "Split")) return true;
  if (IsOp(node, "Slice")) return NumbersOf(node.input(3), facts).has_value();
  if (!IsOp(node, "Expand")) return false;
  const Fact& dims = facts.Of(node.input(1));
  return dims.rank() == 1 && dims.shape[0].is(facts.Of(node.output()).rank());
}

void ExchangeAxes(const Node& node, const ExchangedAxes& axes, Workspace& workspace, NewNode* plan) {
  NodeInserter inserter(workspace, node);
  if (IsOp(node, "Concat") || IsOp(node, "Split")) ExchangeAxisAttribute(node, axes, plan);
  if (IsOp(node, "Slice")) ExchangeAxesOfSlice(node, axes, workspace.facts(), &inserter, plan);
  if (IsOp(node, "Expand")) ExchangeDimsOfExpand(node, axes, workspace.facts(), &inserter, plan);
}

bool CanBePadded(const Node& node) {
  if (node.domain != NameId::kEmpty) return false;
  return IsOp(node, "Transpose") || IsOp(node, "Concat") || IsOp(node, "Slice") || IsOp(node, "Split") || IsOp(node, "Gather");
}

absl::StatusOr<NewNode> PaddedNode(const Node& node, absl::Span<const ZeroPadding> outputs, const ZeroPadding& first,
                                   Workspace& workspace) {
  NewNode plan = PlanOf(node);
  NodeInserter inserter(workspace, node);
  const Facts& facts = workspace.facts();
  if (IsOp(node, "Reshape")) {
    ASSIGN_OR_RETURN(plan.inputs[1], DimsInput(node, outputs[0], first, workspace));
    Erase(&plan.attributes, "allowzero");
  } else if (IsOp(node, "Slice")) {
    RETURN_IF_ERROR(PadSlice(node, outputs[0], first, facts, &inserter, &plan));
  } else if (IsOp(node, "Split")) {
    if (const auto axis = PaddedAxis(node, first); axis.has_value()) {
      RETURN_IF_ERROR(PadSplit(node, outputs, *axis, facts, &inserter, &plan));
    }
  } else if (IsOp(node, "Gather") && PaddedAxis(node, first).has_value()) {
    return No(fmt::format("{} takes single places of what is padded", Named(node)));
  }
  return plan;
}

}  // namespace ascend_fuse
