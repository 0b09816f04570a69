#include "patterns/analysis/renormalized.h"

#include <utility>

#include "ir/attribute.h"
#include "ir/movement/axis.h"
#include "patterns/terms/term.h"

namespace ascend_fuse {
namespace {

// What keeps a sum of weights from 0 and is far below any weight that counts.
constexpr double kSmallestSum = 1e-9;

class RenormalizedReader {
 public:
  explicit RenormalizedReader(const FunctionContext& context) : context_(context) {}

  std::optional<Renormalized> Read(const Value* value) {
    const Node* node = Producer(value);
    if (node == nullptr) return std::nullopt;
    const Value* condition = nullptr;
    if (IsOp(*node, "Where") && IsNumber(node->input(2), 0)) {  // rows that are empty, once more
      condition = node->input(0);
      found_.nodes.push_back(node);
      node = Producer(node->input(1));
      if (node == nullptr) return std::nullopt;
    }
    const Value* total = nullptr;
    const Value* masked = nullptr;
    if (IsOp(*node, "Div")) {
      masked = node->input(0);
      total = node->input(1);
    } else if (IsOp(*node, "Mul")) {
      for (size_t i = 0; i < 2 && total == nullptr; ++i) {
        const Node* inverse = Producer(node->input(i));
        if (inverse == nullptr || !IsOp(*inverse, "Reciprocal")) continue;
        masked = node->input(1 - i);
        total = inverse->input(0);
      }
    }
    if (masked == nullptr || total == nullptr || IsHalf(masked)) return std::nullopt;
    found_.nodes.push_back(node);
    if (!ReadTotal(total, masked, condition) || !ReadMasked(masked)) return std::nullopt;
    return std::move(found_);
  }

 private:
  const Node* Producer(const Value* value) const {
    while (value != nullptr && context_.numbering->Source(value) != nullptr) value = context_.numbering->Source(value);
    const Node* node = value != nullptr ? value->producer : nullptr;
    return node != nullptr && node->domain == NameId::kEmpty ? node : nullptr;
  }

  bool IsNumber(const Value* value, double wanted) const {
    double number = 0;
    return value != nullptr && ConstantNumber(*context_.facts, value, &number) && number == wanted;
  }

  // In half precision small weights are 0 before they are divided: no softmax over the rest.
  bool IsHalf(const Value* value) const {
    const DataType type = context_.facts->Of(value).type;
    return type != DataType::kFloat && type != DataType::kDouble;
  }

  bool IsBoolean(const Value* value) const { return value != nullptr && context_.facts->Of(value).type == DataType::kBool; }

  // The sum of `masked`, kept from 0 or not. `condition`, where given, must be the one that keeps it.
  bool ReadTotal(const Value* total, const Value* masked, const Value* condition) {
    const Node* node = Producer(total);
    if (node == nullptr) return false;
    if (IsOp(*node, "Where")) {  // Where (sum > 0, sum, 1)
      const Node* test = Producer(node->input(0));
      if (test == nullptr || !IsOp(*test, "Greater") || !IsNumber(test->input(1), 0) || !IsNumber(node->input(2), 1))
        return false;
      if (node->input(1) == nullptr || test->input(0) == nullptr) return false;
      if (!context_.numbering->Same(test->input(0), node->input(1))) return false;
      if (condition != nullptr && !context_.numbering->Same(condition, node->input(0))) return false;
      found_.nodes.insert(found_.nodes.end(), {node, test});
      found_.guard = true;
      return ReadSum(node->input(1), masked);
    }
    if (condition != nullptr) return false;
    if (!IsOp(*node, "Max") && !IsOp(*node, "Add")) return ReadSum(total, masked);
    for (size_t i = 0; i < 2 && node->input_count == 2; ++i) {
      double least = 0;
      if (node->input(i) == nullptr || !ConstantNumber(*context_.facts, node->input(i), &least)) continue;
      if (least <= 0 || least > kSmallestSum) return false;
      found_.nodes.push_back(node);
      found_.guard = true;
      return ReadSum(node->input(1 - i), masked);
    }
    return false;
  }

  bool ReadSum(const Value* sum, const Value* masked) {
    const Node* node = Producer(sum);
    if (node == nullptr || !IsOp(*node, "ReduceSum") || node->input(0) == nullptr) return false;
    if (!context_.numbering->Same(node->input(0), masked) || IntAttribute(*node, "keepdims").value_or(1) != 1) return false;
    const auto axes = IntsParameter(*context_.facts, *node, "axes", 1);
    if (!axes.has_value() || axes->size() != 1) return false;
    found_.axis = static_cast<int>(NormalizeAxis((*axes)[0], context_.facts->Of(masked).rank()));
    found_.nodes.push_back(node);
    return found_.axis >= 0;
  }

  // Weights times the numbers of a boolean, or chosen by it.
  bool ReadMasked(const Value* masked) {
    const Node* node = Producer(masked);
    if (node == nullptr) return false;
    found_.nodes.push_back(node);
    if (IsOp(*node, "Where") && IsBoolean(node->input(0)) && IsNumber(node->input(2), 0)) {
      found_.keep = node->input(0);
      found_.weights = node->input(1);
      return found_.weights != nullptr;
    }
    if (!IsOp(*node, "Mul")) return false;
    for (size_t i = 0; i < 2; ++i) {
      const Node* cast = Producer(node->input(i));
      if (cast == nullptr || !IsOp(*cast, "Cast") || !IsBoolean(cast->input(0))) continue;
      found_.keep = cast->input(0);
      found_.weights = node->input(1 - i);
      return found_.weights != nullptr;
    }
    return false;
  }

  const FunctionContext& context_;
  Renormalized found_;
};

}  // namespace

std::optional<Renormalized> FindRenormalized(const FunctionContext& context, const Value* value) {
  return RenormalizedReader(context).Read(value);
}

}  // namespace ascend_fuse
