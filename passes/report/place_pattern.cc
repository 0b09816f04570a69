#include "passes/report/place_pattern.h"

#include <cctype>

namespace ascend_fuse {

std::string PlacePattern(const std::string& path) {
  std::string result;
  const auto separator = [](char c) { return c == '.' || c == '/' || c == '_' || c == ':'; };
  for (size_t i = 0; i < path.size();) {
    size_t end = i;
    while (end < path.size() && std::isdigit(static_cast<unsigned char>(path[end]))) ++end;
    const bool starts = i == 0 || separator(path[i - 1]);
    const bool ends = end == path.size() || separator(path[end]);
    if (end > i && starts && ends) {
      result += '*';
      i = end;
    } else {
      if (end == i) ++end;
      result.append(path, i, end - i);
      i = end;
    }
  }
  return result;
}

}  // namespace ascend_fuse
