// The man page and the completions of shells, read from the command line itself.
#pragma once

#include <string>

#include "CLI/CLI.hpp"

namespace ascend_fuse {

// The page ascend-fuse(1), in the language of man.
std::string ManPage(const CLI::App& app, const std::string& version);

// The completion of a shell, "bash", "zsh" or "fish": commands, their flags, the words that a flag takes. "" for another shell.
std::string Completion(const CLI::App& app, const std::string& shell);

}  // namespace ascend_fuse
