// The standard operators that our op plugin reads, each as the one GE operator that it is: those of domain ai.onnx in
// patterns/operators.txtpb. They are operators of ONNX, so that no lookup of declared operators finds them.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "patterns/operators/declarations.h"

namespace ascend_fuse {

struct StandardOperator {
  DeclaredOperator declared;  // its operands, and the attributes in the forms that are read
  int64_t first = 0;          // the opsets at which the plugin registers it: its definition is the same at all of them
  int64_t last = 0;

  bool IsReadAt(int64_t opset) const { return opset >= first && opset <= last; }
};

const std::vector<StandardOperator>& StandardOperators();

// "Gelu"; nullptr for one that is not read.
const StandardOperator* FindStandardOperator(std::string_view op_type);

}  // namespace ascend_fuse
