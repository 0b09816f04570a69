#include "ir/infer/integer_bounds.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string_view>

#include "absl/container/flat_hash_map.h"
#include "ir/attribute.h"
#include "ir/movement/axis.h"
#include "ir/movement/movement.h"
#include "ir/whole_number.h"

namespace ascend_fuse {
namespace {

constexpr int kMostNodes = 256;
constexpr int kDeepest = 64;

IntegerBounds Union(const IntegerBounds& a, const IntegerBounds& b) {
  IntegerBounds bounds;
  if (a.low.has_value() && b.low.has_value()) bounds.low = std::min(*a.low, *b.low);
  if (a.high.has_value() && b.high.has_value()) bounds.high = std::max(*a.high, *b.high);
  return bounds;
}

std::optional<int64_t> Sum(std::optional<int64_t> a, std::optional<int64_t> b) {
  int64_t sum = 0;
  if (!a.has_value() || !b.has_value() || __builtin_add_overflow(*a, *b, &sum)) return std::nullopt;
  return sum;
}

std::optional<int64_t> Difference(std::optional<int64_t> a, std::optional<int64_t> b) {
  int64_t difference = 0;
  if (!a.has_value() || !b.has_value() || __builtin_sub_overflow(*a, *b, &difference)) return std::nullopt;
  return difference;
}

// Of two that are not negative.
std::optional<int64_t> Product(std::optional<int64_t> a, std::optional<int64_t> b) {
  int64_t product = 0;
  if (!a.has_value() || !b.has_value() || __builtin_mul_overflow(*a, *b, &product)) return std::nullopt;
  return product;
}

class Bounds {
 public:
  Bounds(const Facts& facts, absl::FunctionRef<bool(Dim)> is_length) : facts_(facts), is_length_(is_length) {}

  IntegerBounds Of(const Value* value, int depth) {
    if (value == nullptr || depth > kDeepest || --nodes_ < 0) return {};
    IntegerBounds bounds = OfFact(facts_.Of(value));
    if ((bounds.low.has_value() && bounds.high.has_value()) || value->producer == nullptr) return bounds;
    const auto [seen, is_new] = seen_.try_emplace(value);
    if (is_new) {
      const IntegerBounds computed = OfNode(*value->producer, value->output_index, depth + 1);
      seen_[value] = {bounds.low.has_value() ? bounds.low : computed.low, bounds.high.has_value() ? bounds.high : computed.high};
    }
    return seen_[value];
  }

 private:
  IntegerBounds OfFact(const Fact& fact) const {
    // Beyond 2^53 a double is not the integer that it stands for.
    if (fact.is_splat && !IsFloat(fact.type) && std::abs(fact.splat) < 9007199254740992.0) {
      const int64_t splat = static_cast<int64_t>(fact.splat);
      return {splat, splat};
    }
    if (fact.elements != nullptr && !fact.elements->integers.empty()) {
      const DimTable& dims = facts_.dims();
      IntegerBounds bounds;
      bool first = true;
      for (const Dim element : fact.elements->integers) {
        const IntegerBounds one = {dims.LowerBound(element), MostOf(element)};
        bounds = first ? one : Union(bounds, one);
        first = false;
      }
      if (bounds.low.has_value() || bounds.high.has_value()) return bounds;
    }
    switch (fact.type) {
      case DataType::kBool:
        return {0, 1};
      case DataType::kUint8:
      case DataType::kUint16:
      case DataType::kUint32:
      case DataType::kUint64:
        return {0, std::nullopt};
      default:
        return {};
    }
  }

  std::optional<int64_t> MostOf(Dim dim) const {
    const auto most = facts_.dims().UpperBound(dim);
    return !most.has_value() && is_length_(dim) ? std::numeric_limits<int32_t>::max() : most;
  }

  // What an index along an axis of `value` can be.
  IntegerBounds Index(const Value* value, int64_t axis) const {
    const Fact& fact = facts_.Of(value);
    axis = fact.has_rank ? NormalizeAxis(axis, fact.rank()) : -1;
    if (axis < 0) return {0, std::nullopt};
    const auto most = MostOf(fact.shape[static_cast<size_t>(axis)]);
    return {0, Difference(most, 1)};
  }

  // Elements of operands, and the number around them.
  IntegerBounds OfMoved(const Movement& movement, int depth) {
    IntegerBounds bounds = Of(movement.node->input(movement.parts[0].operand), depth);
    for (const MovedPart& part : movement.parts.subspan(1)) bounds = Union(bounds, Of(movement.node->input(part.operand), depth));
    if (movement.kind != MovementKind::kPads) return bounds;
    const auto fill = WholeNumber(movement.fill);
    return Union(bounds,
                 movement.fill_operand == 0 ? IntegerBounds{fill, fill} : Of(movement.node->input(movement.fill_operand), depth));
  }

  IntegerBounds OfNode(const Node& node, uint32_t output, int depth) {
    if (const Movement* movement = facts_.MovementOf(node.output(output)); movement != nullptr) return OfMoved(*movement, depth);
    if (node.domain != NameId::kEmpty) return {};
    const std::string_view op = OpType(node);
    const auto in = [&](size_t i) { return Of(node.input(i), depth); };
    if (op == "ReverseSequence" || op == "ReduceMax" || op == "ReduceMin") return in(0);
    if (op == "Shape" || op == "Size" || op == "NonZero") return {0, std::nullopt};
    if (op == "ArgMax" || op == "ArgMin") return Index(node.input(0), IntAttribute(node, "axis").value_or(0));
    if (op == "TopK") return output == 1 ? Index(node.input(0), IntAttribute(node, "axis").value_or(-1)) : in(0);
    if (op == "Cast") return IsFloat(facts_.Of(node.input(0)).type) ? IntegerBounds() : in(0);
    if (op == "Max" || op == "Min") return OfExtreme(node, op == "Max", depth);
    if (op == "Where") return OfAll(node, 1, depth);
    if (op == "Abs") return OfAbs(in(0));
    if (op == "Neg") return Negated(in(0));
    if (op == "CumSum") return OfSums(node, in(0));
    if (op == "Range") return OfRange(node, depth);
    if (op == "Clip") return OfClip(node, depth);
    return OfArithmetic(node, op, depth);
  }

  static IntegerBounds Negated(const IntegerBounds& x) { return {Difference(0, x.high), Difference(0, x.low)}; }

  static IntegerBounds OfAbs(const IntegerBounds& x) {
    const IntegerBounds negated = Negated(x);
    if (!x.high.has_value() || !negated.high.has_value()) return {0, std::nullopt};
    return {0, std::max(*x.high, *negated.high)};
  }

  // At most as many summands as the longest axis has.
  IntegerBounds OfSums(const Node& node, const IntegerBounds& x) const {
    const Fact& fact = facts_.Of(node.input(0));
    std::optional<int64_t> most = fact.has_rank ? std::optional<int64_t>(1) : std::nullopt;
    for (const Dim dim : fact.shape) {
      const auto length = MostOf(dim);
      most = most.has_value() && length.has_value() ? std::optional(std::max(*most, *length)) : std::nullopt;
    }
    const auto times = [&](std::optional<int64_t> each) {
      return each.has_value() ? Product(most, std::max<int64_t>(*each, 0)) : each;
    };
    return {Difference(0, times(Negated(x).high)), times(x.high)};
  }

  IntegerBounds OfAll(const Node& node, size_t first, int depth) {
    IntegerBounds bounds = Of(node.input(first), depth);
    for (size_t i = first + 1; i < node.input_count; ++i) bounds = Union(bounds, Of(node.input(i), depth));
    return bounds;
  }

  // A Max is not below any operand, a Min not above any.
  IntegerBounds OfExtreme(const Node& node, bool max, int depth) {
    IntegerBounds bounds = OfAll(node, 0, depth);
    for (size_t i = 0; i < node.input_count; ++i) {
      const IntegerBounds one = Of(node.input(i), depth);
      if (max && one.low.has_value()) bounds.low = std::max(bounds.low.value_or(*one.low), *one.low);
      if (!max && one.high.has_value()) bounds.high = std::min(bounds.high.value_or(*one.high), *one.high);
    }
    return bounds;
  }

  // Steps upwards stay between start and limit.
  IntegerBounds OfRange(const Node& node, int depth) {
    if (const IntegerBounds step = Of(node.input(2), depth); !step.low.has_value() || *step.low < 1) return {};
    return {Of(node.input(0), depth).low, Difference(Of(node.input(1), depth).high, 1)};
  }

  IntegerBounds OfClip(const Node& node, int depth) {
    IntegerBounds bounds = Of(node.input(0), depth);
    const IntegerBounds low = Of(node.input(1), depth);
    const IntegerBounds high = Of(node.input(2), depth);
    if (low.low.has_value()) bounds.low = std::max(bounds.low.value_or(*low.low), *low.low);
    if (high.high.has_value()) bounds.high = std::min(bounds.high.value_or(*high.high), *high.high);
    return bounds;
  }

  IntegerBounds OfArithmetic(const Node& node, std::string_view op, int depth) {
    const bool two = op == "Add" || op == "Sub" || op == "Mul" || op == "Div" || op == "Mod";
    if (!two && op != "ReduceSum") return {};
    const IntegerBounds a = Of(node.input(0), depth);
    if (!two) return {a.NotNegative() ? std::optional<int64_t>(0) : std::nullopt, std::nullopt};
    const IntegerBounds b = Of(node.input(1), depth);
    if (op == "Add") return {Sum(a.low, b.low), Sum(a.high, b.high)};
    if (op == "Sub") return {Difference(a.low, b.high), Difference(a.high, b.low)};
    if (op == "Mod") {
      // The result has the sign of the divisor, or with fmod that of the dividend.
      const bool fmod = IntAttribute(node, "fmod").value_or(0) != 0;
      if (!b.NotNegative() || (fmod && !a.NotNegative())) return {};
      return {0, Difference(b.high, 1)};
    }
    if (!a.NotNegative() || !b.NotNegative()) return {};
    if (op == "Mul") return {Product(a.low, b.low), Product(a.high, b.high)};
    return {0, a.high};  // Div
  }

  const Facts& facts_;
  const absl::FunctionRef<bool(Dim)> is_length_;
  int nodes_ = kMostNodes;
  absl::flat_hash_map<const Value*, IntegerBounds> seen_;
};

}  // namespace

IntegerBounds BoundsOf(const Value& value, const Facts& facts) {
  return BoundsOf(value, facts, [](Dim) { return false; });
}

IntegerBounds BoundsOf(const Value& value, const Facts& facts, absl::FunctionRef<bool(Dim)> is_length) {
  return Bounds(facts, is_length).Of(&value, 0);
}

}  // namespace ascend_fuse
