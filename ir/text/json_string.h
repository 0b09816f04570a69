// Strings of JSON.
#pragma once

#include <string>
#include <string_view>

namespace ascend_fuse {

// Text in quotation marks.
std::string JsonString(std::string_view text);

// The same of text out of a file: what is not UTF-8 or cannot be seen is written out, as in reports.
std::string VisibleJsonString(std::string_view text);

}  // namespace ascend_fuse
