// When the heads of an attention are padded for its kernel: data of patterns/operators.txtpb.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace ascend_fuse {

// See HeadPadding of proto/operators.proto.
struct HeadPadding {
  int64_t multiple_of = 1;
  double at_most = 1;
  std::string because;
  std::string source;
};

// That of an Ascend node, by its type ("NPUPromptFlashAttention"); nullptr for one whose heads are not padded.
const HeadPadding* FindHeadPadding(std::string_view op_type);

}  // namespace ascend_fuse
