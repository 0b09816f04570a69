// Operators of ONNX Runtime that are a construct as a whole, of quantised weights: an attention, embeddings with their
// LayerNorm, a mixture of experts, an LSTM. Each becomes the same operator on real numbers, which is taken apart
// afterwards like that of a model that nobody quantised.
#include <algorithm>
#include <cstdint>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ir/constant_tensor.h"
#include "ir/status_macros.h"
#include "passes/quantised/operators.h"

namespace ascend_fuse {
namespace {

// The node as an operator on other inputs, which may end with absent ones; its outputs and its name stay.
void Become(CodeWriter& writer, const Node* node, std::string_view domain, std::string_view op, std::vector<const Value*> inputs,
            std::vector<Attribute> attributes) {
  NewNode plan;
  plan.op_type = std::string(op);
  plan.domain = std::string(domain);
  plan.name = std::string(NodeName(*node));
  plan.keep_name = !plan.name.empty();
  plan.inputs = std::move(inputs);
  while (plan.inputs.back() == nullptr) plan.inputs.pop_back();
  plan.attributes = std::move(attributes);
  const Node* const written = writer.workspace().rewriter().ReplaceNode(*node, plan);
  writer.workspace().rewriter().CopyNotes(*node, written);
  writer.workspace().Refresh(written);
}

// (input, weight, bias, scale of input, scale of weight, mask, zero of input, zero of weight, past)
absl::Status WriteQAttention(CodeWriter& writer, const Node* node) {
  ASSIGN_OR_RETURN(const Value* x, writer.Real(*node, {node->input(0), node->input(3), node->input(6)}));
  ASSIGN_OR_RETURN(const Value* w, writer.Real(*node, {node->input(1), node->input(4), node->input(7), -1}));
  Become(writer, node, kRuntime, "Attention", {x, w, node->input(2), node->input(5), node->input(8)}, ReadAttributes(*node));
  return absl::OkStatus();
}

// (ids, segments, words, places, kinds, gain, shift, mask, the scales of those five, their zero points)
absl::Status WriteQEmbeddings(CodeWriter& writer, const Node* node) {
  std::vector<const Value*> inputs = {node->input(0), node->input(1)};
  constexpr size_t kScale = 8;
  constexpr size_t kZero = 13;
  for (size_t i = 0; i < 5; ++i) {
    const Value* codes = node->input(2 + i);
    if (codes == nullptr) {
      inputs.push_back(nullptr);
      continue;
    }
    ASSIGN_OR_RETURN(const Value* real, writer.Real(*node, {codes, node->input(kScale + i), node->input(kZero + i)}));
    inputs.push_back(real);
  }
  inputs.push_back(node->input(7));
  Become(writer, node, kRuntime, "EmbedLayerNormalization", std::move(inputs), ReadAttributes(*node));
  return absl::OkStatus();
}

// (X, W [D, I, 4H], R [D, H, 4H], B, lengths, initial h and c, P, scale and zero point of W, those of R). ONNX Runtime quantises
// X and the state at every step, which LSTM does not.
absl::Status WriteLstm(CodeWriter& writer, const Node* node) {
  if (writer.rounds()) {
    return NotWritten(
        "it quantises its input and its state at every step, which LSTM does not; --quantised float writes it as LSTM");
  }
  std::vector<const Value*> inputs;
  for (size_t i = 0; i < 8; ++i) inputs.push_back(node->input(i));
  for (size_t i = 0; i < 2; ++i) {
    QuantisedTensor weight{node->input(1 + i), node->input(8 + 2 * i), node->input(9 + 2 * i)};
    // A factor for each direction, or for each of its columns.
    const int64_t rank = weight.scale == nullptr ? -1 : writer.Rank(weight.scale);
    weight.axis = 0;
    if (rank == 2) {
      const auto& shape = writer.Of(weight.scale).shape;
      if (!shape[0].is(1)) return NotWritten("its weights of two directions have a scale for each column");
      weight.axis = 2;
    } else if (rank != 1) {
      return NotWritten("the shape of its scales is not known");
    }
    ASSIGN_OR_RETURN(const Value* real, writer.Real(*node, weight));
    inputs[1 + i] = writer.Op(*node, "Transpose", {real}, {Attribute::Ints("perm", {0, 2, 1})});
  }
  Become(writer, node, "", "LSTM", std::move(inputs), ReadAttributes(*node));
  return absl::OkStatus();
}

// The experts [E, N, K] of a QMoE as real numbers.
absl::StatusOr<const Value*> Experts(CodeWriter& writer, const Node& node, const Value* packed, const Value* factors,
                                     const Value* zero_points, int64_t bits, int64_t block) {
  if (packed == nullptr || factors == nullptr) return NotWritten("it has no weights or no scales");
  const std::optional<Tensor> codes = ConstantTensor(*packed);
  const std::optional<Tensor> scales = ConstantTensor(*factors);
  const std::optional<Tensor> zeros = zero_points == nullptr ? std::nullopt : ConstantTensor(*zero_points);
  if (!codes.has_value() || !scales.has_value() || (zero_points != nullptr && !zeros.has_value())) {
    return NotWritten("its weights are not constant");
  }
  if (codes->dims.size() != 3 || codes->ElementCount() <= 0) return NotWritten("its weights are not [E, N, K]");
  const int64_t length = codes->dims[2] * 8 / bits;
  Dequantization how =
      RowsInBlocks(*codes, bits, codes->dims[0] * codes->dims[1], length, length, block > 0 ? block : length, *scales);
  const int64_t blocks = how.scale_steps.outer;
  if (scales->ElementCount() != how.outer * blocks) return NotWritten("its scales have another size than its weights ask for");
  if (zeros.has_value()) {
    how.zeros = &*zeros;
    how.zero_bits = how.bits;
    // Blocks of a row fill whole bytes; of rows with one factor the rows of an expert do.
    const int64_t count = block > 0 ? blocks : codes->dims[1];
    const int64_t whole = PackedRow(count, bits);
    if (block <= 0 && whole != count) return NotWritten("its zero points do not fill whole bytes");
    how.zero_steps = {block > 0 ? whole : 1, 1, 0};
    if (zeros->ElementCount() * 8 / bits != (block > 0 ? how.outer * whole : how.outer)) {
      return NotWritten("its zero points have another size than its weights ask for");
    }
  }
  const std::vector<int64_t> dims = {codes->dims[0], codes->dims[1], length};
  return DequantizedConstant(writer.workspace(), node, writer.Of(node.input(0)).type, dims, how,
                             std::string(ValueName(*packed)) + "_dequantized");
}

// (input, router, weights, scales and bias of the first, the second and the third linear, their zero points ...)
absl::Status WriteQMoE(CodeWriter& writer, const Node* node) {
  const int64_t block = IntAttribute(*node, "block_size").value_or(0);
  const int64_t bits = IntAttribute(*node, "expert_weight_bits").value_or(4);
  if (bits != 4 && bits != 8) return NotWritten("its weights are not of 4 or 8 bits");
  if (StringAttribute(*node, "quant_type").value_or("int") != "int") return NotWritten("its weights are not integers");
  if (IntAttribute(*node, "weights_prepacked").value_or(-1) > 0)
    return NotWritten("its weights are in an order of ONNX Runtime's own");
  for (const std::string_view name : {"fc1_expert_weight_bits", "fc2_expert_weight_bits", "fc3_expert_weight_bits"}) {
    if (IntAttribute(*node, name).value_or(bits) != bits) return NotWritten("its weights have several widths");
  }
  if (node->input(8) != nullptr) return NotWritten("it has a third linear");
  for (size_t i = 14; i < node->input_count; ++i) {
    if (node->input(i) != nullptr)
      return NotWritten("its weights of the router or its scales of activations are inputs of their own");
  }
  if (!IsFloat(writer.Of(node->input(0)).type)) return NotWritten("the type of its input is not known");
  ASSIGN_OR_RETURN(const Value* first, Experts(writer, *node, node->input(2), node->input(3), node->input(11), bits, block));
  ASSIGN_OR_RETURN(const Value* second, Experts(writer, *node, node->input(5), node->input(6), node->input(12), bits, block));
  std::vector<Attribute> kept;
  for (Attribute& attribute : ReadAttributes(*node)) {
    constexpr std::string_view kKept[] = {"activation_alpha",          "activation_beta", "activation_type", "k",
                                          "normalize_routing_weights", "swiglu_fusion",   "swiglu_limit",    "use_sparse_mixer"};
    if (std::find(std::begin(kKept), std::end(kKept), attribute.name) != std::end(kKept)) kept.push_back(std::move(attribute));
  }
  Become(writer, node, kRuntime, "MoE", {node->input(0), node->input(1), first, node->input(4), second, node->input(7)},
         std::move(kept));
  return absl::OkStatus();
}

}  // namespace

const std::vector<QuantisedOperator>& QuantisedWhole() {
  static constexpr std::string_view kLinear = "quantised_linear";
  static const auto* const kOperators = new std::vector<QuantisedOperator>{
      {kRuntime, "QAttention", WriteQAttention, kLinear},
      {kRuntime, "QEmbedLayerNormalization", WriteQEmbeddings},
      {kRuntime, "QMoE", WriteQMoE, kLinear},
      {kRuntime, "DynamicQuantizeLSTM", WriteLstm},
  };
  return *kOperators;
}

}  // namespace ascend_fuse
