// What became of a try to have a kernel of Ascend compute a quantised operator.
#pragma once

#include <string>
#include <vector>

namespace ascend_fuse {

struct KernelTry {
  bool taken = false;
  std::string op;                        // the node that was made: "npu.WeightQuantBatchMatmulV2"
  std::vector<std::string> assumptions;  // what the target takes for granted of symbolic dims
  std::string code;                      // why not: of patterns/codes.h, with a sentence and its source
  std::string because;
  std::string source;
};

}  // namespace ascend_fuse
