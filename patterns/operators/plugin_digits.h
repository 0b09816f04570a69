// How many digits of a number ATC hands to a plugin.
#pragma once

#include <cstdlib>
#include <string>

#include "fmt/format.h"

namespace ascend_fuse {

// Whether a plugin is given the number as it is: ATC writes the value of a FLOAT with six digits, and old releases lose one of
// more than nine letters (hicann/ge parser/common/convert/pb2json.cc).
inline bool SixDigitsHold(float number) {
  constexpr size_t kMostLetters = 9;
  const std::string text = fmt::format("{:.6g}", number);
  return text.size() <= kMostLetters && std::strtof(text.c_str(), nullptr) == number;
}

}  // namespace ascend_fuse
