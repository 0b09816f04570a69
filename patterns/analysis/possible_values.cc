#include "patterns/analysis/possible_values.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <set>
#include <string_view>

#include "absl/container/flat_hash_map.h"
#include "absl/container/inlined_vector.h"
#include "absl/types/span.h"
#include "fmt/format.h"
#include "ir/add_once.h"
#include "ir/attribute.h"
#include "ir/constant_tensor.h"
#include "ir/movement/movement.h"
#include "ir/rounding.h"
#include "ir/schema.h"

namespace ascend_fuse {
namespace {

constexpr size_t kMaximumValues = 16;
// Constants with more elements than this are not read to find out what they hold.
constexpr int64_t kMaximumConstant = int64_t{1} << 24;
constexpr int kMaximumDepth = 400;

void Set(const std::set<double>& values, PossibleValues* result) {
  result->known = true;
  result->values.assign(values.begin(), values.end());
}

void Assume(const PossibleValues& from, PossibleValues* to) { AddEachOnce(from.assumptions, &to->assumptions); }

// Integers wrap around where their type ends.
bool FitsAll(DataType type, const std::set<double>& values) {
  return std::all_of(values.begin(), values.end(), [&](double number) { return HoldsInteger(type, number); });
}

bool FromFacts(const FunctionContext& context, const Value* value, PossibleValues* result) {
  const Fact& fact = context.facts->Of(value);
  std::set<double> values;
  if (fact.is_splat) {
    if (std::isnan(fact.splat)) return false;
    values.insert(fact.splat);
  } else if (fact.elements != nullptr) {
    for (double element : fact.elements->floats) {
      if (std::isnan(element)) return false;  // a set orders its members, and NaN has no order
      values.insert(element);
    }
    for (Dim element : fact.elements->integers) {
      if (!element.is_number()) return false;
      values.insert(static_cast<double>(element.number()));
    }
  } else {
    return false;
  }
  if (values.empty()) return false;
  Set(values, result);
  return true;
}

bool FromConstant(const FunctionContext& context, const Tensor& tensor, PossibleValues* result) {
  std::set<double> values;
  if (IsFloat(tensor.type)) {
    const auto numbers = ReadFloats(*context.model, tensor, kMaximumConstant);
    if (!numbers.ok()) return false;
    for (double number : *numbers) {
      if (std::isnan(number)) return false;
      values.insert(number);
      if (values.size() > kMaximumValues) return false;
    }
  } else {
    const auto numbers = ReadIntegers(*context.model, tensor, kMaximumConstant);
    if (!numbers.ok()) return false;
    for (int64_t number : *numbers) {
      values.insert(static_cast<double>(number));
      if (values.size() > kMaximumValues) return false;
    }
  }
  Set(values, result);
  return true;
}

class ValueSets {
 public:
  explicit ValueSets(const FunctionContext& context) : context_(context) {}

  const PossibleValues& Of(const Value* value, int depth = 0) {
    auto [entry, inserted] = known_.try_emplace(value);
    if (!inserted) return *entry->second;
    entry->second = std::make_unique<PossibleValues>();
    PossibleValues* result = entry->second.get();
    if (depth < kMaximumDepth) Compute(value, depth, result);
    if (result->values.size() > kMaximumValues) *result = PossibleValues();
    return *result;
  }

 private:
  using Handler = void (ValueSets::*)(const Node&, int, PossibleValues*);

  void Compute(const Value* value, int depth, PossibleValues* result) {
    if (FromFacts(context_, value, result)) return;
    if (const std::optional<Tensor> constant = ConstantTensor(*value); constant.has_value()) {
      FromConstant(context_, *constant, result);
      return;
    }
    const DataType type = context_.facts->Of(value).type;
    const Node* node = value->producer;
    if (const Movement* movement = context_.facts->MovementOf(value); movement != nullptr) {
      Moved(*movement, depth, result);
    } else if (node != nullptr && node->domain == NameId::kEmpty) {
      if (const Handler handler = HandlerOf(*node); handler != nullptr) (this->*handler)(*node, depth, result);
    } else if (node == nullptr && value->is_graph_input && type != DataType::kBool && IsInteger(type)) {
      Set({0, 1}, result);
      result->assumptions.push_back(fmt::format("the integer input {} holds only 0 and 1, as a mask does", ValueName(*value)));
    }
    if (!result->known && type == DataType::kBool) Set({0, 1}, result);
  }

  static Handler HandlerOf(const Node& node) {
    using V = ValueSets;
    static const auto* const handlers = new absl::flat_hash_map<std::string_view, Handler>({
        {"Max", &V::OneOfTheInputs},
        {"Min", &V::OneOfTheInputs},
        {"Where", &V::Where},
        {"Trilu", &V::Trilu},
        {"Cast", &V::Cast},
        {"Neg", &V::NegOrAbs},
        {"Abs", &V::NegOrAbs},
        {"Add", &V::Arithmetic},
        {"Sub", &V::Arithmetic},
        {"Mul", &V::Arithmetic},
        {"Div", &V::Arithmetic},
    });
    const auto found = handlers->find(OpType(node));
    return found == handlers->end() ? nullptr : found->second;
  }

  DataType TypeOf(const Node& node) const { return context_.facts->Of(node.output(0)).type; }

  void Union(absl::Span<const Value* const> parts, int depth, PossibleValues* result) {
    std::set<double> values;
    for (const Value* part : parts) {
      if (part == nullptr) return;
      const PossibleValues& set = Of(part, depth + 1);
      if (!set.known) return;
      values.insert(set.values.begin(), set.values.end());
      Assume(set, result);
    }
    Set(values, result);
  }

  // Elements of operands, and the number around them.
  void Moved(const Movement& movement, int depth, PossibleValues* result) {
    absl::InlinedVector<const Value*, 4> operands;
    for (const MovedPart& part : movement.parts) operands.push_back(movement.node->input(part.operand));
    const bool pads = movement.kind == MovementKind::kPads;
    if (pads && movement.fill_operand != 0) operands.push_back(movement.node->input(movement.fill_operand));
    Union(operands, depth, result);
    if (!result->known || !pads || movement.fill_operand != 0) return;
    std::set<double> values(result->values.begin(), result->values.end());
    values.insert(movement.fill);
    Set(values, result);
  }

  void OneOfTheInputs(const Node& node, int depth, PossibleValues* result) {
    absl::InlinedVector<const Value*, 4> inputs;
    for (const Use& use : node.inputs()) inputs.push_back(use.value);
    Union(inputs, depth, result);
  }

  void Where(const Node& node, int depth, PossibleValues* result) {
    if (!InvertedMask(node, depth, result)) Union({node.input(1), node.input(2)}, depth, result);
  }

  // Where (x as bool, fill, x): what is left of x is its zeros (transformers' inverted masks, D2).
  bool InvertedMask(const Node& node, int depth, PossibleValues* result) {
    const Value* tested = node.input(0);
    while (tested != nullptr && context_.numbering->Source(tested) != nullptr) {
      tested = context_.numbering->Source(tested);
    }
    const Node* condition = tested != nullptr ? tested->producer : nullptr;
    if (condition == nullptr || !IsOp(*condition, "Cast") || node.input(2) == nullptr ||
        !context_.numbering->Same(condition->input(0), node.input(2)) ||
        context_.facts->Of(node.input(0)).type != DataType::kBool) {
      return false;
    }
    const PossibleValues& rest = Of(node.input(2), depth + 1);
    Union({node.input(1)}, depth, result);
    if (!rest.known || !result->known) {
      *result = PossibleValues();
      return false;
    }
    std::set<double> values(result->values.begin(), result->values.end());
    if (std::find(rest.values.begin(), rest.values.end(), 0) != rest.values.end()) values.insert(0);
    Assume(rest, result);
    Set(values, result);
    return true;
  }

  void Trilu(const Node& node, int depth, PossibleValues* result) {
    Union({node.input(0)}, depth, result);
    if (!result->known) return;
    std::set<double> values(result->values.begin(), result->values.end());
    values.insert(0);
    Set(values, result);
  }

  void Cast(const Node& node, int depth, PossibleValues* result) {
    const DataType type = TypeOf(node);
    if (type == DataType::kBool) return CastToBool(node, depth, result);
    Union({node.input(0)}, depth, result);
    if (!result->known) return;
    std::set<double> values;
    for (double number : result->values) {
      if (IsInteger(type) && !HoldsInteger(type, std::trunc(number))) {
        *result = PossibleValues();
        return;
      }
      values.insert(IsInteger(type) ? std::trunc(number) : RoundTo(type, number));
    }
    Set(values, result);
  }

  // Whatever x holds, x != 0 is 0 or 1: nothing needs to be assumed of x.
  void CastToBool(const Node& node, int depth, PossibleValues* result) {
    const PossibleValues* set = node.input(0) != nullptr ? &Of(node.input(0), depth + 1) : nullptr;
    std::set<double> values = {0, 1};
    if (set != nullptr && set->known && set->assumptions.empty()) {
      values.clear();
      for (double number : set->values) values.insert(number != 0 ? 1 : 0);
    }
    Set(values, result);
  }

  void NegOrAbs(const Node& node, int depth, PossibleValues* result) {
    const PossibleValues& set = Of(node.input(0), depth + 1);
    if (!set.known) return;
    const bool negated = IsOp(node, "Neg");
    std::set<double> values;
    for (double number : set.values) values.insert(negated ? -number : std::fabs(number));
    if (!FitsAll(TypeOf(node), values)) return;
    Assume(set, result);
    Set(values, result);
  }

  void Arithmetic(const Node& node, int depth, PossibleValues* result) {
    if (node.input(0) == nullptr || node.input(1) == nullptr) return;
    const PossibleValues& a = Of(node.input(0), depth + 1);
    const PossibleValues& b = Of(node.input(1), depth + 1);
    if (!a.known || !b.known) return;
    const std::string_view op = OpType(node);
    const DataType type = TypeOf(node);
    std::set<double> values;
    for (double x : a.values) {
      for (double y : b.values) {
        const double number = RoundTo(type, op == "Add" ? x + y : op == "Sub" ? x - y : op == "Mul" ? x * y : x / y);
        if (std::isnan(number) || (op == "Div" && (y == 0 || IsInteger(type)))) return;
        values.insert(number);
      }
    }
    if (!FitsAll(type, values)) return;
    Assume(a, result);
    Assume(b, result);
    Set(values, result);
  }

  const FunctionContext& context_;
  absl::flat_hash_map<const Value*, std::unique_ptr<PossibleValues>> known_;
};

}  // namespace

PossibleValues ValuesOf(const FunctionContext& context, const Value* value) { return ValueSets(context).Of(value); }

}  // namespace ascend_fuse
