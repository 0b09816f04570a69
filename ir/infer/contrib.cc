// com.microsoft operators that optimizers and quantizers emit and that are not a variant of a standard operator
// (those stand in the file of the standard one), and the linear attention of opset 27.
#include <algorithm>

#include "ir/infer/context.h"

namespace ascend_fuse::infer {
namespace {

void SameAsInput(NodeContext& c) {
  c.SetType(0, c.type(0));
  if (c.in(0).has_rank) c.SetShape(0, c.in(0).shape);
}

// --- quantized -------------------------------------------------------------------------------------------

void QLinearBinary(NodeContext& c) {  // (A, scale, zero, B, scale, zero, ...)
  c.SetType(0, c.type(0));
  if (c.in(0).has_rank && c.in(3).has_rank) c.SetShape(0, c.Broadcast(c.in(0).shape, c.in(3).shape));
}

void QLinearWhere(NodeContext& c) {  // (condition, X, scale, zero, Y, ...)
  c.SetType(0, c.type(1));
  if (!c.in(0).has_rank || !c.in(1).has_rank || !c.in(4).has_rank) return;
  c.SetShape(0, c.Broadcast(c.Broadcast(c.in(0).shape, c.in(1).shape), c.in(4).shape));
}

void QLinearConcat(NodeContext& c) {  // (scale, zero, (X, scale, zero)...)
  c.SetType(0, c.type(1));
  Shape shape;
  Dim along = Dim::Of(0);
  int64_t axis = -1;
  for (size_t i = 2; i < c.input_count(); i += 3) {
    const Fact& in = c.in(i);
    if (!in.has_rank) return;
    if (i == 2) {
      shape = c.shape(i);
      axis = NormalizeAxis(c.Int("axis", 0), in.rank());
    }
    if (axis < 0 || in.shape.size() != shape.size()) return;
    for (size_t k = 0; k < shape.size(); ++k) {
      if (static_cast<int64_t>(k) != axis) c.Require(shape[k], in.shape[k]);
    }
    along = c.dims().Add(along, in.shape[static_cast<size_t>(axis)]);
  }
  if (axis < 0) return;
  shape[static_cast<size_t>(axis)] = along;
  c.SetShape(0, shape);
}

void QLinearGlobalAveragePool(NodeContext& c) {
  c.SetType(0, c.type(0));
  if (c.rank(0) < 3) return;
  Shape shape = c.shape(0);
  const bool last = c.Int("channels_last", 0) != 0;
  for (size_t i = last ? 1 : 2; i < shape.size() - (last ? 1 : 0); ++i) shape[i] = Dim::Of(1);
  c.SetShape(0, shape);
}

void MulInteger(NodeContext& c) {  // (A, zero, B, zero)
  c.SetType(0, DataType::kInt32);
  if (c.in(0).has_rank && c.in(2).has_rank) c.SetShape(0, c.Broadcast(c.in(0).shape, c.in(2).shape));
}

void QuantizeWithOrder(NodeContext& c) {
  SameAsInput(c);
  c.SetType(0, DataType::kInt8);
}

void DequantizeWithOrder(NodeContext& c) {
  SameAsInput(c);
  c.SetType(0, static_cast<DataType>(c.Int("to", 0)));
}

// --- attention -------------------------------------------------------------------------------------------

void QAttention(NodeContext& c) {  // (input, weight, bias, input_scale, ...): three equal parts
  c.SetType(0, c.type(3));
  c.SetType(1, c.type(3));
  if (c.rank(0) != 3 || c.rank(1) != 2) return c.SetRank(0, 3);
  c.SetShape(0, {c.in(0).shape[0], c.in(0).shape[1], c.dims().ExactDiv(c.in(1).shape[1], Dim::Of(3))});
}

void PackedAttention(NodeContext& c) {  // (input[tokens, hidden], weights, ...)
  c.SetType(0, c.type(0));
  if (c.rank(0) != 2) return;
  Dim hidden;
  if (const auto sizes = c.Ints("qkv_hidden_sizes"); sizes.has_value() && sizes->size() == 3) {
    hidden = Dim::Of((*sizes)[2]);
  } else if (c.rank(1) == 2) {
    hidden = c.dims().ExactDiv(c.in(1).shape[1], Dim::Of(3));
  }
  c.SetShape(0, {c.in(0).shape[0], hidden});
}

void PackedMultiHeadAttention(NodeContext& c) {  // (query[tokens, hidden], key, value) or packed [tokens, N, 3, H]
  c.SetType(0, c.type(0));
  const Shape query = c.shape(0);
  if (query.size() == 4) return c.SetShape(0, {query[0], c.dims().Mul(query[1], query[3])});
  if (query.size() == 2) c.SetShape(0, {query[0], c.rank(2) == 2 ? c.in(2).shape[1] : Dim()});
}

void DecoderMaskedMultiHeadAttention(NodeContext& c) {
  for (size_t i = 0; i < std::min<size_t>(c.output_count(), 3); ++i) c.SetType(i, c.type(0));
  for (size_t i = 1; i < std::min<size_t>(c.output_count(), 3); ++i) c.SetRank(i, 4);
  if (c.rank(0) != 3) return;
  Dim hidden;
  if (c.rank(2) == 3) hidden = c.in(2).shape[2];
  if (c.rank(2) == 4) hidden = c.dims().Mul(c.in(2).shape[1], c.in(2).shape[3]);
  c.SetShape(0, {c.in(0).shape[0], c.in(0).shape[1], hidden});
}

// (query, key, value, past_key, past_value, ...): the caches keep their shapes.
void CachedAttention(NodeContext& c) {
  c.SetType(0, c.type(0));
  if (c.has(1) && c.in(0).has_rank) c.SetShape(0, c.in(0).shape);
  for (size_t i = 1; i < std::min<size_t>(c.output_count(), 3); ++i) {
    c.SetType(i, c.type(2 + i));
    if (c.in(2 + i).has_rank) c.SetShape(i, c.in(2 + i).shape);
  }
}

void RelativePositionBias(NodeContext& c) {  // (table[buckets, heads], query_length, key_length)
  c.SetType(0, c.type(0));
  c.SetShape(0, {Dim::Of(1), c.rank(0) == 2 ? c.in(0).shape[1] : Dim(), c.Scalar(1), c.Scalar(2)});
}

void GatedRelativePositionBias(NodeContext& c) {  // (query[B, S, hidden], ..., token_offset)
  c.SetType(0, c.type(0));
  const Dim heads = Dim::Of(c.Int("num_heads", 0));
  if (c.has(6) || c.rank(0) != 3) return c.SetShape(0, {Dim(), heads, Dim(), Dim()});
  c.SetShape(0, {c.in(0).shape[0], heads, c.in(0).shape[1], c.in(0).shape[1]});
}

// (query[B, T, Hq * dk], key, value[B, T, Hkv * dv], past_state, ...) -> [B, T, Hq * dv], [B, Hkv, dk, dv]
void LinearAttention(NodeContext& c) {
  DimTable& d = c.dims();
  c.SetType(0, c.type(0));
  c.SetType(1, c.has(3) ? c.type(3) : c.type(0));
  const Dim heads = Dim::Of(c.Int("q_num_heads", 0));
  const Dim kv_heads = Dim::Of(c.Int("kv_num_heads", 0));
  if (c.rank(0) != 3 || c.rank(1) != 3 || c.rank(2) != 3 || heads.is(0) || kv_heads.is(0)) return;
  const Shape query = c.shape(0);
  const Dim value_size = d.ExactDiv(c.in(2).shape[2], kv_heads);
  c.SetShape(0, {query[0], query[1], d.Mul(heads, value_size)});
  c.SetShape(1, {query[0], kv_heads, d.ExactDiv(query[2], heads), value_size});
}

// (input[B, C, L], weight[C, 1, k], bias, past_state) -> the same, state[B, C, k - 1]
void CausalConvWithState(NodeContext& c) {
  SameAsInput(c);
  c.SetType(1, c.type(0));
  if (c.Int("channels_last", 0) != 0 || c.Int("dilation", 1) != 1) return;
  if (c.rank(0) != 3 || c.rank(1) != 3) return;
  c.SetShape(1, {c.in(0).shape[0], c.in(0).shape[1], c.dims().Sub(c.in(1).shape[2], Dim::Of(1))});
}

// --- the rest --------------------------------------------------------------------------------------------

void BiasDropout(NodeContext& c) {
  SameAsInput(c);
  c.SetType(1, DataType::kBool);
  if (c.in(0).has_rank) c.SetShape(1, c.in(0).shape);
}

void BitmaskDropout(NodeContext& c) {  // the mask: one bit an element, in words
  SameAsInput(c);
  c.SetType(1, DataType::kUint32);
  DimTable& d = c.dims();
  if (c.in(0).has_rank) {
    c.SetShape(1, {d.FloorDiv(d.Add(c.Product(c.in(0).shape), Dim::Of(31)), Dim::Of(32))});
  }
}

void Binary(NodeContext& c) {
  c.SetType(0, c.type(0));
  if (c.in(0).has_rank && c.in(1).has_rank) c.SetShape(0, c.Broadcast(c.in(0).shape, c.in(1).shape));
}

void ExpandDims(NodeContext& c) {
  c.SetType(0, c.type(0));
  const Dim at = c.Scalar(1);
  if (!c.in(0).has_rank) return;
  const int64_t axis = at.is_number() ? NormalizeAxis(at.number(), c.rank(0) + 1) : -1;
  if (axis < 0) return c.SetRank(0, c.in(0).shape.size() + 1);
  Shape shape = c.shape(0);
  shape.insert(shape.begin() + static_cast<std::ptrdiff_t>(axis), Dim::Of(1));
  c.SetShape(0, shape);
}

void IsAllFinite(NodeContext& c) { c.Set(0, DataType::kBool, {}); }

void RemovePadding(NodeContext& c) {  // (input[B, S, hidden], counts) -> tokens, offsets, sums, longest
  c.SetType(0, c.type(0));
  for (size_t i = 1; i < 4; ++i) c.SetType(i, DataType::kInt32);
  if (c.rank(0) != 3) return;
  const Shape in = c.shape(0);
  c.SetShape(0, {Dim(), in[2]});
  c.SetShape(1, {in[0], in[1]});
  c.SetShape(2, {c.dims().Add(in[0], Dim::Of(1))});
  c.SetShape(3, {Dim::Of(1)});
}

void RestorePadding(NodeContext& c) {  // (tokens[T, hidden], offsets[B, S])
  c.SetType(0, c.type(0));
  if (c.rank(0) == 2 && c.rank(1) == 2) {
    c.SetShape(0, {c.in(1).shape[0], c.in(1).shape[1], c.in(0).shape[1]});
  }
}

void TorchEmbedding(NodeContext& c) {
  c.SetType(0, c.type(0));
  if (c.rank(0) != 2 || !c.in(1).has_rank) return;
  Shape shape = c.shape(1);
  shape.push_back(c.in(0).shape[1]);
  c.SetShape(0, shape);
}

void UnfoldTensor(NodeContext& c) {
  c.SetType(0, c.type(0));
  const int64_t size = c.Int("size", 0);
  const int64_t step = c.Int("step", 1);
  if (!c.in(0).has_rank || size <= 0 || step <= 0) return;
  const int64_t axis = NormalizeAxis(c.Int("dim", -1), c.rank(0));
  if (axis < 0) return;
  Shape shape = c.shape(0);
  DimTable& d = c.dims();
  Dim& dim = shape[static_cast<size_t>(axis)];
  dim = d.Add(d.FloorDiv(d.Sub(dim, Dim::Of(size)), Dim::Of(step)), Dim::Of(1));
  shape.push_back(Dim::Of(size));
  c.SetShape(0, shape);
}

void CDist(NodeContext& c) {
  c.SetType(0, c.type(0));
  c.SetShape(0, {c.rank(0) == 2 ? c.in(0).shape[0] : Dim(), c.rank(1) == 2 ? c.in(1).shape[0] : Dim()});
}

void NGramRepeatBlock(NodeContext& c) {
  c.SetType(0, c.type(1));
  if (c.in(1).has_rank) c.SetShape(0, c.in(1).shape);
}

void GatherBlockQuantized(NodeContext& c) {  // (data, indices, scales): two elements of uint8 data in a byte
  c.SetType(0, c.type(2));
  if (!c.in(0).has_rank || !c.in(1).has_rank) return;
  const int64_t axis = NormalizeAxis(c.Int("gather_axis", 0), c.rank(0));
  if (axis < 0) return;
  Shape shape = c.shape(0);
  const bool packed = c.type(0) != DataType::kInt4 && c.type(0) != DataType::kUint4;
  if (packed) shape.back() = Dim();
  const auto at = shape.begin() + static_cast<std::ptrdiff_t>(axis);
  const Shape indices = c.shape(1);
  Shape result(shape.begin(), at);
  result.insert(result.end(), indices.begin(), indices.end());
  result.insert(result.end(), at + 1, shape.end());
  c.SetShape(0, result);
}

void GemmFloat8(NodeContext& c) {  // (A, B, C, scales)
  c.SetType(0, static_cast<DataType>(c.Int("dtype", 1)));
  if (c.rank(0) != 2 || c.rank(1) != 2) return c.SetRank(0, 2);
  const bool a = c.Int("transA", 0) != 0;
  const bool b = c.Int("transB", 0) != 0;
  c.Require(c.in(0).shape[a ? 0 : 1], c.in(1).shape[b ? 1 : 0]);
  c.SetShape(0, {c.in(0).shape[a ? 1 : 0], c.in(1).shape[b ? 0 : 1]});
}

void MatMulFpQ4(NodeContext& c) {  // (A[..., K], blob, shape of B: [K, N])
  c.SetType(0, c.type(0));
  absl::Span<const Dim> shape_of_b;
  if (c.rank(0) < 1 || !c.Integers(2, &shape_of_b) || shape_of_b.size() != 2) return;
  Shape shape = c.shape(0);
  shape.back() = shape_of_b[1];
  c.SetShape(0, shape);
}

void GemmaRotaryEmbedding(NodeContext& c) {  // (angles, q, q turned, k, k turned) -> as q, as k
  for (size_t i : {size_t{0}, size_t{1}}) {
    c.SetType(i, c.type(1 + 2 * i));
    if (c.in(1 + 2 * i).has_rank) c.SetShape(i, c.in(1 + 2 * i).shape);
  }
}

void Search(NodeContext& c) { c.SetType(0, DataType::kInt32); }  // token ids; as long as the search goes on

constexpr Entry kOps[] = {
    {"", "LinearAttention", LinearAttention},
    {"", "CausalConvWithState", CausalConvWithState},
    {"com.microsoft", "LinearAttention", LinearAttention},
    {"com.microsoft", "CausalConvWithState", CausalConvWithState},
    {"com.microsoft", "QLinearAdd", QLinearBinary},
    {"com.microsoft", "QLinearMul", QLinearBinary},
    {"com.microsoft", "QLinearWhere", QLinearWhere},
    {"com.microsoft", "QLinearConcat", QLinearConcat},
    {"com.microsoft", "QLinearSigmoid", SameAsInput},
    {"com.microsoft", "QLinearLeakyRelu", SameAsInput},
    {"com.microsoft", "QLinearSoftmax", SameAsInput},
    {"com.microsoft", "QLinearGlobalAveragePool", QLinearGlobalAveragePool},
    {"com.microsoft", "MulInteger", MulInteger},
    {"com.microsoft", "QuantizeWithOrder", QuantizeWithOrder},
    {"com.microsoft", "DequantizeWithOrder", DequantizeWithOrder},
    {"com.microsoft", "QOrderedGelu", SameAsInput},
    {"com.microsoft", "QOrderedLayerNormalization", SameAsInput},
    {"com.microsoft", "QAttention", QAttention},
    {"com.microsoft", "PackedAttention", PackedAttention},
    {"com.microsoft", "PackedMultiHeadAttention", PackedMultiHeadAttention},
    {"com.microsoft", "DecoderMaskedMultiHeadAttention", DecoderMaskedMultiHeadAttention},
    {"com.microsoft", "SparseAttention", CachedAttention},
    {"com.microsoft", "PagedAttention", CachedAttention},
    {"com.microsoft", "LongformerAttention", SameAsInput},
    {"com.microsoft", "RelativePositionBias", RelativePositionBias},
    {"com.microsoft", "GatedRelativePositionBias", GatedRelativePositionBias},
    {"com.microsoft", "BiasDropout", BiasDropout},
    {"com.microsoft", "BitmaskDropout", BitmaskDropout},
    {"com.microsoft", "BitmaskBiasDropout", BitmaskDropout},
    {"com.microsoft", "ComplexMul", Binary},
    {"com.microsoft", "ComplexMulConj", Binary},
    {"com.microsoft", "ExpandDims", ExpandDims},
    {"com.microsoft", "GatedAdd", SameAsInput},
    {"com.microsoft", "GatedRMSNorm", SameAsInput},
    {"com.microsoft", "GemmFloat8", GemmFloat8},
    {"com.microsoft", "MatMulFpQ4", MatMulFpQ4},
    {"com.microsoft", "GemmaRotaryEmbedding", GemmaRotaryEmbedding},
    {"com.microsoft", "MRotaryEmbedding", SameAsInput},
    {"com.microsoft", "Inverse", SameAsInput},
    {"com.microsoft", "IsAllFinite", IsAllFinite},
    {"com.microsoft", "MoE", SameAsInput},
    {"com.microsoft", "QMoE", SameAsInput},
    {"com.microsoft", "RemovePadding", RemovePadding},
    {"com.microsoft", "RestorePadding", RestorePadding},
    {"com.microsoft", "SampleOp", SameAsInput},
    {"com.microsoft", "ScaledSiLU", SameAsInput},
    {"com.microsoft", "TorchEmbedding", TorchEmbedding},
    {"com.microsoft", "UnfoldTensor", UnfoldTensor},
    {"com.microsoft", "CDist", CDist},
    {"com.microsoft", "NGramRepeatBlock", NGramRepeatBlock},
    {"com.microsoft", "GatherBlockQuantized", GatherBlockQuantized},
    {"com.microsoft", "BeamSearch", Search},
    {"com.microsoft", "GreedySearch", Search},
    {"com.microsoft", "Sampling", Search},
    {"com.microsoft", "WhisperBeamSearch", Search},
};

}  // namespace

absl::Span<const Entry> ContribOps() { return kOps; }

}  // namespace ascend_fuse::infer
