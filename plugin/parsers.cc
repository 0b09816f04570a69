// One parser for each node, and the names under which ATC finds it. Written by `ascend-fuse plugin` from
// patterns/operators.txtpb; do not edit.
#include <cstdint>
#include <string>
#include <vector>

#include "graph/ascend_string.h"
#include "graph/operator.h"
#include "register/register.h"

#include "node.h"

namespace ascend_fuse_plugin {
namespace {

// silu(first half) * second half, of axis dim
domi::Status ParseNPUSwiGlu(const ge::Operator& source, ge::Operator& target) {
  Node node("NPUSwiGlu", source);
  node.TakesInputs(1, {"x"});
  node.TakesOutputs(1);
  const int64_t dim = node.Int("dim", -1);
  if (!node.Accepted()) return domi::FAILED;
  target.SetAttr("dim", dim);
  return domi::SUCCESS;
}

// first half * gelu(second half), of axis dim
domi::Status ParseNPUGeGluV2(const ge::Operator& source, ge::Operator& target) {
  Node node("NPUGeGluV2", source);
  node.TakesInputs(1, {"x"});
  node.TakesOutputs(2);
  const int64_t dim = node.Int("dim", -1);
  const int64_t approximate = node.Int("approximate", 1, {0, 1});
  const int64_t activate_left = node.Int("activate_left", 0, {0, 1});
  if (!node.Accepted()) return domi::FAILED;
  target.SetAttr("dim", dim);
  target.SetAttr("approximate", approximate);
  target.SetAttr("activate_left", activate_left != 0);
  return domi::SUCCESS;
}

// x * sigmoid(scale * x)
domi::Status ParseNPUSwish(const ge::Operator& source, ge::Operator& target) {
  Node node("NPUSwish", source);
  node.TakesInputs(1, {"x"});
  node.TakesOutputs(1);
  const float scale = node.Float("scale", 1.0F);
  if (!node.Accepted()) return domi::FAILED;
  target.SetAttr("scale", scale);
  return domi::SUCCESS;
}

// gamma * x / sqrt(mean(x^2) + epsilon), the mean over the dims of gamma
domi::Status ParseNPURmsNormWithEpsilon(const ge::Operator& source, ge::Operator& target) {
  Node node("NPURmsNormWithEpsilon", source);
  node.TakesInputs(2, {"x", "gamma"});
  node.TakesOutputs(2);
  const float epsilon = node.Float("epsilon", 1e-6F);
  if (!node.Accepted()) return domi::FAILED;
  target.SetAttr("epsilon", epsilon);
  return domi::SUCCESS;
}

// x = x1 + x2; y = gamma * x / sqrt(mean(x^2) + epsilon)
domi::Status ParseNPUAddRmsNormWithEpsilon(const ge::Operator& source, ge::Operator& target) {
  Node node("NPUAddRmsNormWithEpsilon", source);
  node.TakesInputs(3, {"x1", "x2", "gamma"});
  node.TakesOutputs(3);
  const float epsilon = node.Float("epsilon", 1e-6F);
  if (!node.Accepted()) return domi::FAILED;
  target.SetAttr("epsilon", epsilon);
  return domi::SUCCESS;
}

// (x - mean) / sqrt(variance + epsilon) * gamma + beta, over the dims of normalized_shape
domi::Status ParseNPULayerNormV4(const ge::Operator& source, ge::Operator& target) {
  Node node("NPULayerNormV4", source);
  node.TakesInputs(2, {"x", "normalized_shape", "gamma", "beta"});
  node.TakesOutputs(3);
  const float epsilon = node.Float("epsilon", 1e-5F);
  if (!node.Accepted()) return domi::FAILED;
  target.SetAttr("epsilon", epsilon);
  return domi::SUCCESS;
}

// x = x1 + x2; y = (x - mean) / sqrt(variance + epsilon) * gamma + beta
domi::Status ParseNPUAddLayerNorm(const ge::Operator& source, ge::Operator& target) {
  Node node("NPUAddLayerNorm", source);
  node.TakesInputs(4, {"x1", "x2", "gamma", "beta"});
  node.TakesOutputs(4);
  const float epsilon = node.Float("epsilon", 1e-5F);
  const int64_t additional_output = node.Int("additional_output", 0, {0, 1});
  if (!node.Accepted()) return domi::FAILED;
  target.SetAttr("epsilon", epsilon);
  target.SetAttr("additional_output", additional_output != 0);
  return domi::SUCCESS;
}

// the rotation by halves of query and of key, in place
domi::Status ParseNPUApplyRotaryPosEmb(const ge::Operator& source, ge::Operator& target) {
  Node node("NPUApplyRotaryPosEmb", source);
  node.TakesInputs(4, {"query", "key", "cos", "sin"});
  node.TakesOutputs(2);
  const int64_t layout = node.Int("layout", 1, {1});
  if (!node.Accepted()) return domi::FAILED;
  target.SetAttr("layout", layout);
  return domi::SUCCESS;
}

// activation(x1 x2 + bias)
domi::Status ParseNPUFusedMatMul(const ge::Operator& source, ge::Operator& target) {
  Node node("NPUFusedMatMul", source);
  node.TakesInputs(2, {"x1", "x2", "bias"});
  node.TakesOutputs(1);
  const std::string fused_op_type = node.Text("fused_op_type", "", {"", "relu", "gelu_erf", "gelu_tanh"});
  if (!node.Accepted()) return domi::FAILED;
  target.SetAttr("fused_op_type", ge::AscendString(fused_op_type.c_str()));
  return domi::SUCCESS;
}

// gelu(x) by tanh
domi::Status ParseNPUGelu(const ge::Operator& source, ge::Operator& /*target*/) {
  Node node("NPUGelu", source);
  node.TakesInputs(1, {"x"});
  node.TakesOutputs(1);
  if (!node.Accepted()) return domi::FAILED;
  return domi::SUCCESS;
}

// (x - mean) / sqrt(variance + eps) * gamma + beta, mean and variance of each group of channels
domi::Status ParseNPUGroupNorm(const ge::Operator& source, ge::Operator& target) {
  Node node("NPUGroupNorm", source);
  node.TakesInputs(1, {"x", "gamma", "beta"});
  node.TakesOutputs(3);
  const int64_t num_groups = node.Int("num_groups");
  const float eps = node.Float("eps", 1e-5F);
  if (!node.Accepted()) return domi::FAILED;
  target.SetAttr("num_groups", num_groups);
  target.SetAttr("eps", eps);
  target.SetAttr("activate_silu", false);
  return domi::SUCCESS;
}

// softmax(query key^T * scale_value, masked) value
domi::Status ParseNPUPromptFlashAttentionDirect(const ge::Operator& source, ge::Operator& target) {
  Node node("NPUPromptFlashAttentionDirect", source);
  node.TakesInputs(3, {"query", "key", "value", "pse_shift", "atten_mask"});
  node.TakesOutputs(1);
  const int64_t num_heads = node.Int("num_heads");
  const std::string input_layout = node.Text("input_layout", {"BNSD"});
  const float scale_value = node.Float("scale_value", 1.0F);
  const int64_t pre_tokens = node.Int("pre_tokens", 2147483647);
  const int64_t next_tokens = node.Int("next_tokens", 2147483647);
  const int64_t num_key_value_heads = node.Int("num_key_value_heads", 0);
  const int64_t sparse_mode = node.Int("sparse_mode", 0, {0});
  const int64_t inner_precise = node.Int("inner_precise", 1, {0, 1, 2, 3});
  if (!node.Accepted()) return domi::FAILED;
  target.SetAttr("num_heads", num_heads);
  target.SetAttr("input_layout", ge::AscendString(input_layout.c_str()));
  target.SetAttr("scale_value", scale_value);
  target.SetAttr("pre_tokens", pre_tokens);
  target.SetAttr("next_tokens", next_tokens);
  target.SetAttr("num_key_value_heads", num_key_value_heads);
  target.SetAttr("sparse_mode", sparse_mode);
  target.SetAttr("inner_precise", inner_precise);
  return domi::SUCCESS;
}

// softmax(query key^T * scale + pse_shift, masked) value
domi::Status ParseNPUFusedInferAttentionScore(const ge::Operator& source, ge::Operator& target) {
  Node node("NPUFusedInferAttentionScore", source);
  node.TakesInputs(3, {"query", "key", "value", "pse_shift", "atten_mask"});
  node.TakesOutputs(2);
  const int64_t num_heads = node.Int("num_heads");
  const float scale = node.Float("scale", 1.0F);
  const std::string input_layout = node.Text("input_layout", {"BNSD"});
  const int64_t num_key_value_heads = node.Int("num_key_value_heads", 0);
  const int64_t pre_tokens = node.Int("pre_tokens", 2147483647);
  const int64_t next_tokens = node.Int("next_tokens", 2147483647);
  const int64_t sparse_mode = node.Int("sparse_mode", 0, {0, 2, 3, 4});
  const int64_t inner_precise = node.Int("inner_precise", 1, {0, 1, 2, 3});
  if (!node.Accepted()) return domi::FAILED;
  target.DynamicInputRegisterByIndex("key", 1, 1);
  target.DynamicInputRegisterByIndex("value", 1, 2);
  target.SetAttr("num_heads", num_heads);
  target.SetAttr("scale", scale);
  target.SetAttr("input_layout", ge::AscendString(input_layout.c_str()));
  target.SetAttr("num_key_value_heads", num_key_value_heads);
  target.SetAttr("pre_tokens", pre_tokens);
  target.SetAttr("next_tokens", next_tokens);
  target.SetAttr("sparse_mode", sparse_mode);
  target.SetAttr("inner_precise", inner_precise);
  return domi::SUCCESS;
}

// (x1 times x2 + bias) * scale, summed in integers
domi::Status ParseNPUQuantBatchMatMul(const ge::Operator& source, ge::Operator& target) {
  Node node("NPUQuantBatchMatMul", source);
  node.TakesInputs(3, {"x1", "x2", "scale", "offset", "bias", "pertoken_scale"});
  node.TakesOutputs(1);
  const int64_t dtype = node.Int("dtype", 1, {1, 3});
  const int64_t transpose_x1 = node.Int("transpose_x1", 0, {0});
  const int64_t transpose_x2 = node.Int("transpose_x2", 0, {0, 1});
  if (!node.Accepted()) return domi::FAILED;
  target.SetAttr("dtype", dtype);
  target.SetAttr("transpose_x1", transpose_x1 != 0);
  target.SetAttr("transpose_x2", transpose_x2 != 0);
  return domi::SUCCESS;
}

// x times (weight + antiquant_offset) * antiquant_scale, with the weight [N, K] and a scale for each of its rows
domi::Status ParseNPUWeightQuantBatchMatmulTurned(const ge::Operator& source, ge::Operator& target) {
  Node node("NPUWeightQuantBatchMatmulTurned", source);
  node.TakesInputs(3, {"x", "weight", "antiquant_scale", "antiquant_offset"});
  node.TakesOutputs(1);
  if (!node.Accepted()) return domi::FAILED;
  target.SetAttr("transpose_weight", true);
  return domi::SUCCESS;
}

// x = x1 + x2; y1 = round(gamma * x / sqrt(mean(x^2) + epsilon) / scales1 + zero_points1)
domi::Status ParseNPUAddRmsNormQuant(const ge::Operator& source, ge::Operator& target) {
  Node node("NPUAddRmsNormQuant", source);
  node.TakesInputs(4, {"x1", "x2", "gamma", "scales1", "scales2", "zero_points1"});
  node.TakesOutputs(3);
  const float epsilon = node.Float("epsilon", 1e-6F);
  if (!node.Accepted()) return domi::FAILED;
  target.SetAttr("epsilon", epsilon);
  target.SetAttr("div_mode", true);
  return domi::SUCCESS;
}

// x = x1 + x2; y1 = round(gamma * x / sqrt(mean(x^2) + epsilon) / scale1), each row by its own scale1
domi::Status ParseNPUAddRmsNormDynamicQuant(const ge::Operator& source, ge::Operator& target) {
  Node node("NPUAddRmsNormDynamicQuant", source);
  node.TakesInputs(3, {"x1", "x2", "gamma"});
  node.TakesOutputs(5);
  const float epsilon = node.Float("epsilon", 1e-6F);
  if (!node.Accepted()) return domi::FAILED;
  target.SetAttr("epsilon", epsilon);
  return domi::SUCCESS;
}

// h * cos + cat(-second half of h, first half of h) * sin, where h is the even channels of x and then the odd ones
domi::Status ParseNPUInterleaveRope(const ge::Operator& source, ge::Operator& /*target*/) {
  Node node("NPUInterleaveRope", source);
  node.TakesInputs(3, {"x", "cos", "sin"});
  node.TakesOutputs(1);
  if (!node.Accepted()) return domi::FAILED;
  return domi::SUCCESS;
}

// "npu::1::NPUX", and "ai.onnx::N::NPUX" for the opsets from first to last.
std::vector<ge::AscendString> Keys(const std::string& op_type, int first, int last) {
  std::vector<ge::AscendString> keys;
  for (int opset = first; opset != 0 && opset <= last; ++opset) {
    const std::string key = "ai.onnx::" + std::to_string(opset) + "::" + op_type;
    keys.push_back(ge::AscendString(key.c_str()));
  }
  keys.push_back(ge::AscendString(("npu::1::" + op_type).c_str()));
  return keys;
}

}  // namespace
}  // namespace ascend_fuse_plugin

// For `strings`: the version that a library has.
extern "C" __attribute__((visibility("default"))) const char* ascend_fuse_op_plugin_version() {
  return "ascend-fuse op plugin, version 3";
}

// ATC's header names its types without the namespace.
namespace domi {
REGISTER_CUSTOM_OP("SwiGlu")
    .FrameworkType(ONNX)
    .OriginOpType(ascend_fuse_plugin::Keys("NPUSwiGlu", 11, 18))
    .ParseParamsByOperatorFn(ascend_fuse_plugin::ParseNPUSwiGlu)
    .ImplyType(ImplyType::TVM);
REGISTER_CUSTOM_OP("GeGluV2")
    .FrameworkType(ONNX)
    .OriginOpType(ascend_fuse_plugin::Keys("NPUGeGluV2", 11, 18))
    .ParseParamsByOperatorFn(ascend_fuse_plugin::ParseNPUGeGluV2)
    .ImplyType(ImplyType::TVM);
REGISTER_CUSTOM_OP("Swish")
    .FrameworkType(ONNX)
    .OriginOpType(ascend_fuse_plugin::Keys("NPUSwish", 11, 18))
    .ParseParamsByOperatorFn(ascend_fuse_plugin::ParseNPUSwish)
    .ImplyType(ImplyType::TVM);
REGISTER_CUSTOM_OP("RmsNorm")
    .FrameworkType(ONNX)
    .OriginOpType(ascend_fuse_plugin::Keys("NPURmsNormWithEpsilon", 11, 18))
    .ParseParamsByOperatorFn(ascend_fuse_plugin::ParseNPURmsNormWithEpsilon)
    .ImplyType(ImplyType::TVM);
REGISTER_CUSTOM_OP("AddRmsNorm")
    .FrameworkType(ONNX)
    .OriginOpType(ascend_fuse_plugin::Keys("NPUAddRmsNormWithEpsilon", 11, 18))
    .ParseParamsByOperatorFn(ascend_fuse_plugin::ParseNPUAddRmsNormWithEpsilon)
    .ImplyType(ImplyType::TVM);
REGISTER_CUSTOM_OP("LayerNormV4")
    .FrameworkType(ONNX)
    .OriginOpType(ascend_fuse_plugin::Keys("NPULayerNormV4", 11, 18))
    .ParseParamsByOperatorFn(ascend_fuse_plugin::ParseNPULayerNormV4)
    .ImplyType(ImplyType::TVM);
REGISTER_CUSTOM_OP("AddLayerNorm")
    .FrameworkType(ONNX)
    .OriginOpType(ascend_fuse_plugin::Keys("NPUAddLayerNorm", 11, 18))
    .ParseParamsByOperatorFn(ascend_fuse_plugin::ParseNPUAddLayerNorm)
    .ImplyType(ImplyType::TVM);
REGISTER_CUSTOM_OP("ApplyRotaryPosEmb")
    .FrameworkType(ONNX)
    .OriginOpType(ascend_fuse_plugin::Keys("NPUApplyRotaryPosEmb", 11, 18))
    .ParseParamsByOperatorFn(ascend_fuse_plugin::ParseNPUApplyRotaryPosEmb)
    .ImplyType(ImplyType::TVM);
REGISTER_CUSTOM_OP("FusedMatMul")
    .FrameworkType(ONNX)
    .OriginOpType(ascend_fuse_plugin::Keys("NPUFusedMatMul", 11, 18))
    .ParseParamsByOperatorFn(ascend_fuse_plugin::ParseNPUFusedMatMul)
    .ImplyType(ImplyType::TVM);
REGISTER_CUSTOM_OP("Gelu")
    .FrameworkType(ONNX)
    .OriginOpType(ascend_fuse_plugin::Keys("NPUGelu", 11, 18))
    .ParseParamsByOperatorFn(ascend_fuse_plugin::ParseNPUGelu)
    .ImplyType(ImplyType::TVM);
REGISTER_CUSTOM_OP("GroupNormSilu")
    .FrameworkType(ONNX)
    .OriginOpType(ascend_fuse_plugin::Keys("NPUGroupNorm", 11, 18))
    .ParseParamsByOperatorFn(ascend_fuse_plugin::ParseNPUGroupNorm)
    .ImplyType(ImplyType::TVM);
REGISTER_CUSTOM_OP("PromptFlashAttention")
    .FrameworkType(ONNX)
    .OriginOpType(ascend_fuse_plugin::Keys("NPUPromptFlashAttentionDirect", 11, 18))
    .ParseParamsByOperatorFn(ascend_fuse_plugin::ParseNPUPromptFlashAttentionDirect)
    .ImplyType(ImplyType::TVM);
REGISTER_CUSTOM_OP("FusedInferAttentionScore")
    .FrameworkType(ONNX)
    .OriginOpType(ascend_fuse_plugin::Keys("NPUFusedInferAttentionScore", 11, 18))
    .ParseParamsByOperatorFn(ascend_fuse_plugin::ParseNPUFusedInferAttentionScore)
    .ImplyType(ImplyType::TVM);
REGISTER_CUSTOM_OP("QuantBatchMatmulV3")
    .FrameworkType(ONNX)
    .OriginOpType(ascend_fuse_plugin::Keys("NPUQuantBatchMatMul", 11, 18))
    .ParseParamsByOperatorFn(ascend_fuse_plugin::ParseNPUQuantBatchMatMul)
    .ImplyType(ImplyType::TVM);
REGISTER_CUSTOM_OP("WeightQuantBatchMatmulV2")
    .FrameworkType(ONNX)
    .OriginOpType(ascend_fuse_plugin::Keys("NPUWeightQuantBatchMatmulTurned", 11, 18))
    .ParseParamsByOperatorFn(ascend_fuse_plugin::ParseNPUWeightQuantBatchMatmulTurned)
    .ImplyType(ImplyType::TVM);
REGISTER_CUSTOM_OP("AddRmsNormQuant")
    .FrameworkType(ONNX)
    .OriginOpType(ascend_fuse_plugin::Keys("NPUAddRmsNormQuant", 11, 18))
    .ParseParamsByOperatorFn(ascend_fuse_plugin::ParseNPUAddRmsNormQuant)
    .ImplyType(ImplyType::TVM);
REGISTER_CUSTOM_OP("AddRmsNormDynamicQuant")
    .FrameworkType(ONNX)
    .OriginOpType(ascend_fuse_plugin::Keys("NPUAddRmsNormDynamicQuant", 11, 18))
    .ParseParamsByOperatorFn(ascend_fuse_plugin::ParseNPUAddRmsNormDynamicQuant)
    .ImplyType(ImplyType::TVM);
REGISTER_CUSTOM_OP("InterleaveRope")
    .FrameworkType(ONNX)
    .OriginOpType(ascend_fuse_plugin::Keys("NPUInterleaveRope", 11, 18))
    .ParseParamsByOperatorFn(ascend_fuse_plugin::ParseNPUInterleaveRope)
    .ImplyType(ImplyType::TVM);
}  // namespace domi
