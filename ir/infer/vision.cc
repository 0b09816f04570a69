// Operators on images and boxes: sampling grids, regions of interest, unpooling, crops.
#include <algorithm>

#include "ir/infer/context.h"

namespace ascend_fuse::infer {
namespace {

Shape Unknown(size_t rank) { return Shape(rank); }

void GridSample(NodeContext& c) {  // (X[N, C, ...], grid[N, ..., r])
  c.SetType(0, c.type(0));
  const Shape x = c.shape(0);
  const Shape grid = c.shape(1);
  const size_t rank = std::max(x.size(), grid.size());
  if (rank < 3 || (!x.empty() && !grid.empty() && x.size() != grid.size())) return;
  Shape shape = Unknown(rank);
  if (!x.empty()) {
    shape[0] = x[0];
    shape[1] = x[1];
  }
  if (!grid.empty()) {
    c.Require(shape[0], grid[0]);
    if (!shape[0].known()) shape[0] = grid[0];
    for (size_t i = 2; i < rank; ++i) shape[i] = grid[i - 1];
  }
  c.SetShape(0, shape);
}

void AffineGrid(NodeContext& c) {  // (theta, size = [N, C, spatial...]) -> [N, spatial..., number of those]
  c.SetType(0, c.type(0));
  absl::Span<const Dim> size;
  if (!c.Integers(1, &size) || (size.size() != 4 && size.size() != 5)) return;
  Shape shape = {c.dims().Resolve(size[0])};
  for (size_t i = 2; i < size.size(); ++i) shape.push_back(c.dims().Resolve(size[i]));
  shape.push_back(Dim::Of(static_cast<int64_t>(size.size()) - 2));
  c.SetShape(0, shape);
}

void Rois(NodeContext& c, Dim height, Dim width) {  // (X[N, C, H, W], rois[R, ...]) -> [R, C, height, width]
  c.SetType(0, c.type(0));
  Shape shape = Unknown(4);
  if (c.rank(1) > 0) shape[0] = c.in(1).shape[0];
  if (c.rank(0) == 4) shape[1] = c.in(0).shape[1];
  shape[2] = height;
  shape[3] = width;
  c.SetShape(0, shape);
}

void RoiAlign(NodeContext& c) { Rois(c, Dim::Of(c.Int("output_height", 1)), Dim::Of(c.Int("output_width", 1))); }

void MaxRoiPool(NodeContext& c) {
  const auto pooled = c.Ints("pooled_shape");
  if (pooled.has_value() && pooled->size() == 2) Rois(c, Dim::Of((*pooled)[0]), Dim::Of((*pooled)[1]));
}

void CropAndResize(NodeContext& c) {  // com.microsoft (X, rois, batch_indices, crop_size)
  absl::Span<const Dim> size;
  const bool known = c.Integers(3, &size) && size.size() == 2;
  Rois(c, known ? c.dims().Resolve(size[0]) : Dim(), known ? c.dims().Resolve(size[1]) : Dim());
}

void NonMaxSuppression(NodeContext& c) { c.Set(0, DataType::kInt64, {Dim(), Dim::Of(3)}); }

void MaxUnpool(NodeContext& c) {  // (X, indices, output_shape)
  c.SetType(0, c.type(0));
  if (!c.in(0).has_rank || c.rank(0) < 3) return;
  const size_t rank = c.in(0).shape.size();
  if (c.has(2)) {
    absl::Span<const Dim> size;
    if (!c.Integers(2, &size) || size.size() != rank) return c.SetRank(0, rank);
    Shape shape(size.begin(), size.end());
    for (Dim& dim : shape) dim = c.dims().Resolve(dim);
    return c.SetShape(0, shape);
  }
  const size_t spatial = rank - 2;
  const auto kernel = c.Ints("kernel_shape").value_or(std::vector<int64_t>());
  const auto strides = c.Ints("strides").value_or(std::vector<int64_t>(spatial, 1));
  const auto pads = c.Ints("pads").value_or(std::vector<int64_t>(2 * spatial, 0));
  Shape shape = c.shape(0);
  DimTable& d = c.dims();
  for (size_t i = 0; i < spatial; ++i) {
    Dim& dim = shape[2 + i];
    if (kernel.size() != spatial || strides.size() != spatial || pads.size() != 2 * spatial) {
      dim = Dim();
      continue;
    }
    dim = d.Mul(d.Sub(dim, Dim::Of(1)), Dim::Of(strides[i]));  // (in - 1) * stride - pads + kernel
    dim = d.Sub(d.Sub(dim, Dim::Of(pads[i])), Dim::Of(pads[spatial + i]));
    dim = d.Add(dim, Dim::Of(kernel[i]));
  }
  c.SetShape(0, shape);
}

void Col2Im(NodeContext& c) {  // (input[N, C * block, L], image_shape, block_shape)
  c.SetType(0, c.type(0));
  absl::Span<const Dim> image;
  absl::Span<const Dim> block;
  if (!c.Integers(1, &image) || image.size() > 16) return;
  Shape shape = Unknown(2);
  if (c.rank(0) == 3) {
    shape[0] = c.in(0).shape[0];
    if (c.Integers(2, &block)) shape[1] = c.dims().ExactDiv(c.in(0).shape[1], c.Product(block));
  }
  for (Dim dim : image) shape.push_back(c.dims().Resolve(dim));
  c.SetShape(0, shape);
}

void ImageDecoder(NodeContext& c) {
  c.Set(0, DataType::kUint8, {Dim(), Dim(), Dim::Of(c.String("pixel_format", "RGB") == "Grayscale" ? 1 : 3)});
}

constexpr Entry kOps[] = {
    {"", "GridSample", GridSample},
    {"", "AffineGrid", AffineGrid},
    {"", "RoiAlign", RoiAlign},
    {"", "MaxRoiPool", MaxRoiPool},
    {"", "NonMaxSuppression", NonMaxSuppression},
    {"", "MaxUnpool", MaxUnpool},
    {"", "Col2Im", Col2Im},
    {"", "ImageDecoder", ImageDecoder},
    {"com.microsoft", "GridSample", GridSample},
    {"com.microsoft", "CropAndResize", CropAndResize},
};

}  // namespace

absl::Span<const Entry> VisionOps() { return kOps; }

}  // namespace ascend_fuse::infer
