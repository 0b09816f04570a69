// A string of JSON.
#pragma once

#include <string>
#include <string_view>

namespace ascend_fuse {

// In quotation marks; what is not UTF-8 or cannot be seen is written out, as in reports.
std::string JsonString(std::string_view text);

}  // namespace ascend_fuse
