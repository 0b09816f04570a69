// Numbers for dims and constants: equations between products, sums and the equalities of the rule.
#include <algorithm>
#include <cmath>

#include "fmt/format.h"
#include "tools/backwards/builder.h"

namespace ascend_fuse::backwards {

bool Builder::Solve(const Expression& expression, Frame* frame, double target, bool* moved) {
  switch (expression.kind) {
    case Expression::Kind::kName: {
      if (expression.slot < 0) return true;
      return Solve(&frame->slots[static_cast<size_t>(expression.slot)], target, moved);
    }
    case Expression::Kind::kBinary: {
      const std::optional<Result> left = Evaluate(expression.arguments[0], frame);
      const std::optional<Result> right = Evaluate(expression.arguments[1], frame);
      if (left.has_value() == right.has_value()) {
        // n * n
        const Expression& a = expression.arguments[0];
        const Expression& b = expression.arguments[1];
        const bool square = !left.has_value() && expression.text == "*" && a.kind == Expression::Kind::kName &&
                            b.kind == Expression::Kind::kName && a.slot >= 0 && a.slot == b.slot;
        return !square || Solve(a, frame, std::sqrt(target), moved);
      }
      const char op = expression.text[0];
      if (right.has_value()) {
        const double b = right->number;
        const double a = op == '+' ? target - b : op == '-' ? target + b : op == '*' ? target / b : target * b;
        return Solve(expression.arguments[0], frame, a, moved);
      }
      const double a = left->number;
      const double b = op == '+' ? target - a : op == '-' ? a - target : op == '*' ? target / a : a / target;
      return Solve(expression.arguments[1], frame, b, moved);
    }
    case Expression::Kind::kCall: {
      const int value = expression.arguments.empty() ? kUnknown : ValueOf(expression.arguments[0], frame);
      if (expression.text == "value" && value != kUnknown) {
        GraphValue& constant = values_[static_cast<size_t>(value)];
        if (!constant.number_fixed) {
          constant.number = target;
          constant.number_fixed = true;
          *moved = true;
        }
      } else if (expression.text == "rank" && value != kUnknown && !Shaped(value)) {
        if (target < 0 || target > 6) return Fail("a rank that no graph has");
        std::vector<int> dims(static_cast<size_t>(target));
        for (int& dim : dims) dim = NewDim();
        *moved = true;
        return SetShape(value, dims);
      } else if (expression.text == "dim" && Shaped(value)) {
        const std::optional<Result> axis = Evaluate(expression.arguments[1], frame);
        const std::vector<int> dims = DimsOf(value);
        int64_t at = axis.has_value() ? static_cast<int64_t>(axis->number) : 99;
        if (at < 0) at += static_cast<int64_t>(dims.size());
        if (at >= 0 && at < static_cast<int64_t>(dims.size()) && NumberOfDim(dims[static_cast<size_t>(at)]) < 0) {
          Slot slot = Slot::Of(Slot::Kind::kDim);
          slot.dim = dims[static_cast<size_t>(at)];
          return Solve(&slot, target, moved);
        }
      }
      return true;
    }
    default:
      return true;
  }
}

bool Builder::Solve(Slot* slot, double target, bool* moved) {
  if (slot->kind == Slot::Kind::kDim && NumberOfDim(slot->dim) < 0) {
    if (target < 1 || target != std::floor(target)) return Fail(fmt::format("a dim of {}", target));
    *moved = true;
    return Assign(slot->dim, static_cast<int64_t>(target));
  }
  if (slot->kind == Slot::Kind::kUnbound) {
    slot->kind = Slot::Kind::kNumber;
    slot->number = target;
    *moved = true;
  }
  if (slot->kind == Slot::Kind::kExpression) {
    if (Evaluate(*slot).has_value()) return true;
    return Solve(*slot->expression, slot->frame, target, moved);
  }
  return true;
}

bool Builder::SolveProduct(const std::vector<int>& left, const std::vector<int>& right, double factor, bool* moved) {
  std::vector<int> a;
  std::vector<int> b;
  for (int dim : left) a.push_back(Root(dim));
  for (int dim : right) b.push_back(Root(dim));
  for (size_t i = 0; i < a.size();) {
    auto same = std::find(b.begin(), b.end(), a[i]);
    if (same == b.end()) {
      ++i;
      continue;
    }
    b.erase(same);
    a.erase(a.begin() + static_cast<std::ptrdiff_t>(i));
  }
  for (int dim : a) dims_[static_cast<size_t>(dim)].locked = true;
  for (int dim : b) dims_[static_cast<size_t>(dim)].locked = true;
  double product_a = 1;
  double product_b = factor;
  int unknown = kUnknown;
  int unknowns = 0;
  bool in_a = false;
  for (const auto* side : {&a, &b}) {
    for (int dim : *side) {
      const int64_t number = NumberOfDim(dim);
      if (number < 0) {
        unknown = dim;
        in_a = side == &a;
        ++unknowns;
      } else {
        (side == &a ? product_a : product_b) *= static_cast<double>(number);
      }
    }
  }
  if (unknowns == 0) return product_a == product_b || Fail("numbers of elements differ");
  if (unknowns > 1) return true;
  const double number = in_a ? product_b / product_a : product_a / product_b;
  if (number != std::floor(number)) return Fail("a dim that is not a whole number");
  *moved = true;
  return Assign(unknown, static_cast<int64_t>(number));
}

bool Builder::Number() {
  // Equalities of conditions join the ones noted on the way.
  for (PendingCondition& pending : conditions_) {
    if (pending.condition->relation != Condition::Relation::kEqual || IsShapeCondition(*pending.condition)) continue;
    LockNames(pending.condition->left, pending.frame);
    LockNames(pending.condition->right, pending.frame);
  }
  for (auto& [a, b] : equal_) {
    for (Slot* slot : {&a, &b}) {
      if (slot->kind == Slot::Kind::kDim) dims_[static_cast<size_t>(Root(slot->dim))].locked = true;
      if (slot->kind == Slot::Kind::kExpression) LockNames(*slot->expression, slot->frame);
    }
  }
  for (PendingCondition& pending : conditions_) {
    LockCalls(pending.condition->left, pending.frame, false);
    LockCalls(pending.condition->right, pending.frame, false);
  }
  for (const GraphValue& value : values_) {
    if (!value.constant) continue;
    for (int dim : value.dims) dims_[static_cast<size_t>(Root(dim))].locked = true;
  }
  const std::vector<Dimension> before = dims_;
  const std::vector<GraphValue> values_before = values_;
  std::vector<std::vector<Slot>> slots_before;
  for (const Frame& frame : frames_) slots_before.push_back(frame.slots);
  for (int attempt = 0; attempt < 30; ++attempt) {
    failure_.clear();
    dims_ = before;
    values_ = values_before;
    for (size_t i = 0; i < slots_before.size(); ++i) frames_[i].slots = slots_before[i];
    if (TryNumbers()) return true;
  }
  return false;
}

void Builder::LockNames(const Expression& expression, Frame* frame) {
  if (expression.kind == Expression::Kind::kName && expression.slot >= 0) {
    const Slot& slot = frame->slots[static_cast<size_t>(expression.slot)];
    if (slot.kind == Slot::Kind::kDim) dims_[static_cast<size_t>(Root(slot.dim))].locked = true;
    if (slot.kind == Slot::Kind::kExpression) LockNames(*slot.expression, slot.frame);
  }
  for (const Expression& argument : expression.arguments) LockNames(argument, frame);
}

void Builder::LockCalls(const Expression& expression, Frame* frame, bool all) {
  if (expression.kind == Expression::Kind::kCall) {
    all = all || expression.text == "number";
    const int value = expression.arguments.empty() ? kUnknown : ValueOf(expression.arguments[0], frame);
    if (Shaped(value)) {
      const std::vector<int> dims = DimsOf(value);
      const bool some = expression.text == "size" || expression.text == "dim";
      const auto axes = some ? AxesOf(expression.arguments[1], frame, dims.size()) : std::nullopt;
      for (size_t i = 0; i < dims.size(); ++i) {
        const bool named = axes.has_value() && std::find(axes->begin(), axes->end(), i) != axes->end();
        if (all || named) dims_[static_cast<size_t>(Root(dims[i]))].locked = true;
      }
    }
  }
  for (const Expression& argument : expression.arguments) LockCalls(argument, frame, all);
}

bool Builder::SolveEqualities(bool* moved) {
  for (auto& [a, b] : equal_) {
    const std::optional<Result> x = Evaluate(a);
    const std::optional<Result> y = Evaluate(b);
    if (x.has_value() && y.has_value() && !Same(*x, *y)) return Fail("two sides are not equal");
    const std::optional<double> left = OneNumber(x);
    const std::optional<double> right = OneNumber(y);
    if (left.has_value() && !y.has_value() && !Solve(&b, *left, moved)) return false;
    if (right.has_value() && !x.has_value() && !Solve(&a, *right, moved)) return false;
  }
  for (PendingCondition& pending : conditions_) {
    if (pending.condition->relation != Condition::Relation::kEqual || IsShapeCondition(*pending.condition)) continue;
    const Condition& condition = *pending.condition;
    const std::optional<Result> x = Evaluate(condition.left, pending.frame);
    const std::optional<Result> y = Evaluate(condition.right, pending.frame);
    const std::optional<double> left = OneNumber(x);
    const std::optional<double> right = OneNumber(y);
    if (left.has_value() && !y.has_value() && !Solve(condition.right, pending.frame, *left, moved)) return false;
    if (right.has_value() && !x.has_value() && !Solve(condition.left, pending.frame, *right, moved)) return false;
  }
  return true;
}

bool Builder::TryNumbers() {
  // Kernels take heads of 64 and 128 channels; graphs for lowerings have them often.
  if (frames_.front().rules != &library_ && random_.Chance(50)) {
    const int64_t width = random_.Chance(50) ? 64 : 128;
    for (const Slot& slot : frames_.front().slots) {
      if (slot.kind != Slot::Kind::kValue || !Shaped(slot.value) || DimsOf(slot.value).empty()) continue;
      const int last = DimsOf(slot.value).back();
      if (NumberOfDim(last) < 0 && random_.Chance(80) && !Assign(last, width)) return false;
    }
  }
  for (int round = 0; round < 200; ++round) {
    bool moved = true;
    while (moved) {
      moved = false;
      for (const auto& equation : equations_) {
        if (!SolveProduct(equation.left, equation.right, equation.factor, &moved)) return false;
      }
      for (const auto& [parts, whole] : sums_) {
        int64_t sum = 0;
        bool known = true;
        for (int part : parts) {
          known = known && NumberOfDim(part) >= 0;
          sum += NumberOfDim(part);
          dims_[static_cast<size_t>(Root(part))].locked = true;
        }
        dims_[static_cast<size_t>(Root(whole))].locked = true;
        if (!known) continue;
        if (NumberOfDim(whole) < 0) moved = true;
        if (!Assign(whole, sum)) return false;
      }
      if (!SolveEqualities(&moved)) return false;
    }
    std::vector<int> open;
    for (size_t i = 0; i < dims_.size(); ++i) {
      if (Root(static_cast<int>(i)) == static_cast<int>(i) && dims_[i].number < 0) open.push_back(static_cast<int>(i));
    }
    if (open.empty()) {
      for (size_t i = 0; i < values_.size() && !moved; ++i) {
        if (!values_[i].scalar || values_[i].number_fixed) continue;
        NumberOf(static_cast<int>(i));
        moved = true;
      }
      if (!moved) return true;
      continue;
    }
    static const std::vector<int64_t> kSizes = {1, 2, 2, 3, 4, 4, 5, 6, 8, 16, 16, 64};
    int64_t size = random_.Pick(kSizes);
    if (random_.Chance(50)) {
      // As large as another one: kernels want heads, widths and batches to agree where rules need not.
      const int64_t other = NumberOfDim(random_.Below(static_cast<int>(dims_.size())));
      if (other > 0) size = other;
    }
    if (!Assign(random_.Pick(open), size)) return false;
  }
  return Fail("dims that do not settle");
}

}  // namespace ascend_fuse::backwards
