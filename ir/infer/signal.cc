// Fourier transforms and windows.
#include "ir/infer/context.h"

namespace ascend_fuse::infer {
namespace {

// The bins of a real signal of n samples of which the others follow: n / 2 + 1.
Dim OneSided(DimTable& d, Dim n) { return d.Add(d.FloorDiv(n, Dim::Of(2)), Dim::Of(1)); }

void Dft(NodeContext& c) {  // [batch, ..., 1 or 2] -> [batch, ..., 2]
  c.SetType(0, c.type(0));
  if (!c.in(0).has_rank || c.rank(0) < 2) return;
  Shape shape = c.shape(0);
  const bool inverse = c.Int("inverse", 0) != 0;
  const bool one_sided = c.Int("onesided", 0) != 0;
  shape.back() = inverse && one_sided ? Dim::Of(1) : Dim::Of(2);
  int64_t axis = -2;
  bool known = true;
  if (c.opset() < 20) {
    axis = c.Int("axis", 1);
  } else if (c.has(2)) {
    const Dim given = c.Scalar(2);
    known = given.is_number();
    if (known) axis = given.number();
  }
  axis = known ? NormalizeAxis(axis, c.rank(0)) : -1;
  if (axis < 0 || axis + 1 == c.rank(0)) {
    for (size_t i = 1; i + 1 < shape.size(); ++i) shape[i] = Dim();
    return c.SetShape(0, shape);
  }
  Dim& dim = shape[static_cast<size_t>(axis)];
  if (c.has(1)) dim = c.Scalar(1);
  if (one_sided && !inverse) dim = OneSided(c.dims(), dim);
  if (one_sided && inverse && !c.has(1)) dim = c.dims().Mul(c.dims().Sub(dim, Dim::Of(1)), Dim::Of(2));
  c.SetShape(0, shape);
}

void Stft(NodeContext& c) {  // (signal[batch, length, ...], frame_step, window, frame_length)
  c.SetType(0, c.type(0));
  DimTable& d = c.dims();
  Shape shape(4);
  shape[3] = Dim::Of(2);
  Dim frame;
  if (c.has(3)) {
    frame = c.Scalar(3);
  } else if (c.rank(2) == 1) {
    frame = c.in(2).shape[0];
  }
  shape[2] = c.Int("onesided", 1) != 0 ? OneSided(d, frame) : frame;
  const Dim step = c.Scalar(1);
  if (c.rank(0) >= 2) {
    shape[0] = c.in(0).shape[0];
    if (step.is_number() && step.number() > 0) {
      shape[1] = d.Add(d.FloorDiv(d.Sub(c.in(0).shape[1], frame), step), Dim::Of(1));
    }
  }
  c.SetShape(0, shape);
}

void Window(NodeContext& c) { c.Set(0, static_cast<DataType>(c.Int("output_datatype", 1)), {c.Scalar(0)}); }

void MelWeightMatrix(NodeContext& c) {  // (num_mel_bins, dft_length, ...)
  c.Set(0, static_cast<DataType>(c.Int("output_datatype", 1)), {OneSided(c.dims(), c.Scalar(1)), c.Scalar(0)});
}

void Rfft(NodeContext& c) {  // com.microsoft: the last dim becomes bins of real and imaginary part
  c.SetType(0, c.type(0));
  if (!c.in(0).has_rank || c.in(0).shape.empty()) return;
  Shape shape = c.shape(0);
  if (c.Int("onesided", 1) != 0) shape.back() = OneSided(c.dims(), shape.back());
  shape.push_back(Dim::Of(2));
  c.SetShape(0, shape);
}

void Irfft(NodeContext& c) {
  c.SetType(0, c.type(0));
  if (c.rank(0) < 2) return;
  Shape shape = c.shape(0);
  shape.pop_back();
  DimTable& d = c.dims();
  if (c.Int("onesided", 1) != 0) shape.back() = d.Mul(d.Sub(shape.back(), Dim::Of(1)), Dim::Of(2));
  c.SetShape(0, shape);
}

constexpr Entry kOps[] = {
    {"", "DFT", Dft},
    {"", "STFT", Stft},
    {"", "BlackmanWindow", Window},
    {"", "HammingWindow", Window},
    {"", "HannWindow", Window},
    {"", "MelWeightMatrix", MelWeightMatrix},
    {"com.microsoft", "Rfft", Rfft},
    {"com.microsoft", "Irfft", Irfft},
};

}  // namespace

absl::Span<const Entry> SignalOps() { return kOps; }

}  // namespace ascend_fuse::infer
