// Where the weights of a saved model are found: in the model, in the input file, in one file of their own, or in the data
// files of the input. Private to ir/onnx.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ir/model.h"
#include "ir/onnx/save.h"

namespace ascend_fuse {

// Locations are relative to the directory of the output, as readers look for them.
struct WeightPlaces {
  std::string data_file;               // gets merged weights that must not become part of the model; empty: there is none
  bool all_in_data_file = false;       // and every other weight
  bool computed_in_data_file = false;  // and dequantised weights, which are more than a model holds
  std::string model_file;  // the input, which weights of 4 KB and more in it are referred to in; empty: they are copied
  std::string prefix;      // goes before the locations of external data

  // Whether weights of the input are found elsewhere than the input says.
  bool move_weights() const { return all_in_data_file || !model_file.empty() || !prefix.empty(); }
};

// What `options` mean for `model`, written to `path`. FAILED_PRECONDITION where a reader would not find a weight, or not
// follow the way to it; INVALID_ARGUMENT for a name that cannot be used.
absl::StatusOr<WeightPlaces> PlaceWeights(const Model& model, const std::string& path, const SaveOptions& options);

// Copies the data files of `model` that are not in the directory of `path` yet. Each appears whole or not at all.
// FAILED_PRECONDITION for another file of the same name; RESOURCE_EXHAUSTED, PERMISSION_DENIED and others of the file system;
// what `progress` gives where that is not OK. `made` receives the files and directories that were not there before, an error or
// not.
absl::Status CopyDataFiles(const Model& model, const std::string& path,
                           const std::function<absl::Status(int64_t written, int64_t total)>& progress,
                           std::vector<std::string>* made);

}  // namespace ascend_fuse
