// Options that stand in a file, ascend-fuse.toml, or in variables of the environment, so that they need not be given each time.
// A flag wins over a variable, and a variable over the file.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/status/status.h"

namespace ascend_fuse {

constexpr std::string_view kConfigName = "ascend-fuse.toml";
// With this variable neither the file in the current folder nor other variables are read.
constexpr const char* kNoConfig = "ASCEND_FUSE_NO_CONFIG";

// The variables that are read, each with the option that it stands for.
const std::vector<std::pair<std::string_view, std::string_view>>& ConfigVariables();

// Gives the options of the command that was parsed what variables and the file say, where no flag did. The file is `given`, or
// ascend-fuse.toml in the current folder if there is one; `read` is its path, "" where there is none. INVALID_ARGUMENT with file
// and line for what is not TOML, for keys that no command has (with the nearest one) and for values that an option does not take.
absl::Status ApplyConfig(CLI::App* app, const std::string& given, std::string* read);

}  // namespace ascend_fuse
