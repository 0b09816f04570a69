// libFuzzer: any text of rules either gives a sentence or rules that can be asked.
#include <cstdint>
#include <string>

#include "patterns/language/rule_set.h"
#include "tests/fuzz/fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace ascend_fuse;  // NOLINT
  const auto user = UserRules::Parse({{"fuzz.rule", std::string(reinterpret_cast<const char*>(data), size)}});
  if (!user.ok()) {
    fuzz::Require(!user.status().message().empty(), "a refusal has a sentence");
    return 0;
  }
  for (const RuleFolder folder : {RuleFolder::kLibrary, RuleFolder::kNpu, RuleFolder::kReference}) {
    const auto rules = RuleSet::Load(folder, *user);
    fuzz::Require(rules.ok() || !rules.status().message().empty(), "a refusal has a sentence");
  }
  return 0;
}
