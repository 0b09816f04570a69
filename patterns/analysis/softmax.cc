#include "patterns/analysis/softmax.h"

#include <string_view>

#include "ir/attribute.h"
#include "ir/schema.h"
#include "patterns/language/term.h"

namespace ascend_fuse {
namespace {

class SoftmaxReader {
 public:
  explicit SoftmaxReader(const FunctionContext& context) : context_(context) {}

  std::optional<SoftmaxView> Read(Value* value) {
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

 private:
  // The node of this operator that computes the value, behind copies; nullptr where there is none.
  const Node* Producer(Value* value, std::string_view op) const {
    while (value != nullptr && context_.numbering->Source(value) != nullptr) value = context_.numbering->Source(value);
    return value != nullptr && value->producer != nullptr && IsOp(*value->producer, op) ? value->producer : nullptr;
  }

  std::optional<SoftmaxView> Operator(const Node& node) {
    if (node.input(0) == nullptr) return std::nullopt;
    const int rank = context_.facts->Of(node.input(0)).rank();
    const Schema* schema = SchemaOf(node, context_.opset);
    if (rank < 1 || schema == nullptr) return std::nullopt;
    const bool flattens = schema->since_version < 13;
    int64_t axis = IntAttribute(node, "axis").value_or(flattens ? 1 : -1);
    if (axis < 0) axis += rank;
    if (axis < 0 || axis >= rank || (flattens && axis != rank - 1)) return std::nullopt;
    view_.input = node.input(0);
    view_.axis = static_cast<int>(axis);
    view_.nodes.push_back(&node);
    return view_;
  }

  // The axis along which `node` reduces `value` to 1; -1 where it does anything else.
  int ReducedAxis(const Node& node, const Value* value) {
    if (node.input(0) == nullptr || !context_.numbering->Same(node.input(0), value)) return -1;
    const int rank = context_.facts->Of(value).rank();
    const auto axes = IntsParameter(*context_.facts, node, "axes", 1);
    if (rank < 1 || !axes.has_value() || axes->size() != 1 || IntAttribute(node, "keepdims").value_or(1) != 1) return -1;
    const int64_t axis = (*axes)[0] < 0 ? (*axes)[0] + rank : (*axes)[0];
    return axis < 0 || axis >= rank ? -1 : static_cast<int>(axis);
  }

  // exp(x) / sum(exp(x)), or the same of x - max(x).
  std::optional<SoftmaxView> Formula(const Node& node, Value* numerator, Value* denominator) {
    const Node* exp = Producer(numerator, "Exp");
    const Node* sum = Producer(denominator, "ReduceSum");
    if (exp == nullptr || sum == nullptr || exp->input(0) == nullptr) return std::nullopt;
    view_.axis = ReducedAxis(*sum, exp->output());
    if (view_.axis < 0) return std::nullopt;
    view_.nodes.insert(view_.nodes.begin(), {&node, sum, exp});
    view_.input = exp->input(0);
    const Node* sub = Producer(exp->input(0), "Sub");
    const Node* maximum = sub != nullptr ? Producer(sub->input(1), "ReduceMax") : nullptr;
    if (maximum != nullptr && ReducedAxis(*maximum, sub->input(0)) == view_.axis) {
      view_.nodes.insert(view_.nodes.end(), {sub, maximum});
      view_.input = sub->input(0);
    }
    return view_;
  }

  const FunctionContext& context_;
  SoftmaxView view_;
};

}  // namespace

std::optional<SoftmaxView> FindSoftmax(const FunctionContext& context, Value* value) {
  return SoftmaxReader(context).Read(value);
}

}  // namespace ascend_fuse
