// The command line of ATC that fits a model and a target: for the end of `optimize`, and as a script.
#pragma once

#include <string>
#include <vector>

#include "passes/report/report.h"
#include "patterns/target/target.h"

namespace ascend_fuse {

// A word of the shell: in single quotes where a character needs it.
std::string ShellWord(const std::string& word);

// The whole line. `path` is the model that ATC is given, `inputs` are Report::inputs: a number is written as it is, a range as
// a range where the chip takes one, and a dim that is open as -1.
std::string AtcCommand(const std::vector<InputRecord>& inputs, const Target& target, const std::string& path);

// The same as a shell script with a comment to every option.
std::string AtcScript(const std::vector<InputRecord>& inputs, const Target& target, const std::string& path);

}  // namespace ascend_fuse
