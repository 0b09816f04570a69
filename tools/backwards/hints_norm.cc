// Hints of functions about norms: reduced axes, weights and channels.
#include <algorithm>
#include <cmath>
#include <limits>

#include "fmt/format.h"
#include "tools/backwards/hints.h"

namespace ascend_fuse::backwards {

bool FunctionHint::Reduced(Builder* builder, PendingCondition* pending, const Expression& call, const std::vector<int>& operands,
                           bool* done) {
  if (operands[0] == kUnknown || operands[1] == kUnknown) return *done = true;
  if (!builder->Shaped(operands[1])) return true;
  std::vector<int> dims = builder->DimsOf(operands[1]);
  const auto axes = builder->AxesOf(call.arguments[2], pending->frame, dims.size());
  if (!axes.has_value()) return builder->Fail("an axis beyond the rank");
  *done = true;
  for (int64_t axis : *axes) dims[static_cast<size_t>(axis)] = builder->NewDim(1);
  GraphNode* node = builder->Producer(operands[0]);
  while (node != nullptr && node->schema->elementwise) node = builder->Producer(node->inputs[0]);  // scaled
  if (node != nullptr && node->op == "Unsqueeze") {
    Parameter* written = node->Find("axes");
    if (written != nullptr && written->kind == Parameter::Kind::kFree) {
      written->kind = Parameter::Kind::kInts;
      written->ints = *axes;
    }
  }
  return builder->SetShape(operands[0], dims);
}

bool FunctionHint::Weight(Builder* builder, int weight, std::vector<int> dims, size_t rank) {
  for (int dim : dims) builder->dims_[static_cast<size_t>(builder->Root(dim))].locked = true;
  if (weight == kUnknown || builder->Shaped(weight)) return true;
  while (dims.size() < rank && builder->random_.Chance(25)) dims.insert(dims.begin(), builder->NewDim(1));
  return builder->SetShape(weight, dims);
}

bool FunctionHint::NormWeight(Builder* builder, PendingCondition* pending, const Expression& call,
                              const std::vector<int>& operands, bool* done) {
  if (operands[1] == kUnknown) return *done = true;
  if (!builder->Shaped(operands[1])) return true;
  const std::vector<int> dims = builder->DimsOf(operands[1]);
  const std::optional<double> axis = Builder::OneNumber(builder->Evaluate(call.arguments[2], pending->frame));
  *done = true;
  if (!axis.has_value()) return true;
  if (*axis >= 0 || -*axis > static_cast<double>(dims.size())) return builder->Fail("an axis beyond the rank");
  builder->channels_.push_back(operands[1]);  // of one number the norm is what rounding left
  return Weight(builder, operands[0], std::vector<int>(dims.end() + static_cast<int>(*axis), dims.end()), dims.size());
}

bool FunctionHint::Channels(Builder* builder, PendingCondition*, const Expression&, const std::vector<int>& operands,
                            bool* done) {
  if (operands[1] == kUnknown) return *done = true;
  if (!builder->Shaped(operands[1])) return true;
  *done = true;
  const std::vector<int> of = builder->DimsOf(operands[1]);
  if (of.size() < 2) return builder->Fail("a value without channels");
  std::vector<int> dims = {of[1]};
  while (dims.size() + 1 < of.size()) dims.push_back(builder->NewDim(1));
  return Weight(builder, operands[0], dims, of.size());
}

bool FunctionHint::PerChannel(Builder* builder, PendingCondition*, const Expression&, const std::vector<int>& operands,
                              bool* done) {
  if (operands[0] == kUnknown || operands[1] == kUnknown) return *done = true;
  if (!builder->Shaped(operands[1])) return true;
  *done = true;
  const std::vector<int> of = builder->DimsOf(operands[1]);
  if (of.size() < 2) return builder->Fail("a value without channels");
  return builder->SetShape(operands[0], {of[1]});
}

}  // namespace ascend_fuse::backwards
