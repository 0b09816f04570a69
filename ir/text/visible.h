// Text out of a file as a person may see it: names can hold anything.
#pragma once

#include <string>
#include <string_view>

namespace ascend_fuse {

// Characters that change a terminal or the direction of text, that are invisible, or that are not UTF-8 are written out
// (\x1b, \u{202e}), so that what is shown cannot pretend to be something else. Line breaks and tabs too, unless they are kept.
std::string Visible(std::string_view text, bool keep_lines = false);

// JSON, which is UTF-8, with such characters beyond ASCII as \u202e: it means the same.
std::string VisibleJson(std::string_view json);

// One name or sentence as Visible writes it, of which at most 2000 bytes are shown: a name can have a hundred megabytes.
std::string Shown(std::string_view text);

}  // namespace ascend_fuse
