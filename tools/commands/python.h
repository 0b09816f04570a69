// Commands that run in the Python package.
#pragma once

#include <string>
#include <vector>

namespace ascend_fuse {

// The path of this program.
std::string OwnPath();

// The Python that runs them: that of the environment that this program is installed in, or python3 of the path.
std::string PythonProgram();

// Runs a module of the Python package with these arguments and those in `more`, and returns its exit code.
int RunPython(const std::string& module, const std::vector<std::string>& arguments, const std::vector<std::string>& more);

}  // namespace ascend_fuse
