// The Ascend nodes that lowering emits (both spellings: domain "npu" and the default-domain alias) and our
// own recognised operators of domain "ascend_fuse".
#include "ir/infer/context.h"

namespace ascend_fuse::infer {
namespace {

void SameAsInput(NodeContext& c) {
  c.SetType(0, c.type(0));
  if (c.in(0).has_rank) c.SetShape(0, c.in(0).shape);
}

// rstd of a norm over the dims of gamma: float, those dims are 1.
void SetRstd(NodeContext& c, size_t output, size_t gamma) {
  if (output >= c.output_count()) return;
  c.SetType(output, DataType::kFloat);
  if (!c.in(0).has_rank || !c.in(gamma).has_rank || c.rank(gamma) > c.rank(0)) return;
  Shape shape = c.shape(0);
  for (size_t i = shape.size() - static_cast<size_t>(c.rank(gamma)); i < shape.size(); ++i)
    shape[i] = Dim::Of(1);
  c.SetShape(output, shape);
}

void RmsNorm(NodeContext& c) {  // (x, gamma) -> y, rstd
  SameAsInput(c);
  SetRstd(c, 1, 1);
}

// mean and rstd of a LayerNorm follow y.
void LayerNormV4(NodeContext& c) {  // (x, normalized_shape, gamma, beta) -> y, mean, rstd
  SameAsInput(c);
  SetRstd(c, 1, 2);
  SetRstd(c, 2, 2);
}

void SetSum(NodeContext& c, size_t output) {
  if (output >= c.output_count()) return;
  c.SetType(output, c.type(0));
  if (c.in(0).has_rank) c.SetShape(output, c.in(0).shape);
}

// x1 and x2 have one shape.
void RequireSameShape(NodeContext& c, size_t a, size_t b) {
  if (!c.in(a).has_rank || c.rank(a) != c.rank(b)) return;
  for (size_t i = 0; i < c.in(a).shape.size(); ++i) c.Require(c.in(a).shape[i], c.in(b).shape[i]);
}

void AddRmsNorm(NodeContext& c) {  // (x1, x2, gamma) -> y, rstd, x
  RequireSameShape(c, 0, 1);
  SameAsInput(c);
  SetRstd(c, 1, 2);
  SetSum(c, 2);
}

void AddLayerNorm(NodeContext& c) {  // (x1, x2, gamma, beta) -> y, mean, rstd, x
  RequireSameShape(c, 0, 1);
  SameAsInput(c);
  SetRstd(c, 1, 2);
  SetRstd(c, 2, 2);
  SetSum(c, 3);
}

// (x1, x2, ...) -> x1 x2 and what is done to it; no transposed operands, no broadcast.
void FusedMatMul(NodeContext& c) {
  c.SetType(0, c.type(0));
  if (!c.in(0).has_rank || !c.in(1).has_rank || c.rank(0) < 2 || c.rank(1) < 2) return;
  Shape shape = c.shape(0);
  shape.back() = c.shape(1).back();
  c.SetShape(0, shape);
}

void AddRmsNormalization(NodeContext& c) {  // (x1, x2, gamma) -> y, x1 + x2
  RequireSameShape(c, 0, 1);
  SameAsInput(c);
  SetSum(c, 1);
}

void HalveLast(NodeContext& c, size_t output) {
  if (output >= c.output_count()) return;
  c.SetType(output, c.type(0));
  if (!c.in(0).has_rank || c.in(0).shape.empty()) return;
  Shape shape = c.shape(0);
  const int64_t axis = NormalizeAxis(c.Int("dim", -1), c.rank(0));
  Dim& dim = shape[axis < 0 ? shape.size() - 1 : static_cast<size_t>(axis)];
  dim = c.dims().ExactDiv(dim, Dim::Of(2));
  c.SetShape(output, shape);
}

void Geglu(NodeContext& c) {  // x -> y, gelu: both of half the dim
  HalveLast(c, 0);
  HalveLast(c, 1);
}

void GluPacked(NodeContext& c) {
  c.SetType(0, c.type(0));
  if (!c.in(0).has_rank || c.in(0).shape.empty()) return;
  Shape shape = c.shape(0);
  shape.back() = c.dims().ExactDiv(shape.back(), Dim::Of(2));
  c.SetShape(0, shape);
}

void Glu(NodeContext& c) {
  RequireSameShape(c, 0, 1);
  SameAsInput(c);
}

// (query, key, value, ...): the query's shape with the value's head size; layouts with heads folded into the
// last dim keep the query's.
void FlashAttention(NodeContext& c) {
  c.SetType(0, c.type(0));
  if (!c.in(0).has_rank) return;
  Shape shape = c.shape(0);
  const Shape value = c.shape(2);
  if (shape.size() == 4 && value.size() == 4) {
    // As the product it stands for: query and key are equally wide.
    if (const Shape key = c.shape(1); key.size() == 4) c.Require(shape[3], key[3]);
    shape[3] = value[3];
  } else if (shape.size() == 3 && value.size() == 3 && !value[2].is(0)) {
    const int64_t heads = c.Int("num_heads", 0);
    int64_t kv_heads = c.Int("num_key_value_heads", 0);
    if (kv_heads == 0) kv_heads = heads;
    if (heads > 0 && kv_heads > 0) {
      DimTable& d = c.dims();
      shape[2] = d.Mul(Dim::Of(heads), d.ExactDiv(value[2], Dim::Of(kv_heads)));
    }
  }
  c.SetShape(0, shape);
}

// Ours mostly computes a value that was there, whose type may be another than the query's.
void Attention(NodeContext& c) {
  const Value* output = c.node().output(0);
  if (output != nullptr && c.facts().Of(output).type == DataType::kUndefined) FlashAttention(c);
}

// (query, key, cos, sin) -> both rotated.
void ApplyRotary(NodeContext& c) {
  SameAsInput(c);
  if (c.output_count() < 2) return;
  c.SetType(1, c.type(1));
  if (c.in(1).has_rank) c.SetShape(1, c.in(1).shape);
}

#define ASCEND_FUSE_NPU(op, handler) \
  {"npu", op, handler}, { "", op, handler }

constexpr Entry kOps[] = {
    ASCEND_FUSE_NPU("NPURmsNorm", RmsNorm),
    ASCEND_FUSE_NPU("NPUAddRmsNorm", AddRmsNorm),
    ASCEND_FUSE_NPU("NPUGroupNormSilu", SameAsInput),
    ASCEND_FUSE_NPU("NPURmsNormWithEpsilon", RmsNorm),
    ASCEND_FUSE_NPU("NPUAddRmsNormWithEpsilon", AddRmsNorm),
    ASCEND_FUSE_NPU("NPULayerNormV4", LayerNormV4),
    ASCEND_FUSE_NPU("NPUAddLayerNorm", AddLayerNorm),
    ASCEND_FUSE_NPU("NPUFusedMatMul", FusedMatMul),
    ASCEND_FUSE_NPU("NPUFFN", SameAsInput),
    ASCEND_FUSE_NPU("NPUGeluV2", SameAsInput),
    ASCEND_FUSE_NPU("NPUFastGelu", SameAsInput),
    ASCEND_FUSE_NPU("NPUFastGeluV2", SameAsInput),
    ASCEND_FUSE_NPU("NPUSilu", SameAsInput),
    ASCEND_FUSE_NPU("NPUSwish", SameAsInput),
    ASCEND_FUSE_NPU("NPUMish", SameAsInput),
    ASCEND_FUSE_NPU("NPUGeglu", Geglu),
    ASCEND_FUSE_NPU("NPUGeGlu", Geglu),
    ASCEND_FUSE_NPU("NPUGeGluV2", Geglu),
    ASCEND_FUSE_NPU("NPUSwiGlu", GluPacked),
    ASCEND_FUSE_NPU("NPURotaryMul", SameAsInput),
    ASCEND_FUSE_NPU("NPURotaryPositionEmbedding", SameAsInput),
    ASCEND_FUSE_NPU("NPUApplyRotaryPosEmb", ApplyRotary),
    ASCEND_FUSE_NPU("NPUPromptFlashAttention", FlashAttention),
    ASCEND_FUSE_NPU("NPUIncreFlashAttention", FlashAttention),
    ASCEND_FUSE_NPU("NPUFusedInferAttentionScore", FlashAttention),
    {"ascend_fuse", "Glu", Glu},
    {"ascend_fuse", "GluPacked", GluPacked},
    {"ascend_fuse", "AddRMSNormalization", AddRmsNormalization},
    {"ascend_fuse", "AddRMSNorm", AddRmsNormalization},
    {"ascend_fuse", "Attention", Attention},
    {"ascend_fuse", "ChannelNorm", SameAsInput},
    {"ascend_fuse", "DoubledGelu", SameAsInput},
    {"ascend_fuse", "GroupNorm", SameAsInput},
    {"ascend_fuse", "GroupNormLast", SameAsInput},
    {"ascend_fuse", "GroupNormSilu", SameAsInput},
    {"ascend_fuse", "GroupNormSiluLast", SameAsInput},
    {"ascend_fuse", "QuickGelu", SameAsInput},
    {"ascend_fuse", "Rotary", SameAsInput},
};

#undef ASCEND_FUSE_NPU

}  // namespace

absl::Span<const Entry> NpuOps() { return kOps; }

}  // namespace ascend_fuse::infer
