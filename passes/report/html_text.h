// Words of a report in HTML: names out of a file may hold anything, and nothing of them has a meaning there.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace ascend_fuse {

// What has a meaning in HTML, and what would not be seen, is written out; of more than `most` bytes, the rest is counted.
std::string HtmlText(std::string_view text, size_t most = 2000);
// A code with its title, which a browser shows where the mouse rests, after a blank; "" for "".
std::string HtmlCode(const std::string& name);
// A line in small type; "" where the text is empty.
std::string HtmlSmall(std::string_view label, const std::string& text);

}  // namespace ascend_fuse
