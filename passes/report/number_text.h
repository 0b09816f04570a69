// Numbers as people read them.
#pragma once

#include <string>

namespace ascend_fuse {

std::string ShortNumber(double value);  // "1.23 G", with a blank at the end where there is no letter: "12 "
std::string ShortBytes(double value);   // "1.23 GB"
std::string Percent(double share);      // "12 %", "<1 %"

}  // namespace ascend_fuse
