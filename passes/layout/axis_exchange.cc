#include "passes/layout/axis_exchange.h"

#include <algorithm>
#include <string>
#include <utility>

#include "fmt/format.h"
#include "ir/infer/movement_of.h"
#include "ir/movement/axis.h"
#include "ir/schema.h"
#include "passes/layout/moving_nodes.h"
#include "patterns/operators/declarations.h"

namespace ascend_fuse {
namespace {

bool IsRead(const Value* value) { return value != nullptr && (value->is_graph_output || !LiveUses(*value).empty()); }

// The name of the dims that a shape begins with, "L" of [...L, D]; empty where it begins with others.
std::string_view LeadingDims(const OperandPattern& operand) {
  const auto& axes = operand.shape.axes;
  if (!operand.has_shape || axes.empty() || axes[0].kind != AxisPattern::Kind::kEllipsis) return "";
  return axes[0].ellipsis;
}

// One node that is to be turned.
class ExchangeOfNode {
 public:
  ExchangeOfNode(const Node& node, const Facts& facts, const ExchangedAxes& axes) : node_(node), facts_(facts), axes_(axes) {}

  std::optional<Exchangeable> Run() const {
    if (Domain(node_) == "npu") return AscendNode();
    const Schema* schema = SchemaOf(node_);
    if (schema == nullptr || node_.domain != NameId::kEmpty || node_.subgraph_count > 0) return std::nullopt;
    if (schema->elementwise) return Elementwise();
    if (CanExchangeAxes(node_, facts_)) return Moved();
    using How = std::optional<Exchangeable> (ExchangeOfNode::*)() const;
    static constexpr std::pair<std::string_view, How> kOperators[] = {
        {"LayerNormalization", &ExchangeOfNode::Normalized},
        {"RMSNormalization", &ExchangeOfNode::Normalized},
        {"MatMul", &ExchangeOfNode::Linear},
        {"Gemm", &ExchangeOfNode::Linear},
    };
    for (const auto& [op_type, how] : kOperators) {
      if (OpType(node_) == op_type) return (this->*how)();
    }
    return std::nullopt;
  }

 private:
  bool HasAxes(const Value* value) const { return value != nullptr && facts_.Of(value).rank() == axes_.rank; }

  // Whether turning leaves what broadcasts to the axes as it is.
  bool IsSameExchanged(const Value* value) const {
    const Fact& fact = facts_.Of(value);
    if (!fact.has_rank || fact.rank() > axes_.rank) return false;
    for (const int axis : {axes_.first, axes_.second}) {
      const int own = axis - axes_.rank + fact.rank();
      if (own >= 0 && !fact.shape[static_cast<size_t>(own)].is(1)) return false;
    }
    return true;
  }

  // The first output alone, where it has the axes.
  std::optional<Exchangeable> WithOneResult(std::vector<size_t> operands) const {
    if (!HasAxes(node_.output())) return std::nullopt;
    for (size_t i = 1; i < node_.output_count; ++i) {
      if (IsRead(node_.output(i))) return std::nullopt;
    }
    return Exchangeable{std::move(operands), {node_.output()}};
  }

  // Likewise, and of the operands the first one.
  std::optional<Exchangeable> WithOneOperand() const { return HasAxes(node_.input(0)) ? WithOneResult({0}) : std::nullopt; }

  std::optional<Exchangeable> Elementwise() const {
    std::vector<size_t> operands;
    for (size_t i = 0; i < node_.input_count; ++i) {
      const Value* input = node_.input(i);
      if (input == nullptr || IsSameExchanged(input)) continue;
      if (!HasAxes(input)) return std::nullopt;
      operands.push_back(i);
    }
    if (operands.empty()) return std::nullopt;
    return WithOneResult(std::move(operands));
  }

  // Whether the elements of an operand stand in the result along the axes along which they stood. Where one axis is two, nothing
  // moves along it.
  bool StaysAlongAxes(const MovedPart& part, const Value& result) const {
    const Value* operand = node_.input(part.operand);
    if (!part.known || part.viewed() || !HasAxes(operand) || part.axes.size() != static_cast<size_t>(axes_.rank)) return false;
    for (int axis = 0; axis < axes_.rank; ++axis) {
      const AxisSource& source = part.axes[static_cast<size_t>(axis)];
      if (source.kind == AxisSource::Kind::kRead || (!source.IsOneElement() && source.axis != axis)) return false;
    }
    if (!axes_.merged()) return true;
    const auto along = static_cast<size_t>(axes_.first);
    return part.axes[along].IsPlace(axes_.first) &&
           facts_.dims().Equal(facts_.Of(operand).shape[along], facts_.Of(&result).shape[along]);
  }

  // One that moves elements along axes, whichever these are.
  std::optional<Exchangeable> Moved() const {
    Exchangeable exchangeable;
    for (const Value* output : node_.outputs()) {
      const Movement* movement = output != nullptr ? facts_.MovementOf(output) : nullptr;
      if (movement == nullptr || !HasAxes(output)) return std::nullopt;
      for (const MovedPart& part : movement->parts) {
        if (!StaysAlongAxes(part, *output)) return std::nullopt;
        std::vector<size_t>& operands = exchangeable.operands;
        if (operands.empty() || operands.back() != part.operand) operands.push_back(part.operand);
      }
      exchangeable.results.push_back(output);
    }
    return exchangeable;
  }

  std::optional<Exchangeable> Normalized() const {
    const int64_t axis = IntAttribute(node_, "axis").value_or(-1);
    if ((axis != -1 && axis != axes_.rank - 1) || axes_.second == axes_.rank - 1) return std::nullopt;
    for (size_t i = 1; i < node_.input_count; ++i) {
      if (node_.input(i) != nullptr && facts_.Of(node_.input(i)).rank() != 1) return std::nullopt;
    }
    return WithOneOperand();
  }

  // A product with one matrix computes each row from a row of x, whatever their order.
  std::optional<Exchangeable> Linear() const {
    if (axes_.second == axes_.rank - 1 || facts_.Of(node_.input(1)).rank() != 2) return std::nullopt;
    if (IsOp(node_, "Gemm")) {
      if (IntAttribute(node_, "transA").value_or(0) != 0) return std::nullopt;
      if (node_.input(2) != nullptr && !IsSameExchanged(node_.input(2))) return std::nullopt;
    }
    return WithOneOperand();
  }

  std::optional<Exchangeable> AscendNode() const {
    const DeclaredOperator* declared = FindDeclaredOperator(Domain(node_), OpType(node_));
    if (declared == nullptr) return std::nullopt;
    return declared->along_last_axis > 0 ? AlongLastAxis(declared->along_last_axis) : RowwiseNode(*declared);
  }

  // One that computes along the last axis of its first `count` inputs.
  std::optional<Exchangeable> AlongLastAxis(size_t count) const {
    if (axes_.second == axes_.rank - 1) return std::nullopt;
    std::vector<size_t> operands;
    for (size_t i = 0; i < node_.input_count; ++i) {
      const Value* input = node_.input(i);
      if (i < count && !HasAxes(input)) return std::nullopt;
      if (i < count) operands.push_back(i);
      if (i >= count && input != nullptr && facts_.Of(input).rank() != 1) return std::nullopt;
    }
    return WithOneResult(std::move(operands));
  }

  // One whose declaration says that it computes along dims after those that its operands and results begin with,
  // (T[...L, ...D] x, _[...D] gamma) => (T[...L, ...D] y): whatever stands along the first ones.
  std::optional<Exchangeable> RowwiseNode(const DeclaredOperator& declared) const {
    if (declared.rows.size() != 1) return std::nullopt;
    const SignaturePattern& signature = declared.rows[0].signature;
    if (signature.inputs.size() < node_.input_count || signature.outputs.size() < node_.output_count) return std::nullopt;
    const std::string_view rows = signature.inputs.empty() ? "" : LeadingDims(signature.inputs[0]);
    if (rows.empty()) return std::nullopt;
    int behind = 0;  // dims after the rows
    for (size_t i = 1; i < signature.inputs[0].shape.axes.size(); ++i) {
      const int width = WidthOf(signature, signature.inputs[0].shape.axes[i]);
      if (width < 0) return std::nullopt;
      behind += width;
    }
    if (axes_.second >= axes_.rank - behind) return std::nullopt;
    Exchangeable exchangeable;
    for (size_t i = 0; i < node_.input_count; ++i) {
      if (node_.input(i) == nullptr) continue;
      const bool has_rows = LeadingDims(signature.inputs[i]) == rows;
      if (has_rows ? !HasAxes(node_.input(i)) : !IsOfAllRows(signature.inputs[i])) return std::nullopt;
      if (has_rows) exchangeable.operands.push_back(i);
    }
    for (size_t i = 0; i < node_.output_count; ++i) {
      if (!IsRead(node_.output(i))) continue;
      if (LeadingDims(signature.outputs[i]) != rows || !HasAxes(node_.output(i))) return std::nullopt;
      exchangeable.results.push_back(node_.output(i));
    }
    if (exchangeable.results.empty() || exchangeable.results[0] != node_.output()) return std::nullopt;
    return exchangeable;
  }

  // An input whose dims are all named and none of the rows: weights.
  static bool IsOfAllRows(const OperandPattern& operand) {
    if (!operand.has_shape) return false;
    return std::all_of(operand.shape.axes.begin(), operand.shape.axes.end(),
                       [](const AxisPattern& axis) { return axis.kind != AxisPattern::Kind::kAny; });
  }

  // How many dims an axis of a declaration stands for: "...D" as many as the input has whose dims these are; -1 where
  // the operand has no such axis.
  int WidthOf(const SignaturePattern& signature, const AxisPattern& axis) const {
    if (axis.kind != AxisPattern::Kind::kEllipsis) return 1;
    for (size_t i = 0; i < node_.input_count; ++i) {
      const auto& axes = signature.inputs[i].shape.axes;
      if (axes.size() == 1 && LeadingDims(signature.inputs[i]) == axis.ellipsis && node_.input(i) != nullptr) {
        return facts_.Of(node_.input(i)).rank();
      }
    }
    return -1;
  }

  const Node& node_;
  const Facts& facts_;
  const ExchangedAxes& axes_;
};

}  // namespace

int64_t ExchangedAxes::Exchanged(int64_t axis) const {
  axis = NormalizeAxis(axis, rank);
  return axis == first ? second : axis == second ? first : axis;
}

bool ReadsDims(const Node& node) {
  return IsOp(node, "Shape") && !IntAttribute(node, "start").has_value() && !IntAttribute(node, "end").has_value();
}

bool ExchangesHeadsAndTokens(const Facts& facts, const Node& node) {
  return PermutedAxes(facts, node.output()) == PermutationOfAxes{0, 2, 1, 3};
}

std::optional<Exchangeable> HowToExchange(const Node& node, const Facts& facts, const ExchangedAxes& axes) {
  return ExchangeOfNode(node, facts, axes).Run();
}

NewNode Exchanged(const Node& node, Workspace& workspace, const ExchangedAxes& axes) {
  NewNode plan = PlanOf(node);
  if (!plan.domain.empty()) return plan;
  plan.keep_name = false;  // it is another node than that of the file
  if (!plan.name.empty()) plan.name += "_turned";
  if (CanExchangeAxes(node, workspace.facts())) ExchangeAxes(node, axes, workspace, &plan);
  return plan;
}

absl::StatusOr<std::vector<ExchangedResult>> WriteExchanged(const Node& node, const NewNode& plan,
                                                            absl::Span<const Value* const> results,
                                                            const absl::flat_hash_map<const Value*, const Value*>& existing,
                                                            std::string_view name, const std::optional<ExchangedAxes>& axes,
                                                            Workspace& workspace) {
  Facts& facts = workspace.facts();
  size_t output_count = 0;
  std::vector<TakenOutput> taken;
  std::vector<size_t> numbers;  // of the results among the outputs
  std::vector<Fact> expected;
  for (const Value* result : results) {
    numbers.push_back(result->output_index);
    output_count = std::max(output_count, numbers.back() + 1);
    if (const auto known = existing.find(result); known != existing.end()) taken.push_back({numbers.back(), known->second});
    Fact fact = facts.Of(result);
    if (axes.has_value() && fact.has_rank) {
      std::vector<Dim> shape(fact.shape.begin(), fact.shape.end());
      if (!axes->merged()) std::swap(shape[static_cast<size_t>(axes->first)], shape[static_cast<size_t>(axes->second)]);
      fact.shape = facts.arena().Copy(absl::Span<const Dim>(shape));
    }
    expected.push_back(fact);
  }
  Rewriter& rewriter = workspace.rewriter();
  const Node* made =
      taken.empty() ? rewriter.Insert(plan, output_count, node.graph, name) : rewriter.Replace(taken, output_count, plan);
  workspace.Refresh(made);
  std::vector<ExchangedResult> pairs;
  for (size_t i = 0; i < results.size(); ++i) {
    pairs.push_back({results[i], made->output(numbers[i])});
    const Fact& computed = facts.Of(pairs[i].now);
    if (computed.type == expected[i].type && CanBeOneShape(computed, expected[i], facts.dims())) continue;
    return absl::InternalError(
        fmt::format("{} '{}' computes {} in place of '{}', which is {}{}", OpType(*made), NodeName(*made),
                    facts.Describe(pairs[i].now), ValueName(*results[i]), facts.Describe(results[i]),
                    axes.has_value() ? fmt::format(" with axes {} and {} exchanged", axes->first, axes->second) : ""));
  }
  return pairs;
}

}  // namespace ascend_fuse
