#include "passes/tidy/float_bounds.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <string_view>
#include <utility>

#include "ir/infer/integer_bounds.h"
#include "ir/movement/movement.h"

namespace ascend_fuse {
namespace {

constexpr int kMostNodes = 64;
constexpr int kDeepest = 24;

using Bounds = std::optional<FloatBounds>;

Bounds Union(const Bounds& a, const Bounds& b) {
  if (!a.has_value() || !b.has_value()) return std::nullopt;
  return FloatBounds{std::min(a->low, b->low), std::max(a->high, b->high)};
}

// Results are rounded, so that bounds that are computed get a little room.
Bounds Rounded(double low, double high) {
  constexpr double kRoom = 1e-5;
  if (!std::isfinite(low) || !std::isfinite(high)) return std::nullopt;
  return FloatBounds{low - std::abs(low) * kRoom, high + std::abs(high) * kRoom};
}

Bounds Product(const FloatBounds& a, const FloatBounds& b) {
  const double corners[] = {a.low * b.low, a.low * b.high, a.high * b.low, a.high * b.high};
  const auto [low, high] = std::minmax_element(std::begin(corners), std::end(corners));
  return Rounded(*low, *high);
}

// Of what an operator gives, whatever it reads.
Bounds OfResult(const Node& node) {
  static constexpr std::pair<std::string_view, FloatBounds> kResults[] = {
      {"Tanh", {-1, 1}},   {"Sin", {-1, 1}},        {"Cos", {-1, 1}},    {"Erf", {-1, 1}}, {"Softsign", {-1, 1}},
      {"Sigmoid", {0, 1}}, {"HardSigmoid", {0, 1}}, {"Softmax", {0, 1}}, {"Sign", {-1, 1}}};
  for (const auto& [op, bounds] : kResults) {
    if (IsOp(node, op)) return Rounded(bounds.low, bounds.high);
  }
  return std::nullopt;
}

class Walk {
 public:
  explicit Walk(const TidyContext& context) : context_(context) {}

  Bounds Of(const Value* value, int depth) {
    if (value == nullptr || depth > kDeepest || --left_ < 0) return std::nullopt;
    const Fact& fact = context_.facts().Of(value);
    if (Bounds known = OfElements(fact); known.has_value()) return known;
    const Node* const node = value->producer;
    if (node == nullptr || node->domain != NameId::kEmpty) return std::nullopt;
    if (Bounds known = OfResult(*node); known.has_value()) return known;
    return OfNode(*node, *value, depth + 1);
  }

 private:
  static Bounds OfElements(const Fact& fact) {
    if (fact.is_splat && std::isfinite(fact.splat)) return FloatBounds{fact.splat, fact.splat};
    if (fact.elements == nullptr || fact.elements->floats.empty()) return std::nullopt;
    const auto [low, high] = std::minmax_element(fact.elements->floats.begin(), fact.elements->floats.end());
    const bool finite =
        std::all_of(fact.elements->floats.begin(), fact.elements->floats.end(), [](double x) { return std::isfinite(x); });
    return finite ? Bounds(FloatBounds{*low, *high}) : std::nullopt;
  }

  Bounds OfNode(const Node& node, const Value& value, int depth) {
    const Movement* const movement = context_.facts().MovementOf(&value);
    const bool moves = movement != nullptr && movement->only() != nullptr &&
                       (movement->kind == MovementKind::kKeepsOrder || movement->kind == MovementKind::kPermutes ||
                        movement->kind == MovementKind::kPicks || movement->kind == MovementKind::kCopies);
    if (moves) return Of(node.input(movement->only()->operand), depth);
    if (IsOp(node, "Cast")) return OfCast(node, depth);
    if (IsOp(node, "Clip")) return OfClip(node, depth);
    if (IsOp(node, "Where")) return Union(Of(node.input(1), depth), Of(node.input(2), depth));
    return OfArithmetic(node, depth);
  }

  Bounds OfArithmetic(const Node& node, int depth) {
    const Bounds a = Of(node.input(0), depth);
    if (!a.has_value()) return std::nullopt;
    if (IsOp(node, "Neg")) return FloatBounds{-a->high, -a->low};
    if (node.input_count != 2) return std::nullopt;
    const Bounds b = Of(node.input(1), depth);
    if (!b.has_value()) return std::nullopt;
    if (IsOp(node, "Add")) return Rounded(a->low + b->low, a->high + b->high);
    if (IsOp(node, "Sub")) return Rounded(a->low - b->high, a->high - b->low);
    if (IsOp(node, "Mul")) return Product(*a, *b);
    const bool divides = IsOp(node, "Div") && (b->low > 0 || b->high < 0);
    return divides ? Product(*a, {1 / b->high, 1 / b->low}) : std::nullopt;
  }

  Bounds OfCast(const Node& node, int depth) {
    const DataType from = context_.facts().Of(node.input(0)).type;
    if (from == DataType::kBool) return FloatBounds{0, 1};
    if (IsFloat(from)) return Of(node.input(0), depth);
    const IntegerBounds bounds = BoundsOf(*node.input(0), context_.facts());
    if (!bounds.low.has_value() || !bounds.high.has_value()) return std::nullopt;
    return Rounded(static_cast<double>(*bounds.low), static_cast<double>(*bounds.high));
  }

  // Bounds that are constants: what is beyond them is one of them.
  Bounds OfClip(const Node& node, int depth) {
    if (node.input_count < 3) return std::nullopt;
    const Bounds low = Of(node.input(1), depth);
    const Bounds high = Of(node.input(2), depth);
    return low.has_value() && high.has_value() ? Bounds(FloatBounds{std::min(low->low, high->low), high->high}) : std::nullopt;
  }

  const TidyContext& context_;
  int left_ = kMostNodes;
};

}  // namespace

std::optional<FloatBounds> FloatBoundsOf(const TidyContext& context, const Value& value) { return Walk(context).Of(&value, 0); }

}  // namespace ascend_fuse
