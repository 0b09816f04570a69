// libFuzzer: any text of rules either gives a sentence or rules that can be asked.
#include <cstdint>
#include <string>

#include "patterns/language/rule_set.h"
#include "tests/fuzz/fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace ascend_fuse;  // NOLINT
  const std::string text(reinterpret_cast<const char*>(data), size);
  const auto user = UserRules::Parse({{"fuzz.rule", text}});
  if (!user.ok()) {
    fuzz::Require(!user.status().message().empty(), "a refusal has a sentence");
    return 0;
  }
  if (fuzz::HashOf(text) % 8 != 0) return 0;  // what follows takes the built-in rules as well, and ten times as long
  // Rules without such nodes belong to the library alone.
  const bool npu = text.find("npu") != std::string::npos;
  for (const RuleFolder folder : {RuleFolder::kLibrary, RuleFolder::kNpu, RuleFolder::kReference}) {
    if (folder != RuleFolder::kLibrary && !npu) break;
    const auto rules = RuleSet::Load(folder, *user);
    fuzz::Require(rules.ok() || !rules.status().message().empty(), "a refusal has a sentence");
  }
  return 0;
}
