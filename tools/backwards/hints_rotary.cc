// Hints of functions about rotary embeddings: how channels are cut, turned and joined.
#include <algorithm>
#include <cmath>
#include <limits>

#include "fmt/format.h"
#include "tools/backwards/hints.h"

namespace ascend_fuse::backwards {

std::string FunctionHint::RotationMode(Builder* builder, const PendingCondition& pending, const Expression& call, bool leaf,
                                       bool signs) {
  static const std::vector<std::string> kNames = {"half", "interleaved", "quarter", "interleave_half"};
  const auto chosen = builder->called_.find({&call, pending.frame});
  if (chosen != builder->called_.end()) return chosen->second.text;
  if (const std::optional<Result> wanted = builder->Wanted(pending, call); wanted.has_value()) {
    return wanted->text == "interleave_half" && !leaf ? "" : wanted->text;
  }
  const int option = builder->Choose(pending.frame->path + " > rotation", kNames, {true, true, true, leaf && signs});
  return kNames[static_cast<size_t>(option)];
}

bool FunctionHint::Rotation(Builder* builder, PendingCondition* pending, const Expression& call, const std::vector<int>& operands,
                            bool* done) {
  *done = true;
  const int r = operands[0];
  const int x = operands[1];
  if (r == kUnknown || x == kUnknown) return true;
  const int signs = operands.size() > 3 ? operands[3] : kUnknown;
  if (builder->IsLeaf(r)) {
    const std::string mode = RotationMode(builder, *pending, call, builder->IsLeaf(x), operands.size() > 3);
    if (mode.empty()) return builder->Fail("channels that are computed already");
    builder->called_[{&call, pending->frame}] = Result::Text(mode);
    const std::optional<double> given = Builder::OneNumber(builder->Evaluate(call.arguments[2], pending->frame));
    const double sign = given.value_or(1);
    int pairs = kUnknown;
    for (const PendingCondition& other : builder->conditions_) {
      if (other.frame != pending->frame || !Builder::Calls(other.condition->right, "rotation_source")) continue;
      const auto [entry, fresh] = builder->called_.try_emplace({&other.condition->right, pending->frame}, Result::Value(x));
      if (fresh && mode == "interleave_half") {
        entry->second.value = builder->NewValue("pairs");
        builder->same_shapes_.emplace_back(entry->second.value, x);
        builder->changed_ = true;
      }
      pairs = entry->second.value;
    }
    if (mode == "interleave_half") {
      if (!builder->Shaped(x)) {
        *done = false;
        return true;
      }
      // [..., D] as [..., D/2, 2], and the last two axes exchanged
      std::vector<int> dims = builder->DimsOf(x);
      dims.back() = builder->NewDim();
      dims.push_back(builder->NewDim(2));
      std::vector<int64_t> perm(dims.size());
      for (size_t i = 0; i < perm.size(); ++i) perm[i] = static_cast<int64_t>(i);
      std::swap(perm[perm.size() - 1], perm[perm.size() - 2]);
      const int apart = builder->Make("Reshape", {pairs, builder->NewTarget()});
      if (!builder->SetShape(apart, dims)) return false;
      const int turned = builder->Make("Transpose", {apart}, {Parameter::Ints("perm", perm)});
      builder->Define({x}, "Reshape", {turned, builder->NewTarget()});
    }
    const int blocks = mode == "quarter" ? 4 : 2;
    const bool strided = mode == "interleaved";
    std::vector<int> parts = builder->Cut(x, blocks, strided);
    for (size_t i = 0; i < parts.size(); i += 2) std::swap(parts[i], parts[i + 1]);
    for (size_t i = 0; i < parts.size(); ++i) {
      if (signs == kUnknown && (i % 2 == 0) == (sign > 0)) parts[i] = builder->Negative(parts[i]);
    }
    if (strided) {
      for (int& part : parts) part = builder->Make("Unsqueeze", {part}, {Parameter::Ints("axes", {-1})});
      builder->Define({r}, "Reshape", {builder->Make("Concat", parts, {Parameter::Number("axis", -1)}), builder->NewTarget()});
      builder->same_shapes_.emplace_back(r, x);
    } else {
      builder->Define({r}, "Concat", parts, {Parameter::Number("axis", -1)});
    }
    if (signs != kUnknown) {
      GraphValue& vector = builder->values_[static_cast<size_t>(signs)];
      vector.constant = true;
      vector.element = [sign, blocks, strided](int64_t i, int64_t count) {
        return (strided ? i % 2 == 0 : i * blocks / count % 2 == 0) ? -sign : sign;
      };
    }
  }
  if (signs == kUnknown || builder->Shaped(signs)) return true;
  if (!builder->Shaped(x)) {
    *done = false;
    return true;
  }
  return builder->SetShape(signs, {builder->DimsOf(x).back()});
}

int FunctionHint::WholeOf(Builder* builder, PendingCondition* pending, const std::vector<std::string_view>& calls) {
  for (const PendingCondition& other : builder->conditions_) {
    if (other.frame != pending->frame) continue;
    for (std::string_view name : calls) {
      if (!Builder::Calls(other.condition->right, name)) continue;
      const auto [entry, fresh] = builder->called_.try_emplace({&other.condition->right, pending->frame});
      if (fresh) entry->second = Result::Value(builder->NewValue("x"));
      return entry->second.value;
    }
  }
  return builder->NewValue("x");
}

bool FunctionHint::PairRotation(Builder* builder, PendingCondition* pending, const Expression& call,
                                const std::vector<int>& operands, bool* done) {
  for (int operand : operands) {
    if (operand == kUnknown) return *done = true;
  }
  const int y = operands[0];
  GraphNode* join = builder->Producer(y);
  const bool reshaped = join != nullptr && join->op == "Reshape";
  if (reshaped) join = builder->Producer(join->inputs[0]);
  if (join == nullptr || join->op != "Concat") return builder->Fail("parts that are not joined");
  std::vector<GraphNode*> apart;
  for (size_t i = 0; i < 2; ++i) {
    GraphNode* node = builder->Producer(join->inputs[i]);
    if (join->inputs[i] != operands[1 + i]) apart.push_back(node);
  }
  if (apart.size() == 1) return builder->Fail("one part with an axis more");
  if (builder->IsLeaf(operands[3])) {
    std::string mode = "half";
    const std::optional<Result> wanted = builder->Wanted(*pending, call);
    if (!apart.empty()) {
      const std::vector<std::string> names = {"half", "interleaved"};
      mode = wanted.has_value() ? wanted->text
                                : names[static_cast<size_t>(builder->Choose(pending->frame->path + " > pair_rotation", names))];
    }
    if (wanted.has_value() && wanted->text != mode) return builder->Fail("another mode");
    if (mode != "half" && mode != "interleaved") return builder->Fail("a mode that parts do not have");
    builder->called_[{&call, pending->frame}] = Result::Text(mode);
    const int axis = apart.empty() || mode == "interleaved" ? -1 : -2;
    *join->Find("axis") = Parameter::Number("axis", axis);
    for (GraphNode* node : apart) {
      if (node->op == "Unsqueeze") *node->Find("axes") = Parameter::Ints("axes", {axis});
    }
    const int x = WholeOf(builder, pending, {"joined_source"});
    builder->CutInto(x, {operands[3], operands[4]}, mode == "interleaved");
    if (reshaped) builder->same_shapes_.emplace_back(x, y);
  }
  if (!builder->Shaped(operands[1])) return true;
  *done = true;
  const std::string mode = builder->called_[{&call, pending->frame}].text;
  for (GraphNode* node : apart) {
    if (node->op != "Reshape") continue;
    std::vector<int> dims = builder->DimsOf(operands[1]);
    dims.insert(dims.end() - (mode == "interleaved" ? 0 : 1), builder->NewDim(1));
    if (!builder->SetShape(node->outputs[0], dims)) return false;
  }
  return true;
}

bool FunctionHint::Whole(Builder* builder, PendingCondition* pending, const Expression& call, const std::vector<int>& operands,
                         bool* done) {
  *done = true;
  if (operands[0] == kUnknown || operands[1] == kUnknown || !builder->IsLeaf(operands[0])) return true;
  if (call.arguments.size() < 4) return true;  // pair_rotation cuts
  const int x = WholeOf(builder, pending, {"joined_source"});
  const bool interleaved = call.arguments[3].text == "interleaved";
  const GraphNode* y = builder->Producer(operands[2]);
  if (y != nullptr && y->op == "Reshape") {  // each channel beside an axis of 1
    const std::vector<int> parts = builder->Cut(x, 2, interleaved);
    for (size_t i = 0; i < 2; ++i) builder->Define({operands[i]}, "Unsqueeze", {parts[i]}, {Parameter::Ints("axes", {-1})});
    builder->same_shapes_.emplace_back(x, operands[2]);
  } else {
    builder->CutInto(x, {operands[0], operands[1]}, interleaved);
  }
  return true;
}

bool FunctionHint::WrittenRotation(Builder* builder, PendingCondition* pending, const Expression& call,
                                   const std::vector<int>& operands, bool* done) {
  *done = true;
  for (size_t i : {0, 2, 3, 4, 5}) {
    if (operands[i] == kUnknown) return true;
  }
  if (!builder->IsLeaf(operands[4])) return true;
  const std::vector<std::string> names = {"half", "interleaved", "interleave_half"};
  const std::optional<Result> wanted = builder->Wanted(*pending, call);
  const std::string mode = wanted.has_value()
                               ? wanted->text
                               : names[static_cast<size_t>(builder->Choose(pending->frame->path + " > written_rotation", names))];
  if (std::find(names.begin(), names.end(), mode) == names.end()) return builder->Fail("a mode that parts do not have");
  builder->called_[{&call, pending->frame}] = Result::Text(mode);
  for (int64_t part : {0, 1}) {
    builder->values_[static_cast<size_t>(operands[2 + static_cast<size_t>(part)])].element = [pairs = mode == "interleaved",
                                                                                              part](int64_t i, int64_t count) {
      return static_cast<double>(pairs ? 2 * i + part : part * count + i);
    };
  }
  const int x = WholeOf(builder, pending, {"joined_source"});
  builder->CutInto(x, {operands[4], operands[5]}, mode != "half");
  builder->same_shapes_.emplace_back(x, operands[0]);
  return true;
}

bool FunctionHint::PartRotation(Builder* builder, PendingCondition* pending, const Expression& call,
                                const std::vector<int>& operands, bool* done) {
  *done = true;
  if (operands[1] == kUnknown || operands[2] == kUnknown || !builder->IsLeaf(operands[1])) return true;
  const std::vector<std::string> names = {"half", "interleave_half"};
  const std::optional<Result> wanted = builder->Wanted(*pending, call);
  const std::string mode = wanted.has_value()
                               ? wanted->text
                               : names[static_cast<size_t>(builder->Choose(pending->frame->path + " > part_rotation", names))];
  if (mode != names[0] && mode != names[1]) return builder->Fail("a mode that parts do not have");
  builder->called_[{&call, pending->frame}] = Result::Text(mode);
  builder->CutInto(WholeOf(builder, pending, {"part_whole"}), {operands[1], operands[2]}, mode == names[1]);
  return true;
}

bool FunctionHint::RotaryMode(Builder* builder, PendingCondition* pending, const Expression& call, const std::vector<int>&,
                              bool* done) {
  *done = true;
  const std::optional<Result> interleaved = builder->Evaluate(call.arguments[0], pending->frame);
  const std::optional<Result> wanted = builder->Wanted(*pending, call);
  const std::string mode = interleaved.has_value() && interleaved->number != 0 ? "interleaved" : "half";
  if (wanted.has_value() && wanted->text != mode) return builder->Fail("another mode");
  return true;
}

}  // namespace ascend_fuse::backwards
