#include "passes/quantised/code_writer.h"

#include <algorithm>
#include <string>

#include "fmt/format.h"
#include "ir/constant_tensor.h"
#include "ir/movement/axis.h"
#include "ir/status_macros.h"
#include "passes/quantised/never_negative.h"

namespace ascend_fuse {
void CodeWriter::TakeCodes(const Value* codes, const Value* raw) {
  TakeOver(codes, "Cast", {raw}, {Attribute::Int("to", static_cast<int64_t>(Of(codes).type))});
  Keep(codes, {raw, nullptr, nullptr, nullptr});
}

const Value* CodeWriter::KeepCodes(const Node& at, const Value* raw, DataType type) {
  const Value* const codes = Op(at, "Cast", {raw}, {Attribute::Int("to", static_cast<int64_t>(type))});
  Keep(codes, {raw, nullptr, nullptr, nullptr});
  return codes;
}

void CodeWriter::KnowScale(const Value* codes, const Value* scale, const Value* zero, const Value* real,
                           const Value* zero_number) {
  const auto kept = kept_.find(codes);
  if (kept == kept_.end()) return;
  kept->second.scale = kept->second.source_scale = scale;
  kept->second.source = real;
  kept->second.source_zero = zero_number;
  if (!rounds()) kept->second = {nullptr, real, scale, zero};
}

const QuantisedTensor* CodeWriter::CodesOf(const Value* real) const {
  const auto found = reals_.find(real);
  return found == reals_.end() ? nullptr : &found->second;
}

KeptCodes* CodeWriter::FindKept(const Value* codes) {
  const auto found = kept_.find(codes);
  return found == kept_.end() ? nullptr : &found->second;
}

void CodeWriter::Keep(const Value* codes, const KeptCodes& kept) {
  kept_[codes] = kept;
  noted_.push_back(codes);
}

void CodeWriter::Forget(size_t since) {
  for (size_t i = since; i < noted_.size(); ++i) kept_.erase(noted_[i]);
  noted_.resize(since);
}

absl::StatusOr<const Value*> CodeWriter::FloatOf(const Node& at, const Value* integers) {
  if (const auto kept = kept_.find(integers); kept != kept_.end() && kept->second.centered != nullptr) {
    const KeptCodes of = kept->second;
    if (of.zero == nullptr || OneNumber(of.zero) == 0) return of.centered;
    ASSIGN_OR_RETURN(const Value* zero, FloatOf(at, of.zero));
    return Op(at, "Add", {of.centered, zero});
  }
  if (ConstantTensor(*integers).has_value()) return RealOfConstant(workspace(), at, {integers}, DataType::kFloat);
  return Cast(at, integers, DataType::kFloat);
}

absl::StatusOr<const Value*> CodeWriter::Along(const Node& at, const Value* factor, int64_t axis, int64_t rank) {
  if (const auto number = OneNumber(factor); number.has_value()) return Number(at, *number);
  const Fact fact = Of(factor);
  const bool is_float = IsFloat(fact.type);
  if (!fact.has_rank) return NotWritten(fmt::format("the shape of {} is not known", ValueName(*factor)));
  const Value* wide = factor;
  if (is_float) {
    wide = Cast(at, factor, DataType::kFloat);
  } else {
    ASSIGN_OR_RETURN(wide, FloatOf(at, factor));
  }
  if (fact.rank() == 0) return wide;
  const int64_t place = NormalizeAxis(axis, static_cast<int>(rank));
  if (fact.rank() != 1 || place < 0) {
    return NotWritten(fmt::format("{} is {}, neither one number nor one for each place of an axis", ValueName(*factor),
                                  workspace().facts().Describe(factor)));
  }
  if (fact.shape[0].is(1))
    return rank > 0 ? absl::StatusOr<const Value*>(wide) : NodeInserter(workspace(), at).Squeeze(wide, {0});
  std::vector<int64_t> axes;
  for (int64_t i = 1; i < rank - place; ++i) axes.push_back(i);
  if (axes.empty()) return wide;
  const std::optional<Tensor> tensor = ConstantTensor(*wide);
  if (!tensor.has_value()) return NodeInserter(workspace(), at).Unsqueeze(wide, axes);
  ASSIGN_OR_RETURN(const std::string bytes, ReadBytes(workspace().model(), *tensor, kMostFactors));
  std::vector<int64_t> dims(axes.size() + 1, 1);
  dims[0] = tensor->dims[0];
  const Value* value =
      workspace().rewriter().Constant(at.graph, DataType::kFloat, dims, bytes, std::string(ValueName(*factor)) + "_along");
  InferConstant(value, &workspace().facts());
  return value;
}

absl::StatusOr<const Value*> CodeWriter::Centered(const Node& at, const QuantisedTensor& of) {
  if (const auto kept = kept_.find(of.codes); kept != kept_.end() && kept->second.centered != nullptr) {
    if (SameFactor(kept->second.zero, of.zero)) return kept->second.centered;
  }
  const bool constant = ConstantTensor(*of.codes).has_value() && (of.zero == nullptr || ConstantTensor(*of.zero).has_value());
  if (constant) return RealOfConstant(workspace(), at, {of.codes, nullptr, of.zero, of.axis, of.block}, DataType::kFloat);
  ASSIGN_OR_RETURN(const Value* raw, FloatOf(at, of.codes));
  if (of.zero == nullptr || OneNumber(of.zero) == 0) return raw;
  if (!Of(of.codes).has_rank) return NotWritten(fmt::format("the shape of {} is not known", ValueName(*of.codes)));
  ASSIGN_OR_RETURN(const Value* zero, Along(at, of.zero, of.axis, Rank(of.codes)));
  return Op(at, "Sub", {raw, zero});
}

absl::StatusOr<const Value*> CodeWriter::Real(const Node& at, const QuantisedTensor& of, DataType type) {
  if (type == DataType::kUndefined) type = Of(of.scale).type;
  if (!IsFloat(type)) return NotWritten(fmt::format("the type of {} is not known", ValueName(*of.scale)));
  const auto is_constant = [](const Value* value) { return value == nullptr || ConstantTensor(*value).has_value(); };
  if (is_constant(of.codes) && is_constant(of.scale) && is_constant(of.zero)) return RealOfConstant(workspace(), at, of, type);
  if (of.block > 0) return NotWritten("what is quantised in blocks is not constant");
  if (const auto kept = kept_.find(of.codes); kept != kept_.end() && kept->second.real != nullptr) {
    const KeptCodes& as = kept->second;
    if (SameFactor(as.scale, of.scale) && SameFactor(as.zero, of.zero)) return Cast(at, as.real, type);
  }
  ASSIGN_OR_RETURN(const Value* centered, Centered(at, of));
  if (!Of(of.codes).has_rank) return NotWritten(fmt::format("the shape of {} is not known", ValueName(*of.codes)));
  ASSIGN_OR_RETURN(const Value* scale, Along(at, of.scale, of.axis, Rank(of.codes)));
  return Cast(at, Op(at, "Mul", {centered, scale}), type);
}

// Without rounding: x, within the numbers that the codes have where these begin or end at zero. There a Relu or a Clip may
// have been left out, because saturation does its work.
absl::StatusOr<const Value*> CodeWriter::Saturated(const Node& at, const Value* x, const QuantisedTensor& as, DataType type) {
  const auto range = CodeRange(type);
  const auto zero = as.zero == nullptr ? std::optional<double>(0) : OneNumber(as.zero);
  const auto scale = OneNumber(as.scale);
  if (!zero.has_value() || !scale.has_value() || (*zero != range->first && *zero != range->second)) return x;
  if (*zero == range->first && IsNeverNegative(workspace().facts(), x, [this](const Value* value) { return OneNumber(value); }))
    return x;
  const DataType float_type = Of(x).type;
  return Op(
      at, "Clip",
      {x, Number(at, (range->first - *zero) * *scale, float_type), Number(at, (range->second - *zero) * *scale, float_type)});
}

absl::Status CodeWriter::Quantize(const Node* node, const Value* x, const QuantisedTensor& as) {
  const Value* codes = node->output();
  const DataType type = Of(codes).type;
  const auto range = CodeRange(type);
  if (!range.has_value()) return NotWritten(fmt::format("its codes are {}", DataTypeName(type)));
  if (workspace().model().OpsetVersion() < 11)
    return NotWritten("Round and Clip with computed bounds are operators from opset 11 on");
  if (!Of(x).has_rank) return NotWritten(fmt::format("the shape of {} is not known", ValueName(*x)));
  const int64_t rank = Rank(x);
  const Value* real = nullptr;
  if (!rounds() && IsFloat(Of(x).type)) {
    ASSIGN_OR_RETURN(real, Saturated(*node, x, as, type));
  }
  const Value* wide = Cast(*node, x, DataType::kFloat);
  ASSIGN_OR_RETURN(const Value* scale, Along(*node, as.scale, as.axis, rank));
  const Value* rounded = Op(*node, "Round", {Op(*node, "Div", {wide, scale})});
  const auto zero = as.zero == nullptr ? std::optional<double>(0) : OneNumber(as.zero);
  KeptCodes kept;
  const Value* raw = nullptr;
  if (zero.has_value()) {
    kept.centered = Op(*node, "Clip", {rounded, Number(*node, range->first - *zero), Number(*node, range->second - *zero)});
    kept.zero = as.zero;
    if (OneNumber(as.scale).has_value()) {
      kept.source = x;
      kept.source_scale = as.scale;
    }
    raw = *zero == 0 ? kept.centered : Op(*node, "Add", {kept.centered, Number(*node, *zero)});
  } else {
    ASSIGN_OR_RETURN(const Value* offset, Along(*node, as.zero, as.axis, rank));
    raw = Op(*node, "Clip", {Op(*node, "Add", {rounded, offset}), Number(*node, range->first), Number(*node, range->second)});
    kept.centered = raw;
  }
  if (real != nullptr) kept = {nullptr, real, as.scale, as.zero};
  Replace(node, "Cast", {raw}, {Attribute::Int("to", static_cast<int64_t>(type))});
  Keep(codes, kept);
  return absl::OkStatus();
}

absl::StatusOr<bool> CodeWriter::Carry(const Node* node) {
  static constexpr std::string_view kOneInput[] = {
      "Identity", "Reshape", "Transpose", "Squeeze",      "Unsqueeze",    "Flatten",        "Slice",    "Gather",
      "Expand",   "Tile",    "MaxPool",   "DepthToSpace", "SpaceToDepth", "GatherElements", "GatherND", "Split"};
  const auto kept = kept_.find(node->input(0));
  if (kept == kept_.end()) return false;
  const bool carried =
      std::any_of(std::begin(kOneInput), std::end(kOneInput), [&](std::string_view op) { return IsOp(*node, op); });
  const std::optional<double> zero = kept->second.zero == nullptr ? std::optional<double>(0) : OneNumber(kept->second.zero);
  if (!carried || !zero.has_value() || (IsOp(*node, "MaxPool") && node->output_count > 1)) return false;
  KeptCodes of = kept->second;
  of.source = of.source_scale = of.source_zero = of.int8 = of.deployed = of.rows = of.rows_scale =
      nullptr;  // these are not moved
  of.by_node = false;
  const Value* source = of.real != nullptr ? of.real : of.centered;
  const DataType type = Of(node->input(0)).type;
  NewNode plan;
  plan.op_type = std::string(OpType(*node));
  plan.name = std::string(Label(*node)) + "_codes";
  plan.inputs = {source};
  for (size_t i = 1; i < node->input_count; ++i) plan.inputs.push_back(node->input(i));
  plan.attributes = ReadAttributes(*node);
  const Node* moved = workspace().rewriter().Insert(plan, node->output_count, node->graph, plan.name);
  workspace().Refresh(moved);
  const std::vector<const Value*> outputs(node->outputs().begin(), node->outputs().end());
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (outputs[i] == nullptr) continue;
    KeptCodes result = of;
    (of.real != nullptr ? result.real : result.centered) = moved->output(i);
    Keep(outputs[i], result);
    if (of.real != nullptr) continue;
    NewNode cast;
    cast.op_type = "Cast";
    cast.name = std::string(Label(*node)) + "_cast";
    ASSIGN_OR_RETURN(const Value* raw, FloatOf(*moved, outputs[i]));
    cast.inputs = {raw};
    cast.attributes = {Attribute::Int("to", static_cast<int64_t>(type))};
    workspace().Refresh(workspace().rewriter().ReplaceValue(outputs[i], cast));
  }
  return true;
}

}  // namespace ascend_fuse
