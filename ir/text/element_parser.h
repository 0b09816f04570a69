// The elements of a constant in ONNX text: {1, 2, 3}, {0, ...}, "text", bit patterns of half precision.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "ir/data_type.h"
#include "ir/text/lexer.h"

namespace ascend_fuse::onnx {
class TensorProto;
}

namespace ascend_fuse {

class ElementParser {
 public:
  explicit ElementParser(TokenReader* in) : in_(in) {}

  // `count` elements, after their bracket was read.
  absl::Status Parse(DataType element, int64_t count, onnx::TensorProto* tensor);

 private:
  // Repeated elements make large tensors of a short text, but not absurd ones.
  static constexpr int64_t kMaxRepeatedBytes = int64_t{1} << 28;

  absl::Status RepeatLast(const Token& at, DataType element, int64_t times, size_t last, std::string* raw,
                          onnx::TensorProto* tensor);
  absl::Status Element(DataType element, std::string* raw, onnx::TensorProto* tensor);

  TokenReader* in_;
  int64_t repeat_budget_ = kMaxRepeatedBytes;
};

}  // namespace ascend_fuse
