#include "passes/quantised/node_writer.h"

#include <utility>

#include "ir/constant_tensor.h"

namespace ascend_fuse {

const Node* NodeWriter::TakeOver(const Value* value, std::string op_type, std::vector<const Value*> inputs,
                                 std::vector<Attribute> attributes) {
  const Node& old = *value->producer;
  NewNode plan;
  plan.op_type = std::move(op_type);
  plan.name = std::string(NodeName(old));
  plan.keep_name = !plan.name.empty() && old.output_count == 1;
  plan.inputs = std::move(inputs);
  plan.attributes = std::move(attributes);
  const Node* const written = workspace_->rewriter().ReplaceValue(value, plan);
  workspace_->rewriter().CopyNotes(old, written);
  workspace_->Refresh(written);
  return written;
}

const Node* NodeWriter::Replace(const Node* node, std::string op_type, std::vector<const Value*> inputs,
                                std::vector<Attribute> attributes) {
  return TakeOver(node->output(), std::move(op_type), std::move(inputs), std::move(attributes));
}

const Value* NodeWriter::Number(const Node& at, double number, DataType type) {
  const Value* value = workspace_->rewriter().NumberConstant(at.graph, type, number, std::string(Label(at)) + "_number");
  InferConstant(value, &workspace_->facts());
  return value;
}

const Value* NodeWriter::Cast(const Node& at, const Value* x, DataType type) {
  if (Of(x).type == type) return x;
  return Op(at, "Cast", {x}, {Attribute::Int("to", static_cast<int64_t>(type))});
}

std::optional<double> NodeWriter::OneNumber(const Value* value) const {
  if (value == nullptr) return std::nullopt;
  const std::optional<Tensor> tensor = ConstantTensor(*value);
  if (!tensor.has_value() || tensor->ElementCount() != 1) return std::nullopt;
  if (IsInteger(tensor->type)) {
    const auto read = ReadIntegers(workspace_->model(), *tensor, 1);
    return read.ok() && read->size() == 1 ? std::optional<double>(static_cast<double>((*read)[0])) : std::nullopt;
  }
  const auto read = ReadFloats(workspace_->model(), *tensor, 1);
  return read.ok() && read->size() == 1 ? std::optional<double>((*read)[0]) : std::nullopt;
}

bool NodeWriter::SameFactor(const Value* a, const Value* b) const {
  if (a == b) return true;
  const std::optional<double> one = a == nullptr ? 0 : OneNumber(a);
  const std::optional<double> other = b == nullptr ? 0 : OneNumber(b);
  if (one.has_value() || other.has_value()) return one == other;
  return a != nullptr && b != nullptr && workspace_->numbering().Number(a) == workspace_->numbering().Number(b);
}

}  // namespace ascend_fuse
