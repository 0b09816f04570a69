// Another program, asked for what it prints, for some seconds at most.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace ascend_fuse {

// What `words` prints on stdout; nullopt where the program is not there, ends with another code than 0, or takes longer than
// `seconds`: then it is killed.
std::optional<std::string> RunBriefly(const std::vector<std::string>& words, int seconds);

}  // namespace ascend_fuse
