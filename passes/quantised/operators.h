// Each quantised operator in standard ones: what it computes, as its document and ONNX Runtime say, on real numbers or on codes.
#pragma once

#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "passes/quantised/code_writer.h"

namespace ascend_fuse {

struct QuantisedOperator {
  std::string_view domain;
  std::string_view op;
  // Puts standard operators in the place of the node. FAILED_PRECONDITION with a sentence where that cannot be done.
  absl::Status (*write)(CodeWriter& writer, const Node* node);
  std::string_view kind = {};  // of its site: quantised_linear, quantised_conv; "" for what is not a product
};

const std::vector<QuantisedOperator>& QuantisedProducts();     // write_products.cc
const std::vector<QuantisedOperator>& QuantisedElementwise();  // write_elementwise.cc
const std::vector<QuantisedOperator>& QuantisedInBlocks();     // write_blocks.cc
const std::vector<QuantisedOperator>& QuantisedWhole();        // write_whole.cc

inline constexpr std::string_view kRuntime = "com.microsoft";

}  // namespace ascend_fuse
