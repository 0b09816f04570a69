// The options of a run by name and value, as text: what the command line, the interface in C and the Python package share,
// so that one name means one thing everywhere.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "ir/onnx/save.h"
#include "passes/optimize.h"

namespace ascend_fuse {

struct OptionName {          // an option as the command line spells it
  std::string_view name;     // "precision-mode"
  std::string_view value;    // what stands for the value: "NAME=RANGE"; "" for a switch, which takes true or false
  std::string_view meaning;  // a clause
  bool repeated = false;     // every call adds one; else the last call counts
};

// All options, in the order in which help lists them.
const std::vector<OptionName>& OptionNames();

// Sets the option of that name. `rules` reads the file at once. INVALID_ARGUMENT with the names there are for a name that is
// none, or with what was expected for a value; NOT_FOUND for a file of rules that cannot be read.
absl::Status SetOption(OptimizeOptions* options, std::string_view name, std::string_view value);

// Where weights are written: "copy", "reference", or the name of one file for all of them.
void SetWeights(SaveOptions* options, std::string_view weights);

}  // namespace ascend_fuse
