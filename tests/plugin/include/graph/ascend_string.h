// The text of ATC's interface, as its documentation declares it, for tests of plugin/.
#pragma once

#include <memory>
#include <string>

namespace ge {

using char_t = char;

class AscendString {
 public:
  AscendString() = default;
  AscendString(const char_t* name);
  const char_t* GetString() const;

 private:
  std::shared_ptr<std::string> name_;
};

}  // namespace ge
