// What the layout of an attention costs, in microseconds: data of patterns/operators.txtpb.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace ascend_fuse {

// See LayoutCost of proto/operators.proto.
struct LayoutCost {
  double transpose = 0;
  double transpose_element = 0;
  int64_t from_length = 0;
  double score = 0;
  std::string because;
  std::string source;
};

// That of an Ascend node, by its type ("NPUPromptFlashAttention"); nullptr for one whose layout is not a choice.
const LayoutCost* FindLayoutCost(std::string_view op_type);

}  // namespace ascend_fuse
