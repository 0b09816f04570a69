// Initializers of a model that is written: as they are, or with a reference to where their elements lie then. Private to ir/onnx.
#pragma once

#include "ir/model.h"
#include "ir/onnx/pieces.h"
#include "ir/onnx/weight_places.h"

namespace ascend_fuse {

class WeightWriter {
 public:
  // All must outlive this.
  WeightWriter(const Model& model, const WeightPlaces& places, Pieces* out) : model_(model), places_(places), out_(out) {}

  // A new one, or one that changed.
  void Write(const Tensor& tensor);
  // An initializer whose elements are to be found elsewhere than the input has them: with a reference to that place.
  // False, and nothing written, where they stay.
  bool WriteMoved(const Tensor& tensor);
  // What the file at WeightPlaces::data_file must hold.
  Pieces& data() { return data_; }

 private:
  void WriteHead(const Tensor& tensor);
  // Whether the elements go into the data file.
  bool GoesIntoDataFile(const Tensor& tensor) const;
  FileRange AddToDataFile(const Tensor& tensor);

  const Model& model_;
  const WeightPlaces& places_;
  Pieces* out_;
  Pieces data_;
};

}  // namespace ascend_fuse
