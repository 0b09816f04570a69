// Rules in the form in which the program carries its own: read, checked and ordered when the program is built, so that
// a process only fills in structures. The bytes are made and read by the same build (tools/rule_compiler).
#pragma once

#include <string>
#include <string_view>

#include "patterns/language/rule_set.h"

namespace ascend_fuse {

class RuleArchive {
 public:
  static std::string Write(const RuleSet& rules);
  static std::string Write(const RuleVocabulary& vocabulary);

  // What Write has written, in this build; anything else ends the program.
  static void Read(std::string_view bytes, RuleSet* rules);
  static void Read(std::string_view bytes, RuleVocabulary* vocabulary);

 private:
  template <typename Direction, typename Rules>
  static void Visit(Direction& direction, Rules& rules);
};

}  // namespace ascend_fuse
