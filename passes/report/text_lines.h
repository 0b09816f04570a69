// Text that is made line by line, for people: no line ends in blanks.
#pragma once

#include <string>
#include <utility>

#include "fmt/format.h"

namespace ascend_fuse {

class TextLines {
 protected:
  template <typename... Args>
  void Line(fmt::format_string<Args...> format, Args&&... args) {
    text_ += fmt::format(format, std::forward<Args>(args)...);
    while (!text_.empty() && text_.back() == ' ') text_.pop_back();
    text_ += '\n';
  }

  std::string text_;
};

}  // namespace ascend_fuse
