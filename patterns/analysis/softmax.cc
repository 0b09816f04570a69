#include "patterns/analysis/softmax.h"

#include <string_view>
#include <vector>

#include "ir/attribute.h"
#include "ir/infer/movement_of.h"
#include "ir/movement/axis.h"
#include "ir/schema.h"
#include "patterns/terms/term.h"

namespace ascend_fuse {
namespace {

constexpr double kLostInOne = 0x1p-25;  // less than half of what float32 adds to 1

class SoftmaxReader {
 public:
  explicit SoftmaxReader(const FunctionContext& context) : context_(context) {}

  std::optional<SoftmaxView> Read(const Value* value) {
    const Node* node = value->producer;
    if (node == nullptr || node->domain != NameId::kEmpty) return std::nullopt;
    if (IsOp(*node, "Softmax")) return Operator(*node);
    if (IsOp(*node, "Exp")) {
      const Node* log = Producer(node->input(0), "LogSoftmax");
      if (log == nullptr || !Operator(*log).has_value()) return std::nullopt;
      view_.nodes.insert(view_.nodes.begin(), node);
      return view_;
    }
    if (IsOp(*node, "Div")) return Formula(*node, node->input(0), node->input(1));
    if (!IsOp(*node, "Mul")) return std::nullopt;
    for (size_t i = 0; i < 2; ++i) {
      const Node* inverse = Producer(node->input(i), "Reciprocal");
      if (inverse == nullptr) continue;
      view_.nodes.push_back(inverse);
      return Formula(*node, node->input(1 - i), inverse->input(0));
    }
    return std::nullopt;
  }

  // Of exp (x) alone, which somebody else divides by a sum along the axis.
  std::optional<SoftmaxView> ReadExponential(const Value* value, int axis) {
    const Node* exp = Producer(value, "Exp");
    if (exp == nullptr || exp->input(0) == nullptr) return std::nullopt;
    view_.axis = axis;
    view_.nodes.push_back(exp);
    return OfExponential(*exp);
  }

  // Of exp (x), whose sum is `total`.
  std::optional<SoftmaxView> ReadUndivided(const Value* value, const Value* total) {
    const Node* exp = Producer(value, "Exp");
    if (exp == nullptr || exp->input(0) == nullptr) return std::nullopt;
    view_.nodes.push_back(exp);
    if (!Total(total, *exp) || !HasReducedShape(total, exp->output(), view_.axis)) return std::nullopt;
    return OfExponential(*exp);
  }

 private:
  // The node that computes the value, before copies; nullptr where there is none.
  const Node* Producer(const Value* value) const {
    while (value != nullptr && context_.numbering->Source(value) != nullptr) value = context_.numbering->Source(value);
    return value != nullptr ? value->producer : nullptr;
  }

  // The same, where it is of this operator.
  const Node* Producer(const Value* value, std::string_view op) const {
    const Node* node = Producer(value);
    return node != nullptr && IsOp(*node, op) ? node : nullptr;
  }

  std::optional<SoftmaxView> Operator(const Node& node) {
    if (node.input(0) == nullptr) return std::nullopt;
    const int rank = context_.facts->Of(node.input(0)).rank();
    const Schema* schema = SchemaOf(node);
    if (rank < 1 || schema == nullptr) return std::nullopt;
    const bool flattens = schema->since_version < 13;
    const int64_t axis = NormalizeAxis(IntAttribute(node, "axis").value_or(flattens ? 1 : -1), rank);
    if (axis < 0 || (flattens && axis != rank - 1)) return std::nullopt;
    view_.input = node.input(0);
    view_.axis = static_cast<int>(axis);
    view_.nodes.push_back(&node);
    return view_;
  }

  // Whether r is x reduced along its axis `axis`: the dims of x with 1 there.
  bool HasReducedShape(const Value* r, const Value* x, int axis) const {
    const Fact& reduced = context_.facts->Of(r);
    const Fact& whole = context_.facts->Of(x);
    if (!reduced.has_rank || reduced.shape.size() != whole.shape.size()) return false;
    for (size_t i = 0; i < whole.shape.size(); ++i) {
      const bool one = static_cast<int>(i) == axis;
      if (one ? !reduced.shape[i].is(1) : !context_.dims->Equal(reduced.shape[i], whole.shape[i])) return false;
    }
    return true;
  }

  // The node of this operator that reduces x along one axis, which stays as 1: at once, by a Reshape or the like
  // after it, and perhaps spread over x again. Its nodes are noted.
  const Node* Reduction(const Value* value, std::string_view op, const Value* x, int* axis) {
    std::vector<const Node*> read;
    if (const Node* expand = Producer(value); expand != nullptr && IsBroadcast(*context_.facts, expand->output())) {
      const Fact& spread = context_.facts->Of(expand->output());
      const Fact& whole = context_.facts->Of(x);
      if (!spread.has_rank || !whole.has_rank || !context_.dims->Equal(spread.shape, whole.shape)) return nullptr;
      read.push_back(expand);
      value = expand->input(0);
    }
    const Value* kept = value;
    if (const Node* shaping = Producer(value); shaping != nullptr && KeepsOrder(*context_.facts, *shaping)) {
      read.push_back(shaping);
      value = shaping->input(0);
    }
    const Node* reduction = Producer(value, op);
    if (reduction == nullptr || reduction->input(0) == nullptr || !context_.numbering->Same(reduction->input(0), x))
      return nullptr;
    const int rank = context_.facts->Of(x).rank();
    const auto axes = IntsParameter(*context_.facts, *reduction, "axes", 1);
    if (rank < 1 || !axes.has_value() || axes->size() != 1) return nullptr;
    *axis = static_cast<int>(NormalizeAxis((*axes)[0], rank));
    if (*axis < 0) return nullptr;
    const bool keeps = IntAttribute(*reduction, "keepdims").value_or(1) == 1;
    if ((!keeps || !read.empty()) && !HasReducedShape(kept, x, *axis)) return nullptr;
    read.push_back(reduction);
    view_.nodes.insert(view_.nodes.end(), read.begin(), read.end());
    return reduction;
  }

  // exp(x) / sum(exp(x)), or the same of x - max(x).
  std::optional<SoftmaxView> Formula(const Node& node, const Value* numerator, const Value* denominator) {
    const Node* exp = Producer(numerator, "Exp");
    if (exp == nullptr || exp->input(0) == nullptr) return std::nullopt;
    view_.nodes.insert(view_.nodes.begin(), {&node, exp});
    if (!Total(denominator, *exp)) return std::nullopt;
    return OfExponential(*exp);
  }

  // Whether `total` is the sum of the exponentials, or that and one thing more.
  bool Total(const Value* total, const Node& exp) {
    if (Reduction(total, "ReduceSum", exp.output(), &view_.axis) != nullptr) return true;
    const Node* sum = Producer(total);
    if (sum == nullptr || sum->input_count != 2 || (!IsOp(*sum, "Add") && !IsOp(*sum, "Sum"))) return false;
    for (size_t i = 0; i < 2; ++i) {
      if (Reduction(sum->input(i), "ReduceSum", exp.output(), &view_.axis) == nullptr) continue;
      view_.nodes.push_back(sum);
      view_.added = sum->input(1 - i);
      return true;
    }
    return false;
  }

  // Whether `value` is a number that no sum from 1 on is changed by in float32 or less.
  bool IsLostInOne(const Value* value) const {
    double number = 0;
    if (!ConstantNumber(*context_.facts, value, &number)) return false;
    return number >= 0 && number < kLostInOne && context_.facts->Of(value).type != DataType::kDouble;
  }

  // What the exponential is taken of, without the subtraction of its largest number along the axis.
  SoftmaxView OfExponential(const Node& exp) {
    view_.input = exp.input(0);
    const Node* sub = Producer(exp.input(0), "Sub");
    int axis = -1;
    if (sub == nullptr || sub->input(0) == nullptr || sub->input(1) == nullptr) return view_;
    const size_t before = view_.nodes.size();
    if (Reduction(sub->input(1), "ReduceMax", sub->input(0), &axis) != nullptr && axis == view_.axis) {
      view_.nodes.insert(view_.nodes.begin() + static_cast<int64_t>(before), sub);
      view_.input = sub->input(0);
      // One of the exponentials is 1.
      if (view_.added != nullptr && IsLostInOne(view_.added)) view_.added = nullptr;
    } else {
      view_.nodes.resize(before);
    }
    return view_;
  }

  const FunctionContext& context_;
  SoftmaxView view_;
};

}  // namespace

std::optional<SoftmaxView> FindSoftmax(const FunctionContext& context, const Value* value) {
  return SoftmaxReader(context).Read(value);
}

std::optional<SoftmaxView> FindExponential(const FunctionContext& context, const Value* value, int axis) {
  return SoftmaxReader(context).ReadExponential(value, axis);
}

std::optional<SoftmaxView> FindUndivided(const FunctionContext& context, const Value* value, const Value* total) {
  return SoftmaxReader(context).ReadUndivided(value, total);
}

}  // namespace ascend_fuse
