// Writes a Model as an ONNX file: ranges of the input file where nothing changed, new bytes where something
// did.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ir/model.h"

namespace ascend_fuse {

// Where weights of the input are found when the model is saved. Elements in typed fields (float_data ...), of bodies and of
// attributes always stay as they are.
enum class Weights {
  kCopy,       // in the model where they are in the model, in data files where they are there
  kReference,  // where they are: those of 4 KB and more inside the input become external data that lies in it
  kOneFile,    // in SaveOptions::weights_file, all of 4 KB and more and all external data
};

struct SaveOptions {  // how a model is written
  Weights weights = Weights::kCopy;
  std::string weights_file;  // kOneFile: a name relative to the directory of the output, without ".."
  bool copy_data = false;    // kCopy: copies data files that are not in the directory of the output

  // Called now and then while writing with the bytes written so far and the size of the file.
  std::function<void(int64_t written, int64_t total)> progress;
  // Asked as often as progress is told, of copied data files too: false ends writing with CANCELLED, and nothing is left behind.
  std::function<bool()> go_on;
};

// Writes `model` to `path`, which may be the file it was loaded from: a temporary file beside it is written
// and renamed, so that `path` is never a half-written model; nothing is left behind on an error. A model in
// which nothing was changed is copied byte for byte. Otherwise nodes that were not touched, initializers and
// everything this program does not know are still the bytes of the input, in their order. Merged weights
// (Storage::kJoined) are streamed from their parts; those that come from external data are written to
// `<path>.merged.data`, or a free name near it, and referred to. Errors:
// FAILED_PRECONDITION (the input file changed meanwhile; external data would not be found from the new
// place, or a reader would not follow a reference), OUT_OF_RANGE (a changed model of more than 2^31 - 1 bytes, which no runtime
// could load), PERMISSION_DENIED, NOT_FOUND, RESOURCE_EXHAUSTED (disk full), UNAVAILABLE (other failures of the file system).
absl::Status SaveModel(const Model& model, const std::string& path, const SaveOptions& options = {});

// The same bytes as a string; merged weights are part of it.
absl::StatusOr<std::string> SaveModelToBytes(const Model& model);

}  // namespace ascend_fuse
