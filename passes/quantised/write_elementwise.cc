// Quantised operators other than products: quantising, dequantising, and the QLinear operators of ONNX Runtime, which compute on
// the real numbers that codes stand for and quantise the result (onnxruntime: docs/ContribOperators.md).
#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "fmt/format.h"
#include "ir/constant_tensor.h"
#include "ir/status_macros.h"
#include "passes/quantised/dynamic_codes.h"
#include "passes/quantised/operators.h"
#include "passes/quantised/weight_kernel.h"

namespace ascend_fuse {
namespace {

std::vector<Attribute> Without(const Node& node, std::string_view name, std::string_view other = {}) {
  std::vector<Attribute> attributes = ReadAttributes(node);
  std::erase_if(attributes, [&](const Attribute& attribute) { return attribute.name == name || attribute.name == other; });
  return attributes;
}

absl::Status WriteQuantize(CodeWriter& writer, const Node* node) {
  if (IntAttribute(*node, "block_size").value_or(0) > 0) return NotWritten("it quantises in blocks");
  return writer.Quantize(node, node->input(0),
                         {nullptr, node->input(1), node->input(2), IntAttribute(*node, "axis").value_or(1)});
}

// A table of codes that is only looked up stays in codes: rows are dequantised after they were taken.
absl::StatusOr<bool> DequantizeRows(CodeWriter& writer, const Node* node, const QuantisedTensor& of) {
  if (!ConstantTensor(*of.codes).has_value() || !writer.OneNumber(of.scale).has_value() || node->output()->is_graph_output)
    return false;
  if (of.zero != nullptr && !writer.OneNumber(of.zero).has_value()) return false;
  if (BitWidth(writer.Of(of.codes).type) != 8 || writer.Rank(of.codes) < 2) return false;
  std::vector<const Node*> readers;
  for (const Use& use : LiveUses(*node->output())) {
    if (!IsOp(*use.user, "Gather") || use.index != 0) return false;
    readers.push_back(use.user);
  }
  if (readers.empty()) return false;
  for (const Node* reader : readers) {
    const Value* rows = writer.Op(*reader, "Gather", {of.codes, reader->input(1)}, ReadAttributes(*reader));
    ASSIGN_OR_RETURN(const Value* real, writer.Real(*reader, {rows, of.scale, of.zero}, writer.Of(node->output()).type));
    writer.Replace(reader, "Identity", {real});
  }
  return true;
}

// A weight [K, N] that multiplies activations which are not quantised: on a kernel that reads the integers. False where there is
// a reader without one.
bool MultipliedByKernel(CodeWriter& writer, const Node* node, const QuantisedTensor& of) {
  const std::optional<Tensor> codes = ConstantTensor(*of.codes);
  const std::optional<Tensor> scales = ConstantTensor(*of.scale);
  const std::optional<Tensor> zeros = of.zero == nullptr ? std::nullopt : ConstantTensor(*of.zero);
  if (!codes.has_value() || !scales.has_value() || codes->dims.size() != 2 || node->output()->is_graph_output) return false;
  if (of.zero != nullptr && !zeros.has_value()) return false;
  const int bits = BitWidth(codes->type);
  const bool in_blocks = of.block > 0;
  if (!CodeRange(codes->type).has_value() || (bits != 4 && bits != 8) || (of.axis != (in_blocks ? 0 : 1))) return false;
  std::vector<const Node*> readers;
  for (const Use& use : LiveUses(*node->output())) {
    const Value* x = use.user->input(0);
    const bool quantised = x != nullptr && x->producer != nullptr && OpType(*x->producer) == "DequantizeLinear";
    if (!IsOp(*use.user, "MatMul") || use.index != 1 || writer.Rank(x) < 2 || quantised || writer.ComesOfCodes(x)) return false;
    readers.push_back(use.user);
  }
  IntegerWeight weight = {{}, codes->dims[0], codes->dims[1], in_blocks ? of.block : codes->dims[0], false};
  weight.how.codes = &*codes;
  weight.how.bits = bits;
  weight.how.is_signed = CodeRange(codes->type)->first < 0;
  weight.how.scales = &*scales;
  weight.how.zeros = zeros.has_value() ? &*zeros : nullptr;
  weight.how.zero_bits = bits;
  bool all = !readers.empty();
  for (const Node* reader : readers) {
    const Value* const product = reader->output();
    KernelTry answer = TryWeightKernel(writer, reader, weight, nullptr);
    all = all && answer.taken;
    writer.told[product] = std::move(answer);
  }
  return all;
}

absl::Status WriteDequantize(CodeWriter& writer, const Node* node) {
  const QuantisedTensor of = {node->input(0), node->input(1), node->input(2), IntAttribute(*node, "axis").value_or(1),
                              IntAttribute(*node, "block_size").value_or(0)};
  if (MultipliedByKernel(writer, node, of)) return absl::OkStatus();
  ASSIGN_OR_RETURN(const bool rows, DequantizeRows(writer, node, of));
  if (rows) return absl::OkStatus();
  ASSIGN_OR_RETURN(const Value* real, writer.Real(*node, of, writer.Of(node->output()).type));
  const Value* const y = node->output();
  writer.Replace(node, "Identity", {real});
  if (!ConstantTensor(*of.codes).has_value()) writer.NoteOfCodes(y);
  writer.NoteReal(y, of);
  return absl::OkStatus();
}

absl::Status WriteDynamicQuantize(CodeWriter& writer, const Node* node) {
  if (writer.workspace().model().OpsetVersion() < 11) return NotWritten("Round is an operator from opset 11 on");
  const std::vector<const Value*> outputs(node->outputs().begin(), node->outputs().end());
  const DynamicCodes made = QuantizeByRange(writer, *node, node->input(0));
  if (outputs[0] != nullptr) writer.TakeCodes(outputs[0], made.raw);
  const Value* const x = node->input(0);
  if (outputs[0] != nullptr && outputs.size() > 2) writer.KnowScale(outputs[0], outputs[1], outputs[2], x, made.zero);
  if (outputs.size() > 1 && outputs[1] != nullptr) writer.TakeOver(outputs[1], "Identity", {made.scale});
  if (outputs.size() > 2 && outputs[2] != nullptr) writer.TakeCodes(outputs[2], made.zero);
  return absl::OkStatus();
}

// op (a, b) of (a, scale, zero, b, scale, zero, scale of y, zero of y).
absl::Status WriteBinary(CodeWriter& writer, const Node* node) {
  const std::string op = OpType(*node) == "QLinearAdd" ? "Add" : "Mul";
  ASSIGN_OR_RETURN(const Value* a, writer.Real(*node, {node->input(0), node->input(1), node->input(2)}));
  ASSIGN_OR_RETURN(const Value* b, writer.Real(*node, {node->input(3), node->input(4), node->input(5)}));
  return writer.Quantize(node, writer.Op(*node, op, {a, b}), {nullptr, node->input(6), node->input(7)});
}

// op (x) of (x, scale, zero, scale of y, zero of y).
absl::Status WriteUnary(CodeWriter& writer, const Node* node, const char* op, std::vector<Attribute> attributes) {
  ASSIGN_OR_RETURN(const Value* x, writer.Real(*node, {node->input(0), node->input(1), node->input(2)}));
  return writer.Quantize(node, writer.Op(*node, op, {x}, std::move(attributes)), {nullptr, node->input(3), node->input(4)});
}

absl::Status WriteSigmoid(CodeWriter& writer, const Node* node) { return WriteUnary(writer, node, "Sigmoid", {}); }

absl::Status WriteLeakyRelu(CodeWriter& writer, const Node* node) {
  return WriteUnary(writer, node, "LeakyRelu", {Attribute::Float("alpha", FloatAttribute(*node, "alpha").value_or(0.01F))});
}

// With `opset` below 13, all axes from `axis` on are one: the same only for the last one.
absl::Status WriteSoftmax(CodeWriter& writer, const Node* node) {
  const int64_t axis = IntAttribute(*node, "axis").value_or(-1);
  const bool last = axis == -1 || axis == writer.Rank(node->input(0)) - 1;
  const bool as_before = IntAttribute(*node, "opset").value_or(13) < 13;
  if (!last && (as_before || writer.workspace().model().OpsetVersion() < 13)) {
    return NotWritten("its softmax is of an opset before 13, along an axis that is not the last one");
  }
  return WriteUnary(writer, node, "Softmax", {Attribute::Int("axis", axis)});
}

// A pooling whose channels may come last: it has them in front.
absl::Status WritePool(CodeWriter& writer, const Node* node) {
  const bool global = OpType(*node) == "QLinearGlobalAveragePool";
  const bool last = IntAttribute(*node, "channels_last").value_or(0) != 0;
  ASSIGN_OR_RETURN(const Value* x, writer.Real(*node, {node->input(0), node->input(1), node->input(2)}));
  const auto rank = static_cast<size_t>(std::max<int64_t>(writer.Rank(x), 0));
  if (last && rank < 3) return NotWritten("its rank is not known");
  std::vector<int64_t> to_front = {0, static_cast<int64_t>(rank) - 1};
  std::vector<int64_t> to_back = {0};
  for (size_t i = 1; last && i + 1 < rank; ++i) {
    to_front.push_back(static_cast<int64_t>(i));
    to_back.push_back(static_cast<int64_t>(i) + 1);
  }
  to_back.push_back(1);
  if (last) x = writer.Op(*node, "Transpose", {x}, {Attribute::Ints("perm", to_front)});
  x = writer.Op(*node, global ? "GlobalAveragePool" : "AveragePool", {x}, Without(*node, "channels_last"));
  if (last) x = writer.Op(*node, "Transpose", {x}, {Attribute::Ints("perm", to_back)});
  return writer.Quantize(node, x, {nullptr, node->input(3), node->input(4)});
}

// (scale of y, zero of y, then x, scale and zero of each).
absl::Status WriteConcat(CodeWriter& writer, const Node* node) {
  std::vector<const Value*> parts;
  for (size_t i = 2; i + 1 < node->input_count; i += 3) {
    ASSIGN_OR_RETURN(const Value* part, writer.Real(*node, {node->input(i), node->input(i + 1), node->input(i + 2)}));
    parts.push_back(part);
  }
  if (parts.empty()) return NotWritten("it joins nothing");
  const Value* all = writer.Op(*node, "Concat", parts, {Attribute::Int("axis", IntAttribute(*node, "axis").value_or(0))});
  return writer.Quantize(node, all, {nullptr, node->input(0), node->input(1)});
}

// (condition, x, scale, zero, y, scale, zero, scale of the result, zero of it).
absl::Status WriteWhere(CodeWriter& writer, const Node* node) {
  ASSIGN_OR_RETURN(const Value* x, writer.Real(*node, {node->input(1), node->input(2), node->input(3)}));
  ASSIGN_OR_RETURN(const Value* y, writer.Real(*node, {node->input(4), node->input(5), node->input(6)}));
  return writer.Quantize(node, writer.Op(*node, "Where", {node->input(0), x, y}), {nullptr, node->input(7), node->input(8)});
}

}  // namespace

const std::vector<QuantisedOperator>& QuantisedElementwise() {
  static const auto* const kOperators = new std::vector<QuantisedOperator>{
      {"", "QuantizeLinear", WriteQuantize},
      {"", "DequantizeLinear", WriteDequantize},
      {"", "DynamicQuantizeLinear", WriteDynamicQuantize},
      {kRuntime, "QuantizeLinear", WriteQuantize},
      {kRuntime, "DequantizeLinear", WriteDequantize},
      {kRuntime, "QLinearAdd", WriteBinary},
      {kRuntime, "QLinearMul", WriteBinary},
      {kRuntime, "QLinearSigmoid", WriteSigmoid},
      {kRuntime, "QLinearLeakyRelu", WriteLeakyRelu},
      {kRuntime, "QLinearSoftmax", WriteSoftmax},
      {kRuntime, "QLinearAveragePool", WritePool},
      {kRuntime, "QLinearGlobalAveragePool", WritePool},
      {kRuntime, "QLinearConcat", WriteConcat},
      {kRuntime, "QLinearWhere", WriteWhere},
  };
  return *kOperators;
}

}  // namespace ascend_fuse
