// Hints of functions about shapes, axes and constants.
#include <algorithm>
#include <cmath>
#include <limits>

#include "fmt/format.h"
#include "tools/backwards/hints.h"

namespace ascend_fuse::backwards {

bool FunctionHint::SameShape(Builder* builder, PendingCondition*, const Expression&, const std::vector<int>& operands,
                             bool* done) {
  if (operands[0] == kUnknown || operands[1] == kUnknown) return *done = true;
  const bool a = builder->Shaped(operands[0]);
  if (!a && !builder->Shaped(operands[1])) return true;
  *done = true;
  return a ? builder->SetShape(operands[1], builder->DimsOf(operands[0]))
           : builder->SetShape(operands[0], builder->DimsOf(operands[1]));
}

bool FunctionHint::BroadcastsTo(Builder* builder, PendingCondition* pending, const Expression&, const std::vector<int>& operands,
                                bool* done) {
  if (operands[0] == kUnknown || operands[1] == kUnknown || builder->values_[static_cast<size_t>(operands[0])].scalar) {
    return *done = true;
  }
  if (!builder->Shaped(operands[1])) return true;
  std::vector<int> dims = builder->DimsOf(operands[1]);
  if (builder->Shaped(operands[0])) {
    *done = true;
    const std::vector<int> narrow = builder->DimsOf(operands[0]);
    if (narrow.size() > dims.size()) return builder->Fail("a rank too large to broadcast");
    for (size_t i = 1; i <= narrow.size(); ++i) {
      const int dim = narrow[narrow.size() - i];
      if (builder->NumberOfDim(dim) != 1 && !builder->Join(dim, dims[dims.size() - i])) return false;
    }
    return true;
  }
  *done = true;
  for (const PendingCondition& other : builder->conditions_) {  // as wide as another one, mostly
    if (other.frame != pending->frame || !Builder::Calls(other.condition->left, "broadcasts_to")) continue;
    const int narrow = builder->ValueOf(other.condition->left.arguments[0], other.frame);
    if (builder->ValueOf(other.condition->left.arguments[1], other.frame) != operands[1]) continue;
    if (builder->Shaped(narrow) && builder->random_.Chance(60)) return builder->SetShape(operands[0], builder->DimsOf(narrow));
  }
  if (dims.size() > 2 && builder->random_.Chance(30)) {
    dims.erase(dims.begin(), dims.begin() + builder->random_.Below(static_cast<int>(dims.size()) - 1));
  }
  for (size_t i = 0; i + 1 < dims.size(); ++i) {
    if (builder->random_.Chance(40)) dims[i] = builder->NewDim(1);
  }
  return builder->SetShape(operands[0], dims);
}

bool FunctionHint::Last(Builder* builder, PendingCondition* pending, const Expression& call, const std::vector<int>&,
                        bool* done) {
  *done = true;
  return builder->Evaluate(call, pending->frame).has_value() || builder->Fail("axes that are not the last ones");
}

bool FunctionHint::Constant(Builder* builder, PendingCondition*, const Expression&, const std::vector<int>& operands,
                            bool* done) {
  *done = true;
  if (operands[0] != kUnknown) builder->values_[static_cast<size_t>(operands[0])].constant = true;
  return true;
}

bool FunctionHint::AllAre(Builder* builder, PendingCondition* pending, const Expression& call, const std::vector<int>& operands,
                          bool* done) {
  *done = true;
  const std::optional<Result> number = builder->Evaluate(call.arguments[1], pending->frame);
  if (operands[0] == kUnknown || !number.has_value()) return true;
  GraphValue& value = builder->values_[static_cast<size_t>(operands[0])];
  value.constant = true;
  value.element = [n = number->number](int64_t, int64_t) { return n; };
  return true;
}

bool FunctionHint::NegativeAxes(Builder* builder, PendingCondition*, const Expression&, const std::vector<int>& operands,
                                bool* done) {
  *done = true;
  if (operands[0] == kUnknown) return true;
  GraphNode* node = builder->Producer(operands[0]);
  if (node == nullptr) return builder->Fail("axes that nothing has");
  if (node->schema == nullptr || node->schema->FindAttribute("axes") == nullptr) return builder->Fail("axes in an input");
  return node->axes_from_end = true;
}

bool FunctionHint::OneShape(Builder* builder, PendingCondition*, const Expression&, const std::vector<int>& operands,
                            bool* done) {
  *done = true;
  if (operands[0] != kUnknown && operands[1] != kUnknown) builder->same_shapes_.emplace_back(operands[0], operands[1]);
  return builder->changed_ = true;
}

bool FunctionHint::InPlaceSafe(Builder* builder, PendingCondition*, const Expression&, const std::vector<int>& operands,
                               bool* done) {
  *done = true;
  if (operands[0] != kUnknown && builder->IsLeaf(operands[0]))
    builder->Define({operands[0]}, "Tanh", {builder->NewValue("before")});
  return true;
}

}  // namespace ascend_fuse::backwards
