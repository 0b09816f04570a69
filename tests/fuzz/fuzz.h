// What the fuzz targets share.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

#include "google/protobuf/stubs/logging.h"
#include "proto/onnx.pb.h"
#include "proto/strict_onnx.pb.h"

namespace ascend_fuse::fuzz {

// Ends the process, which is a finding.
inline void Require(bool condition, std::string_view what) {
  if (condition) return;
  std::fprintf(stderr, "not so: %.*s\n", static_cast<int>(what.size()), what.data());
  std::abort();
}

// What libprotobuf makes of the bytes, as the readers of ONNX files and as ATC.
inline bool ProtobufParses(const std::string& bytes, onnx::ModelProto* model) {
  const google::protobuf::LogSilencer silence;
  strict_onnx::ModelProto strict;
  return model->ParseFromString(bytes) && strict.ParseFromString(bytes);
}

}  // namespace ascend_fuse::fuzz
