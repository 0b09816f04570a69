// What became of a try to have a kernel of Ascend compute a quantised operator.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace ascend_fuse {

struct Value;

struct KernelTry {
  bool taken = false;
  const Value* value = nullptr;           // what it computes, where it does not stand in the place of the node yet
  std::string op;                         // the node that was made: "npu.WeightQuantBatchMatmulV2"
  std::string precision = "approximate";  // as SiteRecord has it
  std::string by_ge;                      // where GE makes the kernel of what was written: how it does
  std::vector<std::string> assumptions;   // what the target takes for granted of symbolic dims
  std::string code;                       // why not: of patterns/codes.h, with a sentence and its source
  std::string because;
  std::string source;

  static KernelTry Refused(std::string code, std::string because, std::string source) {
    KernelTry answer;
    answer.code = std::move(code);
    answer.because = std::move(because);
    answer.source = std::move(source);
    return answer;
  }
};

}  // namespace ascend_fuse
