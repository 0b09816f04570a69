// The pieces of a model file: ranges of the input file where nothing changed, new bytes where something did. Private to
// ir/onnx.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "ir/model.h"
#include "ir/onnx/pieces.h"
#include "ir/onnx/weight_places.h"

namespace ascend_fuse {

// Befriended by Graph and Model. `model` must outlive it.
class ModelWriter {
 public:
  explicit ModelWriter(const Model& model, WeightPlaces places = {});
  ~ModelWriter();
  ModelWriter(const ModelWriter&) = delete;
  ModelWriter& operator=(const ModelWriter&) = delete;

  // Whether the file is the input, byte for byte.
  bool IsUnchanged() const;
  // The whole file. Once only.
  Pieces Run();
  // After Run: what the file at WeightPlaces::data_file must hold.
  Pieces& data();
  // See ir/onnx/spelling.h.
  std::vector<std::string> Imports() const;
  std::string_view Domain(const Node& node) const;

 private:
  class Layout;
  std::unique_ptr<Layout> layout_;
};

}  // namespace ascend_fuse
