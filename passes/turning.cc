#include "passes/turning.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "ir/schema.h"
#include "passes/beside.h"

namespace ascend_fuse {
namespace {

constexpr int kAxes = 4;

// Ascend nodes whose first inputs have four axes, and which compute along the last one.
constexpr std::pair<std::string_view, size_t> kAscendNodes[] = {
    {"NPURotaryMul", 3}, {"NPURotaryPositionEmbedding", 3},
    {"NPURmsNorm", 1},   {"NPURmsNormWithEpsilon", 1},      {"NPULayerNormV4", 1},
};

bool HasFourAxes(const Value* value, const Facts& facts) { return value != nullptr && facts.Of(value).rank() == kAxes; }

bool IsRead(const Value* value) { return value != nullptr && (value->is_graph_output || !LiveUses(*value).empty()); }

// Whether turning leaves what broadcasts to four axes as it is.
bool IsSameTurned(const Value* value, const Facts& facts) {
  const Fact& fact = facts.Of(value);
  if (!fact.has_rank || fact.rank() > kAxes) return false;
  for (int axis = 1; axis <= 2; ++axis) {
    const int own = axis - kAxes + fact.rank();
    if (own >= 0 && !fact.shape[static_cast<size_t>(own)].is(1)) return false;
  }
  return true;
}

// The first output alone, where it has four axes.
std::optional<Turnable> WithOneResult(const Node& node, std::vector<size_t> operands, const Facts& facts) {
  if (!HasFourAxes(node.output(), facts)) return std::nullopt;
  for (size_t i = 1; i < node.output_count; ++i) {
    if (IsRead(node.output(i))) return std::nullopt;
  }
  return Turnable{std::move(operands), {node.output()}};
}

std::optional<Turnable> Elementwise(const Node& node, const Facts& facts) {
  std::vector<size_t> operands;
  for (size_t i = 0; i < node.input_count; ++i) {
    const Value* input = node.input(i);
    if (input == nullptr || IsSameTurned(input, facts)) continue;
    if (!HasFourAxes(input, facts)) return std::nullopt;
    operands.push_back(i);
  }
  if (operands.empty()) return std::nullopt;
  return WithOneResult(node, std::move(operands), facts);
}

std::optional<Turnable> AscendNode(const Node& node, const Facts& facts) {
  for (const auto& [op_type, count] : kAscendNodes) {
    if (OpType(node) != op_type) continue;
    std::vector<size_t> operands;
    for (size_t i = 0; i < node.input_count; ++i) {
      const Value* input = node.input(i);
      if (i < count && !HasFourAxes(input, facts)) return std::nullopt;
      if (i < count) operands.push_back(i);
      if (i >= count && input != nullptr && facts.Of(input).rank() != 1) return std::nullopt;
    }
    return WithOneResult(node, std::move(operands), facts);
  }
  return std::nullopt;
}

// The numbers of a constant of type int64.
std::optional<std::vector<int64_t>> NumbersOf(const Value* value, const Facts& facts) {
  if (value == nullptr) return std::nullopt;
  const bool constant = value->IsConstant() || (value->producer != nullptr && IsOp(*value->producer, "Constant"));
  if (!constant) return std::nullopt;
  const Fact& fact = facts.Of(value);
  if (fact.elements == nullptr || fact.type != DataType::kInt64) return std::nullopt;
  std::vector<int64_t> numbers;
  for (const Dim dim : fact.elements->integers) {
    if (!dim.is_number()) return std::nullopt;
    numbers.push_back(dim.number());
  }
  return numbers;
}

int64_t TurnedAxis(int64_t axis) {
  if (axis < 0) axis += kAxes;
  return axis == 1 ? 2 : axis == 2 ? 1 : axis;
}

}  // namespace

bool IsTurn(const Node& node) {
  return IsOp(node, "Transpose") && IntsAttribute(node, "perm") == std::vector<int64_t>{0, 2, 1, 3};
}

std::optional<Turnable> HowToTurn(const Node& node, const Facts& facts) {
  if (Domain(node) == "npu") return AscendNode(node, facts);
  const Schema* schema = SchemaOf(node);
  if (schema == nullptr || node.domain != NameId::kEmpty || node.subgraph_count > 0) return std::nullopt;
  if (schema->elementwise) return Elementwise(node, facts);
  const std::string_view op = OpType(node);
  const bool first_has = HasFourAxes(node.input(0), facts);
  if (op == "Concat") {
    std::vector<size_t> operands;
    for (size_t i = 0; i < node.input_count; ++i) {
      if (!HasFourAxes(node.input(i), facts)) return std::nullopt;
      operands.push_back(i);
    }
    return WithOneResult(node, std::move(operands), facts);
  }
  if (op == "Split" && first_has) {
    Turnable turnable = {{0}, {}};
    for (Value* output : node.outputs()) {
      if (!HasFourAxes(output, facts)) return std::nullopt;
      turnable.results.push_back(output);
    }
    return turnable;
  }
  if (op == "Slice" && first_has) {
    if (!NumbersOf(node.input(3), facts).has_value()) return std::nullopt;
    return WithOneResult(node, {0}, facts);
  }
  if (op == "Expand" && first_has) {
    const Fact& dims = facts.Of(node.input(1));
    if (dims.rank() != 1 || !dims.shape[0].is(4)) return std::nullopt;
    return WithOneResult(node, {0}, facts);
  }
  const bool last_axis = op == "LayerNormalization" || op == "RMSNormalization";
  if (last_axis && first_has) {
    const int64_t axis = IntAttribute(node, "axis").value_or(-1);
    if (axis != -1 && axis != 3) return std::nullopt;
    for (size_t i = 1; i < node.input_count; ++i) {
      if (node.input(i) != nullptr && facts.Of(node.input(i)).rank() != 1) return std::nullopt;
    }
    return WithOneResult(node, {0}, facts);
  }
  return std::nullopt;
}

NewNode Turned(const Node& node, Workspace& workspace) {
  NewNode plan = PlanOf(node);
  if (!plan.domain.empty()) return plan;
  plan.keep_name = false;  // it is another node than that of the file
  if (!plan.name.empty()) plan.name += "_turned";
  Beside beside(workspace, node);
  const Facts& facts = workspace.facts();
  if (plan.op_type == "Concat" || plan.op_type == "Split") {
    const int64_t axis = IntAttribute(node, "axis").value_or(0);
    for (Attribute& attribute : plan.attributes) {
      const bool moves = TurnedAxis(axis) != (axis < 0 ? axis + kAxes : axis);
      if (attribute.name == "axis" && moves) attribute = Attribute::Int("axis", TurnedAxis(axis));
    }
  } else if (plan.op_type == "Slice") {
    std::vector<int64_t> axes = *NumbersOf(node.input(3), facts);
    for (int64_t& axis : axes) axis = TurnedAxis(axis);
    plan.inputs[3] = beside.Numbers(axes);
  } else if (plan.op_type == "Expand") {
    if (auto dims = NumbersOf(node.input(1), facts); dims.has_value()) {
      std::swap((*dims)[1], (*dims)[2]);
      plan.inputs[1] = beside.Numbers(*dims);
    } else {
      plan.inputs[1] = beside.Op("Gather", {node.input(1), beside.Numbers({0, 2, 1, 3})}, {Attribute::Int("axis", 0)});
    }
  }
  return plan;
}

}  // namespace ascend_fuse
