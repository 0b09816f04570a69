#include "patterns/target/conditions.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <string_view>
#include <vector>

#include "fmt/format.h"
#include "ir/attribute.h"
#include "ir/constant_tensor.h"
#include "ir/infer/integer_bounds.h"
#include "ir/model.h"
#include "ir/movement/axis.h"
#include "patterns/operators/plugin_digits.h"
#include "proto/contract.pb.h"

namespace ascend_fuse::contract {
namespace {

using Words = google::protobuf::RepeatedPtrField<std::string>;

Truth TruthOf(bool holds) { return holds ? Truth::kYes : Truth::kNo; }

Truth Not(Truth truth) { return truth == Truth::kUnknown ? truth : TruthOf(truth == Truth::kNo); }

Truth And(Truth a, Truth b) { return std::min(a, b); }

// The input of that name, or nullptr.
const Value* InputOf(const JudgedNode& judged, const std::string& name) {
  const int index = judged.schema != nullptr ? judged.schema->FindInput(name) : -1;
  return index >= 0 ? judged.node.input(static_cast<size_t>(index)) : nullptr;
}

const Fact& FactOf(const JudgedNode& judged, const Value* value) {
  static const Fact* const kNothing = new Fact();
  return judged.facts != nullptr && value != nullptr ? judged.facts->Of(value) : *kNothing;
}

bool IsOneOf(const Words& values, const Attribute& attribute) {
  return std::any_of(values.begin(), values.end(), [&](const std::string& value) { return SameValue(value, attribute); });
}

Truth AttributeHolds(const proto::FormCondition& condition, const JudgedNode& judged) {
  std::optional<Attribute> attribute = FindAttribute(judged.node, condition.attribute());
  if (condition.is().empty() && condition.is_not().empty()) return TruthOf(attribute.has_value());
  if (!attribute.has_value()) {
    const SchemaAttribute* row = judged.schema != nullptr ? judged.schema->FindAttribute(condition.attribute()) : nullptr;
    if (row == nullptr || !row->has_default) return Truth::kNo;
    attribute = row->default_value;
  }
  if (!condition.is().empty() && !IsOneOf(condition.is(), *attribute)) return Truth::kNo;
  return TruthOf(!IsOneOf(condition.is_not(), *attribute));
}

// --- what is known of an operand ---

bool IsConstant(const Value& value, const Fact& fact) { return fact.elements != nullptr || IsWrittenConstant(value); }

Truth TypeIsOneOf(const Words& types, const Fact& fact) {
  if (fact.type == DataType::kUndefined) return Truth::kUnknown;
  return TruthOf(std::find(types.begin(), types.end(), DataTypeName(fact.type)) != types.end());
}

Truth IsStatic(const Fact& fact) {
  if (!fact.has_rank) return Truth::kUnknown;
  bool unknown = false;
  for (const Dim dim : fact.shape) {
    if (!dim.known()) unknown = true;
    if (dim.known() && !dim.is_number()) return Truth::kNo;
  }
  return unknown ? Truth::kUnknown : Truth::kYes;
}

Truth HasNegative(const Value& value, const JudgedNode& judged) {
  if (judged.facts == nullptr) return Truth::kUnknown;
  const Fact& fact = judged.facts->Of(&value);
  if (fact.elements != nullptr) {
    const bool negative =
        std::any_of(fact.elements->integers.begin(), fact.elements->integers.end(),
                    [](Dim element) { return element.is_number() && element.number() < 0; }) ||
        std::any_of(fact.elements->floats.begin(), fact.elements->floats.end(), [](double element) { return element < 0; });
    if (negative) return Truth::kYes;
    if (!fact.elements->floats.empty()) return Truth::kNo;
  }
  if (fact.is_splat) return TruthOf(fact.splat < 0);
  return BoundsOf(value, *judged.facts).NotNegative() ? Truth::kNo : Truth::kUnknown;
}

// The one number that every element is; nullopt where they differ, and where it is not known.
std::optional<double> OneNumber(const Fact& fact) {
  if (fact.is_splat) return fact.splat;
  if (fact.elements == nullptr) return std::nullopt;
  std::optional<double> one;
  const auto add = [&one](double number) {
    if (!one.has_value()) one = number;
    return *one == number;
  };
  for (const Dim element : fact.elements->integers) {
    if (!element.is_number() || !add(static_cast<double>(element.number()))) return std::nullopt;
  }
  for (const double element : fact.elements->floats) {
    if (!add(element)) return std::nullopt;
  }
  return one;
}

Truth EveryElementIs(const proto::OperandCondition& condition, const Fact& fact) {
  const std::optional<double> number = OneNumber(fact);
  if (!number.has_value()) {
    // Elements that are known and differ are none of `is`.
    if (fact.elements == nullptr) return Truth::kUnknown;
    return TruthOf(condition.is().empty());
  }
  const auto among = [&](const Words& words) {
    return std::any_of(words.begin(), words.end(), [&](const std::string& word) {
      double wanted = 0;
      const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), wanted);
      return error == std::errc() && end == word.data() + word.size() && wanted == *number;
    });
  };
  return TruthOf((condition.is().empty() || among(condition.is())) && !among(condition.is_not()));
}

Truth OperandHolds(const proto::OperandCondition& condition, const JudgedNode& judged) {
  const Value* value = InputOf(judged, condition.name());
  if (value == nullptr) return Truth::kNo;
  const Fact& fact = FactOf(judged, value);
  Truth truth = Truth::kYes;
  const auto add = [&truth](Truth other) { truth = And(truth, other); };
  if (condition.has_constant()) add(TruthOf(IsConstant(*value, fact) == condition.constant()));
  if (!condition.type().empty()) add(TypeIsOneOf(condition.type(), fact));
  if (condition.has_rank_at_least()) {
    add(fact.has_rank ? TruthOf(fact.rank() >= condition.rank_at_least()) : Truth::kUnknown);
  }
  if (condition.has_rank_at_most()) {
    add(fact.has_rank ? TruthOf(fact.rank() <= condition.rank_at_most()) : Truth::kUnknown);
  }
  if (condition.has_static_()) add(condition.static_() ? IsStatic(fact) : Not(IsStatic(fact)));
  if (condition.has_negative()) {
    const Truth negative = HasNegative(*value, judged);
    add(condition.negative() ? negative : Not(negative));
  }
  if (!condition.is().empty() || !condition.is_not().empty()) add(EveryElementIs(condition, fact));
  return truth;
}

// --- tests ---

Truth InputsBroadcast(const JudgedNode& judged) {
  if (judged.node.input_count < 2) return Truth::kNo;
  const Fact& first = FactOf(judged, judged.node.input(0));
  Truth truth = Truth::kNo;
  for (size_t i = 1; i < judged.node.input_count; ++i) {
    const Fact& other = FactOf(judged, judged.node.input(i));
    if (!first.has_rank || !other.has_rank) {
      truth = std::max(truth, Truth::kUnknown);
      continue;
    }
    if (first.rank() != other.rank()) return Truth::kYes;
    for (size_t axis = 0; axis < first.shape.size(); ++axis) {
      if (judged.facts->dims().NotEqual(first.shape[axis], other.shape[axis])) return Truth::kYes;
      if (!judged.facts->dims().Equal(first.shape[axis], other.shape[axis])) truth = Truth::kUnknown;
    }
  }
  return truth;
}

Truth AxisNotLast(const JudgedNode& judged) {
  const SchemaAttribute* row = judged.schema != nullptr ? judged.schema->FindAttribute("axis") : nullptr;
  const int64_t axis = IntAttribute(judged.node, "axis").value_or(row != nullptr && row->has_default ? row->default_value.i : -1);
  if (axis == -1) return Truth::kNo;
  const Fact& fact = FactOf(judged, judged.node.input(0));
  if (!fact.has_rank) return Truth::kUnknown;
  return TruthOf(axis != fact.rank() - 1);
}

Truth AxisOfTwo(const JudgedNode& judged) {
  const Fact& fact = FactOf(judged, judged.node.input(0));
  const int64_t axis = NormalizeAxis(IntAttribute(judged.node, "axis").value_or(0), fact.rank());
  if (!fact.has_rank || axis < 0) return Truth::kUnknown;
  const Dim length = judged.facts->dims().Resolve(fact.shape[static_cast<size_t>(axis)]);
  return length.is_number() ? TruthOf(length.is(2)) : Truth::kUnknown;
}

Truth ReadByAdd(const JudgedNode& judged) {
  const Value* const output = judged.node.output();
  if (output == nullptr) return Truth::kNo;
  for (const Use& use : LiveUses(*output)) {
    if (IsOp(*use.user, "Add")) return Truth::kYes;
  }
  return Truth::kNo;
}

Truth AnyInputWide(const JudgedNode& judged) {
  bool unknown = false;
  for (const Use& use : judged.node.inputs()) {
    if (use.value == nullptr) continue;
    const DataType type = FactOf(judged, use.value).type;
    if (type == DataType::kInt64 || type == DataType::kUint64 || type == DataType::kDouble) return Truth::kYes;
    unknown = unknown || type == DataType::kUndefined;
  }
  return unknown ? Truth::kUnknown : Truth::kNo;
}

Truth IndexOutOfDepth(const JudgedNode& judged) {
  const Value* indices = judged.node.input(0);
  const Value* depth = judged.node.input(1);
  if (indices == nullptr || depth == nullptr || judged.facts == nullptr) return Truth::kUnknown;
  const IntegerBounds index = BoundsOf(*indices, *judged.facts);
  const IntegerBounds least = BoundsOf(*depth, *judged.facts);
  if (index.high.has_value() && least.low.has_value() && *index.high < *least.low) return Truth::kNo;
  if (index.low.has_value() && least.high.has_value() && *index.low >= *least.high) return Truth::kYes;
  const Fact& fact = judged.facts->Of(indices);
  const bool all_known = fact.elements != nullptr && index.high.has_value();
  return all_known && least.high.has_value() && *index.high >= *least.high ? Truth::kYes : Truth::kUnknown;
}

Dim OnlyElement(const Fact& fact) {
  if (fact.elements == nullptr || fact.elements->integers.size() != 1) return Dim();
  return fact.elements->integers[0];
}

Truth RangeIsEmpty(const JudgedNode& judged) {
  if (judged.facts == nullptr) return Truth::kUnknown;
  const DimTable& dims = judged.facts->dims();
  const auto element = [&](size_t i) { return OnlyElement(FactOf(judged, judged.node.input(i))); };
  Dim start = element(0);
  Dim limit = element(1);
  const Dim step = element(2);
  if (!step.is_number()) return Truth::kUnknown;
  if (step.number() < 0) std::swap(start, limit);
  if (!start.known() || !limit.known()) {
    // From 0 upwards to what is not negative.
    const Value* end = judged.node.input(step.number() < 0 ? 0 : 1);
    const bool from_nought = start.is(0) && end != nullptr && BoundsOf(*end, *judged.facts).NotNegative();
    return from_nought ? Truth::kNo : Truth::kUnknown;
  }
  if (dims.AtLeast(limit, start)) return Truth::kNo;
  return dims.AtLeast(start, limit) && dims.NotEqual(start, limit) ? Truth::kYes : Truth::kUnknown;
}

Truth ShapeShorterThanRank(const JudgedNode& judged) {
  const Fact& x = FactOf(judged, judged.node.input(0));
  const Fact& shape = FactOf(judged, judged.node.input(1));
  if (!x.has_rank || shape.rank() != 1 || !shape.shape[0].is_number()) return Truth::kUnknown;
  return TruthOf(shape.shape[0].number() < x.rank());
}

// What the parser of ConstantOfShape reads: raw_data, or the field of the tensor's own type.
Truth ValueInTypedField(const JudgedNode& judged) {
  const std::optional<Attribute> value = FindAttribute(judged.node, "value");
  if (!value.has_value() || value->type != AttributeType::kTensor || value->tensor.storage != Storage::kTyped) {
    return Truth::kNo;
  }
  const DataType type = value->tensor.type;
  return TruthOf(type != DataType::kInt32 && type != DataType::kInt64 && type != DataType::kFloat && type != DataType::kDouble);
}

Truth ConditionNotScalar(const JudgedNode& judged) {
  const Fact& fact = FactOf(judged, judged.node.input(0));
  return fact.has_rank ? TruthOf(fact.rank() > 0) : Truth::kUnknown;
}

Truth EquationWithoutArrow(const JudgedNode& judged) {
  const auto equation = StringAttribute(judged.node, "equation");
  return TruthOf(equation.has_value() && equation->find("->") == std::string_view::npos);
}

Truth InputNotStatic(const JudgedNode& judged) {
  Truth truth = Truth::kNo;
  for (const Use& use : judged.node.inputs()) {
    if (use.value != nullptr) truth = std::max(truth, Not(IsStatic(FactOf(judged, use.value))));
  }
  return truth;
}

Truth Answer(proto::NodeTest test, const JudgedNode& judged) {
  switch (test) {
    case proto::INPUTS_BROADCAST:
      return InputsBroadcast(judged);
    case proto::AXIS_NOT_LAST:
      return AxisNotLast(judged);
    case proto::ANY_INPUT_WIDE:
      return AnyInputWide(judged);
    case proto::INDEX_OUT_OF_DEPTH:
      return IndexOutOfDepth(judged);
    case proto::RANGE_IS_EMPTY:
      return RangeIsEmpty(judged);
    case proto::SHAPE_SHORTER_THAN_RANK:
      return ShapeShorterThanRank(judged);
    case proto::VALUE_IN_TYPED_FIELD:
      return ValueInTypedField(judged);
    case proto::CONDITION_NOT_SCALAR:
      return ConditionNotScalar(judged);
    case proto::EQUATION_WITHOUT_ARROW:
      return EquationWithoutArrow(judged);
    case proto::INPUT_NOT_STATIC:
      return InputNotStatic(judged);
    case proto::AXIS_OF_TWO:
      return AxisOfTwo(judged);
    case proto::READ_BY_ADD:
      return ReadByAdd(judged);
    default:
      return Truth::kNo;
  }
}

Truth EmptyInput(const std::string& name, const JudgedNode& judged) {
  const int index = judged.schema != nullptr ? judged.schema->FindInput(name) : -1;
  return TruthOf(index >= 0 && static_cast<uint32_t>(index) < judged.node.input_count &&
                 judged.node.input(static_cast<size_t>(index)) == nullptr);
}

Truth OutputIsRead(const std::string& name, const JudgedNode& judged) {
  if (judged.schema == nullptr) return Truth::kNo;
  const int index = judged.schema->FindOutput(name);
  if (index < 0) return Truth::kNo;
  const Value* value = judged.node.output(static_cast<size_t>(index));
  if (value == nullptr) return Truth::kNo;
  if (value->is_graph_output) return Truth::kYes;
  for (const Use& use : LiveUses(*value)) {
    if (!IsOp(*use.user, "Cast")) return Truth::kYes;
  }
  return Truth::kNo;
}

// Whether some version of `op` has what the condition names.
bool OnnxHas(const proto::FormCondition& condition, const std::string& op) {
  const std::string& input = !condition.input().empty()         ? condition.input()
                             : !condition.no_input().empty()    ? condition.no_input()
                             : !condition.empty_input().empty() ? condition.empty_input()
                                                                : condition.operand().name();
  const std::string& attribute = condition.attribute().empty() ? condition.no_attribute() : condition.attribute();
  for (const Schema& schema : SchemaVersions("", op)) {
    if (!input.empty() && schema.FindInput(input) >= 0) return true;
    if (!attribute.empty() && schema.FindAttribute(attribute) != nullptr) return true;
    if (!condition.output().empty() && schema.FindOutput(condition.output()) >= 0) return true;
  }
  return input.empty() && attribute.empty() && condition.output().empty();
}

}  // namespace

absl::Status CheckCondition(const proto::FormCondition& condition, const std::string& op) {
  const bool questions[] = {!condition.input().empty(),
                            !condition.no_input().empty(),
                            !condition.attribute().empty(),
                            !condition.no_attribute().empty(),
                            condition.has_operand(),
                            !condition.empty_input().empty(),
                            !condition.output().empty(),
                            condition.has_inputs_at_least(),
                            condition.has_inputs_at_most(),
                            condition.has_outputs_at_least(),
                            condition.test() != proto::NO_TEST,
                            condition.test_not() != proto::NO_TEST};
  if (std::count(std::begin(questions), std::end(questions), true) != 1) {
    return absl::InvalidArgumentError(
        "`when` takes one of `input`, `no_input`, `attribute`, `no_attribute`, `operand`, `empty_input`, `output`, "
        "`inputs_at_least`, `inputs_at_most`, `outputs_at_least`, `test` and `test_not`");
  }
  if (condition.attribute().empty() && (!condition.is().empty() || !condition.is_not().empty())) {
    return absl::InvalidArgumentError("`is` and `is_not` need `attribute`");
  }
  for (const std::string& type : condition.operand().type()) {
    if (DataTypeFromName(type) == DataType::kUndefined) {
      return absl::InvalidArgumentError(fmt::format("`{}` is not a type", type));
    }
  }
  if (OnnxHas(condition, op)) return absl::OkStatus();
  const bool attribute = !condition.attribute().empty() || !condition.no_attribute().empty();
  return absl::InvalidArgumentError(fmt::format("ONNX knows no {} {} of {}",
                                                attribute                    ? "attribute"
                                                : condition.output().empty() ? "input"
                                                                             : "output",
                                                condition.input() + condition.no_input() + condition.attribute() +
                                                    condition.no_attribute() + condition.operand().name() +
                                                    condition.empty_input() + condition.output(),
                                                op));
}

Truth Holds(const proto::FormCondition& condition, const JudgedNode& judged) {
  if (!condition.input().empty()) return TruthOf(InputOf(judged, condition.input()) != nullptr);
  if (!condition.no_input().empty()) return TruthOf(InputOf(judged, condition.no_input()) == nullptr);
  if (!condition.no_attribute().empty()) {
    return TruthOf(!FindAttribute(judged.node, condition.no_attribute()).has_value());
  }
  if (!condition.attribute().empty()) return AttributeHolds(condition, judged);
  if (condition.has_operand()) return OperandHolds(condition.operand(), judged);
  if (!condition.empty_input().empty()) return EmptyInput(condition.empty_input(), judged);
  if (!condition.output().empty()) return OutputIsRead(condition.output(), judged);
  const int32_t count = static_cast<int32_t>(judged.node.input_count);
  if (condition.has_inputs_at_least()) return TruthOf(count >= condition.inputs_at_least());
  if (condition.has_inputs_at_most()) return TruthOf(count <= condition.inputs_at_most());
  if (condition.has_outputs_at_least()) {
    return TruthOf(static_cast<int32_t>(judged.node.output_count) >= condition.outputs_at_least());
  }
  if (condition.test_not() != proto::NO_TEST) return Not(Answer(condition.test_not(), judged));
  return Answer(condition.test(), judged);
}

}  // namespace ascend_fuse::contract
