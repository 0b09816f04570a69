// How the page of an analysis looks, and what its script does: tables are sorted and searched.
#pragma once

#include <string_view>

namespace ascend_fuse {

std::string_view PageStyle();
// What stands between <script> and </script>. The page tells the browser to run no other: PageScriptHash is its SHA-256.
std::string_view PageScript();
std::string_view PageScriptHash();

}  // namespace ascend_fuse
