// The shapes of operators that no pattern spells out, as data.
#pragma once

#include <string_view>
#include <vector>

namespace ascend_fuse::backwards {

// The shapes of operators that no pattern spells out: a letter is a dim, * any dims, 1 a dim of 1, a small
// letter half of its large one, # a dim large enough for every position.
struct OperandShapes {
  std::string_view domain;
  std::string_view op;
  std::vector<std::string_view> inputs;  // the last ones may be absent
  std::string_view output;
  std::string_view attribute = "";  // where the row holds for one value of an attribute only
  double number = 0;
  int opset = 0;  // the first one in which the operator is not written in standard operators before anything
                  // is looked for
};

const std::vector<OperandShapes>& OperandTable();

}  // namespace ascend_fuse::backwards
