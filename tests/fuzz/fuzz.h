// What the fuzz targets share.
#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
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

// What libprotobuf makes of the bytes, as the readers of ONNX files and as ATC. The messages are kept for the next input with
// what memory they have, up to some size.
class Protobuf {
 public:
  // nullptr where one of the two refuses; else as proto2, until the next call.
  const onnx::ModelProto* Parse(const std::string& bytes) {
    const google::protobuf::LogSilencer silence;
    constexpr size_t kKept = 4 << 20;
    if ((bytes_ += bytes.size()) > kKept) *this = Protobuf();
    return strict_->ParseFromString(bytes) && model_->ParseFromString(bytes) ? model_.get() : nullptr;
  }

 private:
  std::unique_ptr<onnx::ModelProto> model_ = std::make_unique<onnx::ModelProto>();
  std::unique_ptr<strict_onnx::ModelProto> strict_ = std::make_unique<strict_onnx::ModelProto>();
  size_t bytes_ = 0;
};

inline const onnx::ModelProto* ProtobufParses(const std::string& bytes) {
  static Protobuf protobuf;
  return protobuf.Parse(bytes);
}

inline uint32_t HashOf(std::string_view bytes) {
  uint32_t hash = 2166136261u;
  for (const char c : bytes) hash = (hash ^ static_cast<uint8_t>(c)) * 16777619u;
  return hash;
}

}  // namespace ascend_fuse::fuzz
