// Run by the build: checks the built-in rules and writes them in the form in which the program carries them. A mistake
// in a rule stops the build with its file, line and column.
//     rule_compiler DIRECTORY    writes library.rules, library.vocabulary, npu.rules ...
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>

#include "embedded/pattern_data.h"
#include "patterns/language/rule_archive.h"
#include "patterns/language/rule_set.h"

namespace ascend_fuse::embedded {
// What this program makes: it has none itself.
extern const File compiled_rules[] = {{"", ""}};
extern const size_t compiled_rules_count = 0;
}  // namespace ascend_fuse::embedded

int main(int argc, char** argv) {
  using ascend_fuse::RuleSet;
  if (argc != 2) {
    std::fputs("usage: rule_compiler DIRECTORY\n", stderr);
    return 2;
  }
  const std::filesystem::path directory(argv[1]);
  std::filesystem::create_directories(directory);
  for (size_t i = 0; i < ascend_fuse::kRuleFolders; ++i) {
    const auto folder = static_cast<ascend_fuse::RuleFolder>(i);
    ascend_fuse::RuleVocabulary vocabulary;
    const auto rules = RuleSet::FromText(folder, {}, &vocabulary);
    if (!rules.ok()) {
      std::fprintf(stderr, "%s\n", std::string(rules.status().message()).c_str());
      return 1;
    }
    const std::string name(ascend_fuse::RuleFolderName(folder));
    std::ofstream(directory / (name + ".rules"), std::ios::binary) << ascend_fuse::RuleArchive::Write(**rules);
    std::ofstream(directory / (name + ".vocabulary"), std::ios::binary) << ascend_fuse::RuleArchive::Write(vocabulary);
  }
  return 0;
}
