// Convolution, pooling, normalisation, recurrent cells, attention, and com.microsoft operators of that kind.
#include <algorithm>

#include "ir/infer/context.h"

namespace ascend_fuse::infer {
namespace {

void SameAsInput(NodeContext& c) {
  c.SetType(0, c.type(0));
  if (c.in(0).has_rank) c.SetShape(0, c.in(0).shape);
}

// --- windows
// -------------------------------------------------------------------------------------------------

// Output length of one spatial dim under a window.
Dim WindowDim(NodeContext& c, Dim in, Dim kernel, int64_t stride, int64_t dilation, int64_t pad_begin, int64_t pad_end,
              std::string_view auto_pad, bool ceil) {
  DimTable& d = c.dims();
  if (stride <= 0) return Dim();
  if (auto_pad == "SAME_UPPER" || auto_pad == "SAME_LOWER") {  // ceil(in / stride)
    return d.Sub(Dim::Of(0), d.FloorDiv(d.Sub(Dim::Of(0), in), Dim::Of(stride)));
  }
  if (auto_pad == "VALID") pad_begin = pad_end = 0;
  // in + pads - dilation * (kernel - 1) - 1
  const Dim reach = d.Add(d.Mul(Dim::Of(dilation), d.Sub(kernel, Dim::Of(1))), Dim::Of(1));
  const Dim room = d.Sub(d.Add(in, Dim::Of(pad_begin + pad_end)), reach);
  const Dim steps =
      ceil ? d.Sub(Dim::Of(0), d.FloorDiv(d.Sub(Dim::Of(0), room), Dim::Of(stride))) : d.FloorDiv(room, Dim::Of(stride));
  // The last window of ceil mode must start inside the input or its left padding.
  if (ceil && steps.is_number() && in.is_number() && steps.number() * stride >= in.number() + pad_begin) return steps;
  if (ceil && !steps.is_number()) return Dim();
  return d.Add(steps, Dim::Of(1));
}

// A dim of a tensor is not negative in a run without errors, and of that of a window it does not show: the input may be
// too short for one. What is sliced or counted up to such a length (positions, a mask of frames) is as long as it then.
// Of a body nothing is said: it may not run.
Dim Length(NodeContext& c, size_t axis, Dim dim) {
  if (!dim.known() || dim.is_number() || c.dims().AtLeast(dim, Dim::Of(0))) return dim;
  if (c.dims().scope() == 0) c.Require(c.Fresh(0, axis), dim);  // what a symbol is at least, the dim is that takes its place
  return dim;
}

struct Window {
  std::vector<int64_t> strides;
  std::vector<int64_t> dilations;
  std::vector<int64_t> pads;
  std::string_view auto_pad;
  bool valid = false;
};

Window ReadWindow(NodeContext& c, size_t spatial) {
  Window w;
  w.strides = c.Ints("strides").value_or(std::vector<int64_t>(spatial, 1));
  w.dilations = c.Ints("dilations").value_or(std::vector<int64_t>(spatial, 1));
  w.pads = c.Ints("pads").value_or(std::vector<int64_t>(2 * spatial, 0));
  w.auto_pad = c.String("auto_pad", "NOTSET");
  w.valid = w.strides.size() == spatial && w.dilations.size() == spatial && w.pads.size() == 2 * spatial;
  for (const auto* list : {&w.strides, &w.dilations, &w.pads}) {
    for (int64_t entry : *list) w.valid = w.valid && entry > -(int64_t{1} << 40) && entry < (int64_t{1} << 40);
  }
  return w;
}

// [N, spatial..., C] as [N, C, spatial...] and back.
Shape ChannelsFirst(Shape shape) {
  if (shape.size() > 2) std::rotate(shape.begin() + 1, shape.end() - 1, shape.end());
  return shape;
}
Shape ChannelsLast(Shape shape) {
  if (shape.size() > 2) std::rotate(shape.begin() + 1, shape.begin() + 2, shape.end());
  return shape;
}

void ConvWith(NodeContext& c, size_t x, size_t w, DataType type, bool channels_last = false) {
  c.SetType(0, type);
  Fact in = c.in(x);
  Fact weight = c.in(w);
  if (!in.has_rank || in.rank() < 3) return;
  const Shape in_shape = channels_last ? ChannelsFirst(c.shape(x)) : c.shape(x);
  const Shape weight_shape = channels_last ? ChannelsFirst(c.shape(w)) : c.shape(w);
  in.shape = in_shape;
  weight.shape = weight_shape;
  const size_t spatial = in.shape.size() - 2;
  const Window window = ReadWindow(c, spatial);
  const auto kernel = c.Ints("kernel_shape");
  Shape shape(in.shape.size());
  shape[0] = in.shape[0];
  const bool has_weight = weight.rank() == in.rank();
  if (has_weight) {
    shape[1] = weight.shape[0];
    const int64_t group = c.Int("group", 1);
    c.Require(in.shape[1], c.dims().Mul(weight.shape[1], Dim::Of(group)));
  }
  for (size_t i = 0; i < spatial && window.valid; ++i) {
    Dim size;
    if (kernel.has_value() && kernel->size() == spatial) {
      size = Dim::Of((*kernel)[i]);
    } else if (has_weight) {
      size = weight.shape[2 + i];
    }
    shape[2 + i] = Length(c, 2 + i,
                          WindowDim(c, in.shape[2 + i], size, window.strides[i], window.dilations[i], window.pads[i],
                                    window.pads[spatial + i], window.auto_pad, false));
  }
  c.SetShape(0, channels_last ? ChannelsLast(shape) : shape);
}

void Conv(NodeContext& c) { ConvWith(c, 0, 1, ProductType(c)); }
void ConvInteger(NodeContext& c) { ConvWith(c, 0, 1, DataType::kInt32); }
void QLinearConv(NodeContext& c) {
  // channels_last (com.microsoft) turns X around, not W: of the spatial dims nothing is said then.
  if (c.Int("channels_last", 0) == 0) return ConvWith(c, 0, 3, c.type(7));
  c.SetType(0, c.type(7));
  if (c.rank(0) > 2 && c.rank(3) == c.rank(0)) {
    Shape shape(c.in(0).shape.size());
    shape[0] = c.in(0).shape[0];
    shape.back() = c.in(3).shape[0];
    c.SetShape(0, shape);
  }
}
void NhwcConv(NodeContext& c) { ConvWith(c, 0, 1, c.type(0), true); }

void ConvTranspose(NodeContext& c) {
  c.SetType(0, ProductType(c));
  const Fact& in = c.in(0);
  const Fact& weight = c.in(1);
  if (!in.has_rank || in.rank() < 3) return;
  const size_t spatial = in.shape.size() - 2;
  DimTable& d = c.dims();
  const Window window = ReadWindow(c, spatial);
  const auto kernel = c.Ints("kernel_shape");
  const auto extra = c.Ints("output_padding").value_or(std::vector<int64_t>(spatial, 0));
  const auto given = c.Ints("output_shape");
  Shape shape(in.shape.size());
  shape[0] = in.shape[0];
  const bool has_weight = weight.rank() == in.rank();
  if (has_weight) shape[1] = d.Mul(weight.shape[1], Dim::Of(c.Int("group", 1)));
  for (size_t i = 0; i < spatial && window.valid && extra.size() == spatial; ++i) {
    if (given.has_value() && given->size() == spatial) {
      shape[2 + i] = Dim::Of((*given)[i]);
      continue;
    }
    Dim size;
    if (kernel.has_value() && kernel->size() == spatial) {
      size = Dim::Of((*kernel)[i]);
    } else if (has_weight) {
      size = weight.shape[2 + i];
    }
    const Dim stride = Dim::Of(window.strides[i]);
    if (window.auto_pad == "SAME_UPPER" || window.auto_pad == "SAME_LOWER") {
      shape[2 + i] = d.Mul(in.shape[2 + i], stride);
      continue;
    }
    const int64_t pads = window.auto_pad == "VALID" ? 0 : window.pads[i] + window.pads[spatial + i];
    const Dim reach = d.Add(d.Mul(Dim::Of(window.dilations[i]), d.Sub(size, Dim::Of(1))), Dim::Of(1));
    shape[2 + i] = d.Add(d.Add(d.Mul(stride, d.Sub(in.shape[2 + i], Dim::Of(1))), reach), Dim::Of(extra[i] - pads));
  }
  c.SetShape(0, shape);
}

void PoolWith(NodeContext& c, bool channels_last) {
  c.SetType(0, c.type(0));
  c.SetType(1, DataType::kInt64);  // indices of MaxPool
  Fact in = c.in(0);
  if (!in.has_rank || in.rank() < 3) return;
  const Shape in_shape = channels_last ? ChannelsFirst(c.shape(0)) : c.shape(0);
  in.shape = in_shape;
  const size_t spatial = in.shape.size() - 2;
  const Window window = ReadWindow(c, spatial);
  const auto kernel = c.Ints("kernel_shape");
  Shape shape(in.shape.size());
  shape[0] = in.shape[0];
  shape[1] = in.shape[1];
  if (window.valid && kernel.has_value() && kernel->size() == spatial) {
    for (size_t i = 0; i < spatial; ++i) {
      const Dim length = WindowDim(c, in.shape[2 + i], Dim::Of((*kernel)[i]), window.strides[i], window.dilations[i],
                                   window.pads[i], window.pads[spatial + i], window.auto_pad, c.Int("ceil_mode", 0) != 0);
      shape[2 + i] = Length(c, 2 + i, length);
    }
  }
  if (channels_last) shape = ChannelsLast(shape);
  c.SetShape(0, shape);
  c.SetShape(1, shape);
}

void Pool(NodeContext& c) { PoolWith(c, false); }
void NhwcPool(NodeContext& c) { PoolWith(c, true); }
void QLinearPool(NodeContext& c) { PoolWith(c, c.Int("channels_last", 0) != 0); }

void GlobalPool(NodeContext& c) {
  c.SetType(0, c.type(0));
  if (!c.in(0).has_rank || c.rank(0) < 2) return;
  Shape shape = c.shape(0);
  for (size_t i = 2; i < shape.size(); ++i) shape[i] = Dim::Of(1);
  c.SetShape(0, shape);
}

// --- normalisation
// ---------------------------------------------------------------------------------------------

void BatchNormalization(NodeContext& c) {
  SameAsInput(c);
  for (size_t i = 1; i < std::min<size_t>(c.output_count(), 3); ++i) {  // training: running mean, variance
    c.SetType(i, c.type(2 + i));
    if (c.in(2 + i).has_rank) c.SetShape(i, c.in(2 + i).shape);
  }
}

// The statistics of a norm over dims [axis, rank): those dims are 1.
void Statistics(NodeContext& c, size_t output, const Shape& in, int64_t axis, DataType type) {
  Shape shape = in;
  for (size_t i = static_cast<size_t>(axis); i < shape.size(); ++i) shape[i] = Dim::Of(1);
  c.Set(output, type, shape);
}

void LayerNormalization(NodeContext& c) {
  SameAsInput(c);
  if (!c.in(0).has_rank) return;
  const int64_t axis = NormalizeAxis(c.Int("axis", -1), c.rank(0));
  if (axis < 0) return;
  const DataType type = static_cast<DataType>(c.Int("stash_type", 1));
  for (size_t i = 1; i < std::min<size_t>(c.output_count(), 3); ++i) Statistics(c, i, c.shape(0), axis, type);
}

// The result has the type of the scale, which may differ from the input's (RMSNormalization of opset 23: Y is of V).
// One that a recogniser made has the type of the value it stands for.
void RmsNormalization(NodeContext& c) {
  SameAsInput(c);
  if (c.has(1) && !c.node().is_new) c.SetType(0, c.type(1));
}

void SimplifiedLayerNormalization(NodeContext& c) {
  LayerNormalization(c);
  if (c.has(1)) c.SetType(0, c.type(1));
}

// com.microsoft SkipLayerNormalization(input, skip, ...) -> output, mean, inv_std_var, input_skip_bias_sum.
void SkipNormalization(NodeContext& c) {
  SameAsInput(c);
  if (!c.in(0).has_rank || c.in(0).shape.empty()) return;
  for (size_t i = 1; i < std::min<size_t>(c.output_count(), 3); ++i) {
    Statistics(c, i, c.shape(0), c.rank(0) - 1, DataType::kFloat);
  }
  if (c.output_count() > 3) c.Set(3, c.type(0), c.shape(0));
}

void EmbedLayerNormalization(NodeContext& c) {
  c.SetType(0, c.type(2));
  c.SetType(1, DataType::kInt32);
  if (c.rank(0) != 2 || c.rank(2) != 2) return;
  c.SetShape(0, {c.in(0).shape[0], c.in(0).shape[1], c.in(2).shape[1]});
  c.SetShape(1, {c.in(0).shape[0]});
  if (c.output_count() > 2) c.Set(2, c.type(2), {c.in(0).shape[0], c.in(0).shape[1], c.in(2).shape[1]});
}

void QEmbedLayerNormalization(NodeContext& c) {
  EmbedLayerNormalization(c);
  c.SetType(0, DataType::kFloat);
}

// --- attention
// -----------------------------------------------------------------------------------------------

// x: [B, N, S, D] or [B, S, N * D]. The rows of cos and sin, or of the positions that choose them, are those of x, or one for
// all. `tables`: cos, `positions`: the positions, if there are any.
void Rotated(NodeContext& c, size_t tables, size_t positions) {
  SameAsInput(c);
  const size_t rows = c.rank(positions) >= 1 ? positions : tables;
  const Shape x = c.shape(0);
  if ((x.size() != 3 && x.size() != 4) || c.rank(rows) != (rows == positions ? 2 : 3)) return;
  DimTable& d = c.dims();
  const Dim length = x.size() == 4 ? x[2] : x[1];
  c.Require(d.Broadcast(x[0], c.shape(rows)[0]), x[0]);
  c.Require(d.Broadcast(length, c.shape(rows)[1]), length);
}

// Opset 23: x, cos, sin, positions. Without positions cos is [B, S, D / 2].
void RotaryEmbedding(NodeContext& c) { Rotated(c, 1, 3); }

// com.microsoft: x, positions, cos, sin; positions are [B, S], or the first one as [1].
void MicrosoftRotaryEmbedding(NodeContext& c) { Rotated(c, 2, 1); }

// Keys or values of before, [B, N, P, D], are joined with those of this run, or ONNX Runtime refuses them.
void JoinPast(NodeContext& c, size_t past, Dim batch, Dim heads) {
  if (c.rank(past) != 4) return;
  c.Require(c.in(past).shape[0], batch);
  c.Require(c.in(past).shape[1], heads);
}

// There are as many values of before as keys of before, which are the input before them.
void RequireOneLength(NodeContext& c, size_t past_key) {
  if (c.rank(past_key) == 4 && c.rank(past_key + 1) == 4) c.Require(c.in(past_key).shape[2], c.in(past_key + 1).shape[2]);
}

// Opset 23: Q, K, V, attn_mask, past_key, past_value -> Y, present_key, present_value, qk_matmul_output.
void Attention(NodeContext& c) {
  DimTable& d = c.dims();
  for (size_t i = 0; i < c.output_count(); ++i) c.SetType(i, c.type(i == 2 ? 2 : i == 1 ? 1 : 0));
  if (!c.in(0).has_rank || !c.in(1).has_rank || !c.in(2).has_rank) return;
  Shape q = c.shape(0);
  Shape k = c.shape(1);
  Shape v = c.shape(2);
  if (q.size() != k.size() || k.size() != v.size() || (q.size() != 3 && q.size() != 4)) return;
  const bool packed = q.size() == 3;
  if (packed) {
    const Dim heads = Dim::Of(c.Int("q_num_heads", 0));
    const Dim kv_heads = Dim::Of(c.Int("kv_num_heads", 0));
    q = {q[0], heads, q[1], d.ExactDiv(q[2], heads)};
    k = {k[0], kv_heads, k[1], d.ExactDiv(k[2], kv_heads)};
    v = {v[0], kv_heads, v[1], d.ExactDiv(v[2], kv_heads)};
  }
  c.Require(q[0], k[0]);
  c.Require(q[0], v[0]);
  c.Require(q[3], k[3]);
  c.Require(k[2], v[2]);
  Dim total = k[2];
  if (c.rank(4) == 4) total = d.Add(c.in(4).shape[2], k[2]);
  JoinPast(c, 4, k[0], k[1]);
  JoinPast(c, 5, v[0], v[1]);
  RequireOneLength(c, 4);
  // The mask is broadcast to queries and keys; from opset 24 on one of fewer keys is padded.
  const Shape mask = c.shape(3);
  if (mask.size() >= 2) c.Require(d.Broadcast(q[2], mask[mask.size() - 2]), q[2]);
  if (!mask.empty() && c.opset() < 24) c.Require(d.Broadcast(total, mask.back()), total);
  if (packed) {
    c.SetShape(0, {q[0], q[2], d.Mul(q[1], v[3])});
  } else {
    c.SetShape(0, {q[0], q[1], q[2], v[3]});
  }
  if (c.output_count() > 1) c.SetShape(1, {k[0], k[1], total, k[3]});
  if (c.output_count() > 2) c.SetShape(2, {v[0], v[1], total, v[3]});
  if (c.output_count() > 3) c.SetShape(3, {q[0], q[1], q[2], total});
}

// com.microsoft MultiHeadAttention(query, key, value, bias, mask, attention_bias, past_key, past_value).
void MultiHeadAttention(NodeContext& c) {
  DimTable& d = c.dims();
  for (size_t i = 0; i < c.output_count(); ++i) c.SetType(i, c.type(0));
  const Dim heads = Dim::Of(c.Int("num_heads", 1));
  const Shape q = c.shape(0);
  if (q.size() == 5) {  // packed [B, S, N, 3, H]
    const Dim hidden = d.Mul(q[2], q[4]);
    c.SetShape(0, {q[0], q[1], hidden});
    if (c.output_count() > 2) {
      c.SetShape(1, {q[0], q[2], q[1], q[4]});
      c.SetShape(2, {q[0], q[2], q[1], q[4]});
    }
    return;
  }
  if (q.size() != 3) return;
  const Shape k = c.shape(1);
  const Shape v = c.shape(2);
  Dim value_hidden;
  Dim total;
  if (v.size() == 3) {
    value_hidden = v[2];
    total = v[1];
  } else if (v.size() == 4) {
    value_hidden = d.Mul(v[1], v[3]);
    total = v[2];
  } else if (k.size() == 5) {  // packed key and value
    value_hidden = q[2];
    total = k[1];
  }
  c.SetShape(0, {q[0], q[1], value_hidden});
  // ONNX Runtime refuses keys, values and masks of another batch.
  for (const Shape& other : {k, v}) {
    if (!other.empty()) c.Require(other[0], q[0]);
  }
  // A key_padding_mask of two dims has one element for each key; with a past versions of ONNX Runtime differ.
  if (c.rank(4) == 2) c.Require(c.in(4).shape[0], q[0]);
  if (c.rank(4) == 2 && !c.has(6)) c.Require(c.in(4).shape[1], total);
  JoinPast(c, 6, q[0], heads);
  JoinPast(c, 7, q[0], heads);
  RequireOneLength(c, 6);
  if (c.output_count() > 2) {
    if (c.rank(6) == 4) total = d.Add(c.in(6).shape[2], total);
    c.SetShape(1, {q[0], heads, total, d.ExactDiv(q[2], heads)});
    c.SetShape(2, {q[0], heads, total, d.ExactDiv(value_hidden, heads)});
  }
}

// com.microsoft GroupQueryAttention: the output has the query's shape when it is not packed.
void GroupQueryAttention(NodeContext& c) {
  DimTable& d = c.dims();
  for (size_t i = 0; i < c.output_count(); ++i) c.SetType(i, c.type(0));
  const Shape q = c.shape(0);
  if (q.size() != 3) return;
  const Dim heads = Dim::Of(c.Int("num_heads", 1));
  const Dim kv_heads = Dim::Of(c.Int("kv_num_heads", 1));
  if (c.has(1)) {
    c.SetShape(0, q);
  } else {
    const Dim head_size = d.ExactDiv(q[2], d.Add(heads, d.Mul(Dim::Of(2), kv_heads)));
    c.SetShape(0, {q[0], q[1], d.Mul(heads, head_size)});
  }
  JoinPast(c, 3, q[0], kv_heads);
  JoinPast(c, 4, q[0], kv_heads);
  RequireOneLength(c, 3);
  for (size_t i = 1; i < std::min<size_t>(c.output_count(), 3); ++i) {
    if (c.rank(2 + i) == 4) c.SetShape(i, {q[0], kv_heads, Dim(), c.in(2 + i).shape[3]});
  }
}

// com.microsoft Attention(input, weights, bias, ...): hidden sizes from the bias or weights.
void PackedAttention(NodeContext& c) {
  DimTable& d = c.dims();
  for (size_t i = 0; i < c.output_count(); ++i) c.SetType(i, c.type(0));
  const Shape x = c.shape(0);
  if (x.size() != 3) return;
  Dim hidden;
  if (const auto sizes = c.Ints("qkv_hidden_sizes"); sizes.has_value() && sizes->size() == 3) {
    hidden = Dim::Of((*sizes)[2]);
  } else if (c.rank(1) == 2) {
    hidden = d.ExactDiv(c.in(1).shape[1], Dim::Of(3));
  }
  // mask_index: one element for each key, with a row for each of the batch, which ONNX Runtime asks for unless there is one key.
  if (c.rank(3) == 2 && !c.has(4)) c.Require(c.in(3).shape[1], x[1]);
  if (c.rank(3) == 3 || (c.rank(3) == 2 && d.AtLeast(c.in(3).shape[1], Dim::Of(2)))) c.Require(c.in(3).shape[0], x[0]);
  if (c.rank(4) == 5) c.Require(c.in(4).shape[1], x[0]);  // keys and values of before
  c.SetShape(0, {x[0], x[1], hidden});
}

// --- recurrent
// -----------------------------------------------------------------------------------------------

void Recurrent(NodeContext& c) {
  for (size_t i = 0; i < c.output_count(); ++i) c.SetType(i, c.type(0));
  if (c.rank(0) != 3) return;
  const std::string_view direction = c.String("direction", "forward");
  const Dim directions = Dim::Of(direction == "bidirectional" ? 2 : 1);
  Dim hidden = Dim::Of(c.Int("hidden_size", 0));
  if (hidden.is(0)) hidden = c.rank(2) == 3 ? c.in(2).shape[2] : Dim();
  const bool batch_first = c.Int("layout", 0) != 0;
  const Dim batch = c.in(0).shape[batch_first ? 0 : 1];
  const Dim length = c.in(0).shape[batch_first ? 1 : 0];
  if (batch_first) {
    c.SetShape(0, {batch, length, directions, hidden});
    for (size_t i = 1; i < std::min<size_t>(c.output_count(), 3); ++i) c.SetShape(i, {batch, directions, hidden});
  } else {
    c.SetShape(0, {length, directions, batch, hidden});
    for (size_t i = 1; i < std::min<size_t>(c.output_count(), 3); ++i) c.SetShape(i, {directions, batch, hidden});
  }
}

void Loss(NodeContext& c) {  // SoftmaxCrossEntropyLoss, NegativeLogLikelihoodLoss
  c.SetType(0, c.type(0));
  if (c.String("reduction", "mean") != "none") {
    c.SetShape(0, {});
  } else if (c.in(1).has_rank) {
    c.SetShape(0, c.in(1).shape);
  }
  if (c.output_count() > 1) {
    c.SetType(1, c.type(0));
    if (c.in(0).has_rank) c.SetShape(1, c.in(0).shape);
  }
}

// com.microsoft BiasSplitGelu(x, bias): the halves of the last dim are multiplied.
void BiasSplitGelu(NodeContext& c) {
  c.SetType(0, c.type(0));
  if (!c.in(0).has_rank || c.in(0).shape.empty()) return;
  Shape shape = c.shape(0);
  shape.back() = c.dims().ExactDiv(shape.back(), Dim::Of(2));
  c.SetShape(0, shape);
}

void SkipGroupNorm(NodeContext& c) {
  SameAsInput(c);
  if (c.output_count() > 1 && c.in(0).has_rank) c.Set(1, c.type(0), c.shape(0));
}

constexpr Entry kOps[] = {
    {"", "Conv", Conv},
    {"", "ConvInteger", ConvInteger},
    {"", "QLinearConv", QLinearConv},
    {"", "ConvTranspose", ConvTranspose},
    {"", "MaxPool", Pool},
    {"", "AveragePool", Pool},
    {"", "LpPool", Pool},
    {"", "GlobalAveragePool", GlobalPool},
    {"", "GlobalMaxPool", GlobalPool},
    {"", "GlobalLpPool", GlobalPool},
    {"", "BatchNormalization", BatchNormalization},
    {"", "LayerNormalization", LayerNormalization},
    {"", "GroupNormalization", SameAsInput},
    {"", "InstanceNormalization", SameAsInput},
    {"", "MeanVarianceNormalization", SameAsInput},
    {"", "RMSNormalization", RmsNormalization},
    {"", "SimplifiedLayerNormalization", SimplifiedLayerNormalization},
    {"", "LRN", SameAsInput},
    {"", "RotaryEmbedding", RotaryEmbedding},
    {"", "Attention", Attention},
    {"", "LSTM", Recurrent},
    {"", "GRU", Recurrent},
    {"", "RNN", Recurrent},
    {"", "SoftmaxCrossEntropyLoss", Loss},
    {"", "NegativeLogLikelihoodLoss", Loss},
    {"", "DeformConv", Conv},
    {"com.microsoft", "FusedConv", Conv},
    {"com.microsoft", "QLinearConv", QLinearConv},
    {"com.microsoft", "NhwcConv", NhwcConv},
    {"com.microsoft", "NhwcFusedConv", NhwcConv},
    {"com.microsoft", "NhwcMaxPool", NhwcPool},
    {"com.microsoft", "QLinearAveragePool", QLinearPool},
    {"com.microsoft", "DynamicQuantizeLSTM", Recurrent},
    {"com.microsoft", "DecoderMaskedSelfAttention", PackedAttention},
    {"com.microsoft", "QEmbedLayerNormalization", QEmbedLayerNormalization},
    {"com.microsoft", "RotaryEmbedding", MicrosoftRotaryEmbedding},
    {"com.microsoft", "MultiHeadAttention", MultiHeadAttention},
    {"com.microsoft", "GroupQueryAttention", GroupQueryAttention},
    {"com.microsoft", "Attention", PackedAttention},
    {"com.microsoft", "SkipLayerNormalization", SkipNormalization},
    {"com.microsoft", "SkipSimplifiedLayerNormalization", SkipNormalization},
    {"com.microsoft", "EmbedLayerNormalization", EmbedLayerNormalization},
    {"com.microsoft", "GroupNorm", SameAsInput},
    {"com.microsoft", "SkipGroupNorm", SkipGroupNorm},
    {"com.microsoft", "BiasSplitGelu", BiasSplitGelu},
    {"com.microsoft", "BiasAdd", SameAsInput},
    {"com.microsoft", "BiasSoftmax", SameAsInput},
};

}  // namespace

absl::Span<const Entry> NnOps() { return kOps; }

}  // namespace ascend_fuse::infer
